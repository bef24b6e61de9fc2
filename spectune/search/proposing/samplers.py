"""Optuna's samplers by name."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from spectune.sampler_names import check_sampler
from spectune.search.storage.values import distribution, searched
from spectune.space import SearchSpace

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

STARTUP_LAUNCHES = 6
"""Launches after which a stock sampler stops drawing at random."""


def stock_sampler(name: str, space: SearchSpace, *, seed: int) -> BaseSampler:
    """Return one of Optuna's samplers.

    Args:
        name: One of `SAMPLERS` but the guided one.
        space: What is searched.
        seed: Of its draws.
    """
    check_sampler(name)
    from optuna import exceptions, samplers

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", exceptions.ExperimentalWarning)
        match name:
            case "tpe":
                return samplers.TPESampler(
                    seed=seed, n_startup_trials=STARTUP_LAUNCHES, multivariate=True, group=True
                )  # fmt: skip
            case "gp":
                return samplers.GPSampler(seed=seed, n_startup_trials=STARTUP_LAUNCHES)
            case "nsga2":
                return samplers.NSGAIISampler(seed=seed, population_size=2 * STARTUP_LAUNCHES)
            case "grid":
                return samplers.GridSampler(_grid(space), seed=seed)
            case "qmc":
                return samplers.QMCSampler(seed=seed, warn_independent_sampling=False, warn_asynchronous_seeding=False)
            case _:
                return samplers.RandomSampler(seed=seed)


def _grid(space: SearchSpace) -> dict[str, list[str | int | float | bool | None]]:
    found: dict[str, list[str | int | float | bool | None]] = {}
    for parameter in searched(space):
        domain = distribution(parameter)
        choices = getattr(domain, "choices", None)
        found[parameter.name] = list(parameter.values) if choices is None else list(choices)  # type: ignore[arg-type]
    return found
