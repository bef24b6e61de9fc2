"""Rules on models that mix attention with recurrent (Mamba, linear-attention) layers: how their prefixes are cached."""

from __future__ import annotations

from spectune.engines.sglang.rules import names as n
from spectune.engines.sglang.rules.rule import RAN, Rule
from spectune.engines.sglang.rules.state import State

INTERVAL = "mamba-track-interval"
# Snapshots of the recurrent state beside the cache (arg_groups/overrides.py:403); all others cache without a buffer.
BUFFERED = frozenset(
    {
        "KimiLinearForCausalLM", "KimiK3ForConditionalGeneration", "BailingMoeV2_5ForCausalLM",
        "BailingMoeV3ForCausalLM", "BailingMoeV3VLForConditionalGeneration", "Qwen3NextForCausalLM",
        "Qwen3_5MoeForConditionalGeneration", "InternS2PreviewForConditionalGeneration",
        "Qwen3_5ForConditionalGeneration", "Qwen3_5MoeForCausalLM", "Qwen3_5ForCausalLM",
        "Qwen4ExpForConditionalGeneration", "MiniCPMV4_6ForConditionalGeneration",
        "MiniCPMV4_7ForConditionalGeneration", "NemotronHForCausalLM", "NemotronHPuzzleForCausalLM",
        "NemotronH_Omni_Reasoning_V3", "FalconH1ForCausalLM", "GraniteMoeHybridForCausalLM",
        "Glm5NextForConditionalGeneration",
    }
)  # fmt: skip
UNBUFFERED = frozenset(
    {
        "JetNemotronForCausalLM", "JetVLMForConditionalGeneration", "Lfm2ForCausalLM", "Lfm2MoeForCausalLM",
        "ZayaForCausalLM",
    }
)  # fmt: skip
# Recurrent by what stands in their config.
BY_CONFIG = frozenset(
    {
        "InternS2MobiusForConditionalGeneration", "InklingForConditionalGeneration",
        "InklingForConditionalGenerationMTP",
    }
)  # fmt: skip


def recurrent(state: State) -> bool:
    """Whether the model's prefixes are cached with a recurrent state."""
    if state.model.architecture not in BUFFERED | UNBUFFERED or state.on("disable-radix-cache"):
        return False
    return state.model.architecture != "GraniteMoeHybridForCausalLM" or state.model.has_layers("mamba")


def strategy(state: State) -> str:
    """Return how prefixes are cached, SGLang's choice where none is named."""
    named = state.get(n.MAMBA_STRATEGY)
    if named not in (None, "auto"):
        return str(named)
    wanted = not state.on("disable-overlap-schedule") or (state.get(n.PAGE) or 1) > 1
    return "extra_buffer" if wanted and _able(state) else "no_buffer"


def _able(state: State) -> bool:
    return state.model.architecture in BUFFERED and state.get("linear-attn-backend") in (None, "triton")


def _buffered(state: State) -> bool:
    return recurrent(state) and strategy(state).startswith("extra_buffer")


def _bare(state: State) -> bool:
    return recurrent(state) and strategy(state) == "no_buffer"


def _interval(state: State) -> int:
    return int(state.get(INTERVAL) or 256)


# fmt: off
HYBRID = (
    Rule(
        "mamba-state", "reject",
        lambda s: s.model.architecture is not None and s.model.architecture not in BY_CONFIG and not recurrent(s)
        and not s.on("disable-radix-cache") and str(s.get(n.MAMBA_STRATEGY)).startswith("extra_buffer"),
        lambda s: (f"ValueError: --{n.MAMBA_STRATEGY} {s.get(n.MAMBA_STRATEGY)} needs mamba state, got "
                   f"{s.model.architecture}."), "model_hook.py:1062", RAN, since="0.5.23", advice="leave it out",
    ),
    Rule(
        "mamba-unbuffered", "reject", lambda s: _buffered(s) and not _able(s),
        lambda s: f"AssertionError: extra_buffer is not supported for {s.model.architecture}; use no_buffer.",
        "mamba_hook.py:113", RAN, since="0.5.15", advice=f"leave {n.MAMBA_STRATEGY} out",
    ),
    Rule(
        "mamba-no-buffer", "rewrite",
        lambda s: recurrent(s) and s.get(n.MAMBA_STRATEGY) in (None, "auto") and strategy(s) == "no_buffer"
        and not s.on("disable-overlap-schedule"),
        "this model's prefixes are cached without a buffer, which runs without the overlap schedule",
        "overrides.py:453", RAN, sets=lambda _: {n.MAMBA_STRATEGY: "no_buffer", "disable-overlap-schedule": True},
        since="0.5.15", advice="disable-radix-cache keeps the overlap schedule",
    ),
    Rule(
        "mamba-device", "reject", lambda s: _buffered(s) and s.cpu,
        "AssertionError: extra_buffer requires platform support for Mamba cache state snapshots.",
        "mamba_hook.py:116", RAN, since="0.5.20", advice=f"{n.MAMBA_STRATEGY} no_buffer, or disable-radix-cache",
    ),
    Rule(
        "mamba-track-tokens", "reject",
        lambda s: _buffered(s) and s.get(n.DRAFT_TOKENS) is not None and s.get(n.DRAFT_TOKENS) > _interval(s),
        "AssertionError: ", "R19 mamba_hook.py:132", RAN, since="0.5.10",
        advice=lambda s: f"{INTERVAL} {_interval(s)} must be at least speculative-num-draft-tokens "
                         f"{s.get(n.DRAFT_TOKENS)}; SGLang gives no message",
    ),
    Rule(
        "mamba-track-pages", "reject",
        lambda s: _buffered(s) and s.get(n.PAGE) is not None and _interval(s) % int(s.get(n.PAGE)) != 0,
        "AssertionError: ", "R19 mamba_hook.py:135", RAN, since="0.5.10",
        advice=lambda s: f"{INTERVAL} {_interval(s)} must be a multiple of page-size {s.get(n.PAGE)}; SGLang gives no "
                         "message",
    ),
    Rule(
        "mamba-no-buffer-page", "reject", lambda s: _bare(s) and s.get(n.PAGE) not in (None, 1),
        "AssertionError: no_buffer only supports page_size=1.", "mamba_hook.py:165", RAN, since="0.5.15",
        advice="page-size 1, or disable-radix-cache",
    ),
    Rule(
        "mamba-no-buffer-overlap", "reject", lambda s: _bare(s) and not s.on("disable-overlap-schedule"),
        "AssertionError: no_buffer do not support overlap schedule. Try to set disable_overlap_schedule=True.",
        "mamba_hook.py:166", RAN, since="0.5.15", advice="disable-overlap-schedule",
    ),
    Rule(
        "mamba-no-buffer-attention", "reject", lambda s: _bare(s) and s.get(n.ATTENTION) == "trtllm_mha",
        "AssertionError: no_buffer do not support trtllm_mha attention backend.", "mamba_hook.py:169", RAN,
        since="0.5.15", advice="attention-backend triton or flashinfer",
    ),
)
# fmt: on
