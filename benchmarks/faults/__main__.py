"""Try faults and print what became of each: `python -m benchmarks.faults`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from benchmarks.faults import damage, databases, disks, kills, machines, matrix, workers
from benchmarks.faults.row import Case, Row, table


def main() -> int:
    """Run the faults that are asked for; returns 1 if one of them is not met as it must be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="WORDS", action="append", help="faults whose name holds all of these words")
    parser.add_argument("--jobs", type=int, default=2, help="faults tried at once")
    parser.add_argument("--flood-mb", type=int, default=1024, help="size of the flooded log")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the rows there too")
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="spectune-faults-") as folder:
        chosen = [case for case in all_cases(Path(folder), options.flood_mb) if wanted(case.name, options.only)]
        rows: list[Row] = []
        for rows in run_all(chosen, options.jobs):
            if options.json:  # as it grows: a run of an hour may be broken off
                told = {"schema": 1, "rows": [row.to_json() for row in rows]}
                options.json.write_text(json.dumps(told, indent=2) + "\n")
    print(table(rows))
    failed = [row for row in rows if not row.ok]
    print(f"{len(rows)} faults in {time.monotonic() - began:.0f} s, {len(failed)} of them not met as they must be")
    return int(bool(failed) or not rows)


def all_cases(folder: Path, flood_mb: int) -> list[Case]:
    """Return every fault there is."""
    return [
        *matrix.cases(folder), *kills.cases(folder), *disks.cases(folder), *damage.cases(folder),
        *machines.cases(folder, flood_mb), *databases.cases(folder), *workers.cases(folder),
    ]  # fmt: skip


def wanted(name: str, only: Sequence[str] | None) -> bool:
    """Whether a fault's name holds all the words of one of the wishes; without wishes, all are wanted."""
    return not only or any(all(word in name for word in words.split()) for words in only)


def run_all(cases: Sequence[Case], jobs: int) -> Iterator[list[Row]]:
    """Yield the rows there are, in the order of the cases, whenever a case has ended; and tell what became of it."""
    rows: dict[int, list[Row]] = {}
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(case.run): number for number, case in enumerate(cases)}
        for done in as_completed(running):
            result = done.result()
            found = rows[running[done]] = result if isinstance(result, list) else [result]
            for row in found:
                said = f"{row.fault}: {'ok' if row.ok else 'NOT OK'} {row.remark}"
                print(f"[{len(rows)}/{len(cases)}] {said}", file=sys.stderr, flush=True)
            yield [row for number in sorted(rows) for row in rows[number]]


if __name__ == "__main__":
    sys.exit(main())
