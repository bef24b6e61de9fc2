"""The `workload` section: what is sent to a launched engine, and at which loads."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, field_serializer, field_validator, model_validator

from spectune.space.durations import Duration
from spectune.space.levels import Level
from spectune.space.names import nearest
from spectune.space.sections import Amount, Flag, Listed, Positive, Section, Text

BUILTIN_PREFIX = "builtin:"
RANDOM_PROMPTS = "builtin:random"
BUILTIN_PROMPTS = ("builtin:mixed", RANDOM_PROMPTS, "builtin:tiny")
MOST_OUTPUT_TOKENS = 1_000_000
"""Per request, also where a prompt of a file carries its own limit; no model's context is longer."""
MOST_PREFIX = 1_000_000
LEAST_SHARE = 1e-9


class PromptSource(Section):
    """One source of prompts.

    Attributes:
        prompts: A built-in set or a file.
        share: Its part of the requests, relative to the sum of all shares.
        turns: What a recorded conversation is made into: its last question with all that was said before, or every one
            of its questions with what was said before it. What was said is sent as recorded.
        allow_random: Whether `builtin:random` may be used although there is speculation.
    """

    prompts: Text
    share: Annotated[Amount, Field(ge=LEAST_SHARE)] = 1.0
    turns: Literal["last", "all"] = "last"
    allow_random: Flag = False

    @field_validator("prompts")
    @classmethod
    def _known(cls, prompts: str) -> str:
        if prompts.startswith(BUILTIN_PREFIX) and prompts not in BUILTIN_PROMPTS:
            names = {name.removeprefix(BUILTIN_PREFIX): name for name in BUILTIN_PROMPTS}
            match = nearest(prompts.removeprefix(BUILTIN_PREFIX), names)
            meant = f"valid: {', '.join(BUILTIN_PROMPTS)}" if match is None else f"did you mean '{names[match]}'?"
            raise ValueError(f"'{prompts}' is not a built-in set of prompts; {meant}")
        return prompts

    @model_validator(mode="after")
    def _applies(self) -> Self:
        if self.turns == "all" and self.prompts.startswith(BUILTIN_PREFIX):
            raise ValueError(f"turns: all is for files with conversations, but {self.prompts} has none")
        if self.allow_random and self.prompts != RANDOM_PROMPTS:
            raise ValueError(f"allow_random is about {RANDOM_PROMPTS}, but the prompts are {self.prompts}")
        return self


class SharedPrefix(Section):
    """A beginning that a share of the requests have in common, as services have a system prompt.

    Attributes:
        characters: Its length; English has four to a token, roughly.
        share: Fraction of the requests.
    """

    characters: Annotated[Positive, Field(le=MOST_PREFIX)]
    share: Annotated[Amount, Field(le=1)] = 1.0


class Workload(Section):
    """Prompts, limits and load points.

    Attributes:
        prompts: Sources, mixed by share.
        shared_prefix: What a share of the prompts is given as their beginning.
        chat_template: Whether prompts go through the engine's chat template.
        output_tokens: Most tokens a request may generate.
        ignore_eos: Whether requests go on to `output_tokens` whatever the model says.
        temperature: Of the sampling; 0 is greedy.
        levels: Load points, in the order they are measured.
        level_time_limit: Seconds one level may take.
        precision: Relative half-width of the 95 % interval at which a level ends early.
    """

    prompts: Annotated[tuple[PromptSource, ...], Listed, Field(min_length=1)] = (PromptSource(prompts="builtin:mixed"),)
    shared_prefix: SharedPrefix | None = None
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
        alone = prompts[0].prompts
        return alone if prompts == (PromptSource(prompts=alone, share=prompts[0].share),) else dump(prompts)

    @property
    def level_names(self) -> tuple[str, ...]:
        """Names of the levels in order."""
        return tuple(level.name for level in self.levels)

    @property
    def shares_text(self) -> bool:
        """Whether prompts begin alike on purpose, so that cached tokens are expected."""
        return self.shared_prefix is not None or any(source.turns == "all" for source in self.prompts)

    @property
    def distinct_prompts(self) -> bool:
        """Whether the prompts are known to have little in common, so that hardly any of their tokens can be cached."""
        return not self.shares_text and all(source.prompts in BUILTIN_PROMPTS for source in self.prompts)

    @property
    def most_running(self) -> int:
        """Requests under way at the busiest level, as far as that is known."""
        return max(level.in_flight(self.output_tokens) or 1 for level in self.levels)
