"""What stands behind a drafter of which nothing is accepted."""

from __future__ import annotations

from typing import Any


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
