"""What the trials of a shared Optuna study say: which launches are finished, under way, or left behind.

A launch is claimed by a trial that carries its step. Trials get their numbers under a lock, so the lowest number that
claims a launch has it, and so has the lowest number that finished it: every worker that reads the same trials comes to
the same conclusion, whatever its clock says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spectune.search.storage.book import Standing
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import DamagedRecord, Role, Step
from spectune.space import Candidate

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

STEP, WORKER, RECORD, WITHDRAWN, ATTACHED = "step", "worker", "record", "withdrawn", "files"
"""User attributes of a trial: what is launched, by whom, what came of it, that another was faster, files beside it."""
GIVEN_BACK = "given back"
"""User attribute of a trial whose worker ended it itself; without it, and without a record, the worker was lost."""


@dataclass(frozen=True)
class Entry:
    """One trial.

    Attributes:
        number: Optuna's.
        step: The launch it claims.
        worker: Who claimed it.
        open: Whether the claim holds.
        beating: Whether its heartbeat is recorded; before that nobody can tell that it is left behind.
        withdrawn: Whether another claim of the launch was faster.
        given_back: Whether whoever claimed it ended the claim.
        record: What came of it, where it was finished.
        attached: Files of the launch that other workers need, by name.
    """

    number: int
    step: Step
    worker: str
    open: bool
    beating: bool
    withdrawn: bool = False
    given_back: bool = False
    record: TrialRecord | None = None
    attached: Mapping[str, Any] | None = None


def entry_of(trial: FrozenTrial, study: str) -> tuple[Entry | None, str]:
    """Return what a trial says, None where it says nothing, and what is damaged of it, empty where nothing is.

    A finished launch whose record is damaged is one that was given back: whoever comes first makes it again.

    Raises:
        SpectuneError: It was written by a newer spectune.
    """
    from optuna.trial import TrialState

    attributes = trial.user_attrs
    if STEP not in attributes:
        return None, ""
    source = f"trial {trial.number} of the shared study {study}"
    try:
        step = Step.from_json(attributes[STEP], source)
    except DamagedRecord as error:
        return None, str(error)
    done = trial.state is TrialState.COMPLETE and RECORD in attributes
    record, attached, damage = None, None, ""
    if done:
        try:
            record, attached = _made(attributes, step, source)
        except DamagedRecord as error:
            damage = str(error)
    entry = Entry(
        number=trial.number,
        step=step,
        worker=str(attributes.get(WORKER, "")),
        open=not trial.state.is_finished(),
        beating=trial.state is TrialState.RUNNING,
        withdrawn=WITHDRAWN in attributes,
        given_back=GIVEN_BACK in attributes or bool(damage),
        record=record,
        attached=attached,
    )
    return entry, damage


def _made(attributes: Mapping[str, Any], step: Step, source: str) -> tuple[TrialRecord, Mapping[str, Any]]:
    """Return what came of a launch, and the files of it."""
    record, attached = TrialRecord.from_json(attributes[RECORD], source), attributes.get(ATTACHED)
    if record.trial != step.trial:
        raise DamagedRecord(f"{source} is damaged: it holds the record of launch {record.trial}, not {step.trial}")
    if not isinstance(attached, Mapping):
        raise DamagedRecord(f"{source} is damaged: it holds no files of its launch")
    return record, attached


def finished(entries: Iterable[Entry]) -> dict[int, Entry]:
    """Return the trial that counts of each finished launch, by the launch's number: the first."""
    found: dict[int, Entry] = {}
    for entry in sorted(entries, key=lambda entry: entry.number):
        if entry.record is not None:
            found.setdefault(entry.step.trial, entry)
    return dict(sorted(found.items()))


def holder(entries: Iterable[Entry], launch: int) -> Entry | None:
    """Return the trial that has a launch: the first that finished it, or else the first that claims it."""
    mine = sorted((entry for entry in entries if entry.step.trial == launch), key=lambda entry: entry.number)
    done = next((entry for entry in mine if entry.record is not None), None)
    return done or next((entry for entry in mine if entry.open), None)


def standing(entries: Iterable[Entry], place: str) -> Standing:
    """Return where a study stands, for a worker at `place` that has nothing under way.

    A launch that was left behind is made again by whoever comes first, but for those that say something of their own
    machine alone: they are made again there.
    """
    entries = sorted(entries, key=lambda entry: entry.number)
    done = finished(entries)
    running: dict[int, Step] = {}
    for entry in entries:
        if entry.open and entry.step.trial not in done:
            running.setdefault(entry.step.trial, entry.step)
    left: dict[int, Step] = {}
    lost: Counter[tuple[int, Candidate]] = Counter()  # a number may have been another launch's before
    for entry in entries:
        number = entry.step.trial
        behind = not entry.open and entry.record is None and not entry.withdrawn
        lost[number, entry.step.candidate] += behind and not entry.given_back
        anywhere = entry.step.role is Role.SEARCH or entry.step.place == place
        if behind and anywhere and number not in done and number not in running:
            left.setdefault(number, entry.step)
    records = [entry.record for entry in done.values() if entry.record is not None]
    over = {number: lost[number, step.candidate] for number, step in left.items()}
    return Standing(tuple(records), tuple(running.values()), tuple(left.values()), over)
