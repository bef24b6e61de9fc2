"""`spectune search --dry-run`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, takewhile
from typing import Any

from spectune.cli.opening import Asked
from spectune.cli.terminal import OUT, busy, print_json
from spectune.counts import count
from spectune.engines.notes import doubtful_counts, notes_on
from spectune.engines.open import lacking, open_engine, to_install
from spectune.engines.preflight import drafter_notes
from spectune.engines.sglang.arguments import to_argv
from spectune.engines.sglang.rules import BY_NAME
from spectune.printable import printable
from spectune.search import Proposer, lend, open_prompts, summary
from spectune.search.guided.enumeration import Census, census, legal_candidates, nothing_to_compare
from spectune.search.planning.prospect import prospect
from spectune.space import Candidate

DONE = 0
SHOWN_COMMANDS = 3
WIDEST = 100  # characters of what a rule says


def preview(asked: Asked, *, as_json: bool) -> int:
    """Print what is legal, what is folded and excluded by which rule, and the first commands; needs no engine.

    Returns:
        The exit code.

    Raises:
        SpectuneError: For everything that is wrong with the file.
    """
    space = asked.space()
    engine = open_engine(space)
    doubts = drafter_notes(space, engine)
    with busy("counting the legal candidates"):
        counted = census(space, engine)
        plain = sum(1 for _ in takewhile(lambda candidate: not candidate.speculative, legal_candidates(space, engine)))
    lent = None if asked.lender is None else lend(asked.lender, space, engine)
    proposer = Proposer(space, engine, sampler=asked.sampler, warm_start=lent)
    first = list(dict.fromkeys(_first(proposer)))
    with busy("weighing what it may cost"):
        expected = prospect([], space, proposer)
    commands = [(c, engine.command(c, host="127.0.0.1", port=30000).shell()) for c in first]
    prompts = summary(space, open_prompts(space))
    added: dict[str, Any] = {}
    for candidate in first:
        added |= engine.added(candidate)
    empty = nothing_to_compare(space, engine)
    notes = [
        *([] if empty is None else [empty]),
        *doubts,
        *notes_on(space, engine),
        *dict.fromkeys(note for c in first for note in engine.notes(c)),
    ]
    missing = [str(problem) for problem in lacking(space, engine)]
    runtime = to_install(space)
    if as_json:
        print_json(
            {
                "space": space.name,
                "engine": engine.title,
                "simulated": engine.simulated,
                "raw": counted.raw,
                "legal": {
                    "speculation": counted.candidates - plain,
                    "no_speculation": plain,
                    "total": counted.candidates,
                },
                "folded": dict(counted.folded),
                "excluded": dict(counted.excluded),
                "excluded_because": counted.reasons,
                "forbidden": dict(counted.forbidden),
                "starts_with": [
                    {"label": space.label(c), "candidate_id": c.candidate_id, "command": text} for c, text in commands
                ],
                "plan": expected.to_json(),
                "warm_start": None if lent is None else lent.to_json(),
                "workload": prompts.to_json(),
                "added": added,
                "notes": notes,
                "missing": missing,
                "installs_first": runtime,
            }
        )
        return DONE
    doubtful = doubtful_counts(space, engine)
    _print_conditions(runtime, missing, doubtful)
    most = space.budget.trials
    budget = "any number of launches" if most is None else count(most, "launch")
    without = "all" if plain == counted.candidates else f"{plain} of them"
    legal = f"{count(counted.candidates, 'legal candidate')} of {count(counted.raw, 'combination')}"
    _say(f"{space.name}: {legal}, {without} without speculation; the budget allows {budget}")
    _say(f"plan: {expected.words}\n  it rests on {expected.rests_on}")
    if lent is not None:
        _say(lent.words)
    _print_census(counted)
    for line in prompts.lines():
        _say(line)
    if added:
        _say(f"added by spectune, so that candidates compare; name one to decide it: {' '.join(to_argv(added))}")
    for candidate, text in commands:
        _say(f"\n# {space.label(candidate)}\n{text}")
    for note in notes:
        if note not in doubtful:
            _say(f"\nnote: {note}")
    return DONE


def _print_conditions(runtime: str | None, missing: Sequence[str], doubtful: Sequence[str]) -> None:
    """Print what has to be there before anything is launched, and what all that follows rests on."""
    if runtime is not None:
        _say(f"not installed yet: the runtime {runtime}; the search installs it first, which takes minutes")
    if missing:
        _say("to launch any of this, this machine lacks:")
    for problem in missing:
        _say(f"  {problem}")
    for note in doubtful:
        _say(f"note: {note}")


def _print_census(counted: Census) -> None:
    if counted.merged:
        _say(f"another's candidate: {count(counted.merged, 'combination')}. Rules that rewrite them, or say what makes "
             "no difference (several may speak of one):")  # fmt: skip
        _print_counts(counted.folded, {rule: BY_NAME[rule].general for rule in counted.folded})
    if counted.excluded:
        _say(f"never launched: {count(counted.excluded.total(), 'combination')}. SGLang refuses or dies of them, or "
             "makes no use of them. The first of each kind:")  # fmt: skip
        _print_counts(counted.excluded, {rule: said.split("; ")[0] for rule, said in counted.reasons.items()})
    if counted.forbidden:
        _say(f"forbidden by the file: {count(counted.forbidden.total(), 'candidate')}:")
        _print_counts(counted.forbidden, {})


def _print_counts(counts: Mapping[str, int], explained: Mapping[str, str]) -> None:
    for rule, times in sorted(counts.items(), key=lambda entry: -entry[1]):
        said = printable(explained.get(rule, ""), WIDEST)
        _say(f"  {times:>10,}  {rule}" + (f": {said}" if said else ""))


def _first(proposer: Proposer) -> Iterator[Candidate]:
    yield proposer.baseline()
    yield from islice(proposer.openings(), SHOWN_COMMANDS - 1)


def _say(text: Any) -> None:
    OUT.print(text, markup=False, soft_wrap=True)
