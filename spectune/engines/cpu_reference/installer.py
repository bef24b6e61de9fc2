"""Builds, renews and removes a runtime: resumable, one process at a time, nothing printed.

The steps are recorded in a marker that is written whole after each. A step that was interrupted is done again; an
environment of other pins or another Python is built anew.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from filelock import FileLock, Timeout

from spectune.engines.cpu_reference.cost import InstallPlan, index_arguments, make_plan
from spectune.engines.cpu_reference.machine import check_machine
from spectune.engines.cpu_reference.occupants import processes_of
from spectune.engines.cpu_reference.pip_process import pip_environment, run_pip
from spectune.engines.cpu_reference.recipe import CPU_REFERENCE, Recipe, recipe_named
from spectune.engines.cpu_reference.runtime import (
    MARKER_SCHEMA,
    Layout,
    Runtime,
    engine_environment,
    find_recipe,
    place_content,
    read_marker,
)
from spectune.errors import SpectuneError
from spectune.files import write_json

ProgressCallback = Callable[[str, float], None]
"""Gets the step under way, in words, and the share of the whole installation that is done, 0 to 1, never falling."""

# Share of the whole at which each step ends, by the time it takes with a warm pip cache.
_ENDS: Final = {"environment": 0.06, "torch": 0.45, "packages": 0.75, "engine": 0.9, "verification": 1.0}
_VERIFICATION_SECONDS: Final = 300


def estimate_cost(torch_index: str | None = None, *, recipe: Recipe = CPU_REFERENCE) -> InstallPlan:
    """Say what `install` will cost here. Makes the (small) empty environment whose pip is asked.

    Args:
        torch_index: Package index to take torch from instead of pip's configured one.
        recipe: What would be installed.

    Raises:
        SpectuneError: When this machine cannot have the runtime, in one sentence.
    """
    check_machine()
    layout = Layout.of(recipe)
    with _exclusively(layout):
        _ensure_environment(layout, recipe)
        return make_plan(layout, recipe, torch_index)


def install(
    runtime: str = CPU_REFERENCE.name,
    torch_index: str | None = None,
    progress: ProgressCallback | None = None,
    *,
    recipe: Recipe | None = None,
) -> Runtime:
    """Install a runtime, or go on with an interrupted installation; at once if it is there.

    Args:
        runtime: Its name.
        torch_index: Package index to take torch from instead of pip's configured one.
        progress: Told about every step; nothing is printed.
        recipe: What to install instead of the runtime of that name.

    Raises:
        SpectuneError: When this machine cannot have it, pip fails or the result does not run.
    """
    recipe = recipe or recipe_named(runtime)
    found = find_recipe(recipe)
    if found is not None:
        return found
    check_machine()
    layout = Layout.of(recipe)
    with _exclusively(layout):
        found = find_recipe(recipe)  # another process may have finished it meanwhile
        if found is None:
            _Installation(layout, recipe, torch_index, progress or _ignore).run()
            found = find_recipe(recipe)
    assert found is not None, "an installation that ran to its end can be found"
    return found


def remove(name: str) -> None:
    """Delete a runtime with everything in it.

    Raises:
        SpectuneError: When it is not installed, or an engine of it is running.
    """
    remove_recipe(recipe_named(name))


def remove_recipe(recipe: Recipe) -> None:
    """`remove` for any recipe."""
    layout = Layout.of(recipe)
    if not layout.path.exists():
        raise SpectuneError(f"the runtime {recipe.name} is not installed: there is no {layout.path}")
    with _exclusively(layout):
        if pids := processes_of(layout.path):
            listed = ", ".join(map(str, pids))
            raise SpectuneError(
                f"the runtime {recipe.name} is used by process {listed}; stop it first (`kill {pids[0]}`)"
            )
        layout.marker.unlink(missing_ok=True)  # first: half a runtime must not be found
        try:
            shutil.rmtree(layout.path)
        except OSError as error:
            raise SpectuneError(f"cannot remove {layout.path}: {error.strerror or error}; remove it by hand") from None


class _Installation:
    """One run through the steps that are not done yet."""

    def __init__(self, layout: Layout, recipe: Recipe, torch_index: str | None, progress: ProgressCallback) -> None:
        self._layout = layout
        self._recipe = recipe
        self._torch_index = torch_index
        self._progress = progress
        self._share = 0.0

    def run(self) -> None:
        """All steps, in order."""
        layout, recipe = self._layout, self._recipe
        self._report("creating the environment", 0.0)
        _ensure_environment(layout, recipe)
        self._report("looking for torch", _ENDS["environment"])
        plan = make_plan(layout, recipe, self._torch_index)
        # A CUDA build does not import without its libraries, whose list only pip's resolver knows.
        dependencies = ["-c", str(recipe.lock)] if plan.torch_build == "cuda" else ["--no-deps"]
        index = index_arguments(self._torch_index)
        self._pip_step("torch", "installing torch", plan, [*dependencies, *index, recipe.torch])
        self._pip_step("packages", "installing the server's packages", plan, ["--no-deps", "-r", str(recipe.lock)])
        self._pip_step("engine", "installing SGLang", plan, ["--no-deps", recipe.engine])
        self._report("verifying", _ENDS["engine"])
        place_content(layout, recipe)
        _verify(layout, recipe)
        shutil.rmtree(layout.temporary, ignore_errors=True)
        _record(layout, recipe, _done(layout), complete=True)
        self._report("installed", 1.0)

    def _pip_step(self, step: str, title: str, plan: InstallPlan, arguments: list[str]) -> None:
        done = _done(self._layout)
        if step not in done:
            begin, end = self._share, _ENDS[step]
            self._report(title, begin)

            def watch(size: int) -> None:
                self._report(title, min(end, max(begin, _ENDS["engine"] * size / plan.installed_bytes)))

            # --ignore-installed: what an interrupted run left half written is overwritten, not uninstalled first.
            run_pip(self._layout, ["install", "--ignore-installed", *arguments], watch)
            _record(self._layout, self._recipe, [*done, step])
        self._report(title, _ENDS[step])

    def _report(self, title: str, share: float) -> None:
        self._share = max(self._share, share)
        self._progress(title, self._share)


def _ensure_environment(layout: Layout, recipe: Recipe) -> None:
    """Make the virtual environment, unless the one that is there was made for these pins and this Python."""
    marker = read_marker(layout)
    fits = marker.get("environment") == recipe.environment_digest() and marker.get("python") == _python_version()
    shutil.rmtree(layout.temporary, ignore_errors=True)
    if fits and layout.python.exists():
        return
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
    _record(layout, recipe, [])


def _verify(layout: Layout, recipe: Recipe) -> None:
    """Run the recipe's verification in the new interpreter."""
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
        with layout.log.open("a", encoding="utf-8") as log:
            log.write(f"$ verification\n{result.stderr}\n")
        raise SpectuneError(
            f"the installed engine does not run: {said[-1]}; "
            f"`spectune engine remove {recipe.name}` and install again; the full log is {layout.log}"
        )


