"""What a candidate's speed is lost to, and what helps: the parts of its cycle beside what a diagnosis finds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spectune.analysis.break_even import decode_speed
from spectune.analysis.diagnosis import Action, Cause, Cost, Running, diagnose
from spectune.analysis.why.result import BreakEvenRow, LostSpeed

WORTH_SAYING = 0.01
"""Losses below this share of the speed are no cause of anything."""

_FEWER_STEPS = Action("launch with fewer --speculative-num-steps", Cost.FLAG)
_SMALLER_DRAFTER = Action("try a drafter whose step takes less: a smaller one, or a smaller vocabulary", Cost.DRAFTER)
_FEWER_TOKENS = Action("launch with fewer --speculative-num-draft-tokens", Cost.FLAG)
_OVERLAP = Action("launch with the overlap schedule on, and look at what the host does in a profile", Cost.FLAG)
_BETTER_DRAFTER = Action("try a drafter that is right more often on this traffic", Cost.DRAFTER)
_TRAIN = Action("train the drafter further; `spectune breakeven --drafter-points` says what that costs", Cost.TRAINING)


def lost_speed(
    row: BreakEvenRow, running: Running, concurrency: int | None, *, better: Cause | None, foreseen: bool
) -> tuple[LostSpeed, ...]:
    """Rank what a candidate loses at a level: most tok/s first, then what cannot be put in figures.

    What a part costs is what one request would gain if that part alone took no time, all else as measured; gains of
    several parts therefore do not add up.

    Args:
        row: All requests of the candidate at the level.
        running: What is known of it as a server.
        concurrency: Requests in flight; None in an open loop.
        better: Another setting of the same drafter that is expected to be faster.
        foreseen: Whether other settings were foreseen at all: then `better` says which to take, and none is advised
            where it is None.
    """
    known = diagnose(running, baseline_tok_s=round(row.baseline_tok_s, 2), concurrency=concurrency).causes
    causes = [*known, *([] if better is None else [better]), *_of_parts(row, foreseen=foreseen)]
    causes.sort(key=lambda cause: -1.0 if cause.lost_tok_s is None else cause.lost_tok_s, reverse=True)
    return tuple(_lost(row, cause) for cause in causes)


def next_actions(causes: Sequence[LostSpeed]) -> tuple[tuple[str, Cost], ...]:
    """What to do next, cheapest first; of the same cost, what the largest loss asks for."""
    wanted = {words: cost for cause in causes for words, cost in cause.actions}
    return tuple(sorted(wanted.items(), key=lambda action: action[1].rank))


def _of_parts(row: BreakEvenRow, *, foreseen: bool) -> Iterator[Cause]:
    length, cycle, plain = row.accept_length.est, row.cycle_ms.est, 1000.0 / row.baseline_tok_s
    parts = row.parts
    if parts is not None and parts.draft_ms is not None:
        actions = (_SMALLER_DRAFTER,) if foreseen else (_FEWER_STEPS, _SMALLER_DRAFTER)
        yield from _without(row, "draft_time", parts.draft_ms.est, "the draft steps take", *actions)
    if parts is not None and parts.verify_ms is not None:
        more = parts.verify_ms.est - plain
        what = f"beyond a plain step of {plain:.1f} ms the verify takes"
        yield from _without(row, "verify_time", more, what, *([] if foreseen else [_FEWER_TOKENS]))
    if parts is not None and parts.host_ms is not None:
        yield from _without(row, "host_time", parts.host_ms.est, "host and what every cycle needs take", _OVERLAP)
    if row.bound is not None and row.bound > length:
        gain = decode_speed(row.bound, cycle) - decode_speed(length, cycle)
        evidence = f"{length:.2f} of {row.bound} possible tokens are accepted per verify"
        yield Cause("rejected_drafts", gain, evidence, (_BETTER_DRAFTER, _TRAIN), at_most=True)


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
