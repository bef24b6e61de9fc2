"""The table of steps by load that SGLang can switch between while it runs, if a study's launches tell one."""

from __future__ import annotations

from spectune.engines.sglang.model_config import Model
from spectune.engines.sglang.rules.algorithm import not_adaptive
from spectune.engines.sglang.rules.state import State
from spectune.engines.sglang.versions.history import older_than
from spectune.errors import SpectuneError
from spectune.search.evidence.outcome import Evidence
from spectune.search.evidence.steps_by_load import StepsAtLoad, steps_by_load
from spectune.space import Candidate, SearchSpace

SINCE = "0.5.14"
"""First version whose table is by batch size and takes 0 steps (0.5.12's is flat, 0.5.13's begins at 1)."""


def adaptive_table(
    candidate: Candidate, evidence: Evidence, space: SearchSpace, version: str | None
) -> tuple[StepsAtLoad, ...]:
    """Return the steps that are best at each load, if SGLang can switch between them.

    Raises:
        SpectuneError: SGLang cannot, or the study's launches do not tell.
    """
    if version is None or older_than(version, SINCE):
        raise SpectuneError(
            f"tables of steps by batch size with 0 in them are read by SGLang since {SINCE}, but this study ran "
            f"{version or 'an unknown version'}"
        )
    launch = {**space.engine.args, **candidate.arguments}
    reason = not_adaptive(State(launch, model=Model.unknown()))
    if reason is not None:
        raise SpectuneError(f"SGLang's adaptive speculation does not run with {space.label(candidate)}: {reason}")
    return steps_by_load(candidate, evidence, space)
