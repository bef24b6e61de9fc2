"""Versions, variables and files that change what an engine does; secrets are never kept."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spectune import __version__
from spectune.machine.reading import text_of
from spectune.withheld import HIDDEN, hides_secret

LIBRARIES = ("optuna", "numpy", "aiohttp", "nvidia-ml-py")
TOOLS = ("cc", "g++", "ninja", "nvcc")
ROOT = Path("/")
_TOLD = re.compile(r"(NCCL|CUDA|SGLANG|SGL|TORCH|FLASHINFER|TRITON)_\w+|LD_PRELOAD|OMP_NUM_THREADS")
LONGEST = 200  # characters of a value worth keeping


@dataclass(frozen=True)
class ConfigFile:
    """A file that NCCL reads on its own.

    Attributes:
        digest: Of its content, to see whether it changed.
        variables: The NCCL variables it sets.
    """

    path: str
    digest: str
    variables: tuple[str, ...]


@dataclass(frozen=True)
class Software:
    """What runs here.

    Attributes:
        engine: Name and version of the engine; None where none was asked for.
        packages: Versions of what the engine runs on, by package; empty when its interpreter was not asked.
        engine_sitecustomize: A `sitecustomize.py` that the engine's interpreter runs at every start.
        sitecustomize: The same of spectune's interpreter.
        nccl_files: The configuration files of NCCL that exist.
        variables: Variables of this process that change an engine; values that may be secret are hidden.
        tools: Compiler or tool → its path; None where it is missing.
    """

    spectune: str
    python: str
    libraries: Mapping[str, str | None]
    engine: str | None
    packages: Mapping[str, str]
    engine_sitecustomize: str | None
    sitecustomize: str | None
    nccl_files: tuple[ConfigFile, ...]
    variables: Mapping[str, str]
    tools: Mapping[str, str | None] = field(default_factory=dict)


def read_software(
    environ: Mapping[str, str],
    *,
    engine: str | None,
    packages: Mapping[str, str] | None,
    engine_sitecustomize: str | None,
) -> Software:
    """Return what is installed and set now.

    Args:
        environ: The variables a launch would inherit.
        engine: Name and version of the engine.
        packages: Versions in the engine's interpreter.
        engine_sitecustomize: Path of the engine interpreter's `sitecustomize`.
    """
    return Software(
        spectune=__version__,
        python=sys.version.split()[0],
        libraries={name: _version(name) for name in LIBRARIES},
        engine=engine,
        packages=dict(packages or {}),
        engine_sitecustomize=engine_sitecustomize,
        sitecustomize=_sitecustomize(),
        nccl_files=nccl_files(ROOT, environ),
        variables=told_variables(environ),
        tools=find_tools(environ),
    )


def nccl_files(root: Path, environ: Mapping[str, str]) -> tuple[ConfigFile, ...]:
    """Return the files NCCL would read: the machine's, and the user's or the one NCCL_CONF_FILE names instead."""
    home = environ.get("HOME")
    own = environ.get("NCCL_CONF_FILE") or (f"{home}/.nccl.conf" if home else None)
    where = Path(os.path.expanduser(own)) if own else None  # noqa: PTH111 - Path's raises for a home that is not known
    found = []
    for shown, path in (("/etc/nccl.conf", root / "etc/nccl.conf"), (own, where)):
        text = text_of(path) if path is not None else None
        if text is not None and shown is not None:
            names = re.findall(r"^\s*(NCCL_\w+)\s*=", text, re.MULTILINE)
            digest = hashlib.sha256(text.encode()).hexdigest()[:16]
            found.append(ConfigFile(_short(shown, home), digest, tuple(dict.fromkeys(names))))
    return tuple(found)


def told_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that change an engine; a value that looks like a secret or is long is hidden."""
    return {
        name: HIDDEN if hides_secret(name, (value,)) or len(value) > LONGEST else value
        for name, value in sorted(environ.items())
        if _TOLD.fullmatch(name)
    }


def find_tools(environ: Mapping[str, str]) -> dict[str, str | None]:
    """Return where the compilers are that engines build kernels with; CUDA's also where CUDA_HOME says."""
    path = environ.get("PATH", os.defpath)
    found = {name: shutil.which(name, path=path) for name in TOOLS}
    toolkit = environ.get("CUDA_HOME") or environ.get("CUDA_PATH") or "/usr/local/cuda"
    found["nvcc"] = found["nvcc"] or shutil.which("nvcc", path=f"{toolkit}/bin")
    found["cc"] = shutil.which(environ.get("CC", "cc"), path=path) or shutil.which("gcc", path=path)
    return found


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _sitecustomize() -> str | None:
    try:
        spec = importlib.util.find_spec("sitecustomize")
    except (ImportError, ValueError):
        return None
    return spec.origin if spec else None


def _short(path: str, home: str | None) -> str:
    """Leave the user's name out of what is kept."""
    return f"~{path[len(home) :]}" if home and home != "/" and path.startswith(f"{home}/") else path
