"""How many answers one request may ask of the simulated engine."""

from __future__ import annotations

from typing import Any

import pytest

from spectune.engines.simulated.requests import MOST_ANSWERS, BadRequest, Limits, read

LIMITS = Limits(context=4096, kv=4096)


@pytest.mark.parametrize(
    "body",
    [
        {"text": ["x"] * (MOST_ANSWERS + 1)},
        {"input_ids": [[1]] * (MOST_ANSWERS + 1)},
        {"text": ["x"] * 2, "sampling_params": {"n": MOST_ANSWERS}},
    ],
    ids=["texts", "ids", "samples"],
)
def test_too_many_answers_are_refused(body: dict[str, Any]) -> None:
    with pytest.raises(BadRequest, match="answers at most 4096 prompts at once, but got"):
        read(body, LIMITS, ())


def test_as_many_as_may_be() -> None:
    assert len(read({"input_ids": [[1]] * MOST_ANSWERS}, LIMITS, ()).asks) == MOST_ANSWERS
    assert len(read({"input_ids": [1] * (MOST_ANSWERS + 1)}, Limits(context=9999, kv=9999), ()).asks) == 1
