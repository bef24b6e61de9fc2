"""Samplers by name: what `--sampler` may say."""

from __future__ import annotations

import importlib.util
import warnings
from typing import TYPE_CHECKING

from spectune.errors import SpectuneError
from spectune.search.storage.values import distribution, searched
from spectune.space import SearchSpace
from spectune.space.names import hint

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

GUIDED = "guided"
SAMPLERS = (GUIDED, "tpe", "gp", "nsga2", "random", "grid", "qmc")
STARTUP_LAUNCHES = 6
"""Launches after which a stock sampler stops drawing at random."""


def check_sampler(name: str, *, learns: bool = False) -> None:
    """Make sure a sampler exists and can be used.

    Args:
        name: The sampler.
        learns: Whether it is to begin with what an earlier study has learned.

    Raises:
        SpectuneError: It does not, or a package it needs is missing.
    """
    if name not in SAMPLERS:
        raise SpectuneError(f"'{name}' is not a sampler{hint(name, SAMPLERS)}")
    if name == "gp" and importlib.util.find_spec("torch") is None:
        raise SpectuneError("the sampler gp needs torch: install it with `pip install 'spectune[gp]'`, or take guided")
    if learns and name != GUIDED:
        raise SpectuneError(f"only the sampler {GUIDED} learns from an earlier study: drop --warm-start or '{name}'")


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
