"""docs/profiles.md against the schema it explains."""

from __future__ import annotations

import re
import typing
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel
from readme_commands import ROOT

from spectune.engines.simulated.engine import DEFAULT_PROFILE
from spectune.engines.simulated.faults import POINTS
from spectune.engines.simulated.profile import parse_profile
from spectune.engines.simulated.profile_schema import Kind, ProfileFile
from spectune.engines.simulated.requests import MOST_ANSWERS

PAGE = (ROOT / "docs/profiles.md").read_text("utf-8")
TABLE = PAGE.partition("## Every key")[2].partition("\n## ")[0]
KEYS = re.findall(r"^\| `([^`]+)` \|", TABLE, re.MULTILINE)
EXAMPLE = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)[0]


def model_in(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in typing.get_args(annotation) if (found := model_in(part))), None)


def keys_of(model: type[BaseModel], before: str = "") -> Iterator[tuple[str, bool]]:
    """Every key that holds a value, and whether the schema requires it."""
    for name, field in model.model_fields.items():
        key, inner = before + (field.alias or name), model_in(field.annotation)
        if inner is None:
            yield key, field.is_required()
        else:
            among = {tuple: "[]", dict: ".NAME"}.get(typing.get_origin(field.annotation), "")
            yield from keys_of(inner, f"{key}{among}.")


def test_every_key_stands_in_the_page_and_no_other() -> None:
    assert [key for key, _ in keys_of(ProfileFile)] == KEYS


def test_required_keys_are_called_required() -> None:
    rows = dict(re.findall(r"^\| `([^`]+)` \|[^|]*\| ([^|]*?) \|", TABLE, re.MULTILINE))
    for key, required in keys_of(ProfileFile):
        inside_optional = key.startswith(("target.moe.", "noise.", "effects[]", "faults[]"))
        assert (rows[key] == "required") == (required and not inside_optional), key


def test_points_and_kinds_stand_in_the_page() -> None:
    faults = PAGE.partition("## Faults")[2].partition("\n## ")[0]
    points = faults.partition("Points, in order:")[2].partition("\n\n")[0]
    assert re.findall(r"`(\w+)`", points) == list(POINTS)
    assert re.findall(r"^\| `(\w+)` \|", faults, re.MULTILINE) == list(typing.get_args(Kind))


def test_the_example_loads_and_holds_every_key() -> None:
    file = parse_profile(EXAMPLE, Path("my-machine.yaml")).file
    assert file.name == "my-machine"
    for key in KEYS:
        assert re.search(rf"\b{key.rpartition('.')[2]}:", EXAMPLE), key


def test_what_the_page_says_of_the_program() -> None:
    assert f"the default is\n`{DEFAULT_PROFILE}`" in PAGE
    assert f"{MOST_ANSWERS:,} answers" in PAGE


def test_the_readme_links_the_page() -> None:
    assert "](docs/profiles.md)" in (ROOT / "README.md").read_text("utf-8")
