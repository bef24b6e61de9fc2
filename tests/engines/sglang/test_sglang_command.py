"""From a candidate to a command that leaves nothing to chance."""

from __future__ import annotations

import subprocess
import sys
from argparse import ArgumentError, ArgumentParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectune.engines.parts import Illegal
from spectune.engines.protocol import LaunchCommand
from spectune.engines.sglang.adapter import SGLangEngine
from spectune.engines.sglang.arguments import to_argv
from spectune.engines.sglang.interpreter import Interpreter
from spectune.engines.sglang.options import Options
from spectune.engines.sglang.rules.memory import captured_batches
from spectune.space import Candidate

EAGLE = {
    "speculative-algorithm": "EAGLE3",
    "speculative-draft-model-path": "org/drafter",
    "speculative-num-steps": 3,
    "speculative-eagle-topk": 1,
    "speculative-num-draft-tokens": 4,
    "env.NCCL_PROTO": "LL",
    "env.NCCL_ALGO": "unset",
}
EXPLICIT = (
    "--attention-backend", "--page-size", "--max-running-requests", "--cuda-graph-bs-decode",
    "--chunked-prefill-size", "--mem-fraction-static",
)  # fmt: skip


def engine(**fixed: Any) -> SGLangEngine:
    return SGLangEngine(
        Interpreter(sys.executable), "0.5.23", {"model-path": "org/model", **fixed}, {"A": "1"}, 8, 32, ("B",)
    )  # fmt: skip


def canonical(values: dict[str, Any], **fixed: Any) -> Candidate:
    found = engine(**fixed).canonical(values)
    assert isinstance(found, Candidate), found
    return found


@pytest.mark.parametrize("values", [EAGLE, {"speculative-algorithm": "none"}])
def test_nothing_that_sglang_could_default_differently_is_left_out(values: dict[str, Any]) -> None:
    argv = engine().command(canonical(values), host="127.0.0.1", port=1, nccl_port=2).argv
    assert all(argv.count(name) == 1 for name in EXPLICIT)
    speculative = [word for word in argv if word.startswith("--speculative")]
    assert len(speculative) == (5 if values is EAGLE else 0)


def test_environment_of_space_and_candidate() -> None:
    command = engine().command(canonical(EAGLE), host="127.0.0.1", port=1)
    assert command.env == {"A": "1", "NCCL_PROTO": "LL"}
    assert set(command.unset) == {"B", "NCCL_ALGO"}
    assert command.environment({"NCCL_ALGO": "Ring", "B": "x", "HOME": "/h"}) == {
        "A": "1",
        "NCCL_PROTO": "LL",
        "HOME": "/h",
    }


def test_graphs_that_are_named_are_not_named_again() -> None:
    for name, value in (("disable-decode-cuda-graph", True), ("cuda-graph-backend-decode", "disabled")):
        off = engine().command(canonical({**EAGLE, name: value}), host="h", port=1).argv
        assert "--cuda-graph-bs-decode" not in off
        assert f"--{name}" in off
    listed = engine().command(canonical({**EAGLE, "cuda-graph-bs-decode": (1, 4)}), host="h", port=1).argv
    at = listed.index("--cuda-graph-bs-decode")
    assert listed[at + 1 : at + 3] == ("1", "4")


def test_illegal_assignments_are_said_so() -> None:
    found = engine().canonical({**EAGLE, "speculative-eagle-topk": 2, "speculative-num-draft-tokens": 99})
    assert isinstance(found, Illegal)
    assert "99" in found.reason


def test_captured_sizes_are_those_of_the_facts() -> None:
    assert captured_batches(48, speculative=True) == [*range(1, 9), *range(10, 33, 2), 40, 44, 48]
    assert captured_batches(3, speculative=True) == [1, 2, 3]


def test_switches_and_lists() -> None:
    assert to_argv({"b": True, "a": False, "model-path": "m", "c": [1, 2]}) == [
        "--model-path",
        "m",
        "--b",
        "--c",
        "1",
        "2",
    ]


def test_mismatch_names_what_was_asked_and_what_runs() -> None:
    candidate = canonical(EAGLE)
    said = {"speculative_num_steps": 5, "speculative_eagle_topk": 1, "max_running_requests": 48, "page_size": 1}
    found = engine().mismatches(candidate, said)
    assert [(m.field, m.wanted, m.got) for m in found] == [("speculative-num-steps", 3, 5)]


def test_speculation_in_a_baseline_is_a_mismatch() -> None:
    baseline = canonical({"speculative-algorithm": "none"})
    assert [m.field for m in engine().mismatches(baseline, {"speculative_algorithm": "EAGLE3"})] == [
        "speculative-algorithm"
    ]


def test_missing_interpreter_and_gpus_are_both_said() -> None:
    absent = SGLangEngine(Interpreter("no-such-python"), None, {"model-path": "m"}, {}, 8, 1)
    messages = " ".join(map(str, absent.missing()))
    assert "no-such-python" in messages
    assert "8 GPUs" in messages


