"""Whether a launch still does what it was measured to do, and if not, why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spectune.analysis.change_words import change_words, changed
from spectune.analysis.comparison import Comparison

Outcome = Literal["holds", "machine_changed", "below_break_even", "launch_changed"]


@dataclass(frozen=True, slots=True)
class Held:
    """A launch and the best baseline, launched in turns, against their figures on record.

    Attributes:
        launch: The launch now against the launch then.
        baseline: Likewise the baseline; None where the launch is the baseline.
        speedup: The launch against the baseline, both now; None likewise.
        speculates: Whether the launch drafts anything.
    """

    launch: Comparison
    baseline: Comparison | None
    speedup: Comparison | None
    speculates: bool

    @property
    def outcome(self) -> Outcome:
        """The worst first: speculation that has come to cost speed, another machine, another launch."""
        machine = changed(self.launch if self.baseline is None else self.baseline)
        if self._loses and (machine or changed(self.launch)):
            return "below_break_even"
        if machine:
            return "machine_changed"
        return "launch_changed" if changed(self.launch) else "holds"

    @property
    def _loses(self) -> bool:
        return self.speculates and self.speedup is not None and self.speedup.verdict == "loses"

    @property
    def words(self) -> str:
        """The outcome with its figures."""
        now = change_words(self.launch)
        if self.outcome == "holds":
            loses = "; as then, it is slower than the baseline" if self._loses else ""
            return f"still holds: {now}{loses}"
        if self.baseline is None or self.speedup is None:
            return f"machine changed: the launch, which is the best baseline itself, is {now}"
        before = change_words(self.baseline)
        gain = _gain(self.speedup)
        if self.outcome == "below_break_even":
            return (
                f"acceptance below break-even: {self.speedup.accept_length:.2f} tokens are accepted and "
                f"{self.speedup.break_even:.2f} are needed, so it is {gain}; run the baseline instead"
            )
        if self.outcome == "machine_changed":
            return f"machine changed: the baseline is {before}; the launch is {gain}"
        return f"no longer holds: the launch is {now}; the baseline: {before}; the launch is {gain}"


def _gain(speedup: Comparison) -> str:
    told = change_words(speedup, than="the baseline")
    return told if changed(speedup) else f"as fast as the baseline, as far as can be told ({told})"
