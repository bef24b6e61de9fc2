"""What a failed launch rules out besides itself: regions in which every launch would fail for the same reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from spectune.search.evidence.setting import GRAPH_LIMIT, GRAPH_SIZES, MEMORY_FRACTION, Setting
from spectune.search.storage.records import TrialRecord
from spectune.serving import FailureClass
from spectune.space import ALGORITHM, DRAFTER, EAGLE_TOPK, NUM_DRAFT_TOKENS, NUM_STEPS, Candidate, Value

NCCL_PREFIX = "env.NCCL_"
LEAST_FAILURES = 3  # before a value of a variable is given up: two may share another cause
COLLECTIVE = frozenset({FailureClass.NCCL, FailureClass.HANG})

_GROWING = frozenset({NUM_STEPS, EAGLE_TOPK, NUM_DRAFT_TOKENS, MEMORY_FRACTION, GRAPH_SIZES, GRAPH_LIMIT})
_TOO_LITTLE = "nothing is left for the KV cache"


@dataclass(frozen=True)
class Exclusion:
    """A region that is not launched any more.

    Attributes:
        words: What was learned, as a sentence without a full stop.
        trials: The failed launches it was learned from.
        holds: Whether a candidate lies in the region.
    """

    words: str
    trials: tuple[int, ...]
    holds: Callable[[Candidate], bool]

    def to_json(self) -> dict[str, Any]:
        """Return an entry of `exclusions` in `summary.json`; the region itself follows from the trials."""
        return {"words": self.words, "trials": list(self.trials)}


def learned(records: Sequence[TrialRecord]) -> list[Exclusion]:
    """Return what the failures so far rule out; a failure that is not the candidate's rules out nothing."""
    return [*_drafters(records), *_memory(records), *_collectives(records)]


def excluded(candidate: Candidate, exclusions: Iterable[Exclusion]) -> Exclusion | None:
    """Return the first region a candidate lies in."""
    return next((exclusion for exclusion in exclusions if exclusion.holds(candidate)), None)


def _drafters(records: Sequence[TrialRecord]) -> Iterator[Exclusion]:
    """A drafter of which nothing is accepted under an algorithm accepts nothing with other settings either."""
    accepted = {drafter_of(r.candidate) for r in records if r.failure is None and r.candidate.speculative}
    failed: dict[tuple[Value | None, Value | None], list[int]] = {}
    for record in records:
        if record.failure is not None and record.failure.failure_class is FailureClass.DRAFTER:
            failed.setdefault(drafter_of(record.candidate), []).append(record.trial)
    for drafter, trials in failed.items():
        if drafter in accepted:
            continue
        algorithm, model = drafter
        words = f"{algorithm} with {model or 'this target'} does not work: see trial {trials[0]}"
        yield Exclusion(words, tuple(trials), partial(_drafts_with, drafter))


def _memory(records: Sequence[TrialRecord]) -> Iterator[Exclusion]:
    """Memory that ran out runs out with more of the same: batches × draft tokens captured, share for the KV cache.

    Where the weights left nothing for the KV cache, less is what fails.
    """
    for record in records:
        failure = record.failure
        if failure is None or failure.failure_class is not FailureClass.MEMORY:
            continue
        worst = record.candidate
        less = _TOO_LITTLE in failure.message
        what = "with less memory for it" if less else "with as many captured tokens and as much memory for the KV cache"
        yield Exclusion(
            f"the settings of trial {record.trial}, and all like them {what}, run out of memory",
            (record.trial,),
            partial(_needs_as_much, worst, less=less),
        )


def _collectives(records: Sequence[TrialRecord]) -> Iterator[Exclusion]:
    """A value of an NCCL variable under which launches only fail or hang, as often as `LEAST_FAILURES`."""
    outcomes: dict[tuple[str, Value], list[tuple[int, bool]]] = {}
    for record in records:
        bad = record.failure is not None and record.failure.failure_class in COLLECTIVE
        if record.failure is None or bad:
            for name, value in record.candidate.values.items():
                if name.startswith(NCCL_PREFIX) and value != "unset":
                    outcomes.setdefault((name, value), []).append((record.trial, bad))
    for (name, value), seen in outcomes.items():
        if len(seen) >= LEAST_FAILURES and all(bad for _, bad in seen):
            words = f"{name.removeprefix('env.')}={value} failed in {len(seen)} of {len(seen)} launches"
            trials = tuple(trial for trial, _ in seen)
            yield Exclusion(words, trials, partial(_has, name, value))


def drafter_of(candidate: Candidate) -> tuple[Value | None, Value | None]:
    """Return algorithm and draft model."""
    return candidate.values.get(ALGORITHM), candidate.values.get(DRAFTER)


def _drafts_with(drafter: tuple[Value | None, Value | None], candidate: Candidate) -> bool:
    return candidate.speculative and drafter_of(candidate) == drafter


def _has(name: str, value: Value, candidate: Candidate) -> bool:
    return candidate.values.get(name) == value


def _needs_as_much(worst: Candidate, candidate: Candidate, *, less: bool) -> bool:
    """Whether a candidate is like another but for settings that take at least as much memory."""
    mine, theirs = candidate.values, worst.values
    if _others(mine) != _others(theirs):
        return False
    fractions = _number(mine, MEMORY_FRACTION), _number(theirs, MEMORY_FRACTION)
    if less:
        return fractions[0] <= fractions[1]
    names = (NUM_STEPS, EAGLE_TOPK, MEMORY_FRACTION)
    as_much = all(_number(mine, name) >= _number(theirs, name) for name in names)
    return as_much and Setting.of(mine).captured_tokens >= Setting.of(theirs).captured_tokens


def _others(values: Mapping[str, Value]) -> dict[str, Value]:
    """All that has to be equal: variables of the environment take no memory."""
    return {name: value for name, value in values.items() if name not in _GROWING and not name.startswith("env.")}


def _number(values: Mapping[str, Value], name: str) -> float:
    value = values.get(name)
    return float(value) if isinstance(value, int | float) else 0.0
