"""How long the preflight of a large space takes: a 61-layer, 384-expert target and four drafters, made of sparse files.

python -m benchmarks.preflight_speed [FOLDER]

The target has about 94,000 tensors in 62 shards, each drafter a fusion weight of 7168 × 21504 of which every eighth row
is written. `all zero` is the worst case: a fusion weight is read whole only where the sampled rows hold nothing.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from spectune.engines.sglang.preflight import Checkpoint, preflight
from spectune.engines.sglang.preflight.safetensors_header import BITS

LAYERS, EXPERTS, HIDDEN, EXPERT, VOCABULARY, DRAFTED = 61, 384, 7168, 2048, 163840, 32000
REPEATS = 5
Shapes = Mapping[str, tuple[str, tuple[int, ...]]]

TARGET = {
    "architectures": ["KimiK25ForConditionalGeneration"],
    "text_config": {"hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "vocab_size": VOCABULARY,
                    "max_position_embeddings": 262144},
}  # fmt: skip
DRAFTER = {
    "architectures": ["LlamaForCausalLMEagle3"], "hidden_size": HIDDEN, "num_hidden_layers": 1,
    "vocab_size": VOCABULARY, "draft_vocab_size": DRAFTED, "max_position_embeddings": 262144,
    "eagle_config": {"eagle_aux_hidden_state_layer_ids": [2, 30, 58]},
}  # fmt: skip
DRAFT_SHAPES: Shapes = {
    "d2t": ("I64", (DRAFTED,)), "fc.weight": ("BF16", (HIDDEN, 3 * HIDDEN)),
    "lm_head.weight": ("BF16", (DRAFTED, HIDDEN)), "midlayer.self_attn.q_proj.weight": ("BF16", (HIDDEN, 2 * HIDDEN)),
    "t2d": ("BOOL", (VOCABULARY,)),
}  # fmt: skip


def write_sparse(file: Path, shapes: Shapes) -> dict[str, int]:
    """Write a file of zeros that take no room; return where each tensor begins."""
    header, begins, at = {}, {}, 0
    for name, (dtype, shape) in shapes.items():
        size = math.prod(shape) * BITS[dtype] // 8
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        begins[name], at = at, at + size
    text = json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text)
    with file.open("r+b") as opened:
        opened.truncate(8 + len(text) + at)
    return {name: 8 + len(text) + begin for name, begin in begins.items()}


def target_shards() -> Iterator[Shapes]:
    yield {"language_model.model.embed_tokens.weight": ("BF16", (VOCABULARY, HIDDEN))}
    for layer in range(LAYERS):
        prefix = f"language_model.model.layers.{layer}"
        shapes: dict[str, tuple[str, tuple[int, ...]]] = {f"{prefix}.input_layernorm.weight": ("BF16", (HIDDEN,))}
        for expert in range(EXPERTS):
            for name, shape in (("gate", (EXPERT, HIDDEN)), ("up", (EXPERT, HIDDEN)), ("down", (HIDDEN, EXPERT))):
                shapes[f"{prefix}.mlp.experts.{expert}.{name}_proj.weight"] = ("F8_E4M3", shape)
            shapes[f"{prefix}.mlp.experts.{expert}.down_proj.weight_scale"] = ("F32", (EXPERT // 128,))
        yield shapes


def make_target(folder: Path) -> int:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(TARGET))
    places: dict[str, str] = {}
    for number, shapes in enumerate(target_shards()):
        name = f"model-{number:05}.safetensors"
        write_sparse(folder / name, shapes)
        places |= dict.fromkeys(shapes, name)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    return len(places)


def make_drafter(folder: Path, *, trained: bool = True) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(DRAFTER))
    begins = write_sparse(folder / "model.safetensors", DRAFT_SHAPES)
    row = np.random.default_rng(0).integers(0x3C00, 0x3F00, 3 * HIDDEN, dtype=np.uint16).tobytes()
    with (folder / "model.safetensors").open("r+b") as opened:
        opened.seek(begins["t2d"])
        opened.write(bytes([1]) * DRAFTED + bytes(VOCABULARY - DRAFTED))
        for index in range(0, HIDDEN if trained else 0, 8):
            opened.seek(begins["fc.weight"] + index * len(row))
            opened.write(row)
    return folder


def seconds(target: Path, drafters: list[Path]) -> tuple[float, list[str]]:
    """Judge every drafter from nothing; return the time and what was found."""
    began = time.perf_counter()
    served = Checkpoint.in_folder(target)
    found = [
        one for drafter in drafters for one in preflight(served, Checkpoint.in_folder(drafter), algorithm="EAGLE3")
    ]
    return time.perf_counter() - began, [one.rule for one in found]


def measure(folder: Path) -> None:
    count = make_target(folder / "target")
    drafters = [make_drafter(folder / f"drafter-{number}") for number in range(4)]
    zero = make_drafter(folder / "zero", trained=False)
    print(f"target of {count:,} tensors; median of {REPEATS}, files in the page cache")
    for name, chosen in (("one drafter", drafters[:1]), ("four drafters", drafters), ("one all zero", [zero])):
        runs = sorted((seconds(folder / "target", chosen) for _ in range(REPEATS)), key=lambda run: run[0])
        print(f"{name:14} {runs[REPEATS // 2][0]:6.3f} s   found: {', '.join(runs[0][1]) or 'nothing'}")


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        measure(Path(folder))


if __name__ == "__main__":
    main()
