"""Judges a running server: what it does, whether speculation pays, what it loses, what to do next."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from spectune.analysis.acceptance import NOTHING_ACCEPTED
from spectune.analysis.break_even import BreakEven, break_even
from spectune.analysis.break_even_input import check_inputs
from spectune.analysis.diagnosis import acceptance, graphs, serving, steps
from spectune.analysis.diagnosis.case import STUDY, Action, Case, Cause
from spectune.analysis.diagnosis.running import Load, Running
from spectune.counts import count

CHECKS: tuple[Callable[[Case], Iterator[Cause]], ...] = (
    acceptance.nothing_accepted,
    graphs.eager,
    acceptance.below_break_even,
    steps.too_many_steps,
    acceptance.tree_too_large,
    serving.unexplained_time,
    serving.died,
    serving.memory_full,
    serving.fewer_than_asked,
    serving.queueing,
    serving.warm_cache,
    serving.only_the_first_interval,
)
"""In the order of weight where nothing tells what a cause costs."""


NEAR = 0.25
"""A load within this share of the one a baseline was measured at is compared with it."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is to be said about a server.

    Attributes:
        load: The load it was judged at; None when nothing usable was seen.
        break_even: The arithmetic against the baseline; None without baseline or speculation.
        words: Whether speculation pays, or what is missing to say it; sentences in reading order.
        causes: What ended it, then what it loses by what: most tokens per second first, then what cannot be put in
            figures.
        actions: What to do next, cheapest first.
        notes: How to read the figures.
    """

    load: Load | None
    break_even: BreakEven | None
    words: tuple[str, ...]
    causes: tuple[Cause, ...]
    actions: tuple[Action, ...]
    notes: tuple[str, ...]

    @property
    def measured(self) -> bool:
        """Whether a speed is known; without one, no cause found does not mean that all is well."""
        return self.load is not None and self.load.decode_speed is not None

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON values, and whether anything was measured."""
        return {**asdict(self), "measured": self.measured}


def diagnose(
    running: Running,
    *,
    baseline_tok_s: float | None = None,
    concurrency: int | None = None,
    verify_ms: float | None = None,
    shown_slower: bool | None = None,
    foreseen: bool = False,
    study: str = STUDY,
) -> Diagnosis:
    """Judge a server by what is known of it.

    Args:
        running: What is known.
        baseline_tok_s: Best speed of one request without speculation, tok/s, measured at `concurrency` requests.
        concurrency: Running requests to judge at; with a baseline 1 unless said, else the load seen most.
        verify_ms: Time of one verify from elsewhere; checked against the cycle.
        shown_slower: As in `Case`, for a launch of a study.
        foreseen: Likewise.
        study: Likewise.

    Raises:
        InputProblems: For figures no engine can have measured.
    """
    check_inputs(baseline_tok_s=baseline_tok_s, cycle_ms=verify_ms)
    wanted = 1 if concurrency is None and baseline_tok_s is not None else concurrency
    case = Case(running, running.load_at(wanted), baseline_tok_s, verify_ms, shown_slower, foreseen, study)
    elsewhere = _baseline_of_another_load(case, wanted)
    if elsewhere is not None:
        case = replace(case, baseline_tok_s=None)
    causes = sorted(
        (cause for check in CHECKS for cause in check(case)),
        key=lambda cause: (cause.fatal, -1.0 if cause.lost_tok_s is None else cause.lost_tok_s),
        reverse=True,
    )
    actions = {action.words: action for cause in causes for action in cause.actions}
    arithmetic = _arithmetic(case)
    return Diagnosis(
        load=case.load,
        break_even=arithmetic,
        words=(
            *([] if elsewhere is None else [elsewhere]),
            *(_without_arithmetic(case) if arithmetic is None else arithmetic.words),
        ),
        causes=tuple(causes),
        actions=tuple(sorted(actions.values(), key=lambda action: action.cost.rank)),
        notes=tuple(_notes(case, wanted, assumed=concurrency is None)),
    )


