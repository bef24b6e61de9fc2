"""Causes that lie in how the server runs: graphs, queues, memory, caches, host."""

from __future__ import annotations

from collections.abc import Iterator

from spectune.analysis.break_even import break_even
from spectune.analysis.diagnosis.case import Action, Case, Cause, Cost
from spectune.analysis.diagnosis.running import Load

MOSTLY = 0.5
FULL = 0.95
MUCH_CACHED = 0.5
FEWEST_PROMPT_TOKENS = 1000
"""With fewer, a shared system prompt looks like a warm cache."""


def eager(case: Case) -> Iterator[Cause]:
    """Steps that ran outside CUDA graphs, at the judged load or at others."""
    running, judged = case.running, case.load
    if not running.graphs_possible:
        return
    loads = [load for load in running.loads if load.in_graph is not None and load.in_graph < MOSTLY]
    if not loads:
        yield from _captured_less_than_may_run(case)
        return
    here = judged in loads
    where = _batches(loads)
    step = "decode" if running.algorithm is None else "verify"
    evidence = f"the {step} ran outside CUDA graphs at {where} running requests"
    graphed = [load for load in running.loads if load.in_graph is not None and load.in_graph >= MOSTLY]
    if graphed:
        evidence += f" (in graphs at {_batches(graphed)})"
    lost = _cost_of_eager(case) if here else None
    if lost is not None:
        evidence += (
            f"; a verify is not faster than a plain step, so graphs give {case.baseline_tok_s:g} × "
            f"{case.accept_length or 1:.2f} tok/s at most"
        )
    largest = max(load.running or 0 for load in loads)
    if running.captured and largest > running.captured:
        evidence += f"; the largest captured batch is {running.captured}"
        action = Action(f"launch with {running.graph_flag} {largest} or more", Cost.FLAG)
        yield Cause("graphs_too_small", lost, evidence, (action,), at_most=True)
    elif running.graphs_off or running.captured == 0:
        evidence += "; the launch turned them off" if running.graphs_off else "; none were captured"
        action = Action(
            "launch without --disable-cuda-graph and --disable-decode-cuda-graph; if memory runs out, fewer captured "
            f"batches ({running.graph_flag}) come before no graphs",
            Cost.FLAG,
        )
        yield Cause("graphs_off", lost, evidence, (action,), at_most=True)
    else:
        action = Action(
            "look for the attention backend or option that keeps this SGLang from capturing this step, and change it",
            Cost.FLAG,
        )
        upgrade = Action("restart with an SGLang that captures it", Cost.RESTART)
        yield Cause("eager", lost, evidence, (action, upgrade), at_most=True)


def queueing(case: Case) -> Iterator[Cause]:
    """Requests that wait because fewer may run than are sent."""
    running = case.running
    most = running.max_running
    if running.most_queued == 0 or most is None or running.most_running < most or _memory_is_short(case):
        return
    offered = running.most_running + running.most_queued
    evidence = (
        f"up to {running.most_queued} requests waited while {running.most_running} ran, as many as this launch lets "
        "run: the time to the first token grows, the time per token looks better than it is"
    )
    if running.running_lowered:
        evidence += f" (SGLang: “{running.running_lowered}”)"
    action = Action(
        f"launch with --max-running-requests {offered}, or as many as the KV cache holds, and compare both at the "
        "same concurrency",
        Cost.FLAG,
    )
    yield Cause("queueing", None, evidence, (action,))


def fewer_than_asked(case: Case) -> Iterator[Cause]:
    """The scheduler lets fewer requests run than it was told to, for want of memory (vllm#55533)."""
    running = case.running
    if running.max_running is None or running.asked_running is None or running.max_running >= running.asked_running:
        return
    evidence = f"{running.asked_running} requests were asked to run at once, {running.max_running} may"
    if running.kv_tokens is not None:
        evidence += f"; the KV cache holds {running.kv_tokens:,} tokens"
    actions = (
        Action("read the same two figures of a launch without speculation: drafts need memory of their own",
               Cost.MEASUREMENT),
        Action("launch with a larger --mem-fraction-static, or fewer draft tokens", Cost.FLAG),
    )  # fmt: skip
    yield Cause("fewer_than_asked", None, evidence, actions)


