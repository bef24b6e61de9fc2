"""`spectune compare`: two studies side by side, from their records alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from rich.text import Text

from spectune.analysis.change_words import change_words, changed
from spectune.analysis.comparison import Comparison
from spectune.cli.answering import open_study_records
from spectune.cli.exit_codes import ExitCode
from spectune.cli.terminal import OUT, print_json, print_simulated, row_of
from spectune.errors import SpectuneError
from spectune.machine import Difference
from spectune.printable import one_line
from spectune.search import StudyFolder, weigh
from spectune.search.answer.disturbed import summary_of
from spectune.search.answer.objective_words import measure
from spectune.search.answer.sentence import sentence
from spectune.search.answer.study_changes import OTHER_QUESTIONS, study_changes
from spectune.search.answer.study_comparison import (
    BASELINE,
    BOTH,
    RECOMMENDED,
    LevelChange,
    Pair,
    Side,
    StudyComparison,
    compare_studies,
)

SHOWN_CHANGES = 12
SCHEMA = 1
NAMED_CHANGES = 3
WIDTHS = (6, 22, 22, 15)
_row = partial(row_of, WIDTHS)
ROLES = {
    RECOMMENDED: "what each recommends", BASELINE: "the best of each without speculation", BOTH: "measured in both",
}  # fmt: skip
LEGEND = """\
speeds: decode speed of one request, tok/s; in brackets 95 % intervals over launches, those of one candidate among many
widened for all that are compared; beyond that: what is left of a change without the machine's"""


def compare_two(first: str, second: str, *, as_json: bool) -> int:
    """Print what changed between two studies and what became of their speeds; returns the exit code.

    Raises:
        SpectuneError: One of them cannot be read, has nothing measured, or they are not of a kind.
    """
    (folder, before), (other, after) = _side(first), _side(second)
    if folder.realpath == other.realpath:
        raise SpectuneError(f"{first} and {second} are the same study; compare needs two")
    kinds = [side.space.engine.is_simulated for side in (before, after)]
    if kinds[0] != kinds[1]:
        simulated, real = (before, after) if kinds[0] else (after, before)
        raise SpectuneError(
            f"{simulated.name} is simulated and {real.name} was measured on a real engine; a model's figures are not "
            "compared with measured ones"
        )
    changes = study_changes(before.space, after.space, folder.environment(), other.environment())
    compared = compare_studies(before, after)
    if as_json:
        print_json(_json(before, after, changes, compared, simulated=kinds[0]))
        return ExitCode.DONE
    if kinds[0]:
        print_simulated()
    for line in _lines(before, after, changes, compared):
        OUT.print(line, markup=False, soft_wrap=True)
    return ExitCode.DONE


def _side(study: str) -> tuple[StudyFolder, Side]:
    folder, space, records = open_study_records(study)
    evidence = weigh(records, space)
    if not evidence.records:
        raise SpectuneError(f"the study {folder.name} has no launch that was measured as asked for: nothing to compare")
    return folder, Side(folder.name, space, evidence)


def _lines(before: Side, after: Side, changes: Sequence[Difference], compared: StudyComparison) -> Iterator[str | Text]:
    yield f"{after.name} compared with {before.name}"
    yield Text("what is different on record", style="bold")
    for one in changes[:SHOWN_CHANGES]:
        yield Text(f"  {one_line(str(one))}", style="" if one.matters else "dim")
    if not changes:
        yield "  no setting, version or hardware (what sampler chose the launches is not recorded)"
    if len(changes) > SHOWN_CHANGES:
        yield Text(f"  and {len(changes) - SHOWN_CHANGES} more; --json has all of them", style="dim")
    for note in _notes(before, after, changes, compared):
        yield Text(one_line(f"note: {note}"), style="yellow")
    if compared.pairs and compared.shared_levels:
        columns = _row("level", before.name[-21:], after.name[-21:], "accept length")
        yield Text(f"{columns}  {after.name} is", style="dim")
    for pair in compared.pairs:
        yield Text(one_line(f"{_name(pair, before, after)} ({_mark(pair, before, after)})"), style="bold")
        for level in pair.levels:
            yield from _level_lines(level)
    if compared.pairs and compared.shared_levels:
        yield Text(LEGEND, style="dim")
    for words in _conclusions(before, after, compared):
        yield Text(one_line(words), style="bold")
    yield f"next: {_next(before, after, compared)}"


def _notes(before: Side, after: Side, changes: Sequence[Difference], compared: StudyComparison) -> Iterator[str]:
    if any(one.why == OTHER_QUESTIONS for one in changes):
        yield f"{OTHER_QUESTIONS}: a ratio below holds that too"
    alone = [
        f"{', '.join(names)} (only in {side.name})"
        for side in (before, after)
        if (names := [name for name in side.space.workload.level_names if name not in compared.shared_levels])
    ]
    if alone:
        yield f"not compared, since not both were measured there: {' and '.join(alone)}"
    if not compared.shared_levels:
        yield "no level was measured in both studies, so no speed is compared"
    goals = [measure(side.space) for side in (before, after)]
    if goals[0] != goals[1]:
        each = " and ".join(f"{side.name} by {goal}" for side, goal in zip((before, after), goals, strict=True))
        yield f"the studies have other objectives, each recommends the best by its own: {each}"
    for side in (before, after):
        if side.evidence.verdict.overall.decision == "undecided":
            yield f"{side.name} has no answer yet: {sentence(side.evidence, side.space)}"
        if (told := _beside(side)) is not None:
            yield f"{side.name} was {told}"
    if compared.machine is None:
        yield (
            "no configuration without speculation was measured in both, so a change of the machine or the engine "
            "cannot be told from one of the candidates"
        )
    else:
        label = after.space.label(compared.machine)
        yield f"{label} was measured in both: its change is the machine's or the engine's, and everybody's"