def _arithmetic(case: Case) -> BreakEven | None:
    length, load = case.accept_length, case.load
    if case.baseline_tok_s is None or length is None or load is None or load.cycle_ms is None:
        return None
    bound = case.running.bound
    return break_even(
        baseline_tok_s=case.baseline_tok_s,
        cycle_ms=load.cycle_ms,
        accept_length=max(1.0, length),
        num_steps=bound - 1 if bound is not None and 1.0 <= length <= bound and bound > 1 else None,
    )


def _baseline_of_another_load(case: Case, wanted: int | None) -> str | None:
    """Say that the baseline is not one of the load judged at, where it is not: no verdict follows from it then."""
    seen = None if case.load is None or not case.speed else case.load.running
    if case.baseline_tok_s is None or wanted is None or seen is None or abs(seen - wanted) <= NEAR * wanted:
        return None
    return (
        f"the baseline of {case.baseline_tok_s:g} tok/s is that of {count(wanted, 'running request')}, and nothing "
        f"like it was seen: it says nothing of {count(seen, 'running request')}; give one measured at {seen}, and "
        f"--concurrency {seen}"
    )


def _without_arithmetic(case: Case) -> Iterator[str]:
    """Say what is missing, and what would follow from it."""
    load, speed, length = case.load, case.speed, case.accept_length
    if length is not None and length <= NOTHING_ACCEPTED:
        yield (
            f"speculation cannot pay at an accept length of {length:.2f}: a cycle gives hardly more than the one token "
            "of a plain step, and takes the time of the drafts as well"
        )
    elif load is None or speed is None or load.cycle_ms is None:
        yield (
            "no decode speed is known, so whether speculation pays cannot be said: read a log with decode lines, or "
            "measure a running server with --url and --probe"
        )
    elif case.running.algorithm is None:
        yield f"no speculation; one request decodes at {speed:.1f} tok/s, a step takes {load.cycle_ms:.2f} ms"
        if case.baseline_tok_s is not None:
            change = speed / case.baseline_tok_s - 1.0
            yield f"that is {change:+z.0%} against the baseline of {case.baseline_tok_s:g} tok/s"
    elif length is None:
        yield "this server speculates, but it does not say its accept length"
    else:
        at = "" if load.running is None else f" at {count(load.running, 'running request')}"
        yield (
            f"speculation pays if one request gets less than {speed:.1f} tok/s without it{at}; break-even is that "
            f"baseline × {load.cycle_ms:.2f} ms: every 10 tok/s of it ask for {load.cycle_ms / 100:.2f} accept length"
        )
        yield (
            "for the baseline, launch the same command without its --speculative-* arguments, run `spectune diagnose` "
            "on that server, and give its decode speed with --baseline"
        )


def _notes(case: Case, wanted: int | None, *, assumed: bool) -> Iterator[str]:
    running, load = case.running, case.load
    if load is not None and wanted is not None and load.running not in (None, wanted):
        yield f"nothing was seen at {count(wanted, 'running request')}; judged at {load.running}"
    elif case.baseline_tok_s is not None and case.speed and assumed:
        yield (
            f"the baseline of {case.baseline_tok_s:g} tok/s is taken as that of one request; one measured with N "
            "requests at once wants --concurrency N"
        )
    if load is not None and load.running is None:
        yield "the accept length is the mean since the start or the last cache flush, over whatever loads there were"
    if load is not None and load.intervals == 1 and load.decode_speed is not None:
        yield "the speed is that of one interval of a few dozen steps, so it is rough; longer logs and --probe say more"
    elif load is not None and not load.pure and load.decode_speed is not None:
        yield "every interval at this load held prefills too, so decoding alone is faster than this"
    whole = None if load is None or load.decode_speed is None else load.decode_speed * (load.running or 1)
    if whole is not None and running.first_tok_s is not None and running.first_tok_s < whole / 2:
        yield f"the first interval ({running.first_tok_s:g} tok/s) counts the time since the start and is left out"
    if running.ranks_without_acceptance:
        silent = running.ranks_without_acceptance
        yield f"data-parallel ranks that report no accept length: {silent}; the mean is over the others"
