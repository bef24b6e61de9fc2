"""The client's side of a level against the server's."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_samples import level
from search_simulated import chain, write
from test_search_simulated import launch

from spectune.bench.records import CLIENT_ABORT, RequestRecord
from spectune.engines.served import Served
from spectune.search import Status
from spectune.search.launch.crosschecks import LevelSeen, tokens_counted


def request(tokens: int, verifies: int, correct: int, steps: int = 3, reason: str = "length") -> RequestRecord:
    each, more = divmod(correct, max(verifies, 1))
    histogram = [0] * (steps + 2)
    histogram[each : each + 2] = verifies - more, more
    return RequestRecord(
        "p", "code", 20, tokens, 0, 0.0, 0.1, 2.0, ((0.1, 1), (2.0, tokens)), verifies, correct,
        tuple(histogram[: steps + 1]), reason, None,
    )  # fmt: skip


def seen(served: Served, **changes: object) -> LevelSeen:
    settings = {"measured": level("c8", 100.0, 2.0), "records": [request(101, 50, 50)] * 8, "concurrency": 8} | changes
    return LevelSeen(served=served, **settings)  # type: ignore[arg-type]


BUSY = Served(running=7.9, queued=0.0)


def fields(found: LevelSeen) -> list[str]:
    return [mismatch.field for mismatch in found.contradictions()]


def test_two_sides_that_agree_raise_no_doubt() -> None:
    assert fields(seen(BUSY, distinct_prompts=True, most_running=16)) == []
    assert seen(BUSY, most_running=16).notes() == []
    assert fields(seen(Served())) == []  # a log that says nothing contradicts nothing


@given(seed=st.integers(0, 10**6), steps=st.integers(1, 8), limit=st.integers(8, 300))
def test_the_last_verify_may_count_beyond_the_end_of_an_answer(seed: int, steps: int, limit: int) -> None:
    rng, records = random.Random(seed), []
    for _ in range(8):
        tokens, verifies, correct = 1, 0, 0
        while tokens < limit:
            accepted = rng.randint(0, steps)
            tokens, verifies, correct = tokens + accepted + 1, verifies + 1, correct + accepted
        records.append(request(limit, verifies, correct, steps))
    assert fields(seen(BUSY, records=records)) == []


@pytest.mark.parametrize("received", [60, 150])
def test_tokens_that_the_server_did_not_count_or_that_never_came(received: int) -> None:
    (mismatch,) = seen(BUSY, records=[request(received, 50, 50)] * 8).contradictions()
    assert mismatch.field == "tokens by the server's counters at c8"
    assert (mismatch.wanted, mismatch.got) == (8 * received, 8 * 101)


@pytest.mark.parametrize("histogram", [(0, 0, 0, 100), (10, 0, 0, 0)])
def test_a_histogram_that_counts_something_else(histogram: tuple[int, ...]) -> None:
    odd = dataclasses.replace(request(101, 50, 50), spec_correct_drafts_histogram=histogram)
    (mismatch,) = seen(BUSY, records=[odd] * 8).contradictions()
    assert mismatch.field == "verifies and accepted drafts in the histograms at c8"
    assert mismatch.wanted == 8 * 100


def test_requests_without_counters_are_not_compared() -> None:
    assert tokens_counted([request(100, 0, 0), request(100, 3, 3, reason=CLIENT_ABORT)]) is None


def test_requests_that_wait_for_room_make_another_level_of_it() -> None:
    (mismatch,) = seen(Served(running=5.0, queued=3.0), most_running=16).contradictions()
    assert (mismatch.field, mismatch.wanted, mismatch.got) == ("running requests at c8", 8, 5.0)


def test_requests_between_two_answers_do_not_wait() -> None:
    assert fields(seen(Served(running=6.5, queued=0.1))) == []


def test_an_engine_that_was_told_to_run_fewer_is_as_asked_and_says_so() -> None:
    told = seen(Served(running=4.0, queued=4.0), most_running=4)
    assert fields(told) == []
    assert "runs at most 4 of 8 requests at once" in told.notes()[0]
    assert fields(seen(Served(running=3.0, queued=5.0), most_running=4)) == ["running requests at c8"]
    ranks = seen(Served(running=7.8, queued=0.0, ranks=2), most_running=4)
    assert (fields(ranks), ranks.notes()) == ([], [])


def test_retractions_count_for_the_level_they_happened_in() -> None:
    thrown_out = dataclasses.replace(BUSY, retractions=3)
    assert fields(seen(thrown_out, retractions_before=3)) == []
    (mismatch,) = seen(thrown_out, retractions_before=1).contradictions()
    assert (mismatch.wanted, mismatch.got) == (0, 2)


def test_cached_prompts_are_suspect_only_where_none_can_be() -> None:
    cached = dataclasses.replace(level("c8", 100.0, 2.0), cached_share=0.9)
    assert fields(seen(BUSY, measured=cached)) == []
    assert fields(seen(BUSY, measured=cached, distinct_prompts=True)) == ["prompt tokens from the cache at c8"]


@pytest.mark.parametrize("virtual", [True, False])
def test_a_cache_that_holds_fewer_requests_than_are_sent_makes_the_launch_suspect(
    tmp_path: Path, *, virtual: bool
) -> None:
    file = write(tmp_path, virtual=virtual)
    text = file.read_text().replace("  args:\n", "  args:\n    max-total-tokens: 200\n")
    file.write_text(text)
    record = launch(file, chain(2))
    assert record.status is Status.SUSPECT
    assert "running requests at c4" in {mismatch.field for mismatch in record.suspect}
    assert record.level("c1") is not None
