"""Files of a study that are torn, overwritten or gone when it goes on."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from benchmarks.faults.again import judged
from benchmarks.faults.laboratory import Bench
from benchmarks.faults.row import Case, Row

FIRST, LAUNCHES = 2, 4


def _torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def _halved(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _overwritten(path: Path) -> None:
    path.write_bytes(b"\x00\xff" * 4096)


def _emptied(path: Path) -> None:
    path.write_bytes(b"")


def _zeroed_inside(path: Path) -> None:
    content = path.read_bytes()
    third = len(content) // 3
    path.write_bytes(content[:third] + bytes(third) + content[2 * third :])


DAMAGES: Mapping[str, tuple[str, Callable[[Path], None]]] = {
    "database halved": ("study.db", _halved),
    "database overwritten": ("study.db", _overwritten),
    "database emptied": ("study.db", _emptied),
    "database with a hole": ("study.db", _zeroed_inside),
    "database gone": ("study.db", Path.unlink),
    "last line of requests torn": ("trials/0001/level-c004.jsonl", _torn),
    "requests gone": ("trials/0001/level-c004.jsonl", Path.unlink),
    "canary torn": ("trials/0000-baseline/canary.json", _torn),
    "summary torn": ("summary.json", _torn),
    "environment torn": ("environment.json", _torn),
}


def cases(folder: Path) -> Iterator[Case]:
    """Yield the damages."""
    for name, (file, damage) in DAMAGES.items():
        yield Case(name, functools.partial(try_damage, name, folder / name.replace(" ", "-"), file, damage))


def try_damage(name: str, folder: Path, file: str, damage: Callable[[Path], None]) -> Row:
    """Damage a study of a few launches, and let it go on."""
    bench = Bench(folder)
    bench.write(virtual=True, trials=FIRST)
    first = bench.search()
    kept = bench.results()
    damage(bench.study.root / file)
    bench.write(virtual=True, trials=LAUNCHES)
    again = bench.search()
    return judged(name, bench, kept, first, again, launches=LAUNCHES)
