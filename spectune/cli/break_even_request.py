"""What `spectune breakeven` is asked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from spectune.errors import SpectuneError

POINT = re.compile(r"[^/]*:[^/]*")  # no name of a study has a colon, and its folder has slashes


@dataclass(frozen=True)
class Given:
    """Figures somebody has."""

    baseline: float | None
    cycle_ms: float | None
    accept_length: float | None
    num_steps: int | None
    measured: float | None


@dataclass(frozen=True)
class Asked:
    """What is asked of a study.

    Attributes:
        candidate: The candidate in question, by its label, by a trial or by the beginning of its id.
        measure: Whether to launch it with forced accept lengths, instead of printing what is known.
        points: SAMPLES:ACCEPT_LENGTH of other drafters.
        tokens_per_sample: Tokens of one training sample; None unless points are given.
        space_file: Beside which the prompts to measure with lie.
    """

    candidate: str | None
    measure: bool
    points: Sequence[str]
    tokens_per_sample: int | None
    space_file: str | None


def split_words(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the study among what stands beside the options, and the points that follow the first one.

    Raises:
        SpectuneError: There is more than one study.
    """
    studies = [word for word in words if not POINT.fullmatch(word)]
    if len(studies) > 1:
        raise SpectuneError(f"breakeven takes one study, but got {', '.join(map(repr, studies))}")
    return (studies[0] if studies else None), [word for word in words if POINT.fullmatch(word)]
