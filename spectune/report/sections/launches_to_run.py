"""The commands a reader takes away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spectune.errors import SpectuneError
from spectune.export import Launch, command_text
from spectune.report.material import Material
from spectune.report.sections.section import Section
from spectune.report.wording import estimate, interval
from spectune.search.storage.records import TrialRecord


@dataclass(frozen=True)
class Command:
    """A launch to paste.

    Attributes:
        label: Its configuration.
        trial: The launch it was taken from.
        figures: What it reached in the objectives.
        over: The launches these are means over.
        doubt: Why these may be luck; empty where a relaunch bears them out.
        text: The command; empty where it cannot be written as one.
        withheld: What was left out of it because it holds a secret.
        problem: Why it cannot be written as a command.
    """

    label: str
    trial: int
    figures: str
    over: str
    doubt: str
    text: str = ""
    withheld: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class Commands:
    """The recommended launch first; None where there is none, with the reason."""

    recommended: Command | None
    others: tuple[Command, ...]
    no_answer: str | None

    @property
    def unconfirmed(self) -> bool:
        """Whether the figures of any of them were not borne out by a later launch."""
        return any(one.doubt for one in (self.recommended, *self.others) if one is not None)


def launches_to_run(material: Material) -> Section:
    """Return the recommended command, and those of other launches that nothing beats in every objective."""
    told = material.told
    by_trial = {record.trial: record for record in material.records}
    recommended = None if told.recommended is None else _command(material, by_trial[told.recommended.trial])
    optimal = [by_trial[trial] for trial in told.pareto]
    others = [_command(material, one) for one in optimal if one.candidate.candidate_id != material.recommended]
    return Section("launches-to-run", "Recommended launch", Commands(recommended, tuple(others), told.no_answer))


def _command(material: Material, record: TrialRecord) -> Command:
    trial, candidate = record.trial, record.candidate.candidate_id
    label, rows = material.labels[candidate], [row for row in material.rows if row.candidate_id == candidate]
    figures, doubt = "; ".join(_figures(material, candidate)), material.doubt(candidate)
    over = _over(rows[0].trials if rows else [trial])
    try:
        kept = Launch.of(record.command)
        text = command_text(record.command)
    except SpectuneError as error:
        return Command(label, trial, figures, over, doubt, problem=material.shown(str(error)))
    withheld = (*kept.withheld_env, *(f"--{name}" for name in kept.withheld_options))
    return Command(label, trial, figures, over, doubt, text, withheld)


def _over(trials: Sequence[int]) -> str:
    return f"trial {trials[0]}" if len(trials) == 1 else f"mean over trials {', '.join(map(str, trials))}"


def _figures(material: Material, candidate: str) -> Iterator[str]:
    for objective in material.space.objectives:
        if (row := material.row(candidate, objective.level)) is not None:
            figure = row.figure(objective.metric)
            spread = f" ({interval(figure)})" if interval(figure) else ""
            yield f"{objective.metric.replace('_', ' ')} {estimate(figure)}{spread} at {objective.level}"
