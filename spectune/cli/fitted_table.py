"""A table that makes room: where it does not fit, columns are left out and cells cut, and no row takes two lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

GAP = 2  # characters between two columns


@dataclass(frozen=True)
class Column:
    """A column, and how it makes room.

    Attributes:
        heading: Above it.
        justify: Where its cells begin or end alike.
        least: Characters that are left at least of a cell that is cut; None where cells are never cut.
        leaves: When it is left out, those with the lowest number first; None for never.
    """

    heading: str
    justify: Literal["left", "right"] = "left"
    least: int | None = None
    leaves: int | None = None


def fitted_table(columns: Sequence[Column], rows: Sequence[Sequence[str | Text]], width: int) -> Table:
    """Return a table of at most so many characters.

    Args:
        columns: What may be shown, in this order.
        rows: Cells of each row, one for every column.
        width: Characters of a line.
    """
    texts = [[cell if isinstance(cell, Text) else Text(cell) for cell in row] for row in rows]
    cells = zip(*texts, strict=True) if rows else [()] * len(columns)
    whole = [
        max(cell_len(column.heading), *(cell.cell_len for cell in below), 0)
        for column, below in zip(columns, cells, strict=True)
    ]
    widths = fit(columns, whole, width)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, wide in widths.items():
        column = columns[place]
        table.add_column(column.heading, justify=column.justify, width=wide, no_wrap=True, overflow="ellipsis")
    for row in texts:
        table.add_row(*(row[place] for place in widths))
    return table


def fit(columns: Sequence[Column], whole: Sequence[int], width: int) -> dict[int, int]:
    """Return the places of the columns that stay, each with its width in characters.

    Cells are cut as far as they may be, those of the last columns first, before a column is left out.

    Args:
        columns: All there are.
        whole: Width of each with nothing cut.
        width: Characters of a line, the gaps between columns included.
    """
    least = [min(wide, column.least or wide) for column, wide in zip(columns, whole, strict=True)]
    stays = list(range(len(columns)))
    for place in sorted(stays, key=lambda place: columns[place].leaves or 0):
        if sum(least[place] + GAP for place in stays) - GAP <= width:
            break
        if columns[place].leaves is not None:
            stays.remove(place)
    widths = {place: whole[place] for place in stays}
    for place in reversed(stays):
        over = sum(wide + GAP for wide in widths.values()) - GAP - width
        widths[place] -= min(max(0, over), whole[place] - least[place])
    return widths
