"""Builds, renews and removes a runtime: resumable, one process at a time, nothing printed.

The steps are recorded in a marker that is written whole after each. A step that was interrupted is done again; an
environment of other pins or another Python is built anew.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from filelock import FileLock, Timeout

from spectune.engines.cpu_reference.cost import InstallPlan, make_plan
from spectune.engines.cpu_reference.environment import ensure_environment, verify
from spectune.engines.cpu_reference.layout import Layout, done_steps, place_content, record
from spectune.engines.cpu_reference.machine import check_machine
from spectune.engines.cpu_reference.occupants import processes_of
from spectune.engines.cpu_reference.pip_process import run_pip
from spectune.engines.cpu_reference.recipe import Recipe
from spectune.engines.cpu_reference.runtime import Runtime, find_recipe
from spectune.errors import SpectuneError

ProgressCallback = Callable[[str, float], None]
"""Gets the step under way, in words, and the share of the whole installation that is done, 0 to 1, never falling."""

# Another installation is waited for, since its result is what this one wants.
LOCK_SECONDS: float = 900.0
WAITING: Final = "waiting for another installation"
# Share of the whole at which each step ends, by the time it takes with a warm pip cache.
_ENDS: Final = {"environment": 0.06, "torch": 0.45, "packages": 0.75, "engine": 0.9, "verification": 1.0}


def estimate_cost(
    recipe: Recipe, torch_index: str | None = None, progress: ProgressCallback | None = None
) -> InstallPlan:
    """Say what `install` will cost here. Makes the (small) empty environment whose pip is asked.

    Args:
        recipe: What would be installed.
        torch_index: Package index to take torch from instead of pip's configured one.
        progress: Told when another installation is waited for.

    Raises:
        SpectuneError: When this machine cannot have the runtime, in one sentence.
    """
    check_machine()
    layout = Layout.of(recipe)
    with _exclusively(layout, progress or _ignore):
        ensure_environment(layout, recipe)
        return make_plan(layout, recipe, torch_index)


def install(
    recipe: Recipe,
    torch_index: str | None = None,
    progress: ProgressCallback | None = None,
    *,
    plan: InstallPlan | None = None,
) -> Runtime:
    """Install a runtime, or go on with an interrupted installation; at once if it is there.

    Args:
        recipe: What it consists of.
        torch_index: Package index to take torch from instead of pip's configured one.
        progress: Told about every step, also when another installation is waited for; nothing is printed.
        plan: What `estimate_cost` said, where it was asked before; otherwise pip is asked for it here.

    Raises:
        SpectuneError: When this machine cannot have it, pip fails or the result does not run.
    """
    found = find_recipe(recipe)
    if found is not None:
        return found
    check_machine()
    layout = Layout.of(recipe)
    with _exclusively(layout, progress or _ignore):
        found = find_recipe(recipe)  # another process may have finished it meanwhile
        if found is None:
            _Installation(layout, recipe, torch_index, progress or _ignore).run(plan)
            found = find_recipe(recipe)
    assert found is not None, "an installation that ran to its end can be found"
    return found


def remove(recipe: Recipe) -> None:
    """Delete a runtime with everything in it.

    Raises:
        SpectuneError: When it is not installed, or an engine of it is running.
    """
    layout = Layout.of(recipe)
    if not layout.path.exists():
        raise SpectuneError(f"the runtime {recipe.name} is not installed: there is no {layout.path}")
    with _exclusively(layout, _ignore):
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

    def run(self, plan: InstallPlan | None) -> None:
        """All steps, in order."""
        layout, recipe = self._layout, self._recipe
        self._report("creating the environment", 0.0)
        ensure_environment(layout, recipe)
        if plan is None:
            self._report("looking for torch", _ENDS["environment"])
            plan = make_plan(layout, recipe, self._torch_index)
        # A CUDA build does not import without its libraries, whose list only pip's resolver knows.
        dependencies = ["-c", str(recipe.lock)] if plan.torch_build == "cuda" else ["--no-deps"]
        self._pip_step("torch", "installing torch", plan, [*dependencies, recipe.torch], self._torch_index)
        self._pip_step("packages", "installing the server's packages", plan, ["--no-deps", "-r", str(recipe.lock)])
        self._pip_step("engine", "installing SGLang", plan, ["--no-deps", recipe.engine])
        self._report("verifying", _ENDS["engine"])
        place_content(layout, recipe)
        verify(layout, recipe)
        shutil.rmtree(layout.temporary, ignore_errors=True)
        record(layout, recipe, done_steps(layout), complete=True)
        self._report("installed", 1.0)

    def _pip_step(
        self, step: str, title: str, plan: InstallPlan, arguments: list[str], index: str | None = None
    ) -> None:
        done = done_steps(self._layout)
        if step not in done:
            begin, end = self._share, _ENDS[step]
            self._report(title, begin)

            def watch(size: int) -> None:
                self._report(title, min(end, max(begin, _ENDS["engine"] * size / plan.installed_bytes)))

            # --ignore-installed: what an interrupted run left half written is overwritten, not uninstalled first.
            run_pip(self._layout, ["install", "--ignore-installed", *arguments], watch, index=index)
            record(self._layout, self._recipe, [*done, step])
        self._report(title, _ENDS[step])

    def _report(self, title: str, share: float) -> None:
        self._share = max(self._share, share)
        self._progress(title, self._share)


@contextmanager
def _exclusively(layout: Layout, progress: ProgressCallback) -> Iterator[None]:
    """Hold the runtime's lock; say so where another process holds it, and refuse where it does for long."""
    try:
        layout.lock.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(layout.lock)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            progress(WAITING, 0.0)
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


def _ignore(step: str, share: float) -> None:
    """Progress nobody wants to see."""
