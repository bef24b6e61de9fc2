"""What an answer says of a server that drafts at some loads only, and of a recommendation that is not the fastest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from search_samples import SPACE, baseline, chain, record, space

from spectune.search import Role, TrialRecord, summarise

ONE_GOAL = SPACE.replace(", {minimize: ttft_p95_ms, level: c8}", "").replace("constraints:", "#")


def details(records: Sequence[TrialRecord], engine: str = "SGLang 0.5.23") -> Sequence[str]:
    return summarise(records, space(ONE_GOAL), None, name="mine", engine=engine).details


def slower_at_c8(one: TrialRecord) -> TrialRecord:
    c1, c8 = one.levels
    slow = replace(c8.decode_speed, est=30.0, lo=29.0, hi=31.0)
    return replace(one, levels=(c1, replace(c8, decode_speed=slow)))


def test_a_candidate_that_pays_at_one_load_only_is_offered_by_load() -> None:
    pays = record(1, chain(3), 160.0, accept=2.4)
    (told,) = [line for line in details([record(0, baseline()), slower_at_c8(pays)]) if "--format" in line]
    assert told == (
        "one server can draft at some loads only, which no launch has tried: 3 steps at c1, 0 steps at c8 by "
        "`spectune export mine --pick 1 --format adaptive` (SGLang 0.5.14 or later)"
    )
    assert not any("--format" in line for line in details([record(0, baseline()), pays])), "it pays at every load"
    older = details([record(0, baseline()), slower_at_c8(pays)], engine="SGLang 0.5.13")
    assert not any("--format" in line for line in older), "no table would be written"


def test_why_the_fastest_measured_is_not_recommended() -> None:
    speeds = ((baseline(), 100.0), (baseline("LL"), 100.2), (chain(3), 50.0))
    records = [
        record(3 * turn + at, one, speed, accept=2.0 if one.speculative else 1.0, role=role)
        for turn, role in enumerate((Role.SEARCH, Role.CONFIRM, Role.CONFIRM))
        for at, (one, speed) in enumerate(speeds)
    ]
    (told,) = [line for line in details(records) if line.startswith("recommended instead")]
    assert told == (
        "recommended instead of the fastest measured, no speculation · NCCL_PROTO=LL: it has fewer system flags, which "
        "are not shown to help"
    )
    alike = [one for one in records if one.candidate != baseline("LL")]
    assert not any(line.startswith("recommended instead") for line in details(alike)), "it is the fastest"
