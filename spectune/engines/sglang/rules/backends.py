"""Which attention backend and page size SGLang chooses (arg_groups/model_override_base.py, overrides.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spectune.engines.sglang.rules import names as n
from spectune.engines.sglang.rules.state import State

HOPPER, BLACKWELL, BLACKWELL_PRO = 90, 100, 120
TRTLLM_MHA_MACHINES = (None, HOPPER, BLACKWELL, BLACKWELL_PRO)
GPT_OSS = ("triton", "trtllm_mha", "fa3", "fa4", "ascend", "intel_amx", "intel_xpu", "aiter")
LLAMA4 = ("fa3", "aiter", "triton", "ascend", "trtllm_mha", "intel_xpu")
LLAMA4_ARCHITECTURES = ("Llama4ForConditionalGeneration", "Llama4ForCausalLM")
DEEPSEEK = frozenset(
    {
        "DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "KimiK25ForConditionalGeneration",
        "MistralLarge3ForCausalLM", "PixtralForConditionalGeneration", "GlmMoeDsaForCausalLM",
        "Glm5NextForConditionalGeneration", "HYV4ForCausalLM", "LongcatFlashForCausalLM", "Dots3NoteForCausalLM",
    }
)  # fmt: skip
# These ask for fa3 from Ampere on.
AMPERE_ON = ("Olmo2ForCausalLM", "Exaone4ForCausalLM", "ExaoneMoEForCausalLM", "ExaoneMoeForCausalLM")
GEMMA4_ARCHITECTURES = (
    "Gemma4ForConditionalGeneration", "Gemma4ForCausalLM", "Gemma4UnifiedForConditionalGeneration",
)  # fmt: skip
GEMMA4 = ("trtllm_mha", "triton", "fa4", "ascend", "intel_xpu", "intel_amx", "aiter")
EXAONE = ("fa3", "triton", "trtllm_mha")
SHORT_CONVOLUTION = ("Lfm2ForCausalLM", "Lfm2MoeForCausalLM")
RECURRENT = ("FalconH1ForCausalLM", "JetNemotronForCausalLM", "JetVLMForConditionalGeneration")
IQUEST = "IQuestQ1ForCausalLM"
DEEPSEEK_V4 = "DeepseekV4ForCausalLM"
NEMOTRON = ("NemotronHForCausalLM", "NemotronHPuzzleForCausalLM", "NemotronH_Omni_Reasoning_V3")
# Architecture → backend on Hopper, on Blackwell (SM100), elsewhere on CUDA; None leaves it to the general rule.
CHOSEN_FOR: dict[str, tuple[str | None, str | None, str | None]] = {
    "GptOssForCausalLM": ("fa3", "trtllm_mha", "triton"),
    "Llama4ForConditionalGeneration": ("fa3", "trtllm_mha", "triton"),
    "Llama4ForCausalLM": ("fa3", "trtllm_mha", "triton"),
    **dict.fromkeys(AMPERE_ON, ("fa3", "trtllm_mha", "fa3")),
    "Step3p5ForCausalLM": ("fa3", "fa4", "fa4"),
    "MiMoV2ForCausalLM": (None, "fa4", None),
    "MiMoV2FlashForCausalLM": (None, "fa4", None),
    **dict.fromkeys(DEEPSEEK, (None, "trtllm_mla", None)),
    **dict.fromkeys(GEMMA4_ARCHITECTURES, ("triton", "trtllm_mha", "triton")),
    **dict.fromkeys(SHORT_CONVOLUTION, (None, "flashinfer", None)),
    **dict.fromkeys(RECURRENT, (None, "triton", None)),
    "GraniteMoeHybridForCausalLM": (None, "flashinfer", None),
    IQUEST: ("fa3", "fa3", "fa3"),
}
# These ask for their choice whatever split backends are named.
WHATEVER_IS_SPLIT = frozenset(
    {*LLAMA4_ARCHITECTURES, *AMPERE_ON, *GEMMA4_ARCHITECTURES, *SHORT_CONVOLUTION, *RECURRENT,
     "GraniteMoeHybridForCausalLM"}
)  # fmt: skip
HYBRID = (
    "Qwen3NextForCausalLM", "Qwen3_5ForConditionalGeneration", "Qwen3_5MoeForConditionalGeneration",
    "InternS2PreviewForConditionalGeneration", "InternS2MobiusForConditionalGeneration",
)  # fmt: skip
DETERMINISTIC_MLA = ("ascend", "fa3", "fa4", "triton")
DETERMINISTIC = ("ascend", "fa3", "fa4", "flashinfer", "intel_xpu", "triton")
MULTI_LAYER = ("Step3p5ForCausalLM", "MiMoV2ForCausalLM", "MiMoV2FlashForCausalLM", "GigaChat35ForCausalLM")
PAGES = {
    "flashmla": ((64,), 64), "trtllm_mla": ((32, 64), 64), "cutedsl_mla": ((32, 64), 64),
    "trtllm_mha": ((16, 32, 64, 128), 64), "hpc_ops": ((64,), 64),
}  # fmt: skip


def unset(state: State) -> bool:
    """Whether nobody has named the attention backend that the model's choice would stand in for."""
    split = () if state.model.architecture in WHATEVER_IS_SPLIT else (n.PREFILL_ATTENTION, n.DECODE_ATTENTION)
    return all(state.get(name) is None for name in (n.ATTENTION, *split))


