"""Disks that fill up or can no longer be written, on a small file system of their own."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Iterator
from pathlib import Path

from benchmarks.faults.again import judged
from benchmarks.faults.laboratory import SEARCH, Bench
from benchmarks.faults.row import Case, Row

LAUNCHES = 3
SIZES_KB = (16, 100, 160, 220, 300)
SERVED_KB = 400
NAMESPACE = ("unshare", "--mount", "--map-root-user")
"""The file system is mounted in a world of its own, which goes with its last process."""

FULL = """
mkdir -p studies; mount -t tmpfs -o size="$1" tmpfs studies || exit 99; shift
"$@" >first 2>&1; echo $? >code
cp -a studies kept-first
mount -o remount,size=64m studies
"$@" >second 2>&1; code=$?
cp -a studies kept; exit $code
"""
READ_ONLY = """
mkdir -p studies; mount -t tmpfs -o size="$1" tmpfs studies || exit 99; shift
"$@" --trials 2 >begun 2>&1
mount -o remount,ro studies || exit 99
"$@" >first 2>&1; echo $? >code
cp -a studies kept-first
mount -o remount,rw studies
"$@" >second 2>&1; code=$?
cp -a studies kept; exit $code
"""


def cases(folder: Path) -> Iterator[Case]:
    """Yield the disks: so small that a study fills them at different moments, and one that can no longer be written."""
    for size in SIZES_KB:
        name = f"disk full ({size} KiB)"
        yield Case(name, functools.partial(try_disk, name, folder / f"disk-{size}", FULL, size, virtual=True))
    name = f"disk full ({SERVED_KB} KiB, served)"
    yield Case(name, functools.partial(try_disk, name, folder / "disk-served", FULL, SERVED_KB, virtual=False))
    name = "disk read-only when the study goes on"
    yield Case(name, functools.partial(try_disk, name, folder / "disk-ro", READ_ONLY, 65536, virtual=True))


def try_disk(name: str, folder: Path, script: str, size_kb: int, *, virtual: bool) -> Row:
    """Run the study on the disk, make room, and run it again."""
    bench = Bench(folder)
    bench.write(virtual=virtual, trials=LAUNCHES)
    code, said = bench.run(*NAMESPACE, "bash", "-c", script, "disk", f"{size_kb}k", *SEARCH)
    if code == 99:
        return Row(name, None, None, False, False, 0, 0, False, f"no file system could be mounted: {said}")
    first = Bench(folder / "first-run", bench.mark)
    shutil.move(folder / "kept-first", first.folder / "studies")
    shutil.rmtree(folder / "studies", ignore_errors=True)
    shutil.move(folder / "kept", folder / "studies")
    outcomes = [
        (int((folder / "code").read_text()), (folder / "first").read_text()),
        (code, (folder / "second").read_text()),
    ]
    return judged(name, bench, first.results(), *outcomes, launches=LAUNCHES)
