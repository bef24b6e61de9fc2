"""A study as it runs: a table that stays up to date on a terminal, a line per event elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from spectune.analysis.measurement import LevelMeasurement
from spectune.cli.launch_rows import launch_table, name, outcome
from spectune.cli.progress_words import left_words
from spectune.counts import count
from spectune.search import Progress, Status, Step, TrialRecord
from spectune.space import SearchSpace

ROOM = 7  # lines of the terminal that the table leaves to its heading, its footer and the prompt
FIRST_SILENCE_S, LONGEST_SILENCE_S = 5.0, 15.0  # after which a line says what is going on


class LiveTable:
    """A watcher for terminals: every launch a row, below it what is going on and the time left."""

    def __init__(self, space: SearchSpace, console: Console) -> None:
        self._space, self._console = space, console
        self._records: list[TrialRecord] = []
        self._step: Step | None = None
        self._measured: list[LevelMeasurement] = []
        self._progress: Progress | None = None
        self._says = ""
        self._since = time.monotonic()
        self._spinner = Spinner("dots")
        self._live = Live(console=console, get_renderable=self._render, refresh_per_second=4)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._step = self._progress = None
        self._live.stop()

    def planned(self, progress: Progress) -> None:
        """Keep how far the study is."""
        self._progress, self._since = progress, time.monotonic()

    def resumed(self, records: list[TrialRecord]) -> None:
        """Show the launches of an earlier session."""
        self._records = list(records)

    def launching(self, step: Step) -> None:
        """Begin a row."""
        self._step, self._measured, self._says = step, [], "starting the engine"

    def says(self, text: str) -> None:
        """Replace the last line."""
        self._says = text

    def measured(self, level: LevelMeasurement) -> None:
        """Fill in a level of the running launch."""
        self._measured.append(level)

    def finished(self, record: TrialRecord) -> None:
        """Complete the row; a launch that was made elsewhere gets its own."""
        self._records.append(record)
        if self._step is not None and self._step.trial == record.trial:
            self._step, self._says = None, ""
        if record.failure is not None:
            self.notes(f"launch {record.trial} failed: {record.failure.message}")

    def notes(self, text: str) -> None:
        """Print a line above the table."""
        self._console.print(text, markup=False)

    def _render(self) -> RenderableType:
        fitting = max(5, self._console.height - ROOM)
        table = launch_table(self._space, self._records[-fitting:], self._step, self._measured, self._console.width)
        return Group(table, self._footer())

    def _footer(self) -> RenderableType:
        parts = [self._says]
        if self._progress is not None:
            parts.append(left_words(self._progress, time.monotonic() - self._since))
        self._spinner.text = Text(" · ".join(part for part in parts if part), overflow="ellipsis", no_wrap=True)
        return self._spinner if parts else Text("")


class Lines:
    """A watcher for pipes and files: one line per launch and level, nothing replaced."""

    def __init__(self, space: SearchSpace, console: Console) -> None:
        self._space, self._console = space, console
        self._progress: Progress | None = None
        self._launched: int | None = None  # number of the last launch made here
        self._told = ""  # last, of how far the study is
        self._silence_s, self._since = FIRST_SILENCE_S, time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave nothing behind."""

    def planned(self, progress: Progress) -> None:
        """Keep how far the study is for the next line."""
        self._progress = progress

    def resumed(self, records: list[TrialRecord]) -> None:
        """Say how many launches are there already."""
        if records:
            self._print(f"continuing after {count(len(records), 'launch')}")

    def launching(self, step: Step) -> None:
        """Say what is launched, and why."""
        self._launched = step.trial
        left = f" ({news})" if (news := self._news()) else ""
        self._silence_s = FIRST_SILENCE_S
        self._print(f"[{step.trial}] {name(self._space, step.candidate, step.role)}: {step.why}{left}")

    def says(self, text: str) -> None:
        """Leave out what would be replaced at once, but for a word when nothing has been said for long, and longer."""
        silent_s = time.monotonic() - self._since
        if silent_s >= self._silence_s:
            self._silence_s = min(2 * self._silence_s, LONGEST_SILENCE_S)
            self._print(f"    {text}")

    def measured(self, level: LevelMeasurement) -> None:
        """Say a level's figures."""
        self._print(
            f"    {level.level}: {level.decode_speed.est:.1f} tok/s a request, {level.output_throughput.est:.0f} tok/s "
            f"in all, accept length {level.accept_length.est:.2f}, TTFT p95 {level.ttft_p95_ms:.0f} ms"
        )

    def finished(self, record: TrialRecord) -> None:
        """Say how a launch ended when it did not end well; of one that was made elsewhere its figures too."""
        if record.trial != self._launched:
            for level in record.levels:
                self.measured(level)
        if record.status is not Status.OK:
            self._print(f"    {outcome(record)}")
        if record.trial != self._launched and (news := self._news()):
            self._print(f"    {news}")

    def notes(self, text: str) -> None:
        """Print it."""
        self._print(f"    {text}")

    def _news(self) -> str:
        """Return how far the study is, empty where that was said last."""
        words = left_words(self._progress, 0.0) if self._progress else ""
        if words == self._told:
            return ""
        self._told = words
        return words

    def _print(self, text: str) -> None:
        self._since = time.monotonic()
        self._console.print(text, markup=False, soft_wrap=True)
