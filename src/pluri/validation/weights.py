"""Weights of rows: checked in one place, and the sums and means of log densities that they give."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

#: Larger weights overflow when they are multiplied with squares and summed.
LARGEST_WEIGHT = 1e100


def check_row_weight(sample_weight: ArrayLike | None, n_samples: int) -> Array | None:
    """One finite, non-negative weight for each row, not all zero; None stays None."""
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.ndim != 1:
        if weight.ndim == 0:
            weight = np.full(n_samples, float(weight))
        else:
            raise ValueError(f"sample_weight must be 1D, one weight for each row, got shape {weight.shape}")
    if len(weight) != n_samples:
        raise ValueError(f"sample_weight.shape == {weight.shape}, expected {(n_samples,)}: one weight for each row")
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError("sample_weight must be finite and non-negative")
    if weight.max(initial=0.0) > LARGEST_WEIGHT:
        raise ValueError(f"sample_weight must not exceed {LARGEST_WEIGHT:g}, got {weight.max():g}: divide all weights")
    if not (weight > 0).any():
        raise ValueError("sample_weight must have at least one positive weight, got only zero weights")
    return weight


def weighted_total(scores: Array, sample_weight: ArrayLike | None) -> tuple[float, float]:
    """Sum of the scores of rows, and the number of rows: as if each were written out as often as its weight says.

    A row of weight zero does not count, even if it is impossible (a score of minus infinity).
    """
    weight = check_row_weight(sample_weight, len(scores))
    if weight is None:
        return float(np.sum(scores)), float(len(scores))
    counted = weight > 0
    return float(weight[counted] @ scores[counted]), float(weight.sum())


def weighted_mean(scores: Array, sample_weight: ArrayLike | None) -> float:
    """Mean score of a row, by `weighted_total`."""
    total, n_rows = weighted_total(scores, sample_weight)
    return total / n_rows
