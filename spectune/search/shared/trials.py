"""The Optuna study that workers share: every change of it that spectune makes.

Nothing here waits for a database that is away: whoever calls does (`line.py`), so everything may be done again.
"""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import orjson

from spectune.files import json_bytes
from spectune.search.shared.entries import (
    ATTACHED,
    GIVEN_BACK,
    RECORD,
    STEP,
    WITHDRAWN,
    WORKER,
    Entry,
    entry_of,
    finished,
    holder,
)
from spectune.search.storage.ledger import as_trials
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Step
from spectune.search.storage.values import attributes, distribution, searched, stored_params
from spectune.space import SearchSpace

if TYPE_CHECKING:
    from optuna.storages import RDBStorage
    from optuna.trial import FrozenTrial

BEATS = 20  # heartbeats in the time after which a worker that sends none is taken to be lost


class SharedTrials:
    """One worker's view of the study's trials."""

    def __init__(self, storage: RDBStorage, name: str, space: SearchSpace, worker: str, takeover_s: int) -> None:
        """Open a study that is there.

        Args:
            storage: The database.
            name: Of the study.
            space: Its search space.
            worker: Who this is.
            takeover_s: Seconds without a heartbeat after which a launch is left behind.
        """
        import optuna

        storage.grace_period = takeover_s
        storage.heartbeat_interval = max(1, takeover_s // BEATS)
        self.beat_s = float(storage.heartbeat_interval)
        self._rdb, self._name, self._space, self._worker = storage, name, space, worker
        self._storage = optuna.storages.get_storage(storage)  # keeps finished trials: only what is new is read
        self._study = optuna.load_study(study_name=name, storage=self._storage)
        self._id = self._storage.get_study_id_from_name(name)
        self._ended: dict[int, Entry | None] = {}
        self.damaged: dict[int, str] = {}
        """What is damaged, by the trial's number, as far as the trials were read."""

    @property
    def study(self) -> str:
        """The database and the study's name in it, without secrets."""
        return f"{self._rdb.engine.url.render_as_string(hide_password=True)} {self._name}"

    def entries(self) -> list[Entry]:
        """Return all trials of ours; claims whose heartbeat nobody recorded yet are seen to have one from now on."""
        found = [self._entry(trial) for trial in self._trials()]
        known = [entry for entry in found if entry is not None]
        for entry in known:
            if entry.open and not entry.beating:
                self.start(entry.number)
        return known

    def take_over(self) -> None:
        """End the claims whose heartbeat has stopped."""
        import optuna

        with warnings.catch_warnings(action="ignore"):  # it is experimental in Optuna
            optuna.storages.fail_stale_trials(self._study)

    def claim(self, step: Step, known: Collection[int] = ()) -> int | None:
        """Claim a launch; returns the trial's number, or None when another worker was faster.

        Args:
            step: The launch.
            known: Launches that were finished when it was chosen. If there are more by now, it is not claimed: with
                them the study may be over, and workers may have left who saw no launch under way.
        """
        from optuna.trial import TrialState, create_trial

        told = {**attributes(step.candidate, step.role.value, self._space), STEP: step.to_json(), WORKER: self._worker}
        params = stored_params(step.candidate, searched(self._space))
        fixed = {p.name: distribution(p) for p in searched(self._space) if p.name in params}
        claim = create_trial(state=TrialState.WAITING, params=params, distributions=fixed, user_attrs=told)
        number = self._storage.get_trial_number_from_id(self._storage.create_new_trial(self._id, claim))
        self.start(number)
        entries = self.entries()
        first = holder(entries, step.trial)
        if first is not None and first.number == number and finished(entries).keys() <= set(known):
            return number
        self._withdraw(number)
        return None

    def start(self, number: int) -> None:
        """Record a claim's first heartbeat; only then it is said to run."""
        from optuna.trial import TrialState

        self.beat(number)
        with self._unless_ended():
            self._storage.set_trial_state_values(self._trial_id(number), TrialState.RUNNING)

    def beat(self, number: int) -> None:
        """Record that whoever claimed a launch is alive."""
        self._rdb.record_heartbeat(self._trial_id(number))

    def release(self, number: int) -> None:
        """Give a launch back that was not finished, for others to make."""
        with self._unless_ended():
            self._storage.set_trial_user_attr(self._trial_id(number), GIVEN_BACK, True)
        self.abandon(number)

    def abandon(self, number: int) -> None:
        """End a claim whose worker was lost over its launch, as `take_over` does."""
        from optuna.trial import TrialState

        with self._unless_ended():
            self._storage.set_trial_state_values(self._trial_id(number), TrialState.FAIL)

    def complete(self, number: int | None, record: TrialRecord, attached: Mapping[str, Any]) -> None:
        """Write what came of a launch into its claim; into a trial of its own where the claim was lost, or never made.

        Nothing is written where a record of that launch counts already.
        """
        entries = self.entries()
        done = finished(entries)
        if record.trial in done:
            if number is not None:
                self._withdraw(number)
            return
        result = self._result(record, [entry.record for entry in done.values() if entry.record], attached)
        if number is None or not any(entry.number == number and entry.open for entry in entries):
            self._storage.create_new_trial(self._id, result)
            return
        try:
            self._fill(self._trial_id(number), result)
        except _ended_meanwhile():
            self._storage.create_new_trial(self._id, result)

    def _fill(self, trial: int, result: FrozenTrial) -> None:
        for key, value in result.user_attrs.items():
            self._storage.set_trial_user_attr(trial, key, value)
        for key, value in result.system_attrs.items():
            self._storage.set_trial_system_attr(trial, key, value)
        self._storage.set_trial_state_values(trial, result.state, result.values)

    def _result(self, record: TrialRecord, others: list[TrialRecord], attached: Mapping[str, Any]) -> FrozenTrial:
        (trial,) = as_trials([record], self._space, others)
        told = {STEP: record.step.to_json(), WORKER: self._worker, RECORD: record.to_json(), ATTACHED: attached}
        for key, value in told.items():
            trial.set_user_attr(key, orjson.loads(json_bytes(value)))  # as it stands on disk
        return trial

    def _withdraw(self, number: int) -> None:
        with self._unless_ended():
            self._storage.set_trial_user_attr(self._trial_id(number), WITHDRAWN, True)
        self.abandon(number)

    def _trials(self) -> list[FrozenTrial]:
        """Return all trials that can be read; Optuna reads all or none."""
        try:
            return self._storage.get_all_trials(self._id, deepcopy=False)
        except ValueError:  # what one of them holds is not even JSON
            return list(self._one_by_one())

    def _one_by_one(self) -> Iterator[FrozenTrial]:
        for number in itertools.count():
            try:
                yield self._rdb.get_trial(self._trial_id(number))
            except KeyError:  # there are no more
                return
            except ValueError as error:
                self.damaged[number] = f"trial {number} of the shared study {self._name} is damaged ({error})"

    def _entry(self, trial: FrozenTrial) -> Entry | None:
        if trial.number not in self._ended:
            entry, damage = entry_of(trial, self._name)
            if damage:
                self.damaged[trial.number] = damage
            if not trial.state.is_finished():
                return entry
            self._ended[trial.number] = entry
        return self._ended[trial.number]

    def _trial_id(self, number: int) -> int:
        return self._storage.get_trial_id_from_study_id_trial_number(self._id, number)

    @staticmethod
    def _unless_ended() -> contextlib.suppress:
        return contextlib.suppress(_ended_meanwhile())


def _ended_meanwhile() -> type[Exception]:
    from optuna.exceptions import UpdateFinishedTrialError

    return UpdateFinishedTrialError