def _record(layout: Layout, recipe: Recipe, done: list[str], *, complete: bool = False) -> None:
    write_json(
        layout.marker,
        {
            "schema": MARKER_SCHEMA,
            "name": recipe.name,
            "environment": recipe.environment_digest(),
            "python": _python_version(),
            "done": done,
            "complete": complete,
        },
    )


def _done(layout: Layout) -> list[str]:
    done = read_marker(layout).get("done", [])
    return [str(step) for step in done]


def _python_version() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


@contextmanager
def _exclusively(layout: Layout) -> Iterator[None]:
    """Hold the runtime's lock; refuse where another process holds it for long."""
    try:
        layout.lock.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(layout.lock)
        lock.acquire(timeout=LOCK_SECONDS)
    except Timeout:
        raise SpectuneError(
            f"another process has been changing the runtime in {layout.path} for {LOCK_SECONDS:.0f} s; "
            "wait for it, then run the same command again"
        ) from None
    except OSError as error:
        reason = error.strerror or error
        raise SpectuneError(f"cannot write {layout.lock}: {reason}; set SPECTUNE_HOME to a folder of yours") from None
    try:
        yield
    finally:
        lock.release()


# Another installation is waited for, since its result is what this one wants.
LOCK_SECONDS: float = 900.0


def _ignore(step: str, share: float) -> None:
    """Progress nobody wants to see."""
