r"""What is believed of the usage of atoms: clusters of rows, each with its own probabilities of the atoms.

Row i belongs to cluster c_i with probability w_l, the weights of a stick-breaking process of L sticks, and uses atom k
with probability ``pi_lk ~ Beta(a / K, b (K - 1) / K)``. The factors of q are ``q(c_i = l) = m_il``,
``q(pi_lk) = Beta(tau_lk)``, ``q(V_l) = Beta(sigma_l)``, ``q(alpha) = Gamma``. With t_ik = q(z_ik = 1),

    tau_lk    = (a/K + sum_i m_il t_ik,  b (K-1)/K + sum_i m_il (1 - t_ik))
    sigma_l   = (1 + sum_i m_il,  E alpha + sum_i sum_{h>l} m_ih)                  l < L, V_L = 1
    alpha     ~ Gamma(shape + L - 1,  rate - sum_l E log(1 - V_l))
    log m_il  = E log w_l + sum_k [t_ik E log pi_lk + (1 - t_ik) E log(1 - pi_lk)] + const.

One cluster is the beta process. The published updates of this model call the q of pi and V gamma distributions and turn
a sign in that of V round; these are the ones that raise the bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, digamma, logsumexp, xlogy

from pluri.components.k_means import k_means
from pluri.metrics.distribution_information import beta_kl, gamma_kl
from pluri.priors.hyperpriors import Gamma, Hyperparameter

Array = NDArray[np.float64]

#: Prior of the concentration of clusters, which says next to nothing.
CONCENTRATION_PRIOR = Gamma(1e-6, 1e-6)
#: Sweeps without clusters before k-means looks for them.
SWEEPS_WITHOUT_CLUSTERS = 15
#: Responsibility of the cluster that k-means gives a row; the others share the rest.
FIRST_RESPONSIBILITY = 0.99
#: The concentration is kept above this: with one cluster in use it falls towards zero, where logarithms end.
SMALLEST_CONCENTRATION = 1e-6


@dataclass(frozen=True, eq=False)
class UsageBeliefs:
    """Parameters of q.

    Attributes
    ----------
    responsibilities : (n_samples, n_clusters): m
    probabilities : (n_clusters, n_components, 2): tau
    sticks : (n_clusters - 1, 2): sigma
    concentration : (2,): shape and rate; the value and zero if it is fixed
    """

    responsibilities: Array
    probabilities: Array
    sticks: Array
    concentration: Array

    @property
    def expected_probabilities(self) -> Array:
        """(n_clusters, n_components) means of the probabilities of the atoms."""
        return np.asarray(self.probabilities[..., 0] / self.probabilities.sum(axis=-1))

    @property
    def expected_log_odds(self) -> Array:
        """(n_clusters, n_components) ``E log pi - E log(1 - pi)``."""
        return np.asarray(digamma(self.probabilities[..., 0]) - digamma(self.probabilities[..., 1]))

    @property
    def expected_logs(self) -> tuple[Array, Array]:
        """(n_clusters, n_components) ``E log pi`` and ``E log(1 - pi)``."""
        total = digamma(self.probabilities.sum(axis=-1))
        return digamma(self.probabilities[..., 0]) - total, digamma(self.probabilities[..., 1]) - total

    @property
    def log_odds(self) -> Array:
        """(n_samples, n_components) prior log odds of each entry, averaged over the clusters that a row may be of."""
        return np.asarray(self.responsibilities @ self.expected_log_odds)

    @property
    def labels(self) -> NDArray[np.intp]:
        """(n_samples,) the cluster that each row most probably is of."""
        return np.asarray(self.responsibilities.argmax(axis=1))


@dataclass(frozen=True)
class ClusteredUsage:
    """Updates of `UsageBeliefs` and its part of the bound.

    Parameters
    ----------
    a, b : float
        Of the beta process.
    n_clusters : int
        Truncation; 1 is the beta process without clusters.
    concentration : Hyperparameter
        Of the sticks: fixed, or learned under a gamma prior.
    """

    a: float = 10.0
    b: float = 1.0
    n_clusters: int = 1
    concentration: Hyperparameter = Hyperparameter(1.0, CONCENTRATION_PRIOR)

    def start(self, used: Array, responsibilities: Array | None = None) -> UsageBeliefs:
        """Beliefs given probabilities of use (n_samples, n_components), and of the clusters."""
        if responsibilities is None:
            responsibilities = np.full((len(used), self.n_clusters), 1 / self.n_clusters)
        value, prior = self.concentration
        alpha = np.array([value, 0.0] if prior is None else [prior.shape, prior.shape / value])
        empty = np.ones((self.n_clusters, used.shape[1], 2))
        q = UsageBeliefs(responsibilities, empty, np.ones((self.n_clusters - 1, 2)), alpha)
        return self.update_sticks(self.update_probabilities(q, used))

    def update(self, q: UsageBeliefs, used: Array) -> UsageBeliefs:
        """All factors, one after the other."""
        q = self.update_sticks(self.update_probabilities(q, used))
        return self.update_responsibilities(self.update_concentration(q), used)

    def update_probabilities(self, q: UsageBeliefs, used: Array) -> UsageBeliefs:
        """Probabilities of the atoms in each cluster."""
        size, m = used.shape[1], q.responsibilities
        on = m.T @ used
        first = self.a / size + on
        second = self.prior_off(size) + np.maximum(m.sum(axis=0)[:, None] - on, 0.0)
        return replace(q, probabilities=np.stack([first, second], axis=-1))

    def update_sticks(self, q: UsageBeliefs) -> UsageBeliefs:
        """Sticks, given the expected sizes of the clusters."""
        sizes = q.responsibilities.sum(axis=0)
        beyond = np.cumsum(sizes[::-1])[::-1][1:]
        return replace(q, sticks=np.column_stack([1 + sizes[:-1], expected(q.concentration) + beyond]))

    def update_concentration(self, q: UsageBeliefs) -> UsageBeliefs:
        """Concentration, if it is learned."""
        prior = self.concentration.prior
        if prior is None or self.n_clusters == 1:
            return q
        shape, rate = prior.shape + len(q.sticks), prior.rate - expected_logs(q.sticks)[1].sum()
        return replace(q, concentration=np.array([shape, min(rate, shape / SMALLEST_CONCENTRATION)]))

    def update_responsibilities(self, q: UsageBeliefs, used: Array) -> UsageBeliefs:
        """Clusters of the rows."""
        if self.n_clusters == 1:
            return q
        scores = self._scores(q, used)
        return replace(q, responsibilities=np.exp(scores - logsumexp(scores, axis=1, keepdims=True)))

    def bound(self, q: UsageBeliefs, used: Array) -> float:
        """Terms of the bound: E log p(z, c, pi, V, alpha) - E log q(c, pi, V, alpha)."""
        m = q.responsibilities
        total = float((m * self._scores(q, used)).sum() - xlogy(m, m).sum())
        size = used.shape[1]
        divergence = beta_kl(q.probabilities[..., 0], q.probabilities[..., 1], self.a / size, self.prior_off(size))
        total -= float(np.sum(divergence))
        if self.n_clusters == 1:
            return total
        log_stick, log_rest = expected_logs(q.sticks)
        log_alpha, prior = np.log(q.concentration[0]), self.concentration.prior
        if prior is not None:
            log_alpha = digamma(q.concentration[0]) - np.log(q.concentration[1])
            total -= float(gamma_kl(q.concentration[0], q.concentration[1], prior.shape, prior.rate))
        of_q = (q.sticks[:, 0] - 1) * log_stick + (q.sticks[:, 1] - 1) * log_rest - betaln(*q.sticks.T)
        return total + float((log_alpha + (expected(q.concentration) - 1) * log_rest - of_q).sum())

    def _scores(self, q: UsageBeliefs, used: Array) -> Array:
        """(n_samples, n_clusters) ``E log w_l + E log p(z_i | pi_l)``."""
        on, off = q.expected_logs
        log_stick, log_rest = expected_logs(q.sticks)
        log_weights = np.append(log_stick, 0.0) + np.append(0.0, np.cumsum(log_rest))
        return np.asarray(used @ (on - off).T + off.sum(axis=1) + log_weights)

    def prior_off(self, n_components: int) -> float:
        """Second parameter of the beta prior; with a single atom b (K - 1) / K would be zero, and b stands for it."""
        return self.b * (n_components - 1) / n_components if n_components > 1 else self.b


def expected(concentration: Array) -> float:
    """Mean of q of the concentration."""
    return float(concentration[0] / concentration[1] if concentration[1] > 0 else concentration[0])


def expected_logs(sticks: Array) -> tuple[Array, Array]:
    """``E log V_l`` and ``E log(1 - V_l)``."""
    both = digamma(sticks.sum(axis=1))
    return digamma(sticks[:, 0]) - both, digamma(sticks[:, 1]) - both


def first_responsibilities(used: Array, n_clusters: int, rng: np.random.Generator) -> Array:
    """Responsibilities to start from, (n_samples, n_clusters): k-means on the probabilities of use, largest first.

    From equal responsibilities all rows fall into one cluster, and sticks are ordered by size.
    """
    labels, _ = k_means(np.asarray(used, dtype=np.float64), None, min(n_clusters, len(used)), rng, n_init=1)
    order = np.argsort(-np.bincount(labels, minlength=n_clusters), kind="stable")
    others = (1 - FIRST_RESPONSIBILITY) / max(n_clusters - 1, 1)
    return np.where(labels[:, None] == order, FIRST_RESPONSIBILITY, others)
