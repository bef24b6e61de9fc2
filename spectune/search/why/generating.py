"""What training samples cost on the machine of a study."""

from __future__ import annotations

from collections.abc import Sequence

from spectune.analysis.why import BreakEvenOfStudy, DrafterPoint, Training, training
from spectune.search.evidence.figures import measured
from spectune.search.evidence.outcome import weigh
from spectune.search.storage.records import TrialRecord
from spectune.space import SearchSpace


def training_of(
    answer: BreakEvenOfStudy,
    records: Sequence[TrialRecord],
    space: SearchSpace,
    points: Sequence[DrafterPoint],
    *,
    tokens_per_sample: int,
) -> Training | None:
    """Say how many training samples reach the break-even of the candidate in question, and what they cost.

    They are generated at the best throughput of all requests together that was measured, by whatever candidate and at
    whatever level. None where the study has no break-even.

    Args:
        answer: The study's break-even.
        records: Its launches.
        space: Its space.
        points: Accept lengths of drafters trained on different numbers of samples.
        tokens_per_sample: Tokens the target generates for one sample.
    """
    at = (answer.candidate_id, answer.level, None)
    row = next((row for row in answer.rows if (row.candidate_id, row.level, row.prompt_class) == at), None)
    if row is None:
        return None
    best = max(measured(weigh(records, space), space), key=lambda one: one.figures.output_throughput.est)
    return training(
        points,
        max(1.0 + 1e-9, row.break_even.est),
        bound=row.bound,
        tokens_per_sample=tokens_per_sample,
        throughput_tok_s=best.figures.output_throughput.est,
        where=f"{space.label(best.candidate)} at {best.level}",
    )
