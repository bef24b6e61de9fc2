"""SGLang's simulated acceptance on the simulated engine: as many drafts are right as the environment says."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import NormalDist

from spectune.engines.sglang.forced_acceptance import ALGORITHMS, LENGTH, METHOD, forced_length
from spectune.errors import SpectuneError

EXPECTED, NORMAL = "match-expected", "multinomial"


def forced_survival(algorithm: str | None, depth: int, env: Mapping[str, str]) -> tuple[float, ...] | None:
    """Return P(at least d drafts right) for d = 1 … depth as the environment forces it; None where it does not.

    `match-expected` takes the whole number below or above the length, so that the mean is the length; `multinomial`
    rounds a normal number with standard deviation 1. Both stay within 1 and depth + 1. SGLang draws once for a whole
    batch, this engine for each request: means are the same.

    Args:
        algorithm: In capitals; None without speculation.
        depth: Drafted tokens that can be right in one cycle.
        env: Of the launch.

    Raises:
        SpectuneError: For a length or a method that SGLang would die of.
    """
    text = env.get(LENGTH, "-1")
    try:
        float(text)
    except ValueError:
        raise SpectuneError(f"{LENGTH} must be a number, but got {text!r}") from None
    length = forced_length(env)
    if length is None or algorithm not in ALGORITHMS:
        return None
    method = env.get(METHOD, EXPECTED)
    if method == EXPECTED:
        drafts = max(1.0, min(depth + 1.0, length)) - 1.0
        return tuple(min(1.0, max(0.0, drafts - before)) for before in range(depth))
    if method == NORMAL:
        return tuple(1.0 - NormalDist(length, 1.0).cdf(right + 0.5) for right in range(1, depth + 1))
    raise SpectuneError(f"{METHOD} must be {EXPECTED} or {NORMAL}, but got {method!r}")
