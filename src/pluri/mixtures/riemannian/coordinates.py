r"""From the parameters of a Gaussian mixture to points on a manifold, and back.

A component is kept as the augmented matrix

.. math:: S = \begin{pmatrix} \Sigma + s \mu\mu^\top & s\mu \\ s\mu^\top & s \end{pmatrix}, \qquad
          \sqrt{2\pi e}\, N(y; 0, S) = N(x; \mu, \Sigma)\, s^{-1/2} e^{(1 - 1/s)/2}, \quad y = (x, 1),

whose log-likelihood is geodesically concave, unlike that of :math:`(\mu, \Sigma)` [1]_. The last factor is at most
one, and one only at :math:`s = 1`, so dropping :math:`s` can only raise the likelihood.

References
----------
.. [1] R. Hosseini and S. Sra, "Matrix manifold optimization for Gaussian mixtures", NIPS 2015.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LOG_2PI = float(np.log(2.0 * np.pi))
#: A component whose smallest variance, relative to that of all data, is below this has collapsed.
COLLAPSED = 1e-10


def augment(means: Array, covariances: Array) -> Array:
    """Augmented matrices (K, d + 1, d + 1) with ``s = 1``."""
    n_components, n_features = means.shape
    matrices = np.empty((n_components, n_features + 1, n_features + 1))
    matrices[:, :-1, :-1] = covariances + means[:, :, None] * means[:, None, :]
    matrices[:, :-1, -1] = matrices[:, -1, :-1] = means
    matrices[:, -1, -1] = 1.0
    return matrices


def read_off(matrices: Array) -> tuple[Array, Array, Array]:
    """Means (K, d), covariances (K, d, d) and ``s`` (K,) of augmented matrices."""
    scales = matrices[:, -1, -1]
    means = matrices[:, :-1, -1] / scales[:, None]
    covariances = matrices[:, :-1, :-1] - scales[:, None, None] * means[:, :, None] * means[:, None, :]
    return means, 0.5 * (covariances + np.swapaxes(covariances, 1, 2)), scales.copy()


@dataclass(frozen=True)
class Penalty:
    """Prior as pseudo-observations: ``(nu log|S| + tr(Psi S^-1)) / 2`` for each component, ``-zeta sum log pi``.

    Attributes
    ----------
    second : (d + 1, d + 1)
        Psi, the sum of the pseudo-observations' outer products, over the total weight of the data.
    weight, concentration : float
        Their number nu, and zeta, over the total weight of the data.
    """

    second: Array
    weight: float
    concentration: float

    def value(self, inverse: Array, log_determinants: Array, log_weights: Array) -> float:
        """Amount added to the average negative log-likelihood."""
        total = -self.concentration * float(log_weights.sum())
        if self.weight:
            traces = np.einsum("kab,bc,kac->", inverse, self.second, inverse)
            total += 0.5 * (self.weight * float(log_determinants.sum()) + float(traces))
        return total

    def whitened(self, inverse: Array) -> Array:
        """Psi in the coordinates of each component, (K, m, m)."""
        return inverse @ self.second @ np.swapaxes(inverse, 1, 2)

    def weights(self, shares: Array) -> Array:
        """Mixture weights of the M-step."""
        raised = shares + self.concentration
        return raised / raised.sum()


@dataclass(frozen=True)
class Standardization:
    """Data with mean zero and unit covariance: geodesic steps do not see the difference, tolerances do.

    Attributes
    ----------
    shift : (d,)
    factor : (d, d)
        Cholesky factor of the covariance of all data.
    """

    shift: Array
    factor: Array

    @property
    def log_volume(self) -> float:
        """Log determinant of the factor: what the average log density of the data loses on the way back."""
        return float(np.log(np.diagonal(self.factor)).sum())

    def forward(self, X: Array) -> Array:
        """Standardise rows."""
        return np.asarray(np.linalg.solve(self.factor, (X - self.shift).T).T, dtype=np.float64)

    def forward_covariances(self, covariances: Array) -> Array:
        """Standardise covariances."""
        half = np.linalg.solve(self.factor, covariances)
        return np.asarray(np.linalg.solve(self.factor, np.swapaxes(half, -1, -2)), dtype=np.float64)

    def back(self, means: Array, covariances: Array) -> tuple[Array, Array]:
        """Undo both."""
        restored = self.factor @ covariances @ self.factor.T
        return means @ self.factor.T + self.shift, 0.5 * (restored + np.swapaxes(restored, -1, -2))


def standardize(X: Array, weights: Array | None, prior: Array | None, prior_weight: float) -> Standardization:
    """Mean and covariance of the data (with the prior's scatter), or a sentence on why there is none.

    ``prior_weight`` is relative to the total weight of the data, and ``prior`` to it as well.
    """
    shift = np.average(X, axis=0, weights=weights)
    centred = X - shift
    weighted = centred / len(X) if weights is None else centred * (weights / weights.sum())[:, None]
    covariance = weighted.T @ centred
    if prior is not None:
        covariance = (covariance + prior) / (1.0 + prior_weight)
    variances = np.diagonal(covariance)
    scale = np.abs(X).max(axis=0)
    constant = np.flatnonzero(~(variances > (1e-13 * scale) ** 2))
    if len(constant):
        raise ValueError(
            f"X must vary in every feature, but feature {constant[0]} is constant: remove it or set a prior "
            "(covariance_prior_weight and covariance_prior)"
        )
    roots = np.sqrt(variances)
    try:
        factor = np.linalg.cholesky(covariance / (roots[:, None] * roots))
    except np.linalg.LinAlgError:
        factor = np.zeros((1, 1))
    if not np.diagonal(factor).min() > 1e-7:
        raise ValueError(
            f"X must have linearly independent features, but its {len(X)} rows do not span {X.shape[1]} dimensions: "
            "reduce them or set a prior (covariance_prior_weight and covariance_prior)"
        )
    return Standardization(shift, roots[:, None] * factor)
