from __future__ import annotations

import json
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.errors import SpectuneError
from spectune.space import Candidate, canonical, canonical_json

names = st.from_regex(r"(env\.[A-Z_]{1,8}|[a-z]{1,6}(-[a-z0-9]{1,6}){0,2})", fullmatch=True)
texts = st.text(st.characters(exclude_characters="\0"), max_size=8)
scalars = st.one_of(texts, st.integers(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False))
values = st.one_of(scalars, st.lists(scalars, min_size=1, max_size=4))
assignments = st.dictionaries(names, values, max_size=8)


@given(assignments, st.randoms())
def test_the_id_does_not_depend_on_order_or_on_lists_against_tuples(assignment: dict, shuffler: random.Random) -> None:
    items = list(assignment.items())
    shuffler.shuffle(items)
    shuffled = {name: tuple(value) if isinstance(value, list) else value for name, value in items}
    assert Candidate.of(shuffled) == Candidate.of(assignment)
    assert Candidate.of(shuffled).candidate_id == Candidate.of(assignment).candidate_id
    assert hash(Candidate.of(shuffled)) == hash(Candidate.of(assignment))


@given(assignments)
def test_a_candidate_survives_json(assignment: dict) -> None:
    candidate = Candidate.of(assignment)
    read = Candidate.from_json(json.loads(json.dumps(candidate.to_json())))
    assert read == candidate
    assert canonical_json(dict(read.items)) == canonical_json(dict(candidate.items))


@given(values)
def test_canonical_is_idempotent(value: object) -> None:
    once = canonical(value)
    assert canonical_json(canonical(once)) == canonical_json(once)


def test_ids_are_stable_over_versions() -> None:
    candidate = Candidate.of({"speculative-algorithm": "EAGLE3", "cuda-graph-bs-decode": [1, 2], "x": True, "y": 0.5})
    assert candidate.candidate_id == "8ea9cebc1997"


def test_true_and_one_are_two_candidates_but_one_and_one_point_zero_are_one() -> None:
    assert Candidate.of({"a": True}) != Candidate.of({"a": 1})
    assert Candidate.of({"a": 1.0}) == Candidate.of({"a": 1})
    assert Candidate.of({"a": "1"}) != Candidate.of({"a": 1})
    assert Candidate.of({"a": 1}) != "a"


@pytest.mark.parametrize("bad", [None, math.nan, math.inf, [], [[1]], {"a": 1}, object()])
def test_what_no_engine_takes_is_refused(bad: object) -> None:
    with pytest.raises(ValueError, match=r"value|finite"):
        Candidate.of({"a": bad})


def test_properties_of_a_speculating_candidate() -> None:
    candidate = Candidate.of(
        {
            "speculative-algorithm": "EAGLE3",
            "speculative-draft-model-path": "runtime:drafter-strong",
            "speculative-num-steps": 3,
            "speculative-eagle-topk": 1,
            "speculative-num-draft-tokens": 4,
            "cuda-graph-bs-decode": [1, 2, 4, 8],
            "env.NCCL_ALGO": "unset",
            "env.NCCL_PROTO": "LL",
            "env.OMP_NUM_THREADS": 4,
        }
    )
    assert candidate.speculative
    assert (candidate.num_steps, candidate.eagle_topk, candidate.num_draft_tokens) == (3, 1, 4)
    assert candidate.drafter == "runtime:drafter-strong"
    assert candidate.env == {"NCCL_PROTO": "LL", "OMP_NUM_THREADS": "4"}
    assert candidate.unset_env == ("NCCL_ALGO",)
    assert list(candidate.arguments) == [
        "cuda-graph-bs-decode",
        "speculative-algorithm",
        "speculative-draft-model-path",
        "speculative-eagle-topk",
        "speculative-num-draft-tokens",
        "speculative-num-steps",
    ]
    assert candidate.label == "EAGLE3 strong 3,1,4 · graphs 1-8 · NCCL_PROTO=LL · OMP_NUM_THREADS=4"


@pytest.mark.parametrize("values", [{}, {"speculative-algorithm": "None"}, {"speculative-algorithm": "none"}])
def test_properties_of_a_baseline(values: dict) -> None:
    candidate = Candidate.of({**values, "disable-decode-cuda-graph": True, "cuda-graph-bs-decode": [1]})
    assert not candidate.speculative
    assert candidate.algorithm == "none"
    assert candidate.num_steps is candidate.drafter is None
    assert "speculative-algorithm" not in candidate.arguments
    assert candidate.label == "no speculation · graphs off"


@pytest.mark.parametrize(
    ("values", "label"),
    [
        ({"speculative-algorithm": "NGRAM"}, "NGRAM"),
        ({"speculative-algorithm": "EAGLE3", "speculative-draft-model-path": "org/a-b/"}, "EAGLE3 a-b"),
        ({"disable-decode-cuda-graph": False, "cuda-graph-bs-decode": [8]}, "no speculation · graphs 8"),
        ({"attention-backend": "fa3", "page-size": 16}, "no speculation · fa3 · page-size 16"),
        ({"overlap": True}, "no speculation · overlap true"),
    ],
)
def test_labels(values: dict, label: str) -> None:
    assert Candidate.of(values).label == label


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "mapping 'values'"),
        ({"values": {"a": None}}, "null is not a value"),
        ({"values": {"a": 1}, "candidate_id": "000000000000"}, "changed on disk"),
    ],
)
def test_a_record_that_is_not_what_was_written_is_refused(data: dict, message: str) -> None:
    with pytest.raises(SpectuneError, match=message):
        Candidate.from_json(data)
