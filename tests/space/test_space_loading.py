from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from spectune.errors import InputProblems, SpectuneError
from spectune.space import Candidate, EngineSection, SearchSpace, load_space, parse_space

FILES = Path(__file__).parent / "files"
KNOWN = {
    "attention-backend",
    "cuda-graph-bs-decode",
    "model-path",
    "page-size",
    "speculative-algorithm",
    "speculative-eagle-topk",
    "speculative-num-draft-tokens",
    "speculative-num-steps",
    "tp-size",
}

BROKEN = """\
2: unknown key 'nam'; did you mean 'name'?
6: 'python' and 'runtime' exclude each other: a runtime brings its own interpreter
7: unknown key 'gpu' in engine; did you mean 'gpus'?
10: 'speculative-num-steps' must stand under search, where a single value is a fixed one: what stands in engine.args \
would reach the no-speculation baseline too
11: 'page_size' is not an argument name: lower case and hyphens, no dashes in front; write 'page-size'
12: 'tp-sise' is not an argument of this engine; did you mean 'tp-size'?
13: LD_PRELOAD cannot be set here: it decides which programs and libraries are loaded, so candidates would no longer \
be the same engine; set it in the shell that starts spectune if you need it
13: HF_TOKEN looks like a credential, and a space is copied into study folders and launch files; set it in the shell \
that starts spectune instead, workers inherit it
13: '1X' is not the name of an environment variable: letters, digits and _, no digit first
14: engine.startup_timeout: a duration needs a unit, but got 20; write 20s, 20m or 20h
17: 'speculative-num-steps' is searched here and fixed in engine.args on line 10; keep one of them
17: speculative-num-steps: the range is empty: from 7 is more than to 1
18: speculative-eagle-topk: an empty list leaves nothing to choose from; give at least one value
19: 'speculative-num-draft-tokns' is not an argument of this engine; did you mean 'speculative-num-draft-tokens'?
20: cuda-graph-bs-decode: the value [1, 2] stands twice
21: page-size: unset is a value of env.NAME parameters only; the engine is told every argument explicitly
22: 'env.NCCL_DEBUG' is searched here and fixed in engine.env on line 13; keep one of them
23: attention-backend: null is not a value; leave the name out, or write unset for an env.NAME that must be absent
25: 'speculative-eagle-top' is not searched, so nothing can be forbidden by it; did you mean 'speculative-eagle-topk'?
26: speculative-num-draft-tokns: '=>5' has no operator known here; use one of < <= > >= !=, or the plain value for \
equality
27: the no-speculation branch is always included
28: an empty condition would forbid every candidate
29: forbid[4] must be a mapping, but got 3
31: workload.prompts: 'builtin:tinny' is not a built-in set of prompts; did you mean 'builtin:tiny'?
32: workload.output_tokens must be a whole number, but got 'many'
33: workload.temperature must be at least 0.0, but got -1
36: workload.levels[1]: a level has exactly one of {concurrency: N}, {rate: N per second} and {trace: speed}
37: unknown key 'concurency' in workload.levels[2]; did you mean 'concurrency'?
39: objectives[0]: 'accept_rate' is not something to choose by: accept_rate falls when more tokens are drafted, even \
where that is faster, and engines define it differently; use decode_speed
40: objectives[1]: decode_speed is better the other way: write maximize: decode_speed
41: objectives[2]: 'decode_sped' is not a metric; did you mean 'decode_speed'?
42: 'level' is missing in objectives[3]
43: constraints[0]: ttft_p95_ms must be bounded by {max: x}, {min: x} or both, but got {'maxi': 2}
44: unknown key 'speed' in targets; valid: decode_speed
45: budget.trials must be at least 1, but got 0
45: budget.hours must be a number, but got true
46: 'budget' stands twice; the first is on line 45
"""

GOOD = """\
schema: 1
engine: {args: {model-path: org/model}}
search:
  speculative-algorithm: EAGLE3
  speculative-num-steps: {from: 1, to: 3}
workload: {levels: [{concurrency: 1}, {concurrency: 8}]}
"""


def parse(text: str, known: object = None) -> SearchSpace:
    return parse_space(text, Path("my space.yaml"), known)  # type: ignore[arg-type]


def messages(text: str, known: object = None) -> list[str]:
    with pytest.raises(InputProblems) as caught:
        parse(text, known)
    return [f"{problem.line}: {problem.message}" for problem in caught.value.problems]


def test_all_problems_of_a_file_at_once() -> None:
    file = FILES / "broken.yaml"
    with pytest.raises(InputProblems) as caught:
        load_space(file, KNOWN)
    assert str(caught.value).splitlines() == [f"{file}:{line}" for line in BROKEN.splitlines()]


