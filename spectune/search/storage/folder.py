"""The study folder: what lies where, and who may write to it."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from spectune import files
from spectune.errors import SpectuneError
from spectune.search.storage.launch_files import BEGUN, RESULT, launch_files
from spectune.search.storage.records import Launch, TrialRecord
from spectune.search.storage.steps import DamagedRecord, Role, Step
from spectune.search.storage.studies import LOCK, STUDIES, all_studies, check_name
from spectune.space import SearchSpace, load_space

REMEDY = "move its trial folder away and the same search command measures that launch again"
TRIALS = "trials"
OUTSIDE = "trials-outside"
"""Folder of launches that a changed space has no place for; moved back, they count again."""
ENVIRONMENT = "environment.json"


@dataclass(frozen=True)
class StudyFolder:
    """One study on disk.

    Attributes:
        root: `studies/<name>`.
    """

    root: Path

    @classmethod
    def named(cls, name: str) -> StudyFolder:
        """Return the folder of a study by its name, or by the path of a folder that holds one.

        Raises:
            SpectuneError: It is a path of none, or no name for a study.
        """
        if "/" in name:
            if not files.is_file(Path(name) / "space.yaml"):
                raise SpectuneError(f"there is no study in {name}: a study's folder holds a space.yaml")
            return cls(Path(name))
        return cls(STUDIES / check_name(name))

    @property
    def name(self) -> str:
        """The study's name."""
        return Path(self.realpath).name

    @property
    def realpath(self) -> str:
        """Where it is, however it was named: no other study has it on this machine."""
        return os.path.realpath(self.root)  # of links that go round in circles, too: reading says what is wrong

    @property
    def space_file(self) -> Path:
        """The search space as the user gave it."""
        return self.root / "space.yaml"

    @property
    def resolved_file(self) -> Path:
        """The search space as understood, with the engine it is run on."""
        return self.root / "resolved.yaml"

    @property
    def ledger(self) -> Path:
        """Optuna's SQLite storage."""
        return self.root / "study.db"

    @property
    def summary_file(self) -> Path:
        """The outcome for other programs."""
        return self.root / "summary.json"

    @property
    def exports(self) -> Path:
        """Where the launch files go."""
        return self.root / "export"

    def exists(self) -> bool:
        """Whether a study was started here.

        Raises:
            SpectuneError: Nobody may look.
        """
        return files.is_file(self.space_file)

    def require(self) -> StudyFolder:
        """Return itself if there is a study.

        Raises:
            SpectuneError: Naming the studies there are.
        """
        if self.exists():
            return self
        known = ", ".join(study.name for study in all_studies()) or "none yet"
        raise SpectuneError(f"there is no study {self.name} in {self.root.parent} (studies here: {known})")

    def begin(
        self, space_text: str, resolved: str, environment: dict[str, Any] | None, belongings: Mapping[str, str]
    ) -> None:
        """Write what a new study starts with; the space comes last, since it is what makes the folder a study.

        Args:
            space_text: The space as it was given.
            resolved: The space as understood.
            environment: The machine; None where launches are made on others, of which nothing is known yet.
            belongings: Files that the engine keeps with it, by name.

        Raises:
            SpectuneError: It cannot be written, or launches are there whose space is gone: nobody knows what they mean.
        """
        if launch_files(self.root / TRIALS, RESULT):
            raise SpectuneError(
                f"{self.root} holds launches, but its {self.space_file.name} is gone; restore that, or move the folder "
                "away, or choose another --study name"
            )
        files.write_whole(self.resolved_file, resolved)
        if environment is not None:
            self.keep_environment(environment)
        for name, text in belongings.items():
            files.write_whole(self.root / name, text)
        files.write_whole(self.space_file, space_text)

    def space(self) -> SearchSpace:
        """Return the search space as it was understood, and its text as it was given.

        Raises:
            SpectuneError: When it cannot be read.
        """
        for file in (self.resolved_file, self.space_file):
            files.require_file(file)
        space = load_space(self.resolved_file)
        try:
            return replace(space, text=self.space_file.read_text(encoding="utf-8"), path=self.space_file)
        except (OSError, UnicodeDecodeError) as error:
            raise SpectuneError(
                f"cannot read {self.space_file}: {error}; restore it or choose another --study name"
            ) from None

    def belonging(self, name: str) -> str | None:
        """Return a file that `begin` wrote for the engine, None where it is gone."""
        file = self.root / name
        try:
            return file.read_text(encoding="utf-8") if file.is_file() else None
        except (OSError, UnicodeDecodeError):
            return None

    def environment(self) -> dict[str, Any]:
        """Return the machine the study began on; nothing where its file is not there yet, gone or damaged."""
        try:
            environment = files.read_json(self.root / ENVIRONMENT)
        except SpectuneError:
            return {}
        return environment if isinstance(environment, dict) else {}

    @property
    def engine_title(self) -> str:
        """Name and version of the engine the study began on."""
        return str(self.environment().get("engine", "an unknown engine"))

    def keep_environment(self, environment: Mapping[str, Any]) -> None:
        """Write down the machine that the study is made on."""
        files.write_json(self.root / ENVIRONMENT, environment)

    def lock(self) -> FileLock:
        """Take the study for this process until it is released or ends.

        Raises:
            SpectuneError: When another spectune is running it.
        """
        lock = self.try_lock()
        if lock is None:
            raise SpectuneError(f"another spectune is running the study {self.name}; wait for it or stop it")
        return lock

    def try_lock(self) -> FileLock | None:
        """Take the study for this process; None when another spectune is running it.

        Raises:
            SpectuneError: When the folder cannot be written.
        """
        files.make_folder(self.root)
        lock = FileLock(self.root / LOCK)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return None
        except OSError as error:
            raise SpectuneError(
                f"cannot lock {self.root / LOCK}: {error.strerror or error}; make the study's folder one that you may "
                "write to, or choose another --study name"
            ) from None
        return lock

    def identity(self) -> tuple[int, int] | None:
        """Return what tells this folder from any other that is given its place; None where there is no lock."""
        try:
            found = (self.root / LOCK).stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def trial_folder(self, trial: int, role: Role) -> Path:
        """Return the folder of a launch; baselines and confirmations say so in their names."""
        return self.root / TRIALS / (f"{trial:04d}" if role is Role.SEARCH else f"{trial:04d}-{role.value}")

    def open_trial(self, step: Step) -> Path:
        """Make an empty folder for a launch and write down what is about to be launched."""
        folder = self.trial_folder(step.trial, step.role)
        if (folder / RESULT).exists():
            raise SpectuneError(f"{folder} holds a finished launch, which is never overwritten")
        if folder.is_dir():  # an interrupted launch of the same number is made again
            shutil.rmtree(folder, ignore_errors=True)
        files.write_json(folder / BEGUN, step.to_json())
        return folder

    def write_result(self, record: TrialRecord) -> None:
        """Write the record of a finished launch."""
        files.write_json(self.trial_folder(record.trial, record.role) / RESULT, record.to_json())

    def records(self) -> list[TrialRecord]:
        """Return every finished launch, in order.

        Raises:
            SpectuneError: When a record is damaged or may not be read, naming its file.
        """
        found: dict[int, tuple[Path, TrialRecord]] = {}
        for path in launch_files(self.root / TRIALS, RESULT):
            try:
                record = TrialRecord.from_json(files.read_json(path), str(path))
            except DamagedRecord as error:
                raise SpectuneError(f"{error}; {REMEDY}") from None
            if record.trial in found:
                raise SpectuneError(
                    f"{path} and {found[record.trial][0]} are both trial {record.trial}; move one of them away"
                )
            found[record.trial] = (path, record)
        return [record for _, (_, record) in sorted(found.items())]

    def interrupted(self) -> list[Step]:
        """Return the launches that were begun and never finished."""
        steps = []
        for path in launch_files(self.root / TRIALS, BEGUN):
            if (path.parent / RESULT).exists():
                continue
            try:
                steps.append(Step.from_json(files.read_json(path), str(path)))
            except SpectuneError:
                continue  # nothing was measured yet: the plan decides anew what to launch under this number
        return steps

    def set_aside(self) -> list[Launch]:
        """Return the launches that a changed space has no place for, as far as they can be read."""
        found: list[Launch] = []
        for name, read in ((BEGUN, Step.from_json), (RESULT, TrialRecord.from_json)):
            for path in launch_files(self.root / OUTSIDE, name):
                with contextlib.suppress(SpectuneError):
                    found.append(read(files.read_json(path), str(path)))
        return found
