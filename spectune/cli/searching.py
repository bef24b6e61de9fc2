"""`spectune search`."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from itertools import islice

from spectune.answer import deliver
from spectune.cli.answer_table import print_answer
from spectune.cli.engines import provision
from spectune.cli.live import Lines, LiveTable
from spectune.cli.terminal import OUT, PROGRESS, print_json
from spectune.engines.open import load_checked_space, missing_models, open_engine, queueing
from spectune.engines.protocol import Engine
from spectune.errors import InputProblems, Problem
from spectune.search import Ended, Proposer, StudyFolder, open_prompts, open_study, run_study
from spectune.space import Candidate, SearchSpace

DONE, NO_ANSWER, INTERRUPTED = 0, 1, 130
SHOWN_COMMANDS = 3


def run_search(source: str, *, study: str | None, trials: int | None, torch_index: str | None, as_json: bool) -> int:
    """Run a study to its end, or on from where it was; returns the exit code.

    Raises:
        SpectuneError: For bad input or an environment that cannot run it.
    """
    space = _load(source, trials)
    folder = StudyFolder.named(study or space.name)
    if space.engine.runtime is not None:
        provision(space.engine.runtime, torch_index=torch_index)
    engine = open_engine(space)
    problems = [*engine.missing(), *missing_models(space, engine)]
    if problems:
        raise InputProblems([*problems, Problem(_what_works(source))])
    for warning in queueing(space, engine):
        PROGRESS.print(f"note: {warning}", markup=False)
    lock = folder.lock()
    try:
        open_study(folder, space, engine)
        watcher = LiveTable(space, PROGRESS) if PROGRESS.is_terminal else Lines(space, PROGRESS)
        watcher.resumed(folder.records())
        with watcher:
            ended = _run(folder, space, engine, watcher)
        records = folder.records()
        answer = deliver(folder, space, records, ended.stop if ended else None) if records else None
        if ended is None:
            kept = f"launches kept: {len(records)}" if records else "nothing was finished yet"
            PROGRESS.print(f"interrupted: {kept}; the same command continues the study {folder.name}", markup=False)
            return INTERRUPTED
        assert answer is not None, "a study ends after at least one launch"
        print_answer(answer, as_json=as_json)
        compared = any(row["speedup"] for row in answer.summary["candidates"] if row["class"] == "all")
        return DONE if ended.stop.answered and compared else NO_ANSWER
    finally:
        lock.release()


def preview(source: str, *, trials: int | None, as_json: bool) -> int:
    """Print how many candidates are legal and the first commands; needs neither engine nor GPU; returns the exit code.

    Raises:
        SpectuneError: For everything that is wrong with the file.
    """
    space = _load(source, trials)
    engine = open_engine(space)
    proposer = Proposer(space, engine)
    with PROGRESS.status("counting the legal candidates"):
        legal = {True: 0, False: 0}
        for candidate in proposer.all():
            legal[candidate.speculative] += 1
    first = list(dict.fromkeys(_first(proposer)))
    missing = [*engine.missing(), *missing_models(space, engine)]
    commands = [(c, engine.command(c, host="127.0.0.1", port=30000).shell()) for c in first]
    if as_json:
        shown = [{"label": space.label(c), "candidate_id": c.candidate_id, "command": text} for c, text in commands]
        legal_counts = {"speculation": legal[True], "no_speculation": legal[False], "total": sum(legal.values())}
        lacks = [str(problem) for problem in missing]
        print_json(
            {"space": space.name, "engine": engine.title, "legal": legal_counts, "starts_with": shown, "missing": lacks}
        )
        return DONE
    OUT.print(
        f"{space.name}: legal candidates: {sum(legal.values())}, {legal[False]} of them without speculation; "
        f"the budget allows {space.budget.trials or 'any number of'} launches",
        markup=False, soft_wrap=True,
    )  # fmt: skip
    for candidate, text in commands:
        OUT.print(f"\n# {space.label(candidate)}\n{text}", markup=False, soft_wrap=True)
    for warning in queueing(space, engine):
        OUT.print(f"\nnote: {warning}", markup=False, soft_wrap=True)
    if missing:
        OUT.print("\nTo launch these, this machine lacks:", markup=False)
        for problem in missing:
            OUT.print(f"  {problem}", markup=False, soft_wrap=True)
    return DONE


def _load(source: str, trials: int | None) -> SearchSpace:
    space = load_checked_space(source)
    open_prompts(space)
    if trials is None:
        return space
    return space.with_budget(space.budget.model_copy(update={"trials": trials}))


def _first(proposer: Proposer) -> Iterator[Candidate]:
    yield proposer.baseline()
    yield from islice(proposer.openings(), SHOWN_COMMANDS - 1)


def _what_works(source: str) -> str:
    return (
        f"what works here: `spectune search {source} --dry-run` (checks the file and prints the commands), "
        "`spectune search quickstart` (the real SGLang on the CPU)"
    )


def _run(folder: StudyFolder, space: SearchSpace, engine: Engine, watcher: LiveTable | Lines) -> Ended | None:
    """Run the study; None when Ctrl-C or SIGTERM ended it, the engine being gone by then."""

    async def main() -> Ended:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await run_study(folder, space, engine, watcher)

    try:
        return asyncio.run(main())
    except (KeyboardInterrupt, asyncio.CancelledError):
        return None
