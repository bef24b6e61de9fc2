"""What follows from the trials of a shared study, whoever reads them."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from shared_samples import record, step

from spectune.search.shared.entries import Entry, finished, holder, standing

ENDS = ["claimed", "running", "left", "given back", "withdrawn", "finished"]


def entry(number: int, launch: int, end: str, place: str = "a") -> Entry:
    at = step(launch, place=place)
    made = replace(record(launch, at.candidate, 100.0 + number, role=at.role), place=place)
    return Entry(
        number, at, f"worker-{place}", open=end in {"claimed", "running"}, beating=end == "running",
        withdrawn=end == "withdrawn", given_back=end == "given back", record=made if end == "finished" else None,
    )  # fmt: skip


histories = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(ENDS), st.sampled_from("ab")), max_size=12).map(
    lambda rows: [entry(number, *row) for number, row in enumerate(rows)]
)


@given(histories, st.randoms(use_true_random=False))
def test_the_order_in_which_trials_are_read_is_of_no_matter(history: list[Entry], random: object) -> None:
    shuffled = list(history)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert standing(shuffled, "a") == standing(history, "a")
    assert finished(shuffled) == finished(history)


@given(histories)
def test_a_launch_is_finished_or_running_or_left_and_only_one_of_these(history: list[Entry]) -> None:
    now = standing(history, "a")
    numbers = [r.trial for r in now.records] + [s.trial for s in (*now.running, *now.interrupted)]
    assert len(numbers) == len(set(numbers))
    claimed = {e.step.trial for e in history if not e.withdrawn}
    for_others = {e.step.trial for e in history if e.step.trial == 0}  # a baseline of another place stays theirs
    assert claimed - for_others <= set(numbers) <= claimed


@given(histories)
def test_the_first_that_finished_a_launch_counts_for_good(history: list[Entry]) -> None:
    for length in range(len(history)):
        before, after = finished(history[:length]), finished(history)
        assert all(after[launch] == counted for launch, counted in before.items())


@given(histories)
def test_one_claim_has_a_launch(history: list[Entry]) -> None:
    for launch in {e.step.trial for e in history}:
        has = holder(history, launch)
        if has is not None and has.record is None:
            rivals = [e for e in history if e.step.trial == launch and e.open]
            assert has == min(rivals, key=lambda e: e.number)


def test_claims_of_a_launch_that_is_finished_run_no_more() -> None:
    now = standing([entry(0, 1, "finished"), entry(1, 1, "running", "b")], "a")
    assert [r.trial for r in now.records] == [1]
    assert now.running == ()


def test_what_a_withdrawn_claim_leaves_is_nothing() -> None:
    assert standing([entry(0, 1, "withdrawn")], "a").interrupted == ()


def test_workers_that_were_lost_over_a_launch_are_counted_and_those_that_gave_it_back_are_not() -> None:
    ends = ["left", "given back", "withdrawn", "left"]
    now = standing([entry(number, 1, end) for number, end in enumerate(ends)], "a")
    assert ([s.trial for s in now.interrupted], now.lost) == ([1], {1: 2})


def test_a_number_that_was_another_launch_before_begins_anew() -> None:
    lost = [entry(number, 1, "left") for number in range(3)]
    other = [replace(one, step=replace(one.step, candidate=step(1, steps=2).candidate)) for one in lost]
    assert standing([other[0], *lost[1:]], "a").lost == {1: 1}
