"""The charts, as plain plotly figures. Colours are names of the page's CSS variables, so that they follow its theme."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from spectune.report.figure_parts import (
    SERIES,
    Figure,
    Row,
    bars,
    blank,
    dots,
    hover,
    points,
    symbol,
    text,
    verdict_colour,
)

HIGHLIGHTED = len(SERIES)
MOST_ROWS = 24
TITLES = {
    "decode_speed": "decode speed, one request (tok/s)",
    "output_throughput": "throughput, all requests (tok/s)",
    "cycle_ms": "cycle time (ms)",
}


@dataclass(frozen=True)
class Chart:
    """A figure with what a reader who cannot see it needs.

    Attributes:
        name: Id in the page.
        title: Heading.
        caption: What it shows and how to read it.
        figure: For plotly.
        height: Pixels.
    """

    name: str
    title: str
    caption: str
    figure: Figure
    height: int = 420


def trade_off(rows: Sequence[Row], pareto: frozenset[str], baselines: frozenset[str]) -> Figure:
    """Speed of one request against throughput: a line per highlighted candidate through its levels, the rest as dots.

    Args:
        rows: Entries of the summary's `candidates` for all prompt classes.
        pareto: Ids of candidates nothing beats.
        baselines: Ids of candidates without speculation.
    """
    shown = _first_seen(row["candidate_id"] for row in rows if row["candidate_id"] in pareto | baselines)[:HIGHLIGHTED]
    traces = [dots([row for row in rows if row["candidate_id"] not in shown])]
    coloured = [candidate for candidate in shown if candidate not in baselines]
    for candidate in shown:
        own = [row for row in rows if row["candidate_id"] == candidate]
        baseline = candidate in baselines
        colour = "var(--baseline)" if baseline else SERIES[coloured.index(candidate)]
        best = candidate in pareto
        traces.append(
            {
                **points(own, "decode_speed", "output_throughput", colour),
                "mode": "lines+markers" if baseline else "lines+markers+text",
                "name": text(own[0]["label"], 40),
                "text": [text(row["level"], 12) for row in own],
                "textposition": "top right",
                "textfont": {"size": 10, "color": "var(--muted)"},
                "line": {"color": colour, "width": 1.5, "dash": "dot" if baseline else "solid"},
                "marker": {"size": 11, "color": colour, "symbol": symbol(baseline=baseline, best=best)},
            }
        )
    return blank(traces, TITLES["decode_speed"], TITLES["output_throughput"])


def objectives(
    rows: Sequence[Row], wanted: Sequence[Row], pareto: frozenset[str], baselines: frozenset[str]
) -> Figure | None:
    """The first two objectives against each other, a point per candidate; None where there are no two to draw."""
    if len(wanted) < 2 or any(objective["metric"] not in TITLES for objective in wanted[:2]):
        return None
    across, up = wanted[:2]
    found: list[Row] = []
    for candidate in _first_seen(row["candidate_id"] for row in rows):
        at = {row["level"]: row for row in rows if row["candidate_id"] == candidate}
        if across["level"] in at and up["level"] in at:
            first = at[across["level"]]
            found.append({**first, "across": first.get(across["metric"]), "up": at[up["level"]].get(up["metric"])})
    found = [point for point in found if point["across"] and point["up"]]
    if not found:
        return None
    front = sorted((point for point in found if point["candidate_id"] in pareto), key=lambda point: point["across"][0])
    line = {
        "type": "scatter", "mode": "lines", "name": "Pareto front", "hoverinfo": "skip", "showlegend": False,
        "x": [point["across"][0] for point in front], "y": [point["up"][0] for point in front],
        "line": {"color": "var(--accent)", "width": 1.5, "dash": "dash"},
    }  # fmt: skip
    kinds = (
        ("without speculation", "var(--baseline)", baselines),
        ("Pareto-optimal: nothing beats it in both", "var(--accent)", pareto - baselines),
        ("beaten in both", "var(--muted)", frozenset(p["candidate_id"] for p in found) - pareto - baselines),
    )
    traces = [line]
    for name, colour, members in kinds:
        own = [point for point in found if point["candidate_id"] in members]
        if own:
            symbols = [
                symbol(baseline=point["candidate_id"] in baselines, best=point["candidate_id"] in pareto)
                for point in own
            ]
            marker = {"size": 12, "color": colour, "symbol": symbols, "line": {"width": 1.5, "color": colour}}
            traces.append({**points(own, "across", "up", colour), "mode": "markers", "name": name, "marker": marker})
    axes = [f"{TITLES[objective['metric']]} at {text(objective['level'], 12)}" for objective in (across, up)]
    return blank(traces, *axes)


def break_even(rows: Sequence[Row]) -> Figure | None:
    """Accept length against what it has to be, a line per candidate and level, fastest first; None without any."""
    compared = [row for row in rows if row.get("break_even") and row.get("accept_length")]
    ranked = sorted(compared, key=lambda row: -(row["speedup"] or [0.0])[0])[:MOST_ROWS]
    if not ranked:
        return None
    places = list(range(len(ranked), 0, -1))
    gaps: dict[str, Any] = {
        "type": "scatter", "mode": "lines", "hoverinfo": "skip", "showlegend": False,
        "line": {"color": "var(--rule)", "width": 6},
        "x": [x for row in ranked for x in (row["break_even"][0], row["accept_length"][0], None)],
        "y": [y for place in places for y in (place, place, None)],
    }  # fmt: skip
    traces = [gaps]
    for key, name, mark, colours in (
        ("break_even", "break-even: as fast as the baseline", "line-ns", ["var(--text)"] * len(ranked)),
        ("accept_length", "measured accept length", "circle", [verdict_colour(row) for row in ranked]),
    ):
        traces.append(
            {
                "type": "scatter", "mode": "markers", "name": name, "y": places, "x": [row[key][0] for row in ranked],
                "error_x": bars([row[key] for row in ranked], "var(--muted)"),
                "marker": {"symbol": mark, "size": 13, "color": colours, "line": {"width": 3, "color": colours}},
                "hovertext": [hover(row) for row in ranked], "hoverinfo": "text",
            }
        )  # fmt: skip
    figure = blank(traces, "accept length (tokens per verify)", "")
    figure["layout"]["yaxis"] |= {"visible": False, "range": [0.5, len(ranked) + 0.8], "fixedrange": True}
    figure["layout"]["xaxis"]["rangemode"] = "normal"
    figure["layout"]["legend"] |= {"y": 1, "yanchor": "bottom"}
    figure["layout"]["annotations"] = [
        {
            "xref": "paper", "x": 0, "xanchor": "left", "y": place, "yshift": 16, "showarrow": False,
            "text": f"{text(row['label'], 44)} · {text(row['level'], 10)}", "font": {"size": 12},
        }
        for row, place in zip(ranked, places, strict=True)
    ]  # fmt: skip
    return figure


def acceptance(curves: Sequence[tuple[str, Sequence[float]]]) -> Figure | None:
    """How far drafts get: the share of verifies that accepted at least i drafted tokens, a line per configuration."""
    traces = [
        {
            "type": "scatter", "mode": "lines+markers", "name": text(label, 40), "x": list(range(1, len(survival) + 1)),
            "y": list(survival), "line": {"color": colour, "width": 2}, "marker": {"size": 8, "color": colour},
            "hovertemplate": "position %{x}: %{y:.0%}<extra></extra>",
        }
        for (label, survival), colour in zip(curves, SERIES, strict=False)
        if survival
    ]  # fmt: skip
    if not traces:
        return None
    figure = blank(traces, "drafted token", "share of verifies that accepted it")
    figure["layout"]["yaxis"] |= {"tickformat": ".0%", "range": [0, 1.02]}
    figure["layout"]["xaxis"] |= {"dtick": 1, "rangemode": "normal"}
    return figure


def _first_seen(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))
