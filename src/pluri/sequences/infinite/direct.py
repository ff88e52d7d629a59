"""Direct-assignment sampling of an infinite hidden Markov model: one step at a time, everything else integrated out.

Only the states of all steps and the weights of the states are kept (`pluri.sequences.infinite._direct_kernels`). Every
family mixes without draws of its parameters, but a segment changes its state one step at a time: the blocked samplers
move faster through sequences in which states last.

References
----------
Teh, Jordan, Beal and Blei (2006), Hierarchical Dirichlet processes, JASA 101, section 7.
Fox, Sudderth, Jordan and Willsky (2011), A sticky HDP-HMM with application to speaker diarization, AOAS 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pluri.processes.conjugate import BetaBernoulli, GammaPoisson
from pluri.processes.conjugate_gaussian import NormalGamma, NormalInverseWishart
from pluri.processes.conjugate_regression import MatrixNormalInverseWishart
from pluri.sequences.infinite._direct_kernels import (
    COLUMNS,
    COUNTS,
    REGRESSION,
    SYMBOLS,
    Emitted,
    Paths,
    Rows,
    factor,
    fill,
    resample_states,
)
from pluri.sequences.infinite.observations import (
    HOLES_ADVICE,
    WITH_HOLES,
    Array,
    Integers,
    ObservationModel,
    Observations,
    lagged_rows,
    refuse_partial_rows,
)
from pluri.sequences.infinite.state_posterior import Position, StatePosterior, as_position, gathered, hyper_of
from pluri.sequences.infinite.transitions import Hyperparameters, count_transitions

#: Slots for new states to begin with.
ROOM = 8


class DirectData(NamedTuple):
    """Observations as the common methods and as the compiled sweep read them."""

    observations: Observations
    rows: Rows


@dataclass(frozen=True, eq=False)
class DirectSampler(StatePosterior):
    """Kernel of the direct-assignment sampler; parameters as in `StatePosterior`."""

    def _prepare(self, data: Array) -> DirectData:
        if self.model.family in WITH_HOLES:
            refuse_partial_rows(data, f"family={self.model.family!r} with inference='direct'", HOLES_ADVICE)
        return DirectData(self.model.prepare(data, self.offsets), rows_of(self.model, data, self.offsets))

    def _observations(self, prepared: DirectData) -> Observations:
        return prepared.observations

    def _sweep(self, rng: np.random.Generator, position: Position, prepared: Any) -> tuple[Position, dict[str, float]]:
        hyper = hyper_of(position)
        labels, weights = self._sweep_labels(
            rng, np.array(position["labels"], dtype=np.int64), np.asarray(position["weights"]), hyper, prepared.rows
        )
        weights, hyper, _ = self._draw_common(rng, labels, weights, hyper)
        return as_position(labels, weights, hyper), {"capped": float(len(weights) > self.max_components)}

    def _sweep_labels(
        self, rng: np.random.Generator, labels: Integers, weights: Array, hyper: Hyperparameters, rows: Rows
    ) -> tuple[Integers, Array]:
        n, uniforms, t = len(labels), rng.random((len(labels), 2)), 0
        n_slots = len(weights) - 1 + ROOM
        while t < n:
            paths = _paths(labels, self.offsets, weights, n_slots, uniforms)
            emitted = _emitted(rows, labels, n_slots)
            work, scratch = np.empty(max(rows.values.shape[1], 1)), np.empty(n_slots)
            t = int(resample_states(rows, emitted, paths, np.array(hyper), t, work, scratch))
            labels, weights = paths.labels, np.append(paths.weights, paths.rest)
            n_slots *= 2
        return gathered(labels, weights)


def _paths(labels: Integers, offsets: Integers, weights: Array, n_slots: int, uniforms: Array) -> Paths:
    counts = count_transitions(labels, offsets, n_slots).astype(np.float64)
    padded = np.zeros(n_slots)
    padded[: len(weights) - 1] = weights[:-1]
    sizes = np.bincount(labels, minlength=n_slots).astype(np.int64)
    return Paths(labels, counts, counts[:-1].sum(axis=1), sizes, padded, weights[-1:].copy(), offsets, uniforms)


def _emitted(rows: Rows, labels: Integers, n_slots: int) -> Emitted:
    """What states have emitted, from nothing: a sweep's rounding does not outlive it."""
    width = rows.values.shape[1]
    if rows.kind == REGRESSION:
        emitted = Emitted(
            np.zeros((n_slots + 1, 1)), np.tile(rows.first, (n_slots + 1, 1)), np.zeros((n_slots + 1, width**2))
        )
        there = ~np.isnan(rows.values).any(axis=1)
        for k in np.unique(labels[there]):
            own = rows.values[there & (labels == k)]
            emitted.number[k] = len(own)
            emitted.first[k] += (own.T @ own).ravel()
        for k in range(n_slots + 1):
            factor(emitted, k, width)
        return emitted
    length = len(rows.first) if rows.kind == SYMBOLS else width
    emitted = Emitted(*(np.zeros((n_slots + 1, size)) for size in (width, length, width)))
    fill(rows, emitted, labels)
    return emitted


def rows_of(model: ObservationModel, X: Array, offsets: Integers) -> Rows:
    """Observations and their prior as the compiled sweep reads them."""
    none, first = np.zeros(0), model.likelihoods[0]
    nowhere = np.zeros(1, dtype=np.int64)
    if isinstance(first, NormalInverseWishart):
        values = np.column_stack([np.ones(len(X)), X - first.mean])
        prior = np.zeros((values.shape[1], values.shape[1]))
        prior[0, 0], prior[1:, 1:] = first.strength, first.scale
        return Rows(values, REGRESSION, 1, float(first.df), 0.0, prior.ravel(), none, nowhere)
    if isinstance(first, MatrixNormalInverseWishart):
        values = first.centered(lagged_rows(X, offsets, model.order))
        values[np.isnan(values).any(axis=1)] = np.nan
        matrix = first.prior_matrix().ravel()
        return Rows(values, REGRESSION, first.n_predictors, float(first.df), 0.0, matrix, none, nowhere)
    each = model.by_column().likelihoods
    values = np.ascontiguousarray(X, dtype=np.float64)
    if isinstance(first, NormalGamma):
        values = values - _each(each, "mean")
        rates = _each(each, "rate")
        return Rows(values, COLUMNS, 0, float(first.strength), float(first.shape), rates, none, nowhere)
    if isinstance(first, GammaPoisson):
        return Rows(values, COUNTS, 0, 0.0, 0.0, _each(each, "shape"), _each(each, "rate"), nowhere)
    if isinstance(first, BetaBernoulli):
        alphas = list(np.column_stack([_each(each, "b"), _each(each, "a")]))
    elif model.family == "categorical":
        alphas = [np.array(own._alpha) for own in each]
    else:
        raise ValueError("inference='direct' takes no rows of counts of tokens: use inference='beam' or 'weak_limit'")
    start = np.concatenate([[0], np.cumsum([len(alpha) for alpha in alphas])]).astype(np.int64)
    totals = np.array([alpha.sum() for alpha in alphas])
    return Rows(values, SYMBOLS, 0, 0.0, 0.0, np.concatenate(alphas), totals, start)


def _each(likelihoods: tuple[Any, ...], name: str) -> Array:
    """A number of each of several likelihoods of one column."""
    return np.array([float(np.ravel(getattr(own, name))[0]) for own in likelihoods])
