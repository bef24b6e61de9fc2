"""A verdict that is still open: how many more pairs would decide it, whether they come next, and what to say.

What is kept of the budget for the confirmation may not be enough. So when it has been launched and the question is
open, the pairs that are found to be missing come next, before new candidates, as far as the budget goes; and so on when
those have been launched. In between nobody looks: a comparison that ended as soon as it looked decided would find a
difference in the end where there is none. For the same reason a verdict after the k-th look is asked for more than
one after the first (`Question.looks`), and every launch remembers for which look it was made.
"""

from __future__ import annotations

import itertools
import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spectune.analysis.change_words import WORTH_A_FIGURE
from spectune.analysis.level_notes import longer_limit_s
from spectune.analysis.pairs import LIKELY, MOST_PAIRS, pairs_to_decide
from spectune.bench.level import ENOUGH_REQUESTS
from spectune.counts import count
from spectune.search.evidence.outcome import Evidence, weigh
from spectune.search.planning.budget import (
    HOUR_S,
    LEAST_CONFIRMATIONS,
    SMALLEST_CONFIRMED_BUDGET,
    kept_for_confirmation,
    kept_of,
    most_launches,
    pace_s,
    raised_times,
)
from spectune.search.planning.confirmation import Confirmation
from spectune.search.storage.folder import StudyFolder
from spectune.search.storage.records import Status, TrialRecord
from spectune.search.storage.steps import Role
from spectune.space import SearchSpace, parse_document, shipped_folder


def missing_pairs(evidence: Evidence) -> int | None:
    """Return how many more pairs would likely decide; 0 where nothing is open, None where it takes too many."""
    return pairs_to_decide(evidence.question, evidence.verdict.overall)


@dataclass(frozen=True)
class Wanted:
    """How many launches the confirmation is to have, as far as the launches made can tell.

    Attributes:
        launches: Before the question is looked at.
        look: For the how manyeth time, 1 being what is kept of the budget.
    """

    launches: int
    look: int = 1


def wanted(records: Sequence[TrialRecord], space: SearchSpace, state: Confirmation) -> Wanted:
    """Return how many launches the confirmation is to have."""
    launches, look, made = kept_for_confirmation(space), 1, len(state.counted)
    needs = 1 if state.begun else state.needs  # several places may be unable to use up the last launch
    while 0 < launches < made + needs and made:
        last = state.counted[min(launches, made) - 1]
        missing = missing_pairs(weigh([record for record in records if record.trial <= last], space))
        if not missing:
            break
        launches, look = launches + 2 * missing, look + 1
    return Wanted(launches, look)


def goes_on(records: Sequence[TrialRecord], space: SearchSpace, state: Confirmation) -> bool:
    """Whether a confirmation that was under way comes before new candidates: until its next look, unless settled."""
    if state.begun:
        return True
    under_way = state.next is not None and bool(records) and records[-1].role is Role.CONFIRM
    return under_way and state.done + state.needs <= wanted(records, space, state).launches


@dataclass(frozen=True)
class Remedy:
    """What would decide.

    Attributes:
        pairs: More pairs of launches; None where it takes too many, or where what is missing was never launched.
        trials: The launches of the whole study with what is missing; None where it takes too many.
        hours: What that takes at the pace of the study; None likewise.
        words: All that in a sentence.
    """

    pairs: int | None
    trials: int | None
    hours: float | None
    words: str

    def to_json(self) -> dict[str, Any]:
        """Return it for other programs."""
        return {"pairs": self.pairs, "trials": self.trials, "hours": self.hours, "words": self.words}


def remedy(records: Sequence[TrialRecord], evidence: Evidence, space: SearchSpace, command: str) -> Remedy | None:
    """Return what would decide, None where nothing is open.

    Args:
        records: All launches of the study.
        evidence: What they say.
        space: Their search space.
        command: What makes the study go on, see `command_of`.
    """
    if evidence.verdict.overall.unproven:
        return _uncovered(records, evidence, space, command)
    missing, best = missing_pairs(evidence), evidence.verdict.overall.best
    if missing == 0 or best is None:
        return None
    short = _too_short(evidence, space)
    if not best.long_enough:
        return Remedy(None, None, None, short or "it was not measured long enough to be compared")
    seen = _seen(best.detectable_effect, best.log_ratio, min(best.launches))
    if missing is None:
        told = f"{seen}; it cannot be decided within reason: more than {MOST_PAIRS} further pairs would be needed"
        return Remedy(None, None, None, "; ".join([told, *([short] if short else [])]))
    trials, hours = _budget(records, missing), 2 * missing * pace_s(records) / HOUR_S
    time = f"{hours:.1f} hours" if hours >= 1.0 else f"{max(1.0, 60.0 * hours):.0f} min"
    more = f"about {count(missing, 'more pair')} ({2 * missing} launches, about {time})"
    first = f"{short}; otherwise " if short else ""
    way = _larger(records, space, trials, command)
    told = f"{seen}; {first}{more} would decide it with a chance of {LIKELY:.0%}: {way}"
    return Remedy(missing, trials, hours, told)


def _uncovered(records: Sequence[TrialRecord], evidence: Evidence, space: SearchSpace, command: str) -> Remedy:
    """Return what decides where a side was measured outside CUDA graphs alone: it in graphs, then the finalists."""
    missing = " and ".join(space.label(one.missing) for one in evidence.uncovered)
    more = len(evidence.uncovered) + LEAST_CONFIRMATIONS
    trials, hours = len(records) + more, more * pace_s(records) / HOUR_S
    way = _larger(records, space, trials, command)
    told = f"more launches of the same do not decide it; what was never launched comes next, {missing}: {way}"
    return Remedy(None, trials, hours, told)


