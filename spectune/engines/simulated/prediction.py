"""What the cost model says of a launch before anybody runs it, without noise."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from spectune.counts import count
from spectune.engines.simulated import memory
from spectune.engines.simulated.faults import Doom, Failure
from spectune.engines.simulated.launch import SimulatedLaunch
from spectune.engines.simulated.under_load import UnderLoad, under_load
from spectune.errors import SpectuneError

FIGURES = ("accept_length", "cycle_ms", "decode_speed", "output_throughput")


@dataclass(frozen=True)
class Prediction:
    """The noiseless figures of one launch at one load.

    Attributes:
        accept_length: Mean tokens per cycle, bonus token included; 1.0 without speculation.
        cycle_ms: Time of one cycle, no prefill in between.
        decode_speed: tok/s that one request sees while no other's prompt is taken up.
        output_throughput: tok/s of all running requests together, likewise.
        under_load: The same as a search measures them, with prefills; None where the answers' length is not given.
        running: Requests that run at once; fewer than asked for where the engine holds fewer.
        graph_used: Whether the target's forwards replay a CUDA graph.
        fails: Where and how the launch fails, None if it serves.
        possible: Whether it could serve at all; where not, the figures mean nothing. A launch that meets a fault of its
            profile would have them without the fault.
        warnings: What the profile does not know.
    """

    accept_length: float
    cycle_ms: float
    decode_speed: float
    output_throughput: float
    under_load: UnderLoad | None
    running: int
    graph_used: bool
    fails: Failure | None
    possible: bool
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the object `--json` prints; figures that mean nothing are null."""
        withheld = {} if self.possible else dict.fromkeys((*FIGURES, "under_load", "running", "graph_used"))
        return {"simulated": True, **asdict(self), **withheld, "warnings": list(self.warnings)}


def refused(reason: str) -> dict[str, Any]:
    """Return the object `--json` prints for a command that SGLang's resolver refuses."""
    figures = dict.fromkeys((*FIGURES, "under_load"))
    return {"simulated": True, **figures, "fails": asdict(Failure("startup", "unsupported")), "reason": reason}


def predict(
    launch: SimulatedLaunch,
    concurrency: int,
    context_tokens: int,
    prompt_class: str | None = None,
    output_tokens: int | None = None,
) -> Prediction:
    """Predict a launch.

    Args:
        launch: The launch.
        concurrency: Requests in flight.
        context_tokens: Tokens of each of them, prompt and answer so far; with `output_tokens` half of the answer, as it
            is on average, and the prompt is the rest.
        prompt_class: Of all prompts; `builtin:mixed` for a third each of code, chat and math; None for the factor 1.
        output_tokens: Of each answer, at least 2; None where nothing is to be said of a load.

    Raises:
        SpectuneError: The launch would serve, but no request of so many tokens; or no prompt is left.
    """
    possible = launch.plan.failure is None
    prompt_tokens = context_tokens - (output_tokens or 0) / 2
    if output_tokens is not None and prompt_tokens < 1:
        raise SpectuneError(
            f"--context-tokens {context_tokens} leaves no prompt: it counts half of the {output_tokens} tokens of an "
            "answer, as they are there on average; give the prompt's tokens and that half"
        )
    most_tokens = math.ceil(context_tokens + (output_tokens or 0) / 2)
    if possible and most_tokens > launch.kv_tokens:
        raise SpectuneError(
            f"a request of {most_tokens} tokens cannot run: the KV cache of this launch holds {launch.kv_tokens}"
        )
    running = launch.running(concurrency, most_tokens)
    zero = launch.fault("zero_acceptance", 1 << 30) is not None
    accept_length = 1.0 if zero else launch.accept_length(prompt_class, context_tokens)
    cycle_ms = launch.cycle_ms(running, running * context_tokens)
    speed = 1000 * accept_length / cycle_ms
    load = None
    if output_tokens is not None:
        load = under_load(
            launch, running, prompt_tokens=prompt_tokens, output_tokens=output_tokens, accept_length=accept_length,
            cycle_ms=cycle_ms,
        )  # fmt: skip
    return Prediction(
        accept_length=accept_length,
        cycle_ms=cycle_ms,
        decode_speed=speed,
        output_throughput=running * speed,
        under_load=load,
        running=running,
        graph_used=launch.graph_used(running),
        fails=launch.plan.first_decisive,
        possible=possible,
        warnings=(*launch.warnings(prompt_class), *launch.unlike_profile()),
    )


def ended(error: str, advice: str) -> str:
    """Say with which exception SGLang ends a launch, and what helps; some exceptions have no words of their own."""
    return f"SGLang ends it with {error.rstrip(': ')}" + (f"; way out: {advice}" if advice else "")


def why_failing(launch: SimulatedLaunch, doom: Doom | None) -> str:
    """Return the reason for the first failure of a launch that has one, with its arithmetic.

    Args:
        launch: The launch.
        doom: What SGLang's own rules foretell.
    """
    file, setup, failure = launch.profile.file, launch.setup, launch.plan.first_decisive
    if failure != launch.plan.failure:
        return "a fault of the profile"
    if doom is not None and failure == doom.failure:
        return ended(doom.error, doom.advice)
    if setup.ranks > file.gpu.count:
        return f"the profile has {count(file.gpu.count, 'GPU')}, but the launch asks for {setup.ranks}"
    fraction, total = setup.mem_fraction, file.gpu.memory_gb
    if not memory.weights_fit(file, setup):
        return (
            f"the weights take {memory.weights_gb(file, setup):.1f} GB of each GPU, but mem-fraction-static "
            f"{fraction:g} × {total:g} GB leaves {memory.static_gb(file, setup):.1f} GB for weights and KV cache"
        )
    return (
        f"the CUDA graphs take {memory.graphs_gb(file, setup):.1f} GB, but (1 − mem-fraction-static {fraction:g}) × "
        f"{total:g} GB − {file.graphs.reserve_gb:g} GB in reserve leaves {memory.graph_room_gb(file, setup):.1f} GB"
    )


def why_waiting(launch: SimulatedLaunch, running: int, context_tokens: int) -> str:
    """Return why no more requests run at once than `running`."""
    if running < launch.most_running:
        return f"the KV cache holds {launch.kv_tokens} tokens, and each request has {context_tokens}"
    if running == launch.setup.max_running:
        return f"max-running-requests is {running}"
    return f"a KV cache of {launch.kv_tokens} tokens is shared by {count(running, 'request')} at most"
