"""spectune killed with -9 at random instants, each run going on where the one before was killed."""

from __future__ import annotations

import contextlib
import functools
import math
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.faults.laboratory import SEARCH, Bench
from benchmarks.faults.row import Case, Row

INSTANTS = 25
REACH = {False: 3.0, True: 4.0}  # the latest: so many parts of a run, its start and then launches, are begun by then
LAUNCHES = {False: 18, True: 40}  # more than the runs that are killed can finish
COMMAND = (*SEARCH, "--sampler", "random")  # which does not end before its budget
POLL_S = 0.005
SEED = 9


@dataclass(frozen=True)
class Pace:
    """How long the parts of a run take when nobody disturbs it, in seconds.

    Attributes:
        start: Until its first launch begins.
        launch: From one launch to the next.
    """

    start: float
    launch: float


def cases(folder: Path) -> Iterator[Case]:
    """Yield the two chains of kills."""
    for virtual in (False, True):
        name = f"kill -9 of spectune ({'virtual' if virtual else 'served'})"
        yield Case(name, functools.partial(try_kills, name, folder, virtual=virtual))


def try_kills(name: str, folder: Path, *, virtual: bool, instants: int = INSTANTS) -> list[Row]:
    """Kill a study again and again, let it end, and compare it with one that was left alone."""
    bench, undisturbed = Bench(folder / f"kills-{virtual}"), Bench(folder / f"left-alone-{virtual}")
    draw = random.Random(SEED)
    for each in (bench, undisturbed):
        each.write(virtual=virtual, trials=LAUNCHES[virtual])
    pace = _left_alone(undisturbed)
    rows = []
    for number in range(1, instants + 1):
        before = bench.results()
        instant = draw.uniform(0.0, REACH[virtual])
        struck = _kill(bench, instant, pace)
        left, ports = bench.processes_left(), bench.ports_left()
        kept = before.items() <= bench.results().items()
        remark = f"{len(before)} launches were finished before, {len(bench.results())} then"
        remark += "" if kept else "; a record has changed"
        remark += "" if struck else "; it had ended before"
        rows.append(Row(_named(name, number, instants, instant), None, None, struck, kept, left, ports, False, remark))
    code, said = bench.run(*COMMAND)
    whole = bench.intact() and undisturbed.intact()
    same = not virtual or _figures(bench) == _figures(undisturbed)
    wrong = "" if code == 0 else f"; the last run ended with {code}: {said[-300:]}"
    wrong += "" if whole else "; launches are lost or doubled"
    wrong += "" if same else "; the figures are not those of a study that was left alone"
    return [
        replace(
            row, continued=row.continued and code == 0, records_intact=row.records_intact and whole and same,
            remark=row.remark + wrong,
            ok=row.continued and row.records_intact and not (wrong or row.processes_left or row.ports_left),
        )
        for row in rows
    ]  # fmt: skip


def _named(name: str, number: int, instants: int, instant: float) -> str:
    part, share = int(instant), math.floor(instant % 1.0 * 100)
    where = "its start" if part == 0 else f"its launch {part}"
    return f"{name[:-1]}, {number} of {instants}, {share} % into {where})"


def _left_alone(bench: Bench) -> Pace:
    """Run a study to its end; returns how long its parts took."""
    began = time.monotonic()
    with bench.start(*COMMAND) as search:
        _wait(search, lambda: bool(_begun(bench)))
        start_s = time.monotonic() - began
        search.communicate()
    launches = len(bench.results())
    return Pace(start_s, (time.monotonic() - began - start_s) / max(1, launches))


def _kill(bench: Bench, instant: float, pace: Pace) -> bool:
    """Kill a run after so many of its parts, the last one a share of what it takes; returns whether it still ran.

    A launch is waited for by its folder, not by the clock, so that a busy machine puts off no kill into another part.
    """
    part, share = int(instant), instant % 1.0
    earlier = _begun(bench)
    with bench.start(*COMMAND) as search:
        _wait(search, lambda: len(_begun(bench) - earlier) >= part)
        try:
            search.communicate(timeout=share * (pace.launch if part else pace.start))
        except subprocess.TimeoutExpired:
            search.kill()
            search.wait()
            time.sleep(0.1)
            return True
    return False


def _begun(bench: Bench) -> set[tuple[Path, int]]:
    """Return the launches that were begun, those that were made again as well."""
    begun = set()
    for path in bench.study.root.glob("trials/*/candidate.json"):
        with contextlib.suppress(FileNotFoundError):  # a launch that is made again
            begun.add((path, path.stat().st_mtime_ns))
    return begun


def _wait(search: subprocess.Popen[str], condition: Callable[[], bool]) -> None:
    while search.poll() is None and not condition():
        time.sleep(POLL_S)


def _figures(bench: Bench) -> list[tuple[str, str, list[float]]]:
    """Return what was launched and measured, in virtual time the same in every study."""
    return [
        (record.candidate.candidate_id, record.role.value, [level.decode_speed.est for level in record.levels])
        for record in bench.records()
    ]
