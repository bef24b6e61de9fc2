"""`spectune search`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from spectune.answer import deliver
from spectune.cli.answer_table import print_answer
from spectune.cli.engines import provision_for
from spectune.cli.exit_codes import ExitCode
from spectune.cli.interruptible import run_interruptible
from spectune.cli.live import Lines, LiveTable
from spectune.cli.opening import Asked
from spectune.cli.terminal import PROGRESS
from spectune.counts import count
from spectune.engines.notes import notes_on, simulation_notes
from spectune.engines.open import lacking, open_engine
from spectune.engines.preflight import preflight_of
from spectune.engines.sglang.adapter import SGLangEngine
from spectune.errors import InputProblems, Problem
from spectune.search import (
    Ended,
    StudyFolder,
    Watcher,
    open_study,
    refuse_another,
    refuse_lender,
    refuse_shared,
    run_study,
    shared_study,
)
from spectune.search.guided.enumeration import nothing_to_compare
from spectune.space import SearchSpace, in_order


def run_search(asked: Asked, *, study: str | None, torch_index: str | None, as_json: bool) -> int:
    """Run a study to its end, or on from where it was; returns the exit code.

    Raises:
        SpectuneError: For bad input or an environment that cannot run it.
    """
    space = asked.space(launching=True)
    folder = StudyFolder.named(space.name if study is None else study)
    refuse_shared(folder)
    lender = asked.lender
    refuse_another(folder, space)  # before minutes are spent on an installation
    if lender is not None:
        refuse_lender(lender, space)
    engine = ready_engine(space, torch_index=torch_index, hint=what_works(asked.source), has_begun=folder.exists())
    lock = folder.lock()
    try:
        for line in open_study(folder, space, engine, lender):
            PROGRESS.print(line, markup=False)
        return carry_out(
            folder, space, lambda watcher: run_study(folder, space, engine, watcher, sampler=asked.sampler),
            as_json=as_json,
        )  # fmt: skip
    finally:
        lock.release()


def ready_engine(
    space: SearchSpace, *, torch_index: str | None, hint: str = "", has_begun: bool = False
) -> SGLangEngine:
    """Return the engine of a space once this machine can launch it, a runtime of ours installed where it is wanted.

    Raises:
        SpectuneError: There is nothing to compare, or the engine or a model is not here.
    """
    provision_for(space.engine, torch_index=torch_index)
    engine = open_engine(space)
    check_engine(space, engine, hint=hint, has_begun=has_begun)
    return engine


def check_engine(space: SearchSpace, engine: SGLangEngine, *, hint: str = "", has_begun: bool = False) -> None:
    """Say what is doubtful of a space's launches here; of a study that has begun, only that it is simulated.

    Raises:
        SpectuneError: There is nothing to compare, or the engine or a model is not here.
    """
    drafters = preflight_of(space, engine)
    lacks = lacking(space, engine)
    problems = [*drafters.problems, *lacks]
    empty = None if drafters.problems else nothing_to_compare(space, engine)  # where no drafter works, that is why
    if empty is not None:
        problems.insert(0, Problem(empty))
    if problems:
        helps = hint and lacks and not engine.simulated
        raise InputProblems([*in_order(problems), *([Problem(hint)] if helps else [])])
    notes = [*drafters.notes, *notes_on(space, engine)]
    for warning in simulation_notes(space, engine)[:1] if has_begun else notes:
        PROGRESS.print(f"note: {warning}", markup=False)


def carry_out(
    folder: StudyFolder,
    space: SearchSpace,
    running: Callable[[Watcher], Coroutine[Any, Any, Ended]],
    *,
    as_json: bool,
) -> int:
    """Run a study that has been opened until it ends, and print its answer; returns the exit code."""
    watcher = LiveTable(space, PROGRESS) if PROGRESS.is_terminal else Lines(space, PROGRESS)
    before = len(folder.records())
    watcher.resumed(folder.records())
    with watcher:
        ended = run_interruptible(running(watcher))
    records = folder.records()
    answer = deliver(folder, space, records, ended.stop if ended else None) if records else None
    if ended is None:
        kept = f"launches kept: {len(records)}" if records else "nothing was finished yet"
        name = shared_study(folder.root) or folder.name
        PROGRESS.print(f"interrupted: {kept}; the same command continues the study {name}", markup=False)
        return ExitCode.INTERRUPTED
    if len(records) == before:
        PROGRESS.print(nothing_more(before, space.budget.trials, ended.stop.reason), markup=False, soft_wrap=True)
    assert answer is not None, "a study ends after at least one launch"
    print_answer(answer, as_json=as_json)
    compared = any(one.figures.speedup is not None for one in answer.summary.candidates)
    answered = ended.stop.answered and compared and answer.summary.no_answer is None
    return ExitCode.DONE if answered else ExitCode.NO


def nothing_more(made: int, allowed: int | None, reason: str) -> str:
    """Say why a study that was gone on with launched nothing: what ended it may be something else than its budget."""
    if allowed is None or allowed <= made:
        return f"nothing more was launched: {reason}"
    unused = f"{made} of the {count(allowed, 'launch')} that the budget allows were made"
    return f"nothing more was launched: {unused}, and the search needs no more: {reason}"


def what_works(source: str) -> str:
    """Return what can be run of a space whose engine or models this machine lacks."""
    return (
        f"what works here: `spectune search {source} --dry-run` (checks the file and prints the commands), "
        f"`spectune search {source} --engine simulated --virtual` (a model of a machine answers), "
        "`spectune search quickstart` (the real SGLang on the CPU)"
    )
