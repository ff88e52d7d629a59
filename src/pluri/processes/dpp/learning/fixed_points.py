"""Full kernels by fixed-point iterations: Picard, and EM over the eigenvectors that a subset is made of.

Both see the data through ``M = sum_t w_t U_t L_Yt^-1 U_t'`` alone, which adds up over batches, and run in
`pluri.inference.expectation_maximization`.

Picard: ``L <- L + a L (M - (L + I)^-1) L``, which never lowers the likelihood for a = 1.

EM: with ``K = V diag(kappa) V'``, a draw first picks eigenvectors J, each with probability kappa_n. Given the subset Y,
``P(n in J | Y) = gamma_n v_Yn' L_Y^-1 v_Yn`` with ``gamma = kappa / (1 - kappa)``; so the M-step for kappa is
``kappa_n = gamma_n v_n' M v_n``. The vectors then climb the likelihood on the orthogonal group: det(L + I) does not
depend on them, ``G = 2 M V diag(gamma)``, and ``V <- expm(eta (G V' - V G')) V`` with eta found by back-tracking.

References
----------
Mariet and Sra (2015), Fixed-point algorithms for learning determinantal point processes, ICML.
Gillenwater, Kulesza, Fox and Taskar (2014), Expectation-maximization for learning determinantal point processes, NIPS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm

from pluri.engine import Batch, IterableSource, Source, Statistics
from pluri.processes.dpp.learning.gradients import MARGIN, initial_spectrum, kernel_of_spectrum
from pluri.processes.dpp.learning.likelihood import group_terms, kernel_value, kernel_value_and_gradient, log_normalizer
from pluri.processes.dpp.learning.observations import SizeGroup, SubsetCounts

Array = NDArray[np.float64]

#: Share of the rise that the slope promises which a rotation must reach.
ARMIJO = 1e-4
MOST_HALVINGS = 40


def subset_source(counts: SubsetCounts) -> Source:
    """Batches of subsets of one size; the weights of all together sum to one."""
    pieces = [piece for group in counts.groups for piece in group.pieces(group.size)]
    return IterableSource([Batch(piece.items, weight=piece.weight / counts.total) for piece in pieces])


@dataclass(frozen=True)
class KernelStatistics(Statistics):
    """``M``, (n_items, n_items), and the log-likelihood of a batch."""

    inverses: Array
    log_likelihood: float


def _expect(L: Array, normalizer: float, batch: Batch) -> KernelStatistics:
    weight = np.ones(batch.n_samples) if batch.weight is None else batch.weight
    value, inverses = group_terms(L, SizeGroup(batch.X, weight))
    return KernelStatistics(inverses, value - float(weight.sum()) * normalizer)


@dataclass(frozen=True)
class KernelPoint:
    """A kernel, ``log det(L + I)``, and the step that Picard tries next."""

    L: Array
    normalizer: float
    step: float = 1.0


@dataclass(frozen=True, eq=False)
class Picard:
    """The Picard iteration as a problem for the EM loop.

    Parameters
    ----------
    counts : SubsetCounts
        The data, for the starting point and to check steps longer than one.
    step_size : float, default=1.0
        Longest step; one longer than 1 is halved, down to 1, until the likelihood does not fall.
    """

    counts: SubsetCounts
    step_size: float = 1.0

    def point(self, L: Array, step: float | None = None) -> KernelPoint:
        """Record of a kernel."""
        return KernelPoint(L, log_normalizer(L), self.step_size if step is None else step)

    def initialize(self, source: Source, rng: np.random.Generator) -> KernelPoint:
        """A kernel with the moments of the data and random signs."""
        return self.point(kernel_of_spectrum(*initial_spectrum(self.counts, rng)))

    def expect(self, params: KernelPoint, batch: Batch) -> KernelStatistics:
        """Inverses of the submatrices, added up."""
        return _expect(params.L, params.normalizer, batch)

    def maximize(self, stats: KernelStatistics, params: KernelPoint) -> KernelPoint:
        """One step."""
        L = params.L
        change = L @ (stats.inverses - np.linalg.inv(L + np.eye(len(L)))) @ L
        change = (change + change.T) / 2
        step = params.step
        while step > 1:
            moved = L + step * change
            if _is_definite(moved) and kernel_value(moved, self.counts) >= stats.log_likelihood:
                return self.point(moved, min(1.5 * step, self.step_size))
            step = max(1.0, step / 2)
        # A step that had to be halved may be worth trying again: grow it slowly.
        return self.point(L + step * change, min(1.5 * step, self.step_size))

    def log_prior(self, params: KernelPoint) -> float:
        """No prior."""
        return 0.0

    def pack(self, params: KernelPoint) -> Array:
        """Cholesky factor with the logarithm of its diagonal."""
        return pack_kernel(params.L)

    def unpack(self, vector: Array, like: KernelPoint) -> KernelPoint:
        """Kernel of a packed Cholesky factor."""
        return self.point(unpack_kernel(vector, len(like.L)), like.step)


@dataclass(frozen=True)
class EigenPoint:
    """A marginal kernel by eigenvectors (columns) and eigenvalues, its L, and the angle that rotations try next."""

    vectors: Array
    probabilities: Array
    L: Array
    normalizer: float
    angle: float = 0.1


def eigen_point(vectors: Array, probabilities: Array, angle: float = 0.1) -> EigenPoint:
    """Record of a marginal kernel; eigenvalues are kept away from 0 and 1."""
    probabilities = np.clip(probabilities, MARGIN, 1 - MARGIN)
    normalizer = -float(np.log1p(-probabilities).sum())
    return EigenPoint(vectors, probabilities, kernel_of_spectrum(vectors, probabilities), normalizer, angle)


def responsibilities(point: EigenPoint, inverses: Array) -> Array:
    """Mean probability that each eigenvector was picked, given the subsets: ``gamma_n v_n' M v_n``; (n_items,)."""
    odds = point.probabilities / (1 - point.probabilities)
    return np.asarray(odds * np.einsum("in,in->n", point.vectors, inverses @ point.vectors))


