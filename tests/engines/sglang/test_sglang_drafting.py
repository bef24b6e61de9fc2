"""What is said of drafters, and how long their graphs may take."""

from __future__ import annotations

import pytest

from spectune.engines.sglang.drafting import capture_allowance_s, causes_of_nothing_accepted


@pytest.mark.parametrize(
    ("algorithm", "drafter", "first"),
    [
        ("EAGLE", "org/d", "the drafter org/d is an EAGLE-3 one, which EAGLE loads and never feeds: write EAGLE3"),
        ("nextn", None, "the checkpoint has no MTP layers of its own"),
        ("EAGLE3", "org/d", "the drafter org/d was made for another base model"),
        ("STANDALONE", "org/d", "the drafter org/d has another tokenizer"),
        ("NGRAM", None, "the answers repeat nothing"),
    ],
)
def test_the_first_cause_is_the_likeliest(algorithm: str, drafter: str | None, first: str) -> None:
    causes = causes_of_nothing_accepted(algorithm, drafter)
    assert causes[0].startswith(first)
    assert len(set(causes)) == len(causes)


def test_draft_graphs_take_time_to_capture() -> None:
    launch = {"cuda-graph-bs-decode": (1, 2, 4), "speculative-num-steps": 5}
    assert capture_allowance_s(launch) == 15.0
    for off in ("disable-decode-cuda-graph", "disable-cuda-graph"):
        assert capture_allowance_s({**launch, off: True}) == 0.0
    assert capture_allowance_s({**launch, "cuda-graph-backend-decode": "disabled"}) == 0.0
    assert capture_allowance_s({"cuda-graph-bs-decode": (1, 2)}) == 0.0
    assert capture_allowance_s({}) == 0.0