def test_defaults() -> None:
    space = parse(GOOD)
    assert space.name == "my-space"
    assert space.text == GOOD
    assert (space.engine.kind, space.engine.python, space.engine.gpus) == ("sglang", "python3", 1)
    assert space.engine.startup_timeout == 1200
    assert [objective.name for objective in space.objectives] == ["decode_speed@c1", "output_throughput@c8"]
    assert space.budget.trials == 40
    assert space.workload.prompts[0].prompts == "builtin:mixed"
    assert (space.workload.level_time_limit, space.workload.precision) == (20, 0.015)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("schema: 1", "schema: 2", "1: schema: 2 is newer than what this spectune reads (1)"),
        ("schema: 1", "name: x", "1: 'schema' is missing"),
        (
            "schema: 1",
            "schema: 1\nname: a b",
            "2: name must be letters, digits, '.', '_' or '-', a letter or digit first",
        ),
        ("engine: {", "engine: {kind: vllm, ", "2: engine.kind must be 'sglang' or 'simulated', but got 'vllm'"),
        ("engine: {", "engine: {profile: p, ", "2: 'profile' cannot stand with kind: sglang"),
        ("engine: {", "engine: {runtime: cpu, ", "2: engine.runtime: 'cpu' is not a runtime; valid: cpu-reference"),
        ("engine: {", "engine: {gpus: -1, ", "2: engine.gpus must be at least 0, but got -1"),
        ("engine: {", "engine: {gpus: true, ", "2: engine.gpus must be a whole number, but got true"),
        ("engine: {", "engine: {parallel: 0, ", "2: engine.parallel must be at least 1, but got 0"),
        ("engine: {", "engine: {env: {CUDA_DEVICE_ORDER: PCI_BUS_ID}, ", "2: CUDA_DEVICE_ORDER cannot be set here"),
        ("engine: {", "engine: {env: {A: }, ", "2: engine.env.A must be a string, but got nothing"),
        ("engine: {", 'engine: {env: {A: "x\\ny"}, ', "2: the value of A must be one line without control characters"),
        ("engine: {", "engine: {env: {SPECTUNE_SIM_LAUNCH: 1}, ", "2: SPECTUNE_SIM_LAUNCH cannot be set here"),
        ("org/model", "null", "2: engine.args.model-path: null is not a value"),
        ("org/model", ".inf", "2: engine.args.model-path: a number must be finite, but got inf"),
        ("org/model}", "m, env.A: 1}", "2: 'env.A' is no argument; write it under engine.env without 'env.'"),
        ("speculative-algorithm: EAGLE3", "page-size: 1", "5: 'speculative-num-steps' has no effect without specul"),
        ("speculative-algorithm", "--speculative-algorithm", "4: '--speculative-algorithm' is not an argument name"),
        ("speculative-num-steps: {", "env.9: {", "5: '9' is not the name of an environment variable"),
        (
            "speculative-num-steps: {",
            "env.CUDA_VISIBLE_DEVICES: {",
            "5: CUDA_VISIBLE_DEVICES cannot be set here: spectune",
        ),
        (
            "{from: 1, to: 3}",
            "{from: 1, too: 3}",
            "5: speculative-num-steps: 'too' is not a key of a range; did you mean 'to'?",
        ),
        ("{concurrency: 8}", "{concurrency: 1}", "6: workload.levels: the level c1 stands twice"),
        ("{concurrency: 8}", "{concurrency: 0}", "6: workload.levels[1].concurrency must be at least 1, but got 0"),
        ("{concurrency: 8}", "{concurrency: 4097}", "6: workload.levels[1].concurrency must be at most 4,096, but got"),
        (
            "workload: {",
            "workload: {output_tokens: 999999999999999999999999, ",
            "6: workload.output_tokens must be at most 1,000,000, but got 999999999999999999999999",
        ),
        (
            "schema: 1",
            "schema: 1\ntargets: {decode_speed: 1.0e+308}",
            "2: targets.decode_speed must be at most 1,000,000, but got 1e+308",
        ),
        ("{concurrency: 8}", "8", "6: workload.levels[1] must be a mapping, but got 8"),
        ("[{concurrency: 1}, {concurrency: 8}]", "[]", "6: workload.levels must not be empty, but got []"),
        ("[{concurrency: 1}, {concurrency: 8}]", "3", "6: workload.levels: must be a list, but got 3"),
        ("workload: {", "workload: {precision: 1.5, ", "6: workload.precision must be less than 1.0, but got 1.5"),
        ("workload: {", "workload: {temperature: .nan, ", "6: workload.temperature must be"),
        (
            "workload: {",
            "workload: {prompts: [{prompts: a, share: 0}], ",
            "6: workload.prompts[0].share must be at least 1e-09, but got 0",
        ),
        (
            "workload: {",
            "workload: {prompts: [{prompts: a, share: 1.0e+308}], ",
            "6: workload.prompts[0].share must be at most 1,000,000,000, but got 1e+308",
        ),
        (
            "schema: 1",
            f"schema: 1\nbudget: {{trials: {10**400}}}",
            "2: budget.trials must be at most 1,000,000, but got",
        ),
        ("schema: 1", "schema: 1\nbudget: {hours: 1.0e+300}", "2: budget.hours must be at most 1,000,000,000, but got"),
    ],
)
def test_one_bad_value(old: str, new: str, expected: str) -> None:
    assert old in GOOD
    found = messages(GOOD.replace(old, new, 1))
    assert any(message.startswith(expected) for message in found), found


