"""Runs pip in the runtime's environment: as its user has configured it, watched and logged, failing in one sentence."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from spectune.engines.cpu_reference.layout import Layout
from spectune.engines.cpu_reference.machine import free_bytes, gigabytes
from spectune.errors import SpectuneError

POLL_SECONDS: Final = 0.5
# A pip that outlived spectune would write into the environment its successor repairs. 1 is PR_SET_PDEATHSIG.
_PIP_THAT_DIES_WITH_ITS_PARENT: Final = """
import ctypes, os, runpy, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != int(sys.argv.pop(1)):
    sys.exit("spectune is gone")
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""
# How pip says that nothing answered, in any of its versions.
_UNREACHABLE = ("Failed to establish", "NewConnectionError", "Name or service not known", "ProxyError", "timed out")
# Lines that never say why pip failed.
_ASIDE = ("WARNING:", "DEPRECATION:", "[notice]")
# Settings that would lead pip out of the runtime's environment.
_ASTRAY = {"PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT"}


def run_pip(
    layout: Layout,
    arguments: Sequence[str],
    on_bytes: Callable[[int], None] | None = None,
    *,
    index: str | None = None,
) -> None:
    """Run pip to its end.

    Its index, proxy and other settings are the user's own, unless an index is named.

    Args:
        layout: The runtime whose interpreter has pip; its log is appended to, its temporary folder is used.
        arguments: After `pip`.
        on_bytes: Called twice a second with the bytes on disk, what pip is still unpacking included.
        index: Address of a package index, which may hold a password: pip gets it as a variable, since its words are in
            the list of processes and in the log.

    Raises:
        SpectuneError: With pip's last word and the path of the log.
    """
    try:
        returncode, said = _watched(layout, arguments, on_bytes, {} if index is None else {"PIP_INDEX_URL": index})
    except OSError as error:
        reason = error.strerror or error
        raise SpectuneError(f"cannot write {layout.path}: {reason}; make room or set SPECTUNE_HOME") from None
    if returncode:
        raise SpectuneError(_failure(said, returncode, layout))


def _watched(
    layout: Layout, arguments: Sequence[str], on_bytes: Callable[[int], None] | None, variables: Mapping[str, str]
) -> tuple[int, str]:
    """Exit code and output of pip."""
    layout.temporary.mkdir(parents=True, exist_ok=True)
    with layout.log.open("ab") as log:
        log.write(f"$ pip {' '.join(arguments)}\n".encode())
        log.flush()
        start = log.tell()
        process = subprocess.Popen(
            [str(layout.python), "-c", _PIP_THAT_DIES_WITH_ITS_PARENT, str(os.getpid()), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=pip_environment(layout) | dict(variables),
        )
        try:
            while _still_runs(process):
                if on_bytes is not None:
                    on_bytes(bytes_below(layout.venv / "lib") + bytes_below(layout.temporary))
        finally:  # Ctrl-C, or an error while watching: pip must not go on alone
            process.terminate()
            process.wait()
    return process.returncode, layout.log.read_bytes()[start:].decode(errors="replace")


def pip_environment(layout: Layout) -> dict[str, str]:
    """The user's environment, without what would lead pip out of the runtime's."""
    kept = {name: value for name, value in os.environ.items() if name not in _ASTRAY}
    return kept | {
        "PIP_USER": "0",
        "PIP_NO_INPUT": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_PROGRESS_BAR": "off",
        "TMPDIR": str(layout.temporary),
    }


def bytes_below(folder: Path) -> int:
    """Bytes of all files below a folder that may change meanwhile."""
    total = 0
    pending = [str(folder)]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_size
        except OSError:  # gone between listing and looking
            continue
    return total


def _still_runs(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(POLL_SECONDS)
    except subprocess.TimeoutExpired:
        return True
    return False


def _failure(said: str, returncode: int, layout: Layout) -> str:
    """One sentence from pip's output: the cause where it is known, pip's own last word otherwise."""
    log = f"the full log is {layout.log}"
    again = "run the same command again: it goes on where it stopped"
    if "No space left on device" in said:
        free = gigabytes(free_bytes(layout.path))
        return f"the disk of {layout.path} is full ({free} free); make room or set SPECTUNE_HOME, then {again}; {log}"
    if returncode < 0:
        return f"pip was ended by {signal_name(-returncode)}; see whether memory ran out, then {again}; {log}"
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.strip().startswith(_ASIDE)]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    last = (errors or lines or [f"exit code {returncode}"])[-1]
    advice = f"mend it, then {again}"
    if any(sign in said for sign in _UNREACHABLE):
        advice = "pip cannot reach its index: check network, proxy and pip's configuration (`pip config list`)"
    return f"pip failed: {last}; {advice}; {log}"


def signal_name(number: int) -> str:
    """The name of a signal, such as SIGKILL."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
