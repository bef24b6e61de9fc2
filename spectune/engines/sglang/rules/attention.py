"""Rules on attention backends and page sizes, in the order SGLang applies them."""

from __future__ import annotations

from typing import Any

from spectune.engines.sglang.rules import names as n
from spectune.engines.sglang.rules.rule import RAN, READ, Rule
from spectune.engines.sglang.rules.state import State

HOPPER, BLACKWELL, BLACKWELL_PRO = 90, 100, 120
GPT_OSS = ("triton", "trtllm_mha", "fa3", "fa4", "ascend", "intel_amx", "intel_xpu", "aiter")
LLAMA4 = ("fa3", "aiter", "triton", "ascend", "trtllm_mha", "intel_xpu")
LLAMA4_ARCHITECTURES = ("Llama4ForConditionalGeneration", "Llama4ForCausalLM")
DEEPSEEK = frozenset(
    """
    DeepseekV3ForCausalLM DeepseekV32ForCausalLM KimiK25ForConditionalGeneration MistralLarge3ForCausalLM
    PixtralForConditionalGeneration GlmMoeDsaForCausalLM Glm5NextForConditionalGeneration HYV4ForCausalLM
    LongcatFlashForCausalLM Dots3NoteForCausalLM
    """.split()
)
# Architecture → backend on Hopper, on Blackwell (SM100), elsewhere on CUDA; None leaves it to the general rule.
CHOSEN_FOR: dict[str, tuple[str | None, str | None, str | None]] = {
    "GptOssForCausalLM": ("fa3", "trtllm_mha", "triton"),
    "Llama4ForConditionalGeneration": ("fa3", "trtllm_mha", "triton"),
    "Llama4ForCausalLM": ("fa3", "trtllm_mha", "triton"),
    "Olmo2ForCausalLM": ("fa3", "trtllm_mha", "triton"),
    "Step3p5ForCausalLM": ("fa3", "fa4", "fa4"),
    "MiMoV2ForCausalLM": (None, "fa4", None),
    "MiMoV2FlashForCausalLM": (None, "fa4", None),
    **dict.fromkeys(DEEPSEEK, (None, "trtllm_mla", None)),
}
MULTI_LAYER = ("Step3p5ForCausalLM", "MiMoV2ForCausalLM", "MiMoV2FlashForCausalLM", "GigaChat35ForCausalLM")
PAGES = {
    "flashmla": ((64,), 64), "trtllm_mla": ((32, 64), 64), "cutedsl_mla": ((32, 64), 64),
    "trtllm_mha": ((16, 32, 64, 128), 64), "hpc_ops": ((64,), 64),
}  # fmt: skip


def _unset(state: State) -> bool:
    return all(state.get(name) is None for name in (n.ATTENTION, n.PREFILL_ATTENTION, n.DECODE_ATTENTION))


def model_choice(state: State) -> str | None:
    """Return the backend SGLang prefers for the model's architecture, None without a preference."""
    if state.model.dsa:
        return "dsa"
    row = CHOSEN_FOR.get(state.model.architecture or "", (None, None, None))
    return row[{HOPPER: 0, BLACKWELL: 1}.get(state.capability or 0, 2)]


def general_choice(state: State) -> str:
    """Return the backend SGLang takes without a preference; it looks at the K that was given, not the resolved one."""
    capability = state.capability
    if state.model.mla:
        return {HOPPER: "fa3", BLACKWELL: "flashinfer"}.get(capability or 0, "triton")
    topk = state.get(n.TOPK)
    chain = topk is None or (topk == 1 and state.get(n.PAGE) in (None, 1))
    if capability == HOPPER and chain:
        return "fa3"
    settled = state.algorithm is None or topk is not None or state.algorithm == "DFLASH"
    if capability == BLACKWELL and chain and settled:
        return "trtllm_mha"
    return "triton" if state.model.sinks else "flashinfer"


def _served_by(state: State, backend: str) -> bool:
    """Whether a page rule of the backend applies: MLA backends snap as base or decode backend only."""
    named = [state.get(n.ATTENTION), state.get(n.DECODE_ATTENTION)]
    if backend in {"cutedsl_mla", "trtllm_mha", "hpc_ops"}:
        named.append(state.get(n.PREFILL_ATTENTION))
    if backend == "trtllm_mha":
        named.append(state.get(n.DRAFT_ATTENTION))
    return backend in named


def snapped_page(state: State) -> Any:
    """Return the page size after each backend in use has had its say."""
    page = state.get(n.PAGE)
    for backend, (served, otherwise) in PAGES.items():
        if _served_by(state, backend) and page not in served:
            page = otherwise
    return page


def _fa4_page(state: State) -> bool:
    named = (state.get(n.ATTENTION), state.get(n.DECODE_ATTENTION), state.get(n.PREFILL_ATTENTION))
    return (
        "fa4" in named and not state.model.mla and state.capability == BLACKWELL and not state.tree
        and state.get(n.PAGE) != 128
    )  # fmt: skip


def _graphs_off(state: State) -> dict[str, Any]:
    return {name: {**state.values[name], "backend": "disabled"} for name in (n.DECODE_GRAPH, n.PREFILL_GRAPH)}


