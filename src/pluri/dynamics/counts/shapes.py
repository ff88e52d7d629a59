"""What the shape g of a generalized count distribution may be: free, concave, convex, or of a named distribution.

A shape is a function of a few numbers phi; those of the named distributions are in the table of special cases of
`GeneralizedCount`. The intercept of a regression is the linear part of g, so that there is no column for it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

Array = NDArray[np.float64]

DISTRIBUTIONS = ("general", "poisson", "com_poisson", "negative_binomial", "bernoulli")
SHAPES = (None, "concave", "convex")
#: Logarithms of the size of a negative binomial: beyond the upper one it is Poisson to rounding.
LOG_SIZES = (-7.0, 12.0)


@dataclass(frozen=True, eq=False)
class ShapeFunction:
    """g = offset + basis phi on the support, or the shape of a negative binomial.

    Parameters
    ----------
    basis : (K + 1, n): row 0 is 0
    support : (K + 1,): counts that are possible
    start : (n,): phi of a Poisson distribution with the mean of the data
    bounds : a pair for each entry of phi, or None if all are free
    is_negative_binomial : whether phi is (intercept, log size) instead
    """

    basis: Array
    support: NDArray[np.bool_]
    start: Array
    bounds: list[tuple[float | None, float | None]] | None = None
    is_negative_binomial: bool = False

    @property
    def is_linear(self) -> bool:
        """Whether g is linear in phi, which has no bounds: the log-likelihood is then concave, Newton steps work."""
        return self.bounds is None and not self.is_negative_binomial

    def g(self, phi: Array) -> Array:
        """Shape (K + 1,); -inf off the support."""
        if self.is_negative_binomial:
            k, size = np.arange(len(self.basis)), np.exp(phi[1])
            values = phi[0] * k + gammaln(k + size) - gammaln(size)
        else:
            values = self.basis @ phi
        return np.where(self.support, values, -np.inf)

    def jacobian(self, phi: Array) -> Array:
        """D g / d phi: (K + 1, n)."""
        if not self.is_negative_binomial:
            return self.basis
        k, size = np.arange(len(self.basis)), np.exp(phi[1])
        return np.column_stack([k, size * (digamma(k + size) - digamma(size))])


def second_differences(max_count: int) -> Array:
    """The matrix D with (D g)_k = g(k + 1) - 2 g(k) + g(k - 1): (K - 1, K + 1)."""
    n = max(max_count - 1, 0)
    D = np.zeros((n, max_count + 1))
    rows = np.arange(n)
    D[rows, rows], D[rows, rows + 1], D[rows, rows + 2] = 1.0, -2.0, 1.0
    return D


def free_shape(support: NDArray[np.bool_], slope: float) -> ShapeFunction:
    """A value for each possible count but 0."""
    free = np.flatnonzero(support[1:]) + 1
    basis = np.zeros((len(support), len(free)))
    basis[free, np.arange(len(free))] = 1.0
    return ShapeFunction(basis, support, slope * free.astype(np.float64))


def bent_shape(max_count: int, slope: float, shape: str) -> ShapeFunction:
    """g(k) = a k + sum_j (k - j)_+ s_j, whose second differences s_j all have one sign."""
    k, j = np.arange(max_count + 1), np.arange(max_count)
    basis = np.maximum(k[:, None] - j, 0).astype(np.float64)
    start = np.zeros(max_count)
    start[:1] = slope
    bound = (None, 0.0) if shape == "concave" else (0.0, None)
    return ShapeFunction(basis, np.ones(max_count + 1, dtype=bool), start, [(None, None), *[bound] * (max_count - 1)])


def named_shape(distribution: str, max_count: int, slope: float) -> ShapeFunction:
    """Poisson, Bernoulli, COM-Poisson or negative binomial, cut off at `max_count`."""
    k = np.arange(max_count + 1.0)
    support = np.ones(max_count + 1, dtype=bool)
    line = k[:, None]
    if distribution == "com_poisson":
        # The exponent is 1 - phi[1], and not negative.
        basis = np.column_stack([k, gammaln(k + 1.0)])
        return ShapeFunction(basis, support, np.array([slope, 0.0]), [(None, None), (None, 1.0)])
    if distribution == "negative_binomial":
        # Of size 1: the odds of one more event are those of a geometric distribution with the mean.
        mean = np.exp(slope)
        start = np.array([np.log(mean / (1.0 + mean)), 0.0])
        return ShapeFunction(line, support, start, [(None, None), LOG_SIZES], is_negative_binomial=True)
    return ShapeFunction(line, support, np.array([slope]))
