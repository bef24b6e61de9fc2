"""What is said of a study as it runs: how far it is, what others do, and what is worth a line of its own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from spectune.counts import count
from spectune.search.answer.disturbed import busy_remark
from spectune.search.launch.feed import PromptFeed
from spectune.search.planning.plan import Wait
from spectune.search.planning.prospect import Prospect, progress, prospect
from spectune.search.proposing.proposals import Proposer
from spectune.search.storage.book import Standing
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Step
from spectune.search.watcher import Watcher
from spectune.space import SearchSpace


class Gauge:
    """Tells how far the study is."""

    def __init__(
        self,
        space: SearchSpace,
        proposer: Proposer,
        watcher: Watcher,
        *,
        known: int,
        virtual: bool,
        launches: bool = True,
    ) -> None:
        """Begin.

        Args:
            space: The search space.
            proposer: Where new candidates come from.
            watcher: Who is told.
            known: Launches that are finished.
            virtual: Whether they take virtual time.
            launches: Whether whoever tells makes launches too, beside those that others have under way.
        """
        self._space, self._proposer, self._watcher = space, proposer, watcher
        self._known, self._virtual, self._began = known, virtual, time.monotonic()
        self._launches = launches

    def begins(self, standing: Standing) -> Prospect:
        """Say it at the start; returns what is expected."""
        return self._told(standing)

    def goes_on(self, standing: Standing) -> None:
        """Say it again."""
        self._told(standing)

    def _told(self, standing: Standing) -> Prospect:
        """Say it; of launches in virtual time, only those that were seen tell what they take."""
        made = len(standing.records) - self._known
        pace = (time.monotonic() - self._began) / made if self._virtual and made else None
        expected = prospect(standing.records, self._space, self._proposer)
        so_far = progress(standing.records, expected, pace, at_once=self._at_once(standing))
        self._watcher.planned(replace(so_far, left_s=None) if self._virtual and pace is None else so_far)
        return expected

    def _at_once(self, standing: Standing) -> int:
        return max(1, len(standing.running) + self._launches)


class Remarks:
    """Says what is worth a line of its own, once."""

    def __init__(self, watcher: Watcher, space: SearchSpace, records: Sequence[TrialRecord]) -> None:
        self._watcher, self._space = watcher, space
        self._known = {record.trial for record in records}
        self._begun: set[int] = set()
        self._changes: set[str] = set()  # of the machine
        self._reused, self._too_long, self._beside, self._waiting = False, 0, False, ""

    def launch(self, record: TrialRecord, seen: Sequence[str]) -> None:
        """Say what was seen of a launch, and how the machine has changed."""
        self._known.add(record.trial)
        for remark in seen:
            self._watcher.notes(remark)
        for change in record.environment_changes:
            if change.matters and change.field not in self._changes:
                self._changes.add(change.field)
                self._watcher.notes(f"the machine is not as it was when the study began: {change}")
        if not self._beside and (beside := busy_remark(record)) is not None:
            self._beside = True
            self._watcher.notes(beside)

    def begun(self, running: Sequence[Step]) -> None:
        """Say what others have begun."""
        for step in running:
            if step.trial not in self._begun:
                self._begun.add(step.trial)
                what = f"{self._space.label(step.candidate)} ({step.role})"
                self._watcher.notes(f"[{step.trial}] begun on {step.place or 'another machine'}: {what}: {step.why}")

    def under_way(self, running: Sequence[Step]) -> None:
        """Say what others are at."""
        if running:
            under_way = " and ".join(f"[{step.trial}]" for step in running)
            self._watcher.says(f"under way: {under_way}")

    def elsewhere(self, records: Sequence[TrialRecord]) -> None:
        """Say what came of launches that others made, and why they did where nobody saw them begin."""
        for record in records:
            if record.trial not in self._known:
                self._known.add(record.trial)
                what = f"{self._space.label(record.candidate)} ({record.role})"
                why = "" if record.trial in self._begun else f": {record.why}"
                where = record.place or "another machine"
                self._watcher.notes(f"[{record.trial}] {what}, on {where}{why}: {record.status}")
                self._watcher.finished(record)

    def waiting(self, wait: Wait, running: Sequence[Step]) -> None:
        """Say what there is to wait for."""
        theirs = ", ".join(f"{other.trial} on {other.place or 'another machine'}" for other in running)
        said = f"waiting: {wait.reason}" + (f" (under way: {theirs})" if theirs else "")
        if said != self._waiting:
            self._waiting = said
            self._watcher.notes(said)

    def prompts(self, feed: PromptFeed) -> None:
        """Say that prompts have run out, or are left out."""
        if feed.reused and not self._reused:
            self._reused = True
            self._watcher.notes(
                "the prompts have run out and are sent again: repeated ones may come from the prefix cache"
            )
        if feed.too_long > self._too_long:
            self._too_long = feed.too_long
            left_out = count(feed.too_long, "prompt")
            self._watcher.notes(f"left out, as with their answers they exceed the context: {left_out}")
