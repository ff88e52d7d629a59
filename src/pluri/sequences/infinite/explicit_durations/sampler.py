"""Blocked sampling of an infinite hidden semi-Markov model cut to a finite number of states.

States last as long as their durations say (`pluri.sequences.infinite.explicit_durations.durations`), and the next one
is another: state j has the row ``pi_j ~ Dirichlet(c beta)`` over L states, of which the diagonal is left out, so that
the others are ``Dirichlet(c beta_k)``, k other than j. With n_jk segments of k after one of j, and n_j. in all,

``p(z | beta) = Gamma(c) / Gamma(c + n_0.) prod_jk Gamma(c beta_k + n_jk) / Gamma(c beta_k)
prod_j Gamma(c (1 - beta_j)) / Gamma(c (1 - beta_j) + n_j.)``.

Tables make ``beta_k^(m_jk)`` of the second part, as in a hierarchical Dirichlet process. For the third, with
``x_j ~ Beta(c (1 - beta_j), n_j.)`` it becomes ``x_j^(c (1 - beta_j))``, and the Poisson variable
``q_j ~ Poisson(-c beta_j log x_j)`` makes ``beta_j^(q_j)`` of what depends on beta_j. So ``beta ~ Dirichlet(gamma / L +
m_.k + q_k)``. This is what drawing the transitions of each state to itself, which nobody has seen, would do (Johnson
and Willsky), without their number, whose mean need not be finite. c is drawn given beta, by slices.

References
----------
Johnson and Willsky (2013), Bayesian nonparametric hidden semi-Markov models, JMLR 14.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from pluri.priors.hyperpriors import Gamma
from pluri.processes.concentration import draw_concentration, draw_table_counts
from pluri.processes.stick_draws import log_gamma_draws
from pluri.sequences.infinite.explicit_durations.durations import DurationModel, segment_counts, segments_of
from pluri.sequences.infinite.explicit_durations.segments import draw_segments, segment_law
from pluri.sequences.infinite.merging import N_PAIRS
from pluri.sequences.infinite.observations import Array, Integers
from pluri.sequences.infinite.state_posterior import WEIGHT_STEPS, Position, as_position, hyper_of, in_order
from pluri.sequences.infinite.transitions import (
    SMALLEST,
    Hyperparameters,
    HyperPriors,
    draw_weights,
)
from pluri.sequences.infinite.weak_limit import WeakLimitSampler
from pluri.sequences.sampled.collapsed_gibbs import slice_sample

#: Customers whose tables are drawn one by one.
MANY_CUSTOMERS = 100_000


@dataclass(frozen=True, eq=False)
class SemiMarkovSampler(WeakLimitSampler):
    """Kernel of the blocked sampler with durations; other parameters as in `WeakLimitSampler`.

    Its positions have ``durations`` too, the parameters (max_components, n) of their distribution.

    Parameters
    ----------
    durations : DurationModel
    """

    durations: DurationModel = None  # type: ignore[assignment]

    def _sweep(self, rng: np.random.Generator, position: Position, prepared: Any) -> tuple[Position, dict[str, float]]:
        observations = self._completed(prepared, position)
        labels, width = np.asarray(position["labels"]), self.max_components
        counts = segment_counts(labels, self.offsets, width)
        lasting = self.durations.draw(rng, np.asarray(position["durations"]), segments_of(labels, self.offsets))
        weights, hyper = draw_segment_weights(
            rng, counts, np.asarray(position["weights"]), hyper_of(position), self.priors
        )
        rows = draw_segment_rows(rng, counts, hyper.concentration, weights)
        law = segment_law(rows[-1], rows[:-1], self.durations.tables(lasting, int(np.diff(self.offsets).max())))
        parameters = observations.draw(rng, observations.sums(labels, width))
        labels = draw_segments(rng, law, observations.log_density(parameters), self.offsets)
        filled = observations.draw_filled(rng, parameters, labels)
        drawn = {**as_position(labels, weights, hyper, filled), "durations": lasting}
        return drawn, {"capped": float(len(np.unique(labels)) >= width)}

    def _merged(self, position: Position) -> Position:
        labels, used = in_order(np.asarray(position["labels"]))
        if len(used) < 2:
            return position
        observations = self._completed(self._prepared, position)
        sums, sizes = observations.sums(labels, len(used)), np.bincount(labels)
        first, second = np.triu_indices(len(used), 1)
        gains = np.zeros(len(first))
        for part, own in zip(observations.parts, sums):
            alone = part.likelihood.log_marginal(own)
            gains += part.likelihood.log_marginal(own[first] + own[second]) - alone[first] - alone[second]
        best, value = position, self.log_joint(position)
        for at in np.argsort(-gains, kind="stable")[:N_PAIRS]:
            a, b = sorted((first[at], second[at]), key=lambda k: -sizes[k])
            weights = np.array(position["weights"])
            weights[used[a]] += weights[used[b]]
            weights[used[b]] = SMALLEST
            together = np.where(position["labels"] == used[b], used[a], position["labels"])
            merged = {**position, "labels": together, "weights": weights}
            if self.log_joint(merged) > value:
                best, value = merged, self.log_joint(merged)
        return best

    def draw_of_rows(self, rng: np.random.Generator, labels: Integers, hyper: Hyperparameters) -> dict[str, Array]:
        """``rows`` (K + 1, K) of the states that are there, see `StatePosterior`; and their ``durations``, (K, n)."""
        width, used = self.max_components, int(labels.max()) + 1
        counts, segments = segment_counts(labels, self.offsets, width), segments_of(labels, self.offsets)
        weights, lasting = np.full(width, 1.0 / width), self.durations.draw_prior(rng, used)
        for _ in range(WEIGHT_STEPS):
            weights, _ = draw_segment_weights(rng, counts, weights, hyper, HyperPriors())
            lasting = self.durations.draw(rng, lasting, segments)
        rows = hyper.concentration * weights[:used] + counts[[*range(used), width], :used]
        return {"rows": rows, "durations": lasting}

    def log_joint(self, position: Position, data: Array | None = None) -> float:
        """Log density of states and observations given the weights, the hyper-parameters and the durations' own."""
        labels = np.asarray(position["labels"])
        counts = segment_counts(labels, self.offsets, self.max_components)
        path = log_segment_path(counts, hyper_of(position).concentration, np.asarray(position["weights"]))
        lasting = self.durations.log_density(np.asarray(position["durations"]), segments_of(labels, self.offsets))
        return path + lasting + self.log_likelihood(position, data)

    def sample_prior(self, rng: np.random.Generator) -> Position:
        """Draw a position from the prior."""
        hyper, width = self.priors.sample(rng, self.hyper), self.max_components
        weights = draw_weights(rng, np.full(width, hyper.weight_concentration / width))
        rows = draw_segment_rows(rng, np.zeros((width + 1, width), dtype=np.int64), hyper.concentration, weights)
        lasting = self.durations.draw_prior(rng, width)
        law = segment_law(rows[-1], rows[:-1], self.durations.tables(lasting, int(np.diff(self.offsets).max())))
        labels = draw_segments(rng, law, np.zeros((int(self.offsets[-1]), width)), self.offsets)
        return {**as_position(labels, weights, hyper), "durations": lasting}

    def sample_start(self, rng: np.random.Generator, n_states: int = 10, *, by_blocks: bool = False) -> Position:
        """Where a chain may begin: see `StatePosterior`."""
        position = super().sample_start(rng, n_states, by_blocks=by_blocks)
        lasting = self.durations.draw_prior(rng, self.max_components)
        for _ in range(5):
            lasting = self.durations.draw(rng, lasting, segments_of(np.asarray(position["labels"]), self.offsets))
        return {**position, "durations": lasting}


