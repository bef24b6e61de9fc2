"""Attention over a paged key/value cache: one token per request (decode) or several (prefill and verification).

Scores, softmax and sums are float32 whatever the cache holds, so that a token's result does not depend on which of the
two ops computed it: that is what makes greedy output the same with and without speculation.
"""

from __future__ import annotations

import torch
from torch import Tensor


def decode_attention_cpu(
    q: Tensor,
    k_buffer: Tensor,
    v_buffer: Tensor,
    k_scale: float,
    v_scale: float,
    o: Tensor,
    key: Tensor | None,
    value: Tensor | None,
    loc: Tensor,
    attn_logits: Tensor,
    req_to_token: Tensor,
    req_pool_indices: Tensor,
    seq_lens: Tensor,
    sm_scale: float,
    logit_cap: float,
    is_cross_attn: bool = False,
    sliding_window: int = 0,
    encoder_lens: Tensor | None = None,
    sinks: Tensor | None = None,
) -> None:
    """Stores the new token's key and value, then attends from it to its whole request. Used by decode and by drafting.

    Args:
        q: [requests, Hq, D], the cache's or the model's float type.
        k_buffer: Keys of one layer, [slots, Hkv, D]; written at `loc`.
        v_buffer: Values, [slots, Hkv, Dv]; written at `loc`.
        k_scale: Scale of an 8-bit cache, which this runtime does not have.
        v_scale: As `k_scale`.
        o: Result, [requests, Hq, Dv]; written.
        key: New keys, [requests, Hkv·D] or [requests, Hkv, D]; None if the layer shares another's.
        value: New values, likewise.
        loc: Slots of the new tokens, int [requests].
        attn_logits: Scratch space of the compiled kernel; not needed here.
        req_to_token: Slot of each token of each request, int32 [pool rows, longest request].
        req_pool_indices: Row of each request in `req_to_token`, int [requests].
        seq_lens: Tokens of each request, the new one included, int64 [requests].
        sm_scale: Factor on the scores.
        logit_cap: Scores are squashed to ±this by tanh; 0 leaves them.
        is_cross_attn: Encoder-decoder models: refused.
        sliding_window: Keys seen, the token's own included; 0 or less means all.
        encoder_lens: Belongs to cross attention.
        sinks: Attention-sink logits: refused.
    """
    _refuse_unsupported(is_cross_attn, sinks)
    if key is not None and value is not None:
        k_buffer[loc] = key.view(-1, *k_buffer.shape[1:]).to(k_buffer.dtype)
        v_buffer[loc] = value.view(-1, *v_buffer.shape[1:]).to(v_buffer.dtype)
    visible = _visible_to_new(seq_lens, 1, sliding_window, None, is_causal=True)
    slots = _slots(req_to_token, req_pool_indices, seq_lens)
    o.copy_(_attend(q[:, None], k_buffer, v_buffer, slots, visible, sm_scale, logit_cap)[:, 0])


def extend_attention_cpu(
    q: Tensor,
    k: Tensor | None,
    v: Tensor | None,
    o: Tensor,
    k_buffer: Tensor,
    v_buffer: Tensor,
    k_scale: float,
    v_scale: float,
    req_to_token: Tensor,
    req_pool_indices: Tensor,
    seq_lens: Tensor,
    extend_seq_lens: Tensor,
    extend_start_loc: Tensor,
    max_len_extend: int,
    sm_scale: float,
    logit_cap: float,
    is_cross_attn: bool = False,
    sliding_window: int = 0,
    encoder_lens: Tensor | None = None,
    sinks: Tensor | None = None,
    tree_mask: Tensor | None = None,
    is_causal: bool = True,
) -> None:
    """Attends from the last tokens of each request to all of it: prefill, draft extension and verification.

    Args:
        q: Queries of all requests, one after the other, [sum of extend lengths, Hq, D].
        k: New keys; SGLang has stored them in the cache already, where they are read from.
        v: As `k`.
        o: Result, [sum of extend lengths, Hq, Dv]; written.
        k_buffer: Keys of one layer, [slots, Hkv, D].
        v_buffer: Values, [slots, Hkv, Dv].
        k_scale: As in decode.
        v_scale: As in decode.
        req_to_token: As in decode.
        req_pool_indices: As in decode.
        seq_lens: Tokens of each request, the new ones included, int64 [requests].
        extend_seq_lens: New tokens of each request, int [requests].
        extend_start_loc: Where each request's tokens begin in `q`, int [requests].
        max_len_extend: Largest of `extend_seq_lens`; not needed here.
        sm_scale: As in decode.
        logit_cap: As in decode.
        is_cross_attn: As in decode.
        sliding_window: As in decode.
        encoder_lens: As in decode.
        sinks: As in decode.
        tree_mask: For verification of a tree: per request a row-major [new, new] bool matrix, flattened one after the
            other; who sees whom among the new tokens. The prefix is visible to all. None for a chain.
        is_causal: Whether a new token sees only what is before it; without effect where `tree_mask` is given.
    """
    _refuse_unsupported(is_cross_attn, sinks)
    counts = extend_seq_lens.tolist()
    if len(set(counts)) == 1 and counts[0] > 0:  # always so in verification, where speed matters: all at once
        requests, new = len(counts), counts[0]
        visible = _visible_to_new(seq_lens, new, sliding_window, tree_mask, is_causal)
        slots = _slots(req_to_token, req_pool_indices, seq_lens)
        batched = q[: requests * new].view(requests, new, *q.shape[1:])
        attended = _attend(batched, k_buffer, v_buffer, slots, visible, sm_scale, logit_cap)
        o[: requests * new].view(requests, new, *o.shape[1:]).copy_(attended)
        return
    assert tree_mask is None, "trees of one batch have the same number of nodes"
    for request, (start, count) in enumerate(zip(extend_start_loc.tolist(), counts, strict=True)):
        if count == 0:
            continue
        this, here = slice(request, request + 1), slice(start, start + count)
        visible = _visible_to_new(seq_lens[this], count, sliding_window, None, is_causal)
        slots = _slots(req_to_token, req_pool_indices[this], seq_lens[this])
        o[here] = _attend(q[None, here], k_buffer, v_buffer, slots, visible, sm_scale, logit_cap)[0].to(o.dtype)


