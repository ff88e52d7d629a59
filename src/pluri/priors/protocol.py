r"""What a prior over the rows of a stochastic matrix must offer.

A model whose M-step maximises :math:`\sum_{ij} C_{ij} \log A_{ij} + \log p(A)` over matrices with rows on the simplex
(transitions of an HMM, categorical emissions, topics) needs three things of the prior: its log density, its gradient
and that maximiser. The density may leave out a constant, always the same one, because only differences matter to EM.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


class RowPriorWarning(UserWarning):
    """A prior over rows did something that the user should know of."""


@runtime_checkable
class RowPrior(Protocol):
    """A prior over the rows of a stochastic matrix.

    ``support`` marks the entries that may be positive; the others are structural zeros, on which the prior has no
    opinion: they do not enter the density and :meth:`maximize` leaves them at zero.
    """

    def log_density(self, rows: ArrayLike, *, support: BoolArray | None = None) -> float:
        """Log density of ``rows``, up to a constant."""
        ...

    def gradient(self, rows: ArrayLike) -> FloatArray:
        """Gradient of :meth:`log_density`, entry by entry (not projected on the simplex)."""
        ...

    def maximize(self, counts: ArrayLike, start: ArrayLike, *, support: BoolArray | None = None) -> FloatArray:
        """Rows that maximise ``sum(counts * log(rows)) + log_density(rows)``; ``start`` are the rows before."""
        ...


@runtime_checkable
class PseudoCountPrior(RowPrior, Protocol):
    """A row prior that only adds pseudo-counts, so that it can be combined with priors that couple the rows."""

    @property
    def floor(self) -> float:
        """Lower bound of the entries whose pseudo-count is negative."""
        ...

    def pseudo_counts(self, shape: tuple[int, ...]) -> FloatArray:
        """Pseudo-counts to add to counts of this shape; negative ones ask for sparsity."""
        ...


def check_rows(
    name: str, rows: ArrayLike, shape: tuple[int, ...] | None = None, support: BoolArray | None = None
) -> FloatArray:
    """Return ``rows`` as a float array of distributions along the last axis, or refuse it in one sentence."""
    values = np.asarray(rows, dtype=np.float64)
    if values.ndim not in (1, 2) or values.shape[-1] == 0:
        raise ValueError(f"{name} must be a row or a matrix with at least one column, got shape {values.shape}")
    if shape is not None and values.shape != shape:
        raise ValueError(f"{name} must have the shape of the counts {shape}, got {values.shape}")
    if not _are_counts(values):
        raise ValueError(f"{name} must be finite and non-negative")
    totals = values.sum(axis=-1)
    if not np.abs(totals - 1.0).max(initial=0.0) <= 1e-6:
        raise ValueError(f"{name} must have rows that sum to 1, got row sums {totals}")
    if support is not None and values[~support].any():
        raise ValueError(f"{name} must be zero outside the support, got positive entries there")
    return values


def _are_counts(values: FloatArray) -> bool:
    """Whether all are finite and none is negative; the minimum and maximum of anything with NaN are NaN."""
    return not values.size or bool(values.min() >= 0 and values.max() < np.inf)


def check_counts(counts: ArrayLike, support: BoolArray | None = None) -> FloatArray:
    """Return ``counts`` as a float array of non-negative numbers that are zero outside ``support``."""
    values = np.asarray(counts, dtype=np.float64)
    if values.ndim not in (1, 2) or values.shape[-1] == 0:
        raise ValueError(f"counts must be a row or a matrix with at least one column, got shape {values.shape}")
    if not _are_counts(values):
        raise ValueError("counts must be finite and non-negative")
    if support is not None:
        check_support(support, values.shape)
        if values[~support].any():
            raise ValueError("counts must be zero outside the support, got positive counts there")
    return values


def check_support(support: BoolArray | None, shape: tuple[int, ...]) -> BoolArray | None:
    """Refuse a support that has another shape, is not boolean or leaves a row empty."""
    if support is None:
        return None
    if support.dtype != np.bool_ or support.shape != shape:
        raise ValueError(f"support must be a boolean array of shape {shape}, got {support.dtype} {support.shape}")
    if not support.any(axis=-1).all():
        raise ValueError("support must leave at least one entry in every row, got an empty row")
    return support


def log_likelihood_of_counts(counts: FloatArray, rows: FloatArray) -> float:
    """``sum(counts * log(rows))`` with ``0 * log(0) = 0``; minus infinity when a counted entry has probability 0."""
    counted = counts > 0
    with np.errstate(divide="ignore"):
        return float(np.sum(counts[counted] * np.log(rows[counted])))
