"""`spectune search --dry-run --with-engine`."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from spectune.cli.exit_codes import ExitCode
from spectune.cli.opening import Asked
from spectune.cli.previewing import preview
from spectune.cli.terminal import OUT, PROGRESS, busy, print_json
from spectune.counts import count
from spectune.engines import cpu_reference
from spectune.engines.address import DEFAULT_PORT, LOOPBACK
from spectune.engines.open import missing_models, open_engine
from spectune.engines.sglang.adapter import SGLangEngine
from spectune.engines.sglang.agreement import Outcome, Sample, ask, draw
from spectune.engines.sglang.referee import Referee
from spectune.errors import InputProblems, Problem, SpectuneError
from spectune.space import SearchSpace

MOST_LEGAL, MOST_OF_A_RULE = 1000, 100  # at 20 ms each, half a minute
SHOWN = 20
CPU_REFERENCE = "cpu-reference"


def preview_with_engine(asked: Asked, *, dry_run: bool, as_json: bool) -> int:
    """Do what `--dry-run` does, then ask the engine; JSON holds the engine's part. Returns the exit code.

    Raises:
        SpectuneError: Without `dry_run`, for bad input, or for an engine that is not there.
    """
    if not dry_run:
        raise SpectuneError("--with-engine goes with --dry-run; a search asks the engine by launching it")
    if not as_json:
        preview(asked, as_json=False)
    return referee_space(asked, as_json=as_json)


def referee_space(asked: Asked, *, as_json: bool, legal: int = MOST_LEGAL, each_rule: int = MOST_OF_A_RULE) -> int:
    """Ask the installed engine's own resolver about a space's candidates; returns the exit code, 0 when all agree.

    Args:
        asked: What would be searched.
        as_json: Whether to print JSON.
        legal: How many legal candidates to ask about at most; a test asks fewer.
        each_rule: And how many of those that each rule excludes or folds.

    Raises:
        SpectuneError: For bad input, or an engine that is not there.
    """
    space = asked.space()
    if space.engine.is_simulated:
        raise SpectuneError("--with-engine asks an installed SGLang; a simulated engine has none to ask")
    engine = open_engine(space)
    missing = [*engine.missing(), *missing_models(space, engine)]
    if missing:
        raise InputProblems([*missing, Problem(_way_out(space, asked.source))])
    with busy("applying spectune's rules"):
        sample = draw(space, engine, legal=legal, each_rule=each_rule)
    outcomes = _ask(sample, engine)
    if as_json:
        print_json(_as_json(space, engine, sample, outcomes))
    else:
        _print(space, engine, sample, outcomes)
    return ExitCode.DONE if all(outcome.agreed for outcome in outcomes) else ExitCode.NO


def _way_out(space: SearchSpace, source: str) -> str:
    install = f"`spectune engine install {space.engine.runtime}` installs it; " if space.engine.runtime else ""
    if _is_runtime(space.engine.python):
        install = f"that python is the CPU runtime's: write `runtime: {CPU_REFERENCE}` instead of python; "
    return (
        "--with-engine asks the installed engine on the machine that has its GPUs, which it probes; "
        f"{install}`spectune search {source} --dry-run` needs neither"
    )


def _is_runtime(python: str | None) -> bool:
    """Whether an interpreter is the one of the runtime that spectune installs itself."""
    runtime = cpu_reference.find(CPU_REFERENCE)
    return python is not None and runtime is not None and Path(python).expanduser() == runtime.python


def _ask(sample: Sample, engine: SGLangEngine) -> list[Outcome]:
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with busy(f"loading {engine.title}"):
        referee = Referee(engine.interpreter).__enter__()
    try:
        with Progress(*columns, console=PROGRESS, transient=True) as bar:
            asked = bar.track(sample.questions(), total=len(sample), description="asking SGLang's resolver")
            return [ask(question, engine, referee) for question in asked]
    finally:
        referee.close()


def _as_json(space: SearchSpace, engine: SGLangEngine, sample: Sample, outcomes: list[Outcome]) -> dict[str, Any]:
    rules = {rule: {"excluded": sample.counts[rule], "asked": len(asked)} for rule, asked in sample.excluded.items()}
    disagreements = [outcome for outcome in outcomes if not outcome.agreed]
    return {
        "space": space.name,
        "engine": engine.title,
        "legal": {"candidates": sample.counts[""], "asked": len(sample.legal)},
        "rules": rules,
        "agreed": len(outcomes) - len(disagreements),
        "beyond_the_resolver": sum(outcome.beyond for outcome in outcomes),
        "disagreements": [_row(space, engine, outcome) for outcome in disagreements],
    }


def _row(space: SearchSpace, engine: SGLangEngine, outcome: Outcome) -> dict[str, Any]:
    candidate, excluded = outcome.question.candidate, outcome.question.excluded
    return {
        "label": space.label(candidate),
        "candidate_id": candidate.candidate_id,
        "rule": excluded.rule if excluded else None,
        "reason": excluded.reason if excluded else None,
        "engine": "ok" if outcome.verdict.accepted else "rejected",
        "message": outcome.verdict.message,
        "differences": [{"field": d.field, "asked": d.wanted, "resolved": d.got} for d in outcome.differences],
        "command": engine.command(candidate, host=LOOPBACK, port=DEFAULT_PORT).shell(),
    }


def _print(space: SearchSpace, engine: SGLangEngine, sample: Sample, outcomes: list[Outcome]) -> None:
    def say(line: str) -> None:
        OUT.print(line, markup=False, soft_wrap=True)

    say(f"\n{engine.title} was asked about {count(len(outcomes), 'launch')} of {space.name}:")
    say(f"  {len(sample.legal)} of {sample.counts['']} legal candidates")
    for rule, asked in sorted(sample.excluded.items()):
        say(f"  {len(asked)} of {sample.counts[rule]} combinations excluded by {rule}")
    alike: dict[str, list[str]] = {}
    for outcome in outcomes:
        if not outcome.agreed:
            alike.setdefault(_sentence(outcome), []).append(space.label(outcome.question.candidate))
    for sentence, labels in islice(alike.items(), SHOWN):
        say(f"\n{len(labels)} ×, first {labels[0]}: {sentence}")
    if len(alike) > SHOWN:
        say(f"\nand {len(alike) - SHOWN} other kinds; --json lists everything")
    agreed = sum(outcome.agreed for outcome in outcomes)
    beyond = sum(outcome.beyond for outcome in outcomes)
    silent = f" ({beyond} of them die later than its resolver looks)" if beyond else ""
    say(f"\nthey agree on {agreed}{silent}, and disagree on {len(outcomes) - agreed}")


def _sentence(outcome: Outcome) -> str:
    excluded = outcome.question.excluded
    if excluded is not None:
        return f"spectune excludes it ({excluded.rule}: {excluded.reason}), SGLang's resolver accepts it"
    if not outcome.verdict.accepted:
        return f"spectune would launch it, SGLang refuses: {outcome.verdict.message}"
    changed = (f"{d.field} {d.wanted} becomes {d.got}" for d in outcome.differences)
    return "SGLang would resolve it to something else: " + ", ".join(changed)
