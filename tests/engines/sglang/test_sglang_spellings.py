"""A user of an older SGLang writes a space as they know it."""

from __future__ import annotations

from pathlib import Path

import pytest
from parsers import parser_of

from spectune.engines.sglang.versions.accepted import accepted_arguments
from spectune.engines.sglang.versions.space_spelling import in_canonical_spelling
from spectune.errors import InputProblems
from spectune.space import SearchSpace, parse_space

TEMPLATE = """schema: 1
name: mine
engine: {{python: python3, gpus: 8, args: {{model-path: org/model{args}}}}}
search:
  speculative-algorithm: [none, EAGLE3]
  speculative-draft-model: [org/a, org/b]
{search}
"""


def load(version: str, search: str = "", args: str = "", forbid: str = "") -> SearchSpace:
    lines = "".join(f"  {line}\n" for line in search.split("\n") if line)
    text = TEMPLATE.format(args=args, search=lines) + (f"forbid: [{forbid}]\n" if forbid else "")
    return parse_space(text, Path("mine.yaml"), accepted_arguments(parser_of(version)))


def test_older_names_become_todays_with_a_note() -> None:
    space = load(
        "0.5.10",
        "cuda-graph-max-bs: [8, 16]\nattention-backend: [nsa, fa3]",
        ", enable-dp-attention: true, dp-size: 2, enable-flashinfer-allreduce-fusion: true",
        "{cuda-graph-max-bs: '>8', attention-backend: nsa}",
    )
    new, notes = in_canonical_spelling(space)
    assert set(new.parameters) == {
        "speculative-algorithm", "speculative-draft-model-path", "cuda-graph-max-bs-decode", "attention-backend",
    }  # fmt: skip
    assert new.parameters["attention-backend"].values == ("dsa", "fa3")
    assert new.engine.args == {
        "model-path": "org/model", "attn-dp-size": 2, "flashinfer-allreduce-fusion-backend": "auto",
    }  # fmt: skip
    assert new.forbid[0].names == ("cuda-graph-max-bs-decode", "attention-backend")
    assert new.forbid[0].to_plain()["attention-backend"] == "dsa"
    assert any("cuda-graph-max-bs is called cuda-graph-max-bs-decode" in note for note in notes)
    assert new.text == space.text
    assert in_canonical_spelling(new) == (new, ())


def test_a_searched_group_count_becomes_attention_dp() -> None:
    new, _ = in_canonical_spelling(load("0.5.10", "dp-size: [1, 2]", ", enable-dp-attention: true"))
    assert new.parameters["attn-dp-size"].values == (1, 2)
    assert new.engine.args == {"model-path": "org/model"}


def test_one_option_under_two_names_is_refused() -> None:
    space = load("0.5.14", "cuda-graph-max-bs: [8]\ncuda-graph-max-bs-decode: [16]")
    with pytest.raises(InputProblems, match=r"mine.yaml:\d+: .*same option"):
        in_canonical_spelling(space)


def test_fixed_twice_under_two_names_is_refused() -> None:
    with pytest.raises(InputProblems, match="keep one"):
        in_canonical_spelling(load("0.5.14", args=", cuda-graph-max-bs: 8, cuda-graph-max-bs-decode: 16"))


@pytest.mark.parametrize(
    ("version", "search", "words"),
    [
        ("0.5.10", "speculative-adaptive: [false, true]", "which came with 0.5.11"),
        ("0.5.6", "speculative-draft-attention-backend: fa3", "which came with 0.5.7"),
        ("0.5.6", "piecewise-cuda-graph-tokens: '[1, 2'", "must be an integer"),
        ("0.5.10", "cuda-graph-bs: many", "must be an integer"),
        ("0.5.10", "cuda-graph-max-bss: 8", "did you mean 'cuda-graph-max-bs'"),
        ("0.5.10", "disable-cuda-graph: 3", "true or false"),
        ("0.5.23", "attn-dp-size: two", "must be an integer"),
    ],
)
def test_what_the_version_cannot_do_is_said_with_its_line(version: str, search: str, words: str) -> None:
    with pytest.raises(InputProblems) as refused:
        load(version, search)
    assert [problem.line for problem in refused.value.problems] == [7]
    assert words in str(refused.value)


TODAYS = "attn-dp-size: [1, 2]\ncuda-graph-bs-decode: [[1, 2], [1, 2, 4]]\ndisable-decode-cuda-graph: [false, true]"
OWN = "cuda-graph-bs: [[1, 2]]\npiecewise-cuda-graph-tokens: [[1, 2], [4]]\nenable-dp-attention: [true]"


@pytest.mark.parametrize("version", ["0.5.6", "0.5.10", "0.5.14", "0.5.23"])
@pytest.mark.parametrize("search", [TODAYS, OWN])
def test_todays_names_and_the_versions_own_both_load(version: str, search: str) -> None:
    load(version, search)
