from dataclasses import dataclass, field

import pytest

from spectune.bench.silence import Silence


@dataclass(frozen=True)
class Request:
    """What the rule looks at, of an exchange or of a record."""

    sent_s: float = 0.0
    chunks: tuple = field(default=())
    prompt_tokens: int = 100


def answered(gap_s=0.05, ttft_s=0.2, sent_s=0.0, chunks=20):
    return Request(sent_s, tuple((sent_s + ttft_s + i * gap_s, 1 + i) for i in range(chunks)))


def patience(waiting, ended=(), *, hang_s=60.0, until=80.0):
    """How long a silence from 10 s on is borne, looked at ten times a second."""
    silence = Silence(5.0, hang_s, 1.0)
    for tick in range(11, int(until * 10)):
        if silence.too_long(tick / 10, min(tick / 10, 10.0), waiting, ended) is not None:
            return tick / 10 - 10.0
    return None


@pytest.mark.parametrize(
    ("waiting", "ended", "expected"),
    [
        ([answered()], [], 5.0),  # 20 chunks of 50 ms are one second: the floor holds
        ([answered(gap_s=0.5)], [], 10.0),
        ([answered(gap_s=0.5)], [answered()] * 2, 5.0),  # the median request is fast
        ([answered(gap_s=9.0)], [], 60.0),
        ([Request()], [], 60.0),  # nothing is known yet
        ([answered(chunks=1)], [], 60.0),
        ([Request()], [answered()], 5.0),
        ([Request(prompt_tokens=1000)], [answered()], 40.0),  # a prompt ten times as long may take its time
        ([Request(prompt_tokens=300)] * 2, [answered()], 24.0),
        ([Request(prompt_tokens=10**6)], [answered()], 60.0),
    ],
)
def test_how_long_a_silence_is_borne(waiting, ended, expected):
    assert patience(waiting, ended) == pytest.approx(expected, abs=0.11)


def test_the_cap_is_below_the_floor_where_it_is_set_so():
    assert patience([answered()], hang_s=2.0) == pytest.approx(2.0, abs=0.11)


def test_the_time_in_which_nobody_could_look_is_counted():
    silence = Silence(5.0, 60.0, 1.0)
    for now_s in (1.1, 1.9, 5.0, 5.1, 7.6):
        assert silence.too_long(now_s, 1.0, [answered()], []) is None
    assert silence.blind_s == pytest.approx(3.1 + 2.5)


def test_nobody_waits_so_nobody_hangs():
    assert patience([], [answered()]) is None


def test_one_long_pause_changes_nothing():
    paused = Request(0.0, ((0.2, 1), (0.25, 2), (2.3, 3)))
    assert patience([paused], [answered()] * 5) == pytest.approx(5.0, abs=0.11)


def test_new_requests_do_not_break_the_silence():
    # Where they arrive by the clock they never cease to, whether or not the engine lives.
    assert patience([answered(), answered(sent_s=13.0)]) == pytest.approx(5.0, abs=0.11)


def test_an_engine_that_had_nothing_to_do_was_not_silent():
    assert patience([Request(sent_s=13.0)], [answered()]) == pytest.approx(8.0, abs=0.11)


def test_a_client_that_was_stopped_itself_has_seen_no_silence():
    silence = Silence(5.0, 60.0, 1.0)
    waiting = [answered()]
    assert silence.too_long(1.1, 1.1, waiting, ()) is None
    assert silence.too_long(90.0, 1.1, waiting, ()) is None
    assert all(silence.too_long(90.0 + tick / 10, 1.1, waiting, ()) is None for tick in range(50))
    assert silence.too_long(95.1, 1.1, waiting, ()) == 5.0
