"""Tails of columns: a monotone map that turns heavy ones into normal ones, column by column.

A flow with a normal base has normal tails wherever its layers are straight, and a single far point of heavy-tailed data
then costs a hundred nats. ``g(x) = Phi^-1(T_v((x - m) / s))``, with the distribution function ``T_v`` of Student's t,
sends a tail like ``|x|^-(v + 1)`` to a normal one; m is the median, and s makes the quartiles those of the data. The
density of x is that of ``g(x)`` times ``g'(x) = t_v((x - m) / s) / (s phi(g(x)))``. The degrees of freedom v are those
of the largest likelihood of the tenth of the values that is farthest from the median, given that they are there;
normal tails stay if no v gains four nats.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtr, ndtri, stdtr, stdtrit

Array = NDArray[np.float64]

#: Degrees of freedom that are tried; beyond the last a tail is called normal.
DEGREES = (0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0)
#: Gain in log-likelihood for which normal tails are given up: a chance of 1 in 200 for normal data.
LEAST_GAIN = 4.0
#: Share of the values that are a tail, both sides together, and the least number of them that is looked at.
TAIL, LEAST_TAIL = 0.1, 15
#: Values outside the range of training by more than this share of it are extrapolated.
FAR = 0.5


@dataclass(frozen=True)
class ColumnTails:
    """Maps of the columns of a table.

    Attributes
    ----------
    degrees : (n_features,): degrees of freedom; infinite where tails are normal and the map is the identity
    center, width : (n_features,): m and s

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.column_tails import ColumnTails, learn_tails
    >>> X = np.random.default_rng(0).standard_t(2, size=(2000, 1))
    >>> tails = learn_tails(X, np.ones(2000))
    >>> bool(tails.degrees[0] < 5), bool(np.allclose(tails.backward(tails.forward(X)[0]), X))
    (True, True)
    """

    degrees: Array
    center: Array
    width: Array

    def forward(self, X: Array) -> tuple[Array, Array]:
        """Mapped rows, and the sum over columns of log g'."""
        mapped, log_slope = X.copy(), np.zeros(len(X))
        for j in np.flatnonzero(np.isfinite(self.degrees)):
            v, u = float(self.degrees[j]), (X[:, j] - self.center[j]) / self.width[j]
            # By the lower tail on either side, where the distribution function loses no digits.
            z = np.copysign(-ndtri(np.maximum(stdtr(v, -np.abs(u)), 1e-300)), u)
            mapped[:, j] = z
            log_slope += log_student(u, v) - np.log(self.width[j]) + 0.5 * z * z + 0.5 * np.log(2.0 * np.pi)
        return mapped, log_slope

    def backward(self, Z: Array) -> Array:
        """Rows that are mapped to `Z`."""
        X = Z.copy()
        for j in np.flatnonzero(np.isfinite(self.degrees)):
            far = stdtrit(float(self.degrees[j]), np.maximum(ndtr(-np.abs(Z[:, j])), 1e-300))
            X[:, j] = self.center[j] + self.width[j] * np.copysign(far, Z[:, j])
        return X


def learn_tails(X: Array, weights: Array) -> ColumnTails:
    """The map of each column, from rows with weights of mean 1."""
    found = [_learn_column(column, weights) for column in X.T]
    degrees, center, width = np.array(found).T
    return ColumnTails(degrees, center, width)


def normal_tails(n_features: int) -> ColumnTails:
    """The identity."""
    return ColumnTails(np.full(n_features, np.inf), np.zeros(n_features), np.ones(n_features))


def log_student(u: Array, v: float) -> Array:
    """Log density of Student's t with `v` degrees of freedom."""
    constant = gammaln(0.5 * (v + 1.0)) - gammaln(0.5 * v) - 0.5 * np.log(v * np.pi)
    return np.asarray(constant - 0.5 * (v + 1.0) * np.log1p(u * u / v))


def _learn_column(x: Array, weights: Array) -> tuple[float, float, float]:
    """Degrees of freedom, median and width of one column."""
    low, center, high = weighted_quantiles(x, weights, np.array([0.25, 0.5, 0.75]))
    distance = np.abs(x - center)
    if not high > low:
        return np.inf, 0.0, 1.0
    limit = weighted_quantiles(distance, weights, np.array([1.0 - TAIL]))[0]
    tail = distance > limit
    if tail.sum() < LEAST_TAIL:
        return np.inf, 0.0, 1.0
    half = 0.5 * (high - low)

    def fit(v: float) -> float:
        width = half / (float(ndtri(0.75)) if np.isinf(v) else float(stdtrit(v, 0.75)))
        u, edge = distance[tail] / width, -limit / width
        if np.isinf(v):
            logs = -0.5 * u * u - 0.5 * np.log(2.0 * np.pi) - np.log(max(float(ndtr(edge)), 1e-300))
        else:
            logs = log_student(u, v) - np.log(float(stdtr(v, edge)))
        return float(weights[tail] @ logs) - weights[tail].sum() * np.log(width)

    gains = np.array([fit(v) for v in DEGREES]) - fit(np.inf)
    best = int(gains.argmax())
    if not gains[best] > LEAST_GAIN:
        return np.inf, 0.0, 1.0
    return DEGREES[best], float(center), half / float(stdtrit(DEGREES[best], 0.75))


def weighted_quantiles(x: Array, weights: Array, shares: Array) -> Array:
    """Values below which these shares of the weight lie; a weight of two is a row that is there twice."""
    order = np.argsort(x, kind="stable")
    below = np.cumsum(weights[order])
    return np.asarray(x[order][np.minimum(np.searchsorted(below, shares * below[-1]), len(x) - 1)])


def warn_of_far_rows(X: Array, lower: Array, upper: Array, degrees: Array) -> None:
    """Say so if rows lie far outside the range of training in columns whose normal tails are a guess."""
    reach = FAR * (upper - lower)
    far = ((lower - reach > X) | (upper + reach < X)) & np.isinf(degrees)
    if far.any():
        column = int(far.sum(axis=0).argmax())
        warnings.warn(
            f"{int(far.any(axis=1).sum())} of {len(X)} rows lie far outside the range of training (column {column}: "
            f"{lower[column]:.4g} to {upper[column]:.4g}), where normal tails are extrapolated: their log densities "
            "say that they are far, not how probable they are",
            UserWarning,
            stacklevel=3,
        )


def standardisation(X: Array, weights: Array) -> tuple[Array, Array]:
    """Weighted mean and standard deviation of each column."""
    largest = np.abs(X).max(axis=0)
    units = np.where(largest > 0, largest, 1.0)  # squares of very large or small numbers stay finite
    shares = weights / weights.sum()
    mean = shares @ (X / units)
    deviation = np.sqrt(shares @ (X / units - mean) ** 2)
    constant = np.flatnonzero(~(deviation > 1e-12))
    if len(constant):
        column = int(constant[0])
        raise ValueError(
            f"X must vary in every column, got {X[0, column]:.6g} in all samples of column {column}: "
            "a constant has no density"
        )
    return mean * units, deviation * units
