"""Dirichlet distribution: random probability vectors.

Density ``Gamma(sum a) / prod Gamma(a_k) prod x_k^(a_k - 1)``. For small parameters nearly all of a draw is in one
entry and the others underflow; draws are therefore made as logarithms, ``log g = log Gamma(a + 1) + log(U) / a``.

References
----------
Minka (2000), Estimating a Dirichlet distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, gammaln, polygamma

from pluri.optimize.fixed_point import iterate
from pluri.validation import RandomState, as_generator

Array = NDArray[np.float64]


def draw_log_dirichlet(rng: np.random.Generator, alpha: Array, size: tuple[int, ...] = ()) -> Array:
    """Draw logarithms of Dirichlet vectors, exact however small the parameters; a zero parameter gives minus infinity.

    Parameters
    ----------
    rng : numpy.random.Generator
    alpha : array of shape (..., k)
    size : tuple of ints, default=()
        Leading shape of the draws.

    Returns
    -------
    array of shape ``(*size, ..., k)``

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes import draw_log_dirichlet
    >>> logs = draw_log_dirichlet(np.random.default_rng(0), np.full(3, 1e-4))
    >>> bool(np.isfinite(logs).all())
    True
    """
    shape = (*size, *alpha.shape)
    with np.errstate(divide="ignore"):
        logs = np.log(rng.gamma(alpha + 1.0, size=shape)) + np.log1p(-rng.random(shape)) / alpha
    return np.asarray(logs - np.logaddexp.reduce(logs, axis=-1, keepdims=True))


@dataclass(frozen=True, eq=False)
class Dirichlet:
    """Dirichlet distribution.

    Parameters
    ----------
    alpha : array-like of shape (k,)
        Positive parameters.

    Examples
    --------
    >>> from pluri.processes import Dirichlet
    >>> law = Dirichlet([2.0, 5.0, 3.0])
    >>> law.mean
    array([0.2, 0.5, 0.3])
    >>> law.rvs(4, random_state=0).shape
    (4, 3)
    """

    alpha: Any

    def __post_init__(self) -> None:
        a = np.asarray(self.alpha, dtype=np.float64)
        if a.ndim != 1 or not a.size or not (np.isfinite(a) & (a > 0)).all():
            raise ValueError(f"alpha must be one axis of positive numbers, got {self.alpha!r}")
        object.__setattr__(self, "alpha", a)

    @property
    def mean(self) -> Array:
        """Mean vector."""
        return np.asarray(self.alpha / self.alpha.sum())

    @property
    def variance(self) -> Array:
        """Variance of each entry."""
        return np.asarray(self.mean * (1 - self.mean) / (self.alpha.sum() + 1))

    @property
    def covariance(self) -> Array:
        """Covariance matrix of the entries."""
        return np.asarray((np.diag(self.mean) - np.outer(self.mean, self.mean)) / (self.alpha.sum() + 1))

    @property
    def expected_log(self) -> Array:
        """Mean of the logarithm of each entry."""
        return np.asarray(digamma(self.alpha) - digamma(self.alpha.sum()))

    @property
    def entropy(self) -> float:
        """Differential entropy: minus the mean of the log density."""
        return float(gammaln(self.alpha).sum() - gammaln(self.alpha.sum()) - (self.alpha - 1) @ self.expected_log)

    def kl_divergence(self, other: Dirichlet) -> float:
        """Kullback-Leibler divergence of `other` from this one, ``E log p - E log q`` with draws from p, this one."""
        if self.alpha.shape != other.alpha.shape:
            raise ValueError(f"other must have {len(self.alpha)} outcomes, got {len(other.alpha)}")
        constants = gammaln(self.alpha.sum()) - gammaln(other.alpha.sum())
        constants += gammaln(other.alpha).sum() - gammaln(self.alpha).sum()
        return float(constants + (self.alpha - other.alpha) @ self.expected_log)

    def aggregate(self, groups: ArrayLike) -> Dirichlet:
        """Distribution of the sums of entries over groups, which is a Dirichlet distribution again.

        Parameters
        ----------
        groups : array-like of ints of shape (k,)
            Group of each entry, from 0; every group must have an entry.
        """
        owners = np.asarray(groups)
        if owners.shape != self.alpha.shape or owners.dtype.kind not in "iu" or (owners < 0).any():
            raise ValueError(
                f"groups must be a number of at least 0 for each of {len(self.alpha)} entries, got {groups!r}"
            )
        return Dirichlet(np.bincount(owners, self.alpha))

    def rvs(self, size: int = 1, random_state: RandomState = None) -> Array:
        """Draw `size` vectors: (size, k)."""
        return np.asarray(np.exp(draw_log_dirichlet(as_generator(random_state), self.alpha, (size,))))

    def logpdf(self, x: ArrayLike) -> Any:
        """Log density of probability vectors on the last axis."""
        p = np.asarray(x, dtype=np.float64)
        if p.shape[-1:] != self.alpha.shape or not (p >= 0).all() or (np.abs(p.sum(axis=-1) - 1) > 1e-6).any():
            raise ValueError(f"x must be probabilities of {len(self.alpha)} outcomes on the last axis, got {x!r}")
        power = self.alpha - 1
        with np.errstate(divide="ignore"):
            terms = np.where(power == 0, 0.0, power * np.log(np.where(power == 0, 1.0, p)))
        value = terms.sum(axis=-1) + gammaln(self.alpha.sum()) - gammaln(self.alpha).sum()
        return float(value) if np.ndim(value) == 0 else value

    @classmethod
    def fit(cls, x: ArrayLike, *, max_iter: int = 1000, tol: float = 1e-10) -> Self:
        """Maximum likelihood from probability vectors, by Newton's method on the logarithms of the parameters.

        Parameters
        ----------
        x : array-like of shape (n_samples, k)
            Rows on the simplex, without zeros.
        max_iter : int, default=1000
        tol : float, default=1e-10
            Largest slope of the mean log density that counts as zero.
        """
        p = np.asarray(x, dtype=np.float64)
        if p.ndim != 2 or len(p) < 2 or not (p > 0).all() or (np.abs(p.sum(axis=1) - 1) > 1e-6).any():
            raise ValueError("x must be two or more rows of positive probabilities that sum to 1, got other values")
        mean_log, mean, variance = np.log(p).mean(axis=0), p.mean(axis=0), p.var(axis=0)
        if (variance == 0).all():
            raise ValueError("x must vary, got equal rows")
        widest = variance.argmax()
        total = max(mean[widest] * (1 - mean[widest]) / variance[widest] - 1, 1e-2)
        a = np.maximum(mean * total, 1e-3)

        def objective(a: Array) -> float:
            return float(gammaln(a.sum()) - gammaln(a).sum() + (a - 1) @ mean_log)

        def step(a: Array) -> tuple[Array, float]:
            slope = digamma(a.sum()) - digamma(a) + mean_log
            size = float(np.abs(a * slope).max())
            if size <= tol:
                return a, size
            # The Hessian is diagonal plus a constant; it inverts in closed form (Minka).
            q, z = -polygamma(1, a), polygamma(1, a.sum())
            shift = (slope / q).sum() / (1 / z + (1 / q).sum())
            newton = a - (slope - shift) / q
            if (newton > 0).all() and objective(newton) >= objective(a):
                return newton, size
            return _inverse_digamma(digamma(a.sum()) + mean_log), size  # a fixed-point step always ascends

        return cls(iterate(step, a, max_iter=max_iter, tol=tol).state)


def _inverse_digamma(y: Array) -> Array:
    x = np.where(y >= -2.22, np.exp(y) + 0.5, -1 / (y - digamma(1.0)))
    for _ in range(6):
        x = x - (digamma(x) - y) / polygamma(1, x)
    return np.asarray(x)