# fmt: off
ATTENTION = (
    Rule(
        "dsa-page", "rewrite", lambda s: s.model.dsa and not s.cpu and s.machine is not None, "",
        "section 1.1, deepseek_v2.py:150", READ,
        sets=lambda s: {n.PAGE: 64 * (s.model.integer("index_kpool") or 1)},
    ),
    Rule(
        "model-attention", "rewrite", lambda s: s.capability is not None and _unset(s) and model_choice(s) is not None,
        lambda s: f"{s.model.architecture} runs on {model_choice(s)} here", "section 1.1, model_overrides/", RAN,
        sets=lambda s: {n.ATTENTION: model_choice(s)},
    ),
    Rule(
        "multi-layer-eagle", "rewrite",
        lambda s: s.model.architecture in MULTI_LAYER and s.get(n.ALGORITHM) == "EAGLE",
        "the model's own draft layers run as multi-layer EAGLE", "R24 overrides.py:346", READ,
        sets=lambda s: {"enable-multi-layer-eagle": True},
    ),
    Rule(
        "gpt-oss-backends", "reject",
        lambda s: s.model.architecture == "GptOssForCausalLM" and not set(s.backends) <= set(GPT_OSS),
        lambda s: (f"AssertionError: GptOssForCausalLM requires one of {list(GPT_OSS)} attention backend, but got the "
                   f"following backends\n- Prefill: {s.backends[0]}\n- Decode: {s.backends[1]}\n"),
        "R24 model_hook.py:515", RAN, advice="leave the backend to SGLang, or take triton",
    ),
    Rule(
        "llama4-backends", "reject",
        lambda s: s.model.architecture in LLAMA4_ARCHITECTURES and not s.cpu and s.get(n.ATTENTION) not in LLAMA4,
        lambda s: ("AssertionError: fa3, aiter, triton, ascend, trtllm_mha or intel_xpu is required for Llama4 model "
                   f"but got {s.get(n.ATTENTION)}"), "R24 model_hook.py:615", READ,
    ),
    Rule(
        "same-backends", "rewrite",
        lambda s: s.get(n.PREFILL_ATTENTION) is not None and s.get(n.PREFILL_ATTENTION) == s.get(n.DECODE_ATTENTION)
        and s.get(n.ATTENTION) != s.get(n.PREFILL_ATTENTION), "", "overrides.py:1127", RAN,
        sets=lambda s: {n.ATTENTION: s.get(n.PREFILL_ATTENTION)},
    ),
    Rule(
        "attention-default", "rewrite", lambda s: s.capability is not None and s.get(n.ATTENTION) is None, "",
        "section 1.1, model_override_base.py:277", RAN, sets=lambda s: {n.ATTENTION: general_choice(s)},
    ),
    Rule(
        "torch-native-graphs", "rewrite",
        lambda s: s.get(n.ATTENTION) in ("torch_native", "flex_attention"),
        "no graphs with torch's own attention", "R7 attention_hook.py:130", RAN, sets=_graphs_off,
    ),
    Rule(
        "flex-attention", "reject",
        lambda s: s.get(n.ATTENTION) == "flex_attention" and s.get(n.ALGORITHM) is not None,
        "AssertionError: Speculative decoding is currently not supported with Flex Attention backend",
        "R7 attention_hook.py:161", RAN, advice="take triton",
    ),
    Rule(
        "page-snap", "rewrite", lambda s: snapped_page(s) != s.get(n.PAGE),
        lambda s: f"this attention backend runs with pages of {snapped_page(s)} tokens only",
        "section 1.1, overrides.py:1144", RAN, sets=lambda s: {n.PAGE: snapped_page(s)}, canonical=True,
    ),
    Rule(
        "trtllm-mla-machine", "reject",
        lambda s: s.capability not in (None, BLACKWELL, BLACKWELL_PRO)
        and "trtllm_mla" in (s.get(n.ATTENTION), s.get(n.DECODE_ATTENTION)),
        "ValueError: TRTLLM MLA backend is only supported on Blackwell GPUs (SM100/SM12x). Please use a different "
        "backend.", "overrides.py:1214", RAN, advice="fa3 or triton on this GPU",
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
        "overrides.py:1244", RAN, advice="fa3 or triton on this GPU",
    ),
    Rule(
        "cutedsl-prefill-default", "rewrite",
        lambda s: "cutedsl_mla" in (s.get(n.ATTENTION), s.get(n.DECODE_ATTENTION))
        and s.get(n.PREFILL_ATTENTION) is None, "cutedsl_mla decodes only; trtllm_mla prefills",
        "overrides.py:1257", READ, sets=lambda s: {n.PREFILL_ATTENTION: "trtllm_mla"},
    ),
    Rule(
        "fa3-kv-dtype", "rewrite", lambda s: s.get(n.ATTENTION) == "fa3" and s.get("kv-cache-dtype") == "fp8_e5m2",
        "fa3 has no fp8_e5m2 KV cache: triton runs instead", "overrides.py:1262", READ,
        sets=lambda s: {n.ATTENTION: "triton"}, advice="fp8_e4m3 keeps fa3",
    ),
    Rule(
        "fa4-page", "rewrite", _fa4_page, "fa4 runs with pages of 128 tokens here", "overrides.py:1274", RAN,
        sets=lambda s: {n.PAGE: 128},
    ),
    Rule(
        "page-default", "rewrite", lambda s: s.get(n.PAGE) is None, "", "overrides.py:1341", RAN,
        sets=lambda s: {n.PAGE: 1},
    ),
)
# fmt: on
