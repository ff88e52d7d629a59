"""Kernels by gradients of a factor: a Cholesky factor of the whole kernel, or ``L = V V'`` of low rank.

With ``Delta = dl/dL``, ``dl/dC = 2 Delta C`` for ``L = C C'``. The low-rank form never makes an (n_items, n_items)
matrix; its penalty ``(alpha / 2T) sum_i |v_i|^2 / lambda_i``, with lambda_i the number of the T subsets that hold item
i, draws rare items to zero. Many subsets can be taken in mini-batches; an epoch that does not raise the objective is
undone and tried again with half the learning rate, so that the history never falls.

Iterations start from the frequencies of items and pairs. If items were independent, ``K_ii`` would be the frequency of
item i and ``L_ii = K_ii / (1 - K_ii)``. For a determinantal process ``K_ij^2 = K_ii K_jj - P(i, j)``, which gives the
sizes of the other entries but not their signs.

References
----------
Gartrell, Paquet and Koenigstein (2017), Low-rank factorization of determinantal point processes, AAAI.
Kingma and Ba (2015), Adam: a method for stochastic optimization, ICLR.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pluri.engine import Batch, IterableSource, Source, Statistics
from pluri.inference.ascent import climb
from pluri.processes.dpp.learning.likelihood import factor_value_and_gradient, kernel_value_and_gradient
from pluri.processes.dpp.learning.observations import SizeGroup, SubsetCounts

Array = NDArray[np.float64]

#: Tries of an epoch, each with half the learning rate of the one before, until the run counts as converged.
MOST_TRIES = 8
MEMORY, MEMORY_OF_SQUARES = 0.9, 0.999


#: Eigenvalues of K are kept this far from 0 and 1, where L would be singular or infinite.
MARGIN = 1e-6


def quality_odds(counts: SubsetCounts) -> Array:
    """Diagonal of the best kernel without repulsion: (n_items,); frequencies of one are taken as 1 - 1e-6."""
    frequency = np.minimum(counts.item_weights() / counts.total, 1 - MARGIN)
    return frequency / (1 - frequency)


def initial_spectrum(counts: SubsetCounts, rng: np.random.Generator) -> tuple[Array, Array]:
    """Eigenvectors and eigenvalues of a marginal kernel with about the frequencies seen, and random signs."""
    frequency = counts.item_weights() / counts.total
    # Half of the size that the pairs tell: with wrong signs the whole would leave no room between 0 and I.
    sizes = np.sqrt(np.maximum(np.outer(frequency, frequency) - counts.pair_weights() / counts.total, 0.0)) / 2
    noise = rng.uniform(0.01, 0.1, size=sizes.shape) * np.sqrt(np.outer(frequency, frequency))
    signs = np.where(rng.random(sizes.shape) < 0.5, -1.0, 1.0)
    upper = np.triu(signs * (sizes + noise), 1)
    probabilities, vectors = np.linalg.eigh(upper + upper.T + np.diag(frequency))
    return vectors, np.clip(probabilities, 0.02, 0.98)


def kernel_of_spectrum(vectors: Array, probabilities: Array) -> Array:
    """``L = V diag(kappa / (1 - kappa)) V'``."""
    kernel = (vectors * (probabilities / (1 - probabilities))) @ vectors.T
    return np.asarray((kernel + kernel.T) / 2)


def initial_factors(counts: SubsetCounts, rank: int, rng: np.random.Generator) -> Array:
    """Rows of random directions whose squared lengths are the odds of the items: (n_items, rank)."""
    directions = rng.standard_normal((counts.n_items, rank))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return np.asarray(directions * np.sqrt(quality_odds(counts))[:, None])


@dataclass(frozen=True, eq=False)
class CholeskyObjective:
    """Mean log-likelihood as a function of the lower triangle of C, ``L = C C'``."""

    counts: SubsetCounts

    def point(self, L: Array) -> Array:
        """Lower triangle of the Cholesky factor of a positive definite kernel."""
        return np.asarray(np.linalg.cholesky(L)[np.tril_indices(len(L))])

    def half(self, point: Array) -> Array:
        """Lower triangular C."""
        C = np.zeros((self.counts.n_items, self.counts.n_items))
        C[np.tril_indices(len(C))] = point
        return C

    def kernel(self, point: Array) -> Array:
        """``L = C C'``."""
        C = self.half(point)
        return np.asarray(C @ C.T)

    def __call__(self, point: Array) -> tuple[float, Array]:
        """Value and gradient."""
        C = self.half(point)
        value, slope = kernel_value_and_gradient(C @ C.T, self.counts)
        return value, 2 * (slope @ C)[np.tril_indices(len(C))]


def popularity_weights(counts: SubsetCounts, alpha: float) -> Array:
    """``alpha / (T lambda_i)`` for each item; items that never occur are drawn like the rarest one that does."""
    weights = counts.item_weights()
    seen = weights > 0
    if not seen.any():
        return np.zeros(counts.n_items)
    return np.asarray(alpha / (counts.total * np.where(seen, weights, weights[seen].min())))


