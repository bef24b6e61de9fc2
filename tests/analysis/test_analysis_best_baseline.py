import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.analysis.best_baseline import Known, best_of


def test_one_alone_is_the_best():
    assert best_of(Known(4.0, 0.0001), []) == Known(4.0, 0.0001)


def test_what_is_clearly_slower_changes_nothing():
    found = best_of(Known(4.0, 0.0001), [Known(3.0, 0.0002)])
    assert found.mean == pytest.approx(4.0)
    assert found.variance == pytest.approx(0.0001)


def test_rivals_raise_the_best_and_narrow_it():
    found = best_of(Known(4.0, 0.0002), [Known(3.995, 0.0002)])
    assert 4.0 < found.mean < 4.012
    assert found.variance < 0.0002


@given(st.lists(st.tuples(st.floats(3.5, 4.5), st.floats(1e-6, 0.01)), max_size=6))
def test_the_best_is_at_least_as_good_as_the_one_relaunched(others):
    found = best_of(Known(4.0, 0.0002), [Known(mean, variance) for mean, variance in others])
    assert found.mean >= 4.0 - 0.002
    assert 0.0 < found.variance < 0.05
    assert math.isfinite(found.mean)


def test_the_best_is_found_without_bias_where_settings_differ_by_as_much_as_launches():
    rng, errors = random.Random(8), []
    for _ in range(400):
        true = [rng.gauss(4.0, 0.015) for _ in range(6)]
        once = [rng.gauss(value, 0.015) for value in true]
        picked = max(range(6), key=once.__getitem__)
        again = Known(true[picked] + rng.gauss(0, 0.0075), 0.0075**2)
        found = best_of(again, [Known(once[n], 0.015**2) for n in range(6) if n != picked])
        errors.append(found.mean - max(true))
    assert abs(sum(errors) / 400) < 0.003
