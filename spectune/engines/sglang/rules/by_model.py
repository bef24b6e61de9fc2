"""Rules of single model architectures: the backends and pages SGLang picks for them, and what it refuses of them."""

from __future__ import annotations

from spectune.engines.sglang.rules import backends
from spectune.engines.sglang.rules import names as n
from spectune.engines.sglang.rules.backends import BLACKWELL
from spectune.engines.sglang.rules.kernels import or_take, take
from spectune.engines.sglang.rules.rule import RAN, READ, Rule

# fmt: off
BY_MODEL = (
    Rule(
        "dsa-page", "rewrite", lambda s: s.model.dsa and not s.cpu and s.machine is not None, "",
        "section 1.1, deepseek_v2.py:150", READ,
        sets=lambda s: {n.PAGE: 64 * (s.model.integer("index_kpool") or 1)},
    ),
    Rule(
        "dsa-kv-dtype", "reject",
        lambda s: s.model.dsa and not s.cpu and s.get("kv-cache-dtype") not in ("auto", "bf16", "bfloat16", "fp8_e4m3"),
        "AssertionError: DeepSeek DSA only supports bf16/bfloat16 or fp8_e4m3 kv_cache_dtype", "overrides.py:541", RAN,
        advice="fp8_e4m3 or bfloat16",
    ),
    Rule(
        "hybrid-attention", "rewrite",
        lambda s: s.model.architecture in backends.HYBRID and s.capability == BLACKWELL and s.get(n.ATTENTION) is None,
        "hybrid linear attention has its own backend and page size here", "qwen3_5.py:26", RAN,
        sets=backends.hybrid_choice,
    ),
    Rule(
        "model-attention", "rewrite",
        lambda s: s.capability is not None and backends.unset(s) and backends.model_choice(s) is not None,
        lambda s: f"{s.model.architecture} runs on {backends.model_choice(s)} here",
        "section 1.1, model_overrides/", RAN,
        sets=lambda s: {n.ATTENTION: backends.model_choice(s)},
    ),
    Rule(
        "deepseek-v4", "rewrite",
        lambda s: s.model.architecture == backends.DEEPSEEK_V4 and not s.cpu
        and (s.get(n.ATTENTION), s.get(n.PAGE)) != ("dsv4", 256),
        "DeepSeek V4 runs on its own attention backend, with pages of 256 tokens", "deepseek_v4.py:24", RAN,
        sets=lambda _: {n.ATTENTION: "dsv4", n.PAGE: 256}, since="0.5.15",
    ),
    Rule(
        "deepseek-v4-requests", "rewrite",
        lambda s: s.model.architecture == backends.DEEPSEEK_V4 and s.get(n.RUNNING) is None,
        "Setting max_running_requests to 256 for DeepseekV4ForCausalLM.", "deepseek_v4_hook.py:138", RAN,
        sets=lambda _: {n.RUNNING: 256}, since="0.5.23", advice="pass max-running-requests",
    ),
    Rule(
        "deepseek-v4-algorithm", "reject",
        lambda s: s.model.architecture == backends.DEEPSEEK_V4
        and s.get(n.ALGORITHM) not in (None, "EAGLE", "DSPARK") and s.algorithm is not None,
        "AssertionError: Only EAGLE and DSPARK speculative algorithms are supported for DeepseekV4ForCausalLM",
        "deepseek_v4_hook.py:149", RAN, since="0.5.16", advice="EAGLE, written like this: NEXTN is not taken here",
    ),
    Rule(
        "deepseek-v4-topk", "reject",
        lambda s: s.model.architecture == backends.DEEPSEEK_V4 and s.algorithm == "EAGLE" and s.get(n.TOPK) != 1,
        "AssertionError: Only EAGLE speculative algorithm with topk == 1 is supported for DeepseekV4ForCausalLM",
        "deepseek_v4_hook.py:156", RAN, since="0.5.13", advice="pass speculative-eagle-topk 1",
    ),
    Rule(
        "nemotron-attention", "rewrite",
        lambda s: s.model.architecture in backends.NEMOTRON and bool(backends.nemotron_choice(s)),
        "this hybrid model has attention backends of its own on Blackwell", "nemotron_h.py:123", RAN,
        sets=backends.nemotron_choice, since="0.5.23",
    ),
    Rule(
        "multi-layer-eagle", "rewrite",
        lambda s: s.model.architecture in backends.MULTI_LAYER and s.get(n.ALGORITHM) == "EAGLE",
        "the model's own draft layers run as multi-layer EAGLE", "R24 overrides.py:346", READ,
        sets=lambda _: {"enable-multi-layer-eagle": True},
    ),
    Rule(
        "gpt-oss-backends", "reject",
        lambda s: s.model.architecture == "GptOssForCausalLM" and not set(s.backends) <= set(backends.GPT_OSS),
        lambda s: (f"AssertionError: GptOssForCausalLM requires one of {list(backends.GPT_OSS)} attention backend, but "
                   f"got the following backends\n- Prefill: {s.backends[0]}\n- Decode: {s.backends[1]}\n"),
        "R24 model_hook.py:515", RAN, advice=lambda s: or_take("leave the backend to SGLang", s),
    ),
    Rule(
        "llama4-backends", "reject",
        lambda s: s.model.architecture in backends.LLAMA4_ARCHITECTURES and not s.cpu
        and s.get(n.ATTENTION) not in (None, *backends.LLAMA4),
        lambda s: ("AssertionError: fa3, aiter, triton, ascend, trtllm_mha or intel_xpu is required for Llama4 model "
                   f"but got {s.get(n.ATTENTION)}"), "R24 model_hook.py:615", READ, advice=take,
    ),
    Rule(
        "gemma4-backends", "reject",
        lambda s: s.model.architecture in backends.GEMMA4_ARCHITECTURES
        and not set(s.backends) <= {None, *backends.GEMMA4},
        lambda s: ("AssertionError: Gemma4 only supports trtllm_mha, triton, fa4, ascend, intel_xpu, intel_amx, or "
                   f"aiter attention backend, got prefill={s.backends[0]}, decode={s.backends[1]}"),
        "model_hook.py:653", RAN, since="0.5.15", advice=lambda s: or_take("leave the backend to SGLang", s),
    ),
    Rule(
        "exaone-backends", "reject",
        lambda s: (s.model.architecture or "").startswith("Exaone")
        and s.model.text("sliding_window_pattern") is not None
        and s.get(n.ATTENTION) not in (None, *backends.EXAONE),
        lambda s: (f"AssertionError: One of the attention backends in {list(backends.EXAONE)} is required for "
                   f"{s.model.architecture}, but got {s.get(n.ATTENTION)}"), "model_hook.py:680", READ, since="0.5.15",
        advice=lambda s: or_take("leave the backend to SGLang", s),
    ),
    Rule(
        "olmo2-backends", "reject",
        lambda s: s.model.architecture == "Olmo2ForCausalLM" and s.get(n.ATTENTION) == "flashinfer",
        "AssertionError: FlashInfer backend can significantly degrade the performance of Olmo3 models.",
        "model_hook.py:692", RAN, advice=lambda s: or_take("leave the backend to SGLang", s),
    ),
    Rule(
        "lfm2-backends", "reject",
        lambda s: s.model.architecture in backends.SHORT_CONVOLUTION and s.get(n.ATTENTION) == "triton",
        lambda s: (f"AssertionError: {s.model.architecture} does not support triton attention backend, as the first "
                   "layer might not be an attention layer"), "model_hook.py:722", RAN, since="0.5.10",
        advice=lambda s: or_take("leave the backend to SGLang", s),
    ),
    Rule(
        "minimax-m3-algorithm", "reject",
        lambda s: backends.minimax_nvfp4(s) and s.algorithm not in (None, "DSPARK", "DFLASH"),
        "ValueError: M3.1 NVFP4 only supports DSPARK or DFLASH speculation", "R24 minimax_m3.py:57", READ,
        since="0.5.23", advice="DFLASH or DSPARK with a drafter of theirs",
    ),
    Rule(
        "iquest-backends", "reject",
        lambda s: s.model.architecture == backends.IQUEST
        and not {s.get(name) for name in (n.ATTENTION, n.PREFILL_ATTENTION, n.DECODE_ATTENTION)} <= {None, "fa3"},
        "ValueError: IQuestQ1 applies its attention sink from the softmax LSE and requires FA3 attention for both "
        "prefill and decode.", "R24 iquest_q1.py:20", RAN, advice="fa3", since="0.5.22",
    ),
    Rule(
        "iquest-algorithm", "reject",
        lambda s: s.model.architecture == backends.IQUEST and s.algorithm not in (None, "EAGLE", "NEXTN"),
        "ValueError: IQuest Q1 MTP requires serial EAGLE or NEXTN drafting.", "R24 iquest_q1.py:26", RAN,
        since="0.5.22", advice="NEXTN",
    ),
    Rule(
        "iquest-draft-backend", "reject",
        lambda s: s.model.architecture == backends.IQUEST and s.algorithm is not None
        and s.get(n.DRAFT_ATTENTION) not in (None, "fa3"),
        "ValueError: IQuestQ1 requires FA3 attention for the MTP draft.", "R24 iquest_q1.py:28", READ, since="0.5.22",
        advice="leave speculative-draft-attention-backend out",
    ),
    Rule(
        "iquest-topk", "reject", lambda s: s.model.architecture == backends.IQUEST and s.tree,
        "ValueError: IQuestQ1 speculative decoding requires --speculative-eagle-topk 1.", "R24 iquest_q1.py:33", READ,
        since="0.5.22", advice="top-k 1",
    ),
)
# fmt: on
