"""Every candidate without visiting every assignment: the same as by visiting every one."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from search_samples import SPACE, engine, space

from spectune.engines.parts import Illegal
from spectune.engines.sglang.adapter import SGLangEngine
from spectune.engines.sglang.interpreter import Interpreter
from spectune.search.guided.enumeration import Census, census, legal_baselines, legal_candidates, nothing_to_compare
from spectune.search.proposing.proposals import Proposer
from spectune.space import Candidate, SearchSpace

HEAD = "schema: 1\nname: x\nengine: {python: python3, gpus: 1, args: {model-path: m}}\nsearch:\n"
TAIL = (
    "workload: {prompts: builtin:tiny, levels: [{concurrency: 1}]}\nobjectives: [{maximize: decode_speed, level: c1}]\n"
)
PARAMETERS = {
    "speculative-algorithm": ["none", "EAGLE3", "NEXTN", "EAGLE", "NGRAM", "DFLASH"],
    "speculative-draft-model-path": ["org/a", "org/b"],
    "speculative-num-steps": [1, 2, 3],
    "speculative-eagle-topk": [1, 2, 4],
    "speculative-num-draft-tokens": [2, 3, 4, 9],
    "speculative-attention-mode": ["prefill", "decode"],
    "speculative-draft-attention-backend": ["triton", "trtllm_mha", "torch_native"],
    "speculative-adaptive": [False, True],
    "prefill-attention-backend": ["triton", "trtllm_mha"],
    "decode-attention-backend": ["triton", "fa3"],
    "page-size": [1, 16, 48],
    "attn-dp-size": [1, 2],
    "disable-decode-cuda-graph": [False, True],
    "cuda-graph-bs-decode": [[1, 2], [1, 2, 4]],
    "env.NCCL_PROTO": ["unset", "LL"],
}
FORBID = ('{speculative-eagle-topk: ">1", page-size: 16}', "{env.NCCL_PROTO: LL, speculative-num-steps: 1}")


@st.composite
def spaces(draw: st.DrawFn) -> SearchSpace:
    lines, size = [], 1
    for name, values in PARAMETERS.items():
        always = name == "speculative-algorithm"
        chosen = draw(st.lists(st.integers(1 if always else 0, len(values) - 1), unique=True, min_size=always))
        if chosen and size * len(chosen) <= 600:
            size *= len(chosen)
            lines.append(line(name, chosen))
    names = "".join(lines)
    drawn = draw(st.lists(st.sampled_from(FORBID), unique=True))
    forbid = [
        f"  - {condition}\n" for condition in drawn if all(f"  {name}:" in names for name in mentioned(condition))
    ]
    return space(HEAD + names + ("forbid:\n" + "".join(forbid) if forbid else "") + TAIL)


def line(name: str, chosen: list[int]) -> str:
    values = [PARAMETERS[name][index] for index in chosen]
    written = ", ".join(str(value).lower() if isinstance(value, bool) else str(value) for value in values)
    return f"  {name}: [{written}]\n"


def mentioned(condition: str) -> list[str]:
    return [name for name in PARAMETERS if f"{name}:" in condition]


def cuda_engine() -> SGLangEngine:
    return SGLangEngine(Interpreter("python3"), "0.5.23", {"model-path": "m", "tp-size": 2}, {}, 1, 8)


def by_brute_force(of: SearchSpace, rules: SGLangEngine) -> tuple[set[Candidate], Counter[str]]:
    candidates, excluded = set(), Counter[str]()
    for branch in of.branches:
        for assignment in branch.assignments():
            found = rules.canonical(assignment)
            if isinstance(found, Illegal):
                excluded[found.rule] += 1
            else:
                candidates.add(found)
    return candidates, excluded


@settings(deadline=None, max_examples=60)
@given(spaces())
@example(space(HEAD + line("speculative-algorithm", [1]) + line("env.NCCL_PROTO", [0]) + TAIL))  # nothing but the draft
def test_it_is_what_visiting_every_assignment_finds(drawn: SearchSpace) -> None:
    candidates, excluded = by_brute_force(drawn, cuda_engine())
    allowed = {candidate for candidate in candidates if drawn.forbidden(candidate) is None}
    listed = list(legal_candidates(drawn, cuda_engine()))
    assert len(listed) == len(set(listed))
    assert set(listed) == allowed
    counted = census(drawn, cuda_engine())
    assert counted.raw == sum(branch.size for branch in drawn.branches)
    assert counted.candidates == len(allowed)
    assert counted.excluded == excluded
    assert counted.forbidden.total() == len(candidates) - len(allowed)
    assert counted.merged >= 0
    plain = [candidate for candidate in listed if not candidate.speculative]
    assert list(legal_baselines(drawn, cuda_engine())) == plain
    without = [branch for branch in drawn.branches if not branch.speculative]
    assert census(drawn, cuda_engine(), without).candidates == len(plain)


@settings(deadline=None, max_examples=30)
@given(spaces())
def test_folded_assignments_are_those_that_are_not_their_own_candidate(drawn: SearchSpace) -> None:
    rules = cuda_engine()
    rewritten = 0
    for branch in drawn.branches:
        for assignment in branch.assignments():
            found = rules.canonical(assignment)
            rewritten += isinstance(found, Candidate) and found != Candidate.of(assignment)
    folded = census(drawn, rules).folded
    assert max(folded.values(), default=0) <= rewritten <= folded.total()


def test_candidates_without_speculation_come_first_in_the_order_of_the_file() -> None:
    listed = list(legal_candidates(space(), engine()))
    assert [candidate.speculative for candidate in listed[:3]] == [False, False, True]
    assert listed[0].values["env.NCCL_PROTO"] == "unset"


def test_the_sample_counted() -> None:
    counted = census(space(), engine())
    assert counted == Census(
        raw=2 + 2 * 4 * 2 * 7 * 2,
        candidates=len(list(legal_candidates(space(), engine()))),
        folded=Counter({"chain-tokens": 4 * 6 * 2 * 2}),
        excluded=counted.excluded,
        forbidden=counted.forbidden,
    )
    assert set(counted.excluded) == {"tree-bounds", "tree-below-steps"}
    assert list(counted.forbidden) == ["{speculative-eagle-topk: >1, speculative-num-steps: >3}"]


@pytest.mark.parametrize("name", ["speculative-adaptive"])
def test_where_rules_couple_everything_nothing_is_factorised(name: str) -> None:
    names = [name, "speculative-num-steps", "page-size"]
    assert cuda_engine().draft_names(names) == set(names)


def test_the_first_of_millions_is_found_without_the_others() -> None:
    variables = "".join(f"  env.V{n}: [unset, a, b]\n" for n in range(14))
    chain = "".join(line(name, [0]) for name in list(PARAMETERS)[1:4]) + line("speculative-num-draft-tokens", [0])
    large, rules = space(HEAD + line("speculative-algorithm", [0, 1]) + chain + variables + TAIL), engine()
    assert nothing_to_compare(large, rules) is None
    first = Proposer(large, rules, sampler="random").baseline()
    assert not first.speculative
    assert {first.values[f"env.V{n}"] for n in range(14)} == {"unset"}
    assert census(large, rules).candidates == 2 * 3**14


def test_what_the_file_forbids_is_counted_without_visiting_it() -> None:
    variables = "".join(f"  env.V{n}: [unset, a, b]\n" for n in range(13))
    forbid = "forbid:\n  - {env.V0: a, env.V1: [a, b]}\n  - {speculative-algorithm: NGRAM, env.V1: unset}\n"
    large = space(HEAD + line("speculative-algorithm", [0, 4]) + variables + forbid + TAIL)
    counted, alike = census(large, engine()), 3**11
    first, second = large.forbid
    assert counted.forbidden == {str(first): 2 * 2 * alike, str(second): 3 * alike}
    assert counted.candidates == (2 * 9 - 4 - 3) * alike
    (without, _) = large.branches
    assert census(large, engine(), [without]).candidates == 7 * alike


def test_a_space_in_which_nothing_can_be_compared_says_why() -> None:
    assert nothing_to_compare(space(), engine()) is None
    forbidden = space(SPACE.replace("forbid:\n", "forbid:\n  - {speculative-algorithm: EAGLE3}\n"))
    said = nothing_to_compare(forbidden, engine())
    assert said is not None
    assert said.startswith(
        "small.yaml: no candidate with speculation is legal, so there is nothing to compare: forbidden"
    )
    tight = SPACE.replace("{from: 1, to: 4}", "4").replace("[1, 2]\n", "2\n").replace("{from: 2, to: 8}", "2")
    said = nothing_to_compare(space(tight.split("forbid:")[0] + tight[tight.index("workload:") :]), engine())
    assert said is not None
    assert "2 draft tokens cannot hold a path of 4 steps" in said
    plain = space(
        "schema: 1\nname: plain\nengine: {python: python3, gpus: 0, args: {model-path: m, device: cpu}}\n"
        "search: {env.NCCL_PROTO: [unset]}\n"
    )
    said = nothing_to_compare(plain, engine())
    assert said == "small.yaml: there is one legal candidate at most, so there is nothing to compare"
