"""The file of a new search space."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import yaml
from jinja2 import Environment, StrictUndefined

from spectune.engines.sglang.hardware import Machine
from spectune.engines.sglang.new_space.attention import Attention
from spectune.engines.sglang.new_space.offered import OfferedDrafter
from spectune.printable import printable

OUTPUT_TOKENS, OUTPUT_TOKENS_ON_CPU = 256, 128
LEVELS, LEVELS_ON_CPU = (1, 8, 32), (1, 8)  # concurrencies
MEMORY_SHARE = 0.85  # of a GPU, as the written mem-fraction-static
WIDTH = 112  # of a comment
WITHOUT_NVLINK = frozenset({"rtx-pro-6000"})


@dataclass(frozen=True)
class NewSpace:
    """All that the file is written from.

    Attributes:
        name: Of the study.
        model: Folder or hub name of the target.
        python: Interpreter that has SGLang; None with a runtime.
        runtime: Runtime that spectune installs; None with an interpreter.
        tp_size: GPUs of a launch, which share the target's layers; its attention heads divide by it.
        machine: What SGLang's defaults are known for; None where nothing is known of the GPUs.
        drafters: Those that were named.
        algorithms: To search, without `none`.
        context_length: What both target and drafters are served with; None where the target's own works for all.
        reaches: The target's own.
        attention: Attention backends and pages; None where there is no choice of them.
        own_code: Which of the models brings code of its own; empty where none does.
        seen: Whether the target's files are here.
        notes: What is to be told, in a sentence each.
    """

    name: str
    model: str
    python: str | None
    runtime: str | None
    tp_size: int
    machine: Machine | None
    drafters: tuple[OfferedDrafter, ...]
    algorithms: tuple[str, ...]
    attention: Attention | None
    context_length: int | None
    reaches: int | None
    own_code: str
    seen: bool
    notes: tuple[str, ...] = field(default=())

    @property
    def used(self) -> list[OfferedDrafter]:
        """The drafters that are searched."""
        return [drafter for drafter in self.drafters if drafter.refused is None]

    @property
    def drafts(self) -> bool:
        """Whether steps and branches are searched; n-gram lookup has neither."""
        return self.algorithms != ("NGRAM",)

    @property
    def trees(self) -> bool:
        """Whether branching drafts are searched."""
        return self.drafts and (self.attention is None or self.attention.trees)

    def to_yaml(self) -> str:
        """Return the commented file."""
        # No HTML: values are quoted as YAML, and comments hold no line breaks.
        rules = Environment(  # noqa: S701
            trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined
        )
        rules.filters |= {"yaml": _flow, "comment": printable, "lines": _lines}
        text = resources.files(__package__).joinpath("space.yaml.j2").read_text(encoding="utf-8")
        return rules.from_string(text).render(
            space=self, share=MEMORY_SHARE,
            levels=LEVELS_ON_CPU if self.runtime else LEVELS,
            output_tokens=OUTPUT_TOKENS_ON_CPU if self.runtime else OUTPUT_TOKENS,
            pcie=self.machine is not None and self.machine.name in WITHOUT_NVLINK and self.tp_size > 1,
            mixed=[(algorithm, drafter) for drafter in self.used for algorithm in self.algorithms
                   if algorithm != drafter.algorithm] if len(self.algorithms) > 1 else [],
        )  # fmt: skip


def _lines(text: str) -> list[str]:
    """Return a comment as lines of the file."""
    return textwrap.wrap(printable(text), WIDTH, break_on_hyphens=False, break_long_words=False)


def _flow(value: Any) -> str:
    """Return a value as YAML writes it on one line."""
    text = yaml.safe_dump(value, default_flow_style=True, width=10**9, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")
