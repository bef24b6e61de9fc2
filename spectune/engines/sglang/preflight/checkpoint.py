"""A model that a launch names, as far as this machine has it; each of its files is read when first asked about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from spectune.engines.sglang.model_config import Model
from spectune.engines.sglang.preflight.tokens import TokenIds, read_token_ids
from spectune.engines.sglang.preflight.weights import Weights, read_weights
from spectune.engines.sglang.rules.judging import Finding


@dataclass(frozen=True)
class Checkpoint:
    """A target or a drafter.

    Attributes:
        name: As the launch gives it.
        model: What its config.json says; unknown where it cannot be read.
        folder: Where it is; None when it is not on this machine.
        doubts: What is wrong with its config.json.
    """

    name: str
    model: Model
    folder: Path | None = None
    doubts: tuple[Finding, ...] = ()

    @classmethod
    def in_folder(cls, folder: Path) -> Checkpoint:
        """Return the checkpoint in a folder; one of which nothing is known where there is none."""
        return cls(str(folder), Model.from_folder(folder), folder if folder.is_dir() else None)

    @cached_property
    def weights(self) -> Weights:
        """What the headers of its tensors say; nothing where there is no folder."""
        return Weights() if self.folder is None else read_weights(self.folder)

    @cached_property
    def token_ids(self) -> TokenIds | None:
        """Its tokenizer's tokens and ids; None when there is no readable tokenizer.json."""
        return None if self.folder is None else read_token_ids(self.folder)

    @property
    def architecture(self) -> str | None:
        """First of the config's architectures."""
        return self.model.architecture

    @property
    def hidden_size(self) -> int | None:
        """Width of its hidden states."""
        return self.model.integer("hidden_size")

    @property
    def vocab_size(self) -> int | None:
        """Rows of its embedding."""
        return self.model.integer("vocab_size")

    @property
    def layers(self) -> int | None:
        """Transformer layers, those of a looped model counted as often as they run."""
        layers, loops = self.model.integer("num_hidden_layers"), self.model.integer("num_loops")
        return None if layers is None else layers * (loops or 1)

    @property
    def context_length(self) -> int | None:
        """Tokens SGLang derives from the config; None when nothing is known."""
        return None if self.architecture is None else self.model.context_length

    @property
    def rope_scaling(self) -> Mapping[str, Any]:
        """How positions are stretched."""
        return self.model.rope_scaling
