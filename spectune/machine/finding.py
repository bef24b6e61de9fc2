"""One thing worth knowing before a search, with the way out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Literal

Severity = Literal["fatal", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("fatal", "warning", "info")


@dataclass(frozen=True)
class Finding:
    """One thing worth knowing before a search.

    Attributes:
        name: Short stable name, for scripts.
        severity: `fatal` would make a search fail, `warning` its figures worse or wrong, `info` is good to know.
        seen: What was seen, with the values.
        why: Why it matters.
        way_out: What to do, a command where there is one; empty where nothing needs to be done.
    """

    name: str
    severity: Severity
    seen: str
    why: str
    way_out: str = ""

    def to_json(self) -> dict[str, str]:
        """Return it as `--json` prints it."""
        return asdict(self)


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings by what to fix first; those of one severity stay in the order they were found."""
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))
