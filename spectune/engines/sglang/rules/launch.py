"""Rules on parallelism, graphs and memory: what SGLang settles before attention backends and speculation."""

from __future__ import annotations

from typing import Any

from spectune.engines.sglang.model_config import MULTIMODAL_PREFILL_GRAPHS
from spectune.engines.sglang.rules import memory
from spectune.engines.sglang.rules import names as n
from spectune.engines.sglang.rules.rule import RAN, READ, Rule
from spectune.engines.sglang.rules.state import State

GRAPH_BACKENDS = ("full", "breakable", "disabled")
BACKEND_NAMES = (n.ATTENTION, n.PREFILL_ATTENTION, n.DECODE_ATTENTION, n.DRAFT_ATTENTION)
KEPT_A2A = ("none", "deepep", "megamoe", "flashinfer")


def _graph_backend(state: State) -> tuple[str, Any] | None:
    """Return the first phase with a graph backend SGLang does not have."""
    phases = (("decode", n.DECODE_GRAPH), ("prefill", n.PREFILL_GRAPH))
    named = ((phase, state.values[key]["backend"]) for phase, key in phases)
    return next(((phase, backend) for phase, backend in named if backend not in GRAPH_BACKENDS), None)


def _prefill_graphs_off(state: State) -> bool:
    graph = state.values[n.PREFILL_GRAPH]
    if graph["locked"] or graph["backend"] != "breakable":
        return False
    return (
        state.number("pp-size") > 1
        or state.number("dcp-size") > 1
        or state.number("attn-cp-size") > 1
        or state.on("enable-two-batch-overlap")
        or state.get("moe-a2a-backend") not in KEPT_A2A
        or state.model.architecture == "DeepseekV4ForCausalLM"
        or (state.model.kda and state.model.architecture != "Glm5NextForConditionalGeneration")
        or (state.model.multimodal and state.model.architecture not in MULTIMODAL_PREFILL_GRAPHS)
    )


# fmt: off
PARALLELISM = (
    Rule(
        "dp-attention-spelling", "rewrite", lambda s: s.on("enable-dp-attention"),
        lambda s: "enable-dp-attention is the old spelling of attn-dp-size" if s.attention_dp else "",
        "R16 parallel_hook.py:39", RAN,
        sets=lambda s: {"enable-dp-attention": None} | (
            {"attn-dp-size": s.number("dp-size"), "dp-size": 1} if s.number("attn-dp-size") == 1 else {}),
        advice="write attn-dp-size", since="0.5.22",
    ),
    Rule(
        "backend-alias", "rewrite", lambda s: any(s.get(name) in n.BACKEND_ALIASES for name in BACKEND_NAMES),
        "compressed is dsv4, tokenspeed_mla is cutedsl_mla", "section 6, serving_hook.py:303", READ,
        sets=lambda s: {name: n.BACKEND_ALIASES[s.get(name)] for name in BACKEND_NAMES
                        if s.get(name) in n.BACKEND_ALIASES},
        canonical=True,
    ),
    Rule(
        "device", "rewrite", lambda s: s.get("device") is None, "", "serving_hook.py:648", RAN,
        sets=lambda s: {"device": "cuda" if s.machine is None else s.machine.device},
    ),
    Rule(
        "graph-config", "reject", lambda s: not memory.readable_graph_settings(s),
        "cuda-graph-config must be JSON with the phases decode and prefill", "section 1.2, cuda_graph_config.py:246",
        READ, advice='write {"decode": {"max_bs": 48}} or use cuda-graph-max-bs-decode',
    ),
    Rule(
        "graph-settings", "rewrite", lambda _: True, "", "section 1.2, cuda_graph_hook.py:32", RAN,
        sets=memory.graph_settings,
    ),
    Rule(
        "graph-backend", "reject", lambda s: _graph_backend(s) is not None,
        lambda s: "ValueError: --cuda-graph-config[{}].backend={!r} not allowed; allowed: {}".format(
            *(_graph_backend(s) or ()), GRAPH_BACKENDS), "cuda_graph_hook.py:407", READ,
    ),
    Rule(
        "graph-values", "reject", lambda s: memory.wrong_graph_value(s) is not None,
        lambda s: f"{memory.wrong_graph_value(s)}; SGLang calculates with it and ends in a traceback",
        "memory_hook.py:202", RAN,
    ),
    Rule(
        "graph-sizes-positive", "reject",
        lambda s: s.cpu and bool(s.values[n.DECODE_GRAPH]["bs"]) and max(s.values[n.DECODE_GRAPH]["bs"]) < 1,
        "AssertionError: cuda_graph_config[decode].bs should contain positive batch sizes", "memory_hook.py:228", RAN,
    ),
    Rule(
        "prefill-graphs-off", "rewrite", _prefill_graphs_off,
        "no prefill graphs with pipeline or context parallelism, two-batch overlap, such an all-to-all backend or such "
        "a model", "section 1.1, cuda_graph_hook.py:136", READ,
        sets=lambda s: {n.PREFILL_GRAPH: {**s.values[n.PREFILL_GRAPH], "backend": "disabled"}},
        advice="name cuda-graph-backend-prefill to keep them",
    ),
    Rule(
        "cpu-attention", "rewrite", lambda s: s.cpu and s.get(n.ATTENTION) is None, "", "platform_hook.py:137", RAN,
        sets=lambda _: {n.ATTENTION: "intel_amx"},
    ),
)

