"""What SGLang's rules ask of a model: read from its config.json, never from its weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spectune.typed_json import mapping_of, whole_number

# SGLang has no single test for multi-head latent attention: it lists architectures (configs/model_config.py:1362-1515).
MLA_ARCHITECTURES = frozenset(
    {
        "DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "DeepseekV3ForCausalLMNextN",
        "Glm4MoeLiteForCausalLM", "GlmMoeDsaForCausalLM", "Glm5NextForConditionalGeneration",
        "LongcatFlashForCausalLM", "HYV4ForCausalLM", "DotsVLMForCausalLM", "Dots3NoteForCausalLM",
        "MistralLarge3ForCausalLM", "MistralLarge3ForCausalLMEagle", "KimiK25ForConditionalGeneration",
        "Eagle3DeepseekV2ForCausalLM", "GigaChat35ForCausalLM", "MiniCPM3ForCausalLM",
        "KimiVLForConditionalGeneration", "KimiLinearForCausalLM", "KimiK3LinearForCausalLM",
        "KimiK3ForConditionalGeneration", "BailingMoeV2_5ForCausalLM", "BailingMoeV3ForCausalLM",
        "BailingMoeV3VLForConditionalGeneration", "SarvamMLAForCausalLM",
    }
)  # fmt: skip
MLA_WITH_RANK = frozenset({"PixtralForConditionalGeneration", "DeepseekVL2ForCausalLM"})
# DeepSeek sparse attention, where the config also has `index_topk` (configs/model_config.py:191).
DSA_ARCHITECTURES = frozenset(
    {
        "DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "MistralLarge3ForCausalLM",
        "PixtralForConditionalGeneration", "GlmMoeDsaForCausalLM", "Glm5NextForConditionalGeneration",
        "LongcatFlashForCausalLM", "Dots3NoteForCausalLM", "HYV4ForCausalLM",
    }
)  # fmt: skip
# Multimodal architectures that keep their prefill graphs (configs/model_config.py:2501).
MULTIMODAL_PREFILL_GRAPHS = frozenset(
    {
        "MiniMaxM3SparseForConditionalGeneration", "Cohere2VisionForConditionalGeneration",
        "Glm5NextForConditionalGeneration", "InternS2MobiusForConditionalGeneration",
        "PaddleOCRVLForConditionalGeneration", "Qwen3_5ForConditionalGeneration",
        "Qwen3_5MoeForConditionalGeneration", "Qwen4ExpForConditionalGeneration",
        "MuseGlimmerForConditionalGeneration", "MuseSparkForConditionalGeneration", "KimiK3ForConditionalGeneration",
        "KimiK25ForConditionalGeneration", "MiniMaxM3SparseForCausalLM",
    }
)  # fmt: skip
SINK_ARCHITECTURES = frozenset(
    {"GptOssForCausalLM", "GraniteSWAForCausalLM", "GraniteMoeSWAForCausalLM", "IQuestQ1ForCausalLM"}
)


# Served as text models unless --enable-multimodal is given (configs/model_config.py:692).
TEXT_BY_DEFAULT = frozenset(
    {
        "Gemma3ForConditionalGeneration", "Llama4ForConditionalGeneration", "Step3VLForConditionalGeneration",
        "InklingForConditionalGeneration",
    }
)  # fmt: skip

CONTEXT_KEYS = ("max_sequence_length", "seq_length", "max_seq_len", "model_max_length", "max_position_embeddings")


@dataclass(frozen=True)
class Model:
    """A target or draft model.

    Attributes:
        architecture: First of the config's `architectures`; None when nothing is known of the model.
        mla: Whether SGLang runs it with multi-head latent attention.
        config: The whole config.json.
    """

    architecture: str | None
    mla: bool
    config: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Model:
        """Return the model a config.json describes."""
        named = config.get("architectures")
        architecture = str(named[0]) if isinstance(named, list | tuple) and named else None
        ranked = cls(architecture, False, config).text("kv_lora_rank") is not None
        mla = architecture in MLA_ARCHITECTURES or (architecture in MLA_WITH_RANK and ranked)
        return cls(architecture, mla, config)

    @classmethod
    def from_folder(cls, folder: Path) -> Model:
        """Return the model in a folder; an unknown one when it has no readable config.json."""
        file = folder / "config.json"
        try:
            config = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None  # a pipe would never end
        except (OSError, ValueError, RecursionError):
            return cls.unknown()
        return cls.from_config(config) if isinstance(config, dict) else cls.unknown()

    @classmethod
    def unknown(cls) -> Model:
        """Return a model of which nothing is known; rules that ask about it do not apply."""
        return cls(None, False)

    def text(self, key: str) -> Any:
        """Return a value of the language model's part of the config; None when it is not there."""
        inner = mapping_of(self.config.get("text_config")).get(key)
        return self.config.get(key) if inner is None else inner

    def integer(self, key: str) -> int | None:
        """Return a whole number of the language model's part of the config."""
        return whole_number(self.text(key))

    @property
    def rope_scaling(self) -> Mapping[str, Any]:
        """How positions are stretched; transformers 5 calls it `rope_parameters`."""
        return mapping_of(self.text("rope_scaling") or self.text("rope_parameters"))

    @property
    def context_length(self) -> int | None:
        """Tokens SGLang derives from it (utils/hf_transformers/common.py:677); None where it says nothing usable."""
        length = next((found for key in CONTEXT_KEYS if (found := self.integer(key)) is not None), None)
        scaling = self.rope_scaling
        stretched = "original_max_position_embeddings" in scaling or scaling.get("rope_type") == "llama3"
        factor = 1 if stretched else scaling.get("factor", 1)
        if length is None or not isinstance(factor, int | float) or isinstance(factor, bool):
            return None
        try:
            return int(length * factor)
        except (ValueError, OverflowError):  # a factor that is not finite: JSON knows it no less than Python
            return None

    def has_layers(self, kind: str) -> bool:
        """Whether some of its layers are of a kind, such as `mamba`."""
        layers = self.text("layer_types")
        return isinstance(layers, list | tuple) and kind in layers

    @property
    def asymmetric(self) -> bool:
        """Whether its keys and values differ in width."""
        return not self.mla and self.integer("v_head_dim") not in (None, self.integer("head_dim"))

    @property
    def kda(self) -> bool:
        """Whether it has Kimi's delta attention (configs/model_config.py:230)."""
        linear = self.text("linear_attn_config")
        named = isinstance(linear, Mapping) and bool(linear.get("kda_layers"))
        sized = None not in (self.text("linear_num_heads"), self.text("linear_head_dim"))
        return named or (sized and self.has_layers("linear_attention"))

    @property
    def dsa(self) -> bool:
        """Whether it has DeepSeek's sparse attention."""
        return self.architecture in DSA_ARCHITECTURES and self.text("index_topk") is not None

    @property
    def sinks(self) -> bool:
        """Whether it has attention sinks, which flashinfer does not serve."""
        return self.architecture in SINK_ARCHITECTURES or bool(self.text("learnable_sink"))

    @property
    def multimodal(self) -> bool:
        """Whether it has a vision part; SGLang keeps memory for it and captures no prefill graphs."""
        return self.architecture not in TEXT_BY_DEFAULT and isinstance(self.config.get("vision_config"), Mapping)
