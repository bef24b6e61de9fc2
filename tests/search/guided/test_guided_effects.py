"""Effects of parameters: intervals that hold the truth, and words for what is not known."""

from __future__ import annotations

import math
from dataclasses import replace

import guided_world
import pytest
from guided_world import TEXT, cycle_ms, engine, launch, search, space, survival

from spectune.analysis.estimate import Estimate
from spectune.cli.effects_table import effect_lines
from spectune.search.evidence.ranking import incumbent
from spectune.search.guided.effects import Basis, Effect, effects
from spectune.search.guided.evidence import evidence_of
from spectune.search.guided.neighbours import questions
from spectune.search.proposing.proposals import Proposer
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Role
from spectune.space import Candidate, SearchSpace

SPACE = space()


def best_of(records: list[TrialRecord]) -> Candidate:
    found = incumbent(records, SPACE, lambda *_: None)
    assert found is not None
    return found


def known(records: list[TrialRecord], at: SearchSpace, best: Candidate | None) -> list[Effect]:
    return effects(records, at, best, engine(at))


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
        found = [e for e in known(records, SPACE, best_of(records)) if e.parameter == "env.NCCL_PROTO"]
        assert [(e.objective, e.level) for e in found] == [("decode_speed", "c1"), ("output_throughput", "c8")]
        for effect in found:
            truth = nccl_truth(int(effect.level[1:])) * (1.0 if effect.value == "unset" else -1.0)
            assert effect.change.lo <= truth <= effect.change.hi
        widths.append(found[0].change.hi - found[0].change.lo)
    assert widths[1] < widths[0]


def test_what_was_never_varied_is_unknown_however_many_launches() -> None:
    records = [r for r in search(SPACE, 24) if r.candidate.values["env.NCCL_PROTO"] == "unset"]
    found = known(records, SPACE, best_of(records))
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
    (found,) = [e for e in known(records, at, best) if e.parameter == "cuda-graph-bs-decode"]
    assert found.says.startswith("makes no difference (within ±")
    assert -0.02 <= found.change.lo <= 0.0 <= found.change.hi <= 0.02


def test_draft_parameters_are_told_of_the_best_speculation_where_none_is_recommended() -> None:
    records = list(search(SPACE, 10))
    plain = next(record.candidate for record in records if not record.candidate.speculative)
    found = known(records, SPACE, plain)
    steps = {effect.value for effect in found if effect.parameter == "speculative-num-steps"}
    assert len(steps) == 5
    assert all(effect.parameter != "speculative-algorithm" for effect in found)  # that is the verdict's


CHAIN = {
    "speculative-algorithm": "EAGLE3", "speculative-draft-model-path": "org/strong", "speculative-num-steps": 4,
    "speculative-eagle-topk": 1, "speculative-num-draft-tokens": 5, "cuda-graph-bs-decode": [1, 2, 4, 8, 16],
    "env.NCCL_PROTO": "unset",
}  # fmt: skip


def launched(*changes: dict[str, object], at: SearchSpace = SPACE) -> list[TrialRecord]:
    """A chain, what differs from it, and a baseline."""
    plain = Proposer(at, engine(at)).baseline()
    chains = [Candidate.of({**CHAIN, **one}) for one in ({}, *changes)]
    return [launch(trial, one) for trial, one in enumerate([plain, *chains])]


def test_the_steps_of_a_chain_take_its_draft_tokens_along() -> None:
    records = launched({"speculative-num-steps": 2, "speculative-num-draft-tokens": 3}, {"env.NCCL_PROTO": "LL"})
    found = known(records, SPACE, Candidate.of(CHAIN))
    steps = {effect.value: effect for effect in found if effect.parameter == "speculative-num-steps"}
    assert set(steps) == {1, 2, 3, 5, 6}
    assert steps[6].together == {"speculative-num-draft-tokens": (7, 5)}
    assert steps[6].instead == "6 instead of 4 (with speculative-num-draft-tokens 7 instead of 5)"
    assert "speculative-num-draft-tokens" not in {effect.parameter for effect in found}  # a chain has no choice


def test_what_launches_differ_in_is_told_from_what_is_predicted() -> None:
    records = launched({"speculative-num-steps": 2, "speculative-num-draft-tokens": 3}, {"env.NCCL_PROTO": "LL"})
    found = known(records, SPACE, Candidate.of(CHAIN))
    basis = {(effect.parameter, effect.value): effect.basis for effect in found}
    assert basis["speculative-num-steps", 2] == basis["env.NCCL_PROTO", "LL"] == "launches"
    assert basis["speculative-num-steps", 3] == "prediction"
    assert basis["speculative-eagle-topk", 2] == "nothing"
    assert all(effect.says.endswith(", predicted") is (effect.basis == "prediction") for effect in found)


def test_options_that_another_value_brings_along_are_named() -> None:
    """Which backend verifies is asked only where two of them differ."""
    varied = """\
  prefill-attention-backend: [triton, flashinfer]
  decode-attention-backend: [triton]
  speculative-attention-mode: [prefill, decode]
  env.NCCL_PROTO"""
    at = space(TEXT.replace("  env.NCCL_PROTO", varied))
    both = {"prefill-attention-backend": "triton", "decode-attention-backend": "triton"}
    records = launched(both, {**both, "env.NCCL_PROTO": "LL"}, {**both, "speculative-num-steps": 2}, at=at)
    best = engine(at).canonical({**CHAIN, **both, "cuda-graph-bs-decode": (1, 2, 4, 8, 16)})
    assert isinstance(best, Candidate)
    (found,) = {e.instead for e in known(records, at, best) if e.parameter == "prefill-attention-backend"}
    assert found == "flashinfer instead of triton (with speculative-attention-mode prefill)"


