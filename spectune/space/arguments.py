"""Argument names and values against what an engine says it accepts; this package itself knows no engine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Protocol

from spectune.errors import Problem, SpectuneError
from spectune.space.document import Document, KeyPath
from spectune.space.engine_section import EngineSection, fixed_argument_problem
from spectune.space.names import ALGORITHM, NO_SPECULATION, argument_name_problem, hint, is_environment
from spectune.space.parameters import IntegerRange, Parameter
from spectune.space.values import Value, canonical


class Argument(Protocol):
    """What an engine knows of one argument."""

    def complaint(self, value: Any) -> str | None:
        """Return what is wrong with passing `value`, or None."""
        ...


ArgumentNames = Mapping[str, Argument] | Collection[str]
"""The arguments of an engine by name without dashes; a mapping has their values checked too."""

KnownArguments = ArgumentNames | Callable[[EngineSection | None], ArgumentNames | None]
"""The arguments of an engine, or how to find them out from the engine section (None: it is not valid); None when nobody
knows."""


def argument_problems(
    document: Document,
    data: Mapping[str, Any],
    parameters: Mapping[str, Parameter],
    engine: EngineSection | None,
    known_arguments: KnownArguments | None,
) -> Iterator[Problem]:
    """Yield names and values that the engine does not accept.

    Args:
        document: For lines.
        data: The file's plain data.
        parameters: The well-formed parameters.
        engine: The engine section if it is valid by itself.
        known_arguments: What the engine accepts.
    """
    known: ArgumentNames | None
    try:
        known = _ask(known_arguments, engine)
    except SpectuneError as error:
        yield document.problem(("engine",), str(error))
        return
    if known is None:
        return
    fixed, search = data.get("engine"), data.get("search")
    args = fixed.get("args") if isinstance(fixed, dict) else None
    for name, value in args.items() if isinstance(args, dict) else ():
        if fixed_argument_problem(name) is None:
            yield from _check(document, ("engine", "args", name), _canonical(value), known)
    for name in search if isinstance(search, dict) else ():
        if not is_environment(name) and argument_name_problem(name) is None:
            yield from _check(document, ("search", name), _probes(parameters.get(name)), known)


def _ask(known: KnownArguments | None, engine: EngineSection | None) -> ArgumentNames | None:
    return known(engine) if callable(known) else known


def _canonical(value: object) -> tuple[Value, ...]:
    try:
        return (canonical(value),)
    except ValueError:
        return ()  # the schema has said so


def _probes(parameter: Parameter | None) -> tuple[Value, ...]:
    """Return the values worth checking: of a range its ends."""
    if parameter is None:
        return ()
    if isinstance(parameter.domain, IntegerRange):
        return (parameter.domain.low, parameter.domain.high)
    return tuple(v for v in parameter.domain if parameter.name != ALGORITHM or v != NO_SPECULATION)


def _check(document: Document, path: KeyPath, values: tuple[Value, ...], known: ArgumentNames) -> Iterator[Problem]:
    name = str(path[-1])
    if name not in known:
        yield document.problem(path, f"'{name}' is not an argument of this engine{hint(name, known)}")
    elif isinstance(known, Mapping):
        for value in values:
            message = known[name].complaint(value)
            if message is not None:
                yield document.problem(path, message)
