"""The `workload` section: what is sent to a launched engine, and at which loads."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, SerializerFunctionWrapHandler, field_serializer, field_validator, model_validator

from spectune.space.durations import Duration
from spectune.space.names import hint
from spectune.space.sections import Amount, Flag, Listed, Positive, Section, Text

BUILTIN_PREFIX = "builtin:"
BUILTIN_PROMPTS = ("builtin:mixed", "builtin:tiny")
MOST_OUTPUT_TOKENS = 1_000_000
"""Per request, also where a prompt of a file carries its own limit; no model's context is longer."""
MOST_CONCURRENCY = 4096


class PromptSource(Section):
    """One source of prompts.

    Attributes:
        prompts: A built-in set or a file.
        share: Its part of the requests, relative to the sum of all shares.
    """

    prompts: Text
    share: Amount = 1.0

    @field_validator("prompts")
    @classmethod
    def _known(cls, prompts: str) -> str:
        if prompts.startswith(BUILTIN_PREFIX) and prompts not in BUILTIN_PROMPTS:
            raise ValueError(f"'{prompts}' is not a built-in set of prompts{hint(prompts, BUILTIN_PROMPTS)}")
        return prompts


class Level(Section):
    """One load point.

    Attributes:
        concurrency: Requests kept in flight.
    """

    concurrency: Annotated[Positive, Field(le=MOST_CONCURRENCY)]

    @model_validator(mode="before")
    @classmethod
    def _closed_loop(cls, raw: Any) -> Any:
        if isinstance(raw, dict) and "rate" in raw:
            name = f"r{raw['rate']}"
            raise ValueError(f"open-loop rates are not measured yet ({name}); use {{concurrency: N}}")
        return raw

    @property
    def name(self) -> str:
        """`c8` for eight concurrent requests."""
        return f"c{self.concurrency}"


class Workload(Section):
    """Prompts, limits and load points.

    Attributes:
        prompts: Sources, mixed by share.
        chat_template: Whether prompts go through the engine's chat template.
        output_tokens: Most tokens a request may generate.
        ignore_eos: Whether requests go on to `output_tokens` whatever the model says.
        temperature: Of the sampling; 0 is greedy.
        levels: Load points, in the order they are measured.
        level_time_limit: Seconds one level may take.
        precision: Relative half-width of the 95 % interval at which a level ends early.
    """

    prompts: Annotated[tuple[PromptSource, ...], Listed, Field(min_length=1)] = (PromptSource(prompts="builtin:mixed"),)
    chat_template: Flag = True
    output_tokens: Annotated[Positive, Field(le=MOST_OUTPUT_TOKENS)] = 256
    ignore_eos: Flag = False
    temperature: Annotated[float, Field(ge=0, strict=True)] = 0.0
    levels: Annotated[tuple[Level, ...], Listed, Field(min_length=1)] = (Level(concurrency=1),)
    level_time_limit: Duration = 20.0
    precision: Annotated[float, Field(gt=0, lt=1, strict=True)] = 0.015

    @field_validator("prompts", mode="before")
    @classmethod
    def _one_source(cls, raw: Any) -> Any:
        return ({"prompts": raw},) if isinstance(raw, str) else raw

    @field_validator("levels")
    @classmethod
    def _distinct(cls, levels: tuple[Level, ...]) -> tuple[Level, ...]:
        names = [level.name for level in levels]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"the level {', '.join(twice)} stands twice")
        return levels

    @field_serializer("prompts", mode="wrap")
    def _short(self, prompts: tuple[PromptSource, ...], dump: SerializerFunctionWrapHandler) -> Any:
        return prompts[0].prompts if len(prompts) == 1 else dump(prompts)

    @property
    def level_names(self) -> tuple[str, ...]:
        """Names of the levels in order."""
        return tuple(level.name for level in self.levels)
