"""How large effects are on this machine, as far as all launches together tell (empirical Bayes).

One pair of parameters says little of its own variance, but all effects together say a lot of effects. So where none
shows, those that were never tried are believed to be small as well: on a machine without effects of its own a search
can end, and on one with interactions it goes on.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spectune.search.guided.factors import root

Floats = npt.NDArray[np.float64]

SCALES = 2.0 ** np.arange(1.0, -7.0, -1.0)  # of the usual standard deviations; each as likely as the others beforehand
JITTER = 1e-10


def scaled(flat: Floats, priors: Floats, targets: Floats) -> Floats:
    """Return the variances at the mean square of the scale, by the marginal likelihood of each of `SCALES`.

    Args:
        flat: Components of the kernel, shape (components, n²): the mean, effects, the physics' features, noise.
        priors: Their usual variances; only those of effects are scaled.
        targets: Shape (n, targets); likelihoods are averaged over the targets, whose noise is one.
    """
    count = len(targets)
    effects, rest = priors[1:-2] @ flat[1:-2], priors[[0, -2, -1]] @ flat[[0, -2, -1]]
    kernels = (rest + np.square(SCALES)[:, None] * effects).reshape(-1, count, count)
    roots = root(kernels, JITTER)
    whitened = np.linalg.solve(roots, np.broadcast_to(targets, (len(roots), *targets.shape)))
    misfits = np.square(whitened).sum(axis=1).mean(axis=1)
    logs = -0.5 * misfits - np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
    odds = np.exp(logs - logs.max())
    found = priors.copy()
    found[1:-2] *= odds @ np.square(SCALES) / odds.sum()
    return found
