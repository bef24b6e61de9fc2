import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.analysis.best_baseline import Known, Seen, believed

SD = 0.015


def best_of(configurations):
    return believed({str(number): one for number, one in enumerate(configurations)}).largest


def test_one_alone_is_the_best():
    assert best_of([Seen(None, Known(4.0, 0.0001))]) == Known(4.0, 0.0001)
    assert best_of([Seen(Known(4.3, 0.1), Known(4.0, 0.0001))]) == Known(4.0, 0.0001)


def test_what_is_clearly_slower_changes_nothing():
    found = best_of([Seen(Known(4.0, 0.0001), Known(4.0, 0.0001)), Seen(Known(3.0, 0.0002), None)])
    assert found.mean == pytest.approx(4.0, abs=0.0005)
    assert found.variance == pytest.approx(0.0001, rel=0.05)


def test_rivals_raise_the_best():
    found = best_of([Seen(Known(4.0, 0.0002), Known(4.0, 0.0001)), Seen(Known(3.995, 0.0002), None)])
    assert 4.001 < found.mean < 4.012


def test_launches_before_a_change_of_the_machine_do_not_shift_the_best():
    def searched(shift):
        others = [Seen(Known(value + shift, SD**2), None) for value in (3.99, 3.97, 3.95)]
        return best_of([Seen(Known(4.0 + shift, SD**2), Known(4.0, SD**2 / 3)), *others])

    assert searched(0.08).mean == pytest.approx(searched(0.0).mean)
    assert searched(0.08).variance == pytest.approx(searched(0.0).variance)


def test_what_was_confirmed_and_fell_behind_is_hardly_a_rival():
    again = Seen(Known(4.0, SD**2), Known(4.0, SD**2 / 4))
    rival, beaten = Seen(Known(4.0, SD**2), None), Seen(Known(4.0, SD**2), Known(3.96, SD**2 / 4))
    assert best_of([again, beaten]).mean < best_of([again, rival]).mean - 0.003


def test_what_was_searched_counts_only_where_something_was_both_searched_and_relaunched():
    relaunched = [Seen(None, Known(4.0, 0.0001)), Seen(None, Known(3.9, 0.0001))]
    assert best_of([*relaunched, Seen(Known(4.5, 0.0001), None)]) == best_of(relaunched)
    assert best_of(relaunched).mean == pytest.approx(4.0, abs=0.01)


@given(st.lists(st.tuples(st.floats(3.5, 4.5), st.floats(1e-6, 0.01)), max_size=6), st.booleans())
def test_the_best_is_at_least_as_good_as_the_one_relaunched(others, linked):
    again = Seen(Known(4.0, 0.0002) if linked else None, Known(4.0, 0.0002))
    found = best_of([again, *(Seen(Known(mean, variance), None) for mean, variance in others)])
    assert found.mean >= 4.0 - 0.002
    assert 0.0 < found.variance < 0.3
    assert math.isfinite(found.mean)


@pytest.mark.parametrize("settings", [0.008, 0.015, 0.03])
def test_the_best_is_found_without_bias_however_much_settings_differ(settings):
    rng, errors = random.Random(8), []
    for _ in range(400):
        true = [rng.gauss(4.0, settings) for _ in range(6)]
        once = [rng.gauss(value, SD) for value in true]
        picked = max(range(6), key=once.__getitem__)
        seen = [Seen(Known(value, SD**2), None) for value in once]
        seen[picked] = Seen(seen[picked].searched, Known(true[picked] + rng.gauss(0, SD / 2), SD**2 / 4))
        errors.append(best_of(seen).mean - max(true))
    assert abs(sum(errors) / 400) < 0.003
