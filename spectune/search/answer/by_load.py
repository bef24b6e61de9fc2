"""One server that drafts at some loads and not at others, where a study shows that this is what to run."""

from __future__ import annotations

from collections.abc import Iterator

from spectune.counts import count
from spectune.errors import SpectuneError
from spectune.search.answer.commands import export_command
from spectune.search.answer.sentence import paying, who
from spectune.search.evidence.adaptive import SINCE, adaptive_table
from spectune.search.evidence.outcome import Evidence
from spectune.space import SearchSpace


def by_load(evidence: Evidence, space: SearchSpace, *, study: str, version: str | None) -> Iterator[str]:
    """Yield how to have it, once.

    Args:
        evidence: What the launches say.
        space: The search space.
        study: Its name.
        version: Of SGLang; None where it is not known.
    """
    recommended = evidence.recommended
    speculative = [recommended] if recommended is not None and recommended.speculative else []
    for candidate in dict.fromkeys([*speculative, *(who(one.candidate_id, evidence) for one in paying(evidence))]):
        try:
            table = adaptive_table(candidate, evidence, space, version)
        except SpectuneError:  # it says what is missing to whoever asks for the table
            continue
        if not all(entry.best for entry in table):
            steps = ", ".join(f"{count(entry.best, 'step')} at c{entry.concurrency}" for entry in table)
            trial = next(r.trial for r in reversed(evidence.records) if r.candidate == candidate)
            yield (
                f"one server can draft at some loads only, which no launch has tried: {steps} by "
                f"`{export_command(study, trial)} --format adaptive` (SGLang {SINCE} or later)"
            )
            return
