"""Every launch: why it was made, what the engine really ran, what is to be known of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spectune.engines.protocol import Effective
from spectune.report.material import Material
from spectune.report.sections.section import Section
from spectune.report.wording import plain
from spectune.search.storage.records import Status, TrialRecord

TONES = {Status.OK: "good", Status.FAILED: "bad", Status.SUSPECT: "unclear"}


@dataclass(frozen=True)
class LaunchRow:
    """One launch.

    Attributes:
        trial: Its number.
        label: Its configuration.
        role: What it was made for.
        why: The sentence with which it was proposed.
        status: How it ended.
        tone: Colour of that.
        startup: How long the engine took to be ready.
        suspect: What the engine reports differently, in sentences.
        notes: Remarks of the launch, its machine and its levels.
        effective: (name, value) of what the engine really ran, as read back.
        reached: Whether the launch's variables reached the workers, in sentences.
    """

    trial: int
    label: str
    role: str
    why: str
    status: str
    tone: str
    startup: str
    suspect: tuple[str, ...]
    notes: tuple[str, ...]
    effective: tuple[tuple[str, str], ...]
    reached: tuple[str, ...]


def launches(material: Material) -> Section:
    """Return a row per launch."""
    return Section("launches", "All launches", tuple(_row(trial, material) for trial in material.trials))


def _row(trial: TrialRecord, material: Material) -> LaunchRow:
    return LaunchRow(
        trial=trial.trial,
        label=material.labels[trial.candidate.candidate_id],
        role=trial.role,
        why=trial.why,
        status=trial.status,
        tone=TONES[trial.status],
        startup=f"{trial.seconds.startup:.1f} s",
        suspect=tuple(
            f"{entry.field}: asked for {plain(entry.wanted)}, the engine reports {plain(entry.got)}"
            for entry in trial.suspect
        ),
        notes=tuple(_notes(trial)),
        effective=tuple(_effective(trial.effective)),
        reached=tuple(entry.words for entry in trial.environment_reached),
    )


def _notes(trial: TrialRecord) -> Iterator[str]:
    """Yield what a reader should know of a launch: remarks of the launch, its machine and its levels."""
    yield from trial.notes
    for change in trial.environment_changes:
        if change.matters:
            yield f"the machine was not as it was when the study began: {change}"
    for level in trial.levels:
        yield from (f"{level.level}: {note}" for note in level.notes)


def _effective(effective: Effective) -> Iterator[tuple[str, str]]:
    """Yield what was read back, as far as the engine said it."""
    if effective.kv_tokens is not None:
        yield "KV cache", f"{effective.kv_tokens:,} tokens"
    if effective.max_running_requests is not None:
        yield "running requests", f"{effective.max_running_requests:,} at most"
    for kind, sizes in effective.graph_batches.items():
        yield f"{kind} graphs", plain(sizes)
    yield from effective.backends.items()
    yield from effective.nccl.items()
