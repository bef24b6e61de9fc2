"""Asks the real SGLang and spectune's table of rules the same random launches and prints where they differ.

    python benchmarks/resolver_agreement.py ENGINE_PYTHON MODELS [--launches 400] [--seed 0]

ENGINE_PYTHON has SGLang 0.5.23 (for the CPU reference runtime, with its variables set); MODELS holds folders with a
config.json each. GPUs are stood in for by their facts, so none is needed.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import subprocess
from collections import Counter
from importlib import resources
from pathlib import Path
from typing import Any

from spectune.engines.sglang.arguments import to_argv
from spectune.engines.sglang.resolution import MACHINES, Machine, Model, Resolution, resolve
from spectune.engines.sglang.rules.eagle import draft_token_bounds

BACKENDS = ("triton", "flashinfer", "fa3", "fa4", "trtllm_mha", "trtllm_mla", "flashmla", "torch_native",
            "flex_attention", "cutedsl_mla", "intel_amx")  # fmt: skip
# Name → how often it is given, and its values.
CHOICES: dict[str, tuple[float, tuple[Any, ...]]] = {
    "speculative-algorithm": (0.85, ("EAGLE", "EAGLE3", "eagle3", "NEXTN", "STANDALONE", "NGRAM", "DFLASH", "FOO")),
    "speculative-num-steps": (0.8, (-1, 0, 1, 2, 3, 5, 7)),
    "speculative-eagle-topk": (0.8, (1, 1, 2, 4, 8)),
    "speculative-num-draft-tokens": (0.75, (1, 2, 4, 8, 16, 64)),
    "speculative-draft-model-path": (0.8, ("draft",)),
    "speculative-draft-attention-backend": (0.1, BACKENDS),
    "speculative-attention-mode": (0.2, ("prefill", "decode")),
    "speculative-adaptive": (0.1, (True,)),
    "speculative-use-rejection-sampling": (0.1, (True,)),
    "speculative-use-block-verification": (0.05, (True,)),
    "speculative-accept-threshold-single": (0.1, (0.5, 1.0)),
    "speculative-ngram-max-bfs-breadth": (0.1, (1, 4)),
    "speculative-draft-window-size": (0.05, (0, 512)),
    "speculative-draft-sink-size": (0.05, (4,)),
    "attention-backend": (0.4, BACKENDS),
    "prefill-attention-backend": (0.15, BACKENDS),
    "decode-attention-backend": (0.15, BACKENDS),
    "page-size": (0.4, (1, 16, 32, 64, 128)),
    "chunked-prefill-size": (0.3, (-1, 1000, 2048, 8192)),
    "mem-fraction-static": (0.2, (0.5, 0.85)),
    "max-running-requests": (0.4, (1, 4, 16, 48, 300)),
    "tp-size": (0.4, (1, 2, 4, 8)),
    "pp-size": (0.08, (2,)),
    "dp-size": (0.1, (1, 2)),
    "attn-dp-size": (0.15, (1, 2, 3, 4)),
    "enable-dp-attention": (0.05, (True,)),
    "enable-mixed-chunk": (0.15, (True,)),
    "enable-torch-compile": (0.1, (True,)),
    "disable-cuda-graph-padding": (0.1, (True,)),
    "disable-cuda-graph": (0.1, (True,)),
    "disable-decode-cuda-graph": (0.05, (True,)),
    "cuda-graph-backend-decode": (0.05, ("full", "breakable", "disabled")),
    "cuda-graph-max-bs-decode": (0.2, (8, 33, 300)),
    "cuda-graph-bs-decode": (0.15, ((1, 2, 4), (1, 8, 64))),
    "kv-cache-dtype": (0.1, ("fp8_e5m2", "fp8_e4m3")),
    "disable-overlap-schedule": (0.1, (True,)),
    "enable-deterministic-inference": (0.05, (True,)),
}
MODELS = ("model-path", "speculative-draft-model-path")
COMPARED = (
    "speculative_algorithm", "speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens",
    "max_running_requests", "attention_backend", "prefill_attention_backend", "decode_attention_backend", "page_size",
    "chunked_prefill_size", "attn_dp_size", "dp_size", "enable_mixed_chunk", "disable_overlap_schedule",
    "speculative_adaptive", "speculative_use_rejection_sampling",
)  # fmt: skip


def drawn(rng: random.Random, models: list[str]) -> dict[str, Any]:
    """Return a launch, legal or not: half of them wild, half with a well-formed draft and few other arguments."""
    wild = rng.random() < 0.5
    launch = {
        name: rng.choice(values)
        for name, (often, values) in CHOICES.items()
        if rng.random() < often * (1 if wild else 0.4)
    }
    if not wild:
        steps, topk = rng.randint(1, 7), rng.choice((1, 2, 4))
        least, most = draft_token_bounds(steps, topk)
        launch |= {
            "speculative-algorithm": rng.choice(("EAGLE", "EAGLE3", "STANDALONE")),
            "speculative-num-steps": steps,
            "speculative-eagle-topk": topk,
            "speculative-num-draft-tokens": rng.randint(least, most),
        }
    return {"model-path": rng.choice(models), **launch}


def ask(python: str, questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what the engine's own resolver answers."""
    program = str(resources.files("spectune.engines.sglang") / "asked" / "resolver.py")
    lines = "".join(json.dumps(question) + "\n" for question in questions)
    said = subprocess.run([python, program], input=lines, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in said.stdout.splitlines() if line.startswith("{")]


