"""The files of a runtime, and the marker that says how far its installation got."""

from __future__ import annotations

import shutil
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from spectune.engines.cpu_reference.home import spectune_home
from spectune.engines.cpu_reference.recipe import Recipe
from spectune.errors import SpectuneError
from spectune.files import read_json, write_json

MARKER_SCHEMA: Final = 1


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


def record(layout: Layout, recipe: Recipe, done: list[str], *, complete: bool = False) -> None:
    """Write the marker: which steps are done, and with which pins and Python."""
    write_json(
        layout.marker,
        {
            "schema": MARKER_SCHEMA,
            "name": recipe.name,
            "environment": recipe.environment_digest(),
            "python": python_version(),
            "done": done,
            "complete": complete,
        },
    )


def done_steps(layout: Layout) -> list[str]:
    """Steps of the installation that are done."""
    done = read_marker(layout).get("done", [])
    return [str(step) for step in done]


def python_version() -> str:
    """The Python a runtime is built with: the one that runs spectune."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def place_content(layout: Layout, recipe: Recipe) -> Path:
    """Copy overlay and models beside the environment, whole or not at all, unless they are there.

    Raises:
        SpectuneError: When they cannot be written.
    """
    content = layout.content(recipe)
    if content.exists():
        return content
    partial = layout.path / f".{content.name}.{uuid.uuid4().hex}"  # several may do this at once: finding takes no lock
    try:
        for folder in recipe.content:
            shutil.copytree(folder, partial / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
        partial.rename(content)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        if not content.exists():  # another process may just have placed the same
            reason = error.strerror or error
            raise SpectuneError(f"cannot write {content}: {reason}; make room or set SPECTUNE_HOME") from None
    return content
