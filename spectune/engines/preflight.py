"""What the preflight of its drafters means for a search: what ends it, and what is only said."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from spectune.engines.sglang.adapter import SGLangEngine
from spectune.engines.sglang.preflight.drafters import ASKED, TARGET_CHECKS
from spectune.engines.sglang.rules.judging import Finding
from spectune.engines.sglang.rules.names import ALGORITHM, DRAFT_MODEL, MODEL
from spectune.errors import InputProblems, Problem
from spectune.space import NO_SPECULATION, SearchSpace, parse_document


@dataclass(frozen=True)
class SpacePreflight:
    """The outcome.

    Attributes:
        problems: With these the search is not worth starting, each with its line of the file.
        notes: Which drafters are never launched, and what else is doubtful, in a sentence each.
    """

    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


def drafter_notes(space: SearchSpace, engine: SGLangEngine) -> tuple[str, ...]:
    """Return what the preflight has to say to a search that may start.

    Raises:
        InputProblems: No drafter of the space can work, or its target cannot be loaded.
    """
    found = preflight_of(space, engine)
    if found.problems:
        raise InputProblems(found.problems)
    return found.notes


def preflight_of(space: SearchSpace, engine: SGLangEngine) -> SpacePreflight:
    """Look at every drafter of a space; a simulated engine has none."""
    if space.engine.kind != "sglang":
        return SpacePreflight()
    judged = [(values, engine.preflight(values, space.workload.output_tokens)) for values in _assignments(space)]
    fatal = {_said(one): one for _, found in judged for one in found if one.severity == "fatal"}
    doubts = dict.fromkeys(_said(one) for _, found in judged for one in found if one.severity == "warning")
    alive = any(not any(one.severity == "fatal" for one in found) for _, found in judged)
    if fatal and (not alive or any(one.rule in TARGET_CHECKS for one in fatal.values())):
        document = parse_document(space.text, space.path)
        return SpacePreflight(problems=tuple(
            document.problem(_place(space, *_mended_at(one)), text) for text, one in fatal.items()
        ))  # fmt: skip
    return SpacePreflight(notes=(*(f"never launched: {text}" for text in fatal), *doubts))


def _assignments(space: SearchSpace) -> Iterator[dict[str, Any]]:
    """Yield the speculative assignments of all that a preflight depends on, those the file forbids left out."""
    varied = [space.parameters[name] for name in ASKED if name in space.parameters]
    for values in itertools.product(*(parameter.values for parameter in varied)):
        assignment = {**space.engine.args, **{p.name: value for p, value in zip(varied, values, strict=True)}}
        whole = [one for one in space.forbid if all(name in assignment for name, _ in one.tests)]
        forbidden = any(one.matches(assignment) for one in whole)
        if assignment.get(ALGORITHM, NO_SPECULATION) != NO_SPECULATION and not forbidden:
            yield {name: assignment[name] for name in ASKED if name in assignment}


def _said(finding: Finding) -> str:
    """A finding as a sentence; an option it advises is one to set, by its name in the file."""
    if not finding.advice:
        return finding.message
    advised = _option(finding)
    way_out = finding.advice if advised is None else f"set {finding.advice.removeprefix('--')}"
    return f"{finding.message}; {way_out}"


def _option(finding: Finding) -> str | None:
    """The option that a finding advises to set, if it does."""
    return finding.advice.split()[0].removeprefix("--") if finding.advice.startswith("--") else None


def _mended_at(finding: Finding) -> Iterator[str]:
    """Yield names of the file by which it can be mended, the best first; an algorithm stands for its drafter."""
    advised = _option(finding)
    if advised is not None:
        yield advised
    yield MODEL if finding.rule in TARGET_CHECKS else DRAFT_MODEL
    yield ALGORITHM


def _place(space: SearchSpace, *names: str) -> tuple[str, ...]:
    """Return where the first of some names stands in the file."""
    for wanted in names:
        if wanted in space.parameters:
            return ("search", wanted)
        if wanted in space.engine.args:
            return ("engine", "args", wanted)
    return ("engine",)
