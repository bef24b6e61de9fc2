"""SGLang's own resolver as referee over spectune's rules."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from spectune.cli.opening import Asked
from spectune.cli.refereeing import preview_with_engine, referee_space
from spectune.engines.cpu_reference import Runtime
from spectune.engines.open import load_checked_space, open_engine
from spectune.engines.parts import Illegal
from spectune.engines.protocol import LaunchCommand
from spectune.engines.sglang import referee
from spectune.engines.sglang.adapter import SGLangEngine
from spectune.engines.sglang.agreement import Outcome, Question, ask, draw
from spectune.engines.sglang.interpreter import Interpreter
from spectune.engines.sglang.referee import Referee, Verdict
from spectune.errors import SpectuneError
from spectune.space import Candidate, SearchSpace, parse_space

HANGS = "import time; time.sleep(600)"
SPACE = """schema: 1
name: mine
engine: {{{engine}, gpus: 0, args: {{model-path: "{model}", device: cpu, max-running-requests: 4{more}}}}}
search:
  speculative-algorithm: [none, EAGLE3]
  speculative-draft-model-path: "{drafter}"
  speculative-num-steps: {{from: 1, to: 3}}
  speculative-eagle-topk: [1, 2]
  speculative-num-draft-tokens: {{from: 2, to: 12}}
forbid: [{{speculative-num-steps: 3, speculative-eagle-topk: 1}}]
workload: {{prompts: builtin:tiny, levels: [{{concurrency: 1}}]}}
"""
# Stands for the engine's Python: says it is loaded, then repeats what it is asked, until it is told to die.
ECHO = """#!{python}
import json, sys
print(json.dumps({{"ready": True}}), flush=True)
for line in sys.stdin:
    question = json.loads(line)
    if "--die" in question["argv"]:
        sys.exit("Killed by the test")
    print(json.dumps({{"status": "ok", "message": None, "resolved": question}}), flush=True)
