"""The preflight of a search: every drafter beside every algorithm that the space names, each judged once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from spectune.engines.parts import Illegal, Part
from spectune.engines.sglang.model_folder import CONFIG_RULE, ModelReader
from spectune.engines.sglang.preflight.checkpoint import Checkpoint
from spectune.engines.sglang.preflight.origin import DRAFT_QUANTIZATION, QUANTIZATION
from spectune.engines.sglang.preflight.table import preflight
from spectune.engines.sglang.preflight.target import DRAFTER_AS_TARGET
from spectune.engines.sglang.rules import names as n
from spectune.engines.sglang.rules.judging import Finding

REVISION = "revision"
TARGET_CONFIG = "target-config"
TARGET_CHECKS = frozenset({TARGET_CONFIG, DRAFTER_AS_TARGET, "target-weights-broken"})
"""What is wrong with the target whatever drafts for it."""
ASKED = (
    n.ALGORITHM, n.DRAFT_MODEL, n.DRAFT_REVISION, n.MODEL, REVISION, n.CONTEXT, QUANTIZATION, DRAFT_QUANTIZATION,
)  # fmt: skip
"""The arguments a preflight depends on."""


@dataclass(frozen=True)
class Drafters:
    """What a search's launches draft with.

    Attributes:
        fixed: Arguments every launch shares.
        env: Variables every launch shares.
        version: SGLang's version.
        place: The folder or hub name that a model's reference stands for.
        on: Whether anything is looked at.
    """

    fixed: Mapping[str, Any]
    env: Mapping[str, str]
    version: str
    place: Callable[[Any], str]
    on: bool = True
    _checkpoints: dict[Any, Checkpoint] = field(default_factory=dict, repr=False, compare=False)
    _illegal: dict[Any, Illegal | None] = field(default_factory=dict, repr=False, compare=False)

    def findings(self, values: Mapping[str, Any], longest_request: int | None = None) -> list[Finding]:
        """Return what is wrong with the drafter of an assignment.

        Args:
            values: Arguments by name; what it leaves out is what every launch shares.
            longest_request: Tokens of the workload's longest request; None when not known.
        """
        launch = {**self.fixed, **values}
        model, drafter = launch.get(n.MODEL), launch.get(n.DRAFT_MODEL)
        if not self.on or model is None or launch.get(n.ALGORITHM) is None:
            return []
        target = self._checkpoint(n.MODEL, model, launch.get(REVISION))
        draft = None if drafter is None else self._checkpoint(n.DRAFT_MODEL, drafter, launch.get(n.DRAFT_REVISION))
        found = preflight(
            target, draft, algorithm=str(launch[n.ALGORITHM]), longest_request=longest_request, version=self.version,
            arguments=launch, env=self.env,
        )  # fmt: skip
        doubts = draft.doubts if draft is not None and n.algorithm_of(launch) != "NGRAM" else ()
        return [*(replace(one, rule=TARGET_CONFIG) for one in target.doubts), *doubts, *found]

    def illegal(self, values: Mapping[str, Any]) -> Illegal | None:
        """Return why a drafter is never launched this way; None when nothing fatal is found."""
        asked = tuple(str(values.get(name)) for name in ASKED)
        if asked not in self._illegal:
            fatal = next((one for one in self.findings(values) if one.severity == "fatal"), None)
            self._illegal[asked] = None if fatal is None else Illegal(fatal.rule, f"{fatal.message}; {fatal.advice}")
        return self._illegal[asked]

    def fitting(self, part: Part, values: Mapping[str, Any]) -> Part:
        """Exclude a legal part whose drafter cannot work."""
        if not self.on or part.illegal is not None or values[n.ALGORITHM] is None:
            return part
        unfit = self.illegal(values)
        return part if unfit is None else replace(part, illegal=unfit)

    def _checkpoint(self, option: str, reference: Any, revision: Any) -> Checkpoint:
        key = (option, str(reference), str(revision))
        if key not in self._checkpoints:
            reader = ModelReader(Path.cwd(), {**os.environ, **self.env})
            place, wanted = self.place(reference), None if revision is None else str(revision)
            model, said = reader.read(place, option, wanted)
            doubts = tuple(one for one in said if one.rule == CONFIG_RULE)  # what is not here is the engine's to find
            self._checkpoints[key] = Checkpoint(str(reference), model, reader.folder(place, wanted), doubts)
        return self._checkpoints[key]
