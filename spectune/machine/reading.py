"""Small files of the kernel, read so that nothing can fail: what cannot be read is None."""

from __future__ import annotations

from pathlib import Path

MOST = 1 << 20  # characters; the largest of these files, /proc/cpuinfo of a big server, is smaller


def text_of(path: Path) -> str | None:
    """Return the beginning of a file, None where there is none to read."""
    try:
        if not path.is_file():  # a pipe would never end
            return None
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(MOST)
    except (OSError, ValueError):
        return None


def first_line(path: Path) -> str | None:
    """Return a file's first line without blanks around it; None where it is missing or empty."""
    lines = (text_of(path) or "").splitlines()
    return lines[0].strip() or None if lines else None


def number_in(path: Path) -> int | None:
    """Return the whole number that a file's first line begins with; None where there is none."""
    words = (first_line(path) or "").split()
    try:
        return int(words[0]) if words else None
    except ValueError:
        return None


def number_ranges(text: str) -> list[int]:
    """Return the numbers of a list such as `0-3,8`, the kernel's way to write sets; empty when it is something else."""
    numbers: list[int] = []
    try:
        for part in filter(None, text.strip().split(",")):
            low, _, high = part.partition("-")
            numbers += range(int(low), min(int(high or low), int(low) + 65_536) + 1)
    except ValueError:
        return []
    return numbers


def as_ranges(numbers: list[int]) -> str:
    """Return a set of numbers the way the kernel writes it: `0-3,8`."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