"""


def space_of(engine: str = "python: python3", more: str = "") -> SearchSpace:
    return parse_space(
        SPACE.format(engine=engine, model="org/model", drafter="org/drafter", more=more), Path("mine.yaml")
    )


def engine_for(space: SearchSpace) -> SGLangEngine:
    return SGLangEngine(Interpreter("python3"), "0.5.23", space.engine.args, {}, 0, 1)


def command(*arguments: str, **env: str) -> LaunchCommand:
    return LaunchCommand(("python", "-m", "sglang.launch_server", *arguments), env, ("GONE",))


class Stub(Referee):
    """Accepts everything but one number of draft tokens."""

    def __init__(self, refused: str = "") -> None:
        self._refused = refused

    def judge(self, command: LaunchCommand) -> Verdict:
        argv = command.argv
        tokens = argv[argv.index("--speculative-num-draft-tokens") + 1] if "--speculative-algorithm" in argv else "0"
        if tokens == self._refused:
            return Verdict(False, "ValueError: no")
        resolved: Mapping[str, Any] = {"speculative_num_draft_tokens": int(tokens) or None}
        return Verdict(True, None, resolved)


@pytest.fixture
def echo(tmp_path: Path) -> Interpreter:
    program = tmp_path / "python"
    program.write_text(ECHO.format(python=sys.executable))
    program.chmod(0o755)
    return Interpreter(str(program))


def test_a_launch_is_asked_as_it_would_be_started(echo: Interpreter) -> None:
    with Referee(echo) as referee:
        said = [referee.judge(command("--page-size", size, A="1")) for size in ("1", "2")]
    assert [verdict.resolved["argv"] for verdict in said] == [["--page-size", "1"], ["--page-size", "2"]]
    assert (said[0].resolved["env"], said[0].resolved["unset"]) == ({"A": "1"}, ["GONE"])


def test_a_referee_that_dies_is_said_with_its_last_words(echo: Interpreter) -> None:
    with Referee(echo) as referee, pytest.raises(SpectuneError, match="cannot be asked: Killed by the test"):
        referee.judge(command("--die"))


def test_a_referee_without_sglang_is_said() -> None:
    with (
        pytest.raises(SpectuneError, match=r"cannot be asked: ModuleNotFoundError: .*sglang"),
        Referee(Interpreter(sys.executable)),
    ):
        pass


def test_everything_is_asked_where_there_is_room() -> None:
    space = space_of()
    engine = engine_for(space)
    sample = draw(space, engine, legal=1000, each_rule=1000)
    legal = {question.candidate for question in sample.legal}
    assert len(legal) == len(sample.legal) == sample.counts[""]
    assert not any(space.forbidden(candidate) for candidate in legal)
    assert sum(not candidate.speculative for candidate in legal) == 1
    excluded = [question for rule in sample.excluded.values() for question in rule]
    assert all(isinstance(engine.canonical(question.candidate.values), Illegal) for question in excluded)
    assert len(sample) == len(list(sample.questions())) == len(legal) + len(excluded)


def test_a_sample_is_even_bounded_and_repeatable() -> None:
    space = space_of()
    engine = engine_for(space)
    sample = draw(space, engine, legal=5, each_rule=3)
    assert len(sample.legal) == 5
    assert all(len(questions) <= 3 for questions in sample.excluded.values())
    assert sample.counts == draw(space, engine, legal=1000, each_rule=1000).counts
    assert sample == draw(space, engine, legal=5, each_rule=3)
    drawn = {
        question.candidate
        for seed in range(60)
        for question in draw(space, engine, legal=5, each_rule=3, seed=seed).legal
    }
    assert len(drawn) == sample.counts[""]


@pytest.mark.parametrize(
    ("rule", "accepted", "agreed", "beyond"),
    [
        (None, True, True, False),
        (None, False, False, False),
        ("pipeline-parallelism", False, True, False),
        ("pipeline-parallelism", True, False, False),
        ("tree-bounds", True, True, True),
        ("tree-bounds", False, True, False),
    ],
)
def test_who_agrees(rule: str | None, accepted: bool, agreed: bool, beyond: bool) -> None:
    question = Question(Candidate.of({"speculative-algorithm": "none"}), (rule and Illegal(rule, "because")) or None)
    outcome = Outcome(question, Verdict(accepted, None if accepted else "no"))
    assert (outcome.agreed, outcome.beyond) == (agreed, beyond)


def test_what_resolves_to_something_else_is_a_disagreement() -> None:
    space = space_of()
    engine = engine_for(space)
    chain = next(q for q in draw(space, engine, legal=1000, each_rule=0).legal if q.candidate.speculative)
    assert ask(chain, engine, Stub()).agreed
    assert not ask(chain, engine, Stub(str(chain.candidate.num_draft_tokens))).agreed
    changed = Stub()
    changed.judge = lambda command: Verdict(True, None, {"speculative_num_draft_tokens": 99})  # type: ignore[method-assign]
    (difference,) = ask(chain, engine, changed).differences
    assert (difference.field, difference.got) == ("speculative-num-draft-tokens", 99)


def test_without_an_engine_the_way_out_is_said(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(SPACE.format(engine="python: no-such-python", model="org/m", drafter="org/d", more=""))
    with pytest.raises(SpectuneError) as refused:
        preview_with_engine(Asked(str(file)), dry_run=True, as_json=True)
    assert "no-such-python" in str(refused.value)
    assert f"`spectune search {file} --dry-run` needs neither" in str(refused.value)


@pytest.mark.engine
def test_the_python_of_the_cpu_runtime_is_recognised(cpu_runtime: Runtime, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    text = SPACE.format(engine=f"python: {cpu_runtime.python}", model="org/m", drafter="org/d", more="")
    file.write_text(text.replace("gpus: 0", "gpus: 999").replace(" device: cpu,", ""))
    with pytest.raises(SpectuneError, match="999 GPUs") as refused:
        preview_with_engine(Asked(str(file)), dry_run=True, as_json=True)
    assert "write `runtime: cpu-reference` instead of python" in str(refused.value)


def test_it_goes_with_a_dry_run_only() -> None:
    with pytest.raises(SpectuneError, match="--with-engine goes with --dry-run"):
        preview_with_engine(Asked("quickstart"), dry_run=False, as_json=False)


@pytest.mark.engine
def test_the_real_resolver_agrees_on_a_space(
    cpu_runtime: Runtime, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.yaml"
    names = {"model": "runtime:target", "drafter": "runtime:drafter-strong"}
    file.write_text(SPACE.format(engine="runtime: cpu-reference", **names, more=", page-size: 1"))
    assert referee_space(Asked(str(file)), as_json=True, legal=12, each_rule=4) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["legal"]["asked"], said["disagreements"]) == (12, [])
    assert said["agreed"] == 12 + sum(rule["asked"] for rule in said["rules"].values())
    assert sum(rule["asked"] for rule in said["rules"].values()) > 0


@pytest.mark.engine
def test_the_real_resolver_contradicts_a_wrong_rule(
    cpu_runtime: Runtime, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.yaml"
    names = {"model": "runtime:target", "drafter": "runtime:drafter-strong"}
    file.write_text(
        SPACE.format(engine="runtime: cpu-reference", **names, more=", chunked-prefill-size: 100, page-size: 3")
    )
    monkeypatch.setattr(SGLangEngine, "canonical", lambda _engine, assignment: Candidate.of(assignment))
    assert referee_space(Asked(str(file)), as_json=False, legal=3, each_rule=3) == 1
    said = capsys.readouterr().out
    assert "×, first EAGLE3" in said
    assert "SGLang refuses: AssertionError: chunked_prefill_size must be divisible by page_size" in said
    assert "they agree on 0, and disagree on 3" in said


@pytest.mark.engine
def test_one_launch_leaves_nothing_to_the_next(cpu_runtime: Runtime, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    names = {"model": "runtime:target", "drafter": "runtime:drafter-strong"}
    file.write_text(SPACE.format(engine="runtime: cpu-reference", **names, more=""))
    engine = open_engine(load_checked_space(str(file)))
    plain = engine.command(Candidate.of({"speculative-algorithm": "none"}), host="127.0.0.1", port=30000)
    wrong = LaunchCommand((*plain.argv, "--no-such-option"), plain.env)
    with Referee(engine.interpreter) as referee:
        said = [referee.judge(asked) for asked in (plain, wrong, plain)]
    assert [verdict.accepted for verdict in said] == [True, False, True]
    assert said[1].message == "ValueError: unrecognized arguments: --no-such-option"
    assert {**said[0].resolved, "random_seed": 0} == {**said[2].resolved, "random_seed": 0}


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("print('no JSON')", "ended without an answer"),
        ("print('[1]\\n5')", "ended without an answer"),
        ('print(\'{"error": "no \\\\u001b[31m CUDA"}\')', r"no \\x1b\[31m CUDA"),
        (HANGS, "did not answer within 1 s"),
    ],
)
def test_an_interpreter_that_does_not_answer_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, words: str
) -> None:
    if program == HANGS:
        monkeypatch.setattr(referee, "LOADING_S", 1.0)
    python = tmp_path / "python"
    python.write_text(f"#!{sys.executable}\n{program}\n")
    python.chmod(0o755)
    with pytest.raises(SpectuneError, match=words), Referee(Interpreter(str(python))):
        pass


def test_what_an_interpreter_prints_beside_its_answers_is_passed_over(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(ECHO.format(python=sys.executable).replace("print(", "print('banner\\n7'); print(", 1))
    python.chmod(0o755)
    with Referee(Interpreter(str(python))) as asked:
        assert asked.judge(command("--x")).accepted