@pytest.mark.parametrize("seed", range(3))
def test_only_legal_candidates_of_the_space_are_compared(seed: int) -> None:
    at = space(TEXT.replace("{from: 2, to: 16}", "[4, 8, 16]").replace("workload:", FORBIDDEN))
    records = list(search(at, 12, seed))
    legal = set(Proposer(at, engine(at)).all())
    best = list(dict.fromkeys(record.candidate for record in records))
    for question in questions(best, at, engine(at)):
        for one, other in question.pairs:
            assert {one, other} <= legal
            differing = {n for n in {*one.values, *other.values} if one.values.get(n) != other.values.get(n)}
            assert differing == {question.parameter.name, *question.together}


FORBIDDEN = """forbid: [{speculative-eagle-topk: ">1", speculative-num-steps: ">4"}]
workload:"""


def test_with_too_few_launches_nothing_is_said() -> None:
    records = list(search(SPACE, 2))
    assert known(records, SPACE, best_of(records)) == []
    assert known([], SPACE, None) == []


def test_the_form_in_the_summary() -> None:
    records = list(search(SPACE, 8))
    rows = [effect.to_json() for effect in known(records, SPACE, best_of(records))]
    for row in rows:
        assert list(row) == [
            "parameter", "speculates", "value", "against", "together", "instead", "objective", "level", "effect",
            "basis", "says",
        ]  # fmt: skip
        low, high = row["effect"][1:]
        assert low <= row["effect"][0] <= high
        assert all(map(math.isfinite, row["effect"]))


def test_the_terminal_shows_the_strongest_of_each_parameter() -> None:
    def row(
        parameter: str,
        value: int,
        change: tuple[float, float, float],
        basis: Basis,
        says: str,
        *,
        speculates: bool = True,
    ) -> Effect:
        return Effect(
            parameter, speculates, value, 5, {}, "decode_speed", "c1", Estimate(*change), basis, says
        )  # fmt: skip

    rows = [
        row("steps", 4, (-0.02, -0.03, -0.01), "launches", "-2.0% (-3.0% to -1.0%)"),
        row("steps", 1, (-0.3, -0.4, -0.2), "prediction", "-30.0% (-40.0% to -20.0%), predicted"),
        row("topk", 2, (0.0, -0.05, 0.05), "launches", "not decided (-5.0% to +5.0%)"),
        row("sizes", 2, (0.001, -0.01, 0.012), "launches", "makes no difference (within ±1.2%)"),
        row("page", 2, (0.001, -0.01, 0.002), "prediction", "makes no difference (within ±1.0%), predicted"),
        row("proto", 1, (0.0, -0.25, 0.34), "nothing", "unknown: never varied"),
    ]
    lead, *told = effect_lines(rows)
    assert lead.startswith("what another value does to the best candidates with speculation, by the models")
    assert told == [
        "  steps 1 instead of 5: decode_speed@c1 -30.0% (-40.0% to -20.0%), predicted",
        "  makes no difference: sizes (within ±1.2%), page (within ±1.0%, predicted)",
        "  not decided: topk",
        "  unknown, never varied: proto",
    ]
    plain = row("graphs", 2, (-0.5, -0.6, -0.4), "launches", "-50.0% (-60.0% to -40.0%)", speculates=False)
    ways = [line.split(",")[0] for line in effect_lines([*rows[2:3], plain])]
    assert ways == [
        "what another value does to the best candidates with speculation",
        "  not decided: topk",
        "what another value does to the best candidates without speculation",
        "  graphs 2 instead of 5: decode_speed@c1 -50.0% (-60.0% to -40.0%)",
    ]
    assert list(effect_lines([])) == []


def test_other_samplers_records_tell_effects_too() -> None:
    at = Proposer(SPACE, engine(SPACE), sampler="random")
    records = [launch(0, at.baseline())]
    for trial in range(1, 12):
        proposal = at.propose(records)
        assert proposal is not None
        records.append(launch(trial, proposal.candidate))
    assert isinstance(known(records, SPACE, best_of(records))[0], Effect)


@pytest.mark.parametrize("seed", range(4))
def test_launches_that_scatter_decide_little_that_is_not_so(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a busy machine: launches of one candidate differ by 40 %, and the cycles by which the models go do too."""
    monkeypatch.setattr(guided_world, "NOISE", 0.4)
    records = list(search(SPACE, 6, seed))
    best = best_of(records)
    for trial in range(6, 10):
        again = launch(trial, records[0].candidate if trial % 2 else best, seed)
        records.append(replace(again, role=Role.CONFIRM))
    measured = [item for item in evidence_of(records, SPACE) if item.targets is not None]
    ranked = sorted(measured, key=lambda item: -sum(item.targets or ()))
    asked = questions([best, *(item.candidate for item in ranked)], SPACE, engine(SPACE))
    pairs = {(one.parameter.name, one.value): one.pairs for one in asked}
    for effect in known(records, SPACE, best):
        if effect.basis != "nothing":
            compared = pairs[effect.parameter, effect.value]
            logs = [
                math.log(speed(one, int(effect.level[1:])) / speed(other, int(effect.level[1:])))
                for one, other in compared
            ]
            assert effect.change.lo <= math.expm1(sum(logs) / len(logs)) <= effect.change.hi
