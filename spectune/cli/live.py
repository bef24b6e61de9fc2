"""A study as it runs: a table that stays up to date on a terminal, a line per event elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from spectune.analysis.measurement import LevelMeasurement
from spectune.cli.progress_words import left_words
from spectune.counts import count
from spectune.search import Progress, Role, Status, Step, TrialRecord
from spectune.space import Candidate, SearchSpace

ROOM = 7  # lines of the terminal that the table leaves to its heading, its footer and the prompt
FIRST_SILENCE_S, LONGEST_SILENCE_S = 5.0, 60.0  # after which a line says what is going on
ROLE_WORDS = {Role.BASELINE: "baseline", Role.SEARCH: "", Role.DRIFT: "drift check", Role.CONFIRM: "confirm"}


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
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("#", justify="right")
        table.add_column("launch", min_width=20, overflow="fold")
        for level in self._space.workload.levels:
            table.add_column(f"{level.name} tok/s (τ)", justify="right", no_wrap=True)
        table.caption = "tok/s of one request, accept length τ; S,K,N: draft steps, top-k, draft tokens"
        table.caption_justify = "left"
        table.add_column("", no_wrap=True, overflow="ellipsis")
        fitting = max(5, self._console.height - ROOM)
        for record in self._records[-fitting:]:
            table.add_row(
                str(record.trial),
                Text(name(self._space, record.candidate, record.role)),
                *self._cells(record.levels),
                outcome(record),
            )
        if self._step is not None:
            running = Text(name(self._space, self._step.candidate, self._step.role), style="bold")
            table.add_row(str(self._step.trial), running, *self._cells(self._measured), Text("…"))
        return Group(table, self._footer())

    def _cells(self, levels: list[LevelMeasurement] | tuple[LevelMeasurement, ...]) -> list[str]:
        by_name = {level.level: level for level in levels}
        return [cell(by_name.get(level.name)) for level in self._space.workload.levels]

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


def name(space: SearchSpace, candidate: Candidate, role: Role) -> str:
    """Return a launch's name: what it is, and why it was made if not for the search."""
    words = ROLE_WORDS[role]
    return f"{space.label(candidate)} ({words})" if words else space.label(candidate)


def cell(level: LevelMeasurement | None) -> str:
    """Return a level's speed per request and its accept length."""
    if level is None:
        return ""
    return f"{level.decode_speed.est:.1f} ({level.accept_length.est:.2f})"


def outcome(record: TrialRecord) -> Text:
    """Return how a launch ended, in a few words."""
    if record.failure is not None:
        return Text(f"{record.failure.failure_class}: {record.failure.message}", style="red", overflow="ellipsis")
    if record.suspect:
        first = record.suspect[0]
        return Text(f"suspect: {first.field} is {first.got}, not {first.wanted}", style="yellow")
    return Text("ok", style="green")
