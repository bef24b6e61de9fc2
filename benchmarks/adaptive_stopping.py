"""What ending a level once it is known saves: `python -m benchmarks.adaptive_stopping [--launches N] [--json FILE]`.

Launches of the simulated engine in virtual time, on three profiles that come with spectune, at several loads. Each
level is served once, for long, and measured in two ways after the same warm-up: as spectune does, until its 95 %
intervals are narrow enough, and over a window of one length for all. Equal precision means that the window is as long
as it must be for 95 % of the levels to be known as well. Beside it, for doubters: the window whose true errors are as
small, at the 95th percentile, as those of the adaptive rule. The truth is the whole of what was served.

It also counts how often the intervals of the adaptive measurement hold the truth of their launch.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from spectune.analysis.measure import measure_level
from spectune.bench.arrivals import ClosedLoop as Users
from spectune.bench.arrivals import first_answer
from spectune.bench.client import Sampling
from spectune.bench.level import LevelPlan
from spectune.bench.records import RequestRecord
from spectune.bench.replay import arrived, replay
from spectune.engines.sglang.resolution import Model, resolve
from spectune.engines.simulated.command import machine_of
from spectune.engines.simulated.launch import SimulatedLaunch
from spectune.engines.simulated.profile import Profile, load_profile
from spectune.engines.simulated.setup import Setup
from spectune.engines.simulated.virtual import ClosedLoop, VirtualEngine

PROFILES = ("kimi-k2.5-pcie", "llama-3.3-70b-nvlink", "qwen3-next-80b-a3b")
LOADS = (1, 8, 32)
CLASSES = ("code", "chat", "math")
PROMPT_TOKENS, OUTPUT_TOKENS = 400, 256
LONGEST_S = 300.0
STEP_S = 0.5
FIGURES = ("output_throughput", "decode_speed", "accept_length", "cycle_ms")


@dataclass(frozen=True)
class Level:
    """One level of one launch, measured in every way.

    Attributes:
        load: Requests in flight.
        adaptive_s: How long spectune measured.
        within: For windows of STEP_S, 2 STEP_S, …: whether speed and accept length were known within the target.
        errors: Relative error of the throughput after windows of these lengths.
        adaptive_error: That of the adaptive measurement.
        covered: Whether the intervals of the adaptive measurement hold the truth.
    """

    load: int
    adaptive_s: float
    within: list[bool]
    errors: list[float]
    adaptive_error: float
    covered: dict[str, bool]


def launches(count: int, seed: int) -> Iterator[SimulatedLaunch]:
    """Random configurations, every fifth without speculation, on each profile in turn."""
    rng, unknown = random.Random(seed), Model.unknown()
    profiles: list[Profile] = [load_profile(name) for name in PROFILES]
    for number in range(count):
        profile = profiles[number % len(profiles)]
        arguments: dict[str, object] = {
            "model-path": "org/target", "tp-size": profile.file.gpu.count, "mem-fraction-static": 0.85,
            "attention-backend": "triton", "page-size": 1, "max-running-requests": 64,
        }  # fmt: skip
        if number % 5:
            steps = rng.randint(1, 6)
            arguments |= {
                "speculative-algorithm": "EAGLE3", "speculative-num-steps": steps, "speculative-eagle-topk": 1,
                "speculative-num-draft-tokens": steps + 1,
                "speculative-draft-model-path": rng.choice(sorted(profile.file.acceptance.drafters) or ["org/drafter"]),
            }  # fmt: skip
        resolved = resolve(arguments, model=unknown, draft=unknown, machine=machine_of(profile)).resolved
        yield SimulatedLaunch(profile, Setup.of(resolved, {}, 0), number=number)


def level(launch: SimulatedLaunch, load: int, target: float) -> Level:
    """Serve one level for long and measure it in every way."""
    plan = LevelPlan(Users(load), Sampling(OUTPUT_TOKENS), precision=target, time_limit_s=LONGEST_S)
    records, full_until = served(launch, load, LONGEST_S)
    run = replay(plan, records, full_until)
    assert run is not None, "a level of this length is known long before it ends"
    assert run.measured_s is not None
    begin, end = run.measured_s
    truth = measure_level("truth", records, (begin, full_until))
    found = measure_level("adaptive", run.records, run.measured_s)
    course = arrived(plan, records)
    course.begin(begin)
    ends = sorted(records, key=lambda record: record.end_s)
    within: list[bool] = []
    errors: list[float] = []
    for step in range(1, int((full_until - begin) / STEP_S)):
        now = begin + step * STEP_S
        known = course.known(now, [record for record in ends if record.end_s <= now])
        within.append(known == "precision")
        errors.append(abs(course.meter.rate(begin, now) / truth.output_throughput.est - 1))
    return Level(
        load=load,
        adaptive_s=end - begin,
        within=within,
        errors=errors,
        adaptive_error=abs(found.output_throughput.est / truth.output_throughput.est - 1),
        covered={
            name: getattr(found, name).lo <= getattr(truth, name).est <= getattr(found, name).hi for name in FIGURES
        },
    )


def served(launch: SimulatedLaunch, load: int, seconds: float) -> tuple[list[RequestRecord], float]:
    """Serve so many requests that the slots are full for this long; returns when they no longer are."""
    firsts, requests = tuple(first_answer(slot, load, OUTPUT_TOKENS) for slot in range(load)), 4 * load
    while True:
        loop = ClosedLoop(load, requests, PROMPT_TOKENS, OUTPUT_TOKENS, CLASSES, first_outputs=firsts)
        records = VirtualEngine(launch).serve(loop).requests()
        full_until = sorted(record.end_s for record in records)[-load]
        if full_until >= seconds:
            return records, full_until
        requests = int(requests * max(1.2, min(8.0, 1.05 * seconds / full_until)))


def fixed_s(levels: Sequence[Level], share: float) -> float:
    """The shortest window after which this share of the levels is known within the target."""
    longest = min(len(one.within) for one in levels)
    enough = (step for step in range(longest) if np.mean([one.within[step] for one in levels]) >= share)
    return (next(enough, longest - 1) + 1) * STEP_S


def same_error_s(levels: Sequence[Level], error: float) -> float:
    """The shortest window after which the true error of the throughput stays as small at the 95th percentile."""
    longest = min(len(one.errors) for one in levels)
    errors = [float(np.quantile([one.errors[step] for one in levels], 0.95)) for step in range(longest)]
    return (max((step for step in range(longest) if errors[step] > error), default=-1) + 2) * STEP_S


def row(name: str, levels: Sequence[Level], share: float) -> dict[str, float | str]:
    """Both ways side by side."""
    adaptive, fixed = float(np.mean([one.adaptive_s for one in levels])), fixed_s(levels, share)
    error = float(np.quantile([one.adaptive_error for one in levels], 0.95))
    return {
        "levels": name, "n": len(levels), "adaptive_s": adaptive, "fixed_s": fixed, "saved": 1 - adaptive / fixed,
        "error_p95": error, "same_error_s": same_error_s(levels, error),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--launches", type=int, default=45)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", type=float, default=0.015, help="relative half-width of the 95 % intervals")
    parser.add_argument("--share", type=float, default=0.95, help="of the levels known within it at the fixed window")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    levels = [level(one, load, options.target) for one in launches(options.launches, options.seed) for load in LOADS]
    rows = [row("all", levels, options.share)]
    rows += [row(f"c{load}", [one for one in levels if one.load == load], options.share) for load in LOADS]
    print(f"Virtual time. Known within ±{options.target:.1%}: adaptive every level, fixed {options.share:.0%} of them.")
    print(
        f"{'levels':>8} {'n':>4} {'adaptive':>9} {'fixed':>9} {'saved':>6}  {'error p95':>9} {'fixed, same error':>18}"
    )
    for one in rows:
        print(
            f"{one['levels']:>8} {one['n']:4} {one['adaptive_s']:7.1f} s {one['fixed_s']:7.1f} s {one['saved']:6.1%}"
            f"  {one['error_p95']:9.2%} {one['same_error_s']:16.1f} s"
        )
    coverage = {name: float(np.mean([one.covered[name] for one in levels])) for name in FIGURES}
    print("coverage of the adaptive measurement's intervals within a launch")
    for name, share in coverage.items():
        print(f"{name:>20} {share:6.1%}")
    if options.json:
        options.json.write_text(json.dumps({"rows": rows, "coverage": coverage, "virtual": True}, indent=1))


if __name__ == "__main__":
    main()
