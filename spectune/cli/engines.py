"""`spectune engine …`."""

from __future__ import annotations

import os
import time

from spectune.cli.installation_words import told
from spectune.cli.program import TORCH_INDEX_VARIABLE
from spectune.cli.terminal import PROGRESS, clock, print_json, print_line
from spectune.engines import cpu_reference
from spectune.engines.cpu_reference import Runtime
from spectune.errors import SpectuneError
from spectune.space import EngineSection


def provision_for(section: EngineSection, *, torch_index: str | None = None) -> None:
    """Install the runtime that a space names, if it names one.

    Raises:
        SpectuneError: When this machine cannot have it, pip fails, or an index is given for what installs nothing.
    """
    if section.runtime is not None:
        provision(section.runtime, torch_index=torch_index)
    elif torch_index is not None:
        engine = "a simulated machine" if section.is_simulated else f"the SGLang of {section.python}"
        raise SpectuneError(
            f"--torch-index {torch_index} is for a runtime that spectune installs, and this space runs {engine}: leave "
            "it out"
        )


def provision(name: str, *, torch_index: str | None) -> Runtime:
    """Return the runtime, installed first if it is not there; says what that will cost before it begins.

    Raises:
        SpectuneError: When this machine cannot have it, or pip fails.
    """
    found = cpu_reference.find(name)
    if found is not None:
        return found
    recipe, began = cpu_reference.recipe_named(name), time.monotonic()
    torch_index = torch_index or os.environ.get(TORCH_INDEX_VARIABLE) or None
    with told(PROGRESS, f"asking pip what the {name} runtime will cost here") as tell:
        plan = cpu_reference.estimate_cost(recipe, torch_index, lambda step, _: tell(step, None))
        PROGRESS.print(plan.describe(), markup=False)
        runtime = cpu_reference.install(recipe, torch_index, tell, plan=plan)
    PROGRESS.print(f"installed {name} (SGLang {runtime.sglang_version}) in {clock(time.monotonic() - began)}")
    return runtime


def install(name: str, *, torch_index: str | None, as_json: bool) -> None:
    """Install a runtime and say where it is."""
    there = cpu_reference.find(name) is not None
    runtime = provision(name, torch_index=torch_index)
    if as_json:
        print_json(_row(runtime))
    else:
        print_line(f"{name} is {'already ' if there else ''}installed in {runtime.path}")


def show(*, as_json: bool) -> None:
    """List the installed runtimes."""
    found = cpu_reference.installed()
    if as_json:
        print_json([_row(runtime) for runtime in found])
        return
    for runtime in found:
        print_line(f"{runtime.name}  SGLang {runtime.sglang_version}  {runtime.path}")
    if not found:
        print_line("none installed; `spectune engine install cpu-reference` installs the real SGLang for a CPU")


def remove(name: str, *, as_json: bool) -> None:
    """Remove a runtime."""
    cpu_reference.remove(cpu_reference.recipe_named(name))
    if as_json:
        print_json({"removed": name})
    else:
        print_line(f"removed {name}")


def _row(runtime: Runtime) -> dict[str, str]:
    return {
        "name": runtime.name,
        "sglang": runtime.sglang_version,
        "python": str(runtime.python),
        "path": str(runtime.path),
    }
