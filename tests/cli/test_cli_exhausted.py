"""An error that means a limit of this process is told as one; every other stays an error of ours."""

from __future__ import annotations

import resource
import threading
from typing import NoReturn

import pytest
from typer.core import TyperGroup

from spectune.cli.exhausted import exhausted
from spectune.cli.program import Commands
from spectune.errors import SpectuneError

LOST = SystemError("<function main> returned NULL without setting an exception")


def test_what_has_run_out_is_named() -> None:
    assert "no more memory; see `ulimit -v`" in (exhausted(MemoryError()) or "")
    assert "no more threads" in (exhausted(RuntimeError("can't start new thread")) or "")
    assert exhausted(RuntimeError("dictionary changed size during iteration")) is None


def test_an_error_that_the_interpreter_lost_is_one_of_memory_where_that_is_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert exhausted(LOST) is None
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1 << 30, resource.RLIM_INFINITY))
    assert "no more memory" in (exhausted(LOST) or "")


def test_an_interrupt_by_a_library_that_can_start_no_thread_is_told_as_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenBLAS sends SIGINT to its own process then; a person's Ctrl-C stays what it is."""

    def interrupted(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    def exceeded(_: threading.Thread) -> NoReturn:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(TyperGroup, "invoke", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Commands(name="spectune").invoke(None)
    monkeypatch.setattr(threading.Thread, "start", exceeded)
    with pytest.raises(SpectuneError, match=r"no more threads; see .* `ulimit -u`"):
        Commands(name="spectune").invoke(None)
