r"""A determinantal point process as mathematics sees it: a kernel L, features, or a marginal kernel K.

.. math:: P(Y) = \frac{\det L_Y}{\det(L + I)}, \qquad P(A \subseteq Y) = \det K_A, \qquad K = L (L + I)^{-1}

Conditioning on items that are in is a Schur complement of either kernel; on items that are out, a restriction of L or a
Schur complement of :math:`I - K`. Features stay features: conditioning projects them away from the items that are in.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pluri.processes.dpp.kernel_checks import check_symmetric
from pluri.processes.dpp.kernel_forms import Array, DenseKernel, FeatureKernel, FunctionKernel, IntArray, KernelForm
from pluri.processes.dpp.spectrum import Spectrum, spectrum_of_features, spectrum_of_kernel, spectrum_of_marginal

#: Kernels of more items than this are not written out as a matrix.
LARGEST_DENSE = 20_000
#: Features of at most so many columns are rotated when items are given: the rotation is a matrix of all columns.
WORTH_ROTATING = 2000
#: Pivots below this share of the diagonal are rounding of zero.
NO_VOLUME = 1e-13


@dataclass(frozen=True, eq=False)
class Representation:
    """A process over ``n_items`` items, by its kernel L (``kernel``) or by its marginal kernel (``marginal``)."""

    form: KernelForm | None
    marginal: Array | None = None

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.form.n_items if self.form is not None else len(self._given_marginal)

    @property
    def _given_marginal(self) -> Array:
        assert self.marginal is not None
        return self.marginal

    @cached_property
    def spectrum(self) -> Spectrum:
        """Eigenvalues and eigenvectors."""
        if self.form is None:
            return spectrum_of_marginal(self._given_marginal)
        if isinstance(self.form, FeatureKernel) and (
            self.form.features.shape[1] < self.n_items or self.n_items > LARGEST_DENSE
        ):
            if min(self.form.features.shape) > LARGEST_DENSE:
                raise ValueError(
                    f"features of shape {self.form.features.shape} are too many both ways for an eigendecomposition: "
                    "reduce the columns (sklearn.decomposition.TruncatedSVD), or use method='mcmc' or map()"
                )
            return spectrum_of_features(self.form.features)
        return spectrum_of_kernel(self.dense())

    @cached_property
    def kernel(self) -> KernelForm:
        """The kernel L; computed from the spectrum where K was given."""
        if self.form is not None:
            return self.form
        self._refuse_certain()
        return DenseKernel((self.spectrum.vectors * self.spectrum.odds) @ self.spectrum.vectors.T)

    def dense(self) -> Array:
        """L as a matrix."""
        if self.n_items > LARGEST_DENSE:
            raise ValueError(
                f"the kernel of {self.n_items} items is too large to be written out (limit {LARGEST_DENSE}): use "
                "method='intermediate' or 'mcmc', map(), or features of low rank"
            )
        kernel = self.kernel
        if isinstance(kernel, DenseKernel):
            return kernel.matrix
        matrix = kernel.rows(np.arange(self.n_items))
        return check_symmetric(matrix, "the kernel") if self.n_items else matrix

    def marginal_block(self, rows: IntArray, columns: IntArray) -> Array:
        """``K[rows][:, columns]``."""
        if self.marginal is not None:
            return self.marginal[np.ix_(rows, columns)]
        vectors = self.spectrum.vectors
        return (vectors[rows] * self.spectrum.probabilities) @ vectors[columns].T

    def inclusion(self) -> Array:
        """Diagonal of K."""
        if self.marginal is not None:
            return np.clip(np.diagonal(self.marginal), 0.0, 1.0)
        vectors = self.spectrum.vectors
        # One eigenvector at a time: they are contiguous, and nothing of their size is made.
        total = np.zeros(self.n_items)
        for n, probability in enumerate(self.spectrum.probabilities):
            total += probability * vectors[:, n] ** 2
        return np.clip(total, 0.0, 1.0)

    def exclusion(self, items: IntArray) -> float:
        """Probability that none of the items is drawn: ``det(I - K_A)``."""
        if self.marginal is not None or items.size <= self.spectrum.rank:
            block = self.marginal_block(items, items)
        else:  # the same determinant, over the eigenvectors
            rows = self.spectrum.vectors[items] * np.sqrt(self.spectrum.probabilities)
            block = rows.T @ rows
        return max(float(np.linalg.det(np.eye(len(block)) - block)), 0.0)

    def log_volume(self, items: IntArray) -> float:
        """``log det L_Y``; minus infinity for items that are dependent to working precision."""
        kernel = self.kernel
        if items.size == 0:
            return 0.0
        if isinstance(kernel, FeatureKernel) and not kernel.is_sparse:
            return _log_volume_of_rows(kernel.features[items])
        return _log_volume(kernel.block(items, items))

    def log_probability(self, items: IntArray) -> float:
        """``log P(Y)``, also where some direction is always taken and there is no L."""
        if not self.spectrum.has_certain:
            return self.log_volume(items) - self.spectrum.log_normalizer
        # The probability that these are in, det K_Y, times that no other is, given that they are.
        inside = self.marginal_block(items, items)
        outside = np.delete(np.arange(self.n_items), items)
        others, cross = self.marginal_block(outside, outside), self.marginal_block(items, outside)
        try:
            factor = np.linalg.cholesky(inside)
            half = np.linalg.solve(factor, cross)
            rest = np.linalg.cholesky(np.eye(outside.size) - others + half.T @ half)
        except np.linalg.LinAlgError:
            return -np.inf
        # Each pivot is the probability of one decision given those before; K knows it up to its own rounding.
        kept, dropped = np.diagonal(factor) ** 2, np.diagonal(rest) ** 2
        least = NO_VOLUME * self.n_items
        if kept.min(initial=1.0) < least or dropped.min(initial=1.0) < least / kept.min(initial=1.0):
            return -np.inf
        return float(np.log(kept).sum() + np.log(dropped).sum())

    def conditioned(self, include: IntArray, keep: IntArray, exclude: IntArray) -> Representation:
        """The distribution of the items ``keep`` given that ``include`` are in and ``exclude`` are out."""
        if self.form is None and self.spectrum.has_certain:
            return self._conditioned_marginal(include, keep, exclude)
        kernel = self.kernel
        if isinstance(kernel, FeatureKernel):
            return Representation(FeatureKernel(_project_away(kernel, include, keep)))
        if keep.size > LARGEST_DENSE:
            if include.size or not isinstance(kernel, FunctionKernel):
                raise ValueError(
                    f"include must be empty for a kernel of so many items ({keep.size} are left, limit "
                    f"{LARGEST_DENSE}) that is not given by features"
                )
            quality = None if kernel.quality is None else kernel.quality[keep]
            return Representation(FunctionKernel(kernel.function, kernel.X[keep], quality))
        block = kernel.block(keep, keep)
        if include.size:
            cross = kernel.block(include, keep)
            block = without_noise(
                block - cross.T @ _solve(kernel.block(include, include), cross, "include"), np.diagonal(block)
            )
        return Representation(DenseKernel(block))

    def _conditioned_marginal(self, include: IntArray, keep: IntArray, exclude: IntArray) -> Representation:
        kept_or_included = np.concatenate([keep, include])
        matrix = self.marginal_block(kept_or_included, kept_or_included)
        if exclude.size:
            cross = self.marginal_block(exclude, kept_or_included)
            outside = np.eye(exclude.size) - self.marginal_block(exclude, exclude)
            matrix = matrix + cross.T @ _solve(outside, cross, "exclude")
        if include.size:
            cross = matrix[keep.size :, : keep.size]
            matrix = matrix[: keep.size, : keep.size] - cross.T @ _solve(
                matrix[keep.size :, keep.size :], cross, "include"
            )
        return Representation(None, 0.5 * (matrix + matrix.T))

    def scaled(self, factor: float) -> Representation:
        """The process of ``factor * L``."""
        kernel = self.kernel
        if isinstance(kernel, FeatureKernel):
            result = Representation(FeatureKernel(kernel.features * np.sqrt(factor)))
        else:
            result = Representation(DenseKernel(self.dense() * factor))
        result.__dict__["spectrum"] = self.spectrum.scaled(factor)  # known already: no second decomposition
        return result

    def _refuse_certain(self) -> None:
        if self.spectrum.has_certain:
            raise ValueError("K has an eigenvalue of 1, so this process has no kernel L; use it through K")


def without_noise(block: Array, own: Array) -> Array:
    """A Schur complement, symmetric, without what rounding leaves of items that those given explain wholly.

    ``own`` is their ``L_ii`` before. Such an item can never be drawn, however large the kernel.
    """
    block = 0.5 * (block + block.T)
    gone = np.diagonal(block) <= 1e-12 * np.maximum(own, 0.0)
    block[gone] = 0.0
    block[:, gone] = 0.0
    return np.asarray(block)


def _log_volume(block: Array) -> float:
    scale = np.diagonal(block).copy()
    if not (scale > 0).all():
        return -np.inf
    root = np.sqrt(scale)
    try:
        pivots = np.diagonal(np.linalg.cholesky(block / root / root[:, None])) ** 2
    except np.linalg.LinAlgError:
        return -np.inf
    if pivots.min() < NO_VOLUME * len(block):
        return -np.inf
    return float(np.log(pivots).sum() + np.log(scale).sum())


def _log_volume_of_rows(rows: Array) -> float:
    """``log det(F F^T)`` from a QR decomposition of F, which keeps twice the digits of its square."""
    length = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    if rows.shape[0] > rows.shape[1] or not (length > 0).all():
        return -np.inf
    pivots = np.abs(np.diagonal(np.linalg.qr((rows / length[:, None]).T, mode="r")))
    if pivots.min() < NO_VOLUME * len(rows):
        return -np.inf
    return float(2.0 * (np.log(pivots).sum() + np.log(length).sum()))


def _solve(block: Array, right: Array, name: str) -> Array:
    if _log_volume(block) == -np.inf:
        raise ValueError(f"{name} must have a positive probability, got items that the process cannot draw so")
    return np.asarray(np.linalg.solve(block, right))


def _project_away(kernel: FeatureKernel, include: IntArray, keep: IntArray) -> Any:
    """Features of the items ``keep``, without what lies in the span of those of ``include``."""
    features = kernel.features[keep]
    if not include.size:
        return features
    anchors = kernel.features[include]
    if kernel.is_sparse:
        features, anchors = features.toarray(), anchors.toarray()
    if _log_volume_of_rows(anchors) == -np.inf:
        raise ValueError("include must have a positive probability, got items that the process cannot draw so")
    length = np.sqrt(np.einsum("ij,ij->i", features, features))
    if features.shape[1] <= WORTH_ROTATING:
        # Coordinates in what is orthogonal to them: fewer columns, none of them superfluous.
        directions = np.linalg.qr(anchors.T, mode="complete")[0]
        features = features @ directions[:, min(len(anchors), features.shape[1] - 1) :]
        if len(anchors) == directions.shape[1]:
            features[:] = 0.0
    else:
        directions, _ = np.linalg.qr(anchors.T)
        for _ in range(2):  # what the first pass leaves by rounding, the second removes
            features = features - (features @ directions) @ directions.T
    left = np.sqrt(np.einsum("ij,ij->i", features, features))
    features[left < 1e-12 * length] = 0.0
    return np.asarray(features)
