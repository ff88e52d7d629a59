"""Gaussian-process regression with Gaussian noise, exactly: one Cholesky factor gives everything.

``K_y = K + noise I``, ``L = chol(K_y)``, ``a = K_y^-1 (y - m)``::

    log p(y)              = -1/2 (y - m)' a - sum log diag L - n/2 log 2 pi
    d log p(y) / d theta  = 1/2 tr((a a' - K_y^-1) dK_y / d theta)
    E f_*                 = m_* + K_*' a
    cov f_*               = K_** - V' V,   V = L^-1 K_*

References
----------
.. [1] Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian processes for machine learning. MIT Press, chapter 2.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from pluri.processes.gp_inference.covariance import Covariance, Part, as_matrix
from pluri.validation import Number, Only, Stored, check_value

Array = NDArray[np.float64]
Jitter = float | Literal["auto"]

#: Relative jitters that "auto" tries one after another.
JITTERS = tuple(10.0**power for power in range(-10, -3))
LOG_TWO_PI = math.log(2.0 * math.pi)


def cholesky(matrix: Array, jitter: Jitter = "auto", scale: float | None = None) -> Array:
    """Lower Cholesky factor of a covariance matrix (n, n), with something added to its diagonal.

    Parameters
    ----------
    matrix : (n, n), symmetric
    jitter : float or "auto"
        What to add to the diagonal; "auto" adds ``1e-10 scale``, and ten times more up to ``1e-4 scale`` until
        the matrix has a factor.
    scale : float, optional
        Mean of the diagonal by default.
    """
    diagonal = np.diagonal(matrix)
    scale = float(np.mean(diagonal)) if scale is None else scale
    for amount in [share * scale for share in JITTERS] if jitter == "auto" else [float(jitter)]:
        shifted = np.array(matrix, order="F")
        np.fill_diagonal(shifted, diagonal + amount)
        factor, info = lapack.dpotrf(shifted, lower=1, clean=1, overwrite_a=1)
        if info == 0 and math.isfinite(float(factor[-1, -1])):
            return np.asarray(factor)
    raise np.linalg.LinAlgError(
        f"the covariance matrix of {len(matrix)} inputs is not positive definite, even with jitter={jitter!r}: look "
        "for duplicated inputs without noise, a huge length-scale, or values that are not finite; raise noise_variance"
    )


def check_jitter(jitter: Any) -> Jitter:
    """A jitter that `cholesky` understands."""
    check_value(jitter, "jitter", Only("auto") | Number(least=0))
    return "auto" if isinstance(jitter, str) else float(jitter)


@dataclass(frozen=True)
class MarginalLikelihood:
    """Log marginal likelihood as a function of log hyper-parameters.

    Attributes
    ----------
    covariance : kernel at the training inputs
    residual : (n,), observations less the mean function
    noise_variance : float, or None if it is learned: then its logarithm is the last entry of theta
    jitter : absolute, or "auto": 1e-10 of the mean variance
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {"residual": Stored("n_train")}

    covariance: Covariance
    residual: Array
    noise_variance: float | None
    jitter: Jitter

    def value(self, theta: Array) -> float:
        """Value alone: a third of the work is saved."""
        return self._factored(theta)[0]

    def _factored(self, theta: Array) -> tuple[float, float, list[Part], Array, Array]:
        """Log likelihood, noise, derivatives of K, Cholesky factor and weights; -inf if there is no factor."""
        part, slopes = self.covariance.evaluate(theta[: self.covariance.n_parameters])
        n = len(self.residual)
        matrix = as_matrix(part, n)
        noise = math.exp(theta[-1]) if self.noise_variance is None else self.noise_variance
        diagonal = matrix.reshape(-1)[:: n + 1]
        diagonal += noise + (1e-10 * float(diagonal.sum()) / n if self.jitter == "auto" else self.jitter)
        # A symmetric matrix in C order is itself in Fortran order: LAPACK works in place.
        factor, info = lapack.dpotrf(matrix.T, lower=1, clean=1, overwrite_a=1)
        if info != 0:
            return -math.inf, noise, slopes, factor, self.residual
        weights = lapack.dpotrs(factor, self.residual, lower=1)[0]
        value = -0.5 * float(self.residual.dot(weights)) - float(np.log(factor.diagonal()).sum()) - 0.5 * n * LOG_TWO_PI
        return (value if math.isfinite(value) else -math.inf), noise, slopes, factor, weights

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Value and gradient; -inf and zeros where the covariance matrix is not positive definite to rounding."""
        value, noise, slopes, factor, weights = self._factored(theta)
        if value == -math.inf:
            return value, np.zeros(len(theta))
        n = len(weights)
        # dpotri fills the lower triangle only; doubling it below the diagonal serves sums with symmetric matrices.
        inverse = lapack.dpotri(factor, lower=1, overwrite_c=1)[0]
        difference = weights[:, None] * weights - 2.0 * inverse.T
        flat = difference.reshape(-1)
        flat[:: n + 1] += inverse.diagonal()
        gradient = np.empty(len(theta))
        for index, slope in enumerate(slopes):
            gradient[index] = slope.reshape(-1).dot(flat) if isinstance(slope, np.ndarray) else slope * flat.sum()
        if self.noise_variance is None:
            gradient[-1] = noise * float(flat[:: n + 1].sum())
        return value, 0.5 * gradient


@dataclass(frozen=True)
class ExactPosterior:
    """What prediction needs: ``L = chol(K_y)`` (n, n) and ``a = K_y^-1 (y - m)`` (n,)."""

    factor: Array
    weights: Array

    @classmethod
    def of(cls, covariance: Array, residual: Array, noise_variance: float, jitter: Jitter) -> ExactPosterior:
        """Factor the covariance of the observations."""
        noisy = covariance + noise_variance * np.eye(len(residual))
        factor = cholesky(noisy, jitter, float(np.mean(np.diagonal(covariance))) or 1.0)
        return cls(factor, lapack.dpotrs(factor, residual, lower=1)[0])

    def extended(self, cross: Array, variance: float, residual: Array) -> ExactPosterior:
        """The posterior with one observation more, by a further row of the factor: quadratic work instead of cubic.

        Parameters
        ----------
        cross : (n,)
            Covariances of the new observation with the others.
        variance : float
            Its own, with the noise.
        residual : (n + 1,)
            All observations less the mean function, the new one last.
        """
        n = len(self.weights)
        row = lapack.dtrtrs(self.factor, cross, lower=1)[0] if n else cross
        pivot = variance - float(row @ row)
        if not pivot > 1e-14 * variance:
            raise np.linalg.LinAlgError("the new observation is determined by the others: look for duplicated inputs")
        factor = np.zeros((n + 1, n + 1), order="F")
        factor[:n, :n] = self.factor
        factor[n, :n] = row
        factor[n, n] = math.sqrt(pivot)
        return ExactPosterior(factor, lapack.dpotrs(factor, residual, lower=1)[0])

    @property
    def log_marginal_likelihood(self) -> float:
        """Log evidence."""
        # y - m = L L' a, so that (y - m)' a = |L' a|^2.
        half = self.factor.T @ self.weights
        n = len(half)
        return float(-0.5 * half @ half - np.log(np.diagonal(self.factor)).sum() - 0.5 * n * LOG_TWO_PI)

    def mean(self, cross: Array) -> Array:
        """``K_*' a`` for covariances ``cross`` (n, n_new)."""
        return cross.T @ self.weights

    def variance(self, cross: Array, prior_variance: Array) -> Array:
        """Variances of f at new inputs whose prior variances (n_new,) are given."""
        half = lapack.dtrtrs(self.factor, cross, lower=1)[0]
        return not_negative(prior_variance - np.einsum("ij,ij->j", half, half), prior_variance)

    def covariance(self, cross: Array, prior: Array) -> Array:
        """Covariance matrix of f at new inputs whose prior covariance (n_new, n_new) is given."""
        half = lapack.dtrtrs(self.factor, cross, lower=1)[0]
        difference = prior - half.T @ half
        np.fill_diagonal(difference, not_negative(np.diagonal(difference), np.diagonal(prior)))
        return difference


def not_negative(variance: Array, scale: Array) -> Array:
    """Clip variances that rounding made negative; warn if it cannot have been rounding."""
    if (variance < -1e-6 * np.maximum(scale, 1e-300)).any():
        warnings.warn(
            f"a predicted variance was {float(variance.min()):.3g}, set to 0: the covariance matrix is badly "
            "conditioned; raise noise_variance or jitter",
            UserWarning,
            stacklevel=3,
        )
    return np.maximum(variance, 0.0)
