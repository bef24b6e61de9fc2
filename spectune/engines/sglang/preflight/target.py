"""Whether the target is a model that can be served at all, and not what was trained to draft for one."""

from __future__ import annotations

from spectune.engines.sglang.preflight.architectures import known
from spectune.engines.sglang.preflight.checkpoint import Checkpoint
from spectune.engines.sglang.rules.judging import Finding
from spectune.printable import printable

DRAFTER_AS_TARGET = "drafter-as-target"


def drafter_as_target(target: Checkpoint, version: str) -> Finding | None:
    """Return why a target cannot be served, where its architecture is a draft head's; None where it is not."""
    found = known(target.architecture, version)
    if found is None or not found.drafter:
        return None
    message = (
        f"{target.name} is a drafter ({target.architecture}), not a model to serve: it needs the hidden states of one"
    )
    advice = "swap the two: name the model it was trained for as the model, and this one as the drafter"
    return Finding(DRAFTER_AS_TARGET, "fatal", printable(message), advice)
