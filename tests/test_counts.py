"""Singular and plural are known in one place."""

from __future__ import annotations

import pytest

from spectune.counts import count


@pytest.mark.parametrize(
    ("amount", "noun", "words"),
    [
        (1, "launch", "1 launch"), (0, "launch", "0 launches"), (2, "process", "2 processes"), (1, "GPU", "1 GPU"),
        (8, "GPU", "8 GPUs"), (3, "study", "3 studies"), (2, "more pair", "2 more pairs"), (2, "day", "2 days"),
        (1_024, "prompt", "1,024 prompts"),
    ],
)  # fmt: skip
def test_a_count_agrees_with_its_noun(amount: int, noun: str, words: str) -> None:
    assert count(amount, noun) == words
