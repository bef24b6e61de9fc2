"""The cpu-reference runtime: the unmodified SGLang wheel on a machine without a GPU, with tiny models to serve."""

from spectune.engines.cpu_reference.home import spectune_home
from spectune.engines.cpu_reference.installer import estimate_cost, install, remove
from spectune.engines.cpu_reference.recipe import CPU_REFERENCE, recipe_named
from spectune.engines.cpu_reference.runtime import Runtime, find, installed, planned

__all__ = [
    "CPU_REFERENCE",
    "Runtime",
    "estimate_cost",
    "find",
    "install",
    "installed",
    "planned",
    "recipe_named",
    "remove",
    "spectune_home",
]
