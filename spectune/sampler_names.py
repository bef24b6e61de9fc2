"""Samplers by name: what `--sampler` may say. A leaf, so that a slip is told before anything heavy is imported."""

from __future__ import annotations

import importlib.util

from spectune.errors import SpectuneError
from spectune.space.names import hint

GUIDED = "guided"
SAMPLERS = (GUIDED, "tpe", "gp", "nsga2", "random", "grid", "qmc")


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
        raise SpectuneError(
            "the sampler gp needs torch: install it beside spectune with `pip install 'torch>=2.4'`, or take guided"
        )
    if learns and name != GUIDED:
        raise SpectuneError(f"only the sampler {GUIDED} learns from an earlier study: drop --warm-start or '{name}'")