MEMORY = (
    Rule(
        "chunk-default", "rewrite", lambda s: s.machine is not None and s.get(n.CHUNK) is None, "",
        "section 1.1, memory_hook.py:89", RAN, sets=lambda s: {n.CHUNK: memory.tier(s)[0]},
    ),
    Rule(
        "decode-graph-list", "rewrite", lambda s: s.machine is not None, "", "sections 1.1, 3, memory_hook.py:89-207",
        RAN, sets=lambda s: {n.DECODE_GRAPH: memory.decode_graph(s)},
    ),
    Rule(
        "prefill-graph-list", "rewrite", lambda s: s.machine is not None, "", "memory_hook.py:233", RAN,
        sets=lambda s: {n.PREFILL_GRAPH: memory.prefill_graph(s)},
    ),
    Rule(
        "memory-fraction", "rewrite", lambda s: s.machine is not None and s.get(n.MEMORY) is None, "",
        "section 1.1, memory_hook.py:281", RAN, sets=lambda s: {n.MEMORY: memory.memory_fraction(s)},
    ),
)

DATA_PARALLELISM = (
    Rule(
        "attention-dp-positive", "reject", lambda s: s.number("attn-dp-size") < 1,
        lambda s: f"ValueError: --attn-dp-size must be positive (got {s.number('attn-dp-size')}).",
        "parallel_hook.py:285", READ, since="0.5.22",
    ),
    Rule(
        "both-data-parallelisms", "reject", lambda s: s.attention_dp and s.number("dp-size") > 1,
        lambda s: (f"ValueError: --dp-size {s.number('dp-size')} with --attn-dp-size {s.number('attn-dp-size')}: "
                   "data-parallel replicas combined with attention data parallelism are not supported."),
        "R16 parallel_hook.py:287", RAN, advice="use one of the two", since="0.5.22",
    ),
    Rule(
        "attention-dp-divides", "reject",
        lambda s: s.attention_dp and s.number("tp-size") % s.attention_groups != 0,
        "AssertionError: ", "R16 parallel_hook.py:326", RAN,
        advice=lambda s: f"tp-size {s.number('tp-size')} must be a multiple of attn-dp-size "
                         f"{s.attention_groups}; SGLang gives no message",
    ),
    Rule(
        "attention-dp-chunk", "rewrite", lambda s: s.attention_dp and s.get(n.CHUNK) is not None,
        "each attention data-parallel group prefills its share of the chunk", "section 1.1, parallel_hook.py:327", RAN,
        sets=lambda s: {n.CHUNK: int(s.values[n.CHUNK]) // s.attention_groups},
    ),
    Rule(
        "dp-head-without-dp", "reject", lambda s: s.on("enable-dp-lm-head") and not s.attention_dp
        and s.number("dp-size") > 1,
        "AssertionError: --enable-dp-lm-head requires attention DP (--attn-dp-size).", "R16 overrides.py:1424", READ,
    ),
    Rule(
        "pp-overlap", "rewrite", lambda s: s.number("pp-size") > 1,
        "pipeline parallelism runs without the overlap schedule", "overrides.py:1624", READ,
        sets=lambda _: {"disable-overlap-schedule": True},
    ),
)
# fmt: on
