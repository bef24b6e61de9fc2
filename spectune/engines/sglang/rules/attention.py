"""Rules on attention backends and page sizes for every model, in the order SGLang applies them."""

from __future__ import annotations

from spectune.engines.sglang.rules import backends
from spectune.engines.sglang.rules import names as n
from spectune.engines.sglang.rules.backends import BLACKWELL, BLACKWELL_PRO
from spectune.engines.sglang.rules.kernels import take
from spectune.engines.sglang.rules.rule import RAN, READ, Rule

# fmt: off
ATTENTION = (
    Rule(
        "deterministic-attention", "rewrite",
        lambda s: s.on("enable-deterministic-inference") and s.get(n.ATTENTION) is None and s.capability is not None,
        "deterministic inference has its own default backend", "overrides.py:1093", RAN,
        sets=lambda s: {n.ATTENTION: backends.deterministic_choice(s)}, since="0.5.22",
    ),
    Rule(
        "deterministic-backends", "reject",
        lambda s: s.on("enable-deterministic-inference")
        and s.get(n.ATTENTION) not in (None, *backends.DETERMINISTIC),
        lambda s: (f"ValueError: Currently only {list(backends.DETERMINISTIC)} attention backends are supported for "
                   f"deterministic inference, but you explicitly specified '{s.get(n.ATTENTION)}'."),
        "overrides.py:1117", RAN, advice=take, since="0.5.22",
    ),
    Rule(
        "deterministic-mla", "reject",
        lambda s: s.on("enable-deterministic-inference") and s.model.mla
        and s.get(n.ATTENTION) not in (None, *backends.DETERMINISTIC_MLA),
        lambda s: (f"ValueError: Currently only {list(backends.DETERMINISTIC_MLA)} attention backends are supported "
                   f"for deterministic inference with absorbed-MLA models. But you're using {s.get(n.ATTENTION)}."),
        "attention_hook.py:643", RAN, advice=take, since="0.5.22",
    ),
    Rule(
        "deterministic-mla-fa4", "reject",
        lambda s: s.on("enable-deterministic-inference") and s.model.mla and s.get(n.ATTENTION) == "fa4"
        and s.capability not in (None, BLACKWELL),
        "ValueError: Deterministic inference with absorbed-MLA models on the fa4 attention backend requires "
        "SM100/SM110: it runs absorbed MLA, whose qv argument flash_attn.cute only implements on those archs.",
        "attention_hook.py:648", RAN, advice=take, since="0.5.22",
    ),
    Rule(
        "same-backends", "rewrite",
        lambda s: s.get(n.PREFILL_ATTENTION) is not None and s.get(n.PREFILL_ATTENTION) == s.get(n.DECODE_ATTENTION)
        and s.get(n.ATTENTION) != s.get(n.PREFILL_ATTENTION), "", "overrides.py:1127", RAN,
        sets=lambda s: {n.ATTENTION: s.get(n.PREFILL_ATTENTION)},
    ),
    Rule(
        "attention-default", "rewrite", lambda s: s.capability is not None and s.get(n.ATTENTION) is None, "",
        "section 1.1, model_override_base.py:277", RAN, sets=lambda s: {n.ATTENTION: backends.general_choice(s)},
    ),
    Rule(
        "torch-native-graphs", "rewrite",
        lambda s: s.get(n.ATTENTION) in ("torch_native", "flex_attention"),
        "no graphs with torch's own attention", "R7 attention_hook.py:130", RAN, sets=backends.graphs_off,
    ),
    Rule(
        "flex-attention", "reject",
        lambda s: s.get(n.ATTENTION) == "flex_attention" and s.get(n.ALGORITHM) is not None,
        "AssertionError: Speculative decoding is currently not supported with Flex Attention backend",
        "R7 attention_hook.py:161", RAN, advice=take,
    ),
    Rule(
        "page-snap", "rewrite", lambda s: backends.snapped_page(s) != s.get(n.PAGE),
        lambda s: f"this attention backend runs with pages of {backends.snapped_page(s)} tokens only",
        "section 1.1, overrides.py:1144", RAN, sets=lambda s: {n.PAGE: backends.snapped_page(s)}, canonical=True,
        gist="some attention backends run with pages of their own size only",
    ),
    Rule(
        "trtllm-mla-machine", "reject",
        lambda s: s.capability not in (None, BLACKWELL, BLACKWELL_PRO)
        and "trtllm_mla" in (s.get(n.ATTENTION), s.get(n.DECODE_ATTENTION)),
        "ValueError: TRTLLM MLA backend is only supported on Blackwell GPUs (SM100/SM12x). Please use a different "
        "backend.", "overrides.py:1214", RAN, advice=take,
    ),
    Rule(
        "trtllm-mla-kv-dtype", "reject",
        lambda s: s.get("kv-cache-dtype") not in ("fp8_e4m3", "bf16", "auto")
        and "trtllm_mla" in (s.get(n.ATTENTION), s.get(n.DECODE_ATTENTION)),
        "ValueError: TensorRT-LLM MLA backend only supports kv-cache-dtype of fp8_e4m3, bf16, or auto.",
        "overrides.py:1218", RAN, advice="fp8_e4m3 or bf16",
    ),
    Rule(
        "cutedsl-prefill", "reject", lambda s: s.get(n.PREFILL_ATTENTION) == "cutedsl_mla",
        "AssertionError: CuteDSL MLA only supports decoding for now", "overrides.py:1241", READ,
        advice="trtllm_mla for prefill",
    ),
    Rule(
        "cutedsl-machine", "reject",
        lambda s: s.capability not in (None, BLACKWELL)
        and "cutedsl_mla" in (s.get(n.ATTENTION), s.get(n.DECODE_ATTENTION)),
        "ValueError: CuteDSL MLA backend is only supported on Blackwell GPUs (SM100). Please use a different backend.",
        "overrides.py:1244", RAN, advice=take,
    ),
    Rule(
        "cutedsl-kv-dtype", "reject",
        lambda s: s.get("kv-cache-dtype") not in ("fp8_e4m3", "bf16", "bfloat16", "auto")
        and "cutedsl_mla" in (s.get(n.ATTENTION), s.get(n.DECODE_ATTENTION)),
        "ValueError: CuteDSL MLA backend only supports kv-cache-dtype of fp8_e4m3, bf16, or auto.",
        "overrides.py:1249", RAN, advice="fp8_e4m3 or bf16",
    ),
    Rule(
        "cutedsl-prefill-default", "rewrite",
        lambda s: "cutedsl_mla" in (s.get(n.ATTENTION), s.get(n.DECODE_ATTENTION))
        and s.get(n.PREFILL_ATTENTION) is None, "cutedsl_mla decodes only; trtllm_mla prefills",
        "overrides.py:1257", READ, sets=lambda _: {n.PREFILL_ATTENTION: "trtllm_mla"},
    ),
    Rule(
        "trtllm-mha-prefill-machine", "reject",
        lambda s: s.capability not in backends.TRTLLM_MHA_MACHINES and s.backends[0] == "trtllm_mha",
        "ValueError: TRTLLM MHA backend for prefill requires Hopper (SM90), Blackwell (SM100), or SM120 GPUs. Please "
        "use a different prefill backend.", "attention_hook.py:196", RAN, advice=take,
    ),
    Rule(
        "trtllm-mha-prefill-kv-dtype", "reject",
        lambda s: s.capability == BLACKWELL_PRO and s.backends[0] == "trtllm_mha"
        and s.get("kv-cache-dtype") == "fp8_e4m3",
        "ValueError: TRTLLM FMHAv2 prefill on SM120 does not support fp8_e4m3 KV cache or skip-softmax.",
        "attention_hook.py:204", RAN, advice="another prefill-attention-backend",
    ),
    Rule(
        "trtllm-mha-decode-machine", "reject",
        lambda s: s.capability not in backends.TRTLLM_MHA_MACHINES and s.backends[1] == "trtllm_mha",
        "ValueError: TRTLLM MHA backend for decode is only supported on Hopper (SM90), Blackwell (SM100) and (SM120) "
        "GPUs. Please use a different decode backend.", "attention_hook.py:216", RAN, advice=take,
    ),
    Rule(
        "fa3-kv-dtype", "rewrite", lambda s: s.get(n.ATTENTION) == "fa3" and s.get("kv-cache-dtype") == "fp8_e5m2",
        "fa3 has no fp8_e5m2 KV cache: triton runs instead", "overrides.py:1262", READ,
        sets=lambda _: {n.ATTENTION: "triton"}, advice="fp8_e4m3 keeps fa3",
    ),
    Rule(
        "fa4-page", "rewrite", backends.fa4_page, "fa4 runs with pages of 128 tokens here", "overrides.py:1274", RAN,
        sets=lambda _: {n.PAGE: 128},
    ),
    Rule(
        "page-default", "rewrite", lambda s: s.get(n.PAGE) is None, "", "overrides.py:1341", RAN,
        sets=lambda _: {n.PAGE: 1},
    ),
)
# fmt: on
