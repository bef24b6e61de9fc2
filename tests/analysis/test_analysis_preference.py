import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.analysis.best_baseline import Known, Seen, believed
from spectune.analysis.preference import TIE_MARGIN, preferred, simpler_by


def branch(noise, **speeds):
    return believed({name: Seen(None, Known(math.log(speed), noise**2)) for name, speed in speeds.items()})


MANY = 1e6
"""Degrees of freedom of a noise that is known."""
PLAIN, FLAGGED, TREE = (1, 3, 4, 0), (1, 3, 4, 1), (2, 3, 12, 0)


def test_within_the_margin_the_simpler_one_is_run_and_beyond_it_the_faster():
    keys = {"plain": PLAIN, "tree": TREE}
    assert preferred(branch(0.002, plain=100.0, tree=100.5), keys, MANY) == "plain"
    assert preferred(branch(0.002, plain=100.0, tree=103.0), keys, MANY) == "tree"


def test_where_the_noise_is_wide_and_configurations_differ_the_best_measured_is_run():
    found = branch(0.045, plain=100.0, tree=106.0, weak=50.0)
    assert preferred(found, {"plain": PLAIN, "tree": TREE}, MANY) == "tree"


def test_where_configurations_are_seen_to_differ_less_than_launches_do_the_order_is_luck():
    found = branch(0.045, plain=100.0, tree=103.0, other=101.5)
    assert preferred(found, {"plain": PLAIN, "tree": TREE}, MANY) == "plain"


def test_a_flag_has_to_be_shown_to_help():
    keys = {"plain": PLAIN, "flagged": FLAGGED}
    assert preferred(branch(0.015, plain=100.0, flagged=103.0), keys, MANY) == "plain"
    assert preferred(branch(0.005, plain=100.0, flagged=103.0), keys, MANY) == "flagged"


def test_where_few_launches_tell_the_noise_a_flag_has_to_help_by_more():
    keys, found = {"plain": PLAIN, "flagged": FLAGGED}, branch(0.004, plain=100.0, flagged=101.5)
    assert (preferred(found, keys, MANY), preferred(found, keys, 3.0)) == ("flagged", "plain")


@given(st.lists(st.tuples(st.floats(3.0, 5.0), st.integers(0, 6), st.integers(0, 2)), min_size=1, max_size=8))
def test_what_is_run_is_no_slower_than_the_margin_unless_it_lacks_a_flag(told):
    names = {str(n): one for n, one in enumerate(told)}
    found = believed({name: Seen(None, Known(mean, 0.015**2)) for name, (mean, _, _) in names.items()})
    keys = {name: (1, steps, steps + 1, flags) for name, (_, steps, flags) in names.items()}
    chosen, best = preferred(found, keys, MANY), max(names, key=found.expected)
    lead = found.lead(best, chosen)
    assert lead.mean <= TIE_MARGIN or keys[chosen][:-1] == keys[best][:-1]
    assert lead.mean <= max(TIE_MARGIN, 1.96 * math.sqrt(lead.variance))
    assert keys[chosen] <= keys[best]


def test_what_is_expected_lies_between_what_was_measured_and_the_mean_of_the_branch():
    found = branch(0.02, slow=95.0, middle=100.0, fast=105.0)
    middle = math.log(95.0 * 100.0 * 105.0) / 3
    assert middle < found.expected("fast") < math.log(105.0)
    assert found.lead("fast", "slow").mean == pytest.approx(found.expected("fast") - found.expected("slow"))


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        (PLAIN, TREE, "a chain instead of a tree"),
        ((1, 2, 3, 9), PLAIN, "fewer draft steps"),
        ((2, 3, 6, 0), TREE, "fewer draft tokens"),
        (PLAIN, FLAGGED, "it has fewer system flags, which are not shown to help"),
    ],
)
def test_by_what_one_is_simpler_is_told(one, other, said):
    assert simpler_by(one, other).endswith(said)
    assert simpler_by(other, one) is None
    assert simpler_by(one, one) is None
