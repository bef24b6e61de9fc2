"""Machines whose best true speedup is known, for the trust benchmark: `python -m benchmarks.trust_profiles`.

A seed draws a machine and two drafters; the cycles of all speculation are then slowed down (as by a verify forward
without graphs) until the best speculation of the space is exactly as much faster than the best baseline as wanted.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import Any

import yaml

from benchmarks.truth import Truth, setups_of
from benchmarks.virtual_study import Laboratory
from spectune.engines.simulated.profile import parse_profile
from spectune.space import SearchSpace, load_space

HERE = Path(__file__).parent
PASSES = 4  # of the calibration; each leaves a hundredth of the error
SPEEDUPS = (0.93, 0.97, 0.99, 1.00, 1.02, 1.05, 1.15)
NOISES: dict[str, dict[str, Any]] = {
    "quiet": {"launch_sd": 0.015},
    "loud": {"launch_sd": 0.03},
    "drift": {"launch_sd": 0.015, "drift_per_hour": 0.06},
    "jump": {"launch_sd": 0.015, "jumps": [{"at_hour": 0.2, "cycle": 1.08}]},
}


def machine(seed: int) -> dict[str, Any]:
    """Draw a machine on which speculation costs what its forwards cost."""
    draw = random.Random(seed)
    step = draw.uniform(6, 14)
    return {
        "schema": 1, "source": f"drawn by benchmarks/trust_profiles.py with seed {seed}; no machine was measured",
        "seed": seed, "gpu": {"count": 8, "memory_gb": 96},
        "target": {
            "weights_gb": 400, "step_ms": {"graph": round(step, 3), "eager": round(2 * step, 3)},
            "token_ms": round(step * draw.uniform(0.004, 0.02), 4), "kv_mb_per_token": 0.07,
            "kv_ms_per_ktoken": round(draw.uniform(0.0, 0.03), 4), "prefill_ktok_per_s": 40,
        },
        "draft": {
            "weights_gb": 3,
            "step_ms": {"graph": round(step * draw.uniform(0.05, 0.12), 3), "eager": round(step / 6, 3)},
            "token_ms": round(draw.uniform(0.002, 0.01), 4),
        },
        "host_ms": round(draw.uniform(0.3, 1.2), 3),
        "acceptance": {
            "default": [0.5], "breadth": round(draw.uniform(0.25, 0.45), 3),
            "drafters": {
                name: [round(first * decay**i, 4) for i in range(6)]
                for name, first, decay in (
                    ("org/first", draw.uniform(0.55, 0.75), draw.uniform(0.85, 0.98)),
                    ("org/second", draw.uniform(0.55, 0.75), draw.uniform(0.85, 0.98)),
                )
            },
            "by_class": {
                "code": round(draw.uniform(1.0, 1.2), 3), "chat": 1.0, "math": round(draw.uniform(0.95, 1.1), 3),
            },
        },
        "startup": {"load_s": 20.0, "capture_s_per_graph": 0.1},
        "effects": [
            {"when": {"env.NCCL_PROTO": "LL"}, "cycle": round(draw.uniform(0.95, 1.04), 3)},
            {"when": {"env.NCCL_PROTO": "Simple"}, "cycle": round(draw.uniform(0.97, 1.05), 3)},
            {"when": {"attention-backend": "flashinfer"}, "cycle": round(draw.uniform(0.96, 1.04), 3)},
            {
                "when": {"attention-backend": "flashinfer", "speculation": True},
                "cycle": round(draw.uniform(0.98, 1.03), 3),
            },
        ],
    }  # fmt: skip


def calibrated(drawn: dict[str, Any], speedup: float, space: SearchSpace, file: Path) -> dict[str, Any]:
    """Slow the cycles of all speculation down until the best true speedup is `speedup`.

    What requests wait for each other is not slowed down, so the first factor is not quite the right one.
    """
    setups = setups_of(Laboratory(space, parse_profile(yaml.safe_dump(drawn), file)))
    profile, factor = drawn, 1.0
    for _ in range(PASSES):
        truth = Truth(Laboratory(space, parse_profile(yaml.safe_dump(profile), file)), setups)
        factor *= truth.best_speedup / speedup
        slowed = {"when": {"speculation": True}, "cycle": round(factor, 5)}
        profile = drawn | {"effects": [*drawn["effects"], slowed]}
    return profile


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--seed", type=int, required=True, help="of the first machine; every speedup has one of its own"
    )
    parser.add_argument("--space", type=Path, default=HERE / "trust_space.yaml")
    parser.add_argument("--to", type=Path, default=HERE / "profiles", help="folder to write to")
    chosen = parser.parse_args()
    space = load_space(chosen.space)
    chosen.to.mkdir(parents=True, exist_ok=True)
    for number, speedup in enumerate(SPEEDUPS):
        drawn = {"name": "drawn"} | machine(chosen.seed + number)
        file = chosen.to / "drawn.yaml"
        file.write_text(yaml.safe_dump(drawn), "utf-8")
        found = calibrated(drawn, speedup, space, file)
        file.unlink()
        for kind, noise in NOISES.items():
            name = f"{kind}-{round(100 * speedup)}"
            profile = found | {"name": name, "noise": {"window_sd": 0.01, **noise}}
            (chosen.to / f"{name}.yaml").write_text(yaml.safe_dump(profile, sort_keys=False), "utf-8")
        print(f"{speedup:.2f} done", flush=True)


if __name__ == "__main__":
    main()
