"""What a fitted mixture says of new rows: an average over draws of partitions, or over q.

Given a draw, a new row comes from cluster k with probability ``n_k / (n + alpha)`` and from a new one with
``alpha / (n + alpha)``; its density there is the posterior predictive one. Clusters of different draws have no names in
common; a cluster speaks for the clusters of the point estimate in proportion to the members that it shares with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pluri.processes.conjugate_clusters.parameters import draw_rows, log_coefficients
from pluri.processes.conjugate_clusters.records import Array, Integers, cluster_sums, log_predictive
from pluri.validation import Stored

#: Densities in memory at a time.
BLOCK = 2_000_000


@dataclass(frozen=True, eq=False)
class Predictive:
    """Clusters of several draws one after another.

    Attributes
    ----------
    likelihood : Conjugate
    statistics : array of shape (n_all, n_statistics)
    sizes : array of shape (n_all,)
        Number of rows, or expected number.
    log_weights : array of shape (n_all,)
        Probability that a new row comes from there; over all draws they sum to one.
    shares : array of shape (n_all, n_clusters)
        What part of each is in each cluster of the point estimate; zeros for a new cluster.
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "statistics": Stored("n_all", "n_statistics_"),
        "sizes": Stored("n_all", least=0),
        "log_weights": Stored("n_all", finite=False),
        "shares": Stored("n_all", None),
    }

    likelihood: Any
    statistics: Array
    sizes: Array
    log_weights: Array
    shares: Array

    def _blocks(self, data: Any) -> Iterator[tuple[slice, Array]]:
        step = max(1, BLOCK // len(self.sizes))
        for begin in range(0, data.shape[0], step):
            rows = slice(begin, begin + step)
            yield rows, self.log_weights + log_predictive(self.likelihood, data[rows], self.statistics, self.sizes)

    def log_density(self, data: Any) -> Array:
        """Log density of each row."""
        out = log_coefficients(self.likelihood, data)
        for rows, logs in self._blocks(data):
            out[rows] += np.logaddexp.reduce(logs, axis=1)
        return out

    def probabilities(self, data: Any) -> Array:
        """Probability of each cluster of the point estimate, given that the row is not of a new one."""
        known = self.shares.any(axis=1)
        out = np.empty((data.shape[0], self.shares.shape[1]))
        for rows, logs in self._blocks(data):
            there = logs[:, known]
            weights = np.exp(there - there.max(axis=1, keepdims=True)) @ self.shares[known]
            out[rows] = weights / weights.sum(axis=1, keepdims=True)
        return out

    def new_probability(self, data: Any) -> Array:
        """Probability that a row is of a cluster of which no row was seen."""
        new = ~self.shares.any(axis=1)
        out = np.zeros(data.shape[0])
        for rows, logs in self._blocks(data):
            if new.any():
                total = np.logaddexp.reduce(logs, axis=1)
                out[rows] = np.exp(np.logaddexp.reduce(logs[:, new], axis=1) - total)
        return out

    def draw(self, rng: np.random.Generator, n: int, n_tokens: int) -> tuple[Array, Integers]:
        """Draw rows, and the cluster of the point estimate that each belongs to most; -1 for a new one."""
        weights = np.exp(self.log_weights)
        chosen = rng.choice(len(weights), size=n, p=weights / weights.sum())
        new = ~self.shares.any(axis=1)
        labels = np.where(new, -1, self.shares.argmax(axis=1))[chosen]
        return draw_rows(rng, self.likelihood, self.statistics[chosen], n_tokens), labels

    def _check_fitted_state(self) -> None:
        wanted = self.likelihood.n_statistics
        if self.statistics.shape[1] != wanted:
            raise ValueError(f"statistics must have {wanted} columns, got {self.statistics.shape[1]}")


def from_draws(likelihood: Any, data: Any, draws: Integers, alphas: Array, labels: Integers) -> Predictive:
    """Average over draws, (n_draws, n_samples), with `labels` as the point estimate."""
    n_named = int(labels.max()) + 1
    parts: list[tuple[Array, ...]] = []
    n = draws.shape[1]
    for draw, alpha in zip(draws.astype(np.int64), alphas):
        n_clusters = int(draw.max()) + 1
        sums = np.concatenate([cluster_sums(likelihood, data, draw, n_clusters), likelihood.empty(1)])
        meets = np.bincount(draw * n_named + labels, minlength=n_clusters * n_named).reshape(n_clusters, n_named)
        sizes = meets.sum(axis=1).astype(np.float64)
        shares = np.vstack([meets / sizes[:, None], np.zeros(n_named)])
        logs = np.log(np.append(sizes, alpha)) - np.log((n + alpha) * len(draws))
        parts.append((sums, np.append(sizes, 0.0), logs, shares))
    return Predictive(likelihood, *(np.concatenate(each) for each in zip(*parts)))
