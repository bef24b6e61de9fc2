"""What a space's workload means to the load client: prompts, and when they are sent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from spectune.bench.arrivals import Arrivals, ClosedLoop, Poisson, Trace
from spectune.bench.client import Sampling
from spectune.bench.level import LevelPlan
from spectune.bench.prompt_sources import MixPart, Workload, open_workload
from spectune.bench.prompt_summary import Lengths, WorkloadSummary, characters, looked_at, summarize
from spectune.bench.shared_prefix import SharedPrefix
from spectune.engines.protocol import Renderer
from spectune.errors import InputProblems, Problem, SpectuneError
from spectune.search.launch.feed import SEED, render
from spectune.space import Document, Level, SearchSpace, parse_document
from spectune.space.metrics import PERCENTILES

NO_TIMESTAMPS = (
    "a trace level needs one file of prompts in which every entry has a `timestamp` (seconds or ISO 8601) or a "
    "`timestamp_ms`, and not all the same"
)

CANARY_ROUNDS = 10  # all together, all one by one, and sampled; each takes less than a hang
SLACK_S = 120.0  # for rendering prompts, reading logs and asking the machine


def open_prompts(space: SearchSpace) -> Workload:
    """Find the prompts a space names; files are meant relative to the space's own folder.

    Raises:
        InputProblems: For files that cannot be read or hold anything but prompts, with their lines, and for levels
            that follow timestamps which are not there.
    """
    where = parse_document(space.text, space.path)
    section = space.workload
    shared = section.shared_prefix
    prefix = None if shared is None else SharedPrefix(shared.characters, shared.share)
    parts = [MixPart(source.prompts, source.share, source.turns) for source in section.prompts]
    folder = space.path.parent
    try:
        workload = open_workload(parts, folder, prefix)
    except SpectuneError as error:
        alone = [
            _said(failure, where, index) for index, part in enumerate(parts) if (failure := _failure(part, folder))
        ]
        raise InputProblems([one for some in alone or [_said(error, where)] for one in some]) from None
    traces = [index for index, level in enumerate(section.levels) if level.trace is not None]
    if traces and workload.recorded_rate is None:
        raise InputProblems([where.problem(("workload", "levels", index), NO_TIMESTAMPS) for index in traces])
    return workload


def _failure(part: MixPart, folder: Path) -> SpectuneError | None:
    """Return what is wrong with one source of prompts, so that one bad file hides no other."""
    try:
        open_workload([part], folder)
    except SpectuneError as error:
        return error
    return None


def _said(error: SpectuneError, where: Document, source: int = 0) -> tuple[Problem, ...]:
    """Return an error as problems; one without a line of its own stands where the space names the prompts."""
    if isinstance(error, InputProblems):
        return error.problems
    return (where.problem(("workload", "prompts", source), str(error)),)


def level_plan(space: SearchSpace, level: Level, workload: Workload, *, hang_s: float) -> LevelPlan:
    """Return how a level is measured; its requests arrive at the same moments in every launch.

    Where a percentile counts, its whole time is measured: all launches are then asked the same, and as often.
    """
    section = space.workload
    limit_s = section.level_time_limit
    counting = {goal.metric for goal in space.objectives if goal.level == level.name}
    counting |= {bound.metric for bound in space.constraints if bound.level == level.name}
    plan = LevelPlan(
        arrivals(level, workload),
        Sampling(section.output_tokens, section.temperature, section.ignore_eos),
        precision=0.0 if counting & PERCENTILES else section.precision,
        time_limit_s=limit_s,
        hang_s=hang_s,
    )
    # An open loop is warm after two latencies, and those are long where it is busy.
    return replace(plan, warmup_limit_s=max(plan.warmup_limit_s, limit_s)) if level.open_loop else plan


def longest_measuring_s(space: SearchSpace, workload: Workload, *, hang_s: float) -> float:
    """Return more seconds than canaries and levels take together that all keep to their own limits."""
    plans = [level_plan(space, level, workload, hang_s=hang_s) for level in space.workload.levels]
    each = [plan.warmup_limit_s + plan.time_limit_s + plan.drain_limit_s + hang_s + SLACK_S for plan in plans]
    return CANARY_ROUNDS * hang_s + SLACK_S + sum(each)


def arrivals(level: Level, workload: Workload) -> Arrivals:
    """Return the rule by which a level's requests arrive."""
    if level.concurrency is not None:
        return ClosedLoop(level.concurrency)
    return Poisson(level.rate, SEED) if level.rate is not None else Trace(workload.times_s, level.trace or 1.0)


def summary(space: SearchSpace, workload: Workload, renderer: Renderer | None = None) -> WorkloadSummary:
    """Describe what a space asks; lengths in tokens with a renderer, in characters without."""
    some = looked_at(workload, seed=SEED)
    if renderer is None:
        lengths = characters(some)
    else:
        rendered = render(renderer, some, chat_template=space.workload.chat_template)
        lengths = Lengths.of("tokens", [len(prompt.input_ids) for prompt in rendered])
    return summarize(workload, lengths, in_flight=space.workload.most_running)
