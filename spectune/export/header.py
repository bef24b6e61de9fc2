"""The comment at the top of an exported file: where it comes from and what was measured."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from spectune.analysis.estimate import Estimate
from spectune.analysis.measurement import LevelMeasurement
from spectune.engines.rules import version_of
from spectune.engines.sglang.rules.names import MODEL
from spectune.export.launch import Launch
from spectune.printable import one_line
from spectune.search.answer.summary_fields import CandidateLevel
from spectune.search.evidence.figures import Figures
from spectune.search.storage.records import TrialRecord
from spectune.space import DRAFTER, Candidate

MARK = "(written by spectune)"
"""Ends the first comment line of every exported file."""
CPU_REFERENCE = "CPU reference runtime"


@dataclass(frozen=True)
class Origin:
    """Where an exported launch comes from.

    Attributes:
        study: Name of the study.
        engine: Name and version of the engine, as shown to people.
        simulated: Whether the figures come from a model of a machine.
        notes: More lines for the reader of the file.
        doubts: Candidate id → what speaks against believing its figures.
        means: Candidate id → its figures per level, and its label, as the study concludes them over all launches that
            count; without them the launch's own are told.
        gpus: GPUs a launch needs.
        corrected: What was taken out of the means, such as a drift of the machine; empty where nothing was.
    """

    study: str
    engine: str
    simulated: bool
    notes: Sequence[str] = ()
    doubts: Mapping[str, str] = field(default_factory=dict)
    means: Mapping[str, Sequence[CandidateLevel]] = field(default_factory=dict)
    gpus: int = 0
    corrected: str = ""

    def notes_on(self, candidate: Candidate) -> list[str]:
        """Return what a reader of a candidate's file has to know beside its figures."""
        doubt = self.doubts.get(candidate.candidate_id)
        return [*self.notes, *([] if doubt is None else [doubt])]

    def with_check(self, script: Path | None) -> Origin:
        """Return the same, every doubt with what clears it up: the check of a script, which may not be written."""
        if script is None:
            way = "with --format sh, too, there is a script that `spectune check` launches again"
        else:
            way = f"to launch it again beside the best baseline: spectune check {shlex.quote(str(script))}"
        return replace(self, doubts={name: f"{doubt}; {way}" for name, doubt in self.doubts.items()})

    @property
    def version(self) -> str | None:
        """SGLang's version, None where the study does not know it."""
        return version_of(self.engine)

    @property
    def on_cpu_reference(self) -> bool:
        """Whether the runtime without a GPU answered."""
        return CPU_REFERENCE.lower() in self.engine.lower()

    @property
    def warning(self) -> str | None:
        """What a reader must know before believing the figures."""
        return warning_of(self.engine, simulated=self.simulated)


def warning_of(engine: str, *, simulated: bool) -> str | None:
    """Say that figures are not those of a real GPU server; None when they are."""
    if simulated:
        return "SIMULATED: these figures come from a model of a machine, no engine ran"
    if CPU_REFERENCE.lower() in engine.lower():
        return "measured on the CPU reference runtime: these figures say nothing about a GPU"
    return None


def header(record: TrialRecord, launch: Launch, origin: Origin) -> list[str]:
    """Return the comment lines, each with its `#`, none with anything a shell or YAML would read as more."""
    return [comment(line) for line in _lines(record, launch, origin)]


def candidate_words(candidate: Candidate) -> str:
    """Return what every exported file says its candidate by."""
    return f"candidate {candidate.candidate_id}"


def comment(text: str) -> str:
    """Return any text as one comment line: line ends become blanks, control characters are escaped."""
    return f"# {one_line(text)}".rstrip()


def _lines(record: TrialRecord, launch: Launch, origin: Origin) -> Iterator[str]:
    means = origin.means.get(record.candidate.candidate_id)
    yield f"{means[0].label if means else record.candidate.label} {MARK}"
    source = f"study {origin.study}, trial {record.trial}, {record.started_at}, {origin.engine}"
    yield f"{source}, {candidate_words(record.candidate)}"
    if origin.warning:
        yield origin.warning
    levels = (
        [_measured(one.level, one.figures, one.percentiles["ttft_p95_ms"]) for one in means]
        if means
        else [_measured(level.level, level, level.ttft_p95_ms) for level in record.levels]
    )
    trials = [str(trial) for trial in means[0].trials] if means else [str(record.trial)]
    over = (
        " in this trial"
        if trials == [str(record.trial)]
        else f" in trial {trials[0]}"
        if len(trials) == 1
        else f", speeds as the geometric mean over trials {', '.join(trials)}"
    )
    how = "simulated" if origin.simulated else "measured"
    corrected = f", corrected for {origin.corrected}" if means and origin.corrected else ""
    yield f"{how}{over}{corrected}, with 95 % intervals where known:" if levels else f"not {how}"
    yield from (f"  {level}" for level in levels)
    for name in (MODEL, DRAFTER):
        model = launch.value(name)
        if model and model.startswith(("/", "./", "../", "~")):
            yield f"needs the folder {model} ({name})"
    yield from origin.notes_on(record.candidate)
    for name in launch.withheld_env:
        yield f"{name} was set in the trial; spectune writes no secrets: export it yourself before you start this"
    for name in launch.withheld_options:
        yield f"--{name} was given in the trial; spectune writes no secrets: add it yourself when you start this"


def _measured(level: str, figures: Figures | LevelMeasurement, ttft_p95_ms: float) -> str:
    """Return what one level says, such as `c1: decode speed 82.3 tok/s [81.9, 82.7], accept length 2.47`."""
    speed, throughput, length = figures.decode_speed, figures.output_throughput, figures.accept_length
    return (
        f"{level}: decode speed {speed.est:.1f} tok/s{_interval(speed, 1)}, "
        f"output throughput {throughput.est:.1f} tok/s{_interval(throughput, 1)}, "
        f"accept length {length.est:.2f}{_interval(length, 2)}, TTFT p95 {ttft_p95_ms:.1f} ms"
    )


def _interval(figure: Estimate, digits: int) -> str:
    known = figure.bounded and figure.lo != figure.hi
    return f" [{figure.lo:.{digits}f}, {figure.hi:.{digits}f}]" if known else ""


def environment_comment(launch: Launch) -> list[str]:
    """Return comment lines naming the variables a configuration file cannot carry."""
    lines = [f"  unset {name}" for name in launch.unset]
    for name, value in launch.env:
        shown = shlex.quote(value) if value.isprintable() else "... (has control characters: see the .sh file)"
        lines.append(f"  export {name}={shown}")
    if not lines:
        return []
    return ["# this file cannot carry the launch's environment; before starting it:", *(f"# {line}" for line in lines)]
