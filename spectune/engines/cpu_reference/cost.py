"""What an installation will cost on this machine, before anything large is downloaded."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from spectune.engines.cpu_reference.layout import Layout
from spectune.engines.cpu_reference.machine import check_disk, free_bytes, gigabytes
from spectune.engines.cpu_reference.pip_process import bytes_below, run_pip
from spectune.engines.cpu_reference.recipe import Recipe, TorchSizes

TorchBuild = Literal["cpu", "cuda"]


@dataclass(frozen=True)
class InstallPlan:
    """What will be installed where, and how large that is.

    Attributes:
        path: The runtime's folder.
        torch_version: The version pip would take, local part included.
        torch_build: Whether that is a CPU build or one that brings CUDA libraries along.
        download_bytes: About how much is downloaded where pip has nothing in its cache.
        installed_bytes: About how much it takes on disk.
        free_bytes: What that disk has free now.
    """

    path: Path
    torch_version: str
    torch_build: TorchBuild
    download_bytes: int
    installed_bytes: int
    free_bytes: int

    def describe(self) -> str:
        """One sentence for people."""
        build = f"the {self.torch_build.upper()} build of torch {self.torch_version}"
        hint = "; a CPU build is several times smaller, see --torch-index" if self.torch_build == "cuda" else ""
        return (
            f"installing takes about {gigabytes(self.installed_bytes)} in {self.path} "
            f"({gigabytes(self.free_bytes)} free), up to {gigabytes(self.download_bytes)} of it downloaded, "
            f"with {build}{hint}"
        )


def make_plan(layout: Layout, recipe: Recipe, torch_index: str | None) -> InstallPlan:
    """Ask the runtime's own pip which torch it would take, and look at the disk.

    Raises:
        SpectuneError: When pip finds none or the disk has too little room.
    """
    version, build = served_torch(layout, recipe, torch_index)
    sizes: TorchSizes = recipe.cpu_build if build == "cpu" else recipe.cuda_build
    there = bytes_below(layout.venv)  # of an interrupted installation
    check_disk(layout.path, max(0, sizes.installed - there))
    return InstallPlan(layout.path, version, build, sizes.download, sizes.installed, free_bytes(layout.path))


def served_torch(layout: Layout, recipe: Recipe, torch_index: str | None) -> tuple[str, TorchBuild]:
    """Version and build of the torch pip would install; an index that has metadata apart sends nothing else."""
    report = layout.path / "torch-report.json"
    wanted = ["--dry-run", "--ignore-installed", "--no-deps", "--report", str(report)]
    run_pip(layout, ["install", *wanted, recipe.torch], index=torch_index)
    (torch,) = json.loads(report.read_text())["install"]
    report.unlink()
    return torch["metadata"]["version"], build_of(torch["metadata"])


def build_of(metadata: Mapping[str, Any]) -> TorchBuild:
    """Tell a CPU build from a CUDA build by a wheel's metadata, as pip reports it.

    A version may say so itself (`2.13.0+cpu`, `2.13.0+cu130`); PyPI's say nothing, but those for CUDA require its
    libraries.
    """
    _, _, local = metadata["version"].partition("+")
    if local:
        return "cpu" if local.startswith("cpu") else "cuda"
    required = metadata.get("requires_dist", [])
    return "cuda" if any(re.match(r"(nvidia|cuda)[-_]", line) and _is_for_here(line) for line in required) else "cpu"


def _is_for_here(requirement: str) -> bool:
    """Whether a requirement's marker does not restrict it to an extra or to another machine type."""
    _, _, marker = requirement.partition(";")
    machines = re.findall(r"platform_machine\s*==\s*['\"]([^'\"]+)['\"]", marker)
    return "extra" not in marker and (not machines or platform.machine() in machines)
