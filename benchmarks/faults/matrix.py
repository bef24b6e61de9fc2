"""Every failure the simulated engine can have, at every point of a launch: once in a study of three launches."""

from __future__ import annotations

import asyncio
import functools
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from benchmarks.faults.laboratory import MARK, Bench
from benchmarks.faults.row import Case, Row
from benchmarks.virtual_study import Silent
from spectune.engines.open import open_engine
from spectune.engines.simulated.engine import FIRED_FILE, SimulatedEngine
from spectune.engines.simulated.faults import POINTS
from spectune.engines.simulated.profile_schema import Kind, Point
from spectune.errors import SpectuneError
from spectune.search import Ended, TrialRecord, open_study, run_study
from spectune.space import load_space

KINDS: tuple[Kind, ...] = get_args(Kind)
OF_REQUESTS = frozenset({"garbage_output", "http_500", "partial_failure", "zero_acceptance", "ignores_temperature"})
"""What goes wrong with single requests, whatever point it is due from."""
HARMLESS = frozenset({"slow_start", "ignore_sigterm", "daemonize", "log_flood"})
CLASSES = {
    "oom": "memory", "port_in_use": "port_in_use", "garbage_output": "corrupt", "ignores_temperature": "corrupt",
    "zero_acceptance": "drafter", "http_500": "crash", "partial_failure": "crash",
}  # fmt: skip
"""Kind → class, where they are not called alike."""
SERVED_FROM: tuple[Point, ...] = ("load", "bench")
LAUNCHES = 3  # a baseline, the one with the fault, and one more
WITHIN_S = 60.0  # a hang is to be noticed, once the engine has been ready


def cases(folder: Path) -> Iterator[Case]:
    """Yield the matrix, over the real server wherever a process or its requests differ, else in virtual time."""
    for at in POINTS:
        for kind in KINDS:
            virtual = kind in OF_REQUESTS and at not in SERVED_FROM
            name = f"{kind} at {at} ({'virtual' if virtual else 'served'})"
            yield Case(name, functools.partial(try_fault, name, folder, kind, at, virtual=virtual))


def expected(kind: Kind, at: Point) -> str | None:
    """Return the class that a launch must end in; None where it must come through."""
    if at == "shutdown" or kind in HARMLESS:  # all levels are measured by then
        return None
    if (kind, at) == ("zero_acceptance", "bench"):  # it accepts at the canary, and the levels show what it is worth
        return None
    if kind in {"hang", "http_500"} and at != "bench":  # it never gives its first generation
        return "startup_timeout"
    return CLASSES.get(kind, kind)


@dataclass
class Seen(Silent):
    """When launches were given up, or had served.

    Attributes:
        ending_s: Trial → when its engine was told to end, in seconds since the epoch.
    """

    ending_s: list[float] = field(default_factory=list)

    def says(self, text: str) -> None:
        """Note the end of a launch."""
        if text == "ending the engine":
            self.ending_s.append(time.time())


def try_fault(name: str, folder: Path, kind: Kind, at: Point, *, virtual: bool) -> Row:
    """Run the study with one fault; returns what became of it."""
    bench = Bench(folder / name.replace(" ", "-"))
    share = {"share": 0.7} if kind == "partial_failure" else {}
    fault = {"when": {"speculation": True}, "at": at, "kind": kind, "times": 1, **share}
    bench.write(
        virtual=virtual, trials=LAUNCHES, faults=[fault], temperature=0.7 if kind == "ignores_temperature" else 0.0,
        startup="8s" if expected(kind, at) == "startup_timeout" else "60s",
    )  # fmt: skip
    seen = Seen()
    try:
        ended = run_here(bench, seen)
    except SpectuneError as error:
        return Row(
            name, None, None, False, bench.intact(), bench.processes_left(), bench.ports_left(), False, str(error)
        )
    fired = bench.study.root / FIRED_FILE
    record = next((record for record in ended.records if record.candidate.speculative), None)
    return _judged(name, expected(kind, at), bench, ended, record, _noticed_s(record, fired, seen, virtual=virtual))


def run_here(
    bench: Bench, watcher: Silent, wrapped: Callable[[SimulatedEngine], SimulatedEngine] | None = None
) -> Ended:
    """Run the study of a bench in this process, whose children carry its mark; `wrapped` may change the engine."""
    before = os.environ.get(MARK)
    os.environ[MARK] = bench.mark
    try:
        space = load_space(bench.folder / "space.yaml")
        engine = open_engine(space)
        if wrapped is not None:
            assert isinstance(engine, SimulatedEngine)
            engine = wrapped(engine)
        bench.study.root.mkdir(parents=True, exist_ok=True)
        lock = bench.study.lock()
        try:
            open_study(bench.study, space, engine)
            return asyncio.run(run_study(bench.study, space, engine, watcher, sampler="random"))
        finally:
            lock.release()
    finally:
        os.environ.pop(MARK) if before is None else os.environ.update({MARK: before})


def _noticed_s(record: TrialRecord | None, fired: Path, seen: Seen, *, virtual: bool) -> float | None:
    """Return the seconds from the fault to the decision to end the launch; virtual ones count from its start."""
    if record is None or record.failure is None or not fired.exists():
        return None
    return record.seconds.total if virtual else seen.ending_s[record.trial] - fired.stat().st_mtime


def _judged(
    name: str, wanted: str | None, bench: Bench, ended: Ended, record: TrialRecord | None, noticed_s: float | None
) -> Row:
    failure = record.failure if record is not None else None
    found = None if failure is None else failure.failure_class.value
    went_on = len(ended.records) == LAUNCHES and ended.records[-1].failure is None
    left, ports, intact = bench.processes_left(), bench.ports_left(), bench.intact(len(ended.records))
    wrong = []
    if record is None:
        wrong.append("no launch with speculation was made")
    if found != wanted:
        wrong.append(f"expected {wanted}: {failure.message if failure else 'it came through'}")
    if wanted == "hang" and (noticed_s is None or noticed_s > WITHIN_S):
        wrong.append(f"noticed later than after {WITHIN_S:g} s")
    if not went_on:
        wrong.append(ended.stop.reason)
    ok = not wrong and intact and not left and not ports
    return Row(name, noticed_s, found, went_on, intact, left, ports, ok, "; ".join(wrong))
