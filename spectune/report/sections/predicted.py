"""What another drafter, another cycle and another load would give: predictions for the candidate looked at."""

from __future__ import annotations

from dataclasses import dataclass

from spectune.analysis.why.what_if_result import AtAcceptLength, AtLoad
from spectune.report.material import Material
from spectune.report.wording import length, number


@dataclass(frozen=True)
class Table:
    """A table of figures."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Predicted:
    """What the predictions rest on, in sentences, and their tables."""

    words: tuple[str, ...]
    tables: tuple[Table, ...]


def predicted(material: Material) -> Predicted | None:
    """Return the predictions of a study; None where its fit allows none."""
    told = material.break_even.what_if
    if told is None:
        return None
    tables = (
        Table(
            "Another drafter",
            ("accept length", "tok/s", "best S,K,N", "accept length then", "tok/s then"),
            tuple(
                (length(at.accept_length), number(at.speed, 3), _shape(at), length(at.best_accept_length),
                 number(at.best_speed, 3))
                for at in told.by_accept_length
            ),
        ),
        Table(
            "Another cycle time",
            ("cycle ms", "break-even", "tok/s"),
            tuple((number(at.cycle_ms, 3), length(at.break_even), number(at.speed, 3)) for at in told.by_cycle),
        ),
        Table(
            "Another load",
            ("requests at a time", "tok/s", "without speculation", "best S,K,N", "tok/s then"),
            tuple(
                (f"{at.concurrency}{' (measured)' if at.measured else ''}", number(at.speed, 3),
                 number(at.baseline_speed, 3), _shape(at), number(at.best_speed, 3))
                for at in told.by_load
            ),
        ),
    )  # fmt: skip
    return Predicted(told.words, tables)


def _shape(at: AtAcceptLength | AtLoad) -> str:
    if not at.best_num_steps:
        return "none"
    return f"{at.best_num_steps},{at.best_eagle_topk},{at.best_num_draft_tokens}"
