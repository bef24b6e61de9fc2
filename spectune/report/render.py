"""From the view to one file that opens without a network."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from spectune import __version__
from spectune.files import write_whole
from spectune.report.charts import Chart
from spectune.report.view import ReportView, build_view
from spectune.search.records import TrialRecord


def write_report(
    summary: Mapping[str, Any],
    records: Sequence[TrialRecord],
    environment: Mapping[str, Any],
    space_text: str,
    path: Path,
) -> Path:
    """Write the report of a study.

    Args:
        summary: Content of `summary.json`.
        records: All launches, failed and suspect ones too.
        environment: Content of `environment.json`; may be empty.
        space_text: The search space as the user gave it.
        path: The file to write; its folder is made when missing.

    Returns:
        The file.

    Raises:
        SpectuneError: When the file cannot be written.
    """
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
    write_whole(path, render_report(build_view(summary, records, environment, space_text), written=now))
    return path


def render_report(view: ReportView, *, written: str) -> str:
    """Return the page.

    Args:
        view: What it shows.
        written: When, in words.
    """
    import jinja2  # noqa: PLC0415 (heavy, and only needed here)
    from plotly.offline import get_plotlyjs  # noqa: PLC0415

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_package_file),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = environment.get_template("report.html.j2")
    return template.render(
        view=view,
        written=written,
        version=__version__,
        style=_package_file("report.css"),
        script=_package_file("report.js"),
        plotly=get_plotlyjs() if view.charts else "",
        figures=embedded_json(_figures(view.charts)),
    )


def embedded_json(value: Any) -> str:
    """Return JSON that can stand inside a script element: nothing in it can end the element or open a comment."""
    encoded = json.dumps(value, ensure_ascii=True, allow_nan=False)
    return encoded.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _figures(charts: Sequence[Chart]) -> dict[str, Any]:
    return {
        chart.name: {**chart.figure, "layout": {**chart.figure["layout"], "height": chart.height}} for chart in charts
    }


def _package_file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
