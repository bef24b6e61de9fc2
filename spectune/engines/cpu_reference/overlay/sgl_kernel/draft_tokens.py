"""Bookkeeping of token ids between verification and the next round of drafting. Triton kernels do this on a GPU."""

from __future__ import annotations

import torch
from torch import Tensor


def fill_bonus_tokens_cpu(accept_tokens: Tensor, accept_lens: Tensor, bonus_tokens: Tensor, accept_stride: int) -> None:
    """Picks each request's last accepted token, from which it drafts on.

    Args:
        accept_tokens: Accepted tokens, padded to `accept_stride` per request, int32 [requests · stride].
        accept_lens: How many are valid, the bonus token included, int32 [requests].
        bonus_tokens: Result, int [requests]; written in place, may be longer.
        accept_stride: Tokens per request in `accept_tokens`.
    """
    last = torch.arange(accept_lens.numel()) * accept_stride + accept_lens - 1
    bonus_tokens[: last.numel()] = accept_tokens.view(-1)[last]


def rotate_input_ids_cpu(
    input_ids: Tensor,
    extend_start_loc: Tensor,
    extend_seq_lens: Tensor,
    topk_index: Tensor,
    select_index: Tensor | None = None,
) -> None:
    """Shifts each request's tokens left by one and puts the newest in the gap: the next drafter layer sees one further.

    Args:
        input_ids: Tokens of all requests, one after the other, int64; written in place.
        extend_start_loc: Where each request begins, int [requests].
        extend_seq_lens: Its number of tokens, int [requests]; a request without tokens stays as it is.
        topk_index: The new token of each request, int64 [requests] or [requests, 1].
        select_index: Where the new token goes, int [requests]; by default the request's last place.
    """
    newest = topk_index.view(-1)
    for request, (start, count) in enumerate(zip(extend_start_loc.tolist(), extend_seq_lens.tolist(), strict=True)):
        if count == 0:
            continue
        last = start + count - 1
        input_ids[start:last] = input_ids[start + 1 : last + 1].clone()
        input_ids[last if select_index is None else int(select_index[request])] = newest[request]
