"""Polya-Gamma augmentation of a Gaussian-process classifier: a variational bound, and an exact Gibbs sampler.

``sig(y f) = 1/2 exp(y f / 2) E exp(-omega f^2 / 2)`` for ``omega ~ PG(1, 0)``: given omega the likelihood is
Gaussian in f, of precision omega. The mean-field bound of the augmented model is the bound of Jaakkola and Jordan,
with ``theta_i = E omega_i = tanh(c_i / 2) / (2 c_i)`` and ``c_i^2 = E f_i^2``; it rises at every iteration.

Draws from PG(1, c) are exact [3]_: ``PG(1, c) = J(|c| / 2) / 4`` for the exponentially tilted Jacobi distribution,
whose density is an alternating series: a proposal (a truncated inverse Gaussian below 0.64, an exponential above) is
accepted or refused as soon as the partial sums decide. All entries of an array are drawn together; those not yet
accepted propose again.

References
----------
.. [1] Polson, N. G., Scott, J. G. and Windle, J. (2013). Bayesian inference for logistic models using Polya-Gamma
   latent variables. JASA 108, 1339-1349.
.. [2] Jaakkola, T. S. and Jordan, M. I. (2000). Bayesian parameter estimation via variational methods.
.. [3] Devroye, L. (2009). On exact simulation algorithms for some distributions related to Jacobi theta functions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from pluri.optimize.fixed_point import iterate
from pluri.processes.gp_inference.sites import GaussianSites, factor_of, half_solve, log_sigmoid, solve

Array = NDArray[np.float64]

TOLERANCE = 1e-9


#: Where the two forms of the series meet.
SPLIT = 0.64


def draw_polya_gamma(rng: np.random.Generator, tilt: Array) -> Array:
    """One draw of PG(1, c) for each entry c of `tilt` (n,).

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.gp_inference.polya_gamma import draw_polya_gamma
    >>> draws = draw_polya_gamma(np.random.default_rng(0), np.zeros(100_000))
    >>> bool(abs(draws.mean() - 0.25) < 0.003)
    True
    """
    half = 0.5 * np.abs(np.asarray(tilt, dtype=np.float64))
    result = np.empty(len(half))
    waiting = np.arange(len(half))
    above = _chance_above(half)
    while len(waiting):
        z = half[waiting]
        proposal = np.empty(len(waiting))
        high = rng.random(len(waiting)) < above[waiting]
        rate = math.pi**2 / 8.0 + 0.5 * z[high] ** 2
        proposal[high] = SPLIT + rng.exponential(size=int(high.sum())) / rate
        proposal[~high] = _truncated_inverse_gaussian(rng, z[~high])
        accepted = _accept(rng, proposal)
        result[waiting[accepted]] = proposal[accepted]
        waiting = waiting[~accepted]
    return 0.25 * result


def _chance_above(z: Array) -> Array:
    """Probability that the proposal comes from the exponential part."""
    rate = math.pi**2 / 8.0 + 0.5 * z**2
    log_above = np.log(math.pi / 2.0 / rate) - rate * SPLIT
    root = math.sqrt(1.0 / SPLIT)
    # Inverse Gaussian of mean 1/z and shape 1 below SPLIT, times 2 exp(-z).
    first = log_ndtr(root * (SPLIT * z - 1.0)) - z
    second = log_ndtr(-root * (SPLIT * z + 1.0)) + z
    log_below = math.log(2.0) + np.logaddexp(first, second)
    return np.asarray(1.0 / (1.0 + np.exp(np.clip(log_below - log_above, -700.0, 700.0))))


def _truncated_inverse_gaussian(rng: np.random.Generator, z: Array) -> Array:
    """Inverse Gaussian of mean 1/z and shape 1, below SPLIT."""
    result = np.empty(len(z))
    waiting = np.arange(len(z))
    while len(waiting):
        tilt = z[waiting]
        mean = 1.0 / np.maximum(tilt, 1e-300)
        proposal = np.empty(len(waiting))
        kept = np.zeros(len(waiting), dtype=bool)
        far = mean > SPLIT
        # A mean beyond the limit: the untilted distribution (an inverse chi-square below SPLIT), thinned by
        # exp(-z^2 x / 2).
        count = int(far.sum())
        if count:
            x = _truncated_inverse_chi_square(rng, count)
            proposal[far] = x
            kept[far] = rng.random(count) < np.exp(-0.5 * tilt[far] ** 2 * x)
        count = len(waiting) - count
        if count:
            proposal[~far] = rng.wald(mean[~far], 1.0)
            kept[~far] = proposal[~far] < SPLIT
        result[waiting[kept]] = proposal[kept]
        waiting = waiting[~kept]
    return result


def _truncated_inverse_chi_square(rng: np.random.Generator, count: int) -> Array:
    """``1 / N^2`` for a standard normal N beyond ``1 / sqrt(SPLIT)``."""
    from scipy.special import ndtri_exp

    log_tail = float(log_ndtr(-1.0 / math.sqrt(SPLIT)))
    return np.asarray(1.0 / ndtri_exp(log_tail + np.log1p(-rng.random(count))) ** 2)


def _accept(rng: np.random.Generator, x: Array) -> NDArray[np.bool_]:
    """Compare a uniform with the alternating series, term by term, until each comparison is decided."""
    total = _term(0, x)
    bar = rng.random(len(x)) * total
    accepted = np.zeros(len(x), dtype=bool)
    open_ = np.arange(len(x))
    order = 0
    while len(open_):
        order += 1
        term = _term(order, x[open_])
        if order % 2:
            total[open_] -= term
            decided = bar[open_] <= total[open_]
            accepted[open_[decided]] = True
        else:
            total[open_] += term
            decided = bar[open_] > total[open_]
        open_ = open_[~decided]
    return accepted


def _term(order: int, x: Array) -> Array:
    """Coefficient of the series at x, in the form that decreases on its side of SPLIT."""
    k = order + 0.5
    low = math.pi * k * (2.0 / (math.pi * x)) ** 1.5 * np.exp(-2.0 * k * k / x)
    high = math.pi * k * np.exp(-0.5 * k * k * math.pi**2 * x)
    return np.where(x <= SPLIT, low, high)


class _Bound(NamedTuple):
    """Square roots of ``E f^2`` at which the next bound is tight, the sites of the last one, and its value."""

    scale: Array
    weights: Array
    precision: Array
    mean: Array
    value: float


def polya_gamma(covariance: Array, labels: Array, max_iter: int = 500) -> GaussianSites:
    """Raise the bound until it rises by less than 1e-9.

    Parameters
    ----------
    covariance : (n, n)
    labels : (n,) of -1 and 1
    max_iter : int, default=500
    """
    shift = labels / 2.0
    pulled = covariance @ shift
    history: list[float] = []

    def tighten(bound: _Bound) -> tuple[_Bound, float]:
        scale = bound.scale
        precision = mean_polya_gamma(scale)
        factor, root = factor_of(covariance, precision)
        half = half_solve(factor, root[:, None] * covariance)
        variance = np.diagonal(covariance) - np.einsum("ij,ij->j", half, half)
        weights = shift - root * solve(factor, root * pulled)
        mean = covariance @ weights
        square = mean**2 + variance
        # log N(m, S) against N(0, K): tr(K^-1 S) = n - tr(R K), which is the sum of tau times the variances.
        divergence = 0.5 * float(weights @ mean - precision @ variance) + float(np.log(np.diagonal(factor)).sum())
        likelihood = log_sigmoid(scale) - 0.5 * scale + shift * mean - 0.5 * precision * (square - scale**2)
        history.append(float(likelihood.sum()) - divergence)
        return _Bound(np.sqrt(square), weights, precision, mean, history[-1]), history[-1] - bound.value

    nothing = np.empty(0)
    start = _Bound(np.sqrt(np.diagonal(covariance)), nothing, nothing, nothing, -math.inf)
    bound, _, _, converged = iterate(tighten, start, max_iter=max_iter, tol=TOLERANCE)
    return GaussianSites(bound.weights, bound.precision, bound.mean, bound.value, tuple(history), converged)


def mean_polya_gamma(tilt: Array) -> Array:
    """Mean of PG(1, c): ``tanh(c / 2) / (2 c)``, 1/4 at 0."""
    small = np.abs(tilt) < 1e-4
    safe = np.where(small, 1.0, tilt)
    return np.where(small, 0.25 - tilt**2 / 48.0, np.tanh(safe / 2.0) / (2.0 * safe))


class LatentState(NamedTuple):
    """A latent function at the inputs and the log density of function and labels there."""

    position: Array
    log_density: float


@dataclass(frozen=True)
class PolyaGammaGibbs:
    """Gibbs sampler for `pluri.inference.mcmc.sample`: ``omega | f ~ PG(1, f)``, then ``f | omega`` Gaussian.

    Parameters
    ----------
    covariance : (n, n)
    cholesky : (n, n), its lower factor
    labels : (n,) of -1 and 1
    """

    covariance: Array
    cholesky: Array
    labels: Array

    def init(self, rng: np.random.Generator, position: Array) -> LatentState:
        """State at a latent function."""
        return self._state(np.array(position, dtype=np.float64))

    def _state(self, latent: Array) -> LatentState:
        white = half_solve(self.cholesky, latent)
        return LatentState(latent, float(log_sigmoid(self.labels * latent).sum() - 0.5 * white @ white))

    def step(self, rng: np.random.Generator, state: LatentState) -> tuple[LatentState, dict[str, float]]:
        """One sweep.

        f is drawn by conditioning a draw from the prior on pseudo-observations ``y / (2 omega)`` with noise
        ``1 / omega``: ``f = f_0 + K C^-1 (z - f_0 - e)``, ``C = K + diag(1 / omega)``.
        """
        omega = draw_polya_gamma(rng, state.position)
        factor, root = factor_of(self.covariance, omega)
        prior = self.cholesky @ rng.standard_normal(len(omega))
        # root * (z - f_0 - e), with e = noise / root.
        gap = 0.5 * self.labels / root - root * prior - rng.standard_normal(len(omega))
        latent = prior + self.covariance @ (root * solve(factor, gap))
        return self._state(latent), {"acceptance": 1.0, "accepted": 1.0, "n_evaluations": 1.0, "divergent": 0.0}

    def adaptation(self, n_warmup: int) -> None:
        """Nothing to learn."""
        return None
