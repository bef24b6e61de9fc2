"""Everything that is drawn: all of it from (seed, launch), so that both forms of the engine draw the same."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from spectune.engines.simulated.profile_schema import MOST_TOGETHER, Noise

SECONDS_PER_HOUR = 3600.0
DRAWS = 64  # of one request in one block; a request that verifies more often goes on in the next block
_WINDOWS = 256  # seconds drawn at a time
_PACE, _ACCEPTANCE = 0, 1  # independent streams of one launch


class Pace:
    """How the cycles of one launch differ from the cost model: launch, windows of one second, drift and jumps."""

    def __init__(self, noise: Noise, seed: int, launch: int, hours: float) -> None:
        """Draw the launch.

        Args:
            noise: The profile's.
            seed: The profile's.
            launch: Number of the launch in the study.
            hours: Study clock at its first simulated second.
        """
        self._noise, self._hours = noise, hours
        self._generator = np.random.Generator(np.random.PCG64([seed, launch, _PACE]))
        self.launch_factor = math.exp(noise.launch_sd * self._generator.standard_normal())
        self._factors = np.empty(0)

    def factors(self, seconds: int) -> npt.NDArray[np.float64]:
        """Return the factor on the cycles that begin in each of the first `seconds` simulated seconds, or of more."""
        while len(self._factors) < seconds:
            self._factors = np.concatenate([self._factors, self._drawn(len(self._factors))])
        return self._factors

    def factor(self, second: int) -> float:
        """Return the factor on a cycle that begins in simulated second `second`."""
        return float(self.factors(second + 1)[second])

    def _drawn(self, first: int) -> npt.NDArray[np.float64]:
        noise = self._noise
        factors = np.exp(noise.window_sd * self._generator.standard_normal(_WINDOWS)) * self.launch_factor
        if noise.drift_per_hour or noise.jumps:
            hours = self._hours + np.arange(first, first + _WINDOWS) / SECONDS_PER_HOUR
            with np.errstate(over="ignore"):
                drift = (1.0 + noise.drift_per_hour) ** hours
            factors *= np.clip(drift, 1.0 / MOST_TOGETHER, MOST_TOGETHER)
            for jump in noise.jumps:
                factors[hours >= jump.at_hour] *= jump.cycle
        drawn: npt.NDArray[np.float64] = factors
        return drawn


def acceptance_draws(seed: int, launch: int, block: int, first: int, count: int) -> npt.NDArray[np.float64]:
    """Return uniform draws for verifies `block`·64 … `block`·64 + 63 of consecutive requests.

    Args:
        seed: The profile's.
        launch: Number of the launch in the study.
        block: Which 64 verifies of each request.
        first: Number of the first request within the launch.
        count: Requests.

    Returns:
        Shape (`count`, 64); a request draws the same whatever runs beside it.
    """
    bits = np.random.PCG64([seed, launch, _ACCEPTANCE, block])
    bits.advance(first * DRAWS)
    return np.random.Generator(bits).random((count, DRAWS))
