"""Speculation trees: laying the drafted tokens out for one verification, and walking what the target accepted.

Node 0 of every tree is the request's last token, already accepted; nodes 1 … N−1 are draft tokens, parents before
children. A tree is stored as three int64 arrays of N per request: `retrive_index` (the node's row in the flattened
batch; the spelling is SGLang's), `retrive_next_token` (first child, −1 for none) and `retrive_next_sibling` (next child
of the same parent).
Trees have a few dozen nodes, so plain Python lists beat tensor ops here.
"""

from __future__ import annotations

import torch
from torch import Tensor

FULL_MASK = 0  # mask rows cover prefix and tree; the other mode SGLang uses on a CPU, QLEN_ONLY, covers the tree alone


def build_tree_kernel_efficient_cpu(
    parent_list: Tensor,
    selected_index: Tensor,
    verified_seq_len: Tensor,
    tree_mask: Tensor,
    positions: Tensor,
    retrive_index: Tensor,
    retrive_next_token: Tensor,
    retrive_next_sibling: Tensor,
    topk: int,
    depth: int,
    draft_token_num: int,
    tree_mask_mode: int,
) -> None:
    """Turns the drafter's selection into trees, attention masks and positions, all written in place.

    Candidate c of the drafter stands in group c // topk; group 0 holds the children of the root, and group g > 0 the
    children of candidate `parent_list[g]`.

    Args:
        parent_list: Candidate that each group hangs from, int64 [requests, groups].
        selected_index: The N−1 candidates to verify, ascending, int64 [requests, N−1].
        verified_seq_len: Accepted tokens of each request, int [requests].
        tree_mask: Who sees whom, bool, flattened: per request [N, length + N] (FULL_MASK, prefix columns are left as
            they are) or [N, N].
        positions: Position of each node's token, int64 [requests · N].
        retrive_index: See the module, [requests, N].
        retrive_next_token: Likewise.
        retrive_next_sibling: Likewise.
        topk: K, branches per draft step.
        depth: S, draft steps.
        draft_token_num: N, nodes per tree.
        tree_mask_mode: FULL_MASK or QLEN_ONLY.
    """
    n = draft_token_num
    lengths = verified_seq_len.tolist()
    all_positions, all_children, all_siblings = [], [], []
    mask_start = 0
    for length, selected, groups in zip(lengths, selected_index.tolist(), parent_list.tolist(), strict=True):
        parents = _parents(selected, groups, topk)
        children, siblings = _links(parents)
        ancestors = _ancestors(parents, depth)
        all_positions += [length + len(line) - 1 for line in ancestors]
        all_children.append(children)
        all_siblings.append(siblings)
        width = length + n if tree_mask_mode == FULL_MASK else n
        visible = torch.tensor([[column in line for column in range(n)] for line in ancestors], dtype=tree_mask.dtype)
        tree_mask[mask_start : mask_start + n * width].view(n, width)[:, width - n :] = visible
        mask_start += n * width
    positions.copy_(torch.tensor(all_positions))
    retrive_index.copy_(torch.arange(len(lengths) * n).view(-1, n))
    retrive_next_token.copy_(torch.tensor(all_children))
    retrive_next_sibling.copy_(torch.tensor(all_siblings))


def verify_tree_greedy_cpu(
    predicts: Tensor,
    accept_index: Tensor,
    accept_token_num: Tensor,
    candidates: Tensor,
    retrive_index: Tensor,
    retrive_next_token: Tensor,
    retrive_next_sibling: Tensor,
    target_predict: Tensor,
) -> None:
    """Walks each tree from its root as long as a child is what the target would have said there; results are in place.

    Args:
        predicts: The target's token at every accepted node, int32 [requests · N]; that of the last accepted node is the
            bonus token.
        accept_index: Rows of the accepted nodes, root first, −1 behind them, int32 [requests, longest accepted path].
        accept_token_num: Accepted draft tokens, root and bonus token not counted, int32 [requests].
        candidates: Token of each node, int64 [requests, N].
        retrive_index: See the module, [requests, N].
        retrive_next_token: Likewise.
        retrive_next_sibling: Likewise.
        target_predict: The target's greedy token after each node, int64 [requests, N].
    """
    said = target_predict.reshape(-1).tolist()
    trees = zip(
        *(t.tolist() for t in (candidates, retrive_index, retrive_next_token, retrive_next_sibling)), strict=True
    )
    longest = accept_index.shape[1]
    paths = [_accepted_path(said, longest, *tree) for tree in trees]
    accept_index.copy_(torch.tensor([path + [-1] * (longest - len(path)) for path in paths]))
    accept_token_num.copy_(torch.tensor([len(path) - 1 for path in paths]))
    accepted = torch.tensor([row for path in paths for row in path])
    predicts[accepted] = target_predict.reshape(-1)[accepted].to(predicts.dtype)


def _accepted_path(
    said: list[int], longest: int, tokens: list[int], rows: list[int], children: list[int], siblings: list[int]
) -> list[int]:
    """Rows of one tree's accepted nodes, root first."""
    path, node = [rows[0]], 0
    while len(path) < longest:
        node = children[node]
        while node != -1 and tokens[node] != said[path[-1]]:
            node = siblings[node]
        if node == -1:
            break
        path.append(rows[node])
    return path


def _parents(selected: list[int], groups: list[int], topk: int) -> list[int]:
    """Parent node of each node; −1 for the root and for a node whose parent was not selected."""
    node_of = {candidate: node for node, candidate in enumerate(selected, start=1)}
    parents = [-1]
    for candidate in selected:
        group = candidate // topk
        parents.append(0 if group == 0 else node_of.get(groups[group], -1))
    return parents


def _links(parents: list[int]) -> tuple[list[int], list[int]]:
    """First child and next sibling of each node, −1 for none; siblings ascend."""
    children, siblings = [-1] * len(parents), [-1] * len(parents)
    for node in range(len(parents) - 1, 0, -1):
        parent = parents[node]
        if parent >= 0:
            siblings[node], children[parent] = children[parent], node
    return children, siblings


def _ancestors(parents: list[int], depth: int) -> list[set[int]]:
    """For each node the nodes it sees: the root, itself and those between, at most `depth` below the root."""
    lines = []
    for node in range(len(parents)):
        line, current = {0}, node
        while current > 0 and len(line) <= depth:
            line.add(current)
            current = parents[current]
        lines.append(line)
    return lines
