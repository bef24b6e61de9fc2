"""An installed runtime: where it is and what a launch on it needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from spectune.engines.cpu_reference.layout import Layout, is_complete, place_content
from spectune.engines.cpu_reference.recipe import PACKAGE, RECIPES, Recipe, recipe_named

# Default SGLang arguments of a launch; a search space may override each.
_ARGUMENTS: Mapping[str, Any] = MappingProxyType(
    {
        "device": "cpu",
        # The only CPU backend that serves speculation; the overlay brings its ops and keeps it chosen without AMX.
        "attention-backend": "intel_amx",
        # SGLang claims this share of the machine's memory before it looks at the pool below; the models need a few MB.
        "mem-fraction-static": 0.1,
        # Slots of the key/value cache: 32 requests of 512 tokens. Unset, it would fill the share above.
        "max-total-tokens": 16384,
    }
)

_ENVIRONMENT: Mapping[str, str] = MappingProxyType(
    {
        "SGLANG_USE_CPU_ENGINE": "1",
        # Everything is on disk; without this each start asks the hub, and waits where there is no network.
        "HF_HUB_OFFLINE": "1",
        # Threads of tiny matrix products wait for each other: 10 to 40 times slower without.
        "OMP_NUM_THREADS": "1",
        # Compiling needs a C++ compiler and the real triton, and the first requests would wait for it.
        "TORCHDYNAMO_DISABLE": "1",
        # The tokenizer's threads and the server's forks do not go together; it would warn at each start.
        "TOKENIZERS_PARALLELISM": "false",
    }
)


@dataclass(frozen=True)
class Runtime:
    """An engine environment of spectune's own.

    Attributes:
        name: Its name.
        path: Its folder.
        python: The interpreter that has the engine.
        sglang_version: Version of the engine in it.
        env: Variables a launch needs.
        args: SGLang arguments a launch needs unless it has its own.
        models: Folder of the tiny models.
    """

    name: str
    path: Path
    python: Path
    sglang_version: str
    env: dict[str, str]
    args: dict[str, Any]
    models: Path


def find(name: str) -> Runtime | None:
    """Return a runtime that is installed whole, with the pins of this version of spectune; None otherwise.

    Raises:
        SpectuneError: When there is no runtime of that name.
    """
    return find_recipe(recipe_named(name))


def find_recipe(recipe: Recipe) -> Runtime | None:
    """`find` for any recipe. Puts this version's overlay and models in place where they are not yet."""
    layout = Layout.of(recipe)
    if not (layout.python.exists() and is_complete(layout, recipe)):
        return None
    content = place_content(layout, recipe)
    return _runtime(recipe, layout, content)


def installed() -> list[Runtime]:
    """Return all runtimes that are installed whole."""
    return [runtime for name in RECIPES if (runtime := find(name)) is not None]


def planned(name: str) -> Runtime:
    """Return a runtime as it would be if it were installed, with the packaged overlay and models; touches nothing.

    Raises:
        SpectuneError: When there is no runtime of that name.
    """
    recipe = recipe_named(name)
    return _runtime(recipe, Layout.of(recipe), PACKAGE)


def engine_environment(content: Path) -> dict[str, str]:
    """Variables of every process that runs the engine."""
    return {**_ENVIRONMENT, "PYTHONPATH": str(content / "overlay")}


def _runtime(recipe: Recipe, layout: Layout, content: Path) -> Runtime:
    return Runtime(
        name=recipe.name,
        path=layout.path,
        python=layout.python,
        sglang_version=recipe.engine_version,
        env=engine_environment(content),
        args=dict(_ARGUMENTS),
        models=content / "models",
    )