@pytest.mark.parametrize("beside", ["python: python3", "runtime: cpu-reference", "profile: p"])
def test_an_unknown_kind_of_engine_is_all_that_is_said(beside: str) -> None:
    (said,) = messages(GOOD.replace("engine: {", f"engine: {{kind: sgland, {beside}, ", 1))
    assert said == "2: engine.kind must be 'sglang' or 'simulated', but got 'sgland'"


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("forbid: {a: 1}", "7: forbid: must be a list, but got {'a': 1}"),
        ("forbid: [{speculative-algorithm: [none, EAGLE3]}]", "7: the no-speculation branch is always included"),
        (
            "forbid: [{speculative-algorithm: EAGEL3}]",
            "7: speculative-algorithm: 'EAGEL3' is not one of its values; did",
        ),
        ("objectives: [{maximize: decode_speed, level: c3}]", "7: 'c3' is not a level of the workload; valid: c1, c8"),
        ("objectives: [{level: c1}]", "7: objectives[0]: an objective must have one of 'maximize' and 'minimize'"),
        ("objectives: [{maximize: accept_length, level: c1}]", "7: objectives[0]: 'accept_length' is not something to"),
        (
            "objectives:\n- {maximize: decode_speed, level: c1}\n- {level: c1, maximize: decode_speed}",
            "9: the same stands on line 8",
        ),
        ("constraints: [{ttft_p95_ms: {max: 2}, level: c9}]", "7: 'c9' is not a level of the workload"),
        ("constraints: [{ttft_p95: {max: 2}, level: c1}]", "7: constraints[0]: 'ttft_p95' is not a metric; did you"),
        (
            "constraints: [{ttft_p95_ms: {max: many}, level: c1}]",
            "7: constraints[0]: 'max' of ttft_p95_ms must be a num",
        ),
        (
            "constraints: [{ttft_p95_ms: {max: -1}, level: c1}]",
            "7: constraints[0]: 'max' of ttft_p95_ms must be above 0",
        ),
        (
            "constraints: [{ttft_p95_ms: {min: 0}, level: c1}]",
            "7: constraints[0]: 'min' of ttft_p95_ms must be above 0",
        ),
        ("constraints: [{ttft_p95_ms: {max: 1, min: 2}, level: c1}]", "7: constraints[0]: nothing is at least 2"),
        ("constraints: [{ttft_p95_ms: {max: 1}}]", "7: 'level' is missing in constraints[0]"),
        (
            "constraints: [{ttft_p95_ms: {max: 1}, itl_p95_ms: {max: 1}, level: c1}]",
            "7: constraints[0]: a constraint na",
        ),
        ("constraints: [3]", "7: constraints[0] must be a mapping, but got 3"),
        ("targets: {decode_speed: [-1]}", "7: targets.decode_speed[0] must be more than 0.0, but got -1"),
        ("targets: 3", "7: targets must be a mapping, but got 3"),
        ("budget: {hours: '3'}", "7: budget.hours must be a number, but got '3'"),
    ],
)
def test_one_bad_section(more: str, expected: str) -> None:
    found = messages(GOOD + more + "\n")
    assert any(message.startswith(expected) for message in found), found


def test_more_combinations_than_a_search_can_weigh() -> None:
    variables = "".join(f"\n  env.V{number}: [unset, a, b]" for number in range(40))
    (found,) = messages(GOOD.replace("search:", "search:" + variables))
    assert "search must have at most 20,000,000 combinations of values, but has " in found
    assert "has 3" in found


def test_missing_sections_and_sections_of_the_wrong_type() -> None:
    assert messages("schema: 1\n") == ["1: 'engine' is missing", "1: 'search' is missing"]
    assert messages("schema: 1\nengine: 3\nsearch: []\nworkload: 4\nobjectives: 5\n") == [
        "2: engine must be a mapping, but got 3",
        "3: search must be a mapping, but got []",
        "4: workload must be a mapping, but got 4",
        "5: objectives: must be a list, but got 5",
    ]
    assert messages("schema: 1\nengine: {}\nsearch: {}\n") == ["3: search must not be empty, but got {}"]


