"""How the figures came about, and what they do not say."""

from __future__ import annotations

from dataclasses import dataclass

from spectune.report.material import Material
from spectune.report.sections.section import Section
from spectune.search.answer.disturbed import summary_of


@dataclass(frozen=True)
class Caveats:
    """What the page's fixed words do not say of every study.

    Attributes:
        simulated: Whether no engine ran.
        beside: How many launches were made beside other work of the machine; None for none.
    """

    simulated: bool
    beside: str | None


def method(material: Material) -> Section:
    """Return the page's fixed words, and what is to be said of this study."""
    return Section("method", "Method and caveats", Caveats(material.told.simulated, summary_of(material.records)))
