from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.errors import InputProblems
from spectune.space import Level, SearchSpace, parse_space

SPACE = """\
schema: 1
engine: {args: {model-path: org/model}}
search:
  speculative-algorithm: %s
workload:
  prompts: %s
  levels: [%s]
"""


def load(
    levels: str = "{concurrency: 1}", *, prompts: str = "builtin:mixed", algorithm: str = "EAGLE3", more: str = ""
) -> SearchSpace:
    return parse_space(SPACE % (algorithm, prompts, levels) + more, Path("space.yaml"))


def problems(*args: str, **more: str) -> list[str]:
    with pytest.raises(InputProblems) as caught:
        load(*args, **more)
    return [f"{problem.line}: {problem.message}" for problem in caught.value.problems]


def test_names_and_what_is_in_flight() -> None:
    levels = load("{concurrency: 8}, {rate: 2.5}, {rate: 0.1}, {trace: 1}, {trace: 0.5}").workload.levels
    assert [level.name for level in levels] == ["c8", "r2.5", "r0.1", "t1", "t0.5"]
    assert [level.in_flight(256) for level in levels] == [8, 32, 2, None, None]
    assert [level.open_loop for level in levels] == [False, True, True, True, True]


@given(rate=st.floats(0.001, 10_000), tokens=st.integers(1, 10**6))
def test_what_a_rate_is_assumed_to_have_in_flight_is_within_reason(rate: float, tokens: int) -> None:
    assert 1 <= (Level(rate=rate).in_flight(tokens) or 0) <= 4096


@pytest.mark.parametrize(
    "level", ["{}", "{rate: 1, trace: 1}", "{rate: 1, concurrency: 1}"]
)  # fmt: skip
def test_a_level_is_one_load(level: str) -> None:
    assert problems(level) == [
        "7: workload.levels[0]: a level has exactly one of {concurrency: N}, {rate: N per second} and {trace: speed}"
    ]


@pytest.mark.parametrize(
    "level", ["{rate: 0}", "{rate: -1}", "{rate: 1000000}", "{rate: fast}", "{trace: 0}", "{trace: .inf}"]
)
def test_loads_that_cannot_be(level: str) -> None:
    (problem,) = problems(level)
    assert problem.startswith("7: workload.levels[0].")


def test_the_same_level_twice() -> None:
    assert problems("{rate: 2}, {rate: 2.0}") == ["7: workload.levels: the level r2 stands twice"]


def test_default_objectives_of_open_loops_are_speeds() -> None:
    assert [o.name for o in load("{rate: 2}").objectives] == ["decode_speed@r2"]
    assert [o.name for o in load("{concurrency: 1}, {rate: 2}").objectives] == ["decode_speed@c1", "decode_speed@r2"]
    assert [o.name for o in load("{rate: 2}, {concurrency: 8}").objectives] == [
        "decode_speed@r2",
        "output_throughput@c8",
    ]


def test_the_throughput_of_an_open_loop_is_no_objective() -> None:
    (problem,) = problems("{rate: 2}", more="objectives: [{maximize: output_throughput, level: r2}]\n")
    assert problem.startswith("8: output_throughput at r2 is as large as what is asked for")


@pytest.mark.parametrize("algorithm", ["EAGLE3", "[none, NGRAM]"])
@pytest.mark.parametrize("prompts", ["builtin:random", "[builtin:mixed, builtin:random]"])
def test_random_prompts_under_speculation_are_refused_with_the_reason(algorithm: str, prompts: str) -> None:
    if prompts.startswith("["):
        prompts = "[{prompts: builtin:mixed}, {prompts: builtin:random}]"
    (problem,) = problems(algorithm=algorithm, prompts=prompts)
    assert problem.startswith("6: builtin:random under speculation: no drafter predicts random tokens (vllm#53906")


def test_random_prompts_are_to_be_had_by_asking_or_without_speculation() -> None:
    asked = load(prompts="[{prompts: builtin:random, allow_random: true}]")
    assert load(algorithm="none", prompts="builtin:random").workload.prompts[0].prompts == "builtin:random"
    assert parse_space(asked.resolved_yaml(), asked.path).workload == asked.workload


@pytest.mark.parametrize(
    ("prompts", "words"),
    [
        ("[{prompts: builtin:mixed, turns: all}]", "turns: all is for files"),
        ("[{prompts: a.jsonl, allow_random: true}]", "allow_random is about builtin:random"),
    ],
)
def test_keys_that_would_have_no_effect(prompts: str, words: str) -> None:
    (problem,) = problems(prompts=prompts)
    assert words in problem


@pytest.mark.parametrize(
    "prefix", ["{characters: 0}", "{share: 0.5}", "{characters: 10, share: 1.5}", "{tokens: 5, characters: 1}"]
)
def test_prefixes_that_cannot_be(prefix: str) -> None:
    assert problems(more=f"  shared_prefix: {prefix}\n")


def test_a_file_as_resolved_loads_to_the_same_space() -> None:
    given_space = load(
        "{rate: 2.5}, {trace: 2}", prompts="[{prompts: a.json, turns: all}, {prompts: builtin:tiny, share: 2}]",
        more="  shared_prefix: {characters: 100, share: 0.5}\n",
    )  # fmt: skip
    again = parse_space(given_space.resolved_yaml(), given_space.path)
    assert again.workload == given_space.workload
    assert given_space.workload.shares_text
