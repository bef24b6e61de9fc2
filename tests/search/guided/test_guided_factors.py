"""Models of launches that are off by orders of magnitude: no factorisation fails, and what is said stays finite."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from guided_world import engine, launch, search, space
from hypothesis import given
from hypothesis import strategies as st

from spectune.analysis.estimate import Estimate
from spectune.search.guided.effects import effects
from spectune.search.guided.factors import inverse, root
from spectune.search.proposing.proposals import Proposer
from spectune.search.storage.records import TrialRecord

SPACE = space()
JITTER = 1e-8


@given(count=st.integers(1, 12), seed=st.integers(0, 1000))
def test_what_has_a_root_is_left_as_it_is(count: int, seed: int) -> None:
    some = np.random.default_rng(seed).standard_normal((count, count + 2))
    covariance = 0.1 * some @ some.T / count
    jittered = covariance + JITTER * np.eye(count)
    assert np.array_equal(root(covariance, JITTER), np.linalg.cholesky(jittered))
    assert np.array_equal(inverse(covariance, JITTER), np.linalg.inv(jittered))


@given(scale=st.floats(1e2, 1e12), count=st.integers(3, 40), seed=st.integers(0, 1000))
def test_where_rounding_swallows_the_jitter_it_grows_with_the_variances(scale: float, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    some = rng.standard_normal((count, 2))
    covariance = scale * (some @ some.T + 1e-13 * rng.standard_normal((count, count)))
    covariance = (covariance + covariance.T) / 2.0
    found = root(covariance, JITTER)
    assert np.abs(found @ found.T - covariance).max() <= 1e-9 * scale
    assert (np.diag(inverse(covariance, JITTER)) > 0.0).all()
    assert np.isfinite(root(np.stack([covariance, np.eye(count)]), JITTER)).all()


def test_such_a_covariance_has_no_root_of_its_own() -> None:
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(np.full((3, 3), 1e12) - 1e-3 * np.eye(3) + JITTER * np.eye(3))
    assert np.isfinite(root(np.full((3, 3), 1e12) - 1e-3 * np.eye(3), JITTER)).all()


def test_what_is_not_finite_is_no_covariance() -> None:
    with pytest.raises(np.linalg.LinAlgError):
        root(np.full((2, 2), np.nan), JITTER)


@pytest.fixture(scope="module")
def launches() -> list[TrialRecord]:
    found = list(search(SPACE, 9))
    return [*found, launch(9, found[0].candidate), launch(10, found[4].candidate)]


def _times(estimate: Estimate, factor: float) -> Estimate:
    assert estimate.lo is not None
    assert estimate.hi is not None
    return Estimate(estimate.est * factor, estimate.lo * factor, estimate.hi * factor)


def _off(record: TrialRecord, speed: float, cycle: float) -> TrialRecord:
    levels = [
        replace(
            level, cycle_ms=_times(level.cycle_ms, cycle), decode_speed=_times(level.decode_speed, speed),
            output_throughput=_times(level.output_throughput, speed),
        )
        for level in record.levels
    ]  # fmt: skip
    return replace(record, levels=tuple(levels))


@pytest.mark.parametrize("at", [0, 4, 9])
@pytest.mark.parametrize(("speed", "cycle"), [(1e-3, 1e3), (1e-4, 1e4), (1e-300, 1e300), (1.0, 1e-13), (1e12, 1.0)])
def test_a_launch_that_is_far_off_is_searched_on_after(
    launches: list[TrialRecord], at: int, speed: float, cycle: float
) -> None:
    records = [_off(record, speed, cycle) if record.trial == at else record for record in launches]
    proposal = Proposer(SPACE, engine(SPACE)).propose(records)
    assert proposal is None or proposal.candidate not in {record.candidate for record in records}
    for effect in effects(records, SPACE, launches[4].candidate, engine(SPACE)):
        assert -1.0 <= effect.change.lo <= effect.change.est <= effect.change.hi <= 1000.0
