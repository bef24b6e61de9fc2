"""Causes that lie in how the server runs: queues, memory, caches, host, and what ended it."""

from __future__ import annotations

from collections.abc import Iterator

from spectune.analysis.break_even import break_even
from spectune.analysis.diagnosis.case import Action, Case, Cause, Cost
from spectune.analysis.diagnosis.steps import steps_of
from spectune.counts import count

_PROFILE = Action("profile a few cycles (POST /start_profile) to tell drafting from host time", Cost.MEASUREMENT)
_OVERLAP = Action("launch without --disable-overlap-schedule", Cost.FLAG)
FULL = 0.95
MUCH_CACHED = 0.5
FEWEST_PROMPT_TOKENS = 1000
"""With fewer, a shared system prompt looks like a warm cache."""


def died(case: Case) -> Iterator[Cause]:
    """A server that ended: before what slowed it comes what ended it."""
    running = case.running
    if running.died_of == "memory":
        smaller = Action(
            "launch with a smaller --mem-fraction-static, fewer --max-running-requests or fewer draft tokens", Cost.FLAG
        )
        yield Cause("died_of_memory", None, f"it died of memory: {running.last_words}", (smaller,), fatal=True)
    elif running.died_of is not None:
        above = Action("read the lines above the one quoted, where the log says why", Cost.MEASUREMENT)
        yield Cause(
            "died", None, f"its log ends in an error ({running.died_of}): {running.last_words}", (above,), fatal=True
        )


def queueing(case: Case) -> Iterator[Cause]:
    """Requests that wait because fewer may run than are sent."""
    running = case.running
    most = running.max_running
    if running.most_queued == 0 or most is None or running.most_running < most or _memory_is_short(case):
        return
    offered = running.most_running + running.most_queued
    evidence = (
        f"up to {count(running.most_queued, 'request')} waited while {running.most_running} ran, as many as this "
        "launch lets run: the time to the first token grows, the time per token looks better than it is"
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
        parts.append(f"{count(running.retractions, 'time')} a request was thrown out of the KV cache and begun again")
    if running.peak_usage is not None:
        parts.append(f"up to {running.peak_usage:.0%} of the KV cache was in use")
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
    fewer, actions = steps_of(case), [_PROFILE]
    if case.running.overlap_off and case.running.graphs_possible:
        actions.append(_OVERLAP)
    if fewer is not None and fewer.better < fewer.now:
        actions.append(fewer.action(case))
    lost = arithmetic.speed_tok_s - case.speed
    yield Cause("draft_and_host_time", lost, evidence, tuple(actions), at_most=True)


def only_the_first_interval(case: Case) -> Iterator[Cause]:
    """No speed but that of an interval that counts the wait for the first request (sglang#5502, #11948)."""
    if case.speed is not None or case.running.first_tok_s is None:
        return
    evidence = (
        f"the only throughput is that of the first interval, {case.running.first_tok_s:g} tok/s, which counts the "
        "time since the start: it says nothing of the speed"
    )
    action = Action("send more requests, at least 80 decode steps, and read again", Cost.MEASUREMENT)
    yield Cause("only_the_first_interval", None, evidence, (action,))


def _memory_is_short(case: Case) -> bool:
    full = case.running.peak_usage is not None and case.running.peak_usage >= FULL and case.running.most_queued > 0
    return case.running.retractions > 0 or full
