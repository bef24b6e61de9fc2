"""Which charts a study gets, and what is said beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spectune.report import charts
from spectune.report.charts import Chart


def chart_list(
    told: Mapping[str, Any],
    trials: Sequence[Any],
    *,
    labels: Mapping[str, str],
    pareto: frozenset[str],
    baselines: frozenset[str],
) -> list[Chart]:
    """Return the charts that the study has figures for, in reading order.

    Args:
        told: Content of `summary.json`.
        trials: Contents of the `result.json` files.
        labels: Names of candidates by their id.
        pareto: Ids of candidates nothing beats.
        baselines: Ids of candidates without speculation.
    """
    rows = [row for row in told["candidates"] if row["class"] == "all"]
    made: list[Chart] = []
    found = charts.objectives(rows, told["objectives"], pareto, baselines)
    if found:
        caption = (
            "A point per candidate with 95 % intervals; for speeds, further right and up is better. "
            "Diamonds do not speculate."
        )
        made.append(Chart("objectives", "What was searched for", caption, found))
    if rows:
        caption = (
            "What one user sees against what the server delivers. A line joins the load levels of one candidate; "
            "the dotted line does not speculate, filled markers are Pareto-optimal."
        )
        made.append(
            Chart(
                "trade-off",
                "Speed of one request against throughput",
                caption,
                charts.trade_off(rows, pareto, baselines),
            )
        )
    found = charts.break_even(rows)
    if found:
        caption = "Speculation pays where the dot (accepted) lies to the right of the bar (needed). Fastest first."
        height = 120 + 50 * len(found["layout"]["annotations"])
        made.append(Chart("break-even", "Accepted and needed", caption, found, height))
    found = charts.acceptance(_curves(trials, labels, pareto))
    if found:
        caption = "Each further token is worth drafting only while it is still accepted often enough."
        made.append(Chart("acceptance", "Acceptance by position", caption, found, 380))
    return made


def _curves(
    trials: Sequence[Any], labels: Mapping[str, str], pareto: frozenset[str]
) -> list[tuple[str, Sequence[float]]]:
    """Return the survival curve at its first level of one launch per candidate, Pareto-optimal ones first."""
    curves: dict[str, tuple[str, Sequence[float]]] = {}
    for trial in sorted(trials, key=lambda trial: trial["candidate_id"] not in pareto):
        for level in trial["levels"][:1]:
            if level["per_position"] and trial["status"] == "ok":
                curves.setdefault(trial["candidate_id"], (labels[trial["candidate_id"]], level["per_position"]))
    return list(curves.values())
