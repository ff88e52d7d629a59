"""Blocked Gibbs sampling of a Dirichlet process mixture: all rows at once, exact without a truncation.

Given the partition, the weights of its clusters and of the rest of the stick are Dirichlet(n_1, ..., n_K, alpha), and
parameters come from their posteriors. A level ``u_i`` uniform below the weight of the cluster of row i leaves finitely
many clusters that the row may go to: those with a larger weight. The rest of the stick is broken, with parameters from
the prior, until all that are needed are there. Given these, rows are independent: a matrix product instead of a loop,
at the price of smaller steps than those of `CollapsedGibbs`.

References
----------
Walker (2007), Sampling the Dirichlet mixture model with slices, Communications in Statistics 36.
Kalli, Griffin and Walker (2011), Slice sampling mixture models, Statistics and Computing 21.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pluri.mixtures.dirichlet_process.partition_posterior import PartitionPosterior, Position
from pluri.mixtures.dirichlet_process.seating import Prepared, Seating, in_order
from pluri.processes.conjugate_clusters.parameters import draw_parameters, log_density
from pluri.processes.conjugate_clusters.records import Array, Integers, cluster_sums
from pluri.processes.dirichlet import draw_log_dirichlet
from pluri.validation import check_count

#: Rows whose densities under all clusters are in memory at a time.
BLOCK = 8192


@dataclass(frozen=True, eq=False)
class SliceGibbs(PartitionPosterior):
    """Blocked Gibbs sampler with slices.

    Parameters
    ----------
    likelihood, data, concentration
        See `PartitionPosterior`.
    n_proposals : int, default=0
        Proposals to split or merge in each sweep, as in `CollapsedGibbs`.
    n_scans : int, default=2
        Restricted Gibbs scans of each.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference import mcmc
    >>> from pluri.mixtures.dirichlet_process import SliceGibbs
    >>> from pluri.processes import NormalGamma
    >>> X = np.array([[0.0], [0.2], [9.0], [0.1], [9.2], [9.1]])
    >>> kernel = SliceGibbs(NormalGamma(1, rate=0.1, strength=0.01), X)
    >>> trace = mcmc.sample(kernel, kernel.sample_start, record=kernel.record, n_draws=200, n_warmup=20,
    ...                     n_chains=1, random_state=0, warn=False)
    >>> int(np.median(trace["n_clusters"]))
    2
    """

    n_proposals: int = 0
    n_scans: int = 2

    def __post_init__(self) -> None:
        check_count(self.n_proposals, "n_proposals", 0)
        check_count(self.n_scans, "n_scans", 0)
        super().__post_init__()

    def _sweep(
        self, rng: np.random.Generator, position: Position, prepared: Prepared
    ) -> tuple[Position, dict[str, float]]:
        labels = np.asarray(position["labels"])
        alpha = self._draw_alpha(rng, float(position["alpha"]), labels)
        accepted = 0
        if self.n_proposals:
            seating = Seating(prepared, labels)
            accepted = sum(seating.split_or_merge(rng, alpha, self.n_scans) for _ in range(self.n_proposals))
            labels = seating.labels
        log_weights, levels = _weights_and_levels(rng, labels, alpha)
        n_clusters = int(labels.max()) + 1
        sums = np.concatenate([
            cluster_sums(self.likelihood, prepared.data, labels, n_clusters),
            self.likelihood.empty(len(log_weights) - n_clusters),
        ])  # fmt: skip
        parameters = draw_parameters(rng, self.likelihood, sums)
        uniforms = rng.random(len(labels))
        drawn = np.empty_like(labels)
        for begin in range(0, len(labels), BLOCK):
            block = slice(begin, begin + BLOCK)
            logs = log_density(self.likelihood, parameters, prepared.data[block])
            logs[log_weights <= levels[block, None]] = -np.inf
            weights = np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)
            drawn[block] = (weights <= uniforms[block, None] * weights[:, -1:]).sum(axis=1)
        info = {"n_sticks": float(len(log_weights)), "split_merge": accepted / max(self.n_proposals, 1)}
        return {"labels": in_order(drawn), "alpha": np.asarray(alpha)}, info


def _weights_and_levels(rng: np.random.Generator, labels: Integers, alpha: float) -> tuple[Array, Array]:
    """Logs of the weights of the clusters and of new ones above the lowest level, and of the level of each row."""
    sizes = np.bincount(labels).astype(np.float64)
    log_weights = draw_log_dirichlet(rng, np.append(sizes, alpha))
    log_weights, log_rest = log_weights[:-1], float(log_weights[-1])
    levels = log_weights[labels] + np.log1p(-rng.random(len(labels)))
    lowest = float(levels.min())
    more: list[float] = []
    while log_rest > lowest:  # what is left could still hold a piece above the level
        log_keep = np.log1p(-rng.random()) / alpha  # of 1 - Beta(1, alpha)
        more.append(log_rest + np.log(-np.expm1(log_keep)))
        log_rest += log_keep
    return np.append(log_weights, more), levels
