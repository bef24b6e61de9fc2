"""What a user has to know of a space before its first launch, in a sentence each."""

from __future__ import annotations

from spectune.engines.open import queueing, simulation_notes, unwise_variables
from spectune.engines.sglang.adapter import SGLangEngine
from spectune.engines.sglang.rules.names import ALGORITHMS, respelt_algorithm
from spectune.engines.simulated.engine import SimulatedEngine
from spectune.space import ALGORITHM, NO_SPECULATION, SearchSpace


def notes_on(space: SearchSpace, engine: SGLangEngine) -> list[str]:
    """Return all of it, the gravest first."""
    return [
        *simulation_notes(space, engine),
        *doubtful_counts(space, engine),
        *greedy_verify(space, engine),
        *queueing(space, engine),
        *unwise_variables(space, engine),
    ]


def doubtful_counts(space: SearchSpace, engine: SGLangEngine) -> list[str]:
    """Return what makes the count of candidates doubtful: to be told before it."""
    return [*unseen_models(space, engine), *unknown_algorithms(space)]


def unseen_models(space: SearchSpace, engine: SGLangEngine) -> list[str]:
    """Say of which target nothing is known here, so that rules that depend on its architecture are left out."""
    target = space.engine.args.get("model-path")
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


def unknown_algorithms(space: SearchSpace) -> list[str]:
    """Return the algorithms that are none of SGLang's own; a plugin may have registered them."""
    parameter = space.parameters.get(ALGORITHM)
    if parameter is None:
        return []
    place = f"{space.path}:{parameter.line}"
    return [
        f"{place}: SGLang itself has no {ALGORITHM} {name}: a plugin has to register it{_meant(name)}"
        for name in map(str, parameter.values)
        if name.upper() not in {*ALGORITHMS, NO_SPECULATION.upper()}
    ]


def _meant(name: str) -> str:
    meant = respelt_algorithm(name)
    return "" if meant is None else f"; did you mean {meant}?"