def draw_segment_rows(rng: np.random.Generator, counts: Integers, concentration: float, weights: Array) -> Array:
    """Rows of probabilities of the next state, (K + 1, K), with zeros on the diagonal; that of first states last."""
    K, rows = len(weights), np.zeros((len(weights) + 1, len(weights)))
    parameters: Array = np.maximum(concentration * weights, SMALLEST) + counts
    if K > 1:
        rows[:-1][_off_diagonal(K)] = draw_weights(rng, parameters[:-1][_off_diagonal(K)].reshape(K, K - 1)).ravel()
    rows[-1] = draw_weights(rng, parameters[-1])
    return rows


def _off_diagonal(n_states: int) -> NDArray[np.bool_]:
    return ~np.eye(n_states, dtype=bool)


def _of_others(weights: Array) -> Array:
    """Sum of the weights of the other states: (K,)."""
    return np.asarray(np.maximum(_off_diagonal(len(weights)) @ weights, SMALLEST))


def draw_segment_weights(
    rng: np.random.Generator, counts: Integers, weights: Array, hyper: Hyperparameters, priors: HyperPriors
) -> tuple[Array, Hyperparameters]:
    """Weights of the states and hyper-parameters given the counts of segments."""
    c, gamma, _ = hyper
    if priors.concentration is not None:
        c = _draw_concentration(rng, counts, c, weights, priors.concentration)
    tables = draw_table_counts(rng, counts, np.maximum(c * weights, SMALLEST)).sum(axis=0)
    left = counts[:-1].sum(axis=1)
    gone, logs = left > 0, np.zeros(len(weights))
    above = log_gamma_draws(rng, c * _of_others(weights)[gone])
    logs[gone] = above - np.logaddexp(above, log_gamma_draws(rng, left[gone].astype(np.float64)))
    ordered = tables + _draw_poisson(rng, -c * weights * logs)
    if priors.weight_concentration is not None:
        again = _count_tables(rng, ordered, gamma / len(weights))
        gamma = max(
            draw_concentration(rng, gamma, int(ordered.sum()), int(again), priors.weight_concentration), SMALLEST
        )
    return draw_weights(rng, gamma / len(weights) + ordered), Hyperparameters(c, gamma, 0.0)


