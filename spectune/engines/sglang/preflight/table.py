"""The one table of checks, and the function that asks them all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spectune.engines.sglang.options import SHIPPED_VERSION
from spectune.engines.sglang.preflight.algorithm import ALGORITHM_CHECKS
from spectune.engines.sglang.preflight.check import Check
from spectune.engines.sglang.preflight.checkpoint import Checkpoint
from spectune.engines.sglang.preflight.context import CONTEXT_CHECKS
from spectune.engines.sglang.preflight.fusion import FUSION_CHECKS
from spectune.engines.sglang.preflight.origin import FILES, ORIGIN
from spectune.engines.sglang.preflight.pair import Pair
from spectune.engines.sglang.preflight.target import drafter_as_target
from spectune.engines.sglang.preflight.vocabulary import VOCABULARY
from spectune.engines.sglang.rules.judging import Finding
from spectune.engines.sglang.rules.names import ALGORITHM, BUNDLED_DRAFT, algorithm_of

CHECKS: tuple[Check, ...] = (*FILES, *ALGORITHM_CHECKS, *FUSION_CHECKS, *VOCABULARY, *CONTEXT_CHECKS, *ORIGIN)
assert len({check.name for check in CHECKS}) == len(CHECKS), "check names are unique"

DRAFTED = frozenset({"EAGLE", "EAGLE3", "STANDALONE", "DFLASH", "DSPARK"})
"""Algorithms with a draft model that is looked at."""


def preflight(
    target: Checkpoint,
    draft: Checkpoint | None,
    *,
    algorithm: str,
    longest_request: int | None = None,
    version: str = SHIPPED_VERSION,
    arguments: Mapping[str, Any] = {},
    env: Mapping[str, str] = {},
) -> list[Finding]:
    """Say what is wrong with a drafter for a target, before either is loaded.

    What this machine cannot know, because there is no config.json or there are no weights, is passed over.

    Args:
        target: The model that is served.
        draft: The drafter; None where the launch names none.
        algorithm: As the launch gives it.
        longest_request: Tokens of the workload's longest request, prompt and output together; None when not known.
        version: SGLang's version.
        arguments: The launch's other arguments by their long names; context length and quantization are looked at.
        env: Variables of the launch.

    Returns:
        The findings in the order of the table; a `fatal` one means that the launch is not worth making. Of a target
        that is a drafter itself that is the only one: what else does not fit follows from it.
    """
    if (swapped := drafter_as_target(target, version)) is not None:
        return [swapped]
    name = algorithm_of({ALGORITHM: algorithm})
    if draft is None and name == "EAGLE" and target.architecture in BUNDLED_DRAFT:
        draft = target
    if draft is None or name not in DRAFTED:
        return []
    pair = Pair(target, draft, name, longest_request, version, arguments, env)
    return [finding for check in CHECKS if (finding := check.finding(pair)) is not None]
