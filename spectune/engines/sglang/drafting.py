"""What drafting adds to a launch: time to capture its graphs, and ways to go wrong without a word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spectune.engines.sglang.rules.names import GRAPH_SIZES, STEPS, decode_graphs_off

CAPTURE_S = 1.0
"""For a captured batch size and draft step: draft graphs took 62.7 s where the target's took 12.1 s (sglang#10088)."""


def capture_allowance_s(arguments: Mapping[str, Any]) -> float:
    """Return how much longer than a plain launch one may start that captures graphs for its drafts.

    Args:
        arguments: Of the complete launch.
    """
    sizes, steps = arguments.get(GRAPH_SIZES), arguments.get(STEPS)
    if decode_graphs_off(arguments) or not isinstance(sizes, tuple | list) or not isinstance(steps, int):
        return 0.0
    return CAPTURE_S * len(sizes) * steps


def causes_of_nothing_accepted(algorithm: str, drafter: Any) -> tuple[str, ...]:
    """Return the likely causes, most likely first.

    Args:
        algorithm: As in the candidate.
        drafter: Path or name of the drafter, None without one.
    """
    name = algorithm.upper()
    if name == "NGRAM":
        return ("the answers repeat nothing that was said before: n-gram lookup does not suit this workload",)
    model = "the drafter" if drafter is None else f"the drafter {drafter}"
    untrained = (
        f"{model} was made for another base model, or for another version or chat template of this one",
        f"{model} is not trained, or its fusion weight was not loaded: see missing keys in server.log",
        f"{model} maps its own vocabulary to the target's wrongly (d2t)",
        "target or drafter are quantized in a way that the other does not expect",
    )
    if name in {"EAGLE", "NEXTN"} and drafter is not None:
        return (f"{model} is an EAGLE-3 one, which {name} loads and never feeds: write EAGLE3", *untrained)
    if name in {"EAGLE", "NEXTN"}:
        return (
            "the checkpoint has no MTP layers of its own, or lost them when it was quantized",
            *untrained[2:],
        )
    if name == "STANDALONE":
        return (f"{model} has another tokenizer than the target", *untrained[1:2], untrained[3])
    return untrained