def difference(ours: Resolution, theirs: dict[str, Any]) -> str | None:
    """Say where the two answers differ first."""
    if "error" in theirs:
        error = str(theirs["error"])
        if ours.status != "rejected":
            return f"only SGLang refuses: {error[:110]}"
        message = ours.findings[-1].message
        return None if message[:60] == error[:60] else f"refused for {message[:60]!r}, not {error[:60]!r}"
    if ours.status == "rejected":
        return f"only spectune refuses: {ours.findings[-1].message[:110]}"
    resolved = theirs["resolved"]
    for name in COMPARED:
        if ours.resolved.get(name) != resolved[name]:
            return f"{name}: {ours.resolved.get(name)!r}, not {resolved[name]!r}"
    if abs(ours.resolved["mem_fraction_static"] - resolved["mem_fraction_static"]) > 0.01:
        return f"mem_fraction_static: {ours.resolved['mem_fraction_static']}, not {resolved['mem_fraction_static']}"
    graph, wanted = ours.resolved["decode_cuda_graph"], resolved["decode_cuda_graph"]
    found = {name: graph[name] for name in wanted}
    return None if found == wanted else f"decode_cuda_graph: {found}, not {wanted}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python")
    parser.add_argument("models", type=Path)
    parser.add_argument("--launches", type=int, default=400, help="per machine")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--machines", nargs="+", default=list(MACHINES))
    options = parser.parse_args()
    models = {
        folder.name: Model.from_config(json.loads((folder / "config.json").read_text(encoding="utf-8")))
        for folder in sorted(options.models.iterdir())
    }
    rng = random.Random(options.seed)
    targets = [name for name in models if name != "draft"]
    print(f"{'machine':14}{'launches':>9}{'refused':>9}{'agree':>8}")
    for name in options.machines:
        launches = [drawn(rng, targets) for _ in range(options.launches)]
        compare(options.python, options.models, MACHINES[name], launches, models)


def compare(
    python: str, folder: Path, machine: Machine, launches: list[dict[str, Any]], models: dict[str, Model]
) -> None:
    """Print one row of the table and what lies behind its disagreements."""
    facts = {"compute_capability": machine.compute_capability, "memory_mib": machine.memory_mib}
    questions = []
    for launch in launches:
        paths: dict[str, Any] = {name: str(folder / launch[name]) for name in MODELS if name in launch}
        argv = to_argv({**launch, **paths, "device": machine.device})
        questions.append({"argv": argv, "machine": facts if machine.device == "cuda" else None})
    answers = ask(python, questions)
    assert len(answers) == len(launches), "one answer a launch"
    differences: Counter[str] = Counter()
    for launch, theirs in zip(launches, answers, strict=True):
        here = (
            machine
            if machine.device == "cuda"
            else dataclasses.replace(machine, memory_gib=theirs["memory_mib"] / 1024)
        )
        drafter = launch.get("speculative-draft-model-path")
        ours = resolve(
            {**launch, "device": machine.device}, model=models[launch["model-path"]],
            draft=None if drafter is None else models[drafter], machine=here,
        )  # fmt: skip
        if (text := difference(ours, theirs)) is not None:
            differences[text] += 1
    refused = sum("error" in answer for answer in answers)
    print(f"{machine.name:14}{len(launches):9}{refused:9}{len(launches) - differences.total():8}")
    for text, count in differences.most_common(15):
        print(f"    {count} × {text}")


if __name__ == "__main__":
    main()
