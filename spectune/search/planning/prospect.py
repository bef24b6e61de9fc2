"""What a study is expected to cost, and whether speculation will pay: shown before the start and after every launch.

Before the first launch the cost rests on guesses, which are said with it, or on the launches of an earlier study, and
nothing is known of whether speculation pays, unless that study was of this machine. Then both rest on the beliefs of
the guided search. Other samplers have no beliefs: with them a study costs what its budget allows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spectune.counts import count
from spectune.sampler_names import GUIDED
from spectune.search.evidence.outcome import weigh
from spectune.search.evidence.timeline import timeline
from spectune.search.planning.budget import HOUR_S, left_s, most_launches, pace_s, spent_s
from spectune.search.planning.finalists import still_to_confirm
from spectune.search.planning.situation import as_now
from spectune.search.proposing.proposals import Proposer
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Role
from spectune.space import SearchSpace

USUAL_SEARCH = 40  # launches of the guided search before it is sure, while nothing is known: a median of large spaces
TEACHING = 10
"""A launch tells of others too: of n candidates that may still win about √(10 n) have to be launched, as random
machines near their break-even showed."""
START_SHARE = 0.25  # of the startup timeout, which people choose with room to spare


@dataclass(frozen=True)
class Prospect:
    """A study's cost in all, launches already made included.

    Attributes:
        launches: Expected.
        most: The budget's; None where it limits time alone and no launch has shown how many that is.
        hours: Expected.
        gpu_hours: Expected; 0 on a CPU.
        pays: Chance that the best candidate with speculation is faster than the best without; None where that is open,
            as it is until both branches were measured. As soon as finalist and baseline were relaunched, it is that of
            the verdict's own interval.
        rests_on: What the figures rest on, in words.
        virtual: Whether the hours are a simulated machine's, which pass in seconds.
    """

    launches: int
    most: int | None
    hours: float
    gpu_hours: float
    pays: float | None
    rests_on: str
    virtual: bool = False

    @property
    def words(self) -> str:
        """Return it as one line."""
        whole = f"{count(self.launches, 'launch')}, all that the budget allows"
        launches = whole if self.launches == self.most else self._fewer
        gpus = f", {self.gpu_hours:.2g} GPU-hours" if self.gpu_hours else ""
        pays = "" if self.pays is None else f"; speculation pays with a chance of {self.pays:.0%}"
        time = f"{self.hours:.1f} hours" if self.hours >= 1.0 else f"{60.0 * self.hours:.0f} min"
        whose = " of the simulated machine, in virtual time: seconds here" if self.virtual else ""
        return f"{launches}, about {time}{gpus}{whose}{pays}"

    @property
    def _fewer(self) -> str:
        most = "" if self.most is None else f" (the budget allows {self.most})"
        return f"about {count(self.launches, 'launch')}{most}"

    def to_json(self) -> dict[str, Any]:
        """Return it for other programs."""
        return {
            "launches": self.launches, "launches_at_most": self.most, "hours": round(self.hours, 3),
            "gpu_hours": round(self.gpu_hours, 3), "virtual": self.virtual,
            "speculation_pays": self.pays, "rests_on": self.rests_on,
        }  # fmt: skip


@dataclass(frozen=True)
class Progress:
    """How far a study is.

    Attributes:
        done: Launches finished.
        planned: Launches in all, as far as that is expected.
        spent_s: Seconds of launches so far.
        left_s: Seconds the rest may take; None before the first launch ended.
        expected: The whole study; None for a few launches whose number is fixed.
    """

    done: int
    planned: int
    spent_s: float
    left_s: float | None
    expected: Prospect | None = None


def progress(
    records: Sequence[TrialRecord], expected: Prospect, reader_pace_s: float | None = None, *, at_once: int = 1
) -> Progress:
    """Return how far a study is.

    Args:
        records: All finished launches.
        expected: What it is expected to cost.
        reader_pace_s: Seconds from one launch to the next on the reader's clock, whoever makes them, where the
            launches' own time is virtual.
        at_once: Launches that are made at the same time.
    """
    to_come, left = max(0, expected.launches - len(records)), None
    if reader_pace_s is not None:
        left = to_come * reader_pace_s
    elif records:
        left = math.ceil(to_come / at_once) * pace_s(records)
    return Progress(len(records), expected.launches, spent_s(records), left, expected)


def prospect(records: Sequence[TrialRecord], space: SearchSpace, proposer: Proposer) -> Prospect:
    """Return what a study is expected to cost.

    Args:
        records: All launches so far.
        space: The search space with its budget.
        proposer: Where new candidates come from, and what is believed of them.
    """
    known = as_now(records, timeline(records, space))
    pace = pace_s(records) if records else _Guess.of(space, proposer).seconds
    by_time = len(records) + max(0.0, left_s(records, space) / pace)
    most = min(most_launches(space), by_time) if records else most_launches(space)
    # The first launch is always made, however little time it is given.
    launches = int(min(most, max(1.0, by_time), len(records) + _to_come(records, known, space, proposer)))
    confirmed = weigh(records, space).chance if any(record.role is Role.CONFIRM for record in records) else None
    hours = (spent_s(records) + (launches - len(records)) * pace) / HOUR_S
    return Prospect(
        launches=launches,
        most=None if math.isinf(most) else int(most),
        hours=hours,
        gpu_hours=hours * space.engine.gpus,
        pays=proposer.paying(known) if confirmed is None else confirmed,
        rests_on=_rests_on(records, space, proposer),
        virtual=bool(space.engine.virtual),
    )


def _to_come(
    records: Sequence[TrialRecord], known: Sequence[TrialRecord], space: SearchSpace, proposer: Proposer
) -> float:
    """Return how many launches are expected, whatever the budget; `known` are all, as they would be now."""
    if proposer.sampler != GUIDED:
        return math.inf
    outlook = proposer.outlook(known)
    if outlook is None:
        wanted = max(0, USUAL_SEARCH - sum(record.role is Role.SEARCH for record in records))
    else:
        wanted = 0 if outlook.enough else math.isqrt(TEACHING * outlook.open)
    baseline = 0 if any(record.role is Role.BASELINE for record in records) else 1
    launched = {record.candidate for record in records}
    untried = (candidate for candidate in proposer.all() if candidate not in launched)
    search = sum(1 for _ in itertools.islice(untried, baseline, baseline + wanted))  # a space may be small
    return baseline + search + still_to_confirm(records, space, proposer)


@dataclass(frozen=True)
class _Guess:
    """Seconds of a launch before any was made, and what that rests on in words."""

    seconds: float
    rests_on: str

    @classmethod
    def of(cls, space: SearchSpace, proposer: Proposer) -> _Guess:
        """Take the start that the engine knows of, else a part of its timeout, and every level to its limit."""
        workload, known = space.workload, proposer.known_start_s
        start_s = START_SHARE * space.engine.startup_timeout if known is None else known
        start = f"{START_SHARE:.0%} of engine.startup_timeout" if known is None else f"{start_s:.0f} s to start"
        seconds = start_s + len(workload.levels) * workload.level_time_limit
        return cls(seconds, f"{seconds / 60:.1f} min ({start}, and level_time_limit for every level)")


def _rests_on(records: Sequence[TrialRecord], space: SearchSpace, proposer: Proposer) -> str:
    if records:
        return f"the {count(len(records), 'launch')} so far"
    cost = f"a launch taken to need {_Guess.of(space, proposer).rests_on}"
    if proposer.warm_start is not None:
        lent = proposer.warm_start
        return f"the {count(len(lent.evidence), 'launch')} of study {lent.study}; {cost}"
    usual = (
        f"; a search of a large space is sure after some {count(USUAL_SEARCH, 'launch')}"
        if proposer.sampler == GUIDED
        else ""
    )
    open_ = "; whether speculation pays is not known before the first launches" if space.algorithms else ""
    return f"guesses, since nothing was launched: {cost}{usual}{open_}"
