"""A part of the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MOST_ROWS = 16  # of a chart


@dataclass(frozen=True)
class Section:
    """What one template lays out.

    Attributes:
        name: Its id in the page, and the name of its template.
        title: Its heading.
        content: What the template shows.
        tone: good, bad or unclear where the section is a verdict.
    """

    name: str
    title: str
    content: Any
    tone: str = ""

    @property
    def template(self) -> str:
        """File of its template."""
        return f"{self.name}.html.j2"
