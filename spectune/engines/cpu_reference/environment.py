"""The virtual environment of a runtime: made, and tried out at the end."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from typing import Final

from spectune.engines.cpu_reference.layout import Layout, python_version, read_marker, record
from spectune.engines.cpu_reference.machine import check_disk
from spectune.engines.cpu_reference.pip_process import bytes_below, pip_environment, signal_name
from spectune.engines.cpu_reference.recipe import Recipe
from spectune.engines.cpu_reference.runtime import engine_environment
from spectune.errors import SpectuneError

_VERIFICATION_SECONDS: Final = 300


def ensure_environment(layout: Layout, recipe: Recipe) -> None:
    """Make the virtual environment, unless the one that is there was made for these pins and this Python.

    Raises:
        SpectuneError: When it cannot be made, or the disk has too little room for what belongs into it.
    """
    marker = read_marker(layout)
    fits = marker.get("environment") == recipe.environment_digest() and marker.get("python") == python_version()
    shutil.rmtree(layout.temporary, ignore_errors=True)
    if fits and layout.python.exists():
        return
    # Whichever torch pip will find: with less room than the smallest runtime takes, nothing is begun.
    check_disk(layout.path, max(0, recipe.cpu_build.installed - bytes_below(layout.venv)))
    layout.marker.unlink(missing_ok=True)
    try:
        shutil.rmtree(layout.venv, ignore_errors=True)
        layout.venv.mkdir(parents=True)
        result = subprocess.run(
            [sys.executable, "-m", "venv", str(layout.venv)],
            capture_output=True,
            text=True,
            check=False,
            env=pip_environment(layout) | {"TMPDIR": str(layout.path)},
        )
    except OSError as error:
        reason = error.strerror or error
        raise SpectuneError(f"cannot write {layout.venv}: {reason}; make room or set SPECTUNE_HOME") from None
    if result.returncode:
        said = (result.stderr or result.stdout).strip().splitlines() or ["no output"]
        raise SpectuneError(
            f"`{sys.executable} -m venv {layout.venv}` failed: {said[-1]}; mend it and run the same command again"
        )
    record(layout, recipe, [])


def verify(layout: Layout, recipe: Recipe) -> None:
    """Run the recipe's verification in the new interpreter.

    Raises:
        SpectuneError: With the last line it printed.
    """
    content = layout.content(recipe)
    try:
        result = subprocess.run(
            [str(layout.python), "-c", recipe.verification],
            capture_output=True,
            text=True,
            check=False,
            timeout=_VERIFICATION_SECONDS,
            env=pip_environment(layout) | engine_environment(content),
        )
    except subprocess.TimeoutExpired:
        raise SpectuneError(
            f"the installed engine did not import within {_VERIFICATION_SECONDS} s; "
            "look at the machine's load, then run the same command again"
        ) from None
    if result.returncode:
        said = result.stderr.strip().splitlines() or [f"exit code {result.returncode}"]
        if result.returncode < 0:
            said.append(f"it was ended by {signal_name(-result.returncode)}")
        with contextlib.suppress(OSError), layout.log.open("a", encoding="utf-8") as log:
            log.write(f"$ verification\n{result.stderr}\n")
        raise SpectuneError(
            f"the installed engine does not run: {said[-1]}; "
            f"`spectune engine remove {recipe.name}` and install again; the full log is {layout.log}"
        )
