"""What else a machine does to a study: no file descriptors, a clock that jumps, logs that flood, processes killed."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from benchmarks.faults.again import judged
from benchmarks.faults.laboratory import Bench
from benchmarks.faults.matrix import LAUNCHES, Seen, run_here
from benchmarks.faults.row import Case, Row
from spectune.engines.protocol import LaunchCommand, Occasion
from spectune.engines.simulated.engine import SimulatedEngine
from spectune.errors import SpectuneError

FLOOD = """
import os, sys
line = b"[2026-01-01 00:00:00 TP0] flood " + b"x" * 160 + b"\\n"
for _ in range(int(sys.argv[1]) * (1 << 20) // len(line) // 1000):
    os.write(2, line * 1000)
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""
ZOMBIES = """
import os, sys
for _ in range(50):
    os.fork() or os._exit(0)
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""
CLOCK = Path(__file__).with_name("clock.c")
JUMPS_S = (86_400, -2 * 86_400)
DESCRIPTORS = (12, 24, 40)
STRUCK_AFTER_S = 1.0  # since the engine was ready: while it is measured


@dataclass(frozen=True, kw_only=True)
class WrappedEngine(SimulatedEngine):
    """A simulated engine that does something else first.

    Attributes:
        program: What it does: Python, given a size and the engine's own arguments.
        size: Of what it does.
    """

    before: str
    size: int

    def supervised(self, command: LaunchCommand, occasion: Occasion) -> LaunchCommand:
        """Start the program, which becomes the engine."""
        started = super().supervised(command, occasion)
        python, *rest = started.argv
        return replace(started, argv=(python, "-c", self.before, str(self.size), *rest))


def cases(folder: Path, flood_mb: int) -> Iterator[Case]:
    """Yield these faults."""
    for limit in DESCRIPTORS:
        name = f"file descriptors exhausted ({limit})"
        yield Case(name, functools.partial(try_descriptors, name, folder / f"fds-{limit}", limit))
    yield Case("clock jump", functools.partial(try_clock, "clock jump", folder / "clock"))
    for name, program, size in (
        (f"log flood of {flood_mb} MiB", FLOOD, flood_mb),
        ("engine leaves zombies", ZOMBIES, 0),
    ):
        yield Case(name, functools.partial(try_wrapped, name, folder / name.replace(" ", "-"), program, size))
    for name, words, how, wanted in (
        ("kill -9 of the guard", "guard.py", signal.SIGKILL, "environment"),
        ("kill -9 of a worker", "scheduler_TP1", signal.SIGKILL, "crash"),
        ("engine frozen by SIGSTOP", "spectune.engines.simulated", signal.SIGSTOP, "hang"),
    ):
        yield Case(name, functools.partial(try_strike, name, folder / name.replace(" ", "-"), words, how, wanted))
    name = "guard stopped, then kill -9 of spectune"
    yield Case(name, functools.partial(try_stopped_guard, name, folder / "stopped-guard"))


def try_descriptors(name: str, folder: Path, limit: int) -> Row:
    """Run a study with too few file descriptors, then with enough."""
    bench = Bench(folder)
    bench.write(virtual=False, trials=LAUNCHES)
    first = bench.search("prlimit", f"--nofile={limit}")
    kept = bench.results()
    return judged(name, bench, kept, first, bench.search(), launches=LAUNCHES)


def try_clock(name: str, folder: Path) -> Row:
    """Let the wall clock jump a day ahead and two days back while launches are measured."""
    bench = Bench(folder)
    bench.write(virtual=False, trials=LAUNCHES)
    library, offset = folder / "clock.so", folder / "offset"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-o", library, CLOCK], check=True)
    offset.write_bytes((0).to_bytes(8, sys.byteorder, signed=True))

    def jump(seconds: int) -> None:
        with offset.open("r+b") as file:
            file.write(seconds.to_bytes(8, sys.byteorder, signed=True))

    with bench.start(LD_PRELOAD=str(library.resolve()), CLOCK_OFFSET=str(offset.resolve())) as search:
        for launch, seconds in enumerate(JUMPS_S):
            trial = bench.study.root / "trials" / (f"{launch:04d}-baseline" if launch == 0 else f"{launch:04d}")
            while search.poll() is None and not (trial / "canary.json").exists():
                time.sleep(0.05)
            time.sleep(STRUCK_AFTER_S)
            jump(seconds)
        said, _ = search.communicate(timeout=600)
    failed = [record for record in bench.records() if record.failure is not None]
    row = judged(name, bench, {}, (search.returncode, said), (search.returncode, said), launches=LAUNCHES)
    return row if not failed else replace(row, ok=False, remark=f"a launch failed: {failed[0].failure}")


def try_wrapped(name: str, folder: Path, program: str, size: int) -> Row:
    """Run a study whose engines do something else first."""
    bench = Bench(folder)
    bench.write(virtual=False, trials=LAUNCHES, startup="180s")

    def wrapped(engine: SimulatedEngine) -> SimulatedEngine:
        return WrappedEngine(**{**vars(engine), "before": program, "size": size})

    return _here(name, bench, Seen(), None, wrapped)


def try_strike(name: str, folder: Path, words: str, how: signal.Signals, wanted: str) -> Row:
    """Send a signal to a process of the second launch while it is measured."""
    bench, seen = Bench(folder), Seen()
    bench.write(virtual=False, trials=LAUNCHES)
    struck: list[float] = []

    def strike() -> None:
        while not any((bench.study.root / "trials/0001").glob("canary.json")):
            time.sleep(0.05)
        time.sleep(STRUCK_AFTER_S)
        for process in bench.processes():
            if words in " ".join(process.cmdline()) and process.pid != os.getpid():
                struck.append(time.time())
                process.send_signal(how)
                return

    threading.Thread(target=strike, daemon=True).start()
    row = _here(name, bench, seen, wanted)
    detected = seen.ending_s[1] - struck[0] if struck and len(seen.ending_s) > 1 else None
    return replace(row, detected_s=detected, ok=row.ok and detected is not None)


def try_stopped_guard(name: str, folder: Path) -> Row:
    """Stop the guard of the second launch, so that nobody ends it with its spectune; then search again."""
    bench = Bench(folder)
    bench.write(virtual=False, trials=LAUNCHES)
    with bench.start() as search:
        while search.poll() is None and not (bench.study.root / "trials/0001/canary.json").exists():
            time.sleep(0.05)
        for process in bench.processes():
            if any(word.endswith("guard.py") for word in process.cmdline()):
                process.suspend()
        search.kill()
    return judged(name, bench, bench.results(), (0, "killed with -9"), bench.search(), launches=LAUNCHES)


def _here(
    name: str,
    bench: Bench,
    seen: Seen,
    wanted: str | None,
    wrapped: Callable[[SimulatedEngine], SimulatedEngine] | None = None,
) -> Row:
    try:
        ended = run_here(bench, seen, wrapped)
    except (SpectuneError, psutil.Error) as error:
        return Row(
            name, None, None, False, bench.intact(), bench.processes_left(), bench.ports_left(), False, str(error)
        )
    failures = {record.trial: record.failure for record in ended.records if record.failure is not None}
    found = failures[1].failure_class.value if 1 in failures else None
    went_on = len(ended.records) == LAUNCHES and ended.records[-1].failure is None
    left, ports, intact = bench.processes_left(), bench.ports_left(), bench.intact(LAUNCHES)
    right = found == wanted and failures.keys() <= {1}
    ok = right and went_on and intact and not left and not ports
    remark = "" if right else "; ".join(failure.message for failure in failures.values())
    return Row(name, None, found, went_on, intact, left, ports, ok, remark)