@dataclass(frozen=True, eq=False)
class KernelEM:
    """EM over the eigenvectors of K.

    Parameters
    ----------
    counts : SubsetCounts
        The data: the rotations look at the likelihood.
    n_rotations : int, default=3
        Ascent steps of the eigenvectors in each M-step.
    """

    counts: SubsetCounts
    n_rotations: int = 3

    def initialize(self, source: Source, rng: np.random.Generator) -> EigenPoint:
        """Eigenvectors of a kernel with the moments of the data and random signs."""
        return eigen_point(*initial_spectrum(self.counts, rng))

    def expect(self, params: EigenPoint, batch: Batch) -> KernelStatistics:
        """Inverses of the submatrices, added up."""
        return _expect(params.L, params.normalizer, batch)

    def maximize(self, stats: KernelStatistics, params: EigenPoint) -> EigenPoint:
        """Eigenvalues in closed form, then a few rotations of the eigenvectors."""
        point = eigen_point(params.vectors, responsibilities(params, stats.inverses), params.angle)
        for _ in range(self.n_rotations):
            point, moved = rotate(point, self.counts)
            if not moved:
                break
        return point

    def log_prior(self, params: EigenPoint) -> float:
        """No prior."""
        return 0.0


def spectrum_point(L: Array, angle: float = 0.1) -> EigenPoint:
    """Record of an L-ensemble kernel."""
    odds, vectors = np.linalg.eigh(L)
    odds = np.maximum(odds, 0.0)
    return eigen_point(vectors, odds / (1 + odds), angle)


def rotation_slope(point: EigenPoint, inverses: Array) -> Array:
    """Direction of steepest ascent on the orthogonal group: the skew matrix ``G V' - V G'``."""
    odds = point.probabilities / (1 - point.probabilities)
    outward = 2 * (inverses @ (point.vectors * odds)) @ point.vectors.T
    return np.asarray(outward - outward.T)


def rotate(point: EigenPoint, counts: SubsetCounts) -> tuple[EigenPoint, bool]:
    """Turn the eigenvectors so that the likelihood rises; the point itself and False if it cannot."""
    value, slope = kernel_value_and_gradient(point.L, counts)
    skew = rotation_slope(point, slope + np.linalg.inv(point.L + np.eye(len(point.L))))
    steepness = float((skew * skew).sum()) / 2
    if not steepness > 1e-20:
        return point, False
    largest = np.abs(skew).sum(axis=1).max()
    angle = min(2 * point.angle, math.pi / largest)  # half a turn is as far as a rotation goes
    for _ in range(MOST_HALVINGS):
        vectors = expm(angle * skew) @ point.vectors
        vectors = vectors @ (1.5 * np.eye(len(vectors)) - 0.5 * vectors.T @ vectors)  # rounding must not add up
        moved = eigen_point(vectors, point.probabilities, angle)
        if kernel_value(moved.L, counts) >= value + ARMIJO * angle * steepness:
            return moved, True
        angle /= 2
    return point, False


def _is_definite(matrix: Array) -> bool:
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True


def pack_kernel(L: Array) -> Array:
    """Lower triangle of the Cholesky factor of L, with the logarithm of its diagonal."""
    half = np.linalg.cholesky(L)
    np.fill_diagonal(half, np.log(np.diagonal(half)))
    return np.asarray(half[np.tril_indices(len(L))])


def unpack_kernel(vector: Array, n_items: int) -> Array:
    """Inverse of `pack_kernel`."""
    half = np.zeros((n_items, n_items))
    half[np.tril_indices(n_items)] = vector
    np.fill_diagonal(half, np.exp(np.diagonal(half)))
    return np.asarray(half @ half.T)
