"""Rows in clusters with weights from a Dirichlet process, cut off at L sticks.

    z_ik ~ Bernoulli(pi_{c_i k}),   pi_lk ~ Beta(a / K, b (K - 1) / K),
    c_i ~ sum_l w_l delta_l,   w_l = V_l prod_{h<l} (1 - V_h),   V_l ~ Beta(1, alpha),   V_L = 1

Rows of a cluster share probabilities, not the atoms that they use. One update: clusters with probabilities integrated
out, exchange of labels, sticks, concentration, probabilities.

References
----------
Ishwaran and James (2001), Gibbs sampling methods for stick-breaking priors, JASA 96.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.factors.dictionaries.usage.clusters import (
    Array,
    Labels,
    Used,
    draw_labels,
    draw_probabilities,
    first_labels,
    log_memberships,
    log_usage,
    settle,
)
from pluri.priors.hyperpriors import Gamma, Hyperparameter, as_hyperparameter
from pluri.processes.beta_process import BetaProcess, LogProbabilities, draw_used
from pluri.processes.concentration import CONCENTRATION_PRIOR
from pluri.processes.stick_draws import choose_rows, draw_sticks, exchange_labels
from pluri.validation import check_count

#: Under a flat prior and with one cluster in use the concentration may come as close to zero as it likes.
LEAST_CONCENTRATION = 1e-6


@dataclass(frozen=True, eq=False)
class ClusterState:
    """Clusters of rows under a Dirichlet process.

    Attributes
    ----------
    labels : array of shape (n_samples,)
    probabilities : LogProbabilities
        Two arrays of shape (n_clusters, n_components).
    log_weights : array of shape (n_clusters,)
        Logarithms of the weights of the clusters.
    log_rest : array of shape (n_clusters - 1,)
        Logarithms of what each stick but the last leaves, ``log(1 - V_l)``.
    concentration : float
    settling : int
        Updates until clusters are left to the sampler; see `clusters.settle`.
    seen : array of shape (n_samples, n_components) or None
        How often each row used each atom, in those of these updates that its cluster is found from.
    """

    labels: Labels
    probabilities: LogProbabilities
    log_weights: Array
    log_rest: Array
    concentration: float
    settling: int = 0
    seen: Any = None


@dataclass(frozen=True)
class DirichletProcessUsage:
    """Prior of which row uses which atom: clusters of rows, as many as needed.

    Parameters
    ----------
    n_samples, n_components : int
        Shape of the binary matrix.
    a, b : float
        Numbers of the beta process of each cluster.
    n_clusters : int, default=20
        Largest number of clusters.
    concentration : float or Gamma, default=Gamma(1.0, 1.0)
        A number is fixed, a prior is learned under.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors.dictionaries.usage.dirichlet_process import DirichletProcessUsage
    >>> rng = np.random.default_rng(0)
    >>> used = (rng.random((60, 8)) < np.repeat([[0.9, 0.05], [0.05, 0.9]], [30, 30], axis=0).repeat(4, axis=1)) * 1
    >>> prior = DirichletProcessUsage(60, 8, a=4.0, n_clusters=5)
    >>> state = prior.start(used.astype(np.int8), rng)
    >>> for _ in range(20):
    ...     state = prior.resample(state, used.astype(np.int8), rng)
    >>> len(set(state.labels[:30]) & set(state.labels[30:]))
    0
    """

    n_samples: int
    n_components: int
    a: float = 10.0
    b: float = 1.0
    n_clusters: int = 20
    concentration: float | Gamma = CONCENTRATION_PRIOR
    process: BetaProcess = field(init=False, repr=False, compare=False)
    _learned: Hyperparameter = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_count(self.n_samples, "n_samples")
        check_count(self.n_clusters, "n_clusters")
        object.__setattr__(self, "process", BetaProcess(self.a, self.b, self.n_components))
        learned = as_hyperparameter(self.concentration, "concentration", CONCENTRATION_PRIOR)
        object.__setattr__(self, "_learned", learned)

    @property
    def first_concentration(self) -> float:
        """Concentration to begin with."""
        return float(self._learned.value)

    def start(self, used: Used, rng: np.random.Generator) -> ClusterState:
        """Clusters of rows that use the same atoms, and the rest drawn given them."""
        labels, settling = first_labels(rng, self.process, used, self.n_clusters)
        return self._given_labels(labels, self.first_concentration, used, rng, settling)

    def log_odds(self, state: ClusterState) -> tuple[Array, NDArray[np.intp]]:
        """Log odds of the atoms in each cluster, and the cluster of each row."""
        return state.probabilities.log_odds, state.labels

    def resample(self, state: ClusterState, used: Used, rng: np.random.Generator) -> ClusterState:
        """Draw clusters, their order, sticks, concentration and probabilities."""
        if state.settling:
            given, seen = settle(rng, self.process, used, state, self.n_clusters)
            if given is not None:
                fresh = self._given_labels(given, state.concentration, used, rng, state.settling - 1)
                return replace(fresh, seen=seen)
        labels = draw_labels(rng, self.process, used, state.labels, state.log_weights[None])
        counts = np.bincount(labels, minlength=self.n_clusters)
        order = exchange_labels(rng, state.log_weights, counts)
        left = max(state.settling - 1, 0)
        return self._given_labels(np.argsort(order)[labels], state.concentration, used, rng, left)

    def reassign(self, state: ClusterState, used: Used, rng: np.random.Generator) -> ClusterState:
        """Draw the clusters of rows, which may be others than those that the rest was learned from."""
        scores = state.log_weights + log_memberships(used, state.probabilities)
        return replace(state, labels=choose_rows(rng, scores).astype(np.intp))

    def log_joint(self, state: ClusterState, used: Used) -> float:
        """Log density of the matrix and the state, with log odds in the place of probabilities and sticks."""
        total = self.log_density_of_clusters(state.labels, state.log_weights, state.log_rest, state.concentration)
        return total + log_usage(self.process, used, state.labels, state.probabilities)

    def sample(self, n_samples: int, rng: np.random.Generator) -> tuple[ClusterState, Used]:
        """Draw a state and a matrix from the prior."""
        labels, log_weights, log_rest, alpha = self.sample_weights(n_samples, rng)
        probabilities = self.process.posterior(np.zeros((self.n_clusters, self.n_components)), 0).sample(rng)
        used = draw_used(rng, LogProbabilities(probabilities.on[labels], probabilities.off[labels]), n_samples)
        return ClusterState(labels, probabilities, log_weights, log_rest, alpha), used

    def _given_labels(
        self, labels: Labels, alpha: float, used: Used, rng: np.random.Generator, settling: int = 0
    ) -> ClusterState:
        """Sticks given the concentration, the concentration given them, and the probabilities."""
        log_weights, log_rest, alpha = self.draw_weights(labels, alpha, rng)
        probabilities = draw_probabilities(rng, self.process, used, labels, self.n_clusters)
        return ClusterState(labels, probabilities, log_weights, log_rest, alpha, settling)

    def draw_weights(self, labels: Labels, alpha: float, rng: np.random.Generator) -> tuple[Array, Array, float]:
        """Draw `log_weights` and `log_rest` of a state given clusters and concentration, then the concentration."""
        log_weights, log_rest = draw_sticks(rng, np.bincount(labels, minlength=self.n_clusters), alpha)
        prior = self._learned.prior
        if prior is not None:
            drawn = rng.gamma(prior.shape + self.n_clusters - 1) / (prior.rate - log_rest[:-1].sum())
            alpha = max(float(drawn), LEAST_CONCENTRATION)
        return log_weights, log_rest[:-1], alpha

    def sample_weights(self, n_samples: int, rng: np.random.Generator) -> tuple[Labels, Array, Array, float]:
        """Draw clusters, `log_weights`, `log_rest` and the concentration from the prior."""
        learned = self._learned
        alpha = max(learned.prior.sample(rng), LEAST_CONCENTRATION) if learned.learned else learned.value
        log_weights, log_rest = draw_sticks(rng, np.zeros(self.n_clusters), alpha)
        labels = choose_rows(rng, np.broadcast_to(log_weights, (n_samples, self.n_clusters))).astype(np.intp)
        return labels, log_weights, log_rest[:-1], alpha

    def log_density_of_clusters(self, labels: Labels, log_weights: Array, log_rest: Array, alpha: float) -> float:
        """Log density of clusters, log odds of sticks, and concentration."""
        before = np.concatenate([[0.0], np.cumsum(log_rest)])
        sticks = (log_weights - before)[:-1]
        total = float((sticks + alpha * log_rest).sum() + log_weights[labels].sum()) + len(log_rest) * math.log(alpha)
        return total + (self._learned.prior.log_density(alpha) if self._learned.learned else 0.0)
