"""Rows of a cluster use exactly the same atoms: patterns in the place of probabilities.

    z_i = z*_{c_i},   z*_lk ~ Bernoulli(pi_k),   pi_k ~ Beta(a / K, b (K - 1) / K),   c_i ~ sum_l w_l delta_l

with weights of a Dirichlet process. Who uses what then depends on the data themselves, not on a matrix alone. One
update, with the weights s of the rows integrated out wherever something else is drawn:

1. the cluster of each row: ``w_l N(x_i | 0, I / g_i + D_l' D_l / h)``, D_l the atoms of cluster l; then s given it;
2. each atom of each cluster: log odds ``logit pi_k + sum_{i in l} (log(h v_i) + m_i^2 / v_i) / 2`` with
   ``v_i = 1 / (h + g_i d_k' d_k)``, ``m_i = g_i v_i d_k' r_i``, r_i the row without all other atoms; then s of it;
3. the rest as without patterns (`pluri.factors.dictionaries.gibbs`).

Rows must be complete.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from pluri.factors.dictionaries.gibbs import DictionaryGibbs
from pluri.factors.dictionaries.records import DictionaryState, Floats, Rows
from pluri.factors.dictionaries.usage.clusters import Array, Labels, Used, start_labels
from pluri.factors.dictionaries.usage.dirichlet_process import DirichletProcessUsage
from pluri.priors.hyperpriors import Gamma
from pluri.processes.beta_process import BetaProcess, LogProbabilities, draw_used
from pluri.processes.concentration import CONCENTRATION_PRIOR
from pluri.processes.stick_draws import choose_rows, exchange_labels


@dataclass(frozen=True, eq=False)
class PatternState:
    """Clusters of rows with one pattern each.

    Attributes
    ----------
    labels : array of shape (n_samples,)
    patterns : array of int8 of shape (n_clusters, n_components)
    probabilities : LogProbabilities
        Two arrays of shape (n_components,).
    log_weights, log_rest, concentration
        As in `ClusterState`.
    """

    labels: Labels
    patterns: Used
    probabilities: LogProbabilities
    log_weights: Array
    log_rest: Array
    concentration: float


@dataclass(frozen=True)
class PatternUsage:
    """Prior of which row uses which atom: clusters of rows that use the same ones.

    Parameters
    ----------
    n_samples, n_components : int
    a, b : float
        Numbers of the beta process that patterns are drawn from.
    n_clusters : int, default=20
        Largest number of clusters.
    concentration : float or Gamma, default=Gamma(1.0, 1.0)
    """

    n_samples: int
    n_components: int
    a: float = 10.0
    b: float = 1.0
    n_clusters: int = 20
    concentration: float | Gamma = CONCENTRATION_PRIOR
    clusters: DirichletProcessUsage = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        clusters = DirichletProcessUsage(
            self.n_samples, self.n_components, self.a, self.b, self.n_clusters, self.concentration
        )
        object.__setattr__(self, "clusters", clusters)

    @property
    def process(self) -> BetaProcess:
        """The beta process that patterns are drawn from."""
        return self.clusters.process

    def start(self, used: Used, rng: np.random.Generator) -> PatternState:
        """Clusters of rows that use the same atoms, with the atoms that most of their rows use."""
        labels = start_labels(rng, self.process, used, self.n_clusters)
        probabilities = self.process.sample_probabilities(rng)
        patterns = draw_used(rng, probabilities, self.n_clusters)
        for cluster in np.unique(labels):
            patterns[cluster] = used[labels == cluster].mean(axis=0) > 0.5
        return self._given_clusters(labels, patterns, self.clusters.first_concentration, rng)

    def log_odds(self, state: PatternState) -> tuple[Array, NDArray[np.intp]]:
        """Infinite: a pattern leaves no choice. And the cluster of each row."""
        return np.where(state.patterns == 1, np.inf, -np.inf), state.labels

    def resample(self, state: PatternState, used: Used, rng: np.random.Generator) -> PatternState:
        """Draw the order of the clusters, weights, concentration and probabilities; the rest needs data."""
        order = exchange_labels(rng, state.log_weights, np.bincount(state.labels, minlength=self.n_clusters))
        return self._given_clusters(np.argsort(order)[state.labels], state.patterns[order], state.concentration, rng)

    def log_joint(self, state: PatternState, used: Used) -> float:
        """Log density of the state, with log odds in the place of probabilities and sticks."""
        total = self.clusters.log_density_of_clusters(
            state.labels, state.log_weights, state.log_rest, state.concentration
        )
        after, logs = self.process.posterior(state.patterns.sum(axis=0), self.n_clusters), state.probabilities
        total += float((after.first * logs.on + after.second * logs.off).sum())
        return total - self.n_components * float(betaln(*self.process.shapes))

    def sample(self, n_samples: int, rng: np.random.Generator) -> tuple[PatternState, Used]:
        """Draw a state and a matrix from the prior."""
        labels, log_weights, log_rest, alpha = self.clusters.sample_weights(n_samples, rng)
        probabilities = self.process.sample_probabilities(rng)
        patterns = draw_used(rng, probabilities, self.n_clusters)
        return PatternState(labels, patterns, probabilities, log_weights, log_rest, alpha), patterns[labels]

    def _given_clusters(self, labels: Labels, patterns: Used, alpha: float, rng: np.random.Generator) -> PatternState:
        log_weights, log_rest, alpha = self.clusters.draw_weights(labels, alpha, rng)
        probabilities = self.process.posterior(patterns.sum(axis=0), self.n_clusters).sample(rng)
        return PatternState(labels, patterns, probabilities, log_weights, log_rest, alpha)


@dataclass(frozen=True, eq=False)
class PatternGibbs(DictionaryGibbs):
    """Gibbs sampler of a dictionary whose usage has a `PatternUsage` prior; rows must be complete."""

    def __post_init__(self) -> None:
        if not isinstance(self.usage, PatternUsage):
            raise ValueError(f"usage must be a PatternUsage, got {type(self.usage).__name__}")
        if self.rows.observed is not None:
            raise ValueError("X must have no missing value for share='pattern', got NaN")

    def _sweep(
        self, rng: np.random.Generator, position: DictionaryState, rows: Rows
    ) -> tuple[DictionaryState, Floats, Array]:
        state: PatternState = position.usage
        values, atoms = rows.values.astype(np.float64), position.components.astype(np.float64)
        noise, precision = position.noise_precision[rows.noise_group], float(position.weight_precision)
        patterns = [PatternPosterior.of(atoms[pattern == 1], values, noise, precision) for pattern in state.patterns]
        scores = state.log_weights + np.column_stack([each.log_evidence for each in patterns])
        labels = choose_rows(rng, scores).astype(np.intp)
        weights = np.zeros(position.weights.shape)
        found = state.patterns.copy()
        gram, correlations = atoms @ atoms.T, values @ atoms.T
        for l, posterior in enumerate(patterns):
            mine = np.flatnonzero(labels == l)
            codes = np.zeros((len(mine), len(atoms)))
            codes[:, found[l] == 1] = posterior.draw(rng, mine)
            left = correlations[mine] - codes @ gram
            found[l] = draw_pattern(rng, found[l], codes, left, gram, state.probabilities, noise[mine], precision)
            weights[mine] = codes
        moved = replace(
            position, weights=weights.astype(position.weights.dtype), used=found[labels],
            usage=replace(state, labels=labels, patterns=found),
        )  # fmt: skip
        return super()._sweep(rng, moved, rows)


@dataclass(frozen=True, eq=False)
class PatternPosterior:
    """Rows under one pattern, weights integrated out, and the weights given it.

    In the basis of eigenvectors u_j of the products of its atoms, with eigenvalues e_j, the weights of row i are
    independent: N(g_i u_j' D x_i / (h + g_i e_j), 1 / (h + g_i e_j)).

    Attributes
    ----------
    log_evidence : array of shape (n_samples,)
        Log density of each row, without what is the same for all patterns.
    basis : array of shape (n_atoms, n_atoms)
    means, variances : array of shape (n_samples, n_atoms)
    """

    log_evidence: Array
    basis: Array
    means: Array
    variances: Array

    @classmethod
    def of(cls, atoms: Array, values: Array, noise: Array, precision: float) -> PatternPosterior:
        """The posterior for the atoms of a pattern, (n_atoms, n_features)."""
        lengths, basis = np.linalg.eigh(atoms @ atoms.T)
        products = values @ (atoms.T @ basis)
        variances = 1.0 / (precision + np.outer(noise, np.maximum(lengths, 0.0)))
        means = noise[:, None] * products * variances
        log_evidence = 0.5 * (np.log(precision * variances) + means**2 / variances).sum(axis=1)
        return cls(log_evidence, basis, means, variances)

    def draw(self, rng: np.random.Generator, rows: NDArray[np.intp]) -> Array:
        """Draw the weights of some rows: (len(rows), n_atoms)."""
        means, spread = self.means[rows], np.sqrt(self.variances[rows])
        return np.asarray((means + spread * rng.standard_normal(means.shape)) @ self.basis.T)


def draw_pattern(
    rng: np.random.Generator,
    pattern: Used,
    codes: Array,
    left: Array,
    gram: Array,
    probabilities: LogProbabilities,
    noise: Array,
    precision: float,
) -> Used:
    """Draw the atoms of a cluster one after the other; changes `codes` and `left`, which is D r for the residuals r."""
    pattern, log_odds = pattern.copy(), probabilities.log_odds
    thresholds = rng.logistic(size=len(pattern))
    for k in range(len(pattern)):
        old = codes[:, k].copy()
        b = left[:, k] + old * gram[k, k]
        v = 1.0 / (precision + noise * gram[k, k])
        m = noise * v * b
        pattern[k] = thresholds[k] < log_odds[k] + 0.5 * float((np.log(precision * v) + m**2 / v).sum())
        new = m + np.sqrt(v) * rng.standard_normal(len(m)) if pattern[k] else np.zeros(len(m))
        codes[:, k] = new
        if pattern[k] or old.any():
            left -= np.outer(new - old, gram[k])
    return pattern
