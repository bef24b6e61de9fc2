"""Bookkeeping of cache slots: which row of the key/value cache holds which token of which request.

`req_to_token` is the scheduler's table, int32 [pool rows, longest request]; `req_pool_indices` names each request's row
in it. Triton kernels do this on a GPU. Everything is written in place; `pool_len` is the table's width, which a kernel
needs and a tensor knows.
"""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor


def assign_req_to_token_pool_cpu(
    req_pool_indices: Tensor,
    req_to_token: Tensor,
    start_offset: Tensor,
    end_offset: Tensor,
    out_cache_loc: Tensor,
    pool_len: int,
) -> None:
    """Writes freshly allocated slots into the table.

    `out_cache_loc` (int64, all requests one after the other) goes to columns `start_offset` … `end_offset`
    (int [requests]) of each request's row.
    """
    taken = 0
    for row, start, end in _spans(req_pool_indices, start_offset, end_offset):
        req_to_token[row, start:end] = out_cache_loc[taken : taken + end - start]
        taken += end - start


def assign_extend_cache_locs_cpu(
    req_pool_indices: Tensor,
    req_to_token: Tensor,
    start_offset: Tensor,
    end_offset: Tensor,
    out_cache_loc: Tensor,
    pool_len: int,
) -> None:
    """The reverse: verification learns from it where its keys and values go.

    Columns `start_offset` … `end_offset` of each request's row are read into `out_cache_loc`, one after the other.
    """
    filled = 0
    for row, start, end in _spans(req_pool_indices, start_offset, end_offset):
        out_cache_loc[filled : filled + end - start] = req_to_token[row, start:end]
        filled += end - start


def assign_draft_cache_locs_contiguous_cpu(
    req_pool_indices: Tensor,
    req_to_token: Tensor,
    seq_lens: Tensor,
    out_cache_loc: Tensor,
    pool_len: int,
    topk: int,
    num_steps: int,
) -> None:
    """Says where the drafter's own keys and values live while it drafts.

    The K · S slots behind each request's accepted tokens (`seq_lens`, int [requests]) are read into `out_cache_loc`,
    int64 [requests · K · S].
    """
    columns = seq_lens[:, None] + torch.arange(topk * num_steps)
    out_cache_loc[: columns.numel()] = req_to_token[req_pool_indices[:, None], columns].view(-1)


def build_draft_decode_metadata_cpu(
    req_to_token: Tensor, req_pool_indices: Tensor, seq_lens: Tensor, topk: int, num_steps: int, pool_len: int
) -> Tensor:
    """One table row per branch, so that each of the K branches of a request can be decoded like a request of its own.

    Returns:
        int32 [requests · K, pool_len]: the request's row, in which the S columns behind its `seq_lens` accepted tokens
        hold branch k's slots, columns `seq_lens + k·S` … `+ S` of the original.
    """
    rows = req_to_token[req_pool_indices].repeat_interleave(topk, dim=0)
    if topk > 1:
        steps = torch.arange(num_steps)
        first = seq_lens.repeat_interleave(topk)[:, None]
        branch = torch.arange(topk).repeat(seq_lens.numel())[:, None]
        own = rows.gather(1, first + branch * num_steps + steps)
        rows.scatter_(1, first + steps, own)
    return rows


def fill_accept_out_cache_loc_cpu(accept_index: Tensor, out_cache_loc: Tensor, accept_out_cache_loc: Tensor) -> None:
    """Gathers the slots of accepted nodes; the scheduler frees those of rejected ones.

    `out_cache_loc` (int64 [requests · N]) at the entries of `accept_index` that are not −1 fills the front of
    `accept_out_cache_loc`, in order.
    """
    accepted = accept_index.view(-1)
    slots = out_cache_loc[accepted[accepted >= 0].long()]
    accept_out_cache_loc[: slots.numel()] = slots


def copy_all_layer_kv_cache_cpu(data_ptrs: Tensor, strides: Tensor, tgt_loc: Tensor, src_loc: Tensor) -> None:
    """Moves accepted tokens' keys and values to contiguous slots, in every layer's buffers at once.

    Args:
        data_ptrs: Address of each buffer's first byte, uint64 [buffers].
        strides: Bytes per slot of each buffer, int64 [buffers].
        tgt_loc: Slots to write, int [moved].
        src_loc: Slots to read, int [moved]. May overlap `tgt_loc`: all are read before any is written.
    """
    sources, targets = src_loc.tolist(), tgt_loc.tolist()
    for address, size in zip(data_ptrs.tolist(), strides.tolist(), strict=True):
        rows = [ctypes.string_at(address + slot * size, size) for slot in sources]
        for slot, row in zip(targets, rows, strict=True):
            ctypes.memmove(address + slot * size, row, size)


def _spans(rows: Tensor, starts: Tensor, ends: Tensor) -> zip[tuple[int, int, int]]:
    return zip(rows.tolist(), starts.tolist(), ends.tolist(), strict=True)
