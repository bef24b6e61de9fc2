"""SGLANG_ENABLE_SPEC_V2: how versions before 0.5.14 are told to overlap drafting with scheduling, as later ones do.

| version       | without it          | with it                               | read in                         |
|---------------|---------------------|---------------------------------------|---------------------------------|
| 0.5.6         | no overlap          | EAGLE only                            | server_args.py:1684-1697        |
| 0.5.7         | no overlap          | EAGLE, EAGLE3; refuses top-k above 1  | server_args.py:2000-2021        |
| 0.5.8-0.5.10  | no overlap          | STANDALONE too; refuses top-k above 1 | 0.5.10 server_args.py:2999-3020 |
| 0.5.11-0.5.12 | overlap for top-k 1 | the same                              | 0.5.11 server_args.py:3461-3485 |
| 0.5.13        | overlap             | the same                              | speculative_hook.py:288-306     |
| from 0.5.14   | overlap             | a warning, nothing from 0.5.21        | 0.5.14 speculative_hook.py:69   |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spectune.engines.sglang.rules.names import ALGORITHM, TOPK
from spectune.engines.sglang.variables import OVERLAP, means_on
from spectune.engines.sglang.versions.history import older_than

_SINCE = {"EAGLE": "0.5.6", "NEXTN": "0.5.6", "EAGLE3": "0.5.7", "STANDALONE": "0.5.8"}


@dataclass(frozen=True)
class OverlapVariable:
    """What the variable must be for a launch; nothing where the version does not read it."""

    env: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def overlap_variable(
    arguments: Mapping[str, Any], environment: Mapping[str, str | None], version: str
) -> OverlapVariable:
    """Return the variable for a launch that names none itself, so that nothing depends on the caller's shell.

    Args:
        arguments: SGLang 0.5.23's names.
        environment: Variables the launch sets, None for those it must not have.
        version: SGLang's version.
    """
    algorithm = str(arguments.get(ALGORITHM) or "none").upper()
    topk = int(arguments.get(TOPK) or 1)
    chosen = environment.get(OVERLAP)
    if not older_than(version, "0.5.14"):
        gone = (f"SGLang {version} does not read {OVERLAP}; use disable-overlap-schedule",) if chosen else ()
        return OverlapVariable(notes=gone)
    if algorithm not in _SINCE:
        return OverlapVariable()
    supported = not older_than(version, _SINCE[algorithm])
    chain_only = older_than(version, "0.5.11")
    if OVERLAP in environment:
        refused = supported and chain_only and topk > 1 and not older_than(version, "0.5.7")
        return _named(chosen, topk, version, refused=refused)
    overlaps = supported and (topk == 1 or not older_than(version, "0.5.13"))
    wanted = supported and (topk == 1 or not chain_only) and not arguments.get("disable-overlap-schedule")
    notes = () if overlaps else (f"SGLang {version} drafts without overlap for {algorithm} with top-k {topk}",)
    return OverlapVariable({OVERLAP: "1" if wanted else "0"}, notes)


def _named(chosen: str | None, topk: int, version: str, *, refused: bool) -> OverlapVariable:
    """Return the launch's own choice, or why the version dies of it."""
    if not refused or not means_on(chosen):
        return OverlapVariable()
    why = f"SGLang {version} refuses top-k {topk} under {OVERLAP}={chosen}; set it to 0"
    return OverlapVariable(problems=(why,))
