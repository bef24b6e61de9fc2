"""How a study begins, or is found to have begun."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spectune.engines.protocol import Engine
from spectune.errors import SpectuneError
from spectune.machine import SIMULATED_MACHINE, take_fingerprint
from spectune.search.launch.traffic import open_prompts
from spectune.search.proposing.warm_start import WARM_START, WarmStart, lend
from spectune.search.storage.folder import StudyFolder
from spectune.search.storage.kept_prompts import kept_prompts
from spectune.search.storage.migration import migrate, refuse_another
from spectune.space import SearchSpace


def open_study(
    folder: StudyFolder,
    space: SearchSpace,
    engine: Engine,
    lender: StudyFolder | None = None,
    *,
    launches: bool = True,
) -> Sequence[str]:
    """Begin the study, or make sure that the one in the folder is this one, whose space may have grown.

    Args:
        folder: Where it is kept.
        space: Its search space.
        engine: What is launched.
        lender: An earlier study that it begins with.
        launches: Whether launches are made on this machine, so that its fingerprint is the study's.

    Returns:
        What there is to say of it, in sentences.

    Raises:
        SpectuneError: When the folder holds a study of another search space, or the earlier study says nothing here.
    """
    belongings = dict(engine.belongings())
    if not folder.exists():
        warm_start, resolved = None, space.resolved_yaml()
        if lender is not None:
            warm_start = lend(lender, space, engine)
            belongings[WARM_START] = warm_start.dumps()
            resolved = f"# {warm_start.words}\n{resolved}"
        belongings |= kept_prompts(open_prompts(space))
        folder.begin(space.text, resolved, environment_of(engine) if launches else None, belongings)
        return [] if warm_start is None else [warm_start.words]
    refuse_another(folder, space)
    known = WarmStart.of(folder)
    if lender is not None and (known is None or known.study != lender.name):
        began = "without one" if known is None else f"from {known.study}"
        raise SpectuneError(
            f"--warm-start {lender.name}: the study {folder.name} has begun, {began}; give a new one a name of its own "
            "with --study NAME"
        )
    for name, text in belongings.items():
        kept = folder.belonging(name)
        if kept != text:
            which = f"a {name} that is gone or damaged" if kept is None else f"another {name}"
            raise SpectuneError(
                f"the study {folder.name} was begun with {which} (kept as {folder.root / name}); "
                "give this one a name of its own with --study NAME"
            )
    return migrate(folder, space)


def environment_of(engine: Engine) -> dict[str, Any]:
    """Return what a study keeps of the machine that makes its launches."""
    software = engine.software()
    fingerprint = take_fingerprint(
        engine.title, packages=software.packages, engine_sitecustomize=software.sitecustomize
    ).to_json()
    simulated = software.simulated_machine
    return fingerprint if simulated is None else {**fingerprint, SIMULATED_MACHINE: simulated}
