"""Rules of single architectures, hybrid models and NVFP4 caches: what SGLang 0.5.23's own resolver said of each row."""

from __future__ import annotations

from typing import Any

import pytest

from spectune.engines.sglang.resolution import MACHINES, Model, Resolution, resolve

CHAIN = {
    "speculative-algorithm": "EAGLE3",
    "speculative-draft-model-path": "drafter",
    "speculative-num-steps": 3,
    "speculative-eagle-topk": 1,
    "speculative-num-draft-tokens": 4,
}
TREE = {**CHAIN, "speculative-eagle-topk": 4, "speculative-num-draft-tokens": 8}
NVFP4 = {"kv-cache-dtype": "nvfp4"}
CONFIGS: dict[str, dict[str, Any]] = {
    "granite": {"architectures": ["GraniteMoeHybridForCausalLM"], "layer_types": ["mamba", "attention"]},
    "dense granite": {"architectures": ["GraniteMoeHybridForCausalLM"], "layer_types": ["attention"]},
    "mimo": {"architectures": ["MiMoV2FlashForCausalLM"], "head_dim": 192, "v_head_dim": 128},
    "minimax": {
        "architectures": ["MiniMaxM3SparseForConditionalGeneration"],
        "quantization_config": {
            "quant_method": "mxfp8",
            "moe_quant_algo": "NVFP4",
            "moe_quant_format": "nvfp4-pack-quantized",
        },
    },
}


def resolved(model: str, gpu: str, **arguments: Any) -> Resolution:
    config = CONFIGS.get(model, {"architectures": [model]})
    given = {"model-path": "org/model", **{name.replace("_", "-"): value for name, value in arguments.items()}}
    return resolve(given, model=Model.from_config(config), draft=None, machine=MACHINES[gpu])


