"""How long one cycle takes: the arithmetic of the profile page, in milliseconds."""

from __future__ import annotations

from bisect import bisect_left

from spectune.engines.simulated.profile_schema import Moe, ProfileFile, Target
from spectune.engines.simulated.setup import Setup


def target_ms(target: Target, tokens: int, kv_ktokens: float, *, graph: bool) -> float:
    """Return the time of one forward of the target.

    Args:
        target: The model.
        tokens: Tokens in the forward, padding included.
        kv_ktokens: Thousands of KV tokens that the running requests read.
        graph: Whether a CUDA graph is replayed.
    """
    step = target.step_ms.graph if graph else target.step_ms.eager
    knee = target.knee_tokens if target.knee_tokens is not None else tokens
    below = target.token_ms * (min(tokens, knee) - 1)
    beyond = target.token_ms * target.knee_factor * max(0, tokens - knee)
    return step + below + beyond + target.kv_ms_per_ktoken * kv_ktokens + experts_ms(target.moe, tokens)


def experts_ms(moe: Moe | None, tokens: int) -> float:
    """Return the time for the experts that `tokens` tokens activate beyond those of one token (arXiv 2505.19645)."""
    if moe is None:
        return 0.0
    idle = 1.0 - moe.active / moe.experts
    return moe.expert_ms * (idle - idle**tokens)


def padded(captured: tuple[int, ...], batch: int) -> int | None:
    """Return the captured batch size that serves `batch` requests; None when no graph is large enough."""
    index = bisect_left(captured, batch)
    return captured[index] if index < len(captured) else None


def target_captured(setup: Setup, *, verify_graph: bool) -> tuple[int, ...]:
    """Return the batch sizes whose target forward is captured; none of a verify that a machine cannot capture."""
    return setup.captured if verify_graph or not setup.speculative else ()


def graph_used(setup: Setup, batch: int, *, verify_graph: bool) -> bool:
    """Whether the target's forward of `batch` requests replays a graph."""
    return padded(target_captured(setup, verify_graph=verify_graph), batch) is not None


def target_tokens(setup: Setup, batch: int, *, verify_graph: bool) -> int:
    """Return the tokens of one forward of the target for `batch` requests, a graph's padding included."""
    width = padded(target_captured(setup, verify_graph=verify_graph), batch)
    return (batch if width is None else width) * setup.num_draft_tokens


def draft_ms(profile: ProfileFile, setup: Setup, batch: int) -> float:
    """Return the time of all draft forwards of a cycle of `batch` requests."""
    draft = profile.draft
    graph = draft.graph and padded(setup.captured, batch) is not None
    step = draft.step_ms.graph if graph else draft.step_ms.eager
    return setup.draft_forwards * (step + draft.token_ms * batch * setup.eagle_topk)


def cycle_ms(profile: ProfileFile, setup: Setup, batch: int, kv_ktokens: float, effects: float = 1.0) -> float:
    """Return the time of one cycle without noise.

    Args:
        profile: The machine and its models.
        setup: The launch.
        batch: Running requests.
        kv_ktokens: Thousands of KV tokens of those requests.
        effects: The launch's factor on the cycle.
    """
    verify_graph = profile.target.verify_graph
    graph = graph_used(setup, batch, verify_graph=verify_graph)
    tokens = target_tokens(setup, batch, verify_graph=verify_graph)
    target = target_ms(profile.target, tokens, kv_ktokens, graph=graph)
    return effects * (profile.host_ms + draft_ms(profile, setup, batch) + target)
