"""One check: what it finds, how grave that is, and how SGLang is known to behave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spectune.engines.sglang.preflight.pair import Pair
from spectune.engines.sglang.rules.judging import Finding, Severity
from spectune.engines.sglang.rules.rule import Tested
from spectune.engines.sglang.versions.history import FIRST_VERSION, older_than
from spectune.printable import printable

LONGEST = 600  # characters of a message; configs are somebody else's text
Says = Callable[[Pair], str | None]


@dataclass(frozen=True)
class Check:
    """A line of the table.

    Attributes:
        name: Short and stable, for counting and reports.
        severity: `fatal` is never launched by a search: SGLang refuses it, dies of it or accepts next to nothing, or
            the files are not what was trained.
        says: What is wrong, with the values; None when nothing is.
        source: File:line of SGLang 0.5.23 that was read for it.
        tested: How that is known; `launched` is SGLang 0.5.23 on the cpu-reference runtime.
        advice: The way out.
        since: First SGLang version it holds for.
    """

    name: str
    severity: Severity
    says: Says
    source: str
    tested: Tested
    advice: str | Callable[[Pair], str] = ""
    since: str = FIRST_VERSION

    def finding(self, pair: Pair) -> Finding | None:
        """Return what it finds."""
        if older_than(pair.version, self.since):
            return None
        message = self.says(pair)
        if message is None:
            return None
        advice = self.advice if isinstance(self.advice, str) else self.advice(pair)
        return Finding(self.name, self.severity, printable(message, LONGEST), printable(advice))
