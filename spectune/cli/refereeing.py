"""`spectune search --dry-run --with-engine`."""

from __future__ import annotations

from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from spectune.cli.searching import preview
from spectune.cli.terminal import OUT, PROGRESS, print_json
from spectune.engines.open import load_checked_space, missing_models, open_engine
from spectune.engines.sglang.adapter import SGLangEngine
from spectune.engines.sglang.agreement import Disagreement, Sample, compare, draw
from spectune.engines.sglang.referee import Referee
from spectune.errors import InputProblems, Problem, SpectuneError
from spectune.space import SearchSpace

AGREED, DISAGREED = 0, 1
MOST_LEGAL, MOST_OF_A_RULE = 1000, 100  # at 20 ms each, half a minute
SHOWN = 20


def preview_with_engine(source: str, *, dry_run: bool, trials: int | None, as_json: bool) -> int:
    """Do what `--dry-run` does, then ask the engine; JSON holds the engine's part. Returns the exit code.

    Raises:
        SpectuneError: Without `dry_run`, for bad input, or for an engine that is not there.
    """
    if not dry_run:
        raise SpectuneError("--with-engine goes with --dry-run; a search asks the engine by launching it")
    if not as_json:
        preview(source, trials=trials, as_json=False)
    return referee_space(source, as_json=as_json)


def referee_space(source: str, *, as_json: bool, legal: int = MOST_LEGAL, each_rule: int = MOST_OF_A_RULE) -> int:
    """Ask the installed engine's own resolver about a space's candidates; returns the exit code, 0 when all agree.

    Raises:
        SpectuneError: For bad input, or an engine that is not there.
    """
    space = load_checked_space(source)
    engine = open_engine(space)
    missing = [*engine.missing(), *missing_models(space, engine)]
    if missing:
        raise InputProblems([*missing, Problem(_way_out(space, source))])
    with PROGRESS.status("applying spectune's rules"):
        sample = draw(space, engine, legal=legal, each_rule=each_rule)
    disagreements = _ask(sample, engine)
    if as_json:
        print_json(_as_json(space, engine, sample, disagreements))
    else:
        _print(space, engine, sample, disagreements)
    return DISAGREED if disagreements else AGREED


def _way_out(space: SearchSpace, source: str) -> str:
    install = f"`spectune engine install {space.engine.runtime}` installs it; " if space.engine.runtime else ""
    return f"--with-engine asks the installed engine; {install}`spectune search {source} --dry-run` needs none"


def _ask(sample: Sample, engine: SGLangEngine) -> list[Disagreement]:
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with PROGRESS.status(f"loading {engine.title}"):
        referee = Referee(engine.interpreter).__enter__()
    try:
        with Progress(*columns, console=PROGRESS, transient=True) as bar:
            asked = bar.track(sample.questions(), total=len(sample), description="asking SGLang's resolver")
            found = (compare(question, engine, referee) for question in asked)
            return [disagreement for disagreement in found if disagreement is not None]
    finally:
        referee.close()


def _as_json(
    space: SearchSpace, engine: SGLangEngine, sample: Sample, disagreements: list[Disagreement]
) -> dict[str, Any]:
    rules = {rule: {"excluded": sample.counts[rule], "asked": len(asked)} for rule, asked in sample.excluded.items()}
    return {
        "space": space.name,
        "engine": engine.title,
        "legal": {"candidates": sample.counts[""], "asked": len(sample.legal)},
        "rules": rules,
        "agreed": len(sample) - len(disagreements),
        "disagreements": [_row(space, engine, disagreement) for disagreement in disagreements],
    }


def _row(space: SearchSpace, engine: SGLangEngine, disagreement: Disagreement) -> dict[str, Any]:
    candidate, excluded = disagreement.question.candidate, disagreement.question.excluded
    return {
        "label": space.label(candidate),
        "candidate_id": candidate.candidate_id,
        "rule": excluded.rule if excluded else None,
        "reason": excluded.reason if excluded else None,
        "engine": "ok" if disagreement.verdict.accepted else "rejected",
        "message": disagreement.verdict.message,
        "differences": [{"field": d.field, "asked": d.wanted, "resolved": d.got} for d in disagreement.differences],
        "command": engine.command(candidate, host="127.0.0.1", port=30000).shell(),
    }


def _print(space: SearchSpace, engine: SGLangEngine, sample: Sample, disagreements: list[Disagreement]) -> None:
    def say(line: str) -> None:
        OUT.print(line, markup=False, soft_wrap=True)

    say(f"\n{engine.title} was asked about {len(sample)} launches of {space.name}:")
    say(f"  {len(sample.legal)} of {sample.counts['']} legal candidates")
    for rule, asked in sorted(sample.excluded.items()):
        say(f"  {len(asked)} of {sample.counts[rule]} combinations excluded by {rule}")
    for disagreement in disagreements[:SHOWN]:
        say(f"\n# {space.label(disagreement.question.candidate)}\n{_sentence(disagreement)}")
    if len(disagreements) > SHOWN:
        say(f"\nand {len(disagreements) - SHOWN} more; --json lists all of them")
    say(f"\nthey agree on {len(sample) - len(disagreements)}, and disagree on {len(disagreements)}")


def _sentence(disagreement: Disagreement) -> str:
    excluded = disagreement.question.excluded
    if excluded is not None:
        return f"spectune excludes it ({excluded.rule}: {excluded.reason}), SGLang's resolver accepts it"
    if not disagreement.verdict.accepted:
        return f"spectune would launch it, SGLang refuses: {disagreement.verdict.message}"
    changed = (f"{d.field} {d.wanted} becomes {d.got}" for d in disagreement.differences)
    return "SGLang would resolve it to something else: " + ", ".join(changed)
