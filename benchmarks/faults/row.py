"""One line of the fault matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

COLUMNS = ("fault", "detected_s", "class", "continued", "records_intact", "processes_left", "ports_left", "ok")


@dataclass(frozen=True)
class Row:
    """What became of one fault.

    Attributes:
        fault: Its name.
        detected_s: From the fault until it was known, in real seconds of a served launch, in simulated ones of a
            virtual launch; None where nothing had to be noticed, or nobody was left to notice it.
        failure_class: Class of the launch that met it; None where it must not, and did not, cost the launch.
        continued: Whether the study went on, by itself or with the same command, to its end.
        records_intact: Whether every finished launch is there, once, as it was.
        processes_left: Processes that outlived the study.
        ports_left: Ports of its launches that somebody still listens on.
        ok: Whether all this is as it must be.
        remark: What a reader should know of it, above all what is wrong.
    """

    fault: str
    detected_s: float | None
    failure_class: str | None
    continued: bool
    records_intact: bool
    processes_left: int
    ports_left: int
    ok: bool
    remark: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the object of `--json`."""
        return {"class" if name == "failure_class" else name: value for name, value in asdict(self).items()}


@dataclass(frozen=True)
class Case:
    """A fault to try: its name, and what tries it."""

    name: str
    run: Callable[[], Row | list[Row]]


def table(rows: Sequence[Row]) -> str:
    """Return the matrix as text."""
    lines = [_line(*COLUMNS)]
    for row in rows:
        told = row.to_json()
        detected = "" if row.detected_s is None else f"{row.detected_s:.1f}"
        lines.append(
            _line(row.fault, detected, *(_said(told[name]) for name in COLUMNS[2:])) + f"  {row.remark}".rstrip()
        )
    return "\n".join(lines)


def _said(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    return "" if value is None else str(value)


def _line(*words: str) -> str:
    widths = (46, 11, 16, 10, 15, 15, 11, 4)
    return " ".join(word.ljust(width) for word, width in zip(words, widths, strict=True)).rstrip()
