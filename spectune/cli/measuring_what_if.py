"""`spectune breakeven STUDY --measure`: the what-if tables against launches that are made to accept so many tokens."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from spectune.analysis.why.forced import ForcedRuns
from spectune.cli.engines import provision_for
from spectune.cli.exit_codes import ExitCode
from spectune.cli.interruptible import run_interruptible
from spectune.cli.live import Lines
from spectune.cli.terminal import OUT, PROGRESS, print_json, print_line, print_simulated
from spectune.engines.open import open_engine
from spectune.errors import InputProblems, SpectuneError
from spectune.search import StudyFolder, TrialRecord
from spectune.search.checking import with_own_profile, with_prompts
from spectune.search.forced_runs import WHAT_IF, run_forced
from spectune.search.why import break_even_of
from spectune.space import Candidate, SearchSpace, load_space


def measure_what_if(study: str, *, candidate_id: str | None, space_file: str | None, as_json: bool) -> int:
    """Launch a candidate with forced accept lengths and print how the prediction does; returns the exit code.

    Args:
        study: Its name or folder.
        candidate_id: The candidate; the one the break-even is about unless given.
        space_file: Beside which the prompts lie, where they are files.
        as_json: Whether to print JSON.

    Raises:
        SpectuneError: There is no such candidate, its prompts are not found, or a launch failed.
    """
    folder = StudyFolder.named(study).require()
    records = folder.records()
    space = with_prompts(folder, folder.space(), None if space_file is None else load_space(space_file))
    space = with_own_profile(folder, space)
    candidate = _candidate(records, candidate_id or break_even_of(records, space).candidate_id, folder)
    provision_for(space.engine)
    problems = open_engine(space).missing()
    if problems:
        raise InputProblems(problems)
    lock = folder.lock()
    try:
        found = _run(folder, space, records, candidate)
    finally:
        lock.release()
    if found is None:
        PROGRESS.print("interrupted: no comparison was written", markup=False)
        return ExitCode.INTERRUPTED
    _show(folder, space, candidate, found, as_json=as_json)
    return ExitCode.DONE


def _candidate(records: Sequence[TrialRecord], candidate_id: str | None, folder: StudyFolder) -> Candidate:
    found = next((r.candidate for r in records if r.candidate.candidate_id == candidate_id), None)
    if found is None:
        raise SpectuneError(f"the study {folder.name} has no candidate with speculation to measure")
    return found


def _run(
    folder: StudyFolder, space: SearchSpace, records: Sequence[TrialRecord], candidate: Candidate
) -> ForcedRuns | None:
    """Make the launches; None when a signal ended them, the engine being gone by then."""
    with Lines(space, PROGRESS) as lines:
        return run_interruptible(run_forced(folder, space, records, candidate, lines))


def _show(folder: StudyFolder, space: SearchSpace, candidate: Candidate, found: ForcedRuns, *, as_json: bool) -> None:
    simulated = space.engine.is_simulated
    if as_json:
        print_json(
            {
                "study": folder.name, "simulated": simulated, "candidate_id": candidate.candidate_id,
                **found.to_json(),
            }
        )  # fmt: skip
        return
    if simulated:
        print_simulated()
    OUT.print(Text(f"{space.label(candidate)}, made to accept so many tokens a verify", style="bold"))
    OUT.print(
        f"{'level':>6}{'forced':>8}{'accepted':>10}{'predicted':>11}{'measured tok/s':>24}{'off':>8}", style="dim"
    )
    for run in found.levels:
        measured = run.measured_tok_s.cell(1)
        mark = "" if run.obeyed else "  the engine did not accept as it was told"
        OUT.print(
            f"{run.level:>6}{run.forced:>8g}{run.accept_length.est:>10.2f}{run.predicted_tok_s:>11.1f}{measured:>24}"
            f"{run.off:>+8.1%}{mark}",
            markup=False,
        )
    OUT.print(
        "predicted: forced accept length / cycle of the candidate as it is, launched before and after, while no "
        f"request is prefilled; worst {found.worst:.1%}; the two launches as it is were up to {found.apart:.1%} apart",
        soft_wrap=True,
    )
    if not found.steady:
        OUT.print("the machine did not hold still meanwhile: this judges no prediction; measure again when it is quiet")
    where = folder.root / WHAT_IF
    print_line(f"kept under {where}; these launches are never scored or exported")
