"""What the cost model says of a launch before anybody runs it, without noise."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from spectune.engines.simulated.faults import Failure
from spectune.engines.simulated.launch import SimulatedLaunch


@dataclass(frozen=True)
class Prediction:
    """The noiseless figures of one launch at one load.

    Attributes:
        accept_length: Mean tokens per cycle, bonus token included; 1.0 without speculation.
        cycle_ms: Time of one cycle.
        decode_speed: tok/s that one request sees.
        output_throughput: tok/s of all running requests together.
        running: Requests that run at once; fewer than asked for where the engine holds fewer.
        graph_used: Whether the target's forwards replay a CUDA graph.
        fails: Where and how the launch fails, None if it serves.
        warnings: What the profile does not know.
    """

    accept_length: float
    cycle_ms: float
    decode_speed: float
    output_throughput: float
    running: int
    graph_used: bool
    fails: Failure | None
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the object `--json` prints."""
        return {"simulated": True, **asdict(self), "warnings": list(self.warnings)}


def refused(reason: str) -> dict[str, Any]:
    """Return the object `--json` prints for a command that SGLang's resolver refuses."""
    figures = dict.fromkeys(("accept_length", "cycle_ms", "decode_speed", "output_throughput"))
    return {"simulated": True, **figures, "fails": asdict(Failure("startup", "unsupported")), "reason": reason}


def predict(
    launch: SimulatedLaunch, concurrency: int, context_tokens: int, prompt_class: str | None = None
) -> Prediction:
    """Predict a launch.

    Args:
        launch: The launch.
        concurrency: Requests in flight.
        context_tokens: Tokens of each of them, prompt and answer so far.
        prompt_class: Of all prompts; `builtin:mixed` for a third each of code, chat and math; None for the factor 1.
    """
    running = launch.running(concurrency, context_tokens)
    zero = launch.fault("zero_acceptance", 1 << 30) is not None
    accept_length = 1.0 if zero else launch.accept_length(prompt_class, context_tokens)
    cycle_ms = launch.cycle_ms(running, running * context_tokens)
    speed = 1000 * accept_length / cycle_ms if cycle_ms else float("inf")
    return Prediction(
        accept_length=accept_length,
        cycle_ms=cycle_ms,
        decode_speed=speed,
        output_throughput=running * speed,
        running=running,
        graph_used=launch.graph_used(running),
        fails=launch.plan.first_decisive,
        warnings=tuple(launch.warnings(prompt_class)),
    )
