"""Every launch on the study's clock: how fast it was, and what its time went into."""

from __future__ import annotations

from collections.abc import Iterator

from spectune.report.material import Material
from spectune.report.plots import Axis, Box, Dot, Key, Plot, Scale, Segment, Tick
from spectune.report.sections.trade_off import shape_of
from spectune.report.wording import duration
from spectune.search.evidence.speeds import together
from spectune.search.storage.records import Status, TrialRecord
from spectune.search.storage.steps import Role

PHASES = {
    "startup": ("s1", "engine start-up"),
    "checking": ("s6", "checking its answers"),
    "measuring": ("s2", "measuring"),
    "shutdown": ("s3", "engine shutdown"),
    "own": ("muted", "spectune itself"),
}
STRIP = 12.0
"""Height of the strip of launches under the points, percent."""


def timeline(material: Material) -> Plot | None:
    """Return every launch on the study's clock, with its speed and with what its time went into."""
    speed = together(material.space)
    hours, found, spent = [], [], 0.0
    for record, trial in zip(material.records, material.trials, strict=True):
        hours.append((spent / 3600.0, (spent + record.seconds.total) / 3600.0))
        spent += record.seconds.total
        found.append((trial, value.est if (value := speed(record)) is not None else None))
    if not spent:
        return None
    reference = next((value for trial, value in found if value and trial.role is Role.BASELINE), None)
    reference = reference or next((value for _, value in found if value), None)
    x, minutes = Scale(0.0, spent / 3600.0), spent < 2 * 3600.0
    ratios = [value / reference if value and reference else None for _, value in found]
    y = Scale.over([*ratios, 1.0], room=0.08)
    dots: list[Dot] = []
    boxes: list[Box] = []
    for (trial, _), (begin, end), ratio in zip(found, hours, ratios, strict=True):
        dots.append(_dot(trial, material, x.across((begin + end) / 2), ratio, y))
        boxes += _boxes(trial, x, begin)
    shown = Scale(0.0, spent / 60.0) if minutes else x
    return Plot(
        "timeline", "Every launch on the study's clock",
        "Each point is a launch: its speed in all objectives together, against the first one without speculation. "
        "The strip below shows what its time went into.",
        Axis("minutes of launches" if minutes else "hours of launches", shown.x_ticks(8)),
        Axis("speed against the first baseline (×)", tuple(_above_strip(y))), 320,
        boxes=tuple(boxes), segments=(Segment(0, _lifted(y.up(1.0)), 100, _lifted(y.up(1.0)), "baseline", "dashed"),),
        dots=tuple(dots),
        keys=(
            Key("baseline", "baseline", "diamond"), Key("search", "accent"), Key("repeat for drift", "s2", "diamond"),
            Key("confirmation", "good"), Key("failed", "bad", "cross"), Key("suspect", "unclear", filled=False),
            *(Key(title, tone, "box") for tone, title in PHASES.values()),
        ),
    )  # fmt: skip


def _lifted(at: float) -> float:
    """Return a place in the part of the plot above the strip."""
    return round(at * (1.0 - 1.5 * STRIP / 100.0), 2)


def _above_strip(y: Scale) -> Iterator[Tick]:
    for tick in y.y_ticks(5):
        yield Tick(_lifted(tick.at), tick.label)


def _dot(trial: TrialRecord, material: Material, x: float, ratio: float | None, y: Scale) -> Dot:
    candidate = trial.candidate.candidate_id
    label = f"trial {trial.trial} ({trial.role}): {material.labels[candidate]}"
    if trial.failure is not None:
        tip = f"{label}\nfailed: {trial.failure.failure_class}\n{trial.why}"
        return Dot(x, _lifted(100.0), "bad", tip, "cross")
    tone = {Role.BASELINE: "baseline", Role.DRIFT: "s2", Role.CONFIRM: "good"}.get(trial.role, "accent")
    speed = "not measured in every objective" if ratio is None else f"{ratio:.3f} × the first baseline"
    at = _lifted(100.0 if ratio is None else y.up(ratio))
    suspect = trial.status is Status.SUSPECT
    tip, shape = f"{label}\n{speed}\n{trial.why}", shape_of(material, candidate)
    return Dot(x, at, "unclear" if suspect else tone, tip, shape, not suspect)


def _boxes(trial: TrialRecord, x: Scale, begin: float) -> Iterator[Box]:
    for name, (tone, title) in PHASES.items():
        seconds = max(getattr(trial.seconds, name), 0.0)
        end = begin + seconds / 3600.0
        width = round(x.across(end) - x.across(begin), 3)
        if width > 0:
            tip = f"trial {trial.trial}: {title}, {duration(seconds)}"
            yield Box(x.across(begin), 100.0 - STRIP, width, STRIP, tone, tip)
        begin = end
