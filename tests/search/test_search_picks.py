from dataclasses import replace

import pytest
from search_samples import SPACE, baseline, chain, level, record, space

from spectune.engines.protocol import Mismatch
from spectune.errors import SpectuneError
from spectune.search import Role, picked, weigh
from spectune.search.answer.picks import Pick
from spectune.serving import FailureClass

TWO = SPACE.replace("{minimize: ttft_p95_ms, level: c8}", "{maximize: output_throughput, level: c8}")


def at(trial, candidate, alone, together, **more):
    """A launch with these speeds at c1 and c8."""
    made = record(trial, candidate, **more)
    return replace(made, levels=(level("c1", alone), level("c8", together)))


RECORDS = [
    at(0, baseline(), 100.0, 60.0),
    at(1, chain(4), 180.0, 40.0),
    at(2, chain(2), 150.0, 58.0),
    at(3, chain(3), 179.5, 30.0),
    record(4, chain(1), failure=FailureClass.CRASH),
    record(5, chain(1, "org/weak"), 900.0, suspect=[Mismatch("page-size", 1, 64)]),
    at(6, chain(2), 150.0, 58.0, role=Role.CONFIRM),
]


def pick(asked, records=RECORDS, text=TWO):
    loaded = space(text)
    return picked(asked, records, weigh(records, loaded), loaded)


def test_latency_is_the_lightest_load_and_ties_go_to_the_simpler():
    found = pick("latency")
    assert (found.name, found.record.trial) == ("latency", 3)
    assert "decode speed of one request at c1" in found.why
    assert not found.confirmed


def test_throughput_is_the_heaviest_load_and_may_do_without_speculation():
    assert pick("throughput").record.trial == 0
    assert not pick("throughput").confirmed


def test_balanced_is_the_recommendation():
    found = pick("balanced")
    assert found.record.candidate == weigh(RECORDS, space(TWO)).recommended


@pytest.mark.parametrize("asked", ["０", "٢", "²", "-1", "+2", "2_0", "9" * 5000])
def test_only_ascii_digits_are_a_number(asked):
    with pytest.raises(SpectuneError, match="a pick is latency, throughput, balanced or the number of a launch"):
        pick(asked)


def test_a_number_says_which_launches_its_figures_are_of():
    assert pick("6") == Pick("trial-6", RECORDS[6], "picked by its number, 6", confirmed=True)
    assert pick("02").name == "trial-2"
    assert pick("2").record.trial == 2
    assert "the same configuration was launched again (6) to confirm it, and only those launches count" in pick("2").why
    assert not pick("1").confirmed
    again = at(7, chain(4), 181.0, 40.0)
    assert pick("1", [*RECORDS, again]).why.endswith("; the same configuration was launched again (7)")


def test_constraints_come_first():
    slow = replace(RECORDS[1], levels=(level("c1", 500.0), level("c8", 40.0, ttft_ms=900.0)))
    assert pick("latency", [RECORDS[0], slow, RECORDS[2]]).record.trial == 2


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("4", "launch 4 failed (crash: it was crash)"),
        ("5", "launch 5 is suspect (page-size is 64, not 1)"),
        ("7", "there is no launch 7 in this study (0 to 6)"),
        ("-1", "latency, throughput, balanced or the number of a launch, but got '-1'"),
        ("Latency", "but got 'Latency'"),
        ("", "but got ''"),
        ("$(id)", "but got '$(id)'"),
    ],
)
def test_what_cannot_be_picked_is_said_with_the_reason(asked, words):
    with pytest.raises(SpectuneError) as refused:
        pick(asked)
    assert words in str(refused.value)


def test_a_study_with_nothing_measured_has_nothing_to_pick():
    for asked in ("latency", "throughput", "balanced"):
        with pytest.raises(SpectuneError, match="nothing to pick"):
            pick(asked, [RECORDS[4]])
