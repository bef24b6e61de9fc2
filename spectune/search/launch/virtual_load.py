"""A level in virtual time: what the cost model is to serve, and what the load client would have seen of it."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from spectune.bench.arrivals import first_answer
from spectune.bench.course import GiveUp
from spectune.bench.level import LevelPlan, LevelRun
from spectune.bench.prompts import TokenizedPrompt
from spectune.bench.replay import replay
from spectune.engines.simulated.virtual import ClosedLoop
from spectune.engines.simulated.virtual_level import VirtualLevel


def loop_of(plan: LevelPlan, sample: list[TokenizedPrompt], requests: int) -> ClosedLoop:
    """Return the load of a level, its prompts standing for all of the workload."""
    slots = plan.arrivals.most_in_flight
    # A whole answer takes a cycle at least.
    output_tokens = max(2, _mean(prompt.prompt.output_tokens or plan.sampling.output_tokens for prompt in sample))
    return ClosedLoop(
        concurrency=slots,
        requests=requests,
        prompt_tokens=mean_length(sample),
        output_tokens=output_tokens,
        classes=tuple(prompt.prompt.prompt_class for prompt in sample),
        first_outputs=tuple(first_answer(slot, slots, output_tokens) for slot in range(slots)),
    )


def mean_length(prompts: Sequence[TokenizedPrompt]) -> int:
    """Return the tokens of a prompt."""
    return _mean(len(prompt.input_ids) for prompt in prompts)


def as_measured(plan: LevelPlan, level: VirtualLevel, give_up: GiveUp | None) -> LevelRun | None:
    """Return what the load client would have made of a level; None when it was too short for that."""
    records = level.requests()
    ends = sorted(record.end_s for record in records)
    return replay(plan, records, full_until_s=ends[len(records) - plan.arrivals.most_in_flight], give_up=give_up)


def _mean(counts: Iterable[int]) -> int:
    return round(statistics.fmean(counts))
