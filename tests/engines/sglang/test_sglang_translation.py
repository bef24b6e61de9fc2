"""One space, every version: what is launched uses only names the version has, or is refused in words."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from parsers import names_of, parser_of, versions

from spectune.engines.parts import Illegal
from spectune.engines.sglang.adapter import SGLangEngine
from spectune.engines.sglang.interpreter import Interpreter
from spectune.engines.sglang.variables import OVERLAP
from spectune.engines.sglang.versions.spellings import canonical_arguments, renamed
from spectune.engines.sglang.versions.translation import translate, unavailable
from spectune.space import Candidate

EAGLE = {
    "speculative-algorithm": "EAGLE3",
    "speculative-draft-model-path": "org/drafter",
    "speculative-num-steps": 3,
    "speculative-eagle-topk": 1,
    "speculative-num-draft-tokens": 4,
}
SPECULATION: tuple[dict[str, Any], ...] = (
    {"speculative-algorithm": "none"},
    EAGLE,
    {**EAGLE, "speculative-algorithm": "STANDALONE"},
    {**EAGLE, "speculative-eagle-topk": 4, "speculative-num-draft-tokens": 8},
    {"speculative-algorithm": "NGRAM", "speculative-num-draft-tokens": 8, "speculative-ngram-max-trie-depth": 12},
    {**EAGLE, "speculative-attention-mode": "decode", "prefill-attention-backend": "flashinfer"},
)
SYSTEM: tuple[dict[str, Any], ...] = (
    {},
    {"disable-decode-cuda-graph": True, "disable-prefill-cuda-graph": True},
    {"cuda-graph-max-bs-decode": 16, "cuda-graph-max-bs-prefill": 2048},
    {"cuda-graph-backend-decode": "disabled", "cuda-graph-backend-prefill": "disabled"},
    {"attn-dp-size": 2, "tp-size": 8, "flashinfer-allreduce-fusion-backend": "auto"},
    {"attention-backend": "dsa", "page-size": 64, "cuda-graph-bs-decode": (1, 2)},
    {"disable-overlap-schedule": True, "enable-torch-symm-mem": True, "disable-flashinfer-autotune": True},
)
# Said twice, these mean the same thing again under their canonical names.
LOSSLESS = {
    "cuda-graph-max-bs-decode": 8,
    "cuda-graph-bs-decode": (1, 2, 4),
    "cuda-graph-bs-prefill": (128, 256),
    "cuda-graph-max-bs-prefill": 512,
    "speculative-ngram-max-trie-depth": 9,
    "attn-dp-size": 4,
    "flashinfer-allreduce-fusion-backend": "auto",
    "attention-backend": "dsa",
    "prefill-attention-backend": "dsa",
    "mem-fraction-static": 0.8,
    "disable-radix-cache": True,
    "max-running-requests": 48,
    "dsa-decode-backend": "fa3",
}


def engine_of(version: str) -> SGLangEngine:
    return SGLangEngine(
        Interpreter("python3"), version, {"model-path": "org/model"}, {}, 8, 32, options=parser_of(version)
    )


@pytest.mark.parametrize("version", versions())
def test_every_launch_uses_names_of_its_version(version: str) -> None:
    engine, launched = engine_of(version), 0
    for speculation, system in itertools.product(SPECULATION, SYSTEM):
        found = engine.canonical({**speculation, **system})
        if isinstance(found, Illegal):
            assert found.rule != "version", found
            continue
        argv = engine.command(found, host="127.0.0.1", port=1, nccl_port=2).argv
        names = [word.removeprefix("--") for word in argv if word.startswith("--")]
        assert set(names) <= names_of(version)
        assert len(names) == len(set(names))
        launched += 1
    assert launched > 30


@pytest.mark.parametrize(
    ("version", "given", "written"),
    [
        ("0.5.13", {"cuda-graph-bs-decode": (1, 2)}, {"cuda-graph-bs": (1, 2)}),
        ("0.5.14", {"cuda-graph-bs-decode": (1, 2)}, {"cuda-graph-bs-decode": (1, 2)}),
        ("0.5.7", {"cuda-graph-bs-prefill": (1, 2)}, {"piecewise-cuda-graph-tokens": "[1, 2]"}),
        ("0.5.8", {"cuda-graph-bs-prefill": (1, 2)}, {"piecewise-cuda-graph-tokens": (1, 2)}),
        ("0.5.13", {"disable-decode-cuda-graph": True}, {"disable-cuda-graph": True}),
        ("0.5.14", {"disable-decode-cuda-graph": True}, {"disable-decode-cuda-graph": True}),
        ("0.5.10", {"disable-prefill-cuda-graph": True}, {"disable-piecewise-cuda-graph": True}),
        ("0.5.9", {"disable-prefill-cuda-graph": True}, {}),
        ("0.5.11", {"cuda-graph-backend-prefill": "breakable"}, {"enable-breakable-cuda-graph": True}),
        ("0.5.10", {"cuda-graph-backend-prefill": "tc_piecewise"}, {"enforce-piecewise-cuda-graph": True}),
        ("0.5.6", {"cuda-graph-backend-prefill": "tc_piecewise"}, {"enable-piecewise-cuda-graph": True}),
        ("0.5.10", {"cuda-graph-backend-decode": "full"}, {}),
        ("0.5.21", {"attn-dp-size": 4}, {"dp-size": 4, "enable-dp-attention": True}),
        ("0.5.22", {"attn-dp-size": 4}, {"attn-dp-size": 4}),
        ("0.5.21", {"attn-dp-size": 1}, {}),
        ("0.5.13", {"flashinfer-allreduce-fusion-backend": "auto"}, {"enable-flashinfer-allreduce-fusion": True}),
        ("0.5.9", {"speculative-ngram-max-trie-depth": 7}, {"speculative-ngram-branch-length": 7}),
        ("0.5.12", {"attention-backend": "dsa"}, {"attention-backend": "nsa"}),
        ("0.5.13", {"attention-backend": "dsa"}, {"attention-backend": "dsa"}),
        ("0.5.6", {"disable-flashinfer-autotune": True}, {}),
        ("0.5.6", {"enable-symm-mem": False, "speculative-adaptive": False}, {"enable-symm-mem": False}),
        (
            "0.5.11",
            {"speculative-algorithm": "DFLASH", "speculative-draft-window-size": 64},
            {"speculative-algorithm": "DFLASH", "speculative-dflash-draft-window-size": 64},
        ),
    ],
)
def test_names_of_before(version: str, given: dict[str, Any], written: dict[str, Any]) -> None:
    translated = translate(given, {}, parser_of(version))
    assert translated.arguments == written
    assert not translated.problems


@pytest.mark.parametrize(
    ("version", "given", "words"),
    [
        ("0.5.10", {"speculative-adaptive": True}, "0.5.10 has no speculative-adaptive, which came with 0.5.11"),
        ("0.5.6", {"speculative-draft-attention-backend": "fa3"}, "came with 0.5.7"),
        ("0.5.15", {"speculative-algorithm": "DSPARK"}, "no algorithm DSPARK, which came with 0.5.16"),
        ("0.5.10", {"cuda-graph-config": "{}"}, "came with 0.5.14"),
        ("0.5.10", {"cuda-graph-backend-decode": "breakable"}, "not breakable"),
        ("0.5.10", {"cuda-graph-backend-prefill": "breakable"}, "no prefill graphs of the kind breakable"),
        ("0.5.10", {"flashinfer-allreduce-fusion-backend": "mnnvl"}, "not mnnvl"),
        ("0.5.10", {"attn-dp-size": 2, "dp-size": 2}, "needs dp-size 1"),
        ("0.5.11", {"speculative-draft-window-size": 64, **EAGLE}, "came with 0.5.12"),
        ("0.5.9", {"disable-prefill-cuda-graph": True, "enable-piecewise-cuda-graph": True}, "contradict"),
        ("0.5.23", {"speculative-ngram-max-match-window-size": 3}, "0.5.9 was the last"),
        ("0.5.20", {"cuda-graph-bs": (1,), "cuda-graph-bs-decode": (2,)}, "keep one"),
    ],
)
def test_what_a_version_cannot_do_is_said(version: str, given: dict[str, Any], words: str) -> None:
    problems = translate(given, {}, parser_of(version)).problems
    assert len(problems) == 1
    assert words in problems[0]


@pytest.mark.parametrize(
    ("version", "algorithm", "topk", "value"),
    [
        ("0.5.6", "EAGLE", 1, "1"), ("0.5.6", "EAGLE3", 1, "0"), ("0.5.6", "EAGLE", 2, "0"),
        ("0.5.7", "EAGLE3", 1, "1"), ("0.5.7", "STANDALONE", 1, "0"), ("0.5.8", "STANDALONE", 1, "1"),
        ("0.5.10", "EAGLE3", 1, "1"), ("0.5.10", "EAGLE3", 4, "0"), ("0.5.11", "EAGLE3", 4, "1"),
        ("0.5.13", "EAGLE3", 4, "1"), ("0.5.14", "EAGLE3", 1, None), ("0.5.23", "EAGLE3", 4, None),
        ("0.5.10", "NGRAM", 1, None), ("0.5.10", "none", 1, None),
    ],
)  # fmt: skip
def test_overlap_does_not_depend_on_the_callers_shell(
    version: str, algorithm: str, topk: int, value: str | None
) -> None:
    arguments = {"speculative-algorithm": algorithm, "speculative-eagle-topk": topk}
    assert translate(arguments, {}, parser_of(version)).env.get(OVERLAP) == value


def test_a_synchronous_schedule_means_no_overlap() -> None:
    arguments = {**EAGLE, "disable-overlap-schedule": True}
    assert translate(arguments, {}, parser_of("0.5.10")).env == {OVERLAP: "0"}


def test_the_launchs_own_choice_of_overlap_stands() -> None:
    assert translate(EAGLE, {OVERLAP: "0"}, parser_of("0.5.10")).env == {OVERLAP: "0"}
    assert translate(EAGLE, {}, parser_of("0.5.10"), (OVERLAP,)).env == {}
    assert "does not read" in translate(EAGLE, {OVERLAP: "1"}, parser_of("0.5.23")).notes[0]


def test_trees_under_the_overlap_variable_are_illegal() -> None:
    tree = {**EAGLE, "speculative-eagle-topk": 4, "speculative-num-draft-tokens": 8, f"env.{OVERLAP}": "true"}
    found = engine_of("0.5.10").canonical(tree)
    assert isinstance(found, Illegal)
    assert (found.rule, "top-k 4" in found.reason) == ("version", True)
    assert isinstance(engine_of("0.5.23").canonical(tree), Candidate)
    assert unavailable(tree, {}, parser_of("0.5.6")) is None


def test_what_is_not_quite_the_same_is_told_with_the_command() -> None:
    tree = {**EAGLE, "speculative-eagle-topk": 4, "speculative-num-draft-tokens": 8}
    old = engine_of("0.5.10")
    candidate = old.canonical(tree)
    assert isinstance(candidate, Candidate)
    assert old.notes(candidate) == ("SGLang 0.5.10 drafts without overlap for EAGLE3 with top-k 4",)
    assert engine_of("0.5.23").notes(candidate) == ()


def test_an_unknown_newer_version_is_taken_by_its_parser() -> None:
    newer = type(parser_of("0.5.23"))("0.7.0", parser_of("0.5.23").by_name)
    assert translate(EAGLE, {}, newer).arguments == EAGLE


launches = st.fixed_dictionaries(
    {},
    optional={**{name: st.just(value) for name, value in LOSSLESS.items()}, "disable-decode-cuda-graph": st.just(True)},
)
old = st.sampled_from(versions())


@given(launches, old)
def test_translating_twice_changes_nothing(arguments: dict[str, Any], version: str) -> None:
    once = translate({**EAGLE, **arguments}, {}, parser_of(version))
    twice = translate(once.arguments, once.env, parser_of(version))
    assert (twice.arguments, twice.env, twice.problems) == (once.arguments, once.env, once.problems)


@given(launches, old)
def test_there_and_back(arguments: dict[str, Any], version: str) -> None:
    arguments = {name: value for name, value in arguments.items() if name in LOSSLESS}
    there = translate(arguments, {}, parser_of(version))
    assert not there.problems
    assert set(there.arguments) <= names_of(version)
    assert canonical_arguments(there.arguments).arguments == arguments


@given(st.dictionaries(st.sampled_from(sorted({*renamed(), *renamed().values(), *LOSSLESS})), st.integers(1, 4)))
def test_canonical_names_are_their_own(arguments: dict[str, Any]) -> None:
    once = canonical_arguments(arguments).arguments
    assert canonical_arguments(once).arguments == once
    assert not set(once) & set(renamed())
