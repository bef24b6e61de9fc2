"""From a profile's name or file to a `Profile`, or to everything that is wrong with it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from spectune.engines.simulated.profile_conditions import When, condition_problems, values_as_written
from spectune.engines.simulated.profile_schema import Fault, ProfileFile
from spectune.errors import InputProblems, SpectuneError
from spectune.space.document import Document, parse_document, read_document
from spectune.space.names import hint
from spectune.space.translation import translate
from spectune.space.values import Value

_FOLDER = Path(__file__).with_name("profiles")
_SUFFIX = ".yaml"
CONDITIONAL = ("effects", "faults")


@dataclass(frozen=True)
class Profile:
    """A profile whose conditions have been read.

    Attributes:
        path: The file it came from.
        file: All of its sections.
    """

    path: Path
    file: ProfileFile

    @property
    def name(self) -> str:
        """Its name, as shown to people."""
        return self.file.name

    @cached_property
    def effects(self) -> tuple[tuple[When, float], ...]:
        """Each condition with its factor on the cycle."""
        return tuple((When.of(effect.when), effect.cycle) for effect in self.file.effects)

    def factor(self, values: Mapping[str, Value]) -> float:
        """Return the product of the effects that hold for a launch.

        Args:
            values: What the launch is, as conditions ask for it (`Setup.values`).
        """
        return math.prod((factor for when, factor in self.effects if when.holds(values)), start=1.0)

    @cached_property
    def faults(self) -> tuple[tuple[When, Fault], ...]:
        """Each condition with its fault, in the order of the file."""
        return tuple((When.of(fault.when), fault) for fault in self.file.faults)


def shipped_profiles() -> tuple[str, ...]:
    """Return the names of the shipped profiles, sorted."""
    return tuple(sorted(file.stem for file in _FOLDER.glob(f"*{_SUFFIX}")))


def load_profile(source: str | Path) -> Profile:
    """Load a profile.

    Args:
        source: Name of a shipped profile, or a path.

    Raises:
        SpectuneError: There is no such profile.
        InputProblems: Everything that is wrong with it, in the order of its lines.
    """
    return _build(read_document(_find(str(source))))


def parse_profile(text: str, file: Path) -> Profile:
    """Do what `load_profile` does with text that stands, or is to be reported as standing, in `file`."""
    return _build(parse_document(text, file))


def _find(source: str) -> Path:
    names = shipped_profiles()
    if source in names:
        return _FOLDER / f"{source}{_SUFFIX}"
    if os.path.isfile(source):  # noqa: PTH113 (Path.is_file raises on names that are too long)
        return Path(source)
    if os.path.isdir(source):  # noqa: PTH112
        raise SpectuneError(f"the profile '{source}' is a folder; name a profile's file in it")
    if os.path.exists(source):  # noqa: PTH110
        raise SpectuneError(f"the profile '{source}' is a device, pipe or socket; a profile is a plain file of YAML")
    raise SpectuneError(f"there is no profile '{source}', neither a shipped one nor a file{hint(source, names)}")


def _build(document: Document) -> Profile:
    problems = list(document.problems)
    file: ProfileFile | None = None
    data = _prepared(document)
    try:
        file = ProfileFile.model_validate(data)
    except ValidationError as error:
        problems += translate(error, ProfileFile, document)
    for section, index, when in _conditions(data):
        problems += condition_problems(document, (section, index, "when"), when)
    if problems:
        raise InputProblems(sorted(dict.fromkeys(problems), key=lambda problem: problem.line or 0))
    assert file is not None, "a file without problems is valid"
    return Profile(document.file, file)


def _conditions(data: dict[str, Any]) -> Iterator[tuple[str, int, dict[str, Any]]]:
    for section in CONDITIONAL:
        items = data.get(section)
        for index, item in enumerate(items if isinstance(items, list) else ()):
            if isinstance(item, dict) and isinstance(item.get("when"), dict):
                yield section, index, item["when"]


def _prepared(document: Document) -> dict[str, Any]:
    """Return the data with the values of environment variables as they were written: they are text to a process."""
    data = dict(document.data)
    for section, index, when in _conditions(document.data):
        items = list(data[section])
        items[index] = {**items[index], "when": values_as_written(document, (section, index, "when"), when)}
        data[section] = items
    return data
