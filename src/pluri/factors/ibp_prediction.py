"""What a fitted feature model says about rows: who has which feature, and how likely a row is.

With features ``A_k ~ N(phi_k, s_k I)`` and probabilities ``pi_k``, a row with the features z is
``N(bias + z phi, (noise + z s) I)``. For few features the density of a row is the sum over all z; for many it is
bounded below by the mean-field assignment of the row, which is also what `transform` gives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, logsumexp, xlog1py, xlogy

from pluri.factors.ibp_mean_field import FeatureBeliefs, assign_rows
from pluri.optimize.fixed_point import iterate

Array = NDArray[np.float64]

#: With up to this many features all combinations are summed.
MOST_ENUMERATED = 12
#: Entries of a table that is made at a time.
BLOCK = 4_000_000


@dataclass(frozen=True, eq=False)
class FittedFeatures:
    """What is known about the features.

    Attributes
    ----------
    means : (n_features, n_dims): phi
    variances : (n_features,): s
    probabilities : (n_features,): pi
    bias : (n_dims,)
    noise_variance : float
    """

    means: Array
    variances: Array
    probabilities: Array
    bias: Array
    noise_variance: float

    @property
    def beliefs(self) -> FeatureBeliefs:
        """The same for `assign_rows`."""
        none = np.empty(0)
        return FeatureBeliefs(none, self.means, self.variances, none, self.bias, 1.0, self.noise_variance, 1.0)


def assign(X: Array, fitted: FittedFeatures, *, max_iter: int = 200, tol: float = 1e-8) -> Array:
    """Probability that each row has each feature, by mean field; each row goes its own way.

    Two starts, the probabilities of the features and an even chance; the better bound wins.
    """
    p = np.clip(fitted.probabilities, 1e-12, 1 - 1e-12)
    odds, beliefs = np.log(p) - np.log1p(-p), fitted.beliefs
    results = []
    for start in (p, np.full(len(p), 0.5)):
        nu = np.tile(start, (len(X), 1))

        def sweep(moving: NDArray[np.int64], nu: Array = nu) -> tuple[NDArray[np.int64], float]:
            new = assign_rows(X[moving], beliefs, odds, nu[moving])
            change = np.abs(new - nu[moving]).max(axis=1, initial=0.0)
            nu[moving] = new
            return moving[change > tol], float(change.max(initial=0.0))

        iterate(sweep, np.arange(len(X)), max_iter=max_iter, tol=tol)
        results.append(nu)
    first, second = (row_bounds(X, fitted, nu) for nu in results)
    return np.where((second > first + 1e-9)[:, None], results[1], results[0])


def row_bounds(X: Array, fitted: FittedFeatures, nu: Array) -> Array:
    """Lower bound of the log density of each row, given its assignment."""
    d, p = X.shape[1], fitted.probabilities
    residual = ((X - fitted.bias - nu @ fitted.means) ** 2).sum(axis=1)
    misfit = residual + (nu * (1 - nu)) @ (fitted.means**2).sum(axis=1) + d * nu @ fitted.variances
    prior = (xlogy(nu, p) + xlog1py(1 - nu, -p) + entr(nu) + entr(1 - nu)).sum(axis=1)
    return np.asarray(
        prior - d / 2 * math.log(2 * math.pi * fitted.noise_variance) - misfit / (2 * fitted.noise_variance)
    )


def log_density(X: Array, fitted: FittedFeatures) -> Array:
    """Log density of each row: exact for up to `MOST_ENUMERATED` features, a lower bound beyond."""
    k = len(fitted.probabilities)
    if k > MOST_ENUMERATED:
        return row_bounds(X, fitted, assign(X, fitted))
    d, p = X.shape[1], fitted.probabilities
    Z = ((np.arange(2**k)[:, None] >> np.arange(k)) & 1).astype(np.float64)
    variance = fitted.noise_variance + Z @ fitted.variances
    log_prior = (xlogy(Z, p) + xlog1py(1 - Z, -p)).sum(axis=1) - d / 2 * np.log(2 * math.pi * variance)
    centres = fitted.bias + Z @ fitted.means
    result = np.empty(len(X))
    step = max(1, BLOCK // (len(Z) * d))
    for start in range(0, len(X), step):
        rows = X[start : start + step]
        distance = ((rows[:, None, :] - centres) ** 2).sum(axis=2)
        result[start : start + step] = logsumexp(log_prior - distance / (2 * variance), axis=1)
    return result
