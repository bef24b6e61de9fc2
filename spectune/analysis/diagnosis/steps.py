"""How many draft steps a chain should make: asked in one place, so that no two causes advise opposite things."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spectune.analysis.acceptance import NOTHING_ACCEPTED, constant_acceptance_length
from spectune.analysis.break_even import cycle_ms_of
from spectune.analysis.diagnosis.case import Action, Case, Cause, Cost
from spectune.analysis.diagnosis.running import Load

IDLE_TAIL = 0.1
"""A draft position that accepts more rarely than this is not worth its step."""
BUSY_TAIL = 0.5
"""One behind the last that would accept at least so often is worth a try."""


@dataclass(frozen=True, slots=True)
class Steps:
    """What the measured figures say of the number of steps.

    Attributes:
        now: Steps of the launch.
        better: Steps they speak for; as many as now where they speak for no others.
        survival: P(at least i drafted tokens accepted), i from 1 to one step more than now.
        counted: Whether it was counted by position; otherwise every position is taken to accept alike.
    """

    now: int
    better: int
    survival: tuple[float, ...]
    counted: bool

    def action(self, case: Case) -> Action:
        """The launch to try, and where speculation is slower than the baseline, what would make this one faster."""
        words = f"launch with --speculative-num-steps {self.better} --speculative-num-draft-tokens {self.better + 1}"
        load, baseline = case.load, case.baseline_tok_s
        if case.behind is not None and baseline is not None and load is not None and load.cycle_ms is not None:
            below_ms = cycle_ms_of(self.would_give, baseline)
            words += (
                f" instead; that is faster than the baseline if a cycle then takes less than {below_ms:.1f} ms "
                f"({load.cycle_ms:.1f} ms now)"
            )
        return Action(words, Cost.FLAG)

    @property
    def would_give(self) -> float:
        """Accept length of that launch."""
        return 1.0 + sum(self.survival[: self.better])

    @property
    def assumed(self) -> str:
        """What the figures assume, as the beginning of a sentence; empty where nothing."""
        return "" if self.counted else "if every position accepts alike, "


def steps_of(case: Case) -> Steps | None:
    """Return how many steps the figures speak for; None where they say nothing, or the launch drafts no chain.

    A last position that hardly ever accepts is one too many, whatever it costs. One more pays if it gives a larger
    share of the tokens than it takes of the cycle: where a verify's time is known, all the rest is taken to be the
    steps', so that drafting is never thought too cheap; elsewhere it has to be accepted often. Where memory is short,
    fewer draft tokens are the way out, and none are added.
    """
    running, length, now = case.running, case.accept_length, case.running.num_steps or 0
    if length is None or not running.stepwise or running.tree or now < 1 or not NOTHING_ACCEPTED < length <= now + 1:
        return None
    if case.foreseen:
        return None
    survival, counted = _survival(case.load, length, now)

    def found(better: int) -> Steps:
        return Steps(now, better, survival, counted)

    if survival[now - 1] < IDLE_TAIL:
        return found(max((steps for steps in range(1, now) if survival[steps - 1] >= IDLE_TAIL), default=1))
    if running.short_of_memory:
        return found(now)
    gain, cycle_ms = survival[now], None if case.load is None else case.load.cycle_ms
    if case.verify_ms is None or cycle_ms is None:
        return found(now + (gain >= BUSY_TAIL))
    step_ms = max(0.0, cycle_ms - case.verify_ms) / now
    return found(now + (gain / length > step_ms / cycle_ms))


def too_many_steps(case: Case) -> Iterator[Cause]:
    """Draft positions at the end of a chain that accept next to nothing."""
    steps = steps_of(case)
    if steps is None or steps.better >= steps.now:
        return
    evidence = (
        f"{steps.now} steps for an accept length of {case.accept_length:.2f}: {steps.assumed}step {steps.now} is "
        f"accepted in {steps.survival[steps.now - 1]:.1%} of the cycles, and {steps.better} of them give "
        f"{steps.would_give:.2f}"
    )
    yield Cause("too_many_steps", None, evidence, (steps.action(case),))


def _survival(load: Load | None, length: float, now: int) -> tuple[tuple[float, ...], bool]:
    """Return P(at least i accepted) to one step more than now, and whether it was counted by position."""
    if load is not None and len(load.survival) == now:
        *_, before, last = (1.0, *load.survival)
        return (*load.survival, last * last / before if before else 0.0), True
    each = _acceptance(length, now)
    return tuple(each**position for position in range(1, now + 2)), False


def _acceptance(length: float, steps: int) -> float:
    """Acceptance a of each position of a chain with this accept length, by bisection; exact to 1e-9."""
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if constant_acceptance_length(middle, steps) < length else (low, middle)
    return high
