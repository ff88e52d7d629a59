"""Posterior of a hierarchical Dirichlet process mixture by direct assignment.

The sampler keeps the cluster z_ji of every row and the weights beta of the clusters:
``p(z_ji = k) ~ (n_jk + alpha beta_k) f_k(x_ji)``, a new cluster ``alpha beta_u f_0(x_ji)``, with ``f_k`` the predictive
density of cluster k without the row. Then come the numbers of tables m given z and beta, the concentrations given
those, and ``beta ~ Dir(m_1, ..., m_K, gamma)``.

References
----------
Teh, Jordan, Beal and Blei (2006), Hierarchical Dirichlet processes, JASA 101, section 5.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from pluri.processes.concentration import draw_table_counts
from pluri.processes.dirichlet import draw_log_dirichlet
from pluri.processes.grouped_mixture import (
    Array,
    GibbsState,
    GroupedMixture,
    Integers,
    Position,
    as_position,
    choose,
)


@dataclass(frozen=True, eq=False)
class DirectAssignmentGibbs(GroupedMixture):
    """Gibbs sampler on the cluster of each row and the weights of the clusters.

    Positions are dicts: ``labels`` (n_samples,), ``weights`` (n_clusters + 1,) with the rest of the stick last,
    ``alpha`` and ``gamma``. Parameters: see `GroupedMixture`.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference import mcmc
    >>> from pluri.processes import DirectAssignmentGibbs, NormalGamma
    >>> X = np.array([[0.0], [0.2], [9.0], [0.1], [9.2], [9.1]])
    >>> kernel = DirectAssignmentGibbs(NormalGamma(1, rate=0.1, strength=0.01), X, [0, 0, 0, 1, 1, 1])
    >>> trace = mcmc.sample(kernel, kernel.sample_prior, record=kernel.record, n_draws=200, n_warmup=100,
    ...                     n_chains=1, random_state=0, warn=False)
    >>> trace["labels"].shape
    (1, 200, 6)
    """

    def labels(self, position: Position) -> Integers:
        """Cluster of each row."""
        return np.asarray(position["labels"])

    def init(self, rng: np.random.Generator, position: Position) -> GibbsState:
        """State at a position."""
        labels = np.asarray(position["labels"])
        if labels.shape != self.groups.shape or len(position["weights"]) != labels.max() + 2:
            raise ValueError("the position must have a label for each row, and one weight more than clusters")
        return GibbsState(position, self.log_joint(position))

    def step(self, rng: np.random.Generator, state: GibbsState) -> tuple[GibbsState, dict[str, float]]:
        """One sweep."""
        position = self.sweep(rng, state.position, self.data)
        return GibbsState(position, self.log_joint(position)), {"n_clusters": float(len(position["weights"]) - 1)}

    def log_joint(self, position: Position) -> float:
        """Log density of data and labels given the weights: the tables are summed over."""
        alpha = float(position["alpha"])
        weights = alpha * position["weights"]
        counts = self._counts(np.asarray(position["labels"]))
        with np.errstate(invalid="ignore"):
            terms = np.where(counts > 0, gammaln(weights[:-1] + counts) - gammaln(weights[:-1]), 0.0)
        seats = gammaln(alpha) - gammaln(alpha + self.group_sizes)
        return self.log_likelihood(position) + float(terms.sum() + seats.sum())

    def _counts(self, labels: Integers) -> Integers:
        width = int(labels.max()) + 1
        n_groups = len(self.group_sizes)
        return np.bincount(self.groups * width + labels, minlength=n_groups * width).reshape(n_groups, width)

    def sample_prior(self, rng: np.random.Generator) -> Position:
        """Draw a position from the prior."""
        seating, alpha, gamma = self._prior_seating(rng)
        tables = np.bincount(seating.dishes)
        weights = np.exp(draw_log_dirichlet(rng, np.append(tables, gamma).astype(np.float64)))
        return as_position(labels=seating.labels, weights=weights, alpha=alpha, gamma=gamma)

    def sweep(self, rng: np.random.Generator, position: Position, data: ArrayLike) -> Position:
        """Every label once, then tables, concentrations and weights."""
        X = np.asarray(data, dtype=np.float64)
        alpha, gamma = float(position["alpha"]), float(position["gamma"])
        labels, weights = self._sweep_labels(rng, X, np.array(position["labels"]), position["weights"], alpha, gamma)
        tables = draw_table_counts(rng, self._counts(labels), alpha * weights[:-1])
        alpha, gamma = self._draw_concentrations(rng, alpha, gamma, int(tables.sum()), len(weights) - 1)
        weights = np.exp(draw_log_dirichlet(rng, np.append(tables.sum(axis=0), gamma).astype(np.float64)))
        return as_position(labels=labels, weights=weights, alpha=alpha, gamma=gamma)

    def _sweep_labels(
        self, rng: np.random.Generator, X: Array, labels: Integers, old: Array, alpha: float, gamma: float
    ) -> tuple[Integers, Array]:
        n_clusters, room = len(old) - 1, len(old) + 8
        rows = self.likelihood.statistics(X)
        # One row more than clusters: that of a new one, which stays empty.
        statistics, counts, weights = (
            self.likelihood.empty(room),
            np.zeros((room, len(self.group_sizes))),
            np.zeros(room),
        )
        np.add.at(statistics, labels, rows)
        np.add.at(counts, (labels, self.groups), 1)
        weights[:n_clusters], rest = old[:-1], float(old[-1])
        for i, group in enumerate(self.groups):
            k = labels[i]
            statistics[k] -= rows[i]
            counts[k, group] -= 1
            if not counts[k].any():
                n_clusters -= 1
                rest += weights[k]
                labels[labels == n_clusters] = k
                for table in (statistics, counts, weights):
                    table[k] = table[n_clusters]
                    table[n_clusters] = 0
            with np.errstate(divide="ignore"):
                prior = np.log(np.append(counts[:n_clusters, group] + alpha * weights[:n_clusters], alpha * rest))
            k = choose(rng, prior + self.likelihood.log_predictive(statistics[: n_clusters + 1], X[i]))
            if k == n_clusters:
                piece = rng.beta(1, gamma)
                weights[k], rest = piece * rest, (1 - piece) * rest
                n_clusters += 1
                if n_clusters + 1 > len(weights):
                    statistics, counts, weights = (
                        np.concatenate([table, np.zeros_like(table)]) for table in (statistics, counts, weights)
                    )
            labels[i] = k
            statistics[k] += rows[i]
            counts[k, group] += 1
        return labels, np.append(weights[:n_clusters], rest)
