"""How fast simulated time passes."""

from __future__ import annotations

import math

from spectune.errors import SpectuneError

TIME_SCALE_VARIABLE = "SPECTUNE_SIM_TIME_SCALE"


def time_scale_of(text: str) -> float:
    """Read real seconds per simulated one.

    Raises:
        SpectuneError: It is no positive number.
    """
    try:
        scale = float(text)
    except ValueError:
        scale = math.nan
    if not (math.isfinite(scale) and scale > 0):
        raise SpectuneError(f"the time scale must be a number above 0, but got {text!r}")
    return scale
