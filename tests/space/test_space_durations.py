from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.space import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("20m", 1200), ("1h", 3600), ("1h30m", 5400), ("1.5h", 5400), ("0.5s", 0.5), (" 1h 1m 1s ", 3661)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "bad", [20, 1.5, True, None, "", "  ", "20", "m", "20 minutes", "-5s", "0s", "5m1h", "1d", "２0m", [1]]
)
def test_what_is_no_duration(bad: object) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration(bad)


@given(st.integers(1, 10**6))
def test_whole_seconds_survive(seconds: int) -> None:
    assert parse_duration(format_duration(float(seconds))) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"), [(1200.0, "20m"), (90.0, "1m30s"), (5400.0, "1h30m"), (0.5, "0.5s"), (90.25, "90.25s")]
)
def test_formatting(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