@dataclass(frozen=True, eq=False)
class FactorObjective:
    """Mean log-likelihood as a function of V, ``L = V V'``, less ``sum_i penalty_i |v_i|^2 / 2``.

    Attributes
    ----------
    counts : SubsetCounts
    penalty : (n_items,)
    """

    counts: SubsetCounts
    penalty: Array

    def value(self, V: Array) -> float:
        """Value alone."""
        value = factor_value_and_gradient(V, self.counts, gradient=False)[0]
        return value - 0.5 * float(self.penalty @ (V * V).sum(axis=1))

    def value_and_gradient(self, V: Array) -> tuple[float, Array]:
        """Value and gradient, (n_items, rank)."""
        value, slope = factor_value_and_gradient(V, self.counts)
        pull = self.penalty[:, None] * V
        return value - 0.5 * float((pull * V).sum()), slope - pull

    def __call__(self, point: Array) -> tuple[float, Array]:
        """Value and gradient at a flattened V."""
        value, slope = self.value_and_gradient(point.reshape(self.counts.n_items, -1))
        return value, slope.ravel()


def widened_start(
    objective: FactorObjective, rank: int, rng: np.random.Generator, max_iter: int, tol: float
) -> tuple[Array, bool]:
    """Factors to start from, found with a column more than wanted; and whether Ctrl-C cut the search short.

    ``log det(V_Y V_Y')`` is -inf where the rows of a subset of `rank` items are dependent: such walls cut the space
    into cells from which no ascent escapes. A column more opens them; its weakest direction is then dropped.
    """
    counts = objective.counts
    plain = initial_factors(counts, rank, rng)
    if rank >= counts.n_items:
        return plain, False
    wide = initial_factors(counts, rank + 1, rng)
    found = climb(objective, [wide.ravel()], max_iter=max_iter, tol=tol)
    vectors, lengths, _ = np.linalg.svd(found.point.reshape(wide.shape), full_matrices=False)
    narrow = vectors[:, :rank] * lengths[:rank]
    return narrow if math.isfinite(objective.value(narrow)) else plain, found.interrupted


@dataclass(frozen=True)
class Value(Statistics):
    """Mean log-likelihood less the penalty."""

    log_likelihood: float


@dataclass(frozen=True)
class FactorPoint:
    """Factors, and what the next epoch starts with: learning rate, its stream of random numbers, and Adam's memory."""

    V: Array
    learning_rate: float
    stream: tuple[int, ...]
    mean: Array
    square: Array
    n_steps: int = 0


@dataclass(frozen=True, eq=False)
class StochasticFactors:
    """Mini-batch ascent of a `FactorObjective` as a problem for the EM loop: an iteration is an epoch.

    Parameters
    ----------
    objective : FactorObjective
    rank : int
    batch_size : int
        Different subsets in a mini-batch.
    learning_rate : float, default=0.05
        Length of the first steps of each coordinate.
    """

    objective: FactorObjective
    rank: int
    batch_size: int
    learning_rate: float = 0.05

    def point(self, V: Array, rng: np.random.Generator) -> FactorPoint:
        """Record of factors, before the first epoch."""
        stream = tuple(int(one) for one in rng.integers(0, 2**32, size=2))
        return FactorPoint(V, self.learning_rate, stream, np.zeros(V.shape), np.zeros(V.shape))

    def source(self) -> Source:
        """One empty batch: the objective holds the data, which epochs read in random order."""
        return IterableSource([Batch(np.zeros((1, 0)))])

    def initialize(self, source: Source, rng: np.random.Generator) -> FactorPoint:
        """Random directions with the odds of the items as squared lengths."""
        return self.point(initial_factors(self.objective.counts, self.rank, rng), rng)

    def expect(self, params: FactorPoint, batch: Batch) -> Value:
        """The objective."""
        return Value(self.objective.value(params.V))

    def maximize(self, stats: Value, params: FactorPoint) -> FactorPoint:
        """One epoch, with a learning rate at which it raises the objective; the same point if there is none."""
        tried = params
        for _ in range(MOST_TRIES):
            moved = self._epoch(tried)
            if self.objective.value(moved.V) > stats.log_likelihood:
                return moved
            tried = replace(tried, learning_rate=tried.learning_rate / 2, stream=moved.stream)
        return params

    def log_prior(self, params: FactorPoint) -> float:
        """The objective has it already."""
        return 0.0

    def _epoch(self, point: FactorPoint) -> FactorPoint:
        counts, penalty = self.objective.counts, self.objective.penalty
        rng = np.random.default_rng(point.stream)
        sizes = [len(group.items) for group in counts.groups]
        group_of = np.repeat(np.arange(len(sizes)), sizes)
        row_of = np.concatenate([np.arange(size) for size in sizes])
        order = rng.permutation(len(group_of))
        V, mean, square, n_steps = point.V, point.mean, point.square, point.n_steps
        for begin in range(0, len(order), self.batch_size):
            chosen = order[begin : begin + self.batch_size]
            groups = []
            for index in np.unique(group_of[chosen]).tolist():
                rows = row_of[chosen[group_of[chosen] == index]]
                groups.append(SizeGroup(counts.groups[index].items[rows], counts.groups[index].weight[rows]))
            # The total is that share of all subsets, not the weight at hand: so the gradient is right on average.
            part = SubsetCounts(counts.n_items, tuple(groups), counts.total * len(chosen) / len(order))
            slope = FactorObjective(part, penalty).value_and_gradient(V)[1]
            n_steps += 1
            mean = MEMORY * mean + (1 - MEMORY) * slope
            square = MEMORY_OF_SQUARES * square + (1 - MEMORY_OF_SQUARES) * slope**2
            size = np.sqrt(square / (1 - MEMORY_OF_SQUARES**n_steps)) + 1e-8
            V = V + point.learning_rate * mean / (1 - MEMORY**n_steps) / size
        return FactorPoint(V, point.learning_rate, (*point.stream[:2], n_steps), mean, square, n_steps)
