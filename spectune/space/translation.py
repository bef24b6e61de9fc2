"""From pydantic's errors to messages with file:line, value and rule."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from spectune.errors import Problem
from spectune.space.document import Document, KeyPath
from spectune.space.names import hint

_MISTYPED = {
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "string_type": "must be a string",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "model_attributes_type": "must be a mapping",
    "finite_number": "must be finite",
    "string_too_short": "must not be empty",
    "string_too_long": "must not be longer than {max_length} characters",
    "string_pattern_mismatch": "must be letters, digits, '.', '_' or '-', a letter or digit first",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le:,.12g}",
    "literal_error": "must be {expected}",
    "too_short": "must not be empty",
}


def translate(error: ValidationError, model: type[BaseModel], document: Document) -> list[Problem]:
    """Return one problem for each of pydantic's errors.

    Args:
        error: What validating `document.data` as `model` raised.
        model: The model of the whole file.
        document: The file.
    """
    return [_problem(details, model, document) for details in error.errors()]


def _problem(details: ErrorDetails, model: type[BaseModel], document: Document) -> Problem:
    path = tuple(details["loc"])
    where = dotted(_written(path, document))
    if details["type"] == "extra_forbidden":
        return document.problem(
            path, f"unknown key '{path[-1]}'{_in(path)}{hint(str(path[-1]), _keys(model, path[:-1]))}"
        )
    if details["type"] == "missing":
        return document.problem(path[:-1], f"'{path[-1]}' is missing{_in(path)}")
    if details["type"] == "value_error":
        message = str(details["ctx"]["error"])
        return document.problem(path, f"{where}: {message}" if where else message)
    rule = _MISTYPED.get(details["type"])
    if rule is None:
        return document.problem(path, f"{where}: {details['msg']}, but got {details['input']!r}")
    rule = rule.format(**details.get("ctx", {}))
    return document.problem(path, f"{where} {rule}, but got {_shown(details['input'])}")


def dotted(path: KeyPath) -> str:
    """Return a path as people write it: `workload.levels[0].concurrency`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _written(path: KeyPath, document: Document) -> KeyPath:
    """Return `path` without what the models put around a shorthand, such as one prompt source instead of a list."""
    while path and path not in document.value_lines:
        path = path[:-1]
    return path


def _in(path: KeyPath) -> str:
    return f" in {dotted(path[:-1])}" if len(path) > 1 else ""


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _keys(model: type[BaseModel], path: KeyPath) -> list[str]:
    """Return the valid keys of the mapping at `path` inside `model`."""
    annotation: Any = model
    for part in path:
        inner = _model_in(annotation)
        if isinstance(part, str) and inner is not None and part in inner.model_fields:
            annotation = inner.model_fields[part].annotation
    inner = _model_in(annotation)
    return [field.alias or name for name, field in inner.model_fields.items()] if inner is not None else []


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model that an annotation such as `tuple[Level, ...]` is about."""
    if isinstance(annotation, type) and not isinstance(annotation, Mapping) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in typing.get_args(annotation) if (found := _model_in(part)) is not None), None)
