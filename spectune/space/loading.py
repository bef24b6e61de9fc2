"""From a file to a `SearchSpace`, or to all of its problems at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from spectune.errors import InputProblems, Problem
from spectune.space.arguments import KnownArguments, argument_problems
from spectune.space.crosschecks import crosscheck
from spectune.space.document import Document, KeyPath, parse_document, read_document
from spectune.space.engine_section import EngineSection
from spectune.space.entries import read_conditions, read_parameters
from spectune.space.locating import find_space_file
from spectune.space.names import is_environment
from spectune.space.parameters import Parameter
from spectune.space.schema import SCHEMA, SpaceFile, default_objectives
from spectune.space.sections import sound
from spectune.space.space import SearchSpace
from spectune.space.translation import translate
from spectune.space.workload import Workload

_LAUNCHED_BY = frozenset(("kind", "python", "runtime", "profile", "virtual", "gpus"))


class SpaceProblems(InputProblems):
    """Everything that is wrong with a file, and what is left of it.

    Attributes:
        rest: The file without its wrong entries, so that what else can be told of it need not wait until they are
            mended: its prompts and models. None where even its engine is not known.
    """

    def __init__(self, problems: Iterable[Problem], rest: SearchSpace | None) -> None:
        super().__init__(problems)
        self.rest = rest


def load_space(source: str | Path, known_arguments: KnownArguments | None = None) -> SearchSpace:
    """Loads a search space.

    Args:
        source: A path, or the name of a shipped space.
        known_arguments: What the engine accepts: names without dashes, or a mapping from them to objects whose
            `complaint(value)` judges a value, or a function from the engine section to one of these. None, also as the
            function's answer, leaves arguments unchecked.

    Raises:
        SpectuneError: There is no such file.
        SpaceProblems: Everything that is wrong with it, in the order of its lines.
        InputProblems: It is no YAML file.
    """
    document = read_document(find_space_file(source))
    return _build(document, known_arguments)


def parse_space(text: str, file: Path, known_arguments: KnownArguments | None = None) -> SearchSpace:
    """Does what `load_space` does with text that stands, or is to be reported as standing, in `file`.

    Raises:
        SpaceProblems: Everything that is wrong with it.
        InputProblems: It is no YAML.
    """
    return _build(parse_document(text, file), known_arguments)


def _build(document: Document, known_arguments: KnownArguments | None) -> SearchSpace:
    data = _prepared(document)
    problems = list(document.problems)
    file: SpaceFile | None = None
    try:
        file = SpaceFile.model_validate(data)
    except ValidationError as error:
        problems += translate(error, SpaceFile, document)
    engine, left_out = sound(EngineSection, data.get("engine"))
    if left_out & _LAUNCHED_BY:
        engine = None
    workload, left_out = sound(Workload, data.get("workload", {}))
    problems += crosscheck(document, data, workload, left_out)
    parameters, bad_parameters = read_parameters(document, data)
    forbid, bad_conditions = read_conditions(document, data, parameters)
    problems += bad_parameters + bad_conditions
    problems += argument_problems(document, data, parameters, engine, known_arguments)
    if problems:
        if workload is None or "prompts" in left_out:
            workload = Workload()  # a level may rest on the timestamps of prompts
        rest = None if engine is None else _rest(document, engine, workload, parameters)
        raise SpaceProblems(in_order(problems), rest)
    assert file is not None, "a file without problems is valid"
    if not file.objectives:
        file = file.model_copy(update={"objectives": default_objectives(file.workload)})
    return SearchSpace(document.file, document.text, file, MappingProxyType(parameters), forbid)


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Return problems of one file by their lines, each once; those without a line, and of other files, come last."""
    told = list(dict.fromkeys(problems))
    where = told[0].file if told else None
    return sorted(told, key=lambda one: (one.file != where, one.line is None, one.line or 0))


def _rest(
    document: Document, engine: EngineSection, workload: Workload, parameters: Mapping[str, Parameter]
) -> SearchSpace:
    file = SpaceFile(schema_version=SCHEMA, name="rest", engine=engine, search={"none": True}, workload=workload)
    return SearchSpace(document.file, document.text, file, MappingProxyType(dict(parameters)))


def _prepared(document: Document) -> dict[str, Any]:
    """Return the data with a name, and with the text as written wherever an environment variable's value stands."""
    data = dict(document.data)
    data.setdefault("name", re.sub(r"[^A-Za-z0-9._-]+", "-", document.file.stem).strip("-._") or "space")
    engine = data.get("engine")
    if isinstance(engine, dict) and isinstance(engine.get("env"), dict):
        env = {name: _as_written(document, value, ("engine", "env", name)) for name, value in engine["env"].items()}
        data["engine"] = {**engine, "env": env}
    if isinstance(data.get("search"), dict):
        data["search"] = _environment_as_written(document, data["search"], ("search",))
    if isinstance(data.get("forbid"), list):
        data["forbid"] = [
            _environment_as_written(document, item, ("forbid", index)) if isinstance(item, dict) else item
            for index, item in enumerate(data["forbid"])
        ]
    return data


def _environment_as_written(document: Document, entries: Mapping[str, Any], path: KeyPath) -> dict[str, Any]:
    return {
        name: _as_written(document, value, (*path, name)) if is_environment(name) else value
        for name, value in entries.items()
    }


def _as_written(document: Document, value: Any, path: KeyPath) -> Any:
    if isinstance(value, list):
        return [_as_written(document, item, (*path, index)) for index, item in enumerate(value)]
    return document.texts[path] if isinstance(value, bool | int | float) else value
