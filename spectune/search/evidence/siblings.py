"""What a launch shows only beside others of its study: acceptance or memory that settings should not have changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spectune.search.storage.records import Status, TrialRecord
from spectune.space import Candidate, Value, is_speculative

LEAST_SHARE = 0.8
"""Of a sibling's accept length; drafts are as good under every other setting, and 0.63 was a bug (sglang#16274)."""
LEAST_ROOM = 0.6
"""Of the baseline's KV cache; an ordinary drafter takes some of it, and 0.01 was reported (vllm#55533)."""


def remarks(record: TrialRecord, earlier: Sequence[TrialRecord]) -> list[str]:
    """Return what is worth knowing of a launch that was measured, in sentences without a full stop.

    Args:
        record: The launch.
        earlier: All launches before it.
    """
    if record.status is not Status.OK or not record.candidate.speculative:
        return []
    usable = [other for other in earlier if other.status is Status.OK]
    return [*_accepts_less(record, usable), *_holds_less(record, usable)]


def _accepts_less(record: TrialRecord, earlier: Sequence[TrialRecord]) -> Iterator[str]:
    """Compare with the launches that draft the same, tensor or data parallelism being another for example."""
    for other in earlier:
        if other.candidate == record.candidate or _drafting(other.candidate) != _drafting(record.candidate):
            continue
        for level in record.levels:
            there = other.level(level.level)
            if there is None:
                continue
            mine, theirs = level.accept_length, there.accept_length
            low, high = sorted((mine, theirs), key=lambda length: length.est)
            if low.est < LEAST_SHARE * high.est and low.hi < high.lo:
                yield (
                    f"accept length {mine.est:.2f} at {level.level} and {theirs.est:.2f} in trial {other.trial}, which "
                    f"drafts the same ({_apart(record.candidate, other.candidate)}): settings should not change what "
                    "is accepted, so one of them may be broken; its answers and its acceptance need a closer look"
                )
                return


def _holds_less(record: TrialRecord, earlier: Sequence[TrialRecord]) -> Iterator[str]:
    """Compare the KV cache with that of the baseline that is like it but for the drafts."""
    mine = record.effective.kv_tokens
    for other in earlier:
        theirs = other.effective.kv_tokens
        if mine is None or theirs is None or other.candidate.speculative:
            continue
        if _system(other.candidate) == _system(record.candidate) and mine < LEAST_ROOM * theirs:
            yield (
                f"speculation leaves room for {mine} tokens in the KV cache, and without it there is room for {theirs} "
                f"(trial {other.trial}): fewer requests run at once; a smaller drafter or a higher mem-fraction-static "
                "gives more"
            )
            return


def _drafting(candidate: Candidate) -> dict[str, Value]:
    return {name: value for name, value in candidate.values.items() if is_speculative(name)}


def _system(candidate: Candidate) -> dict[str, Value]:
    return {name: value for name, value in candidate.values.items() if not is_speculative(name)}


def _apart(one: Candidate, other: Candidate) -> str:
    mine, theirs = _system(one), _system(other)
    names = sorted(name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name))
    return ", ".join(f"{name} {mine.get(name, 'unset')} against {theirs.get(name, 'unset')}" for name in names)
