"""A target and a drafter under an algorithm: what the checks ask about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from spectune.engines.sglang.options import SHIPPED_VERSION
from spectune.engines.sglang.preflight.architectures import Architecture, Kind, kind_as_drafter, known
from spectune.engines.sglang.preflight.checkpoint import Checkpoint
from spectune.engines.sglang.preflight.safetensors_header import Tensor
from spectune.engines.sglang.preflight.values import Magnitude, magnitude
from spectune.engines.sglang.versions.history import older_than
from spectune.typed_json import mapping_of, whole_number

FUSION = ("fc.weight", "eagle_linear.weight")
ANY_FUSION = ("fc.", "eagle_linear.")
DEFAULT_AUXILIARY = 3  # layers, where neither config nor layer ids say how many (models/llama_eagle3.py:161)
ANY_AUXILIARY = "0.5.12"  # first version that takes another number
HEADS = frozenset({"eagle", "eagle3"})


@dataclass(frozen=True)
class Pair:
    """What is launched together.

    Attributes:
        target: The model that verifies.
        draft: The drafter; the target itself where that brings its own layers.
        algorithm: In capitals, NEXTN as EAGLE.
        longest_request: Tokens, prompt and output together; None when nothing is known of the workload.
        version: SGLang's version.
        arguments: The launch's arguments by their long names.
        env: Variables of the launch.
    """

    target: Checkpoint
    draft: Checkpoint
    algorithm: str
    longest_request: int | None = None
    version: str = SHIPPED_VERSION
    arguments: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def kind(self) -> Kind | None:
        """What the drafter is; None when nothing is known of its architecture."""
        return kind_as_drafter(self.draft.architecture, self.version)

    @cached_property
    def target_class(self) -> Architecture | None:
        """What is known of the target's architecture."""
        return known(self.target.architecture, self.version)

    @property
    def own(self) -> bool:
        """Whether the target drafts for itself."""
        folders = [one.folder and one.folder.resolve() for one in (self.draft, self.target)]
        return (folders[0] is not None and folders[0] == folders[1]) or self.draft.name == self.target.name

    @property
    def head(self) -> bool:
        """Whether the drafter is an EAGLE head under its own algorithm, so that its parts can be looked at."""
        return (self.kind, self.algorithm) in {("eagle", "EAGLE"), ("eagle3", "EAGLE3")}

    @property
    def eagle3(self) -> bool:
        """Whether the drafter is an EAGLE-3 head that runs as one."""
        return self.head and self.kind == "eagle3"

    @cached_property
    def eagle_config(self) -> Mapping[str, Any]:
        """The part of the drafter's config that EAGLE-3 has for itself."""
        return mapping_of(self.draft.model.config.get("eagle_config"))

    @property
    def uses_auxiliary(self) -> bool:
        """Whether an EAGLE-3 drafter reads hidden states of several layers, and not the last one alone."""
        return bool(self.eagle_config.get("use_aux_hidden_state", True))

    @property
    def fuses(self) -> bool:
        """Whether the drafter's fusion layer is used."""
        return self.head and (self.kind == "eagle" or self.uses_auxiliary)

    @property
    def layer_ids(self) -> Any:
        """The target's layers an EAGLE-3 drafter names; None where it leaves them to SGLang."""
        return self.eagle_config.get("eagle_aux_hidden_state_layer_ids")

    @property
    def auxiliary(self) -> int:
        """Hidden states that the drafter's fusion layer is built for."""
        if older_than(self.version, ANY_AUXILIARY):
            return DEFAULT_AUXILIARY
        said = whole_number(self.draft.model.config.get("num_aux_hidden_states"))
        if said is not None and said > 0:
            return said
        return len(self.layer_ids) if isinstance(self.layer_ids, list) and self.layer_ids else DEFAULT_AUXILIARY

    @property
    def input_width(self) -> int | None:
        """Width of one of them, as the drafter expects it."""
        said = whole_number(self.draft.model.config.get("target_hidden_size"))
        return self.draft.hidden_size if said is None else said

    @cached_property
    def fusion(self) -> Tensor | None:
        """The weight that fuses the target's hidden states into the drafter's."""
        return self.draft.weights.named(*FUSION)

    @cached_property
    def fusion_magnitude(self) -> Magnitude | None:
        """How large it is, a block for each hidden state it reads; None where it is not there or not plain numbers."""
        blocks = self.auxiliary if self.kind == "eagle3" else 2
        return None if self.fusion is None else magnitude(self.fusion, blocks)

    @property
    def has_weights(self) -> bool:
        """Whether the drafter's tensors are all known by name."""
        weights = self.draft.weights
        return bool(weights.tensors) and not weights.broken
