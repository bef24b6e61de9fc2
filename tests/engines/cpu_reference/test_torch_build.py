"""Telling a CPU build of torch from a CUDA build by what pip's report says of it."""

from __future__ import annotations

import platform

import pytest

from spectune.engines.cpu_reference.cost import build_of

CUDA_13 = [
    "filelock",
    'cuda-toolkit[cublas,cudart]==13.0.2; platform_system == "Linux"',
    'nvidia-cudnn-cu13==9.15.1.9; platform_system == "Linux"',
    'triton==3.7.0; platform_system == "Linux" and platform_machine == "x86_64"',
]
CUDA_12_ON_X86 = ['nvidia-cublas-cu12==12.8.4.1; platform_system == "Linux" and platform_machine == "x86_64"']


@pytest.mark.parametrize(
    ("version", "requires", "machine", "build"),
    [
        ("2.13.0+cpu", CUDA_13, "x86_64", "cpu"),
        ("2.13.0+cpu.cxx11.abi", [], "x86_64", "cpu"),
        ("2.13.0+cu130", [], "x86_64", "cuda"),
        ("2.13.0+rocm7.1", [], "x86_64", "cuda"),
        ("2.13.0", CUDA_13, "x86_64", "cuda"),
        ("2.13.0", CUDA_12_ON_X86, "x86_64", "cuda"),
        ("2.13.0", CUDA_12_ON_X86, "aarch64", "cpu"),
        ("2.13.0", ["filelock", "sympy", 'nvidia-thing; extra == "all"'], "x86_64", "cpu"),
    ],
)
def test_build(version: str, requires: list[str], machine: str, build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert build_of({"version": version, "requires_dist": requires}) == build


def test_metadata_without_requirements_is_a_cpu_build() -> None:
    assert build_of({"version": "2.13.0"}) == "cpu"
