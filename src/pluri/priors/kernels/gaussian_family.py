r"""Probability product kernel of Gaussian distributions, for any power and any form of the covariances.

With :math:`C = \Sigma_1 + \Sigma_2` and :math:`\delta = \mu_1 - \mu_2`,

.. math::

   \log \int p^\rho q^\rho = \tfrac{D}{2} \bigl[ (1 - 2\rho) \log 2\pi - \log\rho \bigr]
   + \tfrac{1 - \rho}{2} \bigl( \log|\Sigma_1| + \log|\Sigma_2| \bigr) - \tfrac12 \log|C|
   - \tfrac{\rho}{2} \, \delta^\top C^{-1} \delta,

which is the usual formula [1]_ with its three inverses merged into one Cholesky factor. Normalised it becomes
:math:`\frac{D}{2} \log 2 + \frac14 (\log|\Sigma_1| + \log|\Sigma_2|) - \frac12 \log|C| - \frac{\rho}{2} \delta^\top
C^{-1} \delta`: the power only weighs the distance of the means. For :math:`\rho = 1/2` it is minus the Bhattacharyya
distance. The derivatives by the first distribution, with :math:`u = C^{-1} \delta`, are :math:`-\rho u` for the mean
and :math:`\frac{1 - \rho}{2} \Sigma_1^{-1} - \frac12 C^{-1} + \frac{\rho}{2} u u^\top` for the covariance.

References
----------
.. [1] T. Jebara, R. Kondor and A. Howard, "Probability product kernels", Journal of Machine Learning Research 5, 2004.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pluri.priors.kernels.vectors import check_columns, check_dense
from pluri.priors.protocol import FloatArray

COVARIANCE_TYPES = ("auto", "full", "tied", "diag", "spherical")


@dataclass(frozen=True, eq=False)
class Components:
    """Gaussian distributions as read.

    Attributes
    ----------
    means : ndarray (n_parts, n_features)
    covariances : ndarray
        ``(n_parts, n_features, n_features)`` if they are full or tied, else the variances ``(n_parts, n_features)``.
    log_determinants : ndarray (n_parts,)
    kind : {"full", "tied", "diag", "spherical"}
    """

    means: FloatArray
    covariances: FloatArray
    log_determinants: FloatArray
    kind: str

    @property
    def is_diagonal(self) -> bool:
        """Whether only variances are held."""
        return self.covariances.ndim == 2

    def full(self) -> FloatArray:
        """The covariances as matrices."""
        if not self.is_diagonal:
            return self.covariances
        return self.covariances[:, :, None] * np.eye(self.means.shape[1])


@dataclass(frozen=True)
class Gaussian:
    """Means with covariances, given as a pair."""

    covariance_type: str

    def read(self, parameters: Any, name: str) -> Components:
        """A pair of means (n_parts, n_features) and covariances in one of the four forms."""
        if isinstance(parameters, Components):
            return parameters
        if not (isinstance(parameters, tuple) and len(parameters) == 2):
            raise ValueError(
                f"{name} must be a tuple (means, covariances) for Gaussians, got {type(parameters).__name__}"
            )
        means = check_dense(parameters[0], "means")
        covariances = np.asarray(parameters[1], dtype=np.float64)
        if not np.isfinite(covariances).all():
            raise ValueError("covariances must be finite, got NaN or infinity")
        n_parts, n_features = means.shape
        kind = self._kind(covariances, n_parts, n_features)
        if kind in ("diag", "spherical"):
            if not (covariances > 0).all():
                raise ValueError(f"covariances must be positive variances, got {covariances.min():.6g}")
            variances = np.broadcast_to(covariances.reshape(n_parts, -1), (n_parts, n_features))
            return Components(means, variances, np.log(variances).sum(axis=1), kind)
        if not np.allclose(
            covariances, np.swapaxes(covariances, -1, -2), rtol=0.0, atol=1e-8 * np.abs(covariances).max()
        ):
            raise ValueError("covariances must be symmetric, got a matrix that differs from its transpose")
        covariances = 0.5 * (covariances + np.swapaxes(covariances, -1, -2))
        matrices = covariances if kind == "full" else covariances[None]
        try:
            roots = np.linalg.cholesky(matrices)
        except np.linalg.LinAlgError:
            smallest = np.linalg.eigvalsh(matrices)[:, 0]
            raise ValueError(
                f"covariances must be positive definite, got the eigenvalue {smallest.min():.6g} "
                f"in matrix {smallest.argmin()}"
            ) from None
        log_determinants = 2.0 * np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
        shape = (n_parts, n_features, n_features)
        return Components(means, np.broadcast_to(matrices, shape), np.broadcast_to(log_determinants, (n_parts,)), kind)

    def interior(self, parameters: Any) -> Components:
        """As `read`: positive definite covariances are inside already."""
        return self.read(parameters, "parameters")

    def log_kernel(self, first: Components, second: Components, rho: float) -> FloatArray:
        """Logs of the kernel; tied covariances are whitened once, others take a Cholesky factor for each pair."""
        check_columns(first.means, second.means)
        n_features = first.means.shape[1]
        half_log_determinant = np.empty((len(first.means), len(second.means)))
        distance = np.empty_like(half_log_determinant)
        if first is second and first.kind == "tied":
            from scipy.spatial.distance import cdist

            white = np.linalg.solve(np.linalg.cholesky(2.0 * first.covariances[0]), first.means.T).T
            half_log_determinant[:] = 0.5 * (first.log_determinants[0] + n_features * np.log(2.0))
            distance[:] = cdist(white, white, "sqeuclidean")
        elif first.is_diagonal and second.is_diagonal:
            for part, (mean, variance) in enumerate(zip(first.means, first.covariances)):
                total = variance + second.covariances
                half_log_determinant[part] = 0.5 * np.log(total).sum(axis=1)
                distance[part] = np.sum((mean - second.means) ** 2 / total, axis=1)
        else:
            others = second.full()
            for part, (mean, covariance) in enumerate(zip(first.means, first.full())):
                roots = np.linalg.cholesky(covariance + others)
                half_log_determinant[part] = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
                white = np.linalg.solve(roots, (mean - second.means)[:, :, None])[:, :, 0]
                distance[part] = np.sum(white * white, axis=1)
        constant = 0.5 * n_features * ((1.0 - 2.0 * rho) * np.log(2.0 * np.pi) - np.log(rho))
        own = 0.5 * (1.0 - rho) * (first.log_determinants[:, None] + second.log_determinants)
        return constant + own - half_log_determinant - 0.5 * rho * distance

    def log_diagonal(self, parts: Components, rho: float) -> FloatArray:
        """As `log_kernel`, of each part with itself."""
        constant = (1.0 - 2.0 * rho) * np.log(2.0 * np.pi) - np.log(2.0 * rho)
        return 0.5 * parts.means.shape[1] * constant + (0.5 - rho) * parts.log_determinants

    def log_pullback(self, parts: Components, weights: FloatArray, rho: float) -> tuple[FloatArray, FloatArray]:
        """Gradients by the means and by the covariances, each in the form in which they were given.

        The gradient by a matrix is the symmetric one: ``sum(gradient * change)`` is the change for a symmetric change.
        """
        if parts.is_diagonal:
            return self._diagonal_pullback(parts, weights, rho)
        if parts.kind == "tied":
            return self._tied_pullback(parts, weights, rho)
        by_mean, by_covariance = np.empty_like(parts.means), np.empty_like(parts.covariances)
        totals = weights.sum(axis=1)
        for part, (mean, covariance) in enumerate(zip(parts.means, parts.covariances)):
            inverses = np.linalg.inv(covariance + parts.covariances)
            pulls = np.einsum("jab,jb->ja", inverses, mean - parts.means)
            by_mean[part] = -2.0 * rho * weights[part] @ pulls
            by_covariance[part] = (
                (1.0 - rho) * totals[part] * np.linalg.inv(covariance)
                - np.einsum("j,jab->ab", weights[part], inverses)
                + rho * (pulls.T * weights[part]) @ pulls
            )
        return by_mean, 0.5 * (by_covariance + np.swapaxes(by_covariance, 1, 2))

    def _diagonal_pullback(self, parts: Components, weights: FloatArray, rho: float) -> tuple[FloatArray, FloatArray]:
        by_mean, by_variance = np.empty_like(parts.means), np.empty_like(parts.means)
        totals = weights.sum(axis=1)
        for part, (mean, variance) in enumerate(zip(parts.means, parts.covariances)):
            inverses = 1.0 / (variance + parts.covariances)
            pulls = inverses * (mean - parts.means)
            by_mean[part] = -2.0 * rho * weights[part] @ pulls
            by_variance[part] = (1.0 - rho) * totals[part] / variance + weights[part] @ (rho * pulls**2 - inverses)
        return by_mean, by_variance if parts.kind == "diag" else by_variance.sum(axis=1)

    def _tied_pullback(self, parts: Components, weights: FloatArray, rho: float) -> tuple[FloatArray, FloatArray]:
        inverse = np.linalg.inv(parts.covariances[0])
        totals = weights.sum(axis=1)
        # sum_j w_ij (m_i - m_j): the graph Laplacian of the weights.
        spread = totals[:, None] * parts.means - weights @ parts.means
        scatter = inverse @ (parts.means.T @ spread) @ inverse
        by_covariance = (0.5 - rho) * totals.sum() * inverse + 0.5 * rho * scatter
        return -rho * spread @ inverse, 0.5 * (by_covariance + by_covariance.T)

    def _kind(self, covariances: FloatArray, n_parts: int, n_features: int) -> str:
        shapes = {
            "full": (n_parts, n_features, n_features),
            "tied": (n_features, n_features),
            "diag": (n_parts, n_features),
            "spherical": (n_parts,),
        }
        if self.covariance_type != "auto":
            if covariances.shape != shapes[self.covariance_type]:
                raise ValueError(
                    f"covariances must have shape {shapes[self.covariance_type]} for covariance_type="
                    f"{self.covariance_type!r} and {n_parts} means, got {covariances.shape}"
                )
            return self.covariance_type
        fitting = [kind for kind, shape in shapes.items() if shape == covariances.shape]
        if not fitting:
            raise ValueError(
                "covariances must have one of the shapes "
                + ", ".join(f"{shape} ({kind})" for kind, shape in shapes.items())
                + f", got {covariances.shape}"
            )
        if len(fitting) > 1 and n_features > 1:
            raise ValueError(
                f"covariances of shape {covariances.shape} may be tied or diagonal when there are as many parts as "
                "features: say which with covariance_type='tied' or covariance_type='diag'"
            )
        return fitting[-1]
