"""The parent of one engine: whatever happens to spectune, nothing of the engine's process tree outlives this program.

Started by `spectune.serving.guarded` as a file of its own (`python -I -S guard.py`), standard library only, so that it
is there within milliseconds and cannot be disturbed by the engine's environment. One JSON object per line:

    stdin, the control pipe                           stdout, the status pipe
    {"argv": [...], "env": {...}, "log": "path"}      {"event": "started", "pid": 4711}  or {"event": "failed", ...}
    {"stop_within_s": 8.0}                            {"event": "exited", "returncode": -9}
                                                      {"event": "segment", "path": "/dev/shm/nccl-x1"}
                                                      {"event": "stopped", "left": 0, "forced": true, "seconds": 0.2}

The tree ends when the engine's first process dies, when spectune asks for it, or when spectune is gone (the control
pipe closes or the guard has another parent). As *subreaper* the guard inherits every orphan of the tree, also one that
detached itself by a double fork and setsid; so "I have no children" (ECHILD) proves that nothing is left, zombies
included. If the guard itself is killed, the kernel kills the engine's first process (PDEATHSIG), and `GuardedTree`
finds the rest.

Shared memory that a process of the tree made goes with it, unless another process uses it by then.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import math
import os
import select
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CONTROL, STATUS = 0, 1  # file descriptors: stdin and stdout
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # <sys/prctl.h>
ABANDONED_GRACE_S = 3.0  # between SIGTERM and SIGKILL when spectune is gone
SETTLE_S = 1.0  # what the rest of the tree gets to leave by itself (shared memory to unlink) once its head is gone
UNKILLABLE_S = 60.0  # a process inside a driver call dies only when that returns: after this long, report it
PARENT_CHECK_S = 0.5  # how often to look whether spectune still lives; all else wakes the guard at once
NOT_FOR_THE_GUARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - nothing is made there
# Beginnings of the names of segments that engines and their libraries make.
SEGMENTS = ("nccl-", "torch_", "psm_", "sglang", "sem.mp-", "cuda.shm.")
IN_CREATE = 0x100  # <sys/inotify.h>
INOTIFY_EVENT = struct.Struct("iIII")  # descriptor, mask, cookie, length of the name that follows

_libc = ctypes.CDLL(None)


class Guard:
    """One engine from its launch to the proof that nothing of it is left."""

    def __init__(self, wake_up: int) -> None:
        self._wake_up = wake_up  # becomes readable when a signal arrives, SIGCHLD above all
        self._spectune = os.getppid()
        self._control = b""  # what arrived on the control pipe, up to an unfinished line
        self._abandoned = False
        self._engine: subprocess.Popen[bytes] | None = None
        self._kill_at = math.inf
        self._segments = Segments()

    def run(self) -> int:
        """Live the whole life of one engine; returns the guard's exit code."""
        while (order := self._next_order()) is None:
            if self._abandoned:
                return 0
            self._wait(PARENT_CHECK_S)
        try:
            self._engine = launch(**order)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            report(event="failed", error=str(error), errno=getattr(error, "errno", None))
            return 1
        report(event="started", pid=self._engine.pid)
        began = self._supervise()
        left, forced = self._clear()
        self._segments.remove_unused()
        report(event="stopped", left=left, forced=forced, seconds=round(time.monotonic() - began, 3))
        return int(left > 0)

    def _supervise(self) -> float:
        """Wait for the end of the first process or of its time to leave; returns when the end began."""
        began = math.inf
        while self._reap() and self._alive() and (now := time.monotonic()) < self._kill_at:
            self._wait(min(PARENT_CHECK_S, self._kill_at - now))
            if order := self._next_order():
                self._ask_to_leave(order["stop_within_s"])
            if self._abandoned:
                self._ask_to_leave(ABANDONED_GRACE_S)
            if self._kill_at < math.inf:
                began = min(began, time.monotonic())
        return min(began, time.monotonic())

    def _ask_to_leave(self, grace_s: float) -> None:
        if self._kill_at == math.inf and self._engine is not None and self._alive():
            os.kill(self._engine.pid, signal.SIGTERM)
        self._kill_at = min(self._kill_at, time.monotonic() + grace_s)

    def _clear(self) -> tuple[int, bool]:
        """Kill and reap until no descendant is left; returns how many resisted and whether any had to be killed."""
        kill_from = time.monotonic() + (0.0 if self._alive() else SETTLE_S)
        forced = False
        while self._reap():
            if (now := time.monotonic()) >= kill_from:
                forced = True
                for pid in descendants(os.getpid()):
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGKILL)
                if now >= kill_from + UNKILLABLE_S:
                    return len(descendants(os.getpid())), True
            time.sleep(0.01)
        return 0, forced

    def _reap(self) -> bool:
        """Collect whatever has died; returns whether any child is left."""
        with contextlib.suppress(ChildProcessError):
            while (died := os.waitpid(-1, os.WNOHANG))[0] != 0:
                if self._engine is not None and died[0] == self._engine.pid:
                    self._engine.returncode = os.waitstatus_to_exitcode(died[1])
                    report(event="exited", returncode=self._engine.returncode)
            return True
        return False

    def _alive(self) -> bool:
        return self._engine is not None and self._engine.returncode is None

    def _wait(self, seconds: float) -> None:
        """Sleep until a line arrives, a child dies (through the wake-up pipe) or time is up."""
        watched = [self._wake_up, *self._segments.watched, *([] if self._abandoned else [CONTROL])]
        readable, _, _ = select.select(watched, [], [], seconds)
        self._segments.note()
        if self._wake_up in readable:
            os.read(self._wake_up, 4096)
        if CONTROL in readable:
            chunk = os.read(CONTROL, 1 << 16)
            self._control += chunk
            self._abandoned = not chunk
        self._abandoned = self._abandoned or os.getppid() != self._spectune

    def _next_order(self) -> dict[str, Any] | None:
        line, newline, rest = self._control.partition(b"\n")
        if not newline:
            return None
        self._control = rest
        order: dict[str, Any] = json.loads(line)
        return order


