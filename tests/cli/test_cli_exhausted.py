"""An error that means a limit of this process is told as one; every other stays an error of ours."""

from __future__ import annotations

import resource

import pytest

from spectune.cli.exhausted import exhausted

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