@pytest.mark.parametrize(
    ("fixed", "takes"),
    [
        ({"tp-size": 16}, 16),
        ({"tp-size": 8, "pp-size": 2}, 16),
        ({"tp-size": 8, "dp-size": 2}, 16),
        ({"tp-size": 8, "dp-size": 2, "enable-dp-attention": True}, None),
        ({"tp-size": 16, "nnodes": 2}, None),
        ({"tp-size": 16, "device": "cpu"}, None),
        ({}, None),
    ],
)
def test_a_launch_sees_no_more_gpus_than_it_is_said_to_take(fixed: dict[str, Any], takes: int | None) -> None:
    said = [str(problem) for problem in engine(**fixed).missing() if "it takes" in str(problem)]
    words = f"it takes {takes} GPUs of a machine, but a launch is shown 8 (engine.gpus); raise engine.gpus"
    assert said == ([] if takes is None else [words])


def test_sizes_that_are_searched_are_held_against_the_gpus_too() -> None:
    none = {"speculative-algorithm": "none"}
    assert isinstance(engine().canonical({**none, "tp-size": 8}), Candidate)
    found = engine().canonical({**none, "tp-size": 16})
    assert isinstance(found, Illegal)
    assert found.rule == "gpus"
    assert isinstance(engine(**{"dp-size": 4}).canonical({**none, "tp-size": 4}), Illegal)


def test_an_interpreter_without_sglang_is_said_so() -> None:
    assert Interpreter(sys.executable).sglang_version() is None
    absent = SGLangEngine(Interpreter(sys.executable), None, {"model-path": "m", "device": "cpu"}, {}, 0, 1)
    assert "no sglang" in str(absent.missing()[0])


def test_model_folders_are_checked_and_hub_names_are_not(tmp_path: Path) -> None:
    assert engine().missing_model("org/model") is None
    assert engine().missing_model(str(tmp_path)) is None
    assert str(tmp_path / "gone") in (engine().missing_model(str(tmp_path / "gone")) or "")


def test_whatever_looks_like_a_folder_and_is_none_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    (tmp_path / "circle").symlink_to("circle")
    assert engine().missing_model("./here") is None
    for lost in ("./gone", "../gone/too", "./circle", "./" + "long" * 2000):
        assert engine().missing_model(lost) == f"there is no model folder {lost}"


words = st.text(st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=("Cs",)), max_size=12)


@settings(deadline=None)
@given(st.lists(words, max_size=4), words)
def test_a_shell_sees_exactly_the_arguments(arguments: list[str], value: str) -> None:
    show = "import os, sys; sys.stdout.buffer.write('\\0'.join([os.environ['V'], *sys.argv[1:]]).encode())"
    command = LaunchCommand((sys.executable, "-c", show, *arguments), {"V": value})
    seen = subprocess.run(
        ["bash", "-c", command.shell()],
        capture_output=True,
        check=True,
        env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
    )
    assert seen.stdout.decode() == "\0".join([value, *arguments])


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("speculative-num-steps", "three", "integer"),
        ("decode-attention-backend", "tritn", "did you mean triton"),
        ("trust-remote-code", "yes", "true or false"),
        ("page-size", [1, 2], "one value"),
        ("mem-fraction-statik", 0.8, "did you mean mem-fraction-static"),
        ("served-model-name", "-name", "begins with a dash"),
        ("chat-template", "--file=x", "begins with a dash"),
    ],
)
def test_options_complain_with_the_way_out(name: str, value: Any, words: str) -> None:
    assert words in (Options.shipped().complaint(name, value) or "")


def test_options_take_what_sglang_takes() -> None:
    options = Options.shipped()
    for name, value in (
        ("tp-size", 8),
        ("mem-fraction-static", 1),
        ("cuda-graph-bs-decode", [1, 2]),
        ("trust-remote-code", True),
    ):
        assert options.complaint(name, value) is None


@given(st.text(alphabet="-1.e5a =\u00a0\n", max_size=6).map("-".__add__))
def test_values_that_argparse_takes_for_options_are_told_and_no_others(value: str) -> None:
    parser = ArgumentParser(allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--chat-template")
    try:
        taken = parser.parse_known_args(["--chat-template", value])[0].chat_template == value
    except ArgumentError:
        taken = False
    assert (Options.shipped().complaint("chat-template", value) is None) == taken


def test_likely_fatal_variables_are_named_with_the_way_out() -> None:
    tree = canonical({**EAGLE, "env.NCCL_ALGO": "Tree"}, **{"tp-size": 8})
    said = " ".join(engine(**{"tp-size": 8}).unwise(tree))
    assert "NCCL_ALGO" in said
    assert "allreduce:tree" in said
    ring = canonical({**EAGLE, "env.NCCL_ALGO": "allreduce:ring"}, **{"tp-size": 8})
    assert "NCCL_ALGO" not in " ".join(engine(**{"tp-size": 8}).unwise(ring))