class Segments:
    """The shared memory that the tree makes: what is new while one of its processes has it open or mapped."""

    def __init__(self) -> None:
        descriptor = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        watches = descriptor >= 0 and _libc.inotify_add_watch(descriptor, bytes(SHARED_MEMORY), IN_CREATE) >= 0
        self.watched = [descriptor] if watches else []  # readable once something was made
        self._ours: dict[Path, os.stat_result] = {}

    def note(self) -> None:
        """Keep in mind what was made since the last time, if a process of the tree has it."""
        for path in self._made():
            with contextlib.suppress(OSError):  # it went at once
                file = path.stat()
                if any(holds(pid, file) for pid in descendants(os.getpid())):
                    self._ours[path] = file
                    report(event="segment", path=str(path))

    def remove_unused(self) -> None:
        """Remove what the tree has left, except what another process still uses."""
        for path, file in self._ours.items():
            with contextlib.suppress(OSError):  # its maker has removed it
                everyone = descendants(0)  # what the kernel, or the world outside a container, started
                if os.path.samestat(path.stat(), file) and not any(holds(pid, file) for pid in everyone):
                    path.unlink()

    def _made(self) -> list[Path]:
        events, names = b"", []
        with contextlib.suppress(BlockingIOError):
            events = b"".join(os.read(descriptor, 1 << 16) for descriptor in self.watched)
        while events:
            *_, length = INOTIFY_EVENT.unpack_from(events)
            name, events = events[INOTIFY_EVENT.size :][:length], events[INOTIFY_EVENT.size + length :]
            names.append(os.fsdecode(name.rstrip(b"\0")))
        return [SHARED_MEMORY / name for name in names if name.startswith(SEGMENTS)]


def holds(pid: int, file: os.stat_result) -> bool:
    """Whether a process has a file open or mapped, under whatever name; False where it cannot be looked into.

    A file is closed once it is mapped: who looks for it among the mapped ones first can miss it in both.
    """
    mapped = f" {os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x} {file.st_ino} "
    with contextlib.suppress(OSError):
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):  # closed meanwhile
                if os.path.samestat(entry.stat(), file):
                    return True
        return mapped in Path("/proc", str(pid), "maps").read_text(errors="replace")
    return False


def launch(argv: list[str], env: dict[str, str], log: str) -> subprocess.Popen[bytes]:
    """Start the engine in a session of its own, its output appended to `log`."""
    guard = os.getpid()

    def die_with_the_guard() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:  # it died before the line above
            os._exit(1)

    with Path(log).open("ab") as output:
        return subprocess.Popen(
            argv,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=die_with_the_guard,  # noqa: PLW1509 - the guard has one thread
        )


def descendants(root: int) -> list[int]:
    """All processes below `root`, the youngest generation last, from one walk through /proc."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 - names are all that is needed
        if entry.isdigit():
            with contextlib.suppress(OSError):
                stat = Path("/proc", entry, "stat").read_bytes()
                parent = int(stat[stat.rindex(b")") + 1 :].split()[1])  # a name may contain spaces and parentheses
                children.setdefault(parent, []).append(int(entry))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found[1:]


def report(**event: object) -> None:
    """Write one event to the status pipe; nobody may be there to read it."""
    with contextlib.suppress(BrokenPipeError):
        os.write(STATUS, json.dumps(event).encode() + b"\n")


def main() -> int:
    """Make this process the subreaper of the engine to come, deaf to the terminal's signals; returns the exit code."""
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    wake_up, signalled = os.pipe()
    os.set_blocking(signalled, False)
    signal.set_wakeup_fd(signalled, warn_on_full_buffer=False)
    for number in (*NOT_FOR_THE_GUARD, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)  # not SIG_IGN: the engine would inherit that
    return Guard(wake_up).run()


if __name__ == "__main__":
    sys.exit(main())
