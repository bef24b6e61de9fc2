"""The sections of a profile file, defaults filled in; units stand in the keys."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from spectune.space.sections import Amount, Count, Flag, Listed, Positive, Section, Text

SCHEMA = 1

NonNegative = Annotated[float, Field(strict=True, ge=0)]
Probability = Annotated[float, Field(strict=True, ge=0, le=1)]
Probabilities = Annotated[tuple[Probability, ...], Listed, Field(min_length=1)]

Point = Literal["startup", "load", "capture", "ready", "warmup", "bench", "shutdown"]
Kind = Literal[
    "oom", "unsupported", "crash", "hang", "nccl", "port_in_use", "slow_start", "garbage_output", "http_500",
    "partial_failure", "zero_acceptance", "ignores_temperature", "ignore_sigterm", "daemonize", "log_flood",
]  # fmt: skip


class Gpu(Section):
    """The GPUs of the machine, all alike."""

    count: Positive
    memory_gb: Amount


class StepMs(Section):
    """Milliseconds of one forward of one token on all GPUs: a replayed CUDA graph, and an eager launch."""

    graph: NonNegative
    eager: NonNegative


class Moe(Section):
    """Experts per layer, those active for one token, and the time to read all of them."""

    experts: Positive
    active: Positive
    expert_ms: NonNegative

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.active > self.experts:
            raise ValueError(f"active experts ({self.active}) cannot be more than there are ({self.experts})")
        return self


class Target(Section):
    """The model that is served."""

    weights_gb: Amount
    step_ms: StepMs
    token_ms: NonNegative
    knee_tokens: Positive | None = None
    knee_factor: NonNegative = 1.0
    kv_ms_per_ktoken: NonNegative = 0.0
    kv_mb_per_token: Amount
    prefill_ktok_per_s: Amount
    moe: Moe | None = None
    verify_graph: Flag = True

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.knee_tokens is None and self.knee_factor != 1.0:
            raise ValueError(f"knee_factor {self.knee_factor:g} means nothing without knee_tokens")
        return self


class Draft(Section):
    """The drafter; all drafters of a profile cost the same."""

    weights_gb: NonNegative = 0.0
    step_ms: StepMs
    token_ms: NonNegative
    graph: Flag = True


class AcceptanceTable(Section):
    """How often drafted tokens are right: position by position of a chain, the last one repeats."""

    default: Probabilities
    drafters: dict[str, Probabilities] = Field(default_factory=dict)
    breadth: Amount = 0.35
    by_class: dict[str, NonNegative] = Field(default_factory=dict)
    context_halving_ktokens: NonNegative = 0.0


class Graphs(Section):
    """GPU memory of captured CUDA graphs."""

    mb_per_token: NonNegative = 0.5
    reserve_gb: NonNegative = 2.0


class Startup(Section):
    """Seconds until the engine is ready."""

    load_s: NonNegative
    capture_s_per_graph: NonNegative


class Jump(Section):
    """A lasting change of the machine: the factor on the cycle from an hour of the study on."""

    at_hour: NonNegative
    cycle: Amount


class SlowStart(Section):
    """The first requests of every launch, and the factor on the cycles they take part in."""

    requests: Count
    factor: Amount


class Noise(Section):
    """What makes one measurement differ from the next."""

    launch_sd: NonNegative = 0.0
    window_sd: NonNegative = 0.0
    drift_per_hour: Annotated[float, Field(strict=True, gt=-1)] = 0.0
    jumps: Annotated[tuple[Jump, ...], Listed] = ()
    first_requests_slow: SlowStart = SlowStart(requests=0, factor=1.0)


class Effect(Section):
    """A factor on the cycle of launches that satisfy a condition."""

    when: dict[str, Any]
    cycle: Amount


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

    schema_version: Annotated[Positive, Field(alias="schema")]
    name: Annotated[str, Field(strict=True, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
    source: Text
    seed: Count
    gpu: Gpu
    target: Target
    draft: Draft
    host_ms: NonNegative
    acceptance: AcceptanceTable
    graphs: Graphs = Graphs()
    startup: Startup
    noise: Noise = Noise()
    effects: Annotated[tuple[Effect, ...], Listed] = ()
    faults: Annotated[tuple[Fault, ...], Listed] = ()

    @field_validator("schema_version")
    @classmethod
    def _readable(cls, version: int) -> int:
        if version > SCHEMA:
            raise ValueError(f"{version} is newer than what this spectune reads ({SCHEMA}); update spectune")
        return version
