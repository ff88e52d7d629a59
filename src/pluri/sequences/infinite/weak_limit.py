"""Blocked sampling of an infinite hidden Markov model cut to a finite number of states.

With L states the weights are ``Dirichlet(gamma / L, ..., gamma / L)``, which tends to the hierarchical Dirichlet
process as L grows. A sweep draws the weights and hyper-parameters, the rows of transition probabilities and the
parameters of the states, and then all states of each sequence by forward filtering and backward sampling.

References
----------
Fox, Sudderth, Jordan and Willsky (2011), A sticky HDP-HMM with application to speaker diarization, AOAS 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pluri.components.chain import _kernels as chain_kernels
from pluri.components.chain.forward_backward import Chain, Steps, filter_one
from pluri.sequences.infinite._path_kernels import draw_backwards
from pluri.sequences.infinite.observations import Array, Integers
from pluri.sequences.infinite.state_posterior import Position, StatePosterior, as_position, hyper_of, in_order
from pluri.sequences.infinite.transitions import (
    Hyperparameters,
    count_transitions,
    draw_finite_weight_concentration,
    draw_hyperparameters,
    draw_tables,
    draw_weights,
    prior_rows,
)


@dataclass(frozen=True, eq=False)
class WeakLimitSampler(StatePosterior):
    """Kernel of the blocked sampler with `max_components` states; other parameters as in `StatePosterior`.

    In its positions ``weights`` (max_components,) has no rest, and states keep the numbers that they have.
    """

    def _sweep(self, rng: np.random.Generator, position: Position, prepared: Any) -> tuple[Position, dict[str, float]]:
        observations = self._completed(prepared, position)
        labels, width = np.asarray(position["labels"]), self.max_components
        counts = count_transitions(labels, self.offsets, width)
        weights, hyper = self._draw_common_finite(rng, counts, np.asarray(position["weights"]), hyper_of(position))
        rows = draw_weights(rng, prior_rows(hyper, weights) + counts)
        parameters = observations.draw(rng, observations.sums(labels, width))
        labels = draw_path(rng, rows, observations.log_density(parameters), self.offsets)
        filled = observations.draw_filled(rng, parameters, labels)
        n_used = len(np.unique(labels))
        return as_position(labels, weights, hyper, filled), {"capped": float(n_used >= width)}

    def _draw_common_finite(
        self, rng: np.random.Generator, counts: Integers, weights: Array, hyper: Hyperparameters
    ) -> tuple[Array, Hyperparameters]:
        seated = draw_tables(rng, counts, hyper, weights)
        gamma_prior = self.priors.weight_concentration
        others = self.priors._replace(weight_concentration=None)
        hyper = draw_hyperparameters(rng, counts, seated, hyper, others)
        gamma = draw_finite_weight_concentration(rng, hyper.weight_concentration, seated.ordered, gamma_prior)
        return draw_weights(rng, np.asarray(gamma / len(weights) + seated.ordered, dtype=np.float64)), hyper._replace(
            weight_concentration=gamma
        )

    def _without(self, labels: Integers, weights: Array, hyper: Hyperparameters) -> Position:
        return as_position(labels, weights, hyper)

    def _state_weights(self, rng: np.random.Generator, ordered: Integers, gamma: float) -> Array:
        each, others = gamma / self.max_components, self.max_components - len(ordered)
        return draw_weights(rng, np.append(each + ordered, each * others))[:-1]

    def sample_prior(self, rng: np.random.Generator) -> Position:
        """Draw a position from the prior."""
        hyper = self.priors.sample(rng, self.hyper)
        width = self.max_components
        weights = draw_weights(rng, np.full(width, hyper.weight_concentration / width))
        rows = draw_weights(rng, prior_rows(hyper, weights))
        flat = np.zeros((int(self.offsets[-1]), width))
        return as_position(draw_path(rng, rows, flat, self.offsets), weights, hyper)

    def sample_start(self, rng: np.random.Generator, n_states: int = 10, *, by_blocks: bool = False) -> Position:
        """Where a chain may begin: see `StatePosterior`."""
        n_states = min(n_states, self.max_components)
        labels, _ = in_order(np.asarray(super().sample_start(rng, n_states, by_blocks=by_blocks)["labels"]))
        gamma, width = self.hyper.weight_concentration, self.max_components
        sizes = np.bincount(labels, minlength=width).astype(np.float64)
        weights = draw_weights(rng, gamma / width + sizes)
        return as_position(labels, weights, self.hyper)


def draw_path(rng: np.random.Generator, rows: Array, log_density: Array, offsets: Integers) -> Integers:
    """States of all steps by forward filtering and backward sampling.

    Parameters
    ----------
    rows : (K + 1, K): transition probabilities, those of first steps last
    log_density : (n_steps, K)
    offsets : (n_sequences + 1,)
    """
    chain, filtered = filter_steps(rows, log_density, offsets)
    uniforms, states = rng.random(len(filtered)), np.empty(len(filtered), dtype=np.int64)
    for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist()):
        if begin < end:
            draw_backwards(filtered, chain.transposed, begin, end, uniforms, states)
    return states


def filter_steps(rows: Array, log_density: Array, offsets: Integers) -> tuple[Chain, Array]:
    """The chain, and the probability of each state of a step given the steps so far: (n_steps, at least K)."""
    chain = Chain.from_probabilities(rows[-1], rows[:-1])
    n, k, width = len(log_density), chain.n_states, chain.width
    padded = np.full((n, width), -np.inf)
    padded[:, :k] = log_density
    steps = Steps.of(padded, offsets)
    filtered, work = np.empty((n, width)), np.empty(width)
    for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist()):
        if begin == end:
            continue
        if not chain_kernels.forward(steps, begin, end, chain.start, chain.transition, True, filtered, work):
            own = np.empty((end - begin, k))
            filter_one(chain, log_density[begin:end], own)
            filtered[begin:end] = 0.0
            filtered[begin:end, :k] = np.exp(own)
    return chain, filtered
