r"""Probability product kernels of discrete distributions: categorical, Bernoulli product and Poisson.

.. math::

   \text{categorical:} \quad & \textstyle \sum_v p_v^\rho q_v^\rho \\
   \text{Bernoulli:} \quad & \textstyle \prod_d \bigl[ (p_d q_d)^\rho + ((1 - p_d)(1 - q_d))^\rho \bigr] \\
   \text{Poisson:} \quad & \textstyle \prod_d e^{-\rho (\sqrt{a_d} - \sqrt{b_d})^2}
      \sum_{x \ge 0} \mathrm{Poisson}(x; \sqrt{a_d b_d})^{2 \rho}

The last sum is 1 for :math:`\rho = 1/2` and :math:`e^{-2t} I_0(2t)` with :math:`t = \sqrt{ab}` for :math:`\rho = 1`.
For other powers it has no closed form (it is the normaliser of the Conway-Maxwell-Poisson distribution); the series is
summed to rounding. Away from 0 its terms form a smooth bump of width :math:`\sigma = \sqrt{t / 2\rho}`, so by Poisson's
summation formula steps of :math:`\sigma / 2` err by a factor of about :math:`e^{-8 \pi^2}`: large rates cost no more
than small ones.

A family reads parameters, and gives the log kernel, its diagonal, and for a symmetric matrix of weights the gradient of
:math:`\sum_{ij} w_{ij} \log K_{ij}`, which is :math:`2 \sum_j w_{ij} \, \partial_1 \log K(\theta_i, \theta_j)` for
part i.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pluri.priors.determinant import FLOOR
from pluri.priors.kernels.vectors import check_columns, check_dense, check_points
from pluri.priors.protocol import FloatArray

#: Terms of the Poisson series below exp(-NEGLIGIBLE) of the largest are left out.
NEGLIGIBLE = 60.0
SMALLEST_POISSON_POWER = 1e-3


class Family(Protocol):
    """A family of distributions with a probability product kernel."""

    def read(self, parameters: Any, name: str) -> Any:
        """The parameters, checked, in the form that the other methods take."""

    def interior(self, parameters: Any) -> Any:
        """The same, moved off the boundary by 1e-12, where the slope is still finite."""

    def log_kernel(self, first: Any, second: Any, rho: float) -> FloatArray:
        """Logs of the kernel (n_first, n_second)."""

    def log_diagonal(self, parts: Any, rho: float) -> FloatArray:
        """Logs of the kernel of each part with itself."""

    def log_pullback(self, parts: Any, weights: FloatArray, rho: float) -> Any:
        """Gradient of ``sum(weights * log_kernel(parts, parts, rho))`` for symmetric weights."""


@dataclass(frozen=True)
class Categorical:
    """Rows of probabilities, dense or sparse."""

    normalized: bool

    def read(self, parameters: Any, name: str) -> Any:
        """Non-negative rows; without normalisation of the kernel their scale matters, so they must sum to 1."""
        rows = check_points(parameters, name)
        values = rows.data if hasattr(rows, "tocsr") else rows
        if values.size and values.min() < 0:
            raise ValueError(f"{name} must be probabilities of categories, got the negative entry {values.min():.6g}")
        sums = np.asarray(rows.sum(axis=1), dtype=np.float64).ravel()
        if not (sums > 0).all():
            raise ValueError(f"{name} must have a positive entry in each row, got zeros only in row {sums.argmin()}")
        worst = int(np.abs(sums - 1.0).argmax())
        if not self.normalized and abs(sums[worst] - 1.0) > 1e-6:
            raise ValueError(f"{name} must have rows that sum to 1, got a sum of {sums[worst]:.6g} in row {worst}")
        return rows

    def interior(self, parameters: Any) -> FloatArray:
        """Entries of at least 1e-12."""
        return np.maximum(self.read(check_dense(parameters), "parameters"), FLOOR)

    def log_kernel(self, first: Any, second: Any, rho: float) -> FloatArray:
        """By a matrix product of powers; pairs whose every term underflows are summed in logs."""
        check_columns(first, second)
        powers, scale = power_rows(first, rho)
        other_powers, other_scale = (powers, scale) if second is first else power_rows(second, rho)
        product = powers @ other_powers.T
        product = np.asarray(product.toarray() if hasattr(product, "tocsr") else product, dtype=np.float64)
        with np.errstate(divide="ignore"):
            values = np.log(product)
        if not (hasattr(first, "tocsr") or hasattr(second, "tocsr")):
            for row in np.flatnonzero((product < 1e-290).any(axis=1)):
                hidden = np.flatnonzero(product[row] < 1e-290)
                with np.errstate(divide="ignore"):
                    terms = rho * (np.log(first[row] / first[row].max()) + np.log(second[hidden]))
                terms -= other_scale[hidden, None]
                values[row, hidden] = _log_sum(terms)
        return values + scale[:, None] + other_scale

    def log_diagonal(self, parts: Any, rho: float) -> FloatArray:
        """``log sum(p^(2 rho))``."""
        powers, scale = power_rows(parts, rho)
        squares = powers.multiply(powers) if hasattr(powers, "tocsr") else powers * powers
        return np.log(np.asarray(squares.sum(axis=1), dtype=np.float64).ravel()) + 2.0 * scale

    def log_pullback(self, parts: FloatArray, weights: FloatArray, rho: float) -> FloatArray:
        """Gradient by the entries."""
        powers, _ = power_rows(parts, rho)
        product = powers @ powers.T
        ratio = np.divide(weights, product, out=np.zeros_like(product), where=product > 0)
        return 2.0 * rho * powers / parts * (ratio @ powers)


@dataclass(frozen=True)
class Bernoulli:
    """Rows of success probabilities of independent binary features."""

    def read(self, parameters: Any, name: str) -> FloatArray:
        """Entries between 0 and 1."""
        rows = check_dense(parameters, name)
        if not ((rows >= 0) & (rows <= 1)).all():
            worst = rows.flat[np.argmax(np.abs(rows - 0.5))]
            raise ValueError(f"{name} must be probabilities of success between 0 and 1, got {worst:.6g}")
        return rows

    def interior(self, parameters: Any) -> FloatArray:
        """Entries between 1e-12 and 1 - 1e-12."""
        return np.clip(self.read(parameters, "parameters"), FLOOR, 1.0 - FLOOR)

    def log_kernel(self, first: FloatArray, second: FloatArray, rho: float) -> FloatArray:
        """Sum over the features of the log of two terms; in logs throughout only where both underflow."""
        check_columns(first, second)
        values = np.empty((len(first), len(second)))
        success, failure = second**rho, (1.0 - second) ** rho
        for part, row in enumerate(first):
            terms = success * row**rho + failure * (1.0 - row) ** rho
            with np.errstate(divide="ignore"):
                if terms.min() < 1e-290:
                    hits, misses = rho * (np.log(second) + np.log(row)), rho * (np.log1p(-second) + np.log1p(-row))
                    values[part] = np.logaddexp(hits, misses).sum(axis=1)
                else:
                    values[part] = np.log(terms, out=terms).sum(axis=1)
        return values

    def log_diagonal(self, parts: FloatArray, rho: float) -> FloatArray:
        """As `log_kernel`, of each part with itself."""
        with np.errstate(divide="ignore"):
            return np.logaddexp(2.0 * rho * np.log(parts), 2.0 * rho * np.log1p(-parts)).sum(axis=1)

    def log_pullback(self, parts: FloatArray, weights: FloatArray, rho: float) -> FloatArray:
        """Gradient by the probabilities: ``rho * (s / p - (1 - s) / (1 - p))`` with s the share of the first term."""
        logits = rho * (np.log(parts) - np.log1p(-parts))
        gradient = np.empty_like(parts)
        for part, row in enumerate(parts):
            share = 0.5 * (1.0 + np.tanh(0.5 * (logits + logits[part])))  # the logistic function
            slope = rho * (share / row - (1.0 - share) / (1.0 - row))
            gradient[part] = 2.0 * weights[part] @ slope
        return gradient


@dataclass(frozen=True)
class Poisson:
    """Rates of independent counts, one for each part or a row for each."""

    def read(self, parameters: Any, name: str) -> FloatArray:
        """Non-negative rates (n_parts,) or (n_parts, n_features)."""
        rates = np.asarray(parameters, dtype=np.float64)
        if rates.ndim not in (1, 2) or rates.size == 0:
            raise ValueError(f"{name} must be rates, one or a row for each part, got shape {rates.shape}")
        if not (np.isfinite(rates).all() and (rates >= 0).all()):
            raise ValueError(f"{name} must be finite, non-negative rates, got {rates.min():.6g}")
        return rates

    def interior(self, parameters: Any) -> FloatArray:
        """Rates of at least 1e-12."""
        return np.maximum(self.read(parameters, "parameters"), FLOOR)

    def log_kernel(self, first: FloatArray, second: FloatArray, rho: float) -> FloatArray:
        """Sum over the features; see the module for the formula."""
        first, second = _columns(first), _columns(second)
        check_columns(first, second)
        values = np.zeros((len(first), len(second)))
        for one, other in zip(np.sqrt(first).T, np.sqrt(second).T):
            values += log_poisson_powers(np.outer(one, other), rho)[0] - rho * (one[:, None] - other) ** 2
        return values

    def log_diagonal(self, parts: FloatArray, rho: float) -> FloatArray:
        """As `log_kernel`, of each part with itself."""
        return log_poisson_powers(_columns(parts), rho)[0].sum(axis=1)

    def log_pullback(self, parts: FloatArray, weights: FloatArray, rho: float) -> FloatArray:
        """Gradient by the rates."""
        rates = _columns(parts)
        gradient = np.empty_like(rates)
        for feature, roots in enumerate(np.sqrt(rates).T):
            ratio = roots / roots[:, None]
            slope = -rho * (1.0 - ratio) + 0.5 * ratio * log_poisson_powers(np.outer(roots, roots), rho)[1]
            gradient[:, feature] = 2.0 * np.sum(weights * slope, axis=1)
        return gradient.reshape(parts.shape)


def log_poisson_powers(rates: FloatArray, rho: float) -> tuple[FloatArray, FloatArray]:
    """``log sum_x Poisson(x; rate)^(2 rho)`` for each rate, and its derivative by the rate."""
    if rho == 0.5:
        return np.zeros_like(rates), np.zeros_like(rates)
    if rho == 1.0:
        from scipy.special import i0e, i1e

        scaled = i0e(2.0 * rates)
        return np.log(scaled), 2.0 * (i1e(2.0 * rates) / scaled - 1.0)
    if rho < SMALLEST_POISSON_POWER:
        raise ValueError(f"rho must be at least {SMALLEST_POISSON_POWER} for Poisson distributions, got {rho!r}")
    distinct, where = np.unique(rates, return_inverse=True)
    logs, slopes = _sum_series(distinct, rho)
    return logs[where].reshape(rates.shape), slopes[where].reshape(rates.shape)


def _sum_series(rates: FloatArray, rho: float) -> tuple[FloatArray, FloatArray]:
    from scipy.special import gammaln, xlogy

    # Where the tails of a Poisson distribution, to the power 2 rho, are negligible (Bernstein's inequality above the
    # mean, the Gaussian bound below it).
    bound = NEGLIGIBLE / rho
    low = np.floor(np.maximum(rates - np.sqrt(bound * rates), 0.0))
    high = rates + 0.5 * (bound / 3.0 + np.sqrt((bound / 3.0) ** 2 + 4.0 * bound * rates)) + 2.0
    step = np.where(low > 0, np.maximum(np.floor(0.5 * np.sqrt(rates / (2.0 * rho))), 1.0), 1.0)
    n_terms = np.ceil((high - low) / step).astype(np.int64) + 1
    logs, slopes = np.empty_like(rates), np.empty_like(rates)
    begin = 0
    while begin < len(
        rates
    ):  # in chunks of about a million terms; the rates are sorted, so neighbours need like numbers
        chunk = slice(begin, begin + max(1, 2**20 // int(n_terms[begin : begin + 2**12].max())))
        rate = rates[chunk, None]
        counts = low[chunk, None] + step[chunk, None] * np.arange(n_terms[chunk].max())
        terms = 2.0 * rho * (xlogy(counts, rate) - gammaln(counts + 1.0) - rate)
        log_sums = _log_sum(terms)
        shares = np.exp(terms - log_sums[:, None])
        logs[chunk] = log_sums + np.log(step[chunk])
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            slopes[chunk] = 2.0 * rho * np.sum(shares * (counts - rate), axis=1) / rate[:, 0]
        begin = chunk.stop
    return logs, slopes


def _columns(rates: FloatArray) -> FloatArray:
    return rates[:, None] if rates.ndim == 1 else rates


def power_rows(rows: Any, rho: float) -> tuple[Any, FloatArray]:
    """Rows divided by their largest entry and raised to ``rho``, and the logs of what they were divided by."""
    largest = rows.max(axis=1)
    largest = np.asarray(largest.toarray() if hasattr(largest, "toarray") else largest, dtype=np.float64).ravel()
    if hasattr(rows, "tocsr"):
        powers = rows.copy()
        powers.data = (powers.data / np.repeat(largest, np.diff(powers.indptr))) ** rho
        return powers, rho * np.log(largest)
    return (rows / largest[:, None]) ** rho, rho * np.log(largest)


def _log_sum(terms: FloatArray) -> FloatArray:
    """``log(sum(exp(terms)))`` along the rows, minus infinity where all terms are."""
    largest = terms.max(axis=1)
    safe = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.sum(np.exp(terms - safe[:, None]), axis=1)) + safe
