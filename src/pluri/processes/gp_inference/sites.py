"""What the approximations to a Gaussian-process classifier share: the problem, and the form of their answer.

``f ~ N(0, K)``, ``p(y_i | f_i) = sig(y_i f_i)`` for labels y = -1, 1. Each approximation replaces the likelihood by
Gaussian sites of precisions ``tau``; with ``B = I + sqrt(tau) K sqrt(tau)``, whose eigenvalues are at least 1,
``(K + diag(1/tau))^-1 = sqrt(tau) B^-1 sqrt(tau)`` needs no division by small numbers. Then::

    E f_*    = k_*' a
    var f_*  = k_** - |R k_*|^2,   R = chol(B)^-1 sqrt(tau)
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

Array = NDArray[np.float64]

#: A Gaussian density is 1e-18 of its peak beyond so many standard deviations.
REACH = 9.0


@dataclass(frozen=True)
class GaussianSites:
    """An approximate posterior ``N(mean, (K^-1 + diag(precision))^-1)`` of f at the training inputs.

    Attributes
    ----------
    weights : (n,), a = K^-1 mean
    precision : (n,), tau >= 0
    mean : (n,)
    log_evidence : float
        Approximation to log p(y), or a bound of it.
    history : tuple of float
        The objective after each iteration.
    """

    weights: Array
    precision: Array
    mean: Array
    log_evidence: float
    history: tuple[float, ...] = field(default=())
    converged: bool = True

    @property
    def n_iter(self) -> int:
        """Number of iterations."""
        return len(self.history)


def factor_of(covariance: Array, precision: Array) -> tuple[Array, Array]:
    """``chol(B)`` (n, n) and ``sqrt(tau)`` (n,)."""
    root = np.sqrt(precision)
    matrix = np.ascontiguousarray(covariance * root)
    matrix *= root[:, None]
    matrix.reshape(-1)[:: len(root) + 1] += 1.0
    # A symmetric matrix in C order is itself in Fortran order: LAPACK works in place.
    factor, info = lapack.dpotrf(matrix.T, lower=1, clean=1, overwrite_a=1)
    if info != 0:
        raise np.linalg.LinAlgError(
            "the covariance matrix of the inputs has negative eigenvalues or values that are not finite: look at the "
            "kernel's hyper-parameters"
        )
    return factor, root


def half_solve(factor: Array, right: Array) -> Array:
    """``L^-1 right``."""
    return np.asarray(lapack.dtrtrs(factor, right, lower=1)[0])


def solve(factor: Array, right: Array) -> Array:
    """``(L L')^-1 right``."""
    return np.asarray(lapack.dpotrs(factor, right, lower=1)[0])


def site_inverse(factor: Array, root: Array) -> Array:
    """``(K + diag(1/tau))^-1 = sqrt(tau) B^-1 sqrt(tau)`` (n, n)."""
    lower = lapack.dpotri(factor, lower=1)[0]
    inverse = np.asarray(lower + np.tril(lower, -1).T)
    inverse *= root
    inverse *= root[:, None]
    return inverse


def log_sigmoid(values: Array) -> Array:
    """``log sig(x)`` without overflow."""
    return -np.logaddexp(0.0, -values)


def tilted_moments(labels: Array, mean: Array, variance: Array) -> tuple[Array, Array, Array]:
    """Log mass, mean and variance of ``sig(y f) N(f | mean, variance)``, entry by entry.

    The trapezoidal rule converges geometrically for such functions: with a step of at most 0.6 standard deviations,
    and of at most 0.8 (the nearest poles of the sigmoid lie at +-i pi), its error is of the order of 1e-9.
    Gauss-Hermite with a fixed number of nodes fails for large variances, where the sigmoid is a step. The product is
    log-concave and falls at least as fast as the Gaussian on both sides of its mode, so that a window of nine standard
    deviations around a point near the mode holds all of it.
    """
    scale = np.sqrt(variance)
    widest = float(scale.max(initial=0.0))
    # y f = u has mean y m; the mode solves u = y m + v sig(-u), between y m and y m + v.
    low = labels * mean
    high = low + variance
    for _ in range(max(1, math.ceil(math.log2(max(2.0 * widest, 1.0))) + 1)):
        middle = 0.5 * (low + high)
        before = middle < labels * mean + variance * expit(-middle)
        low, high = np.where(before, middle, low), np.where(before, high, middle)
    center = labels * 0.5 * (low + high)
    n_nodes = math.ceil(2.0 * (REACH + 0.5) / min(0.6, 0.8 / max(widest, 1e-300)))
    n_nodes = min(n_nodes, 20_000)
    grid = np.linspace(-REACH - 0.5, REACH + 0.5, n_nodes)
    points = center[:, None] + scale[:, None] * grid
    deviation = points - mean[:, None]
    log_terms = log_sigmoid(labels[:, None] * points) - 0.5 * deviation**2 / variance[:, None]
    top = log_terms.max(axis=1, keepdims=True)
    terms = np.exp(log_terms - top)
    mass = terms.sum(axis=1)
    first = (terms * deviation).sum(axis=1) / mass
    second = (terms * (deviation - first[:, None]) ** 2).sum(axis=1) / mass
    log_mass = top[:, 0] + np.log(mass * (grid[1] - grid[0]) / math.sqrt(2.0 * math.pi))
    return log_mass, mean + first, second


def expected_sigmoid(mean: Array, variance: Array) -> Array:
    """``E sig(f)`` for ``f ~ N(mean, variance)``, entry by entry; arrays of one shape."""
    shape = np.shape(mean)
    flat_mean, flat_variance = np.ravel(mean), np.maximum(np.ravel(variance), 1e-12)
    result = np.empty(len(flat_mean))
    widest = math.sqrt(float(flat_variance.max(initial=1.0)))
    size = max(1, int(20_000 / max(widest, 1.0)))  # a wide Gaussian takes more points
    for start in range(0, len(flat_mean), size):  # blocks of moderate memory
        part = slice(start, start + size)
        result[part] = np.exp(tilted_moments(np.ones(len(flat_mean[part])), flat_mean[part], flat_variance[part])[0])
    return np.minimum(result, 1.0).reshape(shape)


def warn_unconverged(name: str, max_iter: int) -> None:
    """Say that an approximation is not at its fixed point."""
    warnings.warn(
        f"{name} had not converged after max_iter={max_iter} iterations: raise max_iter, or scale the inputs",
        ConvergenceWarning,
        stacklevel=4,
    )
