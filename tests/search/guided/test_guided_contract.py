"""Optuna's own contract for samplers, without a guide: any search space."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from optuna import Trial, create_study
from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    MultiObjectiveSamplerTestCase,
    RelativeSamplerTestCase,
)

from spectune.search.guided.sampler import GuidedSampler


class TestGuidedSampler(BasicSamplerTestCase, RelativeSamplerTestCase, MultiObjectiveSamplerTestCase):
    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: GuidedSampler(seed=0)


def square(trial: Trial) -> float:
    return (trial.suggest_float("x", -5, 5) - 1) ** 2 + trial.suggest_int("k", 0, 9)


def drawn(objective: Callable[[Trial], float], sampler: BaseSampler) -> list[dict[str, Any]]:
    study = create_study(sampler=sampler)
    study.optimize(objective, n_trials=12)
    return [trial.params for trial in study.trials]


def test_only_the_order_of_values_counts_so_a_penalty_hides_nothing() -> None:
    def penalised(trial: Trial) -> float:
        value = square(trial)
        return value if value < 10 else 1e6 * value

    assert drawn(square, GuidedSampler(seed=0)) == drawn(penalised, GuidedSampler(seed=0))


def test_a_sampler_can_be_kept_in_a_file_as_those_of_optuna() -> None:
    sampler = GuidedSampler(seed=0)
    kept = pickle.loads(pickle.dumps(sampler))
    assert drawn(square, kept) == drawn(square, sampler)
