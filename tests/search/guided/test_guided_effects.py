"""Effects of parameters: intervals that hold the truth, and words for what is not known."""

from __future__ import annotations

import math

import pytest
from guided_world import TEXT, cycle_ms, engine, launch, search, space, survival

from spectune.cli.effects_table import effect_lines
from spectune.search.guided.effects import Effect, effects
from spectune.search.proposals import Proposer
from spectune.search.ranking import incumbent
from spectune.search.records import TrialRecord
from spectune.space import Candidate

SPACE = space()


def best_of(records: list[TrialRecord]) -> Candidate:
    found = incumbent(records, SPACE, lambda *_: None)
    assert found is not None
    return found


def speed(candidate: Candidate, concurrency: int) -> float:
    return (1.0 + sum(survival(candidate))) / cycle_ms(candidate, concurrency)


def nccl_truth(concurrency: int) -> float:
    """LL makes every cycle 4 % shorter, whatever else is chosen."""
    with_ll = Candidate.of({"cuda-graph-bs-decode": [1, 2, 4, 8, 16], "env.NCCL_PROTO": "LL"})
    without = Candidate.of({"cuda-graph-bs-decode": [1, 2, 4, 8, 16], "env.NCCL_PROTO": "unset"})
    return speed(without, concurrency) / speed(with_ll, concurrency) - 1.0


@pytest.mark.parametrize("seed", range(3))
def test_intervals_hold_the_truth_and_shrink_with_launches(seed: int) -> None:
    widths = []
    for launches in (6, 18):
        records = list(search(SPACE, launches, seed))
        found = [e for e in effects(records, SPACE, best_of(records)) if e.parameter == "env.NCCL_PROTO"]
        assert [(e.objective, e.level) for e in found] == [("decode_speed", "c1"), ("output_throughput", "c8")]
        for effect in found:
            truth = nccl_truth(int(effect.level[1:])) * (1.0 if effect.value == "unset" else -1.0)
            assert effect.change.lo <= truth <= effect.change.hi
        widths.append(found[0].change.hi - found[0].change.lo)
    assert widths[1] < widths[0]


def test_what_was_never_varied_is_unknown_however_many_launches() -> None:
    records = [r for r in search(SPACE, 24) if r.candidate.values["env.NCCL_PROTO"] == "unset"]
    found = effects(records, SPACE, best_of(records))
    nccl = [effect for effect in found if effect.parameter == "env.NCCL_PROTO"]
    assert {effect.says for effect in nccl} == {"unknown: never varied"}
    assert all(effect.change.hi - effect.change.lo > 0.5 for effect in nccl)


def test_a_parameter_without_effect_is_said_to_have_none() -> None:
    """The graphs of larger batches do not matter at concurrency 1."""
    at = space(TEXT.replace(", {maximize: output_throughput, level: c8}", "").replace(", {concurrency: 8}]", "]"))
    candidates = [record.candidate for record in search(SPACE, 10)]
    both = [
        Candidate.of({**candidate.values, "cuda-graph-bs-decode": sizes})
        for candidate in candidates
        for sizes in ([1, 2, 4], [1, 2, 4, 8, 16])
    ]
    records = [launch(n, candidate) for n, candidate in enumerate(both * 3)]
    best = incumbent(records, at, lambda *_: None)
    (found,) = [e for e in effects(records, at, best) if e.parameter == "cuda-graph-bs-decode"]
    assert found.says.startswith("makes no difference (within ±")
    assert -0.02 <= found.change.lo <= 0.0 <= found.change.hi <= 0.02


def test_draft_parameters_are_told_of_the_best_speculation_where_none_is_recommended() -> None:
    records = list(search(SPACE, 10))
    plain = next(record.candidate for record in records if not record.candidate.speculative)
    found = effects(records, SPACE, plain)
    steps = {effect.value for effect in found if effect.parameter == "speculative-num-steps"}
    assert len(steps) == 5
    assert all(effect.parameter != "speculative-algorithm" for effect in found)  # that is the verdict's


def test_with_too_few_launches_nothing_is_said() -> None:
    records = list(search(SPACE, 2))
    assert effects(records, SPACE, best_of(records)) == []
    assert effects([], SPACE, None) == []


def test_the_form_in_the_summary() -> None:
    records = list(search(SPACE, 8))
    rows = [effect.to_json() for effect in effects(records, SPACE, best_of(records))]
    for row in rows:
        assert list(row) == ["parameter", "value", "against", "objective", "level", "effect", "says"]
        low, high = row["effect"][1:]
        assert low <= row["effect"][0] <= high
        assert all(map(math.isfinite, row["effect"]))


def test_the_terminal_shows_the_strongest_of_each_parameter() -> None:
    def row(parameter: str, value: object, effect: list[float], says: str) -> dict[str, object]:
        return {
            "parameter": parameter, "value": value, "against": 5, "objective": "decode_speed", "level": "c1",
            "effect": effect, "says": says,
        }  # fmt: skip

    rows = [
        row("steps", 4, [-0.02, -0.03, -0.01], "-2.0% (-3.0% to -1.0%)"),
        row("steps", 1, [-0.3, -0.4, -0.2], "-30.0% (-40.0% to -20.0%)"),
        row("topk", 2, [0.0, -0.05, 0.05], "not decided (-5.0% to +5.0%)"),
        row("sizes", [1, 2], [0.001, -0.01, 0.012], "makes no difference (within ±1.2%)"),
        row("proto", "LL", [0.0, -0.25, 0.34], "unknown: never varied"),
    ]
    assert list(effect_lines(rows))[1:] == [
        "  steps 1 for 5: decode_speed@c1 -30.0% (-40.0% to -20.0%)",
        "  makes no difference: sizes (within ±1.2%)",
        "  not decided: topk",
        "  unknown, never varied: proto",
    ]
    assert list(effect_lines([])) == []


def test_other_samplers_records_tell_effects_too() -> None:
    at = Proposer(SPACE, engine(SPACE), sampler="random")
    records = [launch(0, at.baseline())]
    for trial in range(1, 12):
        proposal = at.propose(records)
        assert proposal is not None
        records.append(launch(trial, proposal.candidate))
    assert isinstance(effects(records, SPACE, best_of(records))[0], Effect)