def model_choice(state: State) -> str | None:
    """Return the backend SGLang prefers for the model's architecture, None without a preference."""
    if state.model.dsa:
        return "dsa"
    if (state.model.architecture or "").startswith("Exaone") and state.model.text("sliding_window_pattern") is None:
        return None
    if state.model.architecture == "GraniteMoeHybridForCausalLM" and not state.model.has_layers("mamba"):
        return None
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
        return "fa4" if state.model.asymmetric else "trtllm_mha"
    return "triton" if state.model.sinks else "flashinfer"


def hybrid_choice(state: State) -> dict[str, Any]:
    """Return backend and page size of a hybrid linear-attention model on Blackwell (model_overrides/qwen3_5.py)."""
    paged = general_choice(state) == "trtllm_mha" and (state.algorithm is not None or state.on("disable-radix-cache"))
    return {n.ATTENTION: "trtllm_mha", n.PAGE: 64} if paged else {n.ATTENTION: "triton", n.PAGE: 1}


def minimax_nvfp4(state: State) -> bool:
    """Whether it is a MiniMax M3 whose experts are packed in NVFP4 (model_overrides/minimax_m3.py:20)."""
    packed = state.model.config.get("quantization_config")
    return (
        (state.model.architecture or "").startswith("MiniMaxM3Sparse")
        and isinstance(packed, Mapping)
        and str(packed.get("moe_quant_algo", "")).upper() == "NVFP4"
        and packed.get("moe_quant_format") == "nvfp4-pack-quantized"
        and state.get("quantization") in (None, "minimax_m3_nvfp4")
    )


def nemotron_choice(state: State) -> dict[str, Any]:
    """Return what a Nemotron-H runs with on Blackwell (model_overrides/nemotron_h.py:123), or nothing."""
    if state.capability not in (BLACKWELL, BLACKWELL_PRO) or not unset(state):
        return {}
    if state.algorithm is None:
        return {n.ATTENTION: "trtllm_mha"} if state.capability == BLACKWELL else {}
    paged = state.capability == BLACKWELL and state.get(n.TOPK) in (None, 1)
    drafters = {"EAGLE", "NEXTN", "DSPARK"} if paged else {"EAGLE", "NEXTN", "DSPARK", "DFLASH"}
    backend = "trtllm_mha" if paged else "flashinfer"
    chosen = {n.ATTENTION: "trtllm_mha" if paged else "triton"}
    if paged and state.get(n.MAMBA_STRATEGY) in (None, "auto"):
        chosen[n.MAMBA_STRATEGY] = "extra_buffer"
    if state.get(n.DRAFT_ATTENTION) is None and state.algorithm in drafters:
        chosen[n.DRAFT_ATTENTION] = backend
    return {**chosen, n.PAGE: state.get(n.PAGE) or 64} if paged else chosen


def deterministic_choice(state: State) -> str:
    """Return the backend for deterministic inference where none is named."""
    if state.capability in (BLACKWELL, BLACKWELL_PRO):
        return "triton" if state.model.mla else "flashinfer"
    return "fa3"


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


def fa4_page(state: State) -> bool:
    """Whether fa4 runs with its own page size."""
    named = (state.get(n.ATTENTION), state.get(n.DECODE_ATTENTION), state.get(n.PREFILL_ATTENTION))
    return (
        "fa4" in named and not state.model.mla and state.capability == BLACKWELL and not state.tree
        and state.get(n.PAGE) != 128
    )  # fmt: skip


def graphs_off(state: State) -> dict[str, Any]:
    """Return both phases without graphs."""
    return {name: {**state.values[name], "backend": "disabled"} for name in (n.DECODE_GRAPH, n.PREFILL_GRAPH)}
