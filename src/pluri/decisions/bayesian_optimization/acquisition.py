r"""What another evaluation is worth: improvement and confidence bounds, for a minimum that is searched.

With posterior mean mu and standard deviation s of the function at a point, and ``g = (best - mu - xi) / s``::

    probability of improvement   PI  = Phi(g)
    expected improvement         EI  = s (g Phi(g) + phi(g))        [1]_
    lower confidence bound       LCB = -(mu - kappa s)              large is good, as for the others

Signs are those of a minimum; for a maximum negate the observations. EI is tiny over most of a space, where its gradient
would vanish in rounding: it is maximised as its logarithm, which is computed without cancellation [2]_.

References
----------
.. [1] Jones, D. R., Schonlau, M. and Welch, W. J. (1998). Efficient global optimization of expensive black-box
   functions. Journal of Global Optimization 13.
.. [2] Ament, S., Daulton, S., Eriksson, D., Balandat, M. and Bakshy, E. (2023). Unexpected improvements to expected
   improvement for Bayesian optimization. NeurIPS.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfcx, log_ndtr, ndtr

Array = NDArray[np.float64]

HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
HALF_LOG_HALF_PI = 0.5 * math.log(0.5 * math.pi)
#: Below this the first term of the series of the tail, ``phi(g) / g^2``, is as good as the difference.
FAR = -1e4


def probability_of_improvement(mean: ArrayLike, std: ArrayLike, best: float, xi: float = 0.0) -> Array:
    """Probability that the function is below ``best - xi``.

    Parameters
    ----------
    mean, std : array-like
        Of the function at some points; a `std` of 0 is a known value.
    best : float
        The lowest value so far.
    xi : float, default=0.0

    Examples
    --------
    >>> from pluri.decisions import probability_of_improvement
    >>> float(probability_of_improvement(0.0, 1.0, best=0.0))
    0.5
    """
    return ndtr(_gap(mean, std, best, xi))


def expected_improvement(mean: ArrayLike, std: ArrayLike, best: float, xi: float = 0.0) -> Array:
    """Expected amount by which the function is below ``best - xi``.

    Parameters
    ----------
    mean, std : array-like
    best : float
        The lowest value so far.
    xi : float, default=0.0

    Examples
    --------
    >>> from pluri.decisions import expected_improvement
    >>> round(float(expected_improvement(0.0, 1.0, best=0.0)), 4)  # the density of a standard normal at 0
    0.3989
    """
    known = best - xi - np.asarray(mean, dtype=np.float64)
    scale = np.asarray(std, dtype=np.float64)
    positive = np.where(scale > 0, scale, 1.0)
    return np.where(scale > 0, positive * np.exp(_log_h(known / positive)), np.maximum(known, 0.0))


def lower_confidence_bound(mean: ArrayLike, std: ArrayLike, kappa: float = 2.0) -> Array:
    """Minus the lower bound, ``-(mean - kappa std)``: large where the function may be low.

    Examples
    --------
    >>> from pluri.decisions import lower_confidence_bound
    >>> float(lower_confidence_bound(1.0, 0.5, kappa=2.0))
    -0.0
    """
    return -(np.asarray(mean, dtype=np.float64) - kappa * np.asarray(std, dtype=np.float64))


def confidence_schedule(n_candidates: int, n_evaluations: int, delta: float = 0.1) -> float:
    """Kappa with which the regret is bounded with probability ``1 - delta``.

    ``kappa^2 = 2 log(n_candidates t^2 pi^2 / (6 delta))`` at evaluation t.

    References
    ----------
    Srinivas, N., Krause, A., Kakade, S. and Seeger, M. (2010). Gaussian process optimization in the bandit setting.
    ICML.
    """
    return math.sqrt(2.0 * math.log(n_candidates * max(1, n_evaluations) ** 2 * math.pi**2 / (6.0 * delta)))


class Criterion(NamedTuple):
    """What is maximised, as a function of mean and standard deviation.

    Attributes
    ----------
    kind : {"ei", "pi", "lcb", "feasible"}
        "feasible" is nothing but the probability that constraints hold.
    best : float
    xi, kappa : float
    """

    kind: str
    best: float = 0.0
    xi: float = 0.0
    kappa: float = 2.0

    @property
    def logarithmic(self) -> bool:
        """Whether values are logarithms."""
        return self.kind != "lcb"

    def evaluate(self, mean: Array, std: Array) -> tuple[Array, Array, Array]:
        """Value, or its logarithm, and the derivatives with respect to mean and standard deviation (any shape)."""
        if self.kind == "feasible":
            return np.zeros_like(mean), np.zeros_like(mean), np.zeros_like(mean)
        if self.kind == "lcb":
            return -(mean - self.kappa * std), np.full_like(mean, -1.0), np.full_like(mean, self.kappa)
        gap = (self.best - self.xi - mean) / std
        log_tail = log_ndtr(gap)
        if self.kind == "pi":
            slope = np.exp(-0.5 * gap**2 - HALF_LOG_TWO_PI - log_tail)  # d log Phi / dg
            return log_tail, -slope / std, -slope * gap / std
        log_h = _log_h(gap)
        slope = np.exp(log_tail - log_h)  # h' = Phi
        return np.log(std) + log_h, -slope / std, (1.0 - slope * gap) / std


def log_feasible(mean: Array, std: Array) -> tuple[Array, Array, Array]:
    """Log probability that a constraint is at most 0, and its derivatives."""
    return Criterion("pi").evaluate(mean, std)


def averaged(values: Array, gradients: Array | None, logarithmic: bool) -> tuple[Any, Any]:
    """Mean over draws of the hyper-parameters, the first axis; of logarithms, the logarithm of the mean.

    Parameters
    ----------
    values : (n_draws, ...)
    gradients : (n_draws, ..., n_dimensions) or None
    """
    if len(values) == 1:
        return values[0], None if gradients is None else gradients[0]
    if not logarithmic:
        return values.mean(axis=0), None if gradients is None else gradients.mean(axis=0)
    top = values.max(axis=0)
    top = np.where(np.isfinite(top), top, 0.0)
    shares = np.exp(values - top)
    total = shares.sum(axis=0)
    with np.errstate(divide="ignore"):
        result = top + np.log(total / len(values))
    if gradients is None:
        return result, None
    weights = shares / np.maximum(total, 1e-300)
    return result, (weights[..., None] * gradients).sum(axis=0)


def _gap(mean: ArrayLike, std: ArrayLike, best: float, xi: float) -> Array:
    """g; plus or minus infinity where the function is known."""
    known = best - xi - np.asarray(mean, dtype=np.float64)
    scale = np.asarray(std, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(scale > 0, known / scale, np.where(known > 0, np.inf, -np.inf))


def _log_h(gap: Array) -> Array:
    """``log(g Phi(g) + phi(g))``; for negative g by the scaled tail, ``phi(g) (1 - |g| Phi(g) / phi(g))``."""
    gap = np.asarray(gap, dtype=np.float64)
    near = np.maximum(gap, -1.0)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        direct = np.log(np.exp(-0.5 * near**2 - HALF_LOG_TWO_PI) + near * ndtr(near))
        below = np.clip(gap, FAR, -1.0)
        log_product = np.log(erfcx(-below / math.sqrt(2.0)) * -below) + HALF_LOG_HALF_PI
        tail = -0.5 * below**2 - HALF_LOG_TWO_PI + np.log(-np.expm1(log_product))
        far = -0.5 * gap**2 - HALF_LOG_TWO_PI - 2.0 * np.log(np.maximum(-gap, 1.0))
    return np.where(gap > -1.0, direct, np.where(gap > FAR, tail, far))
