"""Model folders made for tests: well-formed ones, small, and each changed where a test wants it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

HIDDEN, LAYERS, VOCABULARY, DRAFTED = 16, 8, 64, 32
NUMPY = {"F32": np.float32, "F16": np.float16, "I64": np.int64, "BOOL": np.bool_, "I32": np.int32, "U8": np.uint8}
TOKENS = {f"t{index}": index for index in range(VOCABULARY)}

TARGET = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN, "num_hidden_layers": LAYERS,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": VOCABULARY, "max_position_embeddings": 4096,
}  # fmt: skip
STANDALONE = {**TARGET, "num_hidden_layers": 1}
EAGLE3 = {
    **TARGET, "architectures": ["LlamaForCausalLMEagle3"], "num_hidden_layers": 1, "draft_vocab_size": DRAFTED,
    "eagle_config": {"use_aux_hidden_state": True, "eagle_aux_hidden_state_layer_ids": [1, 3, 4]},
}  # fmt: skip
EAGLE1 = {**TARGET, "architectures": ["LlamaForCausalLMEagle"], "num_hidden_layers": 1}
MTP = {
    "architectures": ["DeepseekV3ForCausalLM"], "hidden_size": HIDDEN, "num_hidden_layers": 4, "vocab_size": VOCABULARY,
    "max_position_embeddings": 4096, "num_nextn_predict_layers": 1,
}  # fmt: skip


def weight(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def chosen() -> np.ndarray[Any, Any]:
    """The target's tokens that an EAGLE-3 drafter knows: every second one."""
    return np.arange(0, VOCABULARY, 2)


def eagle3_tensors() -> dict[str, np.ndarray[Any, Any]]:
    return {
        "d2t": chosen() - np.arange(DRAFTED),
        "fc.weight": weight(HIDDEN, 3 * HIDDEN),
        "lm_head.weight": weight(DRAFTED, HIDDEN),
        "midlayer.self_attn.q_proj.weight": weight(HIDDEN, 2 * HIDDEN),
        "t2d": np.isin(np.arange(VOCABULARY), chosen()),
    }


def whole_tensors(layers: int = LAYERS) -> dict[str, np.ndarray[Any, Any]]:
    names = [f"model.layers.{layer}.mlp.up_proj.weight" for layer in range(layers)]
    return {"model.embed_tokens.weight": weight(VOCABULARY, HIDDEN), **{name: weight(HIDDEN, HIDDEN) for name in names}}


def packed(tensors: Mapping[str, np.ndarray[Any, Any]]) -> bytes:
    """Return a safetensors file; the format is a length, a JSON header and the bytes one after another."""
    kinds = {np.dtype(kind): name for name, kind in NUMPY.items()}
    header, body = {}, b""
    for name, values in tensors.items():
        content = np.ascontiguousarray(values).tobytes()
        header[name] = {"dtype": kinds[values.dtype], "shape": list(values.shape),
                        "data_offsets": [len(body), len(body) + len(content)]}  # fmt: skip
        body += content
    return with_header(json.dumps(header), body)


def with_header(header: str, body: bytes = b"") -> bytes:
    return len(header.encode()).to_bytes(8, "little") + header.encode() + body


def write(folder: Path, config: Mapping[str, Any], tensors: Mapping[str, np.ndarray[Any, Any]] | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"type": "BPE", "vocab": TOKENS}}))
    if tensors is not None:
        (folder / "model.safetensors").write_bytes(packed(tensors))
    return folder
