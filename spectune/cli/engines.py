"""`spectune engine …`."""

from __future__ import annotations

import time

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from spectune.cli.terminal import OUT, PROGRESS, clock, print_json
from spectune.engines import cpu_reference
from spectune.engines.cpu_reference import Runtime


def provision(name: str, *, torch_index: str | None = None) -> Runtime:
    """Return the runtime, installed first if it is not there; says what that will cost before it begins.

    Raises:
        SpectuneError: When this machine cannot have it, or pip fails.
    """
    found = cpu_reference.find(name)
    if found is not None:
        return found
    began = time.monotonic()
    with PROGRESS.status(f"asking pip what the {name} runtime will cost here") as status:
        plan = cpu_reference.estimate_cost(torch_index, lambda step, _: status.update(step))
    PROGRESS.print(plan.describe(), markup=False)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=PROGRESS, transient=True) as bar:
        task = bar.add_task("installing", total=1.0)
        steps: list[str] = []

        def tell(step: str, fraction: float) -> None:
            bar.update(task, description=step, completed=fraction)
            if not PROGRESS.is_terminal and step not in steps:  # a pipe sees no bar
                steps.append(step)
                PROGRESS.print(f"{step} ({fraction:.0%})", markup=False)

        runtime = cpu_reference.install(name, torch_index, tell)
    PROGRESS.print(f"installed {name} (SGLang {runtime.sglang_version}) in {clock(time.monotonic() - began)}")
    return runtime


def install(name: str, *, torch_index: str | None, as_json: bool) -> None:
    """Install a runtime and say where it is."""
    there = cpu_reference.find(name) is not None
    runtime = provision(name, torch_index=torch_index)
    if as_json:
        print_json(_row(runtime))
    else:
        OUT.print(f"{name} is {'already ' if there else ''}installed in {runtime.path}", markup=False, soft_wrap=True)


def show(*, as_json: bool) -> None:
    """List the installed runtimes."""
    found = cpu_reference.installed()
    if as_json:
        print_json([_row(runtime) for runtime in found])
        return
    for runtime in found:
        OUT.print(f"{runtime.name}  SGLang {runtime.sglang_version}  {runtime.path}", markup=False, soft_wrap=True)
    if not found:
        OUT.print("none installed; `spectune engine install cpu-reference` installs the real SGLang for a CPU")


def remove(name: str) -> None:
    """Remove a runtime."""
    cpu_reference.remove(name)
    OUT.print(f"removed {name}", markup=False)


def _row(runtime: Runtime) -> dict[str, str]:
    return {
        "name": runtime.name,
        "sglang": runtime.sglang_version,
        "python": str(runtime.python),
        "path": str(runtime.path),
    }
