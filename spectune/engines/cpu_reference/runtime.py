"""An installed runtime: where it is and what a launch on it needs."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from spectune.engines.cpu_reference.home import spectune_home
from spectune.engines.cpu_reference.recipe import PACKAGE, RECIPES, Recipe, recipe_named
from spectune.errors import SpectuneError
from spectune.files import read_json

MARKER_SCHEMA = 1

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


@dataclass(frozen=True)
class Layout:
    """The files of one runtime.

    Attributes:
        path: `$SPECTUNE_HOME/engines/<name>`.
    """

    path: Path

    @classmethod
    def of(cls, recipe: Recipe) -> Layout:
        """The layout of a recipe's runtime below the current `$SPECTUNE_HOME`."""
        return cls(spectune_home() / "engines" / recipe.name)

    @property
    def venv(self) -> Path:
        """The virtual environment; it cannot be moved, so it is built where it stays."""
        return self.path / "venv"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.venv / "bin" / "python"

    @property
    def marker(self) -> Path:
        """Which steps of the installation are done, and of which pins; written whole after each."""
        return self.path / "installed.json"

    @property
    def log(self) -> Path:
        """Everything pip said."""
        return self.path / "pip.log"

    @property
    def temporary(self) -> Path:
        """Where pip unpacks: on the same disk, and swept after an interruption."""
        return self.path / "tmp"

    @property
    def lock(self) -> Path:
        """Held while the runtime is changed; outside of its folder, which may go."""
        return self.path.with_name(f"{self.path.name}.lock")

    def content(self, recipe: Recipe) -> Path:
        """Overlay and models, named by their hash: a launch file exported earlier keeps those it was measured with."""
        return self.path / f"content-{recipe.content_digest()}"


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


def is_complete(layout: Layout, recipe: Recipe) -> bool:
    """Whether the last step of an installation with this recipe's pins was recorded."""
    marker = read_marker(layout)
    return marker.get("environment") == recipe.environment_digest() and marker.get("complete") is True


def read_marker(layout: Layout) -> dict[str, Any]:
    """The marker's content; empty where there is none that can be read."""
    try:
        marker = read_json(layout.marker)
    except SpectuneError:
        return {}
    return marker if isinstance(marker, dict) and marker.get("schema") == MARKER_SCHEMA else {}


def place_content(layout: Layout, recipe: Recipe) -> Path:
    """Copy overlay and models beside the environment, whole or not at all, unless they are there.

    Raises:
        SpectuneError: When they cannot be written.
    """
    content = layout.content(recipe)
    if content.exists():
        return content
    partial = content.with_suffix(".part")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        for folder in recipe.content:
            shutil.copytree(folder, partial / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
        partial.rename(content)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        if not content.exists():  # another process may just have placed the same
            reason = error.strerror or error
            raise SpectuneError(f"cannot write {content}: {reason}; make room or set SPECTUNE_HOME") from None
    return content


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
