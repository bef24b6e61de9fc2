"""Compares every op of the overlay with a computation that shares nothing with it: plain numbers and loops.

Runs in the engine's interpreter: `PYTHONPATH=<overlay> <engine python> op_checks.py`. Prints one JSON object: check →
None, or the failure as text. Cases are random with fixed seeds; a failure names its seed.
"""

from __future__ import annotations

import json
import math
import random
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass

import sgl_kernel
import torch
from sgl_kernel import speculative

CASES = 25


# ---------------------------------------------------------------- attention


@dataclass
class AttentionCase:
    """A random cache and batch: scattered slots, and garbage in unused table entries as the scheduler leaves it."""

    lengths: list[int]
    slots: list[list[int]]
    rows: list[int]
    table: torch.Tensor
    keys: torch.Tensor
    values: torch.Tensor
    heads: int
    scale: float
    cap: float
    window: int

    @classmethod
    def random(cls, rng: random.Random, *, cap: float = 0.0, window: int = 0, group: int = 2) -> AttentionCase:
        torch.manual_seed(rng.randrange(10**6))
        kv_heads, size, requests = rng.choice([1, 2, 3]), rng.choice([4, 8]), rng.randrange(1, 5)
        lengths = [rng.randrange(1, 40) for _ in range(requests)]
        free = list(range(1, 400))
        rng.shuffle(free)
        slots = [[free.pop() for _ in range(length)] for length in lengths]
        table = torch.randint(1, 400, (8, 64), dtype=torch.int32)
        rows = rng.sample(range(8), requests)
        for row, own in zip(rows, slots, strict=True):
            table[row, : len(own)] = torch.tensor(own, dtype=torch.int32)
        keys, values = torch.randn(400, kv_heads, size), torch.randn(400, kv_heads, size + 2)
        return cls(lengths, slots, rows, table, keys, values, kv_heads * group, 0.37, cap, window)

    def expected(self, request: int, query: list[list[float]], seen: list[int]) -> list[list[float]]:
        """Softmax attention of one token, [heads][Dv], over the positions `seen`, one number at a time."""
        group = self.heads // self.keys.shape[1]
        result = []
        for head in range(self.heads):
            rows = [self.slots[request][position] for position in seen]
            scores = []
            for row in rows:
                key = self.keys[row][head // group].tolist()
                score = self.scale * sum(a * b for a, b in zip(query[head], key, strict=True))
                scores.append(self.cap * math.tanh(score / self.cap) if self.cap else score)
            top = max(scores)
            weights = [math.exp(score - top) for score in scores]
            total = sum(weights)
            values = [self.values[row][head // group].tolist() for row in rows]
            result.append(
                [sum(w * v[d] for w, v in zip(weights, values, strict=True)) / total for d in range(len(values[0]))]
            )
        return result


def check_decode(case: AttentionCase, *, store: bool = True) -> None:
    """Decodes one token per request; the token's own key and value come in with the call."""
    requests = len(case.lengths)
    query = torch.randn(requests, case.heads, case.keys.shape[2])
    out = torch.empty(requests, case.heads, case.values.shape[2])
    own = torch.tensor([slots[-1] for slots in case.slots])
    new_keys, new_values = case.keys[own].clone(), case.values[own].clone()
    keys, values = case.keys.clone(), case.values.clone()
    if store:
        keys[own], values[own] = 99.0, 99.0
    sgl_kernel.decode_attention_cpu(
        query, keys, values, 1.0, 1.0, out,
        new_keys.flatten(1) if store else None, new_values.flatten(1) if store else None, own, torch.empty(0),
        case.table, torch.tensor(case.rows), torch.tensor(case.lengths), case.scale, case.cap, False, case.window,
    )  # fmt: skip
    assert torch.equal(keys, case.keys), "the new keys were not stored"
    assert torch.equal(values, case.values), "the new values were not stored"
    for request, length in enumerate(case.lengths):
        seen = [p for p in range(length) if not case.window or p > length - 1 - case.window]
        close(out[request], case.expected(request, query[request].tolist(), seen))


def check_extend(case: AttentionCase, rng: random.Random, *, causal: bool = True, tree: bool = False) -> None:
    """Extends every request by a random number of its last tokens, or by an equal number with a random tree mask."""
    shortest = min(case.lengths)
    new = (
        [rng.randrange(1, shortest + 1)] * len(case.lengths)
        if tree
        else [rng.randrange(0, n + 1) for n in case.lengths]
    )
    starts = [sum(new[:i]) for i in range(len(new))]
    query, out = (torch.randn(sum(new), case.heads, d) for d in (case.keys.shape[2], case.values.shape[2]))
    masks = [[[c == r or (c < r and rng.random() < 0.5) for c in range(n)] for r in range(n)] for n in new]
    flat = torch.tensor([cell for mask in masks for line in mask for cell in line]) if tree else None
    sgl_kernel.extend_attention_cpu(
        query, None, None, out, case.keys, case.values, 1.0, 1.0, case.table, torch.tensor(case.rows),
        torch.tensor(case.lengths), torch.tensor(new), torch.tensor(starts), max(new), case.scale, case.cap,
        False, case.window, None, None, flat, causal,
    )  # fmt: skip
    for request, (length, count) in enumerate(zip(case.lengths, new, strict=True)):
        prefix = length - count
        for index in range(count):
            position, seen = prefix + index, []
            for key in range(length):
                by_order = key <= position or not causal
                visible = (key < prefix or masks[request][index][key - prefix]) if tree else by_order
                if visible and (not case.window or key > position - case.window):
                    seen.append(key)
            got = starts[request] + index
            close(out[got], case.expected(request, query[got].tolist(), seen))


def decode_attention(rng: random.Random) -> None:
    check_decode(AttentionCase.random(rng))


def decode_attention_without_new_keys(rng: random.Random) -> None:
    check_decode(AttentionCase.random(rng), store=False)


def decode_attention_sliding_window(rng: random.Random) -> None:
    check_decode(AttentionCase.random(rng, window=rng.randrange(1, 12)))


def decode_attention_logit_cap(rng: random.Random) -> None:
    check_decode(AttentionCase.random(rng, cap=rng.uniform(0.5, 5.0)))


def decode_attention_grouped_heads(rng: random.Random) -> None:
    check_decode(AttentionCase.random(rng, group=rng.choice([1, 3, 4])))


def extend_attention_causal(rng: random.Random) -> None:
    check_extend(AttentionCase.random(rng), rng)


def extend_attention_not_causal(rng: random.Random) -> None:
    check_extend(AttentionCase.random(rng), rng, causal=False)


def extend_attention_tree_mask(rng: random.Random) -> None:
    check_extend(AttentionCase.random(rng), rng, tree=True)


def extend_attention_sliding_window(rng: random.Random) -> None:
    check_extend(AttentionCase.random(rng, window=rng.randrange(1, 12)), rng)


def extend_attention_sliding_window_tree(rng: random.Random) -> None:
    check_extend(AttentionCase.random(rng, window=rng.randrange(1, 12)), rng, tree=True)


def extend_attention_logit_cap_grouped_heads(rng: random.Random) -> None:
    check_extend(AttentionCase.random(rng, cap=rng.uniform(0.5, 5.0), group=rng.choice([1, 3, 4])), rng)


def attention_refuses_what_it_cannot_do(rng: random.Random) -> None:
    case = AttentionCase.random(rng)
    sinks = torch.zeros(case.heads)
    try:
        sgl_kernel.decode_attention_cpu(
            torch.empty(0), case.keys, case.values, 1.0, 1.0, torch.empty(0), None, None, torch.empty(0),
            torch.empty(0), case.table, torch.empty(0), torch.empty(0), 1.0, 0.0, False, 0, None, sinks,
        )  # fmt: skip
    except NotImplementedError as refusal:
        assert "sinks" in str(refusal)  # noqa: PT017 - pytest is not there
    else:
        raise AssertionError("sinks were silently ignored")


# ---------------------------------------------------------------- trees


@dataclass
class Tree:
    """A tree as a drafter selects it, kept as paths: every node is the tuple of branch numbers that lead to it."""

    topk: int
    steps: int
    selected: list[int]
    groups: list[int]
    paths: list[tuple[int, ...]]

    @classmethod
    def random(cls, rng: random.Random, topk: int, steps: int, nodes: int) -> Tree:
        """Expands step by step: K candidates below the root, then below each of K chosen candidates K more."""
        candidates: list[tuple[int, ...]] = [(branch,) for branch in range(topk)]
        groups, frontier = [-1], list(range(topk))
        for _ in range(steps - 1):
            groups += frontier
            first = len(candidates)
            candidates += [(*candidates[c], branch) for c in frontier for branch in range(topk)]
            frontier = sorted(rng.sample(range(first, len(candidates)), topk))
        order = {path: number for number, path in enumerate(candidates)}
        kept: set[tuple[int, ...]] = set()
        while len(kept) < nodes - 1:  # a selection always holds its parents, for scores fall along a path
            open_now = [p for p in candidates if p not in kept and (len(p) == 1 or p[:-1] in kept)]
            kept.add(rng.choice(open_now))
        paths = sorted(kept, key=order.__getitem__)
        return cls(topk, steps, [order[p] for p in paths], groups, [(), *paths])

    def sees(self, node: int, other: int) -> bool:
        path, prefix = self.paths[node], self.paths[other]
        return path[: len(prefix)] == prefix

    def children(self, node: int) -> list[int]:
        return [n for n, path in enumerate(self.paths) if path and path[:-1] == self.paths[node]]

    def first_child(self, node: int) -> int:
        return next(iter(self.children(node)), -1)

    def next_sibling(self, node: int) -> int:
        if node == 0:
            return -1
        family = self.children(self.paths.index(self.paths[node][:-1]))
        return next((n for n in family if n > node), -1)


def random_trees(rng: random.Random) -> tuple[list[Tree], list[int]]:
    topk, steps = rng.choice([(1, 1), (1, 3), (1, 6), (2, 2), (4, 3), (8, 2), (3, 4)])
    most = topk + (steps - 1) * topk * topk
    nodes = steps + 1 if topk == 1 else rng.randrange(2, min(most, 20) + 2)
    requests = rng.randrange(1, 5)
    return [Tree.random(rng, topk, steps, nodes) for _ in range(requests)], [
        rng.randrange(1, 30) for _ in range(requests)
    ]


def check_build(rng: random.Random, mode: int) -> None:
    trees, lengths = random_trees(rng)
    requests, nodes = len(trees), len(trees[0].paths)
    widths = [length + nodes if mode == 0 else nodes for length in lengths]
    mask = torch.ones(sum(widths) * nodes, dtype=torch.bool)
    positions = torch.empty(requests * nodes, dtype=torch.int64)
    index, child, sibling = torch.full((3, requests, nodes), -7)
    sgl_kernel.build_tree_kernel_efficient_cpu(
        torch.tensor([t.groups for t in trees]), torch.tensor([t.selected for t in trees]), torch.tensor(lengths),
        mask, positions, index, child, sibling, trees[0].topk, trees[0].steps, nodes, mode,
    )  # fmt: skip
    wanted_mask = []
    for tree, length in zip(trees, lengths, strict=True):
        for node in range(nodes):
            wanted_mask += [True] * (length if mode == 0 else 0)
            wanted_mask += [tree.sees(node, other) for other in range(nodes)]
    assert mask.tolist() == wanted_mask, "mask"
    assert index.flatten().tolist() == list(range(requests * nodes)), "retrieve index"
    assert positions.tolist() == [n + len(p) for t, n in zip(trees, lengths, strict=True) for p in t.paths], "positions"
    assert child.tolist() == [[t.first_child(n) for n in range(nodes)] for t in trees], "first children"
    assert sibling.tolist() == [[t.next_sibling(n) for n in range(nodes)] for t in trees], "siblings"


def build_tree_full_mask(rng: random.Random) -> None:
    check_build(rng, 0)


def build_tree_qlen_only(rng: random.Random) -> None:
    check_build(rng, 1)


def reconstruct_indices_from_tree_mask(rng: random.Random) -> None:
    trees, lengths = random_trees(rng)
    requests, nodes = len(trees), len(trees[0].paths)
    # Buffers are as long as the largest batch; what lies behind this one stays.
    mask = torch.tensor([t.sees(n, o) for t in trees for n in range(nodes) for o in range(nodes)] + [True] * 50)
    positions, index, child, sibling = torch.full((4, requests * nodes + 3), -7)
    speculative.reconstruct_indices_from_tree_mask(
        mask, torch.tensor([*lengths, 5]), positions, index, child, sibling, requests, nodes
    )
    rest = [-7] * 3
    assert positions.tolist() == [n + len(p) for t, n in zip(trees, lengths, strict=True) for p in t.paths] + rest
    assert index.tolist() == list(range(requests * nodes)) + rest
    assert child.tolist() == [t.first_child(n) for t in trees for n in range(nodes)] + rest
    assert sibling.tolist() == [t.next_sibling(n) for t in trees for n in range(nodes)] + rest


def verify_tree_greedy(rng: random.Random) -> None:
    trees, _ = random_trees(rng)
    requests, nodes = len(trees), len(trees[0].paths)
    depth = trees[0].steps + 1
    # Siblings of one parent are distinct tokens, as top-k makes them; a small alphabet makes acceptance likely.
    tokens = [[(path[-1] if path else 50) for path in tree.paths] for tree in trees]
    said = [[rng.randrange(trees[0].topk + 1) for _ in range(nodes)] for _ in trees]
    predicts = torch.full((requests * nodes,), -7, dtype=torch.int32)
    accept_index = torch.full((requests, depth), -1, dtype=torch.int32)
    accepted = torch.full((requests,), -7, dtype=torch.int32)
    links = [
        torch.tensor([[link(t, n) for n in range(nodes)] for t in trees])
        for link in (Tree.first_child, Tree.next_sibling)
    ]
    sgl_kernel.verify_tree_greedy_cpu(
        predicts, accept_index, accepted, torch.tensor(tokens), torch.arange(requests * nodes).view(requests, nodes),
        links[0], links[1], torch.tensor(said),
    )  # fmt: skip
    wanted_predicts = [-7] * (requests * nodes)
    for request, tree in enumerate(trees):
        by_path = {path: node for node, path in enumerate(tree.paths)}
        node, walked = 0, [0]
        while (path := (*tree.paths[node], said[request][node])) in by_path:
            node = by_path[path]
            walked.append(node)
        rows = [request * nodes + n for n in walked]
        for n, row in zip(walked, rows, strict=True):
            wanted_predicts[row] = said[request][n]
        assert accept_index[request].tolist() == rows + [-1] * (depth - len(rows)), "accepted rows"
        assert accepted[request].item() == len(walked) - 1, "accepted drafts"
    assert predicts.tolist() == wanted_predicts, "predictions"


# ---------------------------------------------------------------- cache slots


@dataclass
class SlotCase:
    """A random slot table and, for some of its rows, a span of columns."""

    table: torch.Tensor
    rows: list[int]
    starts: list[int]
    ends: list[int]

    @classmethod
    def random(cls, rng: random.Random) -> SlotCase:
        torch.manual_seed(rng.randrange(10**6))
        rows = rng.sample(range(10), rng.randrange(1, 6))
        starts = [rng.randrange(0, 30) for _ in rows]
        ends = [start + rng.randrange(0, 12) for start in starts]
        return cls(torch.randint(0, 10_000, (10, 128), dtype=torch.int32), rows, starts, ends)

    def spans(self) -> list[tuple[int, int]]:
        """(row, column) of every cell of every span, in order."""
        triples = zip(self.rows, self.starts, self.ends, strict=True)
        return [(row, column) for row, start, end in triples for column in range(start, end)]

    def tensors(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return torch.tensor(self.rows), torch.tensor(self.starts), torch.tensor(self.ends)


def assign_req_to_token_pool(rng: random.Random) -> None:
    case = SlotCase.random(rng)
    cells, wanted = case.spans(), case.table.tolist()
    slots = [rng.randrange(10_000) for _ in cells]
    for (row, column), slot in zip(cells, slots, strict=True):
        wanted[row][column] = slot
    rows, starts, ends = case.tensors()
    sgl_kernel.assign_req_to_token_pool_cpu(rows, case.table, starts, ends, torch.tensor(slots, dtype=torch.int64), 128)
    assert case.table.tolist() == wanted


def assign_extend_cache_locs(rng: random.Random) -> None:
    case = SlotCase.random(rng)
    out = torch.full((len(case.spans()) + 2,), -7)
    rows, starts, ends = case.tensors()
    sgl_kernel.assign_extend_cache_locs_cpu(rows, case.table, starts, ends, out, 128)
    table = case.table.tolist()
    assert out.tolist() == [table[row][column] for row, column in case.spans()] + [-7, -7]


def assign_draft_cache_locs_contiguous(rng: random.Random) -> None:
    case = SlotCase.random(rng)
    topk, steps = rng.randrange(1, 5), rng.randrange(1, 7)
    out = torch.full((len(case.rows) * topk * steps,), -7)
    rows, starts, _ = case.tensors()
    sgl_kernel.assign_draft_cache_locs_contiguous_cpu(rows, case.table, starts, out, 128, topk, steps)
    table = case.table.tolist()
    assert out.tolist() == [
        table[row][start + i] for row, start in zip(case.rows, case.starts, strict=True) for i in range(topk * steps)
    ]


def build_draft_decode_metadata(rng: random.Random) -> None:
    case = SlotCase.random(rng)
    topk, steps = rng.randrange(1, 5), rng.randrange(1, 7)
    before = case.table.tolist()
    rows, starts, _ = case.tensors()
    got = sgl_kernel.build_draft_decode_metadata_cpu(case.table, rows, starts, topk, steps, 128)
    wanted = []
    for row, length in zip(case.rows, case.starts, strict=True):
        for branch in range(topk):
            line = list(before[row])
            for step in range(steps):
                line[length + step] = before[row][length + branch * steps + step]
            wanted.append(line)
    assert got.tolist() == wanted
    assert got.dtype == torch.int32
    assert case.table.tolist() == before, "the scheduler's own table was changed"


def fill_accept_out_cache_loc(rng: random.Random) -> None:
    slots = [rng.randrange(10_000) for _ in range(24)]
    accept = [[rng.choice([-1, rng.randrange(24)]) for _ in range(4)] for _ in range(rng.randrange(1, 6))]
    out = torch.full((24,), -7)
    sgl_kernel.fill_accept_out_cache_loc_cpu(torch.tensor(accept, dtype=torch.int32), torch.tensor(slots), out)
    wanted = [slots[index] for line in accept for index in line if index != -1]
    assert out.tolist() == wanted + [-7] * (24 - len(wanted))


def copy_all_layer_kv_cache(rng: random.Random) -> None:
    torch.manual_seed(rng.randrange(10**6))
    dtypes = [torch.bfloat16, torch.float32, torch.bfloat16]
    buffers = [torch.randn(40, rng.choice([1, 2]), 8).to(dtype) for dtype in dtypes]
    before = [buffer.tolist() for buffer in buffers]
    count = rng.randrange(0, 12)
    sources, targets = rng.sample(range(40), count), rng.sample(range(40), count)  # they overlap
    sgl_kernel.copy_all_layer_kv_cache_cpu(
        torch.tensor([buffer.data_ptr() for buffer in buffers], dtype=torch.uint64),
        torch.tensor([buffer[0].nbytes for buffer in buffers]),
        torch.tensor(targets, dtype=torch.int64),
        torch.tensor(sources, dtype=torch.int64),
    )
    moved = dict(zip(targets, sources, strict=True))
    for buffer, old in zip(buffers, before, strict=True):
        assert buffer.tolist() == [old[moved.get(slot, slot)] for slot in range(40)]


# ---------------------------------------------------------------- tokens


def fill_bonus_tokens(rng: random.Random) -> None:
    stride, requests = rng.randrange(1, 8), rng.randrange(1, 6)
    tokens = [[rng.randrange(500) for _ in range(stride)] for _ in range(requests)]
    lengths = [rng.randrange(1, stride + 1) for _ in range(requests)]
    out = torch.full((requests + 2,), -7, dtype=torch.int64)
    flat = torch.tensor(tokens, dtype=torch.int32).flatten()
    sgl_kernel.fill_bonus_tokens_cpu(flat, torch.tensor(lengths, dtype=torch.int32), out, stride)
    assert out.tolist() == [line[n - 1] for line, n in zip(tokens, lengths, strict=True)] + [-7, -7]


def check_rotation(rng: random.Random, *, selected: bool) -> None:
    lists = [[rng.randrange(500) for _ in range(rng.randrange(0, 7))] for _ in range(rng.randrange(1, 6))]
    newest = [rng.randrange(500, 900) for _ in lists]
    starts = [sum(map(len, lists[:i])) for i in range(len(lists))]
    places = [rng.randrange(len(tokens)) if tokens else 0 for tokens in lists]
    wanted = []
    for tokens, new, place in zip(lists, newest, places, strict=True):
        if not tokens:
            continue
        shifted = [*tokens[1:], tokens[-1]]  # the last place keeps its token where the new one goes elsewhere
        shifted[place if selected else -1] = new
        wanted += shifted
    ids = torch.tensor([token for tokens in lists for token in tokens], dtype=torch.int64)
    select = torch.tensor([s + p for s, p in zip(starts, places, strict=True)]) if selected else None
    sgl_kernel.rotate_input_ids_cpu(
        ids,
        torch.tensor(starts),
        torch.tensor([len(tokens) for tokens in lists]),
        torch.tensor(newest)[:, None],
        select,
    )
    assert ids.tolist() == wanted


def rotate_input_ids(rng: random.Random) -> None:
    check_rotation(rng, selected=False)


def rotate_input_ids_at_selected_place(rng: random.Random) -> None:
    check_rotation(rng, selected=True)


# ---------------------------------------------------------------- placeholders


def placeholders_import(rng: random.Random) -> None:
    import torchvision
    import torchvision.transforms.v2.functional
    import triton
    import triton.language as tl
    from torchvision.transforms import InterpolationMode
    from triton.runtime.errors import OutOfResources

    def kernel() -> int:
        return rng.randrange(10)

    assert triton.jit(kernel) is kernel
    assert triton.jit(do_not_specialize=["n"])(kernel) is kernel
    assert isinstance(tl.constexpr, triton.language.constexpr.__class__)
    assert isinstance(OutOfResources, type)
    assert InterpolationMode.BICUBIC.name == "BICUBIC"
    try:
        torchvision.io.decode_jpeg(b"")
    except NotImplementedError as refusal:
        assert "torchvision.io.decode_jpeg" in str(refusal)  # noqa: PT017 - pytest is not there
    else:
        raise AssertionError("a torchvision placeholder pretended to work")


def plugin_is_announced(rng: random.Random) -> None:
    from importlib.metadata import entry_points

    (plugin,) = (p for p in entry_points(group="sglang.srt.plugins") if p.name == "spectune_cpu_reference")
    assert callable(plugin.load())


# The list the test side reads; a check that is missing here fails there.
CHECKS: list[Callable[[random.Random], None]] = [
    decode_attention,
    decode_attention_without_new_keys,
    decode_attention_sliding_window,
    decode_attention_logit_cap,
    decode_attention_grouped_heads,
    extend_attention_causal,
    extend_attention_not_causal,
    extend_attention_tree_mask,
    extend_attention_sliding_window,
    extend_attention_sliding_window_tree,
    extend_attention_logit_cap_grouped_heads,
    attention_refuses_what_it_cannot_do,
    build_tree_full_mask,
    build_tree_qlen_only,
    reconstruct_indices_from_tree_mask,
    verify_tree_greedy,
    assign_req_to_token_pool,
    assign_extend_cache_locs,
    assign_draft_cache_locs_contiguous,
    build_draft_decode_metadata,
    fill_accept_out_cache_loc,
    copy_all_layer_kv_cache,
    fill_bonus_tokens,
    rotate_input_ids,
    rotate_input_ids_at_selected_place,
    placeholders_import,
    plugin_is_announced,
]


def close(got: torch.Tensor, wanted: list[list[float]]) -> None:
    worst = (got.double() - torch.tensor(wanted, dtype=torch.float64)).abs().max().item()
    assert worst < 2e-5, f"off by {worst}"


def run(check: Callable[[random.Random], None]) -> str | None:
    for seed in range(CASES):
        try:
            check(random.Random(seed))
        except Exception:  # noqa: BLE001 - reported as text to the tests
            return f"seed {seed}: {traceback.format_exc()}"
    return None


if __name__ == "__main__":
    torch.set_num_threads(1)
    json.dump({check.__name__: run(check) for check in CHECKS}, sys.stdout)
