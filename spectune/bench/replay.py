"""A level that has already been served, judged as the live client judges one that is being served."""

from __future__ import annotations

from collections.abc import Sequence

from spectune.bench.course import FIRST_CHUNKS, Course, GiveUp
from spectune.bench.level import LevelPlan, LevelRun, StopReason
from spectune.bench.meter import chunks_of
from spectune.bench.records import RequestRecord


def replay(
    plan: LevelPlan, records: Sequence[RequestRecord], full_until_s: float, give_up: GiveUp | None = None
) -> LevelRun | None:
    """Measure a closed loop after the fact; None when it is over before its figures are known.

    Requests that the live client would not have sent any more are left out. It ends by precision, by time or as
    dominated. It is looked at once a window, not ten times a second: virtual studies are made of thousands.

    Args:
        plan: How to measure.
        records: In the order they were sent.
        full_until_s: Until when every slot was taken.
        give_up: See `run_level`.
    """
    course = arrived(plan, records, give_up)
    ends = sorted(records, key=lambda record: record.end_s)
    through_s = max(_through_s(record) for record in records[: plan.arrivals.most_in_flight])
    tick_s = plan.window_s
    ticks = int(full_until_s / tick_s)
    limit = int(plan.warmup_limit_s / tick_s)
    warm = next(
        (tick for tick in range(min(ticks, limit)) if tick * tick_s >= through_s and course.steady(tick * tick_s)),
        limit,
    )
    course.begin(warm * tick_s)
    ended = 0
    for tick in range(warm + 1, ticks):
        now_s = tick * tick_s
        while ended < len(ends) and ends[ended].end_s <= now_s:
            ended += 1
        reason: StopReason | None = course.known(now_s, ends[:ended])
        if reason is not None:
            sent = tuple(record for record in ends if record.sent_s < now_s)
            return LevelRun(sent, (course.began_s, now_s), reason, warm < limit, 0.0, sent[-1].end_s)
    return None


def arrived(plan: LevelPlan, records: Sequence[RequestRecord], give_up: GiveUp | None = None) -> Course:
    """The course of a level of which everything has arrived."""
    course = Course(plan, give_up)
    course.meter.add_all(*chunks_of(records))
    return course


def _through_s(record: RequestRecord) -> float:
    """When a request has been through what is slow the first time, see `been_through`."""
    chunks = record.chunks
    return record.end_s if len(chunks) < FIRST_CHUNKS else chunks[FIRST_CHUNKS - 1][0]
