"""The sections of a profile file, defaults filled in; units stand in the keys (docs/profiles.md).

Every number is bounded, generously: no profile describes a launch that never ends, or that arithmetic cannot hold.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from spectune.space.names import hint
from spectune.space.sections import Count, Flag, Listed, Positive, Section, Text, readable

SCHEMA = 1

LEAST_CYCLE_MS = 0.001
MOST_TOGETHER = 1000.0
"""The greatest factor on the cycle, or its inverse, of all effects at once, of all jumps, and of the drift."""


Milliseconds = Annotated[float, Field(strict=True, ge=0, le=60_000)]
Seconds = Annotated[float, Field(strict=True, ge=0, le=86_400)]
Gigabytes = Annotated[float, Field(strict=True, ge=0, le=100_000)]
Factor = Annotated[float, Field(strict=True, ge=0.01, le=100)]
Deviation = Annotated[float, Field(strict=True, ge=0, le=1)]
Tokens = Annotated[int, Field(strict=True, ge=1, le=10_000_000)]
Probability = Annotated[float, Field(strict=True, ge=0, le=1)]
Probabilities = Annotated[tuple[Probability, ...], Listed, Field(min_length=1)]
Breadth = Annotated[float, Field(strict=True, ge=0.01, le=10)]
Confidence = Annotated[float, Field(strict=True, ge=0.01, le=1)]

Point = Literal["startup", "load", "capture", "ready", "warmup", "bench", "shutdown"]
Kind = Literal[
    "oom", "unsupported", "crash", "hang", "nccl", "port_in_use", "slow_start", "garbage_output", "http_500",
    "partial_failure", "zero_acceptance", "ignores_temperature", "ignore_sigterm", "daemonize", "log_flood",
]  # fmt: skip


class Gpu(Section):
    """The GPUs of the machine, all alike."""

    count: Annotated[int, Field(strict=True, ge=1, le=1024)]
    memory_gb: Annotated[float, Field(strict=True, ge=1, le=10_000)]


class StepMs(Section):
    """Milliseconds of one forward of one token on all GPUs: a replayed CUDA graph, and an eager launch."""

    graph: Milliseconds
    eager: Milliseconds


class Moe(Section):
    """Experts per layer, those active for one token, and the time to read all of them."""

    experts: Annotated[int, Field(strict=True, ge=1, le=100_000)]
    active: Positive
    expert_ms: Milliseconds

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.active > self.experts:
            raise ValueError(f"active experts ({self.active}) cannot be more than there are ({self.experts})")
        return self


class Target(Section):
    """The model that is served."""

    weights_gb: Annotated[float, Field(strict=True, gt=0, le=100_000)]
    step_ms: StepMs
    token_ms: Milliseconds
    knee_tokens: Tokens | None = None
    knee_factor: Annotated[float, Field(strict=True, ge=0, le=1000)] = 1.0
    kv_ms_per_ktoken: Milliseconds = 0.0
    kv_mb_per_token: Annotated[float, Field(strict=True, ge=0.0001, le=10_000)]
    prefill_ktok_per_s: Annotated[float, Field(strict=True, ge=0.001, le=1_000_000)]
    moe: Moe | None = None
    verify_graph: Flag = True

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.knee_tokens is None and self.knee_factor != 1.0:
            raise ValueError(f"knee_factor {self.knee_factor:g} means nothing without knee_tokens")
        return self


class Draft(Section):
    """The drafter; all drafters of a profile cost the same."""

    weights_gb: Gigabytes = 0.0
    step_ms: StepMs
    token_ms: Milliseconds
    graph: Flag = True


class DrafterTrees(Section):
    """What the trees of one drafter are like where it differs from the others; None for where it does not."""

    breadth: Breadth | None = None
    confidence: Confidence | None = None


class AcceptanceTable(Section):
    """How often drafted tokens are right: position by position of a chain, the last one repeats; and its trees."""

    default: Probabilities
    drafters: dict[str, Probabilities] = Field(default_factory=dict)
    breadth: Breadth = 0.35
    confidence: Confidence = 1.0
    trees: dict[str, DrafterTrees] = Field(default_factory=dict)
    by_class: dict[str, Annotated[float, Field(strict=True, ge=0, le=100)]] = Field(default_factory=dict)
    context_halving_ktokens: Annotated[float, Field(strict=True, ge=0, le=1_000_000)] = 0.0

    @field_validator("trees")
    @classmethod
    def _of_its_drafters(cls, trees: dict[str, DrafterTrees], info: ValidationInfo) -> dict[str, DrafterTrees]:
        drafters = info.data.get("drafters", trees)
        for name in trees:
            if name not in drafters:
                raise ValueError(f"the drafter '{name}' has no positions in acceptance.drafters{hint(name, drafters)}")
        return trees


class Graphs(Section):
    """GPU memory of captured CUDA graphs."""

    mb_per_token: Annotated[float, Field(strict=True, ge=0, le=10_000)] = 0.5
    reserve_gb: Gigabytes = 2.0


class Startup(Section):
    """Seconds until the engine is ready."""

    load_s: Seconds
    capture_s_per_graph: Seconds


class Jump(Section):
    """A lasting change of the machine: the factor on the cycle from an hour of the study on."""

    at_hour: Annotated[float, Field(strict=True, ge=0, le=10_000)]
    cycle: Factor


class SlowStart(Section):
    """The first requests of every launch, and the factor on the cycles they take part in."""

    requests: Annotated[int, Field(strict=True, ge=0, le=10_000)]
    factor: Factor


class Noise(Section):
    """What makes one measurement differ from the next."""

    launch_sd: Deviation = 0.0
    window_sd: Deviation = 0.0
    drift_per_hour: Annotated[float, Field(strict=True, ge=-0.5, le=1)] = 0.0
    jumps: Annotated[tuple[Jump, ...], Listed] = ()
    first_requests_slow: SlowStart = SlowStart(requests=0, factor=1.0)

    @field_validator("jumps")
    @classmethod
    def _bounded(cls, jumps: tuple[Jump, ...]) -> tuple[Jump, ...]:
        _check_together("jumps", [jump.cycle for jump in jumps])
        return jumps


class Effect(Section):
    """A factor on the cycle of launches that satisfy a condition."""

    when: dict[str, Any]
    cycle: Factor


class Fault(Section):
    """A failure of launches that satisfy a condition.

    Attributes:
        when: Raw condition; `Profile.faults` holds what it means.
        at: The point of the launch it happens at.
        kind: What happens.
        times: How often in a study; None for always.
        share: Of the requests that fail, for `partial_failure`.
    """

    when: dict[str, Any]
    at: Point
    kind: Kind
    times: Positive | None = None
    share: Probability | None = None

    @model_validator(mode="after")
    def _share_where_it_counts(self) -> Self:
        if self.kind == "partial_failure" and self.share is None:
            raise ValueError("a partial_failure needs the share of requests that fail")
        if self.kind != "partial_failure" and self.share is not None:
            raise ValueError(f"share belongs to partial_failure, not to {self.kind}")
        return self


class ProfileFile(Section):
    """One machine, one target and its drafters, as they stand in a file."""

    schema_version: Annotated[Positive, Field(alias="schema"), readable(SCHEMA)]
    name: Annotated[str, Field(strict=True, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
    source: Text
    seed: Count
    gpu: Gpu
    target: Target
    draft: Draft
    host_ms: Milliseconds
    acceptance: AcceptanceTable
    graphs: Graphs = Graphs()
    startup: Startup
    noise: Noise = Noise()
    effects: Annotated[tuple[Effect, ...], Listed] = ()
    faults: Annotated[tuple[Fault, ...], Listed] = ()

    @field_validator("effects")
    @classmethod
    def _bounded(cls, effects: tuple[Effect, ...]) -> tuple[Effect, ...]:
        _check_together("effects", [effect.cycle for effect in effects])
        return effects

    @model_validator(mode="after")
    def _takes_time(self) -> Self:
        step = self.target.step_ms
        if self.host_ms + min(step.graph, step.eager) < LEAST_CYCLE_MS:
            raise ValueError(f"host_ms and target.step_ms must be at least {LEAST_CYCLE_MS:g} ms together")
        return self


def _check_together(name: str, factors: list[float]) -> None:
    """Refuse factors that make a cycle too long, or too short, where all of them hold."""
    longer = math.fsum(math.log(factor) for factor in factors if factor > 1)
    shorter = -math.fsum(math.log(factor) for factor in factors if factor < 1)
    if max(longer, shorter) > math.log(MOST_TOGETHER):
        raise ValueError(f"all {name} together must not change the cycle by a factor of more than {MOST_TOGETHER:g}")
