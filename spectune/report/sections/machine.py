"""Where it was measured, and whether the machine stayed the same."""

from __future__ import annotations

import math
from dataclasses import dataclass

from spectune.blotting import blotted_yaml
from spectune.machine import SIMULATED_MACHINE, overview
from spectune.report.material import Material
from spectune.report.plots import Axis, Dot, Key, Plot, Scale, Segment, Shape
from spectune.report.sections.section import Section
from spectune.report.wording import percent
from spectune.search.evidence.place_line import study_hours
from spectune.search.evidence.speeds import by_candidate, together
from spectune.search.evidence.timeline import as_in, timeline
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Role


@dataclass(frozen=True)
class Machine:
    """The section.

    Attributes:
        words: Noise, drift and jumps, in sentences.
        plot: Repeated launches on the study's clock; None where nothing was launched twice.
        simulated: What stands for the machine; empty where it was measured on one.
        fingerprint: (name, value) of the machine that it was measured on, or that spectune simulated on.
        space: The search space as the user gave it.
    """

    words: tuple[str, ...]
    plot: Plot | None
    simulated: str
    fingerprint: tuple[tuple[str, str], ...]
    space: str


def machine(material: Material) -> Section:
    """Return the machine and how steady it was."""
    simulated = ""
    if material.told.simulated:  # studies of an older spectune name the engine alone, which names the profile
        simulated = str(material.environment.get(SIMULATED_MACHINE) or material.told.engine)
    facts = overview(material.environment, gpus=not simulated)
    content = Machine(
        tuple(material.told.steadiness), _repeats(material), simulated, tuple(facts),
        material.shown(blotted_yaml(material.space.text)),
    )  # fmt: skip
    return Section("machine", "Where it was measured", content)


def _repeats(material: Material) -> Plot | None:
    """Return launches of the same configuration against their mean, over time."""
    speed, hours = together(material.space), study_hours(material.records)
    line = timeline(material.records, material.space)
    records = as_in(material.records, line, line.reference)
    repeated = [record for record in records if record.role is not Role.SEARCH and speed(record) is not None]
    groups = [group for group in by_candidate(repeated).values() if len(group) > 1]
    if not groups:
        return None
    found: list[tuple[TrialRecord, int, float, float]] = []
    for number, group in enumerate(groups):
        logs = {record.trial: math.log(value.est) for record in group if (value := speed(record)) is not None}
        mean = math.fsum(logs.values()) / len(logs)
        found += [(r, number, hours[r.trial], 100.0 * math.expm1(logs[r.trial] - mean)) for r in group]
    x = Scale.over([hour for _, _, hour, _ in found], holding=(0.0,))
    y = Scale.over([change for *_, change in found] + [-1.0, 1.0])
    dots = tuple(
        Dot(
            x.across(hour), y.up(change), f"s{group % 8 + 1}",
            f"trial {record.trial} ({record.role}): {_name(material, record)}\n{percent(change / 100.0)} of its mean",
            _shape(record),
        )
        for record, group, hour, change in found
    )  # fmt: skip
    segments = [Segment(0, y.up(0.0), 100, y.up(0.0), "muted", "dashed")]
    begins = {record.trial: hour for record, _, hour, _ in found}
    for jump in material.told.jumps:
        if jump.after in begins:
            at = x.across(begins[jump.after])
            segments.append(Segment(at, 0, at, 100, "bad", "dotted"))
    keys = [
        Key(_name(material, group[0]), f"s{number % 8 + 1}", _shape(group[0]))
        for number, group in enumerate(groups[:8])
    ]  # fmt: skip
    if material.told.jumps:
        keys.append(Key("jump of the machine", "bad", "dotted"))
    return Plot(
        "repeats", "The same configuration again",
        "Launches of one configuration against their mean, in all objectives together. A slope is drift, a step is a "
        "jump of the machine, the rest is noise between launches.",
        Axis("hours of launches", x.x_ticks()), Axis("change (%)", y.y_ticks(5)), 240,
        segments=tuple(segments), dots=dots, keys=tuple(keys),
    )  # fmt: skip


def _shape(record: TrialRecord) -> Shape:
    return "circle" if record.candidate.speculative else "diamond"


def _name(material: Material, record: TrialRecord) -> str:
    return material.labels[record.candidate.candidate_id]
