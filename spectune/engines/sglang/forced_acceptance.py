"""SGLang's simulated acceptance: variables that make it accept so many tokens per verify, whatever was drafted.

Read in SGLang 0.5.23's `spec_utils.py` and `eagle_utils.py`; the length is known since 0.5.6. The answers are then no
longer the model's, so what is measured says what a cycle costs, and nothing of a drafter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

LENGTH = "SGLANG_SIMULATE_ACC_LEN"
METHOD = "SGLANG_SIMULATE_ACC_METHOD"
OFF = "-1"
ALGORITHMS = frozenset({"EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "DFLASH", "DSPARK"})
"""Those whose workers look at it."""


def forced_length(env: Mapping[str, str]) -> float | None:
    """Return the accept length that an environment forces; None where it forces none."""
    try:
        length = float(env.get(LENGTH, OFF))
    except ValueError:
        return None
    return length if math.isfinite(length) and length > 0.0 else None


def forced_lengths(environments: Iterable[Mapping[str, str]]) -> list[float]:
    """Return the different lengths that the environments of an engine's workers force."""
    return sorted({length for env in environments if (length := forced_length(env)) is not None})
