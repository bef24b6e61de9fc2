"""`sgl_kernel.speculative`: the one op NGRAM speculation imports from this submodule."""

from __future__ import annotations

import torch
from torch import Tensor


def reconstruct_indices_from_tree_mask(
    tree_mask: Tensor,
    verified_seq_len: Tensor,
    positions: Tensor,
    retrive_index: Tensor,
    retrive_next_token: Tensor,
    retrive_next_sibling: Tensor,
    batch_size: int,
    draft_token_num: int,
) -> None:
    """Reads trees back from their attention masks: n-gram lookup makes the masks directly. All results are in place.

    Args:
        tree_mask: Who sees whom, bool, [requests · N · N] row-major; node 0 is the root, parents come before children.
        verified_seq_len: Accepted tokens of each request, int [requests].
        positions: Position of each node's token: accepted tokens + ancestors, int64 [requests · N].
        retrive_index: Row of each node in the flattened batch, int64, requests · N elements.
        retrive_next_token: First child of each node or −1, likewise.
        retrive_next_sibling: Next child of the same parent or −1, likewise.
        batch_size: Number of requests; buffers may be longer.
        draft_token_num: N, nodes per tree.
    """
    n, total = draft_token_num, batch_size * draft_token_num
    nodes = torch.arange(n)
    above = tree_mask[: total * n].view(batch_size, n, n).bool().tril(-1)  # [b, node, ancestor]
    # The nearest ancestor is the one with the highest number. -1 where there is none.
    parents = torch.where(above, nodes, -1).amax(-1)
    first_child = torch.where(above, nodes[:, None], n).amin(1)  # any descendant of lowest number is a child
    younger = (parents[:, None] == parents[..., None]) & (parents >= 0)[..., None] & (nodes > nodes[:, None])
    next_sibling = torch.where(younger, nodes, n).amin(-1)
    positions.view(-1)[:total] = (above.sum(-1) + verified_seq_len[:batch_size, None]).view(-1)
    retrive_index.view(-1)[:total] = torch.arange(total)
    retrive_next_token.view(-1)[:total] = first_child.masked_fill(first_child == n, -1).view(-1)
    retrive_next_sibling.view(-1)[:total] = next_sibling.masked_fill(next_sibling == n, -1).view(-1)