def _visible_to_new(
    seq_lens: Tensor, new: int, sliding_window: int, tree_mask: Tensor | None, is_causal: bool
) -> Tensor | None:
    """Which keys the last `new` tokens of each request may see, bool [requests, new, longest request]; None if all."""
    shortest, longest = _extremes(seq_lens)
    if new == 1 and shortest == longest and sliding_window <= 0 and tree_mask is None:
        return None
    keys, prefix = torch.arange(longest), seq_lens[:, None] - new
    positions = prefix + torch.arange(new)
    if tree_mask is not None:
        tree = tree_mask[: len(seq_lens) * new * new].view(-1, new, new).bool()
        if shortest == longest:  # one request, above all: its mask stands in the last columns
            visible = torch.ones(len(seq_lens), new, longest, dtype=torch.bool)
            visible[..., longest - new :] = tree
        else:
            offsets = keys - prefix  # of each key among the new tokens, [requests, longest]
            columns = offsets.clamp(0, new - 1)[:, None].expand(-1, new, -1)
            visible = (tree.gather(2, columns) & (offsets < new)[:, None]) | (offsets < 0)[:, None]
    elif is_causal:
        visible = keys <= positions[..., None]
    else:
        visible = (keys < seq_lens[:, None])[:, None].repeat(1, new, 1)
    if sliding_window > 0:
        visible &= keys > positions[..., None] - sliding_window
    return visible


def _slots(req_to_token: Tensor, req_pool_indices: Tensor, seq_lens: Tensor) -> Tensor:
    """Cache slots of each request's tokens, int [requests, longest request], 0 behind a request's end.

    There the table holds leftovers of earlier requests; slot 0 always exists and is finite, so masked weights stay 0.
    """
    shortest, longest = _extremes(seq_lens)
    slots = req_to_token[:, :longest].index_select(0, req_pool_indices)
    return slots if shortest == longest else slots.masked_fill(torch.arange(longest) >= seq_lens[:, None], 0)


def _extremes(seq_lens: Tensor) -> tuple[int, int]:
    lengths = seq_lens.tolist()
    return min(lengths), max(lengths)


def _attend(
    q: Tensor,
    k_buffer: Tensor,
    v_buffer: Tensor,
    slots: Tensor,
    visible: Tensor | None,
    sm_scale: float,
    logit_cap: float,
) -> Tensor:
    """Softmax attention: q [b, n, Hq, D], slots [b, m], visible [b, n, m] or None for all → [b, n, Hq, Dv], float32.

    Query heads that share a key head are laid beside each other as if they were further queries, so keys are never
    repeated.
    """
    (batch, queries, heads, _), length = q.shape, slots.shape[1]
    kv_heads = k_buffer.shape[1]
    group = heads // kv_heads
    flat = slots.reshape(-1)
    keys = k_buffer.index_select(0, flat).float().view(batch, length, kv_heads, -1).permute(0, 2, 3, 1)
    values = v_buffer.index_select(0, flat).float().view(batch, length, kv_heads, -1).transpose(1, 2)
    grouped = q.float().reshape(batch, queries, kv_heads, group, -1).transpose(1, 2)
    scores = torch.matmul(grouped.reshape(batch, kv_heads, queries * group, -1), keys).mul_(sm_scale)
    if logit_cap > 0:
        scores = logit_cap * torch.tanh(scores / logit_cap)
    scores = scores.view(batch, kv_heads, queries, group, length)
    if visible is not None:
        scores.masked_fill_(~visible[:, None, :, None], float("-inf"))
    mixed = torch.matmul(scores.softmax(-1).view(batch, kv_heads, queries * group, length), values)
    return mixed.view(batch, kv_heads, queries, group, -1).transpose(1, 2).reshape(batch, queries, heads, -1)


def _refuse_unsupported(is_cross_attn: bool, sinks: Tensor | None) -> None:
    if is_cross_attn or sinks is not None:
        raise NotImplementedError("the cpu-reference runtime has no cross attention and no attention sinks")
