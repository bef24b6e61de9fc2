"""What a study tells whoever watches it while it runs."""

from __future__ import annotations

from typing import Protocol

from spectune.analysis.measurement import LevelMeasurement
from spectune.search.planning.prospect import Progress
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Step


class Watcher(Protocol):
    """Receives a study's events in order; must return at once."""

    def planned(self, progress: Progress) -> None:
        """Called at the start and after every launch: how far the study is and how long it may still take."""
        ...

    def launching(self, step: Step) -> None:
        """A launch begins."""
        ...

    def says(self, text: str) -> None:
        """What is going on inside the launch, in a few words; replaces the text before it."""
        ...

    def measured(self, level: LevelMeasurement) -> None:
        """A level of the running launch is measured."""
        ...

    def finished(self, record: TrialRecord) -> None:
        """A launch ended, here or where another worker made it, and its record is on disk."""
        ...

    def notes(self, text: str) -> None:
        """Something worth a line of its own, kept on screen."""
        ...
