"""`spectune search --dry-run`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from spectune.bench.prompt_summary import WorkloadSummary
from spectune.cli.exit_codes import ExitCode
from spectune.cli.opening import Asked
from spectune.cli.terminal import OUT, busy, print_json
from spectune.counts import count
from spectune.engines.address import DEFAULT_PORT, LOOPBACK
from spectune.engines.notes import doubtful_counts, notes_on
from spectune.engines.open import lacking, open_engine, to_install
from spectune.engines.preflight import drafter_notes
from spectune.engines.sglang.adapter import SGLangEngine
from spectune.engines.sglang.arguments import to_argv
from spectune.engines.sglang.rules import BY_NAME
from spectune.printable import printable
from spectune.search import Proposer, lend, open_prompts, summary
from spectune.search.guided.enumeration import Census, census, nothing_to_compare
from spectune.search.planning.prospect import Prospect, prospect
from spectune.search.proposing.warm_start import WarmStart
from spectune.space import Candidate, SearchSpace

SHOWN_COMMANDS = 3


@dataclass(frozen=True)
class Preview:
    """What a search would do, as far as its file says.

    Attributes:
        space: The search space.
        engine: What would be launched.
        counted: Its legal candidates, and what became of the other combinations.
        plain: Legal candidates without speculation.
        expected: What the search may cost.
        lent: What an earlier study lends, where one was named.
        commands: The first candidates, and the command of each.
        prompts: What they would be asked.
        added: Arguments of ours, so that candidates compare.
        doubtful: Notes without which the counts are not to be read.
        notes: All notes, those too.
        missing: What this machine lacks to launch any of this.
        runtime: What the search would install first.
    """

    space: SearchSpace
    engine: SGLangEngine
    counted: Census
    plain: int
    expected: Prospect
    lent: WarmStart | None
    commands: Sequence[tuple[Candidate, str]]
    prompts: WorkloadSummary
    added: Mapping[str, Any]
    doubtful: Sequence[str]
    notes: Sequence[str]
    missing: Sequence[str]
    runtime: str | None

    def to_json(self) -> dict[str, Any]:
        """Return the object `--json` prints."""
        return {
            "space": self.space.name,
            "engine": self.engine.title,
            "simulated": self.engine.simulated,
            "raw": self.counted.raw,
            "legal": {
                "speculation": self.counted.candidates - self.plain,
                "no_speculation": self.plain,
                "total": self.counted.candidates,
            },
            "folded": dict(self.counted.folded),
            "excluded": dict(self.counted.excluded),
            "excluded_because": self.counted.reasons,
            "forbidden": dict(self.counted.forbidden),
            "starts_with": [
                {"label": self.space.label(candidate), "candidate_id": candidate.candidate_id, "command": command}
                for candidate, command in self.commands
            ],
            "plan": self.expected.to_json(),
            "warm_start": None if self.lent is None else self.lent.to_json(),
            "workload": self.prompts.to_json(),
            "added": dict(self.added),
            "notes": list(self.notes),
            "missing": list(self.missing),
            "installs_first": self.runtime,
        }


def preview(asked: Asked, *, as_json: bool) -> int:
    """Print what is legal, what is folded and excluded by which rule, and the first commands; returns the exit code.

    Raises:
        SpectuneError: For everything that is wrong with the file.
    """
    seen = look_ahead(asked)
    if as_json:
        print_json(seen.to_json())
    else:
        _print(seen)
    return ExitCode.DONE


def look_ahead(asked: Asked) -> Preview:
    """Return what a search would do; needs no engine.

    Raises:
        SpectuneError: For everything that is wrong with the file.
    """
    space = asked.space()
    engine = open_engine(space)
    doubts = drafter_notes(space, engine)
    with busy("counting the legal candidates"):
        counted = census(space, engine)
        plain = census(space, engine, [branch for branch in space.branches if not branch.speculative]).candidates
    lent = None if asked.lender is None else lend(asked.lender, space, engine)
    proposer = Proposer(space, engine, sampler=asked.sampler, warm_start=lent)
    first = list(dict.fromkeys(_first(proposer)))
    with busy("weighing what it may cost"):
        expected = prospect([], space, proposer)
    empty = nothing_to_compare(space, engine)
    notes = [*([] if empty is None else [empty]), *doubts, *notes_on(space, engine)]
    return Preview(
        space, engine, counted, plain, expected, lent,
        commands=[(one, engine.command(one, host=LOOPBACK, port=DEFAULT_PORT).shell()) for one in first],
        prompts=summary(space, open_prompts(space)),
        added={name: value for one in first for name, value in engine.added(one).items()},
        doubtful=doubtful_counts(space, engine),
        notes=[*notes, *dict.fromkeys(note for one in first for note in engine.notes(one))],
        missing=[str(problem) for problem in lacking(space, engine)],
        runtime=to_install(space),
    )  # fmt: skip


def _first(proposer: Proposer) -> Iterator[Candidate]:
    baseline = proposer.baseline()
    yield baseline
    yield from islice(proposer.openings(baseline), SHOWN_COMMANDS - 1)


def _print(seen: Preview) -> None:
    _print_conditions(seen)
    _print_counted(seen)
    for line in seen.prompts.lines():
        _say(line)
    if seen.added:
        added = " ".join(to_argv(seen.added))
        _say(f"added by spectune, so that candidates compare; name one to decide it: {added}")
    for candidate, command in seen.commands:
        _say(f"\n# {seen.space.label(candidate)}\n{command}")
    for note in seen.notes:
        if note not in seen.doubtful:
            _say(f"\nnote: {note}")


def _print_conditions(seen: Preview) -> None:
    """Print what has to be there before anything is launched, and what all that follows rests on."""
    if seen.runtime is not None:
        _say(f"not installed yet: the runtime {seen.runtime}; the search installs it first, which takes minutes")
    if seen.missing:
        _say("to launch any of this, this machine lacks:")
    for problem in seen.missing:
        _say(f"  {problem}")
    for note in seen.doubtful:
        _say(f"note: {note}")


def _print_counted(seen: Preview) -> None:
    """Print what there is to search, what that may cost, and what became of the other combinations."""
    counted, most = seen.counted, seen.space.budget.trials
    budget = "any number of launches" if most is None else count(most, "launch")
    without = "all" if seen.plain == counted.candidates else f"{seen.plain} of them"
    legal = f"{count(counted.candidates, 'legal candidate')} of {count(counted.raw, 'combination')}"
    _say(f"{seen.space.name}: {legal}, {without} without speculation; the budget allows {budget}")
    _say(f"plan: {seen.expected.words}\n  it rests on {seen.expected.rests_on}")
    if seen.lent is not None:
        _say(seen.lent.words)
    _print_census(counted)


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
        said = printable(explained.get(rule, ""))
        _say(f"  {times:>10,}  {rule}" + (f": {said}" if said else ""))


def _say(text: Any) -> None:
    OUT.print(text, markup=False, soft_wrap=True)
