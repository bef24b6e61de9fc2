"""What SGLang checks of the resolved arguments before it starts anything (arg_groups/validation_hook.py)."""

from __future__ import annotations

from spectune.engines.sglang.rules import names as n
from spectune.engines.sglang.rules.backends import IQUEST
from spectune.engines.sglang.rules.rule import RAN, READ, Rule
from spectune.engines.sglang.rules.state import State

# configs/model_config.py:2553
UNCHUNKED = (
    "Grok1VForCausalLM", "Grok1AForCausalLM", "LlavaLlamaForCausalLM", "MllamaForConditionalGeneration",
    "MossVLForConditionalGeneration",
)  # fmt: skip
LORA_ALGORITHMS = frozenset({"NGRAM", "EAGLE", "EAGLE3", "DFLASH", "DSPARK"})


def _pipeline_spec(state: State) -> bool:
    return state.env.get("SGLANG_ENABLE_PP_SPEC", "0").lower() in {"1", "true"}


def _dispatched(state: State) -> int:
    """Return the tokens that the largest decode graph sends to the experts of a rank, 0 without DeepEP v2."""
    graph = state.get(n.DECODE_GRAPH) or {}
    if state.get("moe-a2a-backend") != "deepep_v2" or graph.get("backend") == "disabled":
        return 0
    running = state.get(n.RUNNING)
    most = int(graph.get("max_bs") or 0)
    requests = most if running is None else min(most, max(1, int(running) // state.attention_groups))
    return requests * int((state.get(n.DRAFT_TOKENS) if state.algorithm else None) or 1)


def _capacity(state: State) -> int:
    given = state.env.get("SGLANG_DEEPEP_V2_NUM_MAX_DISPATCH_TOKENS_PER_RANK", "")
    return int(given) if given.isdecimal() else 128


# fmt: off
CHECKS = (
    Rule(
        "unchunked-model", "rewrite",
        lambda s: s.model.architecture in UNCHUNKED and s.get(n.CHUNK) not in (None, -1),
        "this model's prompts are prefilled whole", "model_hook.py:1025", RAN, sets=lambda _: {n.CHUNK: -1},
    ),
    Rule(
        "corpus-budget", "reject",
        lambda s: s.algorithm == "NGRAM" and s.get("speculative-ngram-external-corpus-path") is not None
        and (s.get("speculative-ngram-external-sam-budget") or 0) <= 0,
        "ValueError: --speculative-ngram-external-sam-budget must be positive when "
        "--speculative-ngram-external-corpus-path is set.", "section 2.2, speculative_hook.py:1331", READ,
    ),
    Rule(
        "corpus-budget-tokens", "reject",
        lambda s: s.algorithm == "NGRAM" and s.get("speculative-ngram-external-corpus-path") is not None
        and (s.get("speculative-ngram-external-sam-budget") or 0) > s.get(n.DRAFT_TOKENS) - 1,
        lambda s: ("ValueError: speculative_ngram_external_sam_budget must be less than or equal to "
                   f"speculative_num_draft_tokens - 1 ({s.get(n.DRAFT_TOKENS) - 1})."),
        "section 2.2, speculative_hook.py:1342", READ,
    ),
    Rule(
        "mamba-spec-replay", "reject", lambda s: s.on("enable-linear-replayssm-spec") and s.tree,
        lambda s: ("ValueError: --enable-linear-replayssm-spec requires a linear draft chain (--speculative-eagle-topk "
                   "in {None, 1}); the chunked verify kernel uses a strictly-lower causal mask and is invalid for "
                   f"EAGLE tree verify. Got --speculative-eagle-topk={s.get(n.TOPK)!r}."),
        "R19 attention_hook.py:450", READ, advice="top-k 1", since="0.5.23",
    ),
    Rule(
        "unified-memory-algorithm", "reject",
        lambda s: s.on("enable-unified-memory") and s.algorithm is not None
        and s.algorithm not in n.FROM_HIDDEN_STATES,
        lambda s: ("AssertionError: --enable-unified-memory only supports --speculative-algorithm DSPARK, DFLASH, "
                   "EAGLE and EAGLE3; other speculative algorithms are not yet audited for the unified pool's "
                   f"virtual-to-physical loc translation. Got --speculative-algorithm={s.algorithm!r}."),
        "R20 kv_cache_hook.py:588", READ, since="0.5.23",
    ),
    Rule(
        "unified-memory-topk", "reject", lambda s: s.on("enable-unified-memory") and s.get(n.TOPK) not in (None, 1),
        lambda s: ("AssertionError: --enable-unified-memory supports a linear draft chain only "
                   "(--speculative-eagle-topk in {None, 1}); tree verify relocates accepted tokens one at a time "
                   "inside the target pool, which the unified pool's page-granular move_kv_cache cannot express. Got "
                   f"--speculative-eagle-topk={s.get(n.TOPK)!r}."), "R20 kv_cache_hook.py:600", READ,
        advice="top-k 1", since="0.5.23",
    ),
    Rule(
        "iquest-drafter", "reject",
        lambda s: s.model.architecture == IQUEST and s.eagle
        and s.get(n.DRAFT_MODEL) in (None, s.get(n.MODEL)),
        "ValueError: IQuest Q1 requires an independent draft model path.", "R24 speculative_hook.py:1023", RAN,
        since="0.5.22", advice="pass speculative-draft-model-path",
    ),
    Rule(
        "deepep-v2-draft", "reject",
        lambda s: s.algorithm not in (None, "NGRAM")
        and (s.get("speculative-moe-a2a-backend") or s.get("moe-a2a-backend")) == "deepep_v2",
        "ValueError: DeepEP v2 MoE is not validated as a speculative draft backend. Select another "
        "--speculative-moe-a2a-backend.", "R17 moe_hook.py:624", READ, since="0.5.23",
    ),
    Rule(
        "deepep-v2-budget", "reject", lambda s: _dispatched(s) > _capacity(s),
        lambda s: ("ValueError: DeepEP v2 per-rank decode CUDA graph exceeds "
                   f"SGLANG_DEEPEP_V2_NUM_MAX_DISPATCH_TOKENS_PER_RANK: required={_dispatched(s)}, "
                   f"capacity={_capacity(s)}"), "R17 moe_hook.py:679", READ, since="0.5.23",
        advice="a smaller cuda-graph-max-bs-decode, fewer draft tokens, or a greater value of that variable",
    ),
    Rule(
        "nodes-divide", "reject",
        lambda s: int(s.get("nnodes") or 1) > 0
        and s.number("tp-size") * s.number("pp-size") % int(s.get("nnodes") or 1) != 0,
        "AssertionError: tp_size must be divisible by number of nodes", "validation_hook.py:179", RAN,
        advice=lambda s: f"tp-size a multiple of nnodes {s.get('nnodes')}",
    ),
    Rule(
        "padding-and-compile", "reject",
        lambda s: s.on("disable-cuda-graph-padding") and s.on("enable-torch-compile"),
        "AssertionError: --disable-cuda-graph-padding is incompatible with --enable-torch-compile. With padding "
        "disabled, every distinct batch size gets its own torch.compile + Triton autotune cycle (O(max_batch_size) "
        "compilations) instead of the small fixed set of padded bucket sizes, causing engine initialisation to stall "
        "for many minutes. Remove --disable-cuda-graph-padding or --enable-torch-compile.",
        "R14 validation_hook.py:188", RAN, since="0.5.23",
    ),
    Rule(
        "pipeline-parallelism", "reject",
        lambda s: s.number("pp-size") > 1 and s.algorithm is not None
        and (s.algorithm != "EAGLE" or s.on("enable-multi-layer-eagle")),
        "AssertionError: Pipeline parallelism currently only supports EAGLE (non-multi-layer) speculative decoding",
        "R10 validation_hook.py:131", RAN, advice="pp-size 1",
    ),
    Rule(
        "pipeline-parallelism-prefill", "reject",
        lambda s: s.number("pp-size") > 1 and s.algorithm == "EAGLE" and not _pipeline_spec(s)
        and s.get("disaggregation-mode") != "prefill",
        "AssertionError: PP + speculative decoding (MTP) is only supported on prefill nodes "
        "(disaggregation-mode=prefill)", "R10 validation_hook.py:160", RAN, advice="pp-size 1",
    ),
    Rule(
        "lora-algorithm", "reject",
        lambda s: (s.on("enable-lora") or s.get("lora-paths") is not None) and s.algorithm is not None
        and s.algorithm not in LORA_ALGORITHMS,
        lambda s: ("ValueError: LoRA is only compatible with NGRAM, EAGLE, NEXTN, EAGLE3, DFLASH, or DSPARK "
                   f"speculative decoding, not {s.algorithm}."), "R18 lora_hook.py:256", READ, since="0.5.23",
    ),
    Rule(
        "page-zero", "reject",
        lambda s: s.get(n.PAGE) == 0 and (s.get(n.CHUNK) or 0) > 0 and s.get("disaggregation-mode") != "decode",
        "ZeroDivisionError: integer modulo by zero", "validation_hook.py:243", RAN, advice="page-size from 1 on",
    ),
    Rule(
        "chunk-page", "reject",
        lambda s: bool(s.get(n.PAGE)) and (s.get(n.CHUNK) or 0) > 0 and int(s.get(n.CHUNK)) % int(s.get(n.PAGE)) != 0
        and s.get("disaggregation-mode") != "decode",
        "AssertionError: chunked_prefill_size must be divisible by page_size", "R15 validation_hook.py:243", RAN,
        advice=lambda s: f"chunked-prefill-size {s.get(n.CHUNK)} must be a multiple of {s.get(n.PAGE)}",
    ),
)
# fmt: on
