"""How many draft steps a chain should make: asked in one place, so that no two causes advise opposite things."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spectune.analysis.acceptance import constant_acceptance_length
from spectune.analysis.diagnosis.case import Action, Case, Cause, Cost

NOTHING_ACCEPTED = 1.05
"""At or below this accept length a drafter is misconfigured, not weak (sglang#21272)."""
IDLE_TAIL = 0.1
"""A draft position that accepts more rarely than this is not worth its step."""
BUSY_TAIL = 0.5
"""One behind the last that would accept at least so often is worth a try."""


@dataclass(frozen=True, slots=True)
class Steps:
    """What the measured figures say of the number of steps, every position taken to accept alike.

    Attributes:
        now: Steps of the launch.
        better: Steps they speak for; as many as now where they speak for no others.
        each: Chance that a position is accepted if the one before it was.
        step_ms: What a step takes at most, of drafting and host time; None where no verify's time is known.
    """

    now: int
    better: int
    each: float
    step_ms: float | None

    @property
    def action(self) -> Action:
        """The launch to try."""
        words = f"launch with --speculative-num-steps {self.better} --speculative-num-draft-tokens {self.better + 1}"
        return Action(words, Cost.FLAG)

    @property
    def more(self) -> str | None:
        """Why a longer chain is worth a try; None where it is not."""
        if self.better <= self.now:
            return None
        return (
            f"every position accepts {self.each:.0%} if all accept alike, so {self.better} steps would give "
            f"{constant_acceptance_length(self.each, self.better):.2f}"
        )


def steps_of(case: Case) -> Steps | None:
    """Return how many steps the figures speak for; None where they say nothing, or the launch drafts no chain.

    With a verify's time, what is left of the cycle is taken to be the steps', and the fastest chain is looked for, one
    step longer than now at most. Without it the last position decides: one that accepts hardly ever is too many, one
    behind it that would accept often is one too few.
    """
    running, length, now = case.running, case.accept_length, case.running.num_steps or 0
    if length is None or not running.stepwise or running.tree or now < 1 or not NOTHING_ACCEPTED < length <= now + 1:
        return None
    each, cycle_ms = _acceptance(length, now), None if case.load is None else case.load.cycle_ms
    if case.verify_ms is not None and cycle_ms is not None and cycle_ms > case.verify_ms:
        step_ms = (cycle_ms - case.verify_ms) / now
        return Steps(now, _fastest(each, now, case.verify_ms, step_ms), each, step_ms)
    if each**now < IDLE_TAIL:
        useful = [steps for steps in range(1, now + 1) if each**steps >= IDLE_TAIL]
        return Steps(now, max(useful, default=1), each, None)
    return Steps(now, now + (each ** (now + 1) >= BUSY_TAIL), each, None)


def too_many_steps(case: Case) -> Iterator[Cause]:
    """Draft positions at the end of a chain that accept next to nothing, or less than their time costs."""
    steps = steps_of(case)
    if steps is None or steps.better >= steps.now:
        return
    takes = "" if steps.step_ms is None else f", for {steps.step_ms:.1f} ms of drafting and host time at most"
    evidence = (
        f"{steps.now} step{'' if steps.now == 1 else 's'} for an accept length of {case.accept_length:.2f}: if every "
        f"position accepts alike, step {steps.now} is accepted in {steps.each**steps.now:.1%} of the cycles{takes}, "
        f"and {steps.better} of them give {constant_acceptance_length(steps.each, steps.better):.2f}"
    )
    yield Cause("too_many_steps", None, evidence, (steps.action,))


def _fastest(each: float, now: int, verify_ms: float, step_ms: float) -> int:
    """Return the steps of the fastest chain."""

    def speed(steps: int) -> float:
        return constant_acceptance_length(each, steps) / (verify_ms + steps * step_ms)

    return max(range(1, now + 2), key=speed)


def _acceptance(length: float, steps: int) -> float:
    """Acceptance a of each position of a chain with this accept length, by bisection; exact to 1e-9."""
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if constant_acceptance_length(middle, steps) < length else (low, middle)
    return high