def memory_full(case: Case) -> Iterator[Cause]:
    """A KV cache that is full: requests are thrown out and begun again, or wait."""
    running = case.running
    if not _memory_is_short(case):
        return
    parts = []
    if running.retractions:
        parts.append(f"{running.retractions} requests were thrown out of the KV cache and computed again")
    if running.peak_usage is not None:
        parts.append(f"up to {running.peak_usage:.0%} of it was in use")
    action = Action(
        "launch with a larger --mem-fraction-static, or with fewer --max-running-requests, which loses less than "
        "computing requests twice",
        Cost.FLAG,
    )
    yield Cause("memory_full", None, "; ".join(parts), (action,))


def warm_cache(case: Case) -> Iterator[Cause]:
    """Prompts that were answered before: the figures are not those of fresh traffic (sglang#39651)."""
    running = case.running
    share = running.cached_share
    if share is None or share < MUCH_CACHED or running.prompt_tokens < FEWEST_PROMPT_TOKENS:
        return
    evidence = (
        f"{share:.0%} of {running.prompt_tokens:,} prompt tokens came from the prefix cache: prefill times and "
        "throughput are not those of fresh prompts"
    )
    action = Action(
        "if this was a benchmark, POST /flush_cache before each run, and use fresh prompts", Cost.MEASUREMENT
    )
    yield Cause("warm_cache", None, evidence, (action,))


def unexplained_time(case: Case) -> Iterator[Cause]:
    """A cycle longer than the verify it is said to consist of."""
    if case.verify_ms is None or case.accept_length is None or not case.speed:
        return
    arithmetic = break_even(
        baseline_tok_s=case.baseline_tok_s or case.speed,
        cycle_ms=case.verify_ms,
        accept_length=max(1.0, case.accept_length),
        measured_tok_s=case.speed,
    )
    found = arithmetic.contradiction
    if found is None or found.missing_ms <= 0:
        return
    evidence = (
        f"{case.speed:.1f} tok/s at accept length {case.accept_length:.2f} is a cycle of "
        f"{found.implied_cycle_ms:.1f} ms, the verify alone {case.verify_ms:g} ms: draft and host take "
        f"{found.missing_ms:.1f} ms"
    )
    action = Action("launch with fewer steps, and with the overlap schedule on", Cost.FLAG)
    yield Cause("draft_and_host_time", arithmetic.speed_tok_s - case.speed, evidence, (action,), at_most=True)


def only_the_first_interval(case: Case) -> Iterator[Cause]:
    """Nothing but an interval that counts the wait for the first request (sglang#5502, #11948)."""
    if case.load is not None or case.running.first_tok_s is None:
        return
    evidence = (
        f"the only throughput is that of the first interval, {case.running.first_tok_s:g} tok/s, which counts the "
        "time since the start"
    )
    action = Action("send more requests, at least 80 decode steps, and read again", Cost.MEASUREMENT)
    yield Cause("only_the_first_interval", None, evidence, (action,))


def _captured_less_than_may_run(case: Case) -> Iterator[Cause]:
    """Without a decode line to tell: graphs that do not reach as many requests as may run (sglang#5274)."""
    running = case.running
    seen = any(load.in_graph is not None for load in running.loads)
    if seen or running.captured is None or running.max_running is None or running.captured >= running.max_running:
        return
    if running.asked_running is None:
        return  # SGLang's own limit without speculation is far above what graphs are captured for
    evidence = (
        f"the largest captured batch is {running.captured}, but {running.max_running} requests may run: larger "
        "batches run outside CUDA graphs"
    )
    action = Action(f"launch with {running.graph_flag} {running.max_running}", Cost.FLAG)
    yield Cause("graphs_too_small", None, evidence, (action,))


def _cost_of_eager(case: Case) -> float | None:
    """What graphs can give at most: a verify costs no less than a plain step, so v ≤ τ·v₀."""
    if case.baseline_tok_s is None or not case.speed:
        return None
    return max(0.0, case.baseline_tok_s * (case.accept_length or 1.0) - case.speed) or None


def _memory_is_short(case: Case) -> bool:
    full = case.running.peak_usage is not None and case.running.peak_usage >= FULL and case.running.most_queued > 0
    return case.running.retractions > 0 or full


def _batches(loads: list[Load]) -> str:
    """Name batch sizes: a few of them, or from … to …."""
    sizes = sorted(load.running or 0 for load in loads)
    return ", ".join(map(str, sizes)) if len(sizes) <= 4 else f"{sizes[0]} to {sizes[-1]}"
