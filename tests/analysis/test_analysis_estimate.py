import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.analysis.estimate import Estimate, batch_means, bootstrap, ratio
from spectune.bench.precision import relative_half_width, relative_half_width_of_ratio, t_quantile

positive = st.floats(0.1, 1000.0)


# Table of Student's t, as printed in any textbook.
@pytest.mark.parametrize(
    ("dof", "probability", "value"),
    [
        (1, 0.975, 12.7062),
        (2, 0.975, 4.30265),
        (3, 0.975, 3.18245),
        (4, 0.95, 2.13185),
        (5, 0.99, 3.36493),
        (9, 0.975, 2.26216),
        (10, 0.995, 3.16927),
        (30, 0.975, 2.04227),
        (120, 0.95, 1.65765),
        (math.inf, 0.975, 1.95996),
    ],
)
def test_t_quantile_matches_the_tables(dof, probability, value):
    assert t_quantile(probability, dof) == pytest.approx(value, rel=1e-4)
    assert t_quantile(1 - probability, dof) == pytest.approx(-value, rel=1e-4)


def test_t_quantile_of_the_median_is_zero():
    assert t_quantile(0.5, 7) == 0.0


def test_batch_means_covers_the_true_mean_95_times_in_100():
    rng = np.random.default_rng(1)
    covered = [e.lo <= 10.0 <= e.hi for e in (batch_means(list(rng.normal(10, 2, 8))) for _ in range(2000))]
    assert 0.935 <= np.mean(covered) <= 0.965


def test_one_window_knows_nothing_of_its_spread():
    found = batch_means([5.0])
    assert (found.est, found.lo, found.hi) == (5.0, -math.inf, math.inf)
    assert found.to_json() == [5.0, None, None]
    assert Estimate.from_json(found.to_json()) == found


def test_bootstrap_covers_a_ratio_under_a_fixed_mix_of_classes():
    rng = np.random.default_rng(2)
    covered = 0
    for trial in range(400):
        correct = np.concatenate([rng.binomial(40, 0.3, 20), rng.binomial(40, 0.8, 20)])
        rows = np.stack([correct, np.full(40, 40)], axis=1).astype(float)
        found = bootstrap(lambda s: 1 + s[..., 0] / s[..., 1], rows, ["a"] * 20 + ["b"] * 20, seed=trial)
        covered += found.lo <= 1.55 <= found.hi
    assert 0.91 <= covered / 400 <= 0.98


def test_bootstrap_is_repeatable_and_admits_ignorance():
    rows = np.array([[3.0, 2.0], [5.0, 2.0], [4.0, 2.0]])
    one, two = (bootstrap(lambda s: s[..., 0] / s[..., 1], rows, ["a"] * 3, seed=7) for _ in range(2))
    assert one == two
    alone = bootstrap(lambda s: s[..., 0] / s[..., 1], rows[:1], ["a"], seed=7)
    assert math.isinf(alone.hi)


def test_classes_with_one_request_are_joined():
    """What they differ by counts as spread, so the interval is rather too wide than unknown."""
    rows = np.array([[3.0, 2.0], [5.0, 2.0], [4.0, 2.0], [4.5, 2.0]])

    def drawn(classes):
        return bootstrap(lambda s: s[..., 0] / s[..., 1], rows[: len(classes)], classes, seed=7)

    assert drawn(["a", "b", "c"]) == drawn(["a", "a", "a"])
    assert drawn(["a", "a", "b"]) == drawn(["a", "a", "a"])
    apart = drawn(["a", "a", "b", "c"])  # two of each: as if b and c were one class
    assert apart == drawn(["a", "a", "b", "b"])


@given(top=positive, bottom=positive, down=st.floats(0, 0.5), up=st.floats(0, 0.5))
def test_a_ratio_and_its_inverse_mirror_each_other(top, bottom, down, up):
    one = Estimate(top, top * (1 - down), top * (1 + up))
    other = Estimate(bottom, bottom * (1 - up), bottom * (1 + down))
    forward, back = ratio(one, other), ratio(other, one)
    assert forward.est == pytest.approx(1 / back.est)
    assert forward.lo == pytest.approx(1 / back.hi)
    assert forward.hi == pytest.approx(1 / back.lo)


@given(top=positive, bottom=positive, width=st.floats(0, 0.5))
def test_a_ratio_to_an_exact_figure_only_scales(top, bottom, width):
    one = Estimate(top, top * (1 - width), top * (1 + width))
    found = ratio(one, Estimate.exactly(bottom))
    assert found.lo == pytest.approx(one.lo / bottom)
    assert found.hi == pytest.approx(one.scaled(1 / bottom).hi)


def test_a_ratio_to_an_unknown_figure_is_unknown():
    found = ratio(Estimate(2, 1, 3), Estimate(1, -math.inf, math.inf))
    assert (found.lo, found.hi) == (0.0, math.inf)


@pytest.mark.parametrize("data", [[1.0, 2.0], [None, 1.0, 2.0], []])
def test_what_is_no_estimate_is_refused(data):
    with pytest.raises(ValueError, match="must be"):
        Estimate.from_json(data)


def test_relative_half_widths():
    assert Estimate(10, 9, 11).relative_half_width == pytest.approx(0.1)
    assert Estimate.exactly(0.0).relative_half_width == 0.0
    samples = [9.0, 10.0, 11.0, 10.0]
    assert relative_half_width(samples) == pytest.approx(batch_means(samples).relative_half_width)
    assert math.isinf(relative_half_width([1.0]))
    assert math.isinf(relative_half_width([0.0, 0.0]))


def test_a_difference_between_classes_does_not_widen_the_ratio():
    same = [(4.0, 2.0)] * 5
    assert relative_half_width_of_ratio([same, [(10.0, 2.0)] * 5]) == pytest.approx(0.0)
    assert relative_half_width_of_ratio([[(4.0, 2.0), (6.0, 2.0)] * 5]) > 0.05
    assert math.isinf(relative_half_width_of_ratio([[(4.0, 2.0)], [(5.0, 2.0)]]))
    assert math.isinf(relative_half_width_of_ratio([]))
