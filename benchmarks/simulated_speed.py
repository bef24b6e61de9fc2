"""How many trials a second the simulated engine makes in virtual time: `python -m benchmarks.simulated_speed`.

A trial is one launch, resolved anew, with three levels of its own; every one has another S, K, N or launch number.
"""

from __future__ import annotations

import itertools
import time

from spectune.engines.sglang.resolution import Model, resolve
from spectune.engines.simulated.command import machine_of
from spectune.engines.simulated.launch import SimulatedLaunch
from spectune.engines.simulated.profile import Profile, load_profile
from spectune.engines.simulated.setup import Setup
from spectune.engines.simulated.virtual import ClosedLoop, VirtualEngine

TRIALS = 2000
LEVELS = (ClosedLoop(1, 4, 200, 128), ClosedLoop(8, 32, 200, 128), ClosedLoop(32, 96, 200, 128))
SHAPES = tuple(
    (steps, topk, tokens)
    for steps in range(1, 8)
    for topk in (1, 2, 4, 8)
    for tokens in ((steps + 1,) if topk == 1 else (8, 16, 32))
    if tokens <= 1 + topk + (steps - 1) * topk**2
)


def arguments(shape: tuple[int, int, int]) -> dict[str, object]:
    steps, topk, tokens = shape
    return {
        "model-path": "org/target", "tp-size": 8, "mem-fraction-static": 0.85, "attention-backend": "triton",
        "page-size": 1, "max-running-requests": 64, "speculative-algorithm": "EAGLE3",
        "speculative-draft-model-path": "1.4m", "speculative-num-steps": steps, "speculative-eagle-topk": topk,
        "speculative-num-draft-tokens": tokens,
    }  # fmt: skip


def trial(profile: Profile, setup: Setup, number: int) -> float:
    engine = VirtualEngine(SimulatedLaunch(profile, setup, number=number))
    speed = 0.0
    for loop in LEVELS:
        level = engine.serve(loop)
        speed = level.decode_speed + level.output_throughput + level.accept_length + level.cycle_ms
    return speed


def main() -> None:
    profile = load_profile("kimi-k2.5-pcie")
    machine = machine_of(profile)
    unknown = Model.unknown()
    setups = [
        Setup.of(resolve(arguments(shape), model=unknown, draft=unknown, machine=machine).resolved, {}, 0)
        for shape in SHAPES
    ]
    began = time.process_time()
    for shape in itertools.islice(itertools.cycle(SHAPES), TRIALS):
        resolve(arguments(shape), model=unknown, draft=unknown, machine=machine)
    resolving = time.process_time() - began
    began = time.process_time()
    for number, setup in enumerate(itertools.islice(itertools.cycle(setups), TRIALS)):
        trial(profile, setup, number)
    serving = time.process_time() - began
    print(f"{TRIALS} trials of {len(LEVELS)} levels, {sum(loop.requests for loop in LEVELS)} requests each")
    print(f"serving           {1000 * serving / TRIALS:7.3f} ms of CPU a trial  {TRIALS / serving:7.0f} trials/s")
    print(f"resolving         {1000 * resolving / TRIALS:7.3f} ms of CPU a trial")
    print(f"both              {1000 * (serving + resolving) / TRIALS:7.3f} ms of CPU a trial  "
          f"{TRIALS / (serving + resolving):7.0f} trials/s")  # fmt: skip


if __name__ == "__main__":
    main()
