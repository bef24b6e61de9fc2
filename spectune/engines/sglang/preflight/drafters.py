"""The preflight of a search: every drafter beside every algorithm that the space names, each judged once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from spectune.engines.protocol import Illegal
from spectune.engines.sglang.preflight.checkpoint import Checkpoint
from spectune.engines.sglang.preflight.context import MODEL_LENGTH
from spectune.engines.sglang.preflight.origin import DRAFT_QUANTIZATION, QUANTIZATION
from spectune.engines.sglang.preflight.table import preflight
from spectune.engines.sglang.rules import names as n
from spectune.engines.sglang.rules.judging import Finding

MODEL, REVISION = "model-path", "revision"
TARGET_CONFIG = "target-config"
TARGET_CHECKS = frozenset({TARGET_CONFIG, "target-weights-broken"})
"""What is wrong with the target whatever drafts for it."""
ASKED = (
    n.ALGORITHM, n.DRAFT_MODEL, n.DRAFT_REVISION, MODEL, REVISION, MODEL_LENGTH, QUANTIZATION, DRAFT_QUANTIZATION,
)  # fmt: skip
"""The arguments a preflight depends on."""


@dataclass(frozen=True)
class Drafters:
    """What a search's launches draft with.

    Attributes:
        fixed: Arguments every launch shares.
        env: Variables every launch shares.
        version: SGLang's version.
        find: Reads the checkpoint of a model by the option it is given to, its reference and its revision.
    """

    fixed: Mapping[str, Any]
    env: Mapping[str, str]
    version: str
    find: Callable[[str, Any, Any], Checkpoint]
    _checkpoints: dict[Any, Checkpoint] = field(default_factory=dict, repr=False, compare=False)
    _illegal: dict[Any, Illegal | None] = field(default_factory=dict, repr=False, compare=False)

    def findings(self, values: Mapping[str, Any], longest_request: int | None = None) -> list[Finding]:
        """Return what is wrong with the drafter of an assignment.

        Args:
            values: Arguments by name; what it leaves out is what every launch shares.
            longest_request: Tokens of the workload's longest request; None when not known.
        """
        launch = {**self.fixed, **values}
        model, drafter = launch.get(MODEL), launch.get(n.DRAFT_MODEL)
        if model is None or launch.get(n.ALGORITHM) is None:
            return []
        target = self._checkpoint(MODEL, model, launch.get(REVISION))
        draft = None if drafter is None else self._checkpoint(n.DRAFT_MODEL, drafter, launch.get(n.DRAFT_REVISION))
        found = preflight(
            target, draft, algorithm=str(launch[n.ALGORITHM]), longest_request=longest_request, version=self.version,
            arguments=launch, env=self.env,
        )  # fmt: skip
        doubts = draft.doubts if draft is not None and str(launch[n.ALGORITHM]).upper() != "NGRAM" else ()
        return [*(replace(one, rule=TARGET_CONFIG) for one in target.doubts), *doubts, *found]

    def illegal(self, values: Mapping[str, Any]) -> Illegal | None:
        """Return why a drafter is never launched this way; None when nothing fatal is found."""
        asked = tuple(str(values.get(name)) for name in ASKED)
        if asked not in self._illegal:
            fatal = next((one for one in self.findings(values) if one.severity == "fatal"), None)
            self._illegal[asked] = None if fatal is None else Illegal(fatal.rule, f"{fatal.message}; {fatal.advice}")
        return self._illegal[asked]

    def _checkpoint(self, option: str, reference: Any, revision: Any) -> Checkpoint:
        key = (option, str(reference), str(revision))
        if key not in self._checkpoints:
            self._checkpoints[key] = self.find(option, reference, revision)
        return self._checkpoints[key]