@pytest.mark.parametrize(
    ("model", "gpu", "arguments", "expected"),
    [
        ("Gemma4ForConditionalGeneration", "h100", {}, {"attention_backend": "triton"}),
        ("Gemma4ForConditionalGeneration", "b200", CHAIN, {"attention_backend": "trtllm_mha", "page_size": 64}),
        ("Gemma4ForCausalLM", "h100", {"decode-attention-backend": "triton"}, {"attention_backend": "triton"}),
        ("FalconH1ForCausalLM", "b200", {}, {"attention_backend": "triton", "disable_overlap_schedule": False}),
        ("FalconH1ForCausalLM", "h100", CHAIN, {"attention_backend": "fa3"}),
        ("granite", "b200", {}, {"attention_backend": "flashinfer"}),
        ("dense granite", "b200", {}, {"attention_backend": "trtllm_mha"}),
        ("Lfm2ForCausalLM", "b200", CHAIN, {"attention_backend": "flashinfer", "disable_overlap_schedule": True}),
        ("Lfm2ForCausalLM", "h100", {"disable-radix-cache": True}, {"disable_overlap_schedule": False}),
        ("IQuestQ1ForCausalLM", "rtx-pro-6000", {}, {"attention_backend": "fa3"}),
        ("NemotronHForCausalLM", "b200", TREE, {"attention_backend": "triton", "page_size": 1}),
        (
            "NemotronHForCausalLM", "b200", {**CHAIN, "speculative-algorithm": "NEXTN"},
            {"attention_backend": "trtllm_mha", "page_size": 64, "speculative_draft_attention_backend": "trtllm_mha"},
        ),
        ("NemotronHForCausalLM", "rtx-pro-6000", CHAIN, {"attention_backend": "triton"}),
        ("mimo", "b200", {"decode-attention-backend": "triton"}, {"attention_backend": "fa4"}),
        (
            "DeepseekV4ForCausalLM", "h100", {**CHAIN, "speculative-algorithm": "EAGLE"},
            {"attention_backend": "dsv4", "page_size": 256, "max_running_requests": 256},
        ),
        ("MllamaForConditionalGeneration", "h100", {}, {"chunked_prefill_size": -1}),
        (
            "LlamaForCausalLM", "b200", {**CHAIN, **NVFP4},
            {"decode_attention_backend": "trtllm_mha", "speculative_draft_attention_backend": "trtllm_mha"},
        ),
        (
            "LlamaForCausalLM", "b200", {**CHAIN, **NVFP4, "prefill-attention-backend": "flashinfer"},
            {"speculative_attention_mode": "decode", "prefill_attention_backend": "flashinfer"},
        ),
    ],
)  # fmt: skip
def test_what_sglang_picks_for_a_model(
    model: str, gpu: str, arguments: dict[str, Any], expected: dict[str, Any]
) -> None:
    found = resolved(model, gpu, **arguments)
    assert found.status != "rejected", found.findings[-1]
    assert {name: found.resolved.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    ("model", "gpu", "arguments", "rule"),
    [
        ("Gemma4ForCausalLM", "b200", TREE, "topk-trtllm-mha"),
        ("Gemma4ForCausalLM", "h100", {"attention-backend": "fa3"}, "gemma4-backends"),
        ("Olmo2ForCausalLM", "h100", {"attention-backend": "flashinfer"}, "olmo2-backends"),
        ("Lfm2ForCausalLM", "h100", {"attention-backend": "triton"}, "lfm2-backends"),
        ("Lfm2ForCausalLM", "h100", {"page-size": 64}, "mamba-no-buffer-page"),
        ("Lfm2ForCausalLM", "h100", {"mamba-radix-cache-strategy": "extra_buffer"}, "mamba-unbuffered"),
        ("Qwen3NextForCausalLM", "h100", {"mamba-radix-cache-strategy": "no_buffer"}, "mamba-no-buffer-overlap"),
        ("Qwen3NextForCausalLM", "h100", {"page-size": 100}, "mamba-track-pages"),
        ("Qwen3NextForCausalLM", "h100", {**TREE, "mamba-track-interval": 4}, "mamba-track-tokens"),
        ("LlamaForCausalLM", "h100", {"mamba-radix-cache-strategy": "extra_buffer"}, "mamba-state"),
        ("DeepseekV4ForCausalLM", "h100", {**CHAIN, "speculative-algorithm": "NEXTN"}, "deepseek-v4-algorithm"),
        ("DeepseekV4ForCausalLM", "h100", {"speculative-algorithm": "EAGLE"}, "deepseek-v4-topk"),
        ("IQuestQ1ForCausalLM", "h100", CHAIN, "iquest-algorithm"),
        ("IQuestQ1ForCausalLM", "h100", {"speculative-algorithm": "NEXTN"}, "iquest-drafter"),
        ("IQuestQ1ForCausalLM", "h100", {"decode-attention-backend": "triton"}, "iquest-backends"),
        ("minimax", "b200", CHAIN, "minimax-m3-algorithm"),
        ("LlamaForCausalLM", "h100", NVFP4, "nvfp4-machine"),
        ("LlamaForCausalLM", "b200", {**NVFP4, "attention-backend": "triton"}, "nvfp4-prefill"),
        ("LlamaForCausalLM", "b200", {**NVFP4, "decode-attention-backend": "fa4"}, "nvfp4-decode"),
        ("LlamaForCausalLM", "rtx-pro-6000", {**NVFP4, "attention-backend": "trtllm_mha"}, "nvfp4-native-machine"),
        ("LlamaForCausalLM", "b200", {**CHAIN, **NVFP4, "speculative-algorithm": "STANDALONE"}, "nvfp4-algorithm"),
        ("LlamaForCausalLM", "b200", {**NVFP4, "speculative-algorithm": "NGRAM"}, "nvfp4-ngram"),
        ("LlamaForCausalLM", "b200", {**CHAIN, **NVFP4, "speculative-draft-attention-backend": "triton"},
         "nvfp4-draft-backend-named"),
    ],
)  # fmt: skip
def test_what_sglang_refuses_of_a_model(model: str, gpu: str, arguments: dict[str, Any], rule: str) -> None:
    found = resolved(model, gpu, **arguments)
    assert found.status == "rejected"
    assert found.findings[-1].rule == rule


def test_deepep_v2_has_a_budget_of_verified_tokens() -> None:
    given = {**TREE, "moe-a2a-backend": "deepep_v2", "speculative-moe-a2a-backend": "none", "attention-backend": "fa3"}
    assert resolved("Qwen3MoeForCausalLM", "h200", **given, max_running_requests=17).findings[-1].rule == (
        "deepep-v2-budget"
    )
    assert resolved("Qwen3MoeForCausalLM", "h200", **given, max_running_requests=16).status != "rejected"


@pytest.mark.parametrize("config", [{"linear_attn_config": {"kda_layers": [1]}}, {
    "layer_types": ["linear_attention"], "linear_num_heads": 4, "linear_head_dim": 64}])  # fmt: skip
def test_delta_attention_has_no_prefill_graphs(config: dict[str, Any]) -> None:
    model = Model.from_config({"architectures": ["KimiLinearForCausalLM"], **config})
    found = resolve({"model-path": "m"}, model=model, draft=None, machine=MACHINES["h100"])
    assert found.resolved["prefill_cuda_graph"]["backend"] == "disabled"
