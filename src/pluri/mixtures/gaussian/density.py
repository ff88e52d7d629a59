"""The density of a mixture of normal distributions: ``p(x) = sum_k w_k N(x | m_k, S_k)``, with its gradient.

The textbook target with several modes, of which all moments are known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.validation import RandomState, as_generator

Array = NDArray[np.float64]


@dataclass(frozen=True)
class GaussianMixtureDensity:
    """Log density of a Gaussian mixture, as a target for samplers.

    Parameters
    ----------
    weights : array-like of shape (n_components,)
        Positive, summing to one.
    means : array-like of shape (n_components, n_features)
    covariances : array-like of shape (n_components, n_features, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.mixtures.gaussian.density import GaussianMixtureDensity
    >>> target = GaussianMixtureDensity([0.4, 0.6], [[4, 0], [-4, 0]], [[[2, 1], [1, 1]], np.eye(2)])
    >>> target.mean
    array([-0.8,  0. ])
    >>> target.covariance
    array([[16.76,  0.4 ],
           [ 0.4 ,  1.  ]])
    >>> round(target(np.zeros(2)), 3)
    -9.838
    """

    weights: Any
    means: Any
    covariances: Any

    def __post_init__(self) -> None:
        weights, means, covariances = (
            np.asarray(values, dtype=np.float64) for values in (self.weights, self.means, self.covariances)
        )
        if weights.ndim != 1 or not (weights > 0).all() or not math.isclose(float(weights.sum()), 1.0, abs_tol=1e-8):
            raise ValueError(f"weights must be positive and sum to 1, got {self.weights!r}")
        if means.ndim != 2 or len(means) != len(weights) or not np.isfinite(means).all():
            raise ValueError(f"means must be finite with a row for each of {len(weights)} weights, got {means.shape}")
        n_features = means.shape[1]
        if covariances.shape != (len(weights), n_features, n_features):
            expected = (len(weights), n_features, n_features)
            raise ValueError(f"covariances must have shape {expected}, got {covariances.shape}")
        try:
            factors = np.linalg.cholesky(covariances)
        except np.linalg.LinAlgError:
            raise ValueError("covariances must be positive definite") from None
        log_root = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
        constants = np.log(weights) - 0.5 * n_features * math.log(2 * math.pi) - log_root
        settings = {
            "weights": weights, "means": means, "covariances": covariances, "_factors": factors,
            "_whiten": np.linalg.inv(factors), "_constants": constants,
        }  # fmt: skip
        for name, value in settings.items():
            object.__setattr__(self, name, value)

    def log_joint(self, x: Array) -> Array:
        """``log w_k + log N(x | m_k, S_k)``, (n_components,) for a point and (n_samples, n_components) for many."""
        white = (self._whiten @ (x[..., None, :] - self.means)[..., None])[..., 0]  # type: ignore[attr-defined]
        return np.asarray(self._constants - 0.5 * (white * white).sum(axis=-1))  # type: ignore[attr-defined]

    def __call__(self, x: ArrayLike) -> Any:
        """Log density: a float for a point (n_features,), an array for many (n_samples, n_features)."""
        joint = self.log_joint(np.asarray(x, dtype=np.float64))
        total = np.logaddexp.reduce(joint, axis=-1)
        return float(total) if joint.ndim == 1 else total

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        """Log density at a point, and its gradient ``sum_k r_k S_k^-1 (m_k - x)``."""
        whiten: Array = self._whiten  # type: ignore[attr-defined]
        joint = self.log_joint(x)
        total = float(np.logaddexp.reduce(joint))
        pull = whiten @ (self.means - x)[..., None]
        directions = (np.swapaxes(whiten, -1, -2) @ pull)[..., 0]
        return total, np.exp(joint - total) @ directions

    @property
    def mean(self) -> Array:
        """Mean of the mixture."""
        return np.asarray(self.weights @ self.means)

    @property
    def covariance(self) -> Array:
        """Covariance of the mixture: within the components, and between them."""
        centred = self.means - self.mean
        return np.asarray(
            np.einsum("k,kij->ij", self.weights, self.covariances) + (self.weights[:, None] * centred).T @ centred
        )

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> tuple[Array, NDArray[np.int64]]:
        """Independent draws and the component of each."""
        rng = as_generator(random_state)
        labels = rng.choice(len(self.weights), size=n_samples, p=self.weights)
        noise = rng.standard_normal((n_samples, self.means.shape[1]))
        factors: Array = self._factors  # type: ignore[attr-defined]
        return self.means[labels] + np.einsum("nij,nj->ni", factors[labels], noise), labels