def never_launched(records: Sequence[TrialRecord], evidence: Evidence, space: SearchSpace, command: str) -> str | None:
    """Return which drafters no launch was made of, and what makes one; None where each was, or nothing was compared.

    Args:
        records: All launches of the study.
        evidence: What they say.
        space: Their search space.
        command: What makes the study go on, see `command_of`.
    """
    if not evidence.unlaunched or evidence.verdict.overall.best is None:
        return None
    more = len(evidence.unlaunched)
    way = _larger(records, space, max(len(records) + more, SMALLEST_CONFIRMED_BUDGET), command)
    them = "them" if more > 1 else "it"
    return f"never launched: {' and '.join(evidence.unlaunched)}; a larger budget launches {them}: {way}"


def unmeasured(records: Sequence[TrialRecord], evidence: Evidence, space: SearchSpace, command: str) -> str | None:
    """Return what is missing where the budget ended before both branches were measured; None where it did not.

    After a jump of the machine both are to be measured again.

    Args:
        records: All launches of the study.
        evidence: What they say.
        space: Their search space.
        command: What makes the study go on, see `command_of`.
    """
    if evidence.line.lacks_baseline:
        way = _larger(records, space, len(records) + LEAST_CONFIRMATIONS, command)
        return f"a larger budget launches the best without speculation again first, then the finalists in turns: {way}"
    measured = {record.candidate.speculative for record in evidence.records}
    if len(measured) != 1 or not space.algorithms or any(record.status is not Status.OK for record in records):
        return None
    told = "without" if measured == {True} else "with"
    return f"a larger budget has launches {told} speculation, too: {_larger(records, space, None, command)}"


def _too_short(evidence: Evidence, space: SearchSpace) -> str | None:
    """Say which levels were ended before their speeds were known, and what time limit would do; None for none."""
    limit_s = space.workload.level_time_limit
    longer = {
        level.level: longer_s
        for record in evidence.records
        for level in record.levels
        if (longer_s := longer_limit_s(level, limit_s, ENOUGH_REQUESTS)) is not None
    }
    if not longer:
        return None
    return (
        f"{' and '.join(longer)} {'were' if len(longer) > 1 else 'was'} not measured long enough, which more launches "
        f"do not mend: raise workload.level_time_limit to {max(longer.values())}s in a study of its own"
    )


def _seen(effect: float, log_ratio: float, pairs: int) -> str:
    made = f"with {count(pairs, 'pair')} of launches"
    if effect > WORTH_A_FIGURE:
        most, ratio = math.exp(abs(log_ratio)), 1.0 + effect
        return f"{made} that scatter so much only a factor of {ratio:.1f} would show, and {most:.1f} was seen"
    return f"{made} a difference of {effect:.1%} or more shows, and {abs(math.expm1(log_ratio)):.1%} was seen"


def _budget(records: Sequence[TrialRecord], pairs: int) -> int:
    """Return the launches a study needs in all to have so many more pairs: where none was made, as many as are kept."""
    begun = any(record.role is Role.CONFIRM for record in records)
    return next(n for n in itertools.count(len(records) + 2 * pairs) if begun or kept_of(n) >= 2 * pairs)


def _larger(records: Sequence[TrialRecord], space: SearchSpace, trials: int | None, command: str) -> str:
    """Return what gives a study a larger budget: no option raises a limit of time, which stands in the space's file.

    Args:
        records: All launches of the study, at least one.
        space: Their search space.
        trials: The launches it is to have in all; None where nobody knows how many.
        command: What makes it go on.
    """
    raised = raised_times(records, space, 1 if trials is None else trials - len(records))
    limits = [name if trials is None else f"{name} to {hours}" for name, hours in raised.items()]
    ways = [f"raise {' and '.join(limits)} in the space's file"] if limits else []
    if trials is not None or not limits or len(records) >= most_launches(space):
        ways.append(f"{command} --trials {trials or 'N'}")
    return ", then ".join(ways)


def command_of(space: SearchSpace, name: str, shared: str | None = None) -> str:
    """Return what makes a study go on, as far as that is known: to be followed by an option.

    Neither is known where a study's own copy of the space is read, nor of a shared study: the URL of its database may
    hold a password, and who makes the launches is an option too.

    Args:
        space: Of the study.
        name: The study.
        shared: Name of the study that workers share, where this is a copy of it.
    """
    if shared is not None:
        return f"the search command of the shared study {shared}, with its --storage and --executor if any, and with"
    if space.path.name == StudyFolder(space.path.parent).space_file.name and space.path.parent.name == name:
        return f"the search command of study {name}, with"
    shipped = space.path.parent == shipped_folder()
    words = ["spectune", "search", space.path.stem if shipped else str(space.path)]
    words += ["--study", name] if name != space.name else []
    return shlex.join([*words, *_simulation(space)])


def _simulation(space: SearchSpace) -> list[str]:
    """Return the options that make a simulated space of what its file says; none where the file says all of it."""
    engine, written = space.engine, parse_document(space.text, space.path).data.get("engine") or {}
    if engine.kind != "simulated":
        return []
    options = [] if written.get("kind") == "simulated" else ["--engine", "simulated"]
    options += ["--profile", engine.profile] if engine.profile not in (None, written.get("profile")) else []
    return [*options, *(["--virtual"] if engine.virtual and not written.get("virtual") else [])]
