"""A simulated study whose launches take two GPUs, in its own folder."""

from __future__ import annotations

from pathlib import Path

PROFILE = """
schema: 1
name: quick
source: made up for tests
seed: 3
gpu: {count: 2, memory_gb: 80}
target:
  {weights_gb: 40, step_ms: {graph: 2.0, eager: 4.0}, token_ms: 0.02, kv_mb_per_token: 0.1, prefill_ktok_per_s: 200}
draft: {weights_gb: 1, step_ms: {graph: 0.2, eager: 0.4}, token_ms: 0.01}
host_ms: 0.2
acceptance: {default: [0.8]}
startup: {load_s: 0.1, capture_s_per_graph: 0.001}
"""
SPACE = """
schema: 1
name: sim
engine: {kind: simulated, profile: quick.yaml, gpus: 2, args: {model-path: org/target, attention-backend: triton}}
search: {speculative-algorithm: [none], chunked-prefill-size: [2048, 4096]}
workload:
  {prompts: builtin:tiny, chat_template: false, output_tokens: 32, levels: [{concurrency: 1}], level_time_limit: 1s}
budget: {trials: %d}
"""


def write_study(folder: Path, *, trials: int) -> None:
    """Write `quick.yaml`, its machine, and `sim.yaml`, its space."""
    (folder / "quick.yaml").write_text(PROFILE)
    (folder / "sim.yaml").write_text(SPACE % trials)