def _draw_concentration(rng: np.random.Generator, counts: Integers, c: float, weights: Array, prior: Gamma) -> float:
    """Draw c given the weights, by a slice of its logarithm."""

    def log_density(log_c: float) -> float:
        value = float(np.exp(log_c))
        return prior.log_density(value) + log_c + log_segment_path(counts, value, weights)

    c = min(max(c, 1e-99), 1e99)
    return float(np.exp(slice_sample(log_density, float(np.log(c)), rng, support=(1e-100, 1e100))))


def _draw_poisson(rng: np.random.Generator, means: Array) -> Array:
    """Poisson numbers; a Gaussian is near enough where the mean is beyond what integers hold."""
    small = means < 1e12
    out = means + np.sqrt(means) * rng.standard_normal(len(means))
    out[small] = rng.poisson(means[small])
    return out


def _count_tables(rng: np.random.Generator, customers: Array, weight: float) -> float:
    """Tables of all restaurants together; those of late customers are a Poisson number, to one part in a million."""
    first = np.minimum(customers, MANY_CUSTOMERS)
    late = weight * (digamma(customers + weight) - digamma(first + weight))
    return float(draw_table_counts(rng, first.astype(np.int64), weight).sum() + rng.poisson(late).sum())


def log_segment_path(counts: Integers, concentration: float, weights: Array) -> float:
    """Log probability of the states of all segments given the weights; rows are integrated out."""
    prior = np.maximum(concentration * weights, SMALLEST)
    terms = np.where(counts > 0, gammaln(prior + counts) - gammaln(prior), 0.0).sum()
    rest = np.maximum(np.append(concentration * _of_others(weights), concentration), SMALLEST)
    left = counts.sum(axis=1)
    return float(terms + np.where(left > 0, gammaln(rest) - gammaln(rest + left), 0.0).sum())
