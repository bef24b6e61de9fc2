"""spectune killed with -9 at random instants, each run going on where the one before was killed."""

from __future__ import annotations

import functools
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.faults.laboratory import Bench
from benchmarks.faults.row import Case, Row

INSTANTS = 25
LAUNCHES = 6
LATEST_S = {False: 14.0, True: 8.0}  # after the start of a run: into its second launch over the server, any virtually
SEED = 9


def cases(folder: Path) -> Iterator[Case]:
    """Yield the two chains of kills."""
    for virtual in (False, True):
        name = f"kill -9 of spectune ({'virtual' if virtual else 'served'})"
        yield Case(name, functools.partial(try_kills, name, folder, virtual=virtual))


def try_kills(
    name: str, folder: Path, *, virtual: bool, instants: int = INSTANTS, launches: int = LAUNCHES
) -> list[Row]:
    """Kill a study again and again, let it end, and compare it with one that was left alone."""
    bench, undisturbed = Bench(folder / f"kills-{virtual}"), Bench(folder / f"left-alone-{virtual}")
    draw = random.Random(SEED)
    bench.write(virtual=virtual, trials=launches)
    rows = []
    for number in range(1, instants + 1):
        before = bench.results()
        after_s = draw.uniform(0.2, LATEST_S[virtual])
        _kill(bench, after_s)
        left, ports = bench.processes_left(), bench.ports_left()
        kept = before.items() <= bench.results().items()
        row_name = f"{name[:-1]}, {number} of {instants}, {after_s:.1f} s after its start)"
        rows.append(Row(row_name, None, None, False, kept, left, ports, False, "" if kept else "a record has changed"))
    code, said = bench.search()
    undisturbed.write(virtual=virtual, trials=launches)
    undisturbed.search()
    whole = bench.intact(launches) and undisturbed.intact(launches)
    same = not virtual or _figures(bench) == _figures(undisturbed)
    remark = "" if code == 0 else f"the last run ended with {code}: {said[-300:]}"
    remark += "" if whole else "; launches are lost or doubled"
    remark += "" if same else "; the figures are not those of a study that was left alone"
    continued, intact = code == 0, whole and same
    return [
        replace(
            row, continued=continued, records_intact=row.records_intact and intact, remark=row.remark + remark,
            ok=continued and intact and row.records_intact and not row.processes_left and not row.ports_left,
        )
        for row in rows
    ]  # fmt: skip


def _kill(bench: Bench, after_s: float) -> None:
    with bench.start() as search:
        try:
            search.communicate(timeout=after_s)
        except subprocess.TimeoutExpired:
            search.send_signal(signal.SIGKILL)
            search.wait()
            time.sleep(0.1)


def _figures(bench: Bench) -> list[tuple[str, str, list[float]]]:
    """Return what was launched and measured, in virtual time the same in every study."""
    return [
        (record.candidate.candidate_id, record.role.value, [level.decode_speed.est for level in record.levels])
        for record in bench.records()
    ]
