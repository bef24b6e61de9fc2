"""`spectune check`: an exported launch file against its figures on record, by launching it again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.text import Text

from spectune.analysis.estimate import Estimate
from spectune.cli.engines import provision_for
from spectune.cli.exit_codes import ExitCode
from spectune.cli.interruptible import run_interruptible
from spectune.cli.live import Lines, LiveTable
from spectune.cli.terminal import OUT, PROGRESS, print_json, print_simulated, row_of
from spectune.engines.address import DEFAULT_PORT, LOOPBACK
from spectune.engines.open import missing_models, open_engine
from spectune.engines.protocol import Engine
from spectune.errors import InputProblems, SpectuneError
from spectune.export import Launch
from spectune.export.exported_script import ExportedScript, launch_changes, read_exported
from spectune.printable import one_line
from spectune.search import Status, StudyFolder, TrialRecord, weigh
from spectune.search.answer.objective_words import measure
from spectune.search.checking import (
    CHECKS,
    LevelHeld,
    Question,
    check_launch,
    judge_check,
    with_own_profile,
    with_prompts,
)
from spectune.search.evidence.recorded import best_baseline
from spectune.space import SearchSpace, load_space

SCHEMA = 1
WIDTHS = (20, 22, 22)
_row = partial(row_of, WIDTHS)
LEGEND = "decode speed of one request, tok/s, with 95 % intervals over launches:"


def check_file(path: Path, *, space_file: str | None, as_json: bool) -> int:
    """Launch an exported file and the best baseline in turns and say whether it still holds; returns the exit code.

    Raises:
        SpectuneError: The file is not one of spectune's or was edited, its study is not there, or nothing can be
            launched here.
    """
    script = read_exported(path)
    folder = script.folder()
    space = with_prompts(folder, folder.space(), None if space_file is None else load_space(space_file))
    question = _question(script, folder, space)
    provision_for(space.engine)
    engine = open_engine(with_own_profile(folder, space))
    problems = [*engine.missing(), *missing_models(space, engine)]
    if problems:
        raise InputProblems(problems)
    lock = folder.lock()
    try:
        watcher = LiveTable(space, PROGRESS) if PROGRESS.is_terminal else Lines(space, PROGRESS)
        with watcher:
            made = run_interruptible(check_launch(question, engine, watcher))
    finally:
        lock.release()
    if made is None:
        PROGRESS.print("interrupted: nothing of this check counts, nothing is left running", markup=False)
        return ExitCode.INTERRUPTED
    failed = next((record for record in made if record.status is not Status.OK), None)
    levels = [] if failed is not None else judge_check(question, made)
    outcome, words = _outcome(question, failed, levels)
    notes = list(_notes(question, engine, made))
    if as_json:
        print_json(_json(question, made, levels, notes, outcome=outcome, words=words))
    else:
        _print(script, question, levels, notes, outcome=outcome, words=words)
    return ExitCode.DONE if outcome == "holds" else ExitCode.NO


def _question(script: ExportedScript, folder: StudyFolder, space: SearchSpace) -> Question:
    records = folder.records()
    record = next((record for record in records if record.trial == script.trial), None)
    if record is None:
        raise SpectuneError(f"{script.path} comes from launch {script.trial}, which {folder.name} does not have")
    script.require_unedited(record)
    if record.status is not Status.OK:
        raise SpectuneError(f"launch {record.trial} of {folder.name} is {record.status}: it has no figures to check")
    evidence = weigh(records, space)
    baseline = best_baseline(evidence)
    if baseline is None:
        raise SpectuneError(
            f"the study {folder.name} has no finished baseline, and without one a change of the machine cannot be told "
            "from one of the launch; let the search finish one"
        )
    return Question(folder, space, records, evidence, record, baseline)


def _outcome(question: Question, failed: TrialRecord | None, levels: Sequence[LevelHeld]) -> tuple[str, str]:
    if failed is None:
        return levels[0].held.outcome, levels[0].held.words
    who = "the launch" if failed.candidate == question.record.candidate else "the baseline"
    if failed.failure is not None:
        return "failed", f"does not hold: {who} failed ({failed.failure.failure_class}): {failed.failure.message}"
    found = "; ".join(f"{one.field} is {one.got}, not {one.wanted}" for one in failed.suspect)
    return "suspect", f"does not hold: {who} does not run as asked for: {found}"


def _notes(question: Question, engine: Engine, made: Sequence[TrialRecord]) -> Iterator[str]:
    now = Launch.of(engine.command(question.record.candidate, host=LOOPBACK, port=DEFAULT_PORT))
    for change in launch_changes(Launch.of(question.record.command), now):
        yield f"launched otherwise than recorded: {change}"
    if question.record not in question.evidence.line.every:
        yield "the recorded launch does not count in its study any more"
    changes = {str(change): change.matters for record in made for change in record.environment_changes}
    for change, matters in changes.items():
        if matters:
            yield f"the machine is not as it was when the study began: {change}"
    for record in made:
        yield from (f"launch {record.trial}: {note}" for note in record.notes)


def _print(
    script: ExportedScript,
    question: Question,
    levels: Sequence[LevelHeld],
    notes: Sequence[str],
    *,
    outcome: str,
    words: str,
) -> None:
    if question.space.engine.is_simulated:
        print_simulated()
    label = question.space.label(question.record.candidate)
    what = one_line(f"{script.path}: {label}, launch {script.trial} of {script.study}")
    OUT.print(what, markup=False, soft_wrap=True)
    if levels:
        OUT.print(one_line(_against(question)), markup=False, soft_wrap=True)
        OUT.print(LEGEND, style="dim")
        OUT.print(Text(_row("", "in the study", "now"), style="dim"))
    for level in levels[1:]:
        for line in _level_lines(level):
            OUT.print(line, soft_wrap=True)
        OUT.print(f"  at {level.level} alone, {level.held.words}", markup=False, soft_wrap=True, style="dim")
    for note in notes:
        OUT.print(Text(one_line(f"note: {note}"), style="yellow"), soft_wrap=True)
    by = f"by {measure(question.space)}: " if levels else ""
    OUT.print(Text(one_line(by + words), style="bold"), soft_wrap=True)
    OUT.print(one_line(f"next: {_next(question, outcome)}"), markup=False, soft_wrap=True)


def _against(question: Question) -> str:
    """Return what was launched now and what it is compared with."""
    if question.record.candidate == question.baseline:
        return "it is the study's best without speculation itself, launched twice now"
    best = question.space.label(question.baseline)
    return f"baseline: {best}, the study's best without speculation; launched now: both in turns, twice each"


def _next(question: Question, outcome: str) -> str:
    """Return what to do about an outcome."""
    study, trial = question.folder.name, question.recorded(question.baseline)[-1].trial
    advice = {
        "holds": "nothing has to be done; what the study says still holds here",
        "machine_changed": "run `spectune doctor`; if the machine stays as it is, search again on it: "
        f"spectune search SPACE --study NEW --warm-start {study}",
        "below_break_even": f"run the baseline: spectune export {study} --pick {trial}",
        "launch_changed": "the baseline is as fast as it was, so look at what is this launch's own: its drafter, its "
        "settings, the notes above",
    }
    return advice.get(outcome, f"read its server.log below {question.folder.root / CHECKS}")


def _level_lines(level: LevelHeld) -> Iterator[Text]:
    yield _line(f"{level.level} launch", level.launch)
    if level.baseline is not None:
        yield _line(f"{level.level} baseline", level.baseline)
    speedup = level.held.speedup
    if speedup is not None and level.held.speculates:
        then, now = level.accept_lengths
        needed = f"{speedup.break_even:.2f} needed"
        yield Text(_row(f"{level.level} accept length", f"{then:.2f}", f"{now:.2f}, {needed}"))


def _line(name: str, figures: tuple[Estimate, Estimate]) -> Text:
    return Text(_row(name, *(figure.cell(1) for figure in figures)))


def _json(
    question: Question,
    made: Sequence[TrialRecord],
    levels: Sequence[LevelHeld],
    notes: Sequence[str],
    *,
    outcome: str,
    words: str,
) -> Mapping[str, Any]:
    return {
        "schema": SCHEMA,
        "study": question.folder.name,
        "trial": question.record.trial,
        "simulated": question.space.engine.is_simulated,
        "judged_by": measure(question.space),
        "outcome": outcome,
        "words": words,
        "next": _next(question, outcome),
        "notes": list(notes),
        "launches": [
            {"candidate_id": r.candidate.candidate_id, "status": r.status.value, "seconds": r.seconds.total}
            for r in made
        ],
        "levels": [
            {
                "level": one.level,
                "launch": [e.to_json() for e in one.launch],
                "baseline": one.baseline and [e.to_json() for e in one.baseline],
                "accept_length": list(one.accept_lengths),
                "break_even": one.held.speedup and one.held.speedup.break_even,
                "launch_change": one.held.launch.judged.to_json(),
                "baseline_change": one.held.baseline and one.held.baseline.judged.to_json(),
                "speedup": one.held.speedup and one.held.speedup.judged.to_json(),
                "words": one.held.words,
            }
            for one in levels
        ],
    }
