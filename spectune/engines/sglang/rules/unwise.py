"""What runs, but hardly as meant, and what is worth knowing."""

from __future__ import annotations

from spectune.engines.sglang.forced_acceptance import forced_length
from spectune.engines.sglang.rules import names as n
from spectune.engines.sglang.rules.memory import LISTED
from spectune.engines.sglang.rules.rule import RAN, READ, Rule
from spectune.engines.sglang.rules.state import State
from spectune.space import is_speculative

COUNTS = ("tp-size", "pp-size", "dp-size", n.PAGE, "max-total-tokens")
TREE_ALGORITHM = "allreduce:tree"


def _uncaptured(state: State) -> bool:
    graph, running = state.get(n.DECODE_GRAPH) or {}, state.get(n.RUNNING)
    if running is None or graph.get("backend") == "disabled" or graph.get("max_bs") is None or state.cpu:
        return False
    return int(running) // state.attention_groups > int(graph["max_bs"])


def _tree_nccl(state: State) -> bool:
    return state.env.get("NCCL_ALGO", "").strip().lower() == "tree" and state.number("tp-size") > 1


def _not_positive(state: State) -> str | None:
    """Return the first count that is below 1."""
    return next((name for name in COUNTS if state.get(name) is not None and int(state.get(name)) < 1), None)


def _unused(state: State) -> list[str]:
    """Return the arguments of speculation that were given."""
    return [name for name in state.given if is_speculative(name) and name != n.ALGORITHM]


def _graphs_beyond(state: State) -> int | None:
    """Return the greatest captured batch where it is none, or more than anybody could list."""
    graph = state.get(n.DECODE_GRAPH) or {}
    most = graph.get("max_bs")
    running = state.get(n.RUNNING)
    if graph.get("backend") == "disabled" or (running is not None and int(running) < 1):  # which is told by itself
        return None
    odd = most is not None and not 1 <= most <= LISTED
    return most if odd else None


def _capture_more(state: State) -> str:
    if state.get(n.GRAPH_SIZES) is not None:  # the list decides alone
        return f"add {state.get(n.RUNNING)} to {n.GRAPH_SIZES}, or raise {n.GRAPH_MOST} without it"
    return f"raise {n.GRAPH_MOST}"


# fmt: off
UNWISE = (
    Rule(
        "counts-positive", "unwise", lambda s: _not_positive(s) is not None,
        lambda s: f"{_not_positive(s)} {s.get(str(_not_positive(s)))} is no count to run with, though it resolves",
        "section 1.1", RAN, advice="from 1 on",
    ),
    Rule(
        "graph-sizes", "unwise", lambda s: _graphs_beyond(s) is not None,
        lambda s: f"decode graphs for batches of up to {_graphs_beyond(s)} requests resolve, but cannot be captured",
        "section 1.1", RAN, advice="cuda-graph-max-bs-decode from 1 to a few hundred",
    ),
    Rule(
        "uncaptured-batches", "unwise", _uncaptured,
        lambda s: (f"{s.get(n.RUNNING)} requests may run, but graphs end at "
                   f"{(s.get(n.DECODE_GRAPH) or {}).get('max_bs')}: larger batches run eagerly"),
        "section 3, decode_cuda_graph_runner.py:887", READ, advice=_capture_more,
    ),
    Rule(
        "token-map-unused", "unwise", lambda s: s.algorithm == "EAGLE3" and s.get("speculative-token-map") is not None,
        "EAGLE3 ignores speculative-token-map", "R13 eagle_worker_v2.py:323", READ,
    ),
    Rule(
        "nccl-tree", "unwise", _tree_nccl,
        "NCCL has no Tree for AllGather: NCCL_ALGO=Tree alone can end tensor parallelism in 'invalid usage'",
        "docs of NCCL_ALGO", READ, advice=f"NCCL_ALGO={TREE_ALGORITHM}",
    ),
    Rule(
        "gpu-uuids", "unwise",
        lambda s: s.number("tp-size") > 1
        and s.env.get("CUDA_VISIBLE_DEVICES", "").upper().startswith(("GPU-", "MIG-")),
        "SGLang's custom all-reduce reads CUDA_VISIBLE_DEVICES as numbers",
        "section 1.3, custom_all_reduce_utils.py:475", READ, advice="name GPUs by index",
    ),
    Rule(
        "forced-acceptance", "unwise",
        lambda s: forced_length(s.env) is not None,
        "SGLANG_SIMULATE_ACC_LEN forces acceptance: outputs and speeds are not the model's", "section 1.3", READ,
        advice="unset it",
    ),
    Rule(
        "dp-attention-alone", "unwise",
        lambda s: s.given.get("enable-dp-attention") is True and not s.attention_dp,
        "enable-dp-attention without a dp-size does nothing: there is one group, and attention is not data parallel",
        "R16 parallel_hook.py:39", RAN, advice="attn-dp-size N, as enable-dp-attention with dp-size N is called now",
    ),
    Rule(
        "unused-speculation", "unwise", lambda s: s.algorithm is None and bool(_unused(s)),
        lambda s: f"{', '.join(_unused(s))} without speculative-algorithm: nothing is drafted", "spec_info.py:32", READ,
        advice="name the algorithm, EAGLE3 for one, or leave them out",
    ),
    Rule(
        "cpu-speculates", "note", lambda s: s.cpu and s.eagle and s.backends == ("intel_amx", "intel_amx"),
        "on a processor without AMX, SGLang falls back to torch_native, which has no drafter; spectune's CPU runtime "
        "keeps intel_amx", "overrides.py:1303", RAN,
    ),
)
# fmt: on
