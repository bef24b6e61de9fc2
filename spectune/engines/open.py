"""From a search space to its engine, and what the engine says of the space's arguments."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from spectune.engines import cpu_reference
from spectune.engines.sglang.adapter import SGLangEngine
from spectune.engines.sglang.interpreter import Interpreter
from spectune.engines.sglang.named_models import MODEL_ARGUMENTS
from spectune.engines.sglang.options import SHIPPED_VERSION, Options
from spectune.engines.sglang.versions.accepted import accepted_arguments
from spectune.engines.sglang.versions.history import check_supported
from spectune.engines.sglang.versions.space_spelling import in_canonical_spelling
from spectune.engines.simulated.engine import SimulatedEngine
from spectune.errors import InputProblems, Problem
from spectune.space import (
    ArgumentNames,
    EngineSection,
    SearchSpace,
    SpaceProblems,
    in_order,
    load_space,
    parse_document,
)

logger = logging.getLogger(__name__)


def options_of(section: EngineSection | None) -> Options:
    """Return the launch options of the engine a space names; where there is none to ask, those spectune ships.

    Raises:
        SpectuneError: The SGLang there is too old, or does not load.
    """
    if section is not None and section.python is not None:
        interpreter = Interpreter(section.python)
        version = interpreter.sglang_version()
        if version is not None:
            check_supported(version, section.python)
        if version is not None and version != SHIPPED_VERSION:
            return interpreter.options(version, cpu_reference.spectune_home() / "options")
    return Options.shipped()


def open_engine(space: SearchSpace) -> SGLangEngine:
    """Return the engine of a space, whether or not this machine can launch it.

    Raises:
        SpectuneError: The space names a profile that is not there, or wrong.
        InputProblems: Its levels are not for virtual time.
    """
    section = space.engine
    most_running = space.workload.most_running
    if section.is_simulated:
        if section.virtual:
            _refuse_open_loops(space)
        return SimulatedEngine.of(section, most_running, space.path.parent)
    if section.runtime is None:
        assert section.python is not None, "a space without a runtime names an interpreter"
        interpreter = Interpreter(section.python)
        version = interpreter.sglang_version()
        return SGLangEngine(
            interpreter, version, section.args, section.env_to_set, section.gpus, most_running, section.env_to_unset,
            options=options_of(section), check_drafters=section.preflight,
        )  # fmt: skip
    runtime = cpu_reference.find(section.runtime) or cpu_reference.planned(section.runtime)
    fixed, env = settings_on(runtime, section)
    return SGLangEngine(
        interpreter=Interpreter(str(runtime.python), runtime.env),
        version=runtime.sglang_version,
        fixed=fixed,
        env=env,
        gpus=0,
        most_running=most_running,
        models=runtime.models,
        unset=section.env_to_unset,
        check_drafters=section.preflight,
    )


def settings_on(runtime: cpu_reference.Runtime | None, section: EngineSection) -> tuple[dict[str, Any], dict[str, str]]:
    """Return arguments and variables of every launch: the runtime's, where a space does not say otherwise."""
    if runtime is None:
        return section.args, section.env_to_set
    return {**runtime.args, **section.args}, {**runtime.env, **section.env_to_set}


def _refuse_open_loops(space: SearchSpace) -> None:
    document = parse_document(space.text, space.path)
    problems = [
        document.problem(
            ("workload", "levels", index),
            f"virtual time serves a fixed concurrency, not {level.name}; leave out virtual, or use {{concurrency: N}}",
        )
        for index, level in enumerate(space.workload.levels)
        if level.open_loop
    ]
    if problems:
        raise InputProblems(problems)


def lacking(space: SearchSpace, engine: SGLangEngine) -> list[Problem]:
    """Return what this machine lacks for launching a space, with its lines: the engine, GPUs, folders of models.

    A runtime that is not installed lacks nothing: the search installs it first, with its models.
    """
    if to_install(space) is not None:
        return []
    document = parse_document(space.text, space.path)
    place = ("engine", "gpus" if engine.simulated else "python")
    lacks = [document.problem(place, problem.message) for problem in engine.missing()]
    return [*lacks, *missing_models(space, engine)]


def to_install(space: SearchSpace) -> str | None:
    """Return the runtime that a search of a space would install before its first launch; None where there is none."""
    runtime = space.engine.runtime
    return None if runtime is None or cpu_reference.find(runtime) is not None else runtime


def missing_models(space: SearchSpace, engine: SGLangEngine) -> Iterator[Problem]:
    """Yield every model folder the space names that is not there, with its line."""
    document = parse_document(space.text, space.path)
    for name in MODEL_ARGUMENTS:
        if name in space.engine.args and (gone := engine.missing_model(space.engine.args[name])):
            yield document.problem(("engine", "args", name), gone)
        for value in space.parameters[name].values if name in space.parameters else ():
            if gone := engine.missing_model(value):
                yield document.problem(("search", name), gone)


@dataclass(frozen=True)
class Simulation:
    """That a space is to be run on the simulated engine, whatever engine it names.

    Attributes:
        profile: The machine; None for the one the space names, or the first of the shipped ones.
        virtual: Whether in virtual time.
    """

    profile: str | None = None
    virtual: bool = False


def load_checked_space(source: str, simulation: Simulation | None = None) -> SearchSpace:
    """Load a search space, check its arguments against its engine's options, and give them their canonical names.

    Names of any version from 0.5.6 on are understood; what was written otherwise is logged once.

    Args:
        source: A path, or the name of a shipped space.
        simulation: Run it on the simulated engine.

    Raises:
        SpaceProblems: Everything that is wrong with the file, but for its prompts and what its engine lacks here.
        InputProblems: It is no YAML file.
    """

    def accepted(section: EngineSection | None) -> ArgumentNames:
        return accepted_arguments(options_of(section if simulation is None else None))

    found: tuple[Problem, ...] = ()
    try:
        space = load_space(source, accepted)
    except SpaceProblems as error:
        if error.rest is None:
            raise
        space, found = error.rest, error.problems
    if simulation is not None:
        space = space.with_engine(space.engine.simulated(simulation.profile, virtual=simulation.virtual))
    try:
        space, notes = in_canonical_spelling(space)
    except InputProblems as error:
        raise SpaceProblems(in_order([*found, *error.problems]), space) from None
    if found:
        raise SpaceProblems(found, space)
    for note in notes:
        _log_once(f"{space.path}: {note}")
    return space


@cache
def _log_once(note: str) -> None:
    logger.warning("%s", note)
