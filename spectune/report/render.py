"""From a study to one file that opens without a network."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectune import __version__
from spectune.errors import SpectuneError
from spectune.export.header import warning_of
from spectune.files import write_whole
from spectune.printable import printable_lines
from spectune.report.material import Material
from spectune.report.sections import decision, sections
from spectune.search import Summary
from spectune.search.storage.records import TrialRecord
from spectune.space import SearchSpace

if TYPE_CHECKING:
    from markupsafe import Markup

_BEGINNING = b"<!doctype html"
_CODE = re.compile(r"`([^`\n]+)`")


def write_report(
    summary: Summary,
    records: Sequence[TrialRecord],
    environment: Mapping[str, Any],
    space: SearchSpace,
    path: Path,
) -> Path:
    """Write the report of a study; secrets the launches were given are blotted out of all of it.

    Args:
        summary: Its answer.
        records: All launches, failed and suspect ones too.
        environment: Content of `environment.json`; may be empty.
        space: The search space.
        path: The file to write; its folder is made when missing.

    Returns:
        The file.

    Raises:
        SpectuneError: When the file cannot be written, or is there already and no page.
    """
    _spare_another(path)
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
    write_whole(path, render_report(Material.of(summary, records, environment, space), written=now))
    return path


def _spare_another(path: Path) -> None:
    """Raise if a page would take the place of something else: a search space, a record, an exported script."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        beginning = file.read(len(_BEGINNING))
    if beginning and beginning.lower() != _BEGINNING:
        raise SpectuneError(f"{path} exists already and is no report; name another file with -o, or remove it")


def render_report(material: Material, *, written: str) -> str:
    """Return the page.

    Args:
        material: What it shows.
        written: When, in words.
    """
    import jinja2  # noqa: PLC0415 (heavy, and only needed here)

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: _file("templates", name)),
        autoescape=True,
        finalize=_shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["prose"] = prose
    told = material.told
    return environment.get_template("page.html.j2").render(
        sections=sections(material),
        decision=decision(material),
        study=told.study,
        engine=told.engine,
        warning=warning_of(told.engine, simulated=told.simulated),
        finished=told.finished,
        written=written,
        version=__version__,
        style=_file("assets", "report.css"),
        script=_file("assets", "report.js"),
    )


def prose(text: str) -> Markup:
    """Return a sentence as HTML, with what stands in backticks set as code."""
    import markupsafe  # noqa: PLC0415 (comes with jinja2)

    code = markupsafe.Markup("<code>{}</code>")
    parts = _CODE.split(printable_lines(text))  # every other one was in backticks
    return markupsafe.Markup().join(code.format(part) if index % 2 else part for index, part in enumerate(parts))


def _shown(value: Any) -> Any:
    """Return what a template shows with nothing in it that could turn the text around it; HTML is left as it is."""
    return printable_lines(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _file(folder: str, name: str) -> str:
    return resources.files(__package__).joinpath(folder, name).read_text(encoding="utf-8")