def test_a_prompt_mix_and_a_single_target() -> None:
    text = GOOD.replace("workload: {", "workload: {prompts: [{prompts: builtin:tiny, share: 3}, {prompts: my.jsonl}], ")
    space = parse(text + "targets: {decode_speed: 100}\n")
    assert [(source.prompts, source.share) for source in space.workload.prompts] == [
        ("builtin:tiny", 3.0),
        ("my.jsonl", 1.0),
    ]
    assert space.targets.decode_speed == (100.0,)


def test_constraints_and_objectives_as_the_search_uses_them() -> None:
    space = parse(
        GOOD + "objectives: [{minimize: ttft_p95_ms, level: c8}]\nconstraints: [{ttft_p95_ms: {max: 2}, level: c8}]\n"
    )
    (objective,), (constraint,) = space.objectives, space.constraints
    assert (objective.metric, objective.direction, objective.level) == ("ttft_p95_ms", "minimize", "c8")
    assert constraint.excess(5) == 3
    assert constraint.excess(1) == -1


def test_known_arguments_may_be_asked_of_the_engine() -> None:
    asked: list[EngineSection] = []

    def known(engine: EngineSection) -> set[str]:
        asked.append(engine)
        return KNOWN

    parse(GOOD, known)
    assert asked[0].python == "python3"
    parse(GOOD, lambda engine: None)
    assert messages(GOOD, lambda engine: {"model-path", "speculative-algorithm"}) == [
        "5: 'speculative-num-steps' is not an argument of this engine; did you mean 'speculative-algorithm'?"
    ]


@dataclass(frozen=True)
class Whole:
    """An argument that takes whole numbers only."""

    name: str

    def complaint(self, value: object) -> str | None:
        return None if type(value) is int else f"{self.name} must be an integer, but got {value!r}"


def test_a_mapping_of_known_arguments_has_values_checked_too() -> None:
    known = {
        name: Whole(name) for name in ("model-path", "speculative-num-steps", "speculative-algorithm", "page-size")
    }
    assert messages(GOOD.replace("search:", "search:\n  page-size: [1, 1.5, [2, 3]]"), known) == [
        "2: model-path must be an integer, but got 'org/model'",
        "4: page-size must be an integer, but got 1.5",
        "4: page-size must be an integer, but got (2, 3)",
        "5: speculative-algorithm must be an integer, but got 'EAGLE3'",
    ]


def test_an_engine_that_cannot_be_asked_hides_no_other_problem() -> None:
    def known(engine: EngineSection) -> set[str]:
        raise SpectuneError("python3 has no sglang")

    assert messages(GOOD + "budget: {trials: x}\n", known) == [
        "2: python3 has no sglang",
        "7: budget.trials must be a whole number, but got 'x'",
    ]


def test_environment_values_are_taken_as_written() -> None:
    text = GOOD.replace("search:", "search:\n  env.A: [unset, on, 0x10, 1.0, '']").replace(
        "engine: {", "engine: {env: {B: 1e3, C: no, D: unset}, "
    )
    space = parse(text + "forbid: [{env.A: on}]\n")
    assert space.parameters["env.A"].values == ("unset", "on", "0x10", "1.0", "")
    assert space.engine.env == {"B": "1e3", "C": "no", "D": "unset"}
    assert space.engine.env_to_set == {"B": "1e3", "C": "no"}
    assert space.engine.env_to_unset == ("D",)
    assert space.forbidden(Candidate.of({"env.A": "on"})) is space.forbid[0]
    assert space.forbidden(Candidate.of({"env.A": "unset"})) is None


@pytest.mark.parametrize(
    ("engine", "gpus"),
    [
        ("args: {model-path: m, tp-size: 8}", 8),
        ("args: {model-path: m, tp-size: 4, pp-size: 2}", 8),
        ("kind: simulated, profile: p, args: {model-path: m, tp-size: 2}", 2),
        ("gpus: 4, args: {model-path: m, tp-size: 2}", 4),
        ("runtime: cpu-reference, args: {model-path: m, tp-size: 2}", 0),
        ("args: {model-path: m, tp-size: eight}", 1),
    ],
)
def test_a_launch_takes_the_gpus_of_its_parallelism(engine: str, gpus: int) -> None:
    space = parse(f"schema: 1\nname: one\nengine: {{{engine}}}\nsearch: {{page-size: [1, 16]}}\n")
    assert space.engine.gpus == gpus


def test_gpu_hours_need_gpus(tmp_path: Path) -> None:
    file = tmp_path / "cpu.yaml"
    file.write_text(
        "schema: 1\nname: cpu\nengine: {runtime: cpu-reference, args: {model-path: m}}\nsearch: {page-size: [1, 16]}\n"
        "budget: {gpu_hours: 3}\n"
    )
    with pytest.raises(InputProblems, match=r"cpu\.yaml:5: gpu_hours limits nothing, since engine\.gpus is 0"):
        load_space(file)
