"""Beliefs beside launches that are being made: as if each had measured what is believed of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spectune.search.guided.factors import inverse
from spectune.search.guided.landscape import Landscape

Integers = npt.NDArray[np.int64]


def believing(beliefs: Landscape, numbers: Integers) -> Landscape:
    """Return the beliefs as if some candidates had been launched (kriging believer, Ginsbourger et al. 2010).

    A measurement of what is expected changes no expectation, so that its weight in the mean is 0; it takes away doubts,
    its own and those on candidates like it. The inverse grows by the formula for a partitioned matrix.

    Args:
        beliefs: After all finished launches.
        numbers: Of the candidates.
    """
    process, features = beliefs.residual, beliefs.features[beliefs.chart.settings_at(numbers)]
    codes = beliefs.chart.codes_at(numbers)
    cross = process.covariance(codes, process.codes) + process.weights[-2] * features @ process.features.T
    own = process.posterior(codes, features) + process.noise**2 * np.eye(len(numbers))
    gain, block = process.inverse @ cross.T, inverse(own, 0.0)
    grown = replace(
        process,
        codes=np.vstack([process.codes, codes]),
        features=np.vstack([process.features, features]),
        alpha=np.vstack([process.alpha, np.zeros((len(numbers), process.alpha.shape[1]))]),
        inverse=np.block([[process.inverse + gain @ block @ gain.T, -gain @ block], [-block @ gain.T, block]]),
        targets=np.vstack([process.targets, cross @ process.alpha]),
    )
    return replace(beliefs, residual=grown)
