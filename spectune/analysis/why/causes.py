"""What a candidate's speed is lost to, and what helps: the parts of its cycle beside what a diagnosis finds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spectune.analysis.break_even import decode_speed
from spectune.analysis.diagnosis import Action, Cause, Cost, Running, diagnose
from spectune.analysis.diagnosis.acceptance import training_cost
from spectune.analysis.why.result import BreakEvenRow, LostSpeed

WORTH_SAYING = 0.01
"""Losses below this share of the speed are no cause of anything."""

_FEWER_STEPS = Action("launch with fewer --speculative-num-steps", Cost.FLAG)
_SMALLER_DRAFTER = Action("try a drafter whose step takes less: a smaller one, or a smaller vocabulary", Cost.DRAFTER)
_FEWER_TOKENS = Action("launch with fewer --speculative-num-draft-tokens", Cost.FLAG)
_OVERLAP = Action("launch with the overlap schedule on, and look at what the host does in a profile", Cost.FLAG)
_BETTER_DRAFTER = Action("try a drafter that is right more often on this traffic", Cost.DRAFTER)


def lost_speed(
    row: BreakEvenRow,
    running: Running,
    concurrency: int | None,
    *,
    others: Sequence[Cause],
    foreseen: bool,
    study: str,
) -> tuple[LostSpeed, ...]:
    """Rank what a candidate loses at a level: most tok/s first, then what cannot be put in figures.

    What a part costs is what one request would gain if that part alone took no time, all else as measured; gains of
    several parts therefore do not add up.

    Args:
        row: All requests of the candidate at the level.
        running: What is known of it as a server.
        concurrency: Requests in flight; None in an open loop.
        others: Other launches that are faster, or expected to be: what else to launch is told by these alone.
        foreseen: Whether other settings of the drafter were foreseen at all: then none is advised by rule of thumb.
        study: Its name, for commands.
    """
    known = diagnose(
        running, baseline_tok_s=round(row.baseline_tok_s, 2), concurrency=concurrency,
        shown_slower=row.verdict == "loses", foreseen=foreseen, study=study,
    ).causes  # fmt: skip
    causes = [*_open(row, study), *known, *others, *_of_parts(row, foreseen=foreseen), *_rejected(row, known, study)]
    causes.sort(key=lambda cause: -1.0 if cause.lost_tok_s is None else cause.lost_tok_s, reverse=True)
    return tuple(_lost(row, cause) for cause in causes)


def next_actions(causes: Sequence[LostSpeed]) -> tuple[tuple[str, Cost], ...]:
    """What to do next, cheapest first; of the same cost, what the largest loss asks for."""
    wanted = {words: cost for cause in causes for words, cost in cause.actions}
    return tuple(sorted(wanted.items(), key=lambda action: action[1].rank))


def _of_parts(row: BreakEvenRow, *, foreseen: bool) -> Iterator[Cause]:
    plain, parts = 1000.0 / row.baseline_tok_s, row.parts
    if parts is not None and parts.draft_ms is not None:
        actions = (_SMALLER_DRAFTER,) if foreseen else (_FEWER_STEPS, _SMALLER_DRAFTER)
        yield from _without(row, "draft_time", parts.draft_ms.est, "the draft steps take", *actions)
    if parts is not None and parts.verify_ms is not None:
        more = parts.verify_ms.est - plain
        what = f"beyond a plain step of {plain:.1f} ms the verify takes"
        yield from _without(row, "verify_time", more, what, *([] if foreseen else [_FEWER_TOKENS]))
    if parts is not None and parts.host_ms is not None:
        yield from _without(row, "host_time", parts.host_ms.est, "host and what every cycle needs take", _OVERLAP)


def _rejected(row: BreakEvenRow, known: Sequence[Cause], study: str) -> Iterator[Cause]:
    """What drafts that are rejected cost; for a weak drafter with the advice that was given for it already."""
    length, cycle = row.accept_length.est, row.cycle_ms.est
    if row.bound is None or row.bound <= length:
        return
    weak = next((cause for cause in known if cause.name == "weak_drafter"), None)
    actions = (
        (_BETTER_DRAFTER, Action(f"train the drafter further; {training_cost(study)}", Cost.TRAINING))
        if weak is None
        else tuple(action for action in weak.actions if action.cost in (Cost.DRAFTER, Cost.TRAINING))
    )
    gain = decode_speed(row.bound, cycle) - decode_speed(length, cycle)
    evidence = f"{length:.2f} of {row.bound} possible tokens are accepted per verify"
    yield Cause("rejected_drafts", gain, evidence, actions, at_most=True)


def _open(row: BreakEvenRow, study: str) -> Iterator[Cause]:
    """Whether it pays is not known: then nothing is advised that would follow from that it does not."""
    if row.verdict == "unclear":
        evidence = (
            f"accept length {row.accept_length.words} and break-even {row.break_even.words} are not told apart, so "
            "whether this pays is not known"
        )
        again = Action(
            "launch it and the best without again, in turns, while the machine does nothing else: "
            f"`spectune export {study} --pick {row.trial}`, then `spectune check` with the file it writes",
            Cost.MEASUREMENT,
        )
        yield Cause("too_few_launches", None, evidence, (again,))


def _without(row: BreakEvenRow, name: str, part_ms: float, what: str, *actions: Action) -> Iterator[Cause]:
    length, cycle = row.accept_length.est, row.cycle_ms.est
    if part_ms <= 0.0 or part_ms >= cycle:
        return
    speed, without = decode_speed(length, cycle), decode_speed(length, cycle - part_ms)
    if without - speed < WORTH_SAYING * speed:
        return
    evidence = f"{what} {part_ms:.1f} ms of a cycle of {cycle:.1f} ms; without it {without:.1f} tok/s"
    yield Cause(name, without - speed, evidence, actions, at_most=True)


def _lost(row: BreakEvenRow, cause: Cause) -> LostSpeed:
    actions = sorted(cause.actions, key=lambda action: action.cost.rank)
    first = actions[0] if actions else None
    return LostSpeed(
        candidate_id=row.candidate_id, level=row.level, cause=cause.name, tok_s_lost=cause.lost_tok_s,
        at_most=cause.at_most, evidence=cause.evidence, action=None if first is None else first.words,
        cost=None if first is None else first.cost, actions=tuple((one.words, one.cost) for one in actions),
    )  # fmt: skip
