"""The data as the algorithms read them: statistics, which entries are missing, weights of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pluri.factors.exponential_family.families import Family

Array = NDArray[np.float64]

#: Entries that are worked on at a time: a few megabytes, which stay in the processor's cache.
BLOCK_ENTRIES = 400_000


@dataclass(frozen=True)
class Observations:
    """Data of one family.

    Attributes
    ----------
    statistic : (n_samples, n_features): t(x), zero where missing
    known : (n_samples, n_features) of zeros and ones, or None if nothing is missing
    base : (n_samples,): sum of h(x) over the entries that are known
    weight : (n_samples,): weights of the rows
    family : the distribution of an entry
    """

    statistic: Array
    known: Array | None
    base: Array
    weight: Array
    family: Family

    @property
    def n_samples(self) -> int:
        return self.statistic.shape[0]

    @property
    def n_features(self) -> int:
        return self.statistic.shape[1]

    @property
    def total_weight(self) -> float:
        return float(self.weight.sum())

    def blocks(self) -> Iterator[slice]:
        """Cut the rows so that a few temporary arrays of a block fit the cache."""
        size = max(1, BLOCK_ENTRIES // max(1, self.n_features))
        for start in range(0, self.n_samples, size):
            yield slice(start, min(start + size, self.n_samples))

    def mask(self, rows: slice | NDArray[np.intp]) -> Array | None:
        """Zeros and ones of some rows, or None."""
        return None if self.known is None else self.known[rows]

    def counts(self, weight: Array | None = None) -> Array:
        """Weight of the rows in which each feature is known, (n_features,)."""
        weight = self.weight if weight is None else weight
        if self.known is None:
            return np.full(self.n_features, float(weight.sum()))
        return np.asarray(weight @ self.known)

    def means(self, weight: Array | None = None) -> Array:
        """Mean statistic of each feature, inside the range that the family allows."""
        weight = self.weight if weight is None else weight
        count = self.counts(weight)
        mean = self.family.smoothed(weight @ self.statistic, count)
        neutral = self.family.derivatives(np.zeros(self.n_features))[0]
        return np.where(count > 0, mean, neutral)


def observe(X: Array, family: Family, sample_weight: Array | None = None) -> Observations:
    """Prepare a matrix; NaN marks what is missing.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    family : Family
    sample_weight : array of shape (n_samples,), optional

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors.exponential_family import as_family
    >>> from pluri.factors.exponential_family.observations import observe
    >>> data = observe(np.array([[1.0, np.nan], [0.0, 1.0]]), as_family("bernoulli"))
    >>> data.known, data.counts()
    (array([[1., 0.],
            [1., 1.]]), array([2., 1.]))
    """
    family.check(X)
    missing = np.isnan(X)
    some = bool(missing.any())
    filled = np.where(missing, 0.0, X) if some else X
    base = family.base_measure(filled)
    if some:
        base = np.where(missing, 0.0, base)
    statistic = family.statistic(filled)
    if some:
        statistic = np.where(missing, 0.0, statistic)
    weight = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    known = (~missing).astype(np.float64) if some else None
    return Observations(np.ascontiguousarray(statistic), known, base.sum(axis=1), weight, family)


def explained_deviance(data: Observations, weights: Array, intercept: Array, latent: Array) -> Array:
    """Share of the deviance that each column explains at the given latent variables, on top of those before it."""
    family = data.family
    null = family.natural(data.means())
    unit = float(family.statistic(np.ones(1))[0])
    saturated = family.saturated(data.statistic / unit)
    totals = np.zeros(weights.shape[1] + 2)
    for rows in data.blocks():
        known = data.mask(rows)
        for width in range(-1, weights.shape[1] + 1):
            theta = null if width < 0 else latent[rows, :width] @ weights[:, :width].T + intercept
            theta = np.broadcast_to(theta, data.statistic[rows].shape)
            gap = saturated[rows] - data.statistic[rows] * theta + family.log_partition(theta)
            totals[width + 1] += data.weight[rows] @ (gap if known is None else gap * known).sum(axis=1)
    deviances = totals[1:]
    deviances[0] = totals[0]
    return -np.diff(deviances) / max(totals[0], 1e-300)
