"""A search space under SGLang 0.5.23's names, whatever version's names its file uses."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from spectune.engines.sglang.versions.spellings import canonical_arguments, canonical_name, canonical_value
from spectune.errors import InputProblems, Problem
from spectune.space import Condition, IntegerRange, Parameter, SearchSpace, Test, Value, parse_document
from spectune.space.names import is_environment


def in_canonical_spelling(space: SearchSpace) -> tuple[SearchSpace, tuple[str, ...]]:
    """Return the space with every argument under its canonical name, and one note for each that was not.

    The text stays as given. A name that only means something together with others, such as a searched
    `enable-dp-attention`, stays too and is understood launch by launch.

    Raises:
        InputProblems: Two spellings of the same option.
    """
    fixed = canonical_arguments(space.engine.args)
    line = parse_document(space.text, space.path).line_of(("engine", "args"))
    problems = [Problem(message, space.path, line) for message in fixed.problems]
    args = dict(fixed.arguments)
    notes = list(fixed.notes)
    parameters: dict[str, Parameter] = {}
    groups = space.engine.args.get("enable-dp-attention") is True  # then dp-size counts groups of attention
    for written, parameter in space.parameters.items():
        name = "attn-dp-size" if groups and written == "dp-size" else _name(written)
        if name in parameters or (name in args and written not in space.engine.args):  # the same name: said elsewhere
            problems.append(Problem(f"{written} and {name} are the same option; keep one", space.path, parameter.line))
        if name != written:
            notes.append(f"{written} is called {name} today")
        parameters[name] = replace(parameter, name=name, domain=_domain(name, parameter))
    if problems:
        raise InputProblems(problems)
    engine = space.engine.model_copy(update={"args": args})
    file = space.file.model_copy(update={"engine": engine})
    forbid = tuple(_condition(condition) for condition in space.forbid)
    return replace(space, file=file, parameters=MappingProxyType(parameters), forbid=forbid), tuple(notes)


def _domain(name: str, parameter: Parameter) -> tuple[Value, ...] | IntegerRange:
    if isinstance(parameter.domain, IntegerRange):
        return parameter.domain
    return tuple(dict.fromkeys(canonical_value(name, value) for value in parameter.domain))


def _condition(condition: Condition) -> Condition:
    tests = tuple((_name(name), tuple(_test(_name(name), test) for test in tests)) for name, tests in condition.tests)
    return replace(condition, tests=tests)


def _name(name: str) -> str:
    return name if is_environment(name) else canonical_name(name)


def _test(name: str, test: Test) -> Test:
    return replace(test, operand=canonical_value(name, test.operand))
