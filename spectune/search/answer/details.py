"""What stands below a study's verdict: a line for each thing to know beside the sentence, and how it came about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spectune.analysis.comparison import Comparison
from spectune.analysis.preference import simpler_by
from spectune.analysis.verdict import TOO_SHORT
from spectune.counts import count
from spectune.search.answer.commands import export_command
from spectune.search.answer.objective_words import as_measured, goal
from spectune.search.answer.picks import Need, picked
from spectune.search.answer.sentence import is_confirmed, label, paying, seen_in_search, who
from spectune.search.answer.steadiness import steadiness
from spectune.search.evidence.outcome import Evidence
from spectune.search.evidence.speeds import by_candidate, simplicity
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Role
from spectune.space import SearchSpace

NAMED_TIES = 3
"""In a line; all are in `summary.json`."""


def details(records: Sequence[TrialRecord], evidence: Evidence, space: SearchSpace, study: str) -> list[str]:
    """Return what is to be known beside the verdict's sentence, the most important first.

    Args:
        records: All launches of the study.
        evidence: What they say.
        space: Their search space.
        study: Its name, for commands.
    """
    best = evidence.verdict.overall.best
    told = [*_choice(evidence, space), *(() if best is not None else spoiled(records))]
    if best is not None:
        told += [*_in_full(best, evidence, space), *_others(best, evidence, space), _confirmed(best, evidence, space)]
    told += [*_where_it_pays(evidence, space, study), *_not_the_fastest(evidence, space), *_ties(evidence, space)]
    told += [*_simpler(evidence, space)]
    return told


def spoiled(records: Sequence[TrialRecord]) -> Iterator[str]:
    """Yield why launches were not measured as asked for: each kind of failure once, with the words of its first."""
    kinds: dict[str, list[str]] = {}
    for record in records:
        if record.failure is not None:
            told = record.failure.message
            kinds.setdefault(f"failed ({record.failure.failure_class})", []).append(told)
        elif record.suspect:
            first = record.suspect[0]
            told = f"{first.field} is {first.got}, not {first.wanted}"
            kinds.setdefault("did not run as asked for", []).append(told)
    for kind, messages in kinds.items():
        yield f"{count(len(messages), 'launch')} {kind}: {messages[0]}"


def _choice(evidence: Evidence, space: SearchSpace) -> Iterator[str]:
    """Yield what is recommended where nothing could be compared with it."""
    if evidence.recommended is not None and evidence.verdict.overall.best is None and evidence.unkept is not None:
        yield f"of those that keep what the space asks for the choice is {space.label(evidence.recommended)}"


def _in_full(best: Comparison, evidence: Evidence, space: SearchSpace) -> Iterator[str]:
    """Yield what the sentence leaves out: all settings of both sides of the comparison, the drafter all labels lack."""
    mine, theirs = label(best.candidate_id, evidence, space), label(best.baseline_id, evidence, space)
    if mine != space.drafting(who(best.candidate_id, evidence)):
        yield f"in full: {mine}; the best launch without: {theirs}"
    if space.only_drafter is not None:
        yield f"the drafter is {space.only_drafter}"


def _others(best: Comparison, evidence: Evidence, space: SearchSpace) -> Iterator[str]:
    """Yield of several objectives what the sentence lacks: the ratio of each, or of all together where it has each."""
    if len(space.objectives) == 1:
        return
    if evidence.verdict.overall.decision == "speculation":
        spread = f" ({best.judged.lo:.2f}–{best.judged.hi:.2f})" if best.long_enough else ""
        yield f"all together: {best.judged.est:.2f} × by the geometric mean{spread}"
        return
    parts = [c for part in evidence.verdict.parts for c in part.comparisons if c.candidate_id == best.candidate_id]
    yield f"each alone: {' and '.join(f'{as_measured(c).est:.2f} × the {goal(c.level)}' for c in parts)}"


def _confirmed(best: Comparison, evidence: Evidence, space: SearchSpace) -> str:
    """Return what the figures of the comparison rest on."""
    if not is_confirmed(best.candidate_id, evidence.records):
        return "not confirmed: no launch was made after it was picked, and the best of many is partly luck"
    if not is_confirmed(best.baseline_id, evidence.records):
        return "not confirmed: no launch without speculation that counts was made after it was picked"
    seen = seen_in_search(best.candidate_id, evidence, space)
    of = "" if len(space.objectives) == 1 else " by the geometric mean"
    before = "" if seen is None else f"; the search had seen {seen:.2f} ×{of}"
    mine, theirs = best.launches
    counted = (
        f"in {count(mine, 'pair')} of launches"
        if mine == theirs
        else f"by {count(mine, 'more launch')} of it and {theirs} without"
    )
    return f"confirmed {counted}{before}"


def _where_it_pays(evidence: Evidence, space: SearchSpace, study: str) -> Iterator[str]:
    """Yield the loads at which speculation pays, beside a verdict that does not recommend it."""
    closest = evidence.verdict.overall.best
    if closest is None or evidence.verdict.overall.decision == "speculation":
        return
    told, ways, exported = [], [], {record.candidate.candidate_id for record in evidence.pareto}
    for best in paying(evidence):
        name = label(best.candidate_id, evidence, space)
        doubt = "" if is_confirmed(best.candidate_id, evidence.records) else ", not confirmed"
        speedup = best.judged
        told.append(f"{best.level} ({name}: {speedup.est:.2f} ×, {speedup.lo:.2f}–{speedup.hi:.2f}{doubt})")
        if best.candidate_id not in exported:
            ways.append(f"`{export_command(study, _pick(best, evidence, space))}`")
    if told:
        files = f"its launch file: {' and '.join(dict.fromkeys(ways))}" if ways else "its launch file is exported"
        yield f"by the speed of one request alone speculation pays at {' and '.join(told)}; {files}"


def _pick(one: Comparison, evidence: Evidence, space: SearchSpace) -> str:
    """Return what picks a candidate's launch: the need it meets, else the launch's number."""
    latency = picked(Need.LATENCY, evidence.records, evidence, space).record
    mine = [record.trial for record in evidence.records if record.candidate.candidate_id == one.candidate_id]
    return Need.LATENCY if latency.candidate.candidate_id == one.candidate_id else str(mine[-1])


def _not_the_fastest(evidence: Evidence, space: SearchSpace) -> Iterator[str]:
    """Yield why one that was launched again as well, and was measured to be faster, is not recommended."""
    recommended = evidence.recommended
    if recommended is None:
        return
    rivals = [
        tie for tie in evidence.ties
        if tie.log_ratio > 0.0 and is_confirmed(tie.candidate_id, evidence.records)
        and who(tie.candidate_id, evidence).speculative is recommended.speculative
    ]  # fmt: skip
    if rivals:
        fastest = max(rivals, key=lambda tie: tie.log_ratio)
        simpler = simpler_by(simplicity(recommended, space), fastest.simplicity)
        why = simpler or "all its launches, those of the search too, let expect that it is at least as fast"
        yield f"recommended instead of the fastest measured, {label(fastest.candidate_id, evidence, space)}: {why}"


def _ties(evidence: Evidence, space: SearchSpace, most: int = NAMED_TIES) -> Iterator[str]:
    """Yield which candidates these launches cannot tell from the recommended one."""
    if not evidence.ties:
        return
    told = [f"{label(one.candidate_id, evidence, space)} ({_rests_on(one, evidence)})" for one in evidence.ties[:most]]
    more = len(evidence.ties) - len(told)
    rest = f" and {more} more" if more else ""
    yield f"not told apart from the recommended launch, by their speed over its: {', '.join(told)}{rest}"


def _simpler(evidence: Evidence, space: SearchSpace) -> Iterator[str]:
    """Yield the simplest that may be as fast as what is recommended, and why it is not recommended."""
    recommended = evidence.recommended
    if recommended is None or not is_confirmed(recommended.candidate_id, evidence.records):
        return
    told = simplicity(recommended, space)
    simpler = [
        one for one in evidence.ties
        if one.simplicity < told and not is_confirmed(one.candidate_id, evidence.records)
    ]  # fmt: skip
    if simpler:
        one = min(simpler, key=lambda tie: tie.simplicity)
        yield (
            f"simpler and not told apart from it, but launched in the search alone, so not recommended: "
            f"{label(one.candidate_id, evidence, space)} ({_rests_on(one, evidence)})"
        )


def _rests_on(tie: Comparison, evidence: Evidence) -> str:
    """Return the interval of a tie, and by which launches it is faster where it leaves out that it is not."""
    if not tie.long_enough:
        return TOO_SHORT
    ratio = f"{tie.judged.lo:.2f}–{tie.judged.hi:.2f}"
    if tie.judged.lo <= 1.0:
        return ratio
    if is_confirmed(tie.candidate_id, evidence.records):
        return f"{ratio} by {count(tie.launches[0], 'launch')} to confirm it, yet by no more than it is worth"
    return f"{ratio} by {count(tie.launches[0], 'launch')} of the search, where the best of many is partly luck"


def words(evidence: Evidence, space: SearchSpace) -> list[str]:
    """Return how the verdict came about: each figure, confirmation, and how steady the machine was."""
    verdict, line = evidence.verdict, evidence.line
    told = [verdict.overall.words]
    if len(verdict.parts) > 1 and evidence.unkept is None:
        told += [part.words for part in verdict.parts]
    told += [seen] if (seen := _seen_before(evidence, space)) else []
    told += _ties(evidence, space, len(evidence.ties)) if len(evidence.ties) > NAMED_TIES else []
    told += [shares] if (shares := _shares(evidence)) else []
    told += steadiness(line)
    for candidate in by_candidate(line.every):
        told = [text.replace(candidate.candidate_id, space.label(candidate)) for text in told]
    return told


def _shares(evidence: Evidence) -> str | None:
    """Say that most of the search was for the best launch without speculation, where it was."""
    searched = [record.candidate for record in evidence.line.every if record.role is Role.SEARCH]
    plain = sum(not candidate.speculative for candidate in searched)
    if 2 * plain <= len(searched) or plain == len(searched):
        return None
    return f"{plain} of {len(searched)} launches of the search were without speculation: there most was left to find"


def _seen_before(evidence: Evidence, space: SearchSpace) -> str | None:
    best = evidence.verdict.overall.best
    seen = None if best is None else seen_in_search(best.candidate_id, evidence, space)
    if best is None or seen is None:
        return None
    return (
        f"confirmed: {best.candidate_id} and {best.baseline_id} in {best.launches[0]} and {best.launches[1]} launches"
        f"{' in turns' if _in_turns(best, evidence) else ''} give {best.speedup.est:.3f} ×, "
        f"where the search had seen {seen:.3f} ×"
    )


def _in_turns(best: Comparison, evidence: Evidence) -> bool:
    """Whether the launches of a comparison follow each other in pairs in every place, with no other between them."""
    pair = {best.candidate_id, best.baseline_id}
    counted = [r for r in evidence.records if r.candidate.candidate_id in pair]
    for place in {r.place for r in counted}:
        trials = [r.trial for r in counted if r.place == place]
        made = [
            r.candidate.candidate_id
            for r in evidence.line.every
            if r.place == place and min(trials) <= r.trial <= max(trials)
        ]
        if len(made) % 2 or any(set(made[at : at + 2]) != pair for at in range(0, len(made), 2)):
            return False
    return True
