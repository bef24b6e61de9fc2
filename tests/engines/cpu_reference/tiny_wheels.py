"""A runtime of three wheels of one module each, installed the way the real one is."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path

from spectune.engines.cpu_reference.recipe import CPU_REFERENCE, Recipe, TorchSizes


def write_wheel(folder: Path, name: str, version: str, code: str, *, requires: tuple[str, ...] = ()) -> Path:
    """Write a pure-Python wheel with one module."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    required = "".join(f"Requires-Dist: {line}\n" for line in requires)
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}.py", code)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{required}")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return path


def tiny_recipe(folder: Path) -> Recipe:
    """A recipe whose wheels lie in `folder / "wheels"`; its packages do not exist anywhere else."""
    wheels = folder / "wheels"
    write_wheel(wheels, "faketorch", "2.0+cpu", "BUILD = 'cpu'\n")
    write_wheel(wheels, "fakepackage", "1.0", "VALUE = 1\n", requires=("never-to-be-installed",))
    write_wheel(wheels, "fakeengine", "0.1", "import faketorch, fakepackage\n", requires=("never-to-be-installed",))
    lock = folder / "requirements.lock.txt"
    lock.write_text("fakepackage==1.0\n")
    content = folder / "content"
    (content / "overlay").mkdir(parents=True)
    (content / "overlay" / "overlaid.py").write_text("ANSWER = 42\n")
    (content / "models" / "target").mkdir(parents=True)
    (content / "models" / "target" / "config.json").write_text("{}\n")
    return replace(
        CPU_REFERENCE,
        name="tiny-runtime",
        torch="faketorch==2.0",
        lock=lock,
        engine="fakeengine==0.1",
        engine_version="0.1",
        verification="import fakeengine, overlaid; assert overlaid.ANSWER == 42",
        content=(content / "overlay", content / "models"),
        cpu_build=TorchSizes(download=1000, installed=50_000_000),
        cuda_build=TorchSizes(download=2000, installed=60_000_000),
    )
