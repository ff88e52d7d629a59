"""Gaussian features given the class, with a Normal-Gamma prior; see `pluri.mixtures.naive_bayes.feature_families`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from pluri.components.gaussian import check_magnitude
from pluri.mixtures.naive_bayes.feature_families import ROWS, Inference, dense

Array = NDArray[np.float64]
LOG_2PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True)
class GaussianStatistics:
    """total (C,): weight of rows; mean (C, d); squares (C, d): weighted squared distances from that mean."""

    total: Array
    mean: Array
    squares: Array

    def __add__(self, other: GaussianStatistics) -> GaussianStatistics:
        # Chan, Golub and LeVeque (1983): never a difference of large squares.
        total = self.total + other.total
        share = np.divide(other.total, total, out=np.zeros_like(total), where=total > 0)[:, None]
        gap = other.mean - self.mean
        squares = self.squares + other.squares + gap**2 * self.total[:, None] * share
        return GaussianStatistics(total, self.mean + share * gap, squares)

    def pooled(self) -> tuple[Array, Array]:
        """Mean and variance of each column, whatever the class."""
        total = self.total.sum()
        if total == 0:
            return np.zeros(self.mean.shape[1]), np.ones(self.mean.shape[1])
        weight = self.total / total
        mean = weight @ self.mean
        return mean, self.squares.sum(axis=0) / total + weight @ (self.mean - mean) ** 2


@dataclass(frozen=True)
class GaussianEstimate:
    """Location and squared scale of each class and column, (C, d); Student-t with `dof` (C, 1) if it is given."""

    mean: Array
    variance: Array
    dof: Array | None = None


@dataclass(frozen=True)
class GaussianFeatures:
    """Columns of real numbers: `prior` is (mean, strength, shape, rate) of the Normal-Gamma distribution, or None.

    Precision ~ Gamma(shape, rate), mean given it ~ N(mean, 1 / (strength * precision)). None: mean and variance of the
    column, with the weight of one row. `smoothing` times the largest column variance is added to every variance.
    """

    prior: tuple[Any, Any, Any, Any] | None = None
    smoothing: float = 1e-9

    def prepare(self, X: Any) -> Array:
        return check_magnitude(dense(X))

    def count(self, X: Array, membership: Array) -> GaussianStatistics:
        total = membership.sum(axis=0)
        per_row = membership / np.where(total > 0, total, 1.0)
        mean = per_row.T @ X
        squares = np.stack([membership[:, c] @ (X - mean[c]) ** 2 for c in range(len(total))])
        return GaussianStatistics(total, mean, squares)

    def estimate(self, stats: GaussianStatistics, inference: Inference) -> GaussianEstimate:
        extra = self._extra(stats)
        if inference == "ml":
            total = stats.total[:, None]
            column_variance = stats.pooled()[1]
            variance = np.where(total > 0, stats.squares / np.where(total > 0, total, 1.0), column_variance)
            return GaussianEstimate(stats.mean, variance + extra)
        mean, strength, shape, rate = self._posterior(stats)
        if inference == "map":
            return GaussianEstimate(mean, rate / (shape - 0.5) + extra)
        return GaussianEstimate(mean, rate * (strength + 1.0) / (shape * strength) + extra, 2.0 * shape)

    def log_likelihood(self, estimate: GaussianEstimate, X: Array) -> Array:
        blocks = [self.contributions(estimate, X[begin : begin + ROWS]).sum(axis=2) for begin in range(0, len(X), ROWS)]
        return np.concatenate(blocks)

    def contributions(self, estimate: GaussianEstimate, X: Array) -> Array:
        squares = (X[:, None, :] - estimate.mean) ** 2 / estimate.variance
        if estimate.dof is None:
            return -0.5 * (squares + np.log(estimate.variance) + LOG_2PI)
        dof = estimate.dof
        normalizer = gammaln(0.5 * (dof + 1.0)) - gammaln(0.5 * dof) - 0.5 * np.log(np.pi * dof * estimate.variance)
        return normalizer - 0.5 * (dof + 1.0) * np.log1p(squares / dof)

    def log_score(self, stats: GaussianStatistics, estimate: GaussianEstimate) -> float:
        total = stats.total[:, None]
        squares = stats.squares + total * (stats.mean - estimate.mean) ** 2
        return float(-0.5 * (squares / estimate.variance + total * (np.log(estimate.variance) + LOG_2PI)).sum())

    def log_prior(self, estimate: GaussianEstimate, stats: GaussianStatistics) -> float:
        mean, strength, shape, rate = self._prior(stats)
        precision = 1.0 / estimate.variance
        gamma = shape * np.log(rate) - gammaln(shape) + (shape - 1.0) * np.log(precision) - rate * precision
        normal = np.log(strength * precision) - LOG_2PI - strength * precision * (estimate.mean - mean) ** 2
        return float((gamma + 0.5 * normal).sum())

    def log_evidence(self, stats: GaussianStatistics) -> float:
        _, strength0, shape0, rate0 = self._prior(stats)
        _, strength, shape, rate = self._posterior(stats)
        gamma = gammaln(shape) - gammaln(shape0) + shape0 * np.log(rate0) - shape * np.log(rate)
        terms = gamma + 0.5 * np.log(strength0 / strength) - 0.5 * stats.total[:, None] * LOG_2PI
        return float(np.broadcast_to(terms, stats.mean.shape).sum())

    def _extra(self, stats: GaussianStatistics) -> float:
        largest = float(stats.pooled()[1].max(initial=0.0))
        # All columns constant: a variance of 0 has no density.
        return self.smoothing * largest if largest > 0 else self.smoothing

    def _prior(self, stats: GaussianStatistics) -> tuple[Array, Array, Array, Array]:
        if self.prior is None:
            mean, variance = stats.pooled()
            # Shape 1 and rate v / 2: the mode of the variance is v, with the weight of one row.
            return mean, np.array(1.0), np.array(1.0), 0.5 * (variance + self._extra(stats))
        mean, strength, shape, rate = (np.asarray(value, dtype=np.float64) for value in self.prior)
        return mean, strength, shape, rate

    def _posterior(self, stats: GaussianStatistics) -> tuple[Array, Array, Array, Array]:
        mean, strength, shape, rate = self._prior(stats)
        total = stats.total[:, None]
        after = strength + total
        gap = stats.mean - mean
        posterior_rate = rate + 0.5 * (stats.squares + strength * total * gap**2 / after)
        return (strength * mean + total * stats.mean) / after, after, shape + 0.5 * total, posterior_rate
