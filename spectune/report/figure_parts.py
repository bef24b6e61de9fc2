"""What all charts are made of: escaped text, points with their intervals, axes in the page's colours."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from spectune.report.wording import estimate, interval, length, times

Row = Mapping[str, Any]
Figure = dict[str, Any]
Triples = Sequence[Sequence[float | None]]

SERIES = tuple(f"var(--series-{number})" for number in range(1, 9))


def text(value: object, longest: int = 60) -> str:
    """Return user-given text for a chart: plotly reads tags in it, so it is escaped, on one line and cut."""
    line = " ".join(str(value).split())
    return html.escape(line if len(line) <= longest else f"{line[: longest - 1]}…", quote=False)


def symbol(*, baseline: bool, best: bool) -> str:
    """Return the marker: a diamond without speculation, filled when nothing beats it."""
    return ("diamond" if baseline else "circle") + ("" if best else "-open")


def verdict_colour(row: Row) -> str:
    """Return the colour of a candidate's verdict."""
    return {"pays": "var(--good)", "loses": "var(--bad)"}.get(str(row.get("verdict")), "var(--unclear)")


def dots(rows: Sequence[Row]) -> dict[str, Any]:
    """Return a trace of candidates that are there for comparison only."""
    return {
        "type": "scatter", "mode": "markers", "name": "other candidates", "showlegend": bool(rows),
        "x": [row["decode_speed"][0] for row in rows], "y": [row["output_throughput"][0] for row in rows],
        "hovertext": [hover(row) for row in rows], "hoverinfo": "text",
        "marker": {"size": 7, "color": "var(--muted)", "opacity": 0.6},
    }  # fmt: skip


def points(rows: Sequence[Row], across: str, up: str, colour: str) -> dict[str, Any]:
    """Return a trace of two estimates of each row, with their intervals."""
    return {
        "type": "scatter", "x": [row[across][0] for row in rows], "y": [row[up][0] for row in rows],
        "error_x": bars([row[across] for row in rows], colour), "error_y": bars([row[up] for row in rows], colour),
        "hovertext": [hover(row) for row in rows], "hoverinfo": "text",
    }  # fmt: skip


def bars(triples: Sequence[Sequence[float | None]], colour: str) -> dict[str, Any]:
    """Return error bars; an unknown end draws none."""
    up, down = [], []
    for est, lo, hi in triples:
        up.append(0.0 if hi is None or est is None else hi - est)
        down.append(0.0 if lo is None or est is None else est - lo)
    return {
        "type": "data",
        "symmetric": False,
        "array": up,
        "arrayminus": down,
        "color": colour,
        "thickness": 1,
        "width": 3,
    }


def hover(row: Row) -> str:
    """Return what a point says when it is pointed at."""
    lines = [f"<b>{text(row['label'])}</b> at {text(row['level'], 12)}"]
    for name, unit in (("decode_speed", "tok/s"), ("output_throughput", "tok/s"), ("cycle_ms", "ms")):
        if row.get(name):
            spread = interval(row[name])
            words = f"{name.removesuffix('_ms').replace('_', ' ')} {estimate(row[name])} {unit}"
            lines.append(f"{words} ({spread})" if spread else words)
    if row.get("break_even"):
        lines.append(f"accept length {length(row['accept_length'][0])}, break-even {length(row['break_even'][0])}")
        lines.append(f"{times(row.get('speedup'))} the best baseline")
    return "<br>".join(lines)


def blank(traces: list[dict[str, Any]], across: str, up: str) -> Figure:
    """Return a figure of these traces with titled axes."""
    axis = {
        "gridcolor": "var(--rule)",
        "zeroline": False,
        "linecolor": "var(--rule)",
        "automargin": True,
        "rangemode": "tozero",
    }
    return {
        "data": traces,
        "layout": {
            "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)", "hovermode": "closest",
            "margin": {"l": 8, "r": 12, "t": 12, "b": 8},
            "font": {"color": "var(--text)", "family": "system-ui, sans-serif", "size": 12},
            "hoverlabel": {"align": "left", "bgcolor": "var(--card)", "font": {"color": "var(--text)"}},
            "legend": {"orientation": "h", "x": 0, "y": -0.2, "yanchor": "top"},
            "xaxis": {**axis, "title": {"text": across, "font": {"size": 12}}},
            "yaxis": {**axis, "title": {"text": up, "font": {"size": 12}}},
        },
    }  # fmt: skip
