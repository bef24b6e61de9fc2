from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.space import Budget, Candidate, SearchSpace, load_space, parse_space, shipped_spaces

TEXT = """\
schema: 1
name: example
engine: {runtime: cpu-reference, args: {model-path: "runtime:target"}}
search:
  speculative-algorithm: [EAGLE3, NGRAM]
  speculative-num-steps: {from: 1, to: 3}
  speculative-eagle-topk: [1, 2]
  page-size: 1
  cuda-graph-bs-decode: [[1, 2], [1, 2, 4]]
  env.NCCL_PROTO: [unset, LL]
forbid: [{speculative-eagle-topk: ">1", speculative-num-steps: ">2"}]
"""
SPACE = parse_space(TEXT, Path("example.yaml"))


def same(left: SearchSpace, right: SearchSpace) -> bool:
    raw = {"search", "forbid"}
    return (
        left.parameters == right.parameters
        and left.forbid == right.forbid
        and left.file.model_dump(exclude=raw) == right.file.model_dump(exclude=raw)
    )


def test_the_no_speculation_branch_is_always_there_and_has_no_speculative_names() -> None:
    assert SPACE.parameters["speculative-algorithm"].values == ("none", "EAGLE3", "NGRAM")
    baseline, speculation = SPACE.branches
    assert not baseline.speculative
    assert [parameter.name for parameter in baseline.parameters] == [
        "speculative-algorithm",
        "page-size",
        "cuda-graph-bs-decode",
        "env.NCCL_PROTO",
    ]
    assert speculation.speculative
    assert (baseline.size, speculation.size) == (4, 2 * 3 * 2 * 4)
    assert len({Candidate.of(raw) for raw in baseline.assignments()}) == 4
    assert len({Candidate.of(raw) for raw in speculation.assignments()}) == 48
    assert all(Candidate.of(raw).speculative for raw in speculation.assignments())


def test_assignments_are_lazy() -> None:
    wide = parse_space(TEXT.replace("to: 3}", "to: 90000}").replace("to: 3", "to: 3"), Path("x.yaml"))
    assert next(wide.branches[1].assignments())["speculative-num-steps"] == 1
    assert wide.branches[1].size == 2 * 90000 * 2 * 4


def test_a_space_without_speculation_has_one_branch() -> None:
    space = parse_space("schema: 1\nengine: {}\nsearch: {page-size: [1, 16]}\n", Path("x.yaml"))
    assert [branch.speculative for branch in space.branches] == [False]
    assert [objective.name for objective in space.objectives] == ["decode_speed@c1"]


def test_a_label_leaves_out_what_is_fixed() -> None:
    candidate = Candidate.of(next(SPACE.branches[0].assignments()))
    assert candidate.label == "no speculation · graphs 1-2 · page-size 1"
    assert SPACE.label(candidate) == "no speculation · graphs 1-2"


@pytest.mark.parametrize(
    ("drafters", "label", "only"),
    [
        ("org/a-very-long-name", "EAGLE3 3,1,4", "a-very-long-name"),
        ("[org/one, org/two]", "EAGLE3 one 3,1,4", None),
    ],
)
def test_a_drafter_that_all_have_is_not_named_in_labels(drafters: str, label: str, only: str | None) -> None:
    search = "speculative-algorithm: [none, EAGLE3], speculative-num-steps: 3, speculative-eagle-topk: 1"
    search += f", speculative-num-draft-tokens: 4, speculative-draft-model-path: {drafters}, page-size: [1, 16]"
    space = parse_space(f"schema: 1\nengine: {{}}\nsearch: {{{search}}}\n", Path("x.yaml"))
    candidate = Candidate.of(next(space.branches[1].assignments()))
    assert space.label(candidate) == f"{label} · page-size 1"
    assert (space.drafting(candidate), space.only_drafter) == (label, only)


@given(st.data())
def test_every_assignment_is_forbidden_exactly_as_written(data: st.DataObject) -> None:
    branch = data.draw(st.sampled_from(SPACE.branches))
    raw = {parameter.name: data.draw(st.sampled_from(list(parameter.values))) for parameter in branch.parameters}
    expected = branch.speculative and raw["speculative-eagle-topk"] > 1 and raw["speculative-num-steps"] > 2
    assert (SPACE.forbidden(Candidate.of(raw)) is not None) == expected


def test_the_resolved_file_loads_to_the_same_space() -> None:
    again = parse_space(SPACE.resolved_yaml(), Path("resolved.yaml"))
    assert same(again, SPACE)
    assert again.resolved_yaml() == SPACE.resolved_yaml()


def test_another_budget() -> None:
    assert SPACE.with_budget(Budget(trials=3)).budget.trials == 3
    assert SPACE.budget.trials == 40


def test_all_shipped_spaces_load() -> None:
    assert {"quickstart", "eagle3"} <= set(shipped_spaces())
    for name in ("quickstart", "eagle3"):
        space = load_space(name)
        assert same(parse_space(space.resolved_yaml(), space.path), space)


def test_quickstart_is_what_its_comments_say() -> None:
    space = load_space("quickstart")
    assert space.engine.runtime == "cpu-reference"
    assert space.engine.gpus == 0
    assert space.budget.trials == 10
    assert space.workload.level_names == ("c1", "c8")
    assert [branch.size for branch in space.branches] == [1, 2 * 6 * 3 * 15]


def test_eagle3_leaves_legal_candidates_for_every_system_setting() -> None:
    space = load_space("eagle3")
    assert space.engine.gpus == 8
    assert space.workload.level_names == ("c1", "c8", "c32")
    allowed = [c for raw in space.branches[0].assignments() if space.forbidden(c := Candidate.of(raw)) is None]
    assert len({candidate.values["disable-decode-cuda-graph"] for candidate in allowed}) == 2
    tree = {
        "speculative-algorithm": "EAGLE3",
        "speculative-draft-model-path": space.parameters["speculative-draft-model-path"].values[0],
        "speculative-num-steps": 3,
        "speculative-eagle-topk": 4,
        "speculative-num-draft-tokens": 8,
        "decode-attention-backend": "triton",
        "cuda-graph-bs-decode": (1, 2, 4, 8),
        "disable-decode-cuda-graph": False,
        "env.NCCL_ALGO": "unset",
        "env.NCCL_PROTO": "unset",
    }

    def forbidden(prefill: str, mode: str) -> bool:
        raw = {**tree, "prefill-attention-backend": prefill, "speculative-attention-mode": mode}
        return space.forbidden(Candidate.of(raw)) is not None

    assert not forbidden("triton", "prefill")
    assert not forbidden("flashinfer", "decode")
    assert forbidden("flashinfer", "prefill")


def test_lists_among_the_fixed_arguments_survive_the_resolved_file() -> None:
    text = (
        "schema: 1\nname: a\nengine: {args: {model-path: m, cuda-graph-bs-decode: [1, 2]}}\n"
        "search: {speculative-algorithm: [none]}\n"
    )
    space = parse_space(text, Path("a.yaml"))
    again = parse_space(space.resolved_yaml(), Path("b.yaml"))
    assert again.engine.args["cuda-graph-bs-decode"] == (1, 2)
    assert again.resolved_yaml() == space.resolved_yaml().replace("a.yaml", "b.yaml")
