"""Beam sampling of an infinite hidden Markov model: slices make the trellis finite, and then all states move at once.

A sweep draws the weights and hyper-parameters, the rows of transition probabilities and the parameters of the states;
then a slice below the probability of each transition of the path. Sticks are broken until no row has more left than the
lowest slice; every path above the slices is then a path of finitely many states, drawn by forward filtering and
backward sampling. This is exact: nothing is truncated, unless `max_components` is reached.

References
----------
Van Gael, Saatci, Teh and Ghahramani (2008), Beam sampling for the infinite hidden Markov model, ICML.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pluri.processes.stick_draws import log_gamma_draws
from pluri.sequences.infinite._path_kernels import Trellis, draw_above_slices, filter_above_slices
from pluri.sequences.infinite.observations import Array, Integers
from pluri.sequences.infinite.state_posterior import (
    Position,
    StatePosterior,
    as_position,
    drawn_rows,
    gathered,
    hyper_of,
)
from pluri.sequences.infinite.transitions import SMALLEST, Hyperparameters, draw_weights


@dataclass(frozen=True, eq=False)
class BeamSampler(StatePosterior):
    """Kernel of the beam sampler; parameters as in `StatePosterior`."""

    def _sweep(self, rng: np.random.Generator, position: Position, prepared: Any) -> tuple[Position, dict[str, float]]:
        observations = self._completed(prepared, position)
        labels = np.asarray(position["labels"])
        weights, hyper, counts = self._draw_common(rng, labels, np.asarray(position["weights"]), hyper_of(position))
        rows = drawn_rows(rng, counts, hyper, weights)
        slices = self._slices(rng, labels, rows)
        weights, rows = self._break_sticks(rng, weights, rows, hyper, float(slices.min()))
        n_states, n_used = len(weights) - 1, len(counts) - 1
        sums = [np.pad(own, ((0, n_states - n_used), (0, 0))) for own in observations.sums(labels, n_used)]
        parameters = observations.draw(rng, sums)
        log_density = observations.log_density(parameters)
        drawn, n_pairs = _draw_path(rng, rows[:, :-1], slices, np.ascontiguousarray(log_density), self.offsets)
        filled = observations.draw_filled(rng, parameters, drawn)
        labels, weights = gathered(drawn, weights)
        capped = float(n_states >= self.max_components)
        info = {"n_sticks": float(n_states), "pairs_per_step": n_pairs / len(labels), "capped": capped}
        return as_position(labels, weights, hyper, filled), info

    def _slices(self, rng: np.random.Generator, labels: Integers, rows: Array) -> Array:
        before = np.empty_like(labels)
        before[1:] = labels[:-1]
        before[self.offsets[:-1][np.diff(self.offsets) > 0]] = len(rows) - 1
        return np.asarray(rows[before, labels] * (1.0 - rng.random(len(labels)))) * (1 - 1e-15)

    def _break_sticks(
        self, rng: np.random.Generator, weights: Array, rows: Array, hyper: Hyperparameters, lowest: float
    ) -> tuple[Array, Array]:
        """Further states, until no row has more left than the lowest slice."""
        c, gamma, rho = hyper
        while rows[:, -1].max() > lowest and len(weights) - 1 < self.max_components:
            piece = 1.0 - (1.0 - rng.random()) ** (1.0 / gamma)  # Beta(1, gamma)
            new, rest = np.maximum([piece * weights[-1], (1 - piece) * weights[-1]], SMALLEST)
            shapes = np.full(len(rows), c * (1 - rho))
            shapes[-1] = c  # the row of first steps
            first, second = log_gamma_draws(rng, shapes * new), log_gamma_draws(rng, shapes * rest)
            share = np.exp(first - np.logaddexp(first, second))
            left = rows[:, -1]
            rows = np.column_stack([rows[:, :-1], left * share, left * (1 - share)])
            weights = np.concatenate([weights[:-1], [new, rest]])
            own = c * (1 - rho) * weights
            own[-2] += c * rho
            rows = np.insert(rows, len(rows) - 1, draw_weights(rng, own), axis=0)
        return weights, rows


def _draw_path(
    rng: np.random.Generator, rows: Array, slices: Array, log_density: Array, offsets: Integers
) -> tuple[Integers, int]:
    """States of all steps given the rows (K + 1, K), the slices and the densities; and how many pairs were met."""
    width = rows.shape[1]
    order = np.argsort(-rows, axis=1, kind="stable")
    trellis = Trellis(
        np.take_along_axis(rows, order, axis=1), order, np.ascontiguousarray(rows.T), np.ascontiguousarray(slices)
    )
    filtered, states = np.empty((len(slices), width)), np.empty(len(slices), dtype=np.int64)
    n_pairs = filter_above_slices(trellis, log_density, offsets, np.empty(width), filtered)
    draw_above_slices(trellis, filtered, offsets, rng.random(len(slices)), states)
    return states, int(n_pairs)