def _beside(side: Side) -> str | None:
    """Return how many launches of a study were made beside other work of the machine; None for none."""
    return summary_of(side.evidence.line.every)


def _conclusions(before: Side, after: Side, compared: StudyComparison) -> Iterator[str]:
    """Yield what became of the machine, of the candidates beyond that, and of the recommendation."""
    if (machine := compared.machine_pair) is not None and machine.levels:
        told = _at_levels([(level.level, level.change) for level in machine.levels])
        steady = not any(changed(level.change) for level in machine.levels)
        lead = "no change of the machine or the engine is shown" if steady else "the machine or the engine changed"
        yield f"{lead} ({after.space.label(machine.after)}: {told})"
    own = [
        f"{_name(pair, before, after)} is {_at_levels(moved)}"
        for pair in compared.pairs
        if (moved := [(one.level, one.own) for one in pair.levels if one.own is not None and changed(one.own)])
    ]
    if own:
        more = f"; and {len(own) - NAMED_CHANGES} more above" if len(own) > NAMED_CHANGES else ""
        yield f"beyond that: {'; '.join(own[:NAMED_CHANGES])}{more}"
    verdicts = [sentence(side.evidence, side.space).partition(":")[0].lower() for side in (before, after)]
    if verdicts[0] != verdicts[1]:
        yield f"their verdicts differ: {before.name} says {verdicts[0]}, {after.name} {verdicts[1]}"
    for pair in compared.pairs:
        if RECOMMENDED in pair.roles:
            was, now = before.space.label(pair.before), after.space.label(pair.after)
            same = pair.before == pair.after
            yield f"both recommend {now}" if same else f"{before.name} recommends {was}, {after.name} {now}"


def _at_levels(changes: Sequence[tuple[str, Comparison]]) -> str:
    return ", ".join(f"{change_words(change)} at {level}" for level, change in changes)


def _next(before: Side, after: Side, compared: StudyComparison) -> str:
    """Return what to do about it: first what makes the studies worth comparing."""
    open_ = [side for side in (before, after) if side.evidence.verdict.overall.decision == "undecided"]
    if open_:
        quiet = ", on a quiet machine" if any(map(_beside, open_)) else ""
        names = " and ".join(side.name for side in open_)
        are = "is" if len(open_) == 1 else "are"
        return (
            f"finish {names} first, which {are} undecided: `spectune report {open_[0].name}` says what would do{quiet}"
        )
    machine = compared.machine_pair
    if machine is None or not machine.levels:
        return "measure one configuration without speculation in both studies, at the same levels, and compare again"
    if any(changed(level.change) for level in machine.levels):
        return "look at what is different on record, and run `spectune doctor` on the machine that is slower"
    if any(level.own is not None and changed(level.own) for pair in compared.pairs for level in pair.levels):
        return "look at what the changed candidates have of their own: drafter, settings, versions of both"
    return "nothing; a smaller change would need more launches to show: search with a larger --trials"


def _level_lines(level: LevelChange) -> Iterator[Text]:
    lengths = "" if level.accept_lengths == (1.0, 1.0) else "{:.2f} → {:.2f}".format(*level.accept_lengths)
    speeds = [figure.cell(1) for figure in (level.before, level.after)]
    line = Text(_row(level.level, *speeds, lengths) + "  ")
    yield line.append(change_words(level.change), style="bold" if changed(level.change) else "")
    if level.own is not None:
        own = Text(_row("", "", "", "") + "  beyond that: ")
        yield own.append(change_words(level.own), style="bold" if changed(level.own) else "dim")


def _name(pair: Pair, before: Side, after: Side) -> str:
    was, now = before.space.label(pair.before), after.space.label(pair.after)
    if pair.before == pair.after:
        return now
    if was == now:  # what tells them apart is fixed in its space, and left out of labels there
        was, now = pair.before.label, pair.after.label
    return f"{was} → {now}"


def _mark(pair: Pair, before: Side, after: Side) -> str:
    """Return why a pair is compared, and in which study no later launch confirmed it."""
    told = [ROLES.get(role, role) for role in pair.roles]
    sides = zip((before, after), (pair.before, pair.after), pair.confirmed, strict=True)
    doubtful = [side.name for side, candidate, confirmed in sides if candidate.speculative and not confirmed]
    return ", ".join([*told, *([f"not confirmed in {' and '.join(doubtful)}"] if doubtful else [])])


def _json(
    before: Side, after: Side, changes: Sequence[Difference], compared: StudyComparison, *, simulated: bool
) -> Mapping[str, Any]:
    return {
        "schema": SCHEMA,
        "simulated": simulated,
        "studies": [before.name, after.name],
        "changes": [one.to_json() for one in changes],
        "notes": list(_notes(before, after, changes, compared)),
        "conclusions": list(_conclusions(before, after, compared)),
        "next": _next(before, after, compared),
        "machine_seen_in": compared.machine and compared.machine.candidate_id,
        "levels": list(compared.shared_levels),
        "pairs": [
            {
                "roles": list(pair.roles),
                "label": _name(pair, before, after),
                "candidate_ids": [pair.before.candidate_id, pair.after.candidate_id],
                "confirmed": list(pair.confirmed),
                "levels": [level.to_json() for level in pair.levels],
            }
            for pair in compared.pairs
        ],
    }
