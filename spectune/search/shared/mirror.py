"""A worker's own copy of a shared study: every record is a file here too, so every command works on it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from spectune import files
from spectune.errors import SpectuneError
from spectune.search.launch.canary import FILE as CANARY_FILE
from spectune.search.shared.entries import Entry
from spectune.search.storage.folder import ENVIRONMENT, StudyFolder
from spectune.search.storage.records import Launch, TrialRecord

SECOND = "trials-second"
"""Folder of launches that another worker had finished first; they do not count."""


class Mirror:
    """The study folder, kept up to the shared study."""

    def __init__(self, folder: StudyFolder) -> None:
        """Read what is there.

        Raises:
            SpectuneError: A record is damaged.
        """
        self._folder = folder
        self._kept = {record.trial: record for record in folder.records()}
        self.set_aside: Sequence[Launch] = tuple(folder.set_aside())
        """Launches that the space has no place for, made before the study was shared."""

    @property
    def kept(self) -> Mapping[int, TrialRecord]:
        """The records in the folder, by the numbers of their launches."""
        return self._kept

    def keep(self, record: TrialRecord) -> TrialRecord:
        """Write a record of this worker's own; returns it as it is read back, so as every worker will have it."""
        self._folder.write_result(record)
        self._kept[record.trial] = TrialRecord.from_json(orjson.loads(files.json_bytes(record.to_json())), "a record")
        return self._kept[record.trial]

    def attached(self, record: TrialRecord) -> dict[str, Any]:
        """Return the files of a launch that others need: its answers, and the first one's machine.

        Later launches are compared with the answers. The machine is for whoever follows a study without launches.
        """
        found: dict[str, Any] = {}
        if record.trial == 0 and (environment := self._folder.environment()):
            found[ENVIRONMENT] = environment
        if not record.candidate.speculative and record.failure is None:
            with contextlib.suppress(SpectuneError):
                path = self._folder.trial_folder(record.trial, record.role) / CANARY_FILE
                found[CANARY_FILE] = files.read_json(path)
        return found

    def follow(self, counted: Iterable[Entry]) -> list[int]:
        """Bring the folder up to the launches that count; returns the numbers of those here that do not."""
        second = []
        for entry in counted:
            record = entry.record
            assert record is not None, "only finished launches count"
            mine = self._kept.get(record.trial)
            if mine is not record:
                if mine is not None and mine != record:
                    self._set_aside(mine)
                    second.append(record.trial)
                    mine = None
                if mine is None:
                    self._copy(record, entry.attached or {})
                self._kept[record.trial] = record
        return second

    def _copy(self, record: TrialRecord, attached: Mapping[str, Any]) -> None:
        folder = self._folder.open_trial(record.step)
        for name, content in attached.items():
            if name == CANARY_FILE:  # never a name that others chose
                files.write_json(folder / name, content)
            elif name == ENVIRONMENT and not self._folder.environment() and isinstance(content, dict):
                self._folder.keep_environment(content)
        self._folder.write_result(record)

    def _set_aside(self, record: TrialRecord) -> None:
        source = self._folder.trial_folder(record.trial, record.role)
        target = _free(self._folder.root / SECOND / source.name)
        try:
            target.parent.mkdir(exist_ok=True)
            source.rename(target)
        except OSError as error:
            raise SpectuneError(f"cannot move {source} to {target}: {error.strerror or error}") from None


def _free(path: Path) -> Path:
    while path.exists():
        path = path.with_name(f"{path.name}-again")
    return path
