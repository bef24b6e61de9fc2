"""Profiles and launches for tests of the simulated engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from spectune.engines.simulated.launch import SimulatedLaunch
from spectune.engines.simulated.profile import Profile, parse_profile
from spectune.engines.simulated.setup import Setup

MODEL = ("--model-path", "org/target", "--mem-fraction-static", "0.8", "--attention-backend", "triton")

PLAIN: dict[str, Any] = {
    "schema": 1,
    "name": "small",
    "source": "made up for tests",
    "seed": 7,
    "gpu": {"count": 2, "memory_gb": 80},
    "target": {
        "weights_gb": 40,
        "step_ms": {"graph": 8.0, "eager": 20.0},
        "token_ms": 0.1,
        "kv_mb_per_token": 0.1,
        "prefill_ktok_per_s": 20,
    },
    "draft": {"weights_gb": 2, "step_ms": {"graph": 0.5, "eager": 1.0}, "token_ms": 0.01},
    "host_ms": 1.0,
    "acceptance": {"default": [0.7, 0.6, 0.5]},
    "startup": {"load_s": 0.2, "capture_s_per_graph": 0.001},
}


def merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in changes.items():
        inner = result.get(key)
        result[key] = merged(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return result


def profile_text(**changes: Any) -> str:
    return yaml.safe_dump(merged(PLAIN, changes), sort_keys=False)


def a_profile(**changes: Any) -> Profile:
    return parse_profile(profile_text(**changes), Path("small.yaml"))


def a_setup(
    steps: int = 0,
    topk: int = 1,
    tokens: int | None = None,
    *,
    captured: tuple[int, ...] = (1, 2, 4, 8, 16, 32),
    env: dict[str, str] | None = None,
    launch: int = 0,
    **fields: Any,
) -> Setup:
    resolved: dict[str, Any] = {
        "mem_fraction_static": 0.8,
        "max_running_requests": 64,
        "decode_cuda_graph": {"backend": "full" if captured else "disabled", "bs": list(captured)},
    }
    if steps:
        resolved |= {
            "speculative_algorithm": "EAGLE3",
            "speculative_num_steps": steps,
            "speculative_eagle_topk": topk,
            "speculative_num_draft_tokens": steps + 1 if tokens is None else tokens,
        }
    if captured:
        resolved["decode_cuda_graph"]["max_bs"] = max(captured)
    return Setup.of({**resolved, **fields}, env or {}, launch)


def a_launch(setup: Setup | None = None, *, number: int = 0, hours: float = 0.0, **changes: Any) -> SimulatedLaunch:
    return SimulatedLaunch(a_profile(**changes), setup or a_setup(), number=number, hours=hours)
