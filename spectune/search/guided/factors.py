"""Roots and inverses of covariances, also of those whose rounding leaves them none."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

RAISED = (0.0, *10.0 ** np.arange(-13.0, -1.0))  # jitter in mean variances, from next to rounding to far beyond it
LEAST_PIVOT = 1e-14  # in mean variances: below it a pivot is rounding


def root(covariance: Floats, jitter: float) -> Floats:
    """Return the Cholesky root of covariances with jitter on the diagonal, shape (..., n, n)."""
    return _regular(covariance, jitter)[1]


def inverse(covariance: Floats, jitter: float) -> Floats:
    """Return the inverse of a covariance with jitter on the diagonal, shape (n, n)."""
    return np.asarray(np.linalg.inv(_regular(covariance, jitter)[0]), np.float64)


def _regular(covariance: Floats, jitter: float) -> tuple[Floats, Floats]:
    """Return covariances with as much jitter as they need to have a root, and the root.

    The jitter asked for is enough for what machines do. A launch that is off by orders of magnitude makes variances so
    large that it is lost in their rounding: then it grows with them.

    Raises:
        numpy.linalg.LinAlgError: They are not finite.
    """
    eye = np.eye(covariance.shape[-1])
    mean = np.trace(covariance, axis1=-2, axis2=-1)[..., None, None] / max(1, len(eye))
    for raised in RAISED:
        regular = covariance + np.maximum(jitter, raised * mean) * eye
        try:
            found = np.linalg.cholesky(regular)
        except np.linalg.LinAlgError:
            continue
        if (np.square(np.diagonal(found, axis1=-2, axis2=-1)) > LEAST_PIVOT * mean[..., 0]).all():
            return regular, found
    raise np.linalg.LinAlgError("a covariance that is not finite")
