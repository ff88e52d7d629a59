"""A mixture of Gaussians as a density with everything known: log density, gradient, moments, draws."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
LOG_2PI = math.log(2.0 * math.pi)


@dataclass(frozen=True)
class MixtureDensity:
    """A mixture of Gaussians as a target: weights (k,), means (k, d), covariances (k, d, d).

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.variational import MixtureDensity
    >>> density = MixtureDensity([0.5, 0.5], [[-2.0], [2.0]], [[[1.0]], [[1.0]]])
    >>> density(np.zeros((1, 1))).round(4)
    array([-2.9189])
    """

    weights: Array
    means: Array
    covariances: Array
    _factors: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        weights, means, covariances = (
            np.asarray(value, dtype=np.float64) for value in (self.weights, self.means, self.covariances)
        )
        k, d = means.shape if means.ndim == 2 else (0, 0)
        if means.ndim != 2 or weights.shape != (k,) or covariances.shape != (k, d, d):
            raise ValueError(
                "weights, means and covariances must have shapes (k,), (k, d) and (k, d, d), got "
                f"{weights.shape}, {means.shape} and {covariances.shape}"
            )
        if not (weights >= 0).all() or not np.isclose(weights.sum(), 1.0):
            raise ValueError(f"weights must be probabilities that sum to 1, got {weights}")
        values = {"weights": weights, "means": means, "covariances": covariances}
        for name, value in values.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_factors", np.linalg.cholesky(covariances))

    def __call__(self, X: Array) -> Array:
        """Log density at the rows of `X`."""
        return self.value_and_gradient(X)[0]

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """Log density (n,) and its gradient (n, d)."""
        logs, pulls = [], []
        for weight, mean, factor in zip(self.weights, self.means, self._factors):
            whitened = np.linalg.solve(factor, (X - mean).T)
            pulls.append(-np.linalg.solve(factor.T, whitened).T)
            normalizer = np.log(np.diag(factor)).sum() + 0.5 * X.shape[1] * LOG_2PI
            with np.errstate(divide="ignore"):
                logs.append(np.log(weight) - normalizer - 0.5 * (whitened**2).sum(axis=0))
        log_joint = np.array(logs)
        highest = log_joint.max(axis=0)
        share = np.exp(log_joint - highest)
        total = share.sum(axis=0)
        return highest + np.log(total), np.einsum("kn,knd->nd", share / total, np.array(pulls))

    def moments(self) -> tuple[Array, Array]:
        """Mean and covariance of the mixture."""
        mean = self.weights @ self.means
        spread = self.means - mean
        within = np.einsum("k,kij->ij", self.weights, self.covariances)
        return mean, within + np.einsum("k,ki,kj->ij", self.weights, spread, spread)

    def sample(self, n_samples: int, rng: np.random.Generator) -> Array:
        """Rows drawn from the mixture."""
        which = rng.choice(len(self.weights), size=n_samples, p=self.weights)
        noise = rng.normal(size=(n_samples, self.means.shape[1]))
        return self.means[which] + np.einsum("nij,nj->ni", self._factors[which], noise)
