"""A Gaussian process on what the physics leaves over: an effect of every parameter, of every pair, and noise.

The kernel is a sum K = Σ_t w_t C_t of fixed components: one per parameter, one per pair of parameters, one for all
draft parameters together, a constant, and noise. The variances w_t maximise the marginal likelihood times
inverse-gamma priors, by the multiplicative MM updates of Zhou et al. (2019, "MM Algorithms for Variance Components
Models"), never negative. What does not show shrinks, what was never varied keeps its prior, whose scale can be learned.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from spectune.search.guided.encoding import Codes
from spectune.search.guided.factors import inverse
from spectune.search.guided.kernel import Components, Spreads
from spectune.search.guided.scale import scaled

Floats = npt.NDArray[np.float64]

ROUNDS = 12
FITTED = 128  # assignments that variances are fitted to, at most: as many tell as much of them as all, in less time
CERTAINTY = 1.0  # pseudo-observations behind each prior variance
JITTER = 1e-10


@dataclass(frozen=True)
class Residual:
    """A fitted process.

    Attributes:
        components: Its kernel's.
        codes: Assignments it was fitted to, shape (n, axes).
        features: Of these, shape (n, parts): what else may be wrong about them, in independent parts.
        weights: Variance of each component, then of the noise.
        alpha: K⁻¹y, shape (n, targets).
        inverse: K⁻¹, shape (n, n).
        targets: y.
    """

    components: Components
    codes: Codes
    features: Floats
    weights: Floats
    alpha: Floats
    inverse: Floats
    targets: Floats

    @classmethod
    def fit(
        cls,
        components: Components,
        codes: Codes,
        features: Floats,
        targets: Floats,
        spreads: Spreads,
        errors: Floats | None = None,
        *,
        learned: bool = False,
    ) -> Residual:
        """Fit the variances, then the process.

        Args:
            components: Of the kernel.
            codes: Shape (n, axes), n ≥ 1.
            features: Shape (n, parts); a linear function of them with standard normal coefficients is one component.
            targets: Shape (n, targets); all share the kernel.
            spreads: Prior standard deviations.
            errors: Noise of each assignment's targets relative to that of a launch, shape (n,); 1 where not given.
            learned: Whether the scale of effects is learned first.
        """
        noise = np.ones(len(codes)) if errors is None else np.square(errors)
        some = np.linspace(0, len(codes) - 1, min(FITTED, len(codes))).round().astype(np.int64)
        stack = np.concatenate([components.stack(codes[some], features[some]), np.diag(noise[some])[None]])
        weights = _fitted(stack.reshape(len(stack), -1), components.priors(spreads), targets[some], learned=learned)
        kernel = components.covariance(weights, codes, codes) + weights[-2] * features @ features.T
        inverted = inverse(kernel + weights[-1] * np.diag(noise), JITTER)
        return cls(components, codes, features, weights, inverted @ targets, inverted, targets)

    @property
    def prior_variance(self) -> float:
        """Variance of an assignment that is like none seen, features and noise left out."""
        return float(self.weights[:-2].sum())

    @property
    def own_deviation(self) -> float:
        """Standard deviation of how an assignment like none seen differs from the mean, features and noise left out."""
        return float(np.sqrt(self.weights[1:-2].sum()))

    @property
    def noise(self) -> float:
        """Standard deviation of one launch."""
        return float(np.sqrt(self.weights[-1]))

    def part(self, share: float) -> Residual:
        """Return the process of a part of the targets: what it adds to their mean with others."""
        return replace(
            self, weights=share**2 * self.weights, alpha=self.alpha / share, inverse=self.inverse / share**2,
            targets=share * self.targets,
        )  # fmt: skip

    def surface(self, draft_codes: Codes, side_codes: Codes) -> Floats:
        """Return the mean of every draft beside every side, shape (targets, drafts, sides).

        No component has more than two sides' parameters. So what was seen is summed for every two values once: what is
        left to do for each side does not grow with the launches.
        """
        axes, drafts = self.components.axes, self.components.drafts
        seen = [axis.likeness[:, codes] for axis, codes in zip(axes, self.codes.T, strict=True)]
        on_drafts = [likeness[codes] for likeness, codes in zip(seen, draft_codes.T, strict=False)]
        singles, pairs = self.weights[1 : 1 + len(axes)], self.weights[1 + len(axes) : -3]
        whole = np.prod(on_drafts, axis=0) if on_drafts else 1.0
        on_draft = np.full((len(draft_codes), len(self.codes)), self.weights[0]) + self.weights[-3] * whole
        on_draft += sum(weight * own for weight, own in zip(singles, on_drafts, strict=False))
        beside = np.zeros((len(axes), *on_draft.shape))
        on_side = np.zeros((self.alpha.shape[1], len(side_codes)))
        for weight, (i, j) in zip(pairs, self.components.pairs, strict=True):
            if j < drafts:
                on_draft += weight * on_drafts[i] * on_drafts[j]
            elif i < drafts:
                beside[j] += weight * on_drafts[i]
            else:
                table = np.einsum("an,bn,nt->tab", weight * seen[i], seen[j], self.alpha, optimize=True)
                on_side += table[:, side_codes[:, i - drafts], side_codes[:, j - drafts]]
        found: Floats = (on_draft @ self.alpha).T[:, :, None] + on_side[:, None, :]
        for j in range(drafts, len(axes)):
            table = np.einsum("dn,vn,nt->tdv", singles[j] + beside[j], seen[j], self.alpha, optimize=True)
            found += table[:, :, side_codes[:, j - drafts]]
        return found

    def shift(self, features: Floats) -> Floats:
        """Return what the features add to the mean, shape (targets, n)."""
        found: Floats = (self.weights[-2] * features @ (self.features.T @ self.alpha)).T
        return found

    def doubts(self, features: Floats) -> Floats:
        """Return the standard deviation that the features leave, shape (n,)."""
        left = self.features.T @ self.inverse @ self.features
        kept = self.weights[-2] * np.eye(len(left)) - self.weights[-2] ** 2 * left
        found: Floats = np.sqrt(np.maximum(0.0, np.einsum("ij,jk,ik->i", features, kept, features, optimize=True)))
        return found

    def covariance(self, left: Codes, right: Codes) -> Floats:
        """Return the prior covariance between assignments, shape (left, right)."""
        return self.components.covariance(self.weights, left, right)

    def means(self, codes: Codes) -> Floats:
        """Return the mean of each assignment without features, shape (targets, n)."""
        found: Floats = (self.covariance(codes, self.codes) @ self.alpha).T
        return found

    def variances(self, codes: Codes, features: Floats) -> Floats:
        """Return the posterior variance of each assignment, noise left out."""
        cross = self.covariance(codes, self.codes) + self.weights[-2] * features @ self.features.T
        prior = self.prior_variance + self.weights[-2] * np.square(features).sum(axis=1)
        explained = np.einsum("ij,jk,ik->i", cross, self.inverse, cross, optimize=True)
        found: Floats = np.maximum(0.0, prior - explained)
        return found

    def contrasts(self, codes: Codes, features: Floats, code: Codes, feature: Floats) -> Floats:
        """Return the posterior variance of each assignment's difference from one, shape (n,), noise left out."""
        among, beside = np.vstack([codes, code]), np.vstack([features, feature])
        cross = self.covariance(among, self.codes) + self.weights[-2] * beside @ self.features.T
        alike = self.covariance(codes, code)[:, 0] + self.weights[-2] * features @ feature[0]
        prior = self.prior_variance + self.weights[-2] * np.square(beside).sum(axis=1)
        apart = cross[:-1] - cross[-1]
        explained = np.einsum("ij,jk,ik->i", apart, self.inverse, apart, optimize=True)
        found: Floats = np.maximum(0.0, prior[:-1] + prior[-1] - 2.0 * alike - explained)
        return found

    def posterior(self, codes: Codes, features: Floats) -> Floats:
        """Return the posterior covariance of some assignments, noise left out, shape (n, n)."""
        cross = self.covariance(codes, self.codes) + self.weights[-2] * features @ self.features.T
        prior = self.covariance(codes, codes) + self.weights[-2] * features @ features.T
        found: Floats = prior - cross @ self.inverse @ cross.T
        return found


def _fitted(flat: Floats, usual: Floats, targets: Floats, *, learned: bool) -> Floats:
    """Return the variance of each component; `flat` holds them as rows, that of the noise last."""
    count = len(targets)
    priors = scaled(flat, usual, targets) if learned else usual
    weights = priors.copy()
    for _ in range(ROUNDS):
        inverted = inverse((weights @ flat).reshape(count, count), JITTER)
        alpha = inverted @ targets
        explained = alpha @ alpha.T / targets.shape[1]
        gains, costs = flat @ explained.ravel(), flat @ inverted.ravel()
        # Inverse-gamma prior with mode near the prior variance, its log term replaced by the tangent.
        top = weights**2 * gains + CERTAINTY * priors
        weights = np.sqrt(top / (np.maximum(costs, 0.0) + CERTAINTY / weights))
        weights[-2] = 1.0  # the features say themselves how wrong they may be
    return weights
