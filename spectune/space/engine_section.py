"""The `engine` section: which engine, on what, with which arguments common to all candidates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from spectune.space.durations import Duration
from spectune.space.names import ALGORITHM, argument_name_problem, hint, is_environment, is_speculative
from spectune.space.sections import ArgumentValue, Count, Flag, Positive, Section, Text
from spectune.space.values import UNSET

RUNTIMES = ("cpu-reference",)
DEFAULT_PYTHON = "python3"
PARALLELISM = ("tp-size", "pp-size")

_SIMULATED_ONLY = ("profile", "virtual")
_REAL_ONLY = ("python", "runtime")


class EngineSection(Section):
    """The engine and what all candidates share.

    Attributes:
        kind: `sglang` for the real one.
        python: The interpreter that has sglang; excludes `runtime`.
        runtime: A runtime that spectune installs itself; excludes `python`.
        profile: Machine profile of a simulated engine.
        virtual: Whether a simulated engine runs in virtual time.
        gpus: GPUs one launch takes; where it is not given, those of its tensor and pipeline parallelism.
        parallel: Launches at once on one machine, where several workers share the study. Neighbours share its PCIe, its
            host memory and its processor, so figures of launches beside others hold for launches beside others.
        args: Engine arguments without dashes → value.
        env: Variables of the workers' environment; `unset` means absent.
        startup_timeout: Seconds a launch may take until it answers, beside what the graphs of its drafts need.
        preflight: Whether drafters are looked at before a search, and those that cannot work are never launched.
    """

    kind: Literal["sglang", "simulated"] = "sglang"
    python: Text | None = None
    runtime: Text | None = None
    profile: Text | None = None
    virtual: Flag | None = None
    gpus: Count = 1
    parallel: Positive = 1
    args: dict[str, ArgumentValue] = Field(default_factory=dict)
    env: dict[str, str] = Field(default_factory=dict)
    startup_timeout: Duration = 1200.0
    preflight: Flag = True

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, raw: Any) -> Any:
        if not isinstance(raw, dict):
            return raw
        filled = dict(raw)
        if raw.get("kind", "sglang") == "sglang" and "runtime" not in raw:
            filled.setdefault("python", DEFAULT_PYTHON)
        filled.setdefault("gpus", 0 if "runtime" in raw else _ranks(raw.get("args")))
        return filled

    @field_validator("runtime")
    @classmethod
    def _known_runtime(cls, runtime: str | None) -> str | None:
        if runtime is not None and runtime not in RUNTIMES:
            raise ValueError(f"'{runtime}' is not a runtime{hint(runtime, RUNTIMES)}")
        return runtime

    def simulated(self, profile: str | None, *, virtual: bool) -> EngineSection:
        """Return the same launches on the simulated engine.

        Args:
            profile: The machine, instead of the one named here.
            virtual: Whether in virtual time, whatever stands here.
        """
        chosen = {"profile": profile or self.profile, "virtual": virtual or self.virtual}
        return self.model_copy(update={"kind": "simulated", "python": None, "runtime": None, **chosen})

    @property
    def is_simulated(self) -> bool:
        """Whether a model of a machine answers."""
        return self.kind == "simulated"

    @property
    def env_to_set(self) -> dict[str, str]:
        """Variables that every launch sets."""
        return {name: value for name, value in self.env.items() if value != UNSET}

    @property
    def env_to_unset(self) -> tuple[str, ...]:
        """Variables that must be absent from every launch."""
        return tuple(name for name, value in self.env.items() if value == UNSET)


def _ranks(args: Any) -> int:
    """Return how many GPUs the parallelism takes that every launch shares; 1 where it is not told."""
    sizes = [args.get(name, 1) for name in PARALLELISM] if isinstance(args, Mapping) else []
    return math.prod(size for size in sizes if isinstance(size, int) and size > 0)


def exclusive_key_problems(engine: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (key, message) for keys of the `engine` section that cannot stand beside the others.

    Args:
        engine: The section as plain data.
    """
    kind = engine.get("kind", "sglang")
    others = _SIMULATED_ONLY if kind == "sglang" else _REAL_ONLY if kind == "simulated" else ()
    for name in others:
        if name in engine:
            yield name, f"'{name}' cannot stand with kind: {kind}"
    if "python" in engine and "runtime" in engine:
        yield "runtime", "'python' and 'runtime' exclude each other: a runtime brings its own interpreter"


def fixed_argument_problem(name: str) -> str | None:
    """Return why `name` cannot stand in `engine.args`, or None."""
    if is_environment(name):
        return f"'{name}' is no argument; write it under engine.env without 'env.'"
    if name == ALGORITHM or is_speculative(name):
        return (
            f"'{name}' must stand under search, where a single value is a fixed one: "
            "what stands in engine.args would reach the no-speculation baseline too"
        )
    return argument_name_problem(name)
