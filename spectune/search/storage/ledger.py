"""Optuna's storage of the study: written as launches end, made anew from the records whenever the two differ."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectune.errors import SpectuneError
from spectune.search.guided.evidence import Evidence, evidence_from
from spectune.search.storage.bulk_trials import insert_trials
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Step
from spectune.search.storage.storage_errors import blocked, reason
from spectune.search.storage.values import (
    CANDIDATE,
    attributes,
    directions,
    distribution,
    searched,
    stored_params,
    values_and_constraints,
)
from spectune.space import SearchSpace

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial, Trial


EVIDENCE = "evidence"
"""User attribute of a trial: what the guided sampler reads of the launch beside values and constraints."""
LOCKED_S = 1.0
"""How long to wait for a program that holds the file locked: it is read by others, and by nobody else written."""


class Ledger:
    """The Optuna study in `study.db`: one Optuna trial per launch."""

    def __init__(self, file: Path, name: str, space: SearchSpace, records: Sequence[TrialRecord]) -> None:
        """Open the storage and bring it up to the records.

        Raises:
            SpectuneError: When the storage can neither be read nor written.
        """
        self._file, self._name, self._space = file, name, space
        self._running: Trial | None = None
        self._study = self._up_to_date(records) or self._rebuilt(records)

    def begin(self, step: Step, earlier: Sequence[TrialRecord]) -> None:
        """Enter a launch that is about to be made; a storage that others broke or hold locked is made anew.

        Raises:
            SpectuneError: It cannot be made anew either.
        """
        try:
            self._running = self._entered(step)
        except Exception:  # noqa: BLE001 (a driver raises whatever it likes)
            self._study = self._rebuilt(earlier)
            with self._writing():
                self._running = self._entered(step)

    def finish(self, record: TrialRecord, earlier: Sequence[TrialRecord]) -> None:
        """Enter what came of the launch that was begun last; as `begin` does, it makes a broken storage anew."""
        assert self._running is not None, "begin comes first"
        try:
            self._tell(self._running, record, earlier)
        except Exception:  # noqa: BLE001 (a driver raises whatever it likes)
            self._study = self._rebuilt([*earlier, record])
        self._running = None

    def _entered(self, step: Step) -> Trial:
        params = stored_params(step.candidate, searched(self._space))
        fixed = {p.name: distribution(p) for p in searched(self._space) if p.name in params}
        self._study.enqueue_trial(params, user_attrs=dict(attributes(step.candidate, step.role.value, self._space)))
        return self._study.ask(fixed)

    def _tell(self, running: Trial, record: TrialRecord, earlier: Sequence[TrialRecord]) -> None:
        values, constraints = values_and_constraints(record, self._space, earlier)
        evidence = evidence_from(record, self._space)
        if evidence is not None:
            running.set_user_attr(EVIDENCE, evidence.dumps())
        for key, value in constraints.items():
            running.set_constraint(key, value)
        self._study.tell(running, values)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Turn whatever the database driver raises into one sentence; records are on disk before anything is told."""
        try:
            yield
        except Exception as error:
            cause = blocked(self._file) or reason(error)
            raise SpectuneError(
                f"cannot write {self._file}: {cause}; finished launches are kept: mend this and search again"
            ) from error

    def _up_to_date(self, records: Sequence[TrialRecord]) -> Study | None:
        """Return the stored study if it holds exactly these launches."""
        if not self._file.exists():
            return None
        try:
            study = self._open()
            trials = study.get_trials(deepcopy=False)
        except Exception:  # noqa: BLE001 (a damaged database raises whatever its driver likes)
            return None
        told = [trial.user_attrs.get(CANDIDATE) for trial in trials if trial.state.is_finished()]
        agrees = len(told) == len(trials) and told == [record.candidate.candidate_id for record in records]
        return study if agrees else None

    def _rebuilt(self, records: Sequence[TrialRecord]) -> Study:
        from sqlalchemy.exc import SQLAlchemyError

        for leftover in self._file.parent.glob(self._file.name + "*"):
            with contextlib.suppress(OSError):
                leftover.unlink()
        with self._writing():
            study = self._open()
            with warnings.catch_warnings(action="ignore"):  # names are experimental in Optuna; only people read them
                study.set_metric_names([objective.name for objective in self._space.objectives])
            trials = as_trials(records, self._space)
            try:
                insert_trials(self._storage, self._name, trials)
            except (ValueError, SQLAlchemyError):  # tables of another Optuna
                study.add_trials(trials)
        return study

    def _open(self) -> Study:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._storage = optuna.storages.RDBStorage(
            f"sqlite:///{self._file}", engine_kwargs={"connect_args": {"timeout": LOCKED_S}}
        )
        return optuna.create_study(
            storage=self._storage,
            study_name=self._name,
            directions=directions(self._space),
            load_if_exists=True,
            sampler=optuna.samplers.RandomSampler(seed=0),  # every parameter comes enqueued; nothing is drawn here
        )


def as_trials(
    records: Sequence[TrialRecord], space: SearchSpace, known: Sequence[TrialRecord] | None = None
) -> list[FrozenTrial]:
    """Return the launches as finished Optuna trials, in order.

    Args:
        records: The launches.
        space: Their search space.
        known: Launches that tell the worst values seen; by default these.
    """
    from optuna.trial import create_trial

    trials = []
    for record in records:
        params = stored_params(record.candidate, searched(space))
        values, constraints = values_and_constraints(record, space, records if known is None else known)
        trials.append(
            create_trial(
                values=values,
                params=params,
                distributions={p.name: distribution(p) for p in searched(space) if p.name in params},
                constraints=constraints,
                user_attrs=_user_attributes(record, space),
            )
        )
    return trials


def as_running(step: Step, space: SearchSpace) -> FrozenTrial:
    """Return a launch that is being made as an Optuna trial; its evidence is what was launched, and nothing more."""
    from optuna.trial import TrialState, create_trial

    params = stored_params(step.candidate, searched(space))
    return create_trial(
        state=TrialState.RUNNING,
        params=params,
        distributions={p.name: distribution(p) for p in searched(space) if p.name in params},
        user_attrs={
            **attributes(step.candidate, step.role.value, space),
            EVIDENCE: Evidence(step.candidate, None).dumps(),
        },
    )


def _user_attributes(record: TrialRecord, space: SearchSpace) -> dict[str, Any]:
    evidence = evidence_from(record, space)
    known = dict(attributes(record.candidate, record.role.value, space))
    return known if evidence is None else {**known, EVIDENCE: evidence.dumps()}
