"""What is refused before anything is downloaded, and in which words."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sys
from pathlib import Path

import pytest

from spectune.engines.cpu_reference import machine, pip_process
from spectune.engines.cpu_reference.home import spectune_home
from spectune.engines.cpu_reference.layout import Layout
from spectune.errors import SpectuneError


def refusal(*args: object, check: object) -> str:
    assert callable(check)
    with pytest.raises(SpectuneError) as caught:
        check(*args)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("version", [(3, 10), (3, 14)])
def test_refuses_a_python_without_wheels(version: tuple[int, int]) -> None:
    message = refusal(version, check=machine.check_python)
    assert f"{version[0]}.{version[1]}" in message
    assert "CPython 3.11 to 3.13" in message


@pytest.mark.parametrize("version", [(3, 11), (3, 12), (3, 13)])
def test_accepts_a_python_with_wheels(version: tuple[int, int]) -> None:
    machine.check_python(version)


@pytest.mark.parametrize(("version", "found"), [((2, 31), "2.31"), ((1, 99), "1.99"), (None, "another C library")])
def test_refuses_an_old_or_foreign_c_library(version: tuple[int, int] | None, found: str) -> None:
    message = refusal(version, check=machine.check_glibc)
    assert found in message
    assert "glibc ≥ 2.34" in message


def test_accepts_a_recent_glibc() -> None:
    machine.check_glibc((2, 34))
    machine.check_glibc((3, 0))


def test_reads_the_c_library_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    name, version = platform.libc_ver()
    assert machine.glibc_version() == (tuple(map(int, version.split(".")))[:2] if name == "glibc" else None)
    monkeypatch.setattr(os, "confstr", lambda _: None)
    assert machine.glibc_version() is None


def test_refuses_a_python_without_ensurepip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    message = refusal(check=machine.check_venv)
    assert f"apt install python3.{sys.version_info.minor}-venv" in message


def test_refuses_another_system_and_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert "riscv64" in refusal(check=machine.check_machine)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "darwin" in refusal(check=machine.check_machine)


def test_refuses_a_disk_without_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**10, 9 * 10**9, 10**9))
    folder = tmp_path / "not" / "yet" / "there"
    message = refusal(folder, 1_600_000_000, check=machine.check_disk)
    assert "1.0 GB free" in message
    assert "1.6 GB" in message
    assert "SPECTUNE_HOME" in message
    machine.check_disk(folder, 400_000_000)


def test_home_is_the_variable_or_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECTUNE_HOME", str(tmp_path / "own"))
    assert spectune_home() == tmp_path / "own"
    monkeypatch.delenv("SPECTUNE_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert spectune_home() == tmp_path / "cache" / "spectune"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert spectune_home() == Path.home() / ".cache" / "spectune"


def test_a_home_that_is_nobodys_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECTUNE_HOME", "~nobody-of-that-name/x")
    message = refusal(check=spectune_home)
    assert "SPECTUNE_HOME=~nobody-of-that-name/x" in message
    assert "set it to a folder of yours" in message


@pytest.mark.parametrize(
    ("said", "returncode", "expected"),
    [
        ("WARNING: Location x is ignored\n", -9, "pip was ended by SIGKILL"),
        ("ERROR: half a word", -99, "pip was ended by signal 99"),
        ("Collecting x\nWARNING: Location x is ignored\n\n[notice] A new release\n", 1, "pip failed: Collecting x;"),
        ("WARNING: Location x is ignored\n", 2, "pip failed: exit code 2;"),
        ("ERROR: no such thing\nWARNING: Location x is ignored\n", 1, "pip failed: no such thing;"),
    ],
)
def test_pips_last_meaningful_word(tmp_path: Path, said: str, returncode: int, expected: str) -> None:
    message = pip_process._failure(said, returncode, Layout(tmp_path))
    assert message.startswith(expected)
    assert "goes on where it stopped" in message
    assert str(tmp_path / "pip.log") in message
