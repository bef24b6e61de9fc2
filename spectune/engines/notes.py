"""What a user has to know of a space before its first launch, in a sentence each."""

from __future__ import annotations

from typing import Any

from spectune.counts import count
from spectune.engines.parts import Illegal
from spectune.engines.sglang.adapter import SGLangEngine
from spectune.engines.sglang.rules.names import ALGORITHMS, MODEL, RUNNING, like_algorithm
from spectune.engines.simulated.engine import SimulatedEngine
from spectune.engines.simulated.profile import shipped_profiles
from spectune.errors import Problem
from spectune.space import ALGORITHM, DRAFTER, NO_SPECULATION, SLOWEST_BORNE, Level, SearchSpace


def notes_on(space: SearchSpace, engine: SGLangEngine) -> list[str]:
    """Return all of it, the gravest first."""
    return [
        *simulation_notes(space, engine),
        *doubtful_counts(space, engine),
        *greedy_verify(space, engine),
        *queueing(space, engine),
        *unwise_variables(space, engine),
    ]


def simulation_notes(space: SearchSpace, engine: SGLangEngine) -> list[str]:
    """Return what a reader has to know of a simulated study, in a sentence each; nothing for a real engine."""
    if not isinstance(engine, SimulatedEngine):
        return []
    drafters = space.parameters[DRAFTER].values if DRAFTER in space.parameters else ()
    told = "`spectune profiles` says" if engine.profile.name in shipped_profiles() else "its file says"
    return [
        f"SIMULATED: the profile {engine.profile.name} answers, no engine; {told} what it rests on",
        "models and drafters are not looked for, and not checked: the profile stands for them",
        *engine.unknown_names(drafters),
    ]


def doubtful_counts(space: SearchSpace, engine: SGLangEngine) -> list[str]:
    """Return what makes the count of candidates doubtful: to be told before it."""
    return [*unseen_models(space, engine), *map(str, unknown_algorithms(space))]


def unseen_models(space: SearchSpace, engine: SGLangEngine) -> list[str]:
    """Say of which target nothing is known here, so that rules that depend on its architecture are left out."""
    target = space.engine.args.get(MODEL)
    if isinstance(engine, SimulatedEngine) or target is None or not engine.unseen(target):
        return []
    return [f"the config.json of {target} was not seen here: rules that depend on the architecture are left out"]


def greedy_verify(space: SearchSpace, engine: SGLangEngine) -> list[str]:
    """Say that speculation on a CPU does not sample (speculative/spec_utils.py:293), so that it cannot be measured."""
    temperature = space.workload.temperature
    if temperature <= 0 or engine.cuda or engine.simulated:
        return []
    said = (
        f"on a CPU SGLang verifies greedily whatever the temperature: at {temperature:g} every launch with speculation"
    )
    return [f"{said} will be found to answer otherwise than the baseline; give the workload temperature: 0"]


def queueing(space: SearchSpace, engine: SGLangEngine) -> list[str]:
    """Return the levels whose requests would, or may, wait for each other, in a sentence each."""
    limit, tokens = engine.fixed.get(RUNNING), space.workload.output_tokens
    return [note for level in space.workload.levels if (note := _queue_at(level, limit, tokens)) is not None]


def _queue_at(level: Level, limit: Any, output_tokens: int) -> str | None:
    running = level.in_flight(output_tokens)
    if running is None and limit is None:
        traced = f"level {level.name} follows a trace, so how many requests run at once is not known"
        return f"{traced}; give {RUNNING} under engine.args"
    if running is None or not isinstance(limit, int) or running <= limit:
        return None
    if level.open_loop:
        return (
            f"level {level.name} may have {count(running, 'request')} under way ({output_tokens} tokens each at "
            f"{SLOWEST_BORNE:g} tok/s), but {RUNNING} is {limit}: others wait, and their waiting is measured"
        )
    return (
        f"level {level.name} keeps {count(running, 'request')} in flight, but {RUNNING} is {limit}: the others wait, "
        "and their waiting is measured"
    )


def unwise_variables(space: SearchSpace, engine: SGLangEngine) -> list[str]:
    """Return what is likely to go wrong with the values of environment variables that the space searches."""
    said: dict[str, None] = {}
    base = {name: p.values[0] for name, p in space.parameters.items() if not p.is_speculative}
    for name, parameter in space.parameters.items():
        for value in parameter.values if parameter.is_environment else ():
            candidate = engine.canonical({**base, name: value})
            if not isinstance(candidate, Illegal):
                said.update(dict.fromkeys(engine.unwise(candidate)))
    return list(said)


def unknown_algorithms(space: SearchSpace) -> list[Problem]:
    """Return the algorithms that are none of SGLang's own, with their line; a plugin may have registered them."""
    parameter = space.parameters.get(ALGORITHM)
    if parameter is None:
        return []
    said = f"SGLang itself has no {ALGORITHM}"
    return [
        Problem(f"{said} {name}: a plugin has to register it{_meant(name)}", space.path, parameter.line)
        for name in map(str, parameter.values)
        if name.upper() not in {*ALGORITHMS, NO_SPECULATION.upper()}
    ]


def _meant(name: str) -> str:
    meant = like_algorithm(name)
    return f"; did you mean {' or '.join(meant)}?" if meant else ""
