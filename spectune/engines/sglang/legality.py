"""Which assignments the installed SGLang can be launched with, and what they are folded to."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from spectune.engines.parts import Assignment, Illegal, Part
from spectune.engines.sglang.group_size import beyond_gpus, decides
from spectune.engines.sglang.options import Options
from spectune.engines.sglang.preflight.drafters import Drafters
from spectune.engines.sglang.rules.folding import Rulebook
from spectune.engines.sglang.rules.names import ALGORITHM, algorithm_of
from spectune.engines.sglang.variables import OVERLAP
from spectune.engines.sglang.versions.translation import unavailable
from spectune.space.names import ENV_PREFIX

COUPLED_VARIABLES = frozenset({f"{ENV_PREFIX}{OVERLAP}"})  # decides whether an older SGLang takes a tree


@dataclass(frozen=True)
class Legality:
    """The table of rules, the drafters' preflight, what is installed and the launch's GPUs, asked together.

    Attributes:
        rules: The table, for these launches.
        drafters: What they draft with.
        fixed: Arguments every launch shares.
        env: Variables every launch shares.
        options: The options of the installed SGLang.
        gpus: GPUs that a launch is shown; 0 where it needs none of this machine's.
    """

    rules: Rulebook
    drafters: Drafters
    fixed: Mapping[str, Any]
    env: Mapping[str, str]
    options: Options
    gpus: int

    def draft_names(self, names: Collection[str]) -> frozenset[str]:
        """Return S, K, N, the algorithm and an older SGLang's overlap variable; all where rules couple them to more."""
        return self.rules.draft_names(names) | (COUPLED_VARIABLES & frozenset(names))

    def draft_part(self, values: Assignment) -> Part:
        """Judge S, K, N and the algorithm, whatever else is chosen."""
        part = self.rules.draft_part(values)
        if part.key is None:  # everything is judged with the draft, the drafter included
            part = self.drafters.fitting(part, {**values, ALGORITHM: algorithm_of({**self.fixed, **values})})
        return self._there(part)

    def rest_part(self, key: Any, values: Assignment) -> Part:
        """Judge everything else beside any draft with this key."""
        part = self.rules.rest_part(key, values)
        return self._there(part if key is None else self.drafters.fitting(part, {**values, ALGORITHM: key[0]}))

    def beyond_gpus(self, values: Assignment) -> Illegal | None:
        """Return why a launch with some values has too few GPUs, None where it has enough or needs none."""
        return beyond_gpus({**self.fixed, **values}, self.gpus) if self.gpus else None

    def _there(self, part: Part) -> Part:
        """Exclude a legal part that the installed version does not have, or the launch's GPUs do not bear."""
        if part.illegal:
            return part
        values = dict(part.items)
        lacking = unavailable(values, self.env, self.options)
        if lacking is None and decides(values):  # what every launch shares is judged once, before the first
            lacking = self.beyond_gpus(values)
        return part if lacking is None else replace(part, illegal=lacking)
