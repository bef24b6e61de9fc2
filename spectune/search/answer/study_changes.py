"""What is different between two studies, before anything is measured: space, engine, drafters, machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from spectune.machine import Difference, differences
from spectune.search.storage.flattened import leaves
from spectune.space import DRAFTER, SearchSpace, text_of

_OF_NO_MATTER = ("name", "schema")
_ASKED = ("prompts", "shared_prefix", "chat_template", "output_tokens", "ignore_eos", "temperature")
ENGINE, SPACE, DRAFTERS = "engine", "space", "drafters"
OTHER_QUESTIONS = "the prompts or the length of the answers are others, so other speeds are expected"


def study_changes(
    before: SearchSpace, after: SearchSpace, machine_before: Mapping[str, Any], machine_after: Mapping[str, Any]
) -> list[Difference]:
    """Return how two studies differ, what can change a measurement first.

    Args:
        before: Space of the one.
        after: Space of the other.
        machine_before: `environment.json` of the one.
        machine_after: Of the other.
    """
    found = [*_engine(machine_before, machine_after), *_drafters(before, after), *_space(before, after)]
    found += _form(machine_before, machine_after)
    named = {f"software.{ENGINE}"}
    found += [one for one in differences(machine_before, machine_after) if one.field not in named]
    return sorted(found, key=lambda one: not one.matters)


def _engine(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    was, now = before.get(ENGINE), after.get(ENGINE)
    if was != now:
        yield Difference(ENGINE, was, now, matters=True, why="another engine")


def _form(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    was, now = (f"schema {one['schema']}" if "schema" in one else None for one in (before, after))
    if was != now:
        yield Difference("environment.json", was, now, matters=True, why="so the machines cannot be compared")


def _drafters(before: SearchSpace, after: SearchSpace) -> Iterator[Difference]:
    was, now = (
        [text_of(value) for value in (space.parameters[DRAFTER].values if DRAFTER in space.parameters else ())]
        for space in (before, after)
    )
    if set(was) != set(now):
        yield Difference(DRAFTERS, was, now, matters=True, why="another drafter is accepted otherwise")


def _space(before: SearchSpace, after: SearchSpace) -> Iterator[Difference]:
    was, now = (dict(leaves(_content(space))) for space in (before, after))
    for name in sorted(was.keys() | now.keys()):
        if was.get(name) != now.get(name) and name != f"search.{DRAFTER}":
            part, _, rest = name.partition(".")
            asked = part == "workload" and rest.split(".")[0] in _ASKED
            fixed = part == "engine" and rest.split(".")[0] in ("args", "env", "gpus", "parallel", "profile", "virtual")
            why = OTHER_QUESTIONS if asked else "every launch has it" if fixed else ""
            yield Difference(f"{SPACE}.{name}", was.get(name), now.get(name), matters=asked or fixed, why=why)


def _content(space: SearchSpace) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(space.resolved_yaml())
    content["objectives"] = [f"{one.direction} {one.metric} at {one.level}" for one in space.objectives]
    return {name: value for name, value in content.items() if name not in _OF_NO_MATTER}
