"""One draw from an Optuna sampler that has seen every launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spectune.search.storage.ledger import as_running, as_trials
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Step
from spectune.search.storage.values import decode, directions, encode
from spectune.space import ALGORITHM, NO_SPECULATION, IntegerRange, Parameter, SearchSpace, Value

if TYPE_CHECKING:
    from optuna import Study
    from optuna.samplers import BaseSampler
    from optuna.trial import Trial


def memory_study(
    records: Sequence[TrialRecord], space: SearchSpace, sampler: BaseSampler, running: Sequence[Step] = ()
) -> Study:
    """Return a copy of the study in memory, in which draws that come to nothing leave no trace.

    What is being made is a running trial in it: TPE takes it for a bad one (constant liar), the Gaussian process and
    the guided search for one that measures what they expect.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(directions=directions(space), sampler=sampler)
    study.add_trials(as_trials(records, space))
    study.add_trials([as_running(step, space) for step in running])
    return study


def suggested(trial: Trial, space: SearchSpace) -> dict[str, Any]:
    """Return a drawn assignment: the algorithm first, and draft parameters only where there is speculation."""
    assignment: dict[str, Any] = {}
    speculative = True
    for parameter in sorted(space.parameters.values(), key=lambda p: (p.name != ALGORITHM, p.is_speculative)):
        if parameter.name != ALGORITHM and parameter.is_speculative and not speculative:
            continue
        assignment[parameter.name] = value = suggest(trial, parameter)
        if parameter.name == ALGORITHM:
            speculative = value != NO_SPECULATION
    return assignment


def suggest(trial: Trial, parameter: Parameter) -> Value:
    """Let the sampler choose a value of the parameter."""
    if parameter.is_fixed:
        return parameter.values[0]
    domain = parameter.domain
    if isinstance(domain, IntegerRange):
        return trial.suggest_int(parameter.name, domain.low, domain.high, step=domain.step)
    return decode(parameter, trial.suggest_categorical(parameter.name, [encode(value) for value in domain]))
