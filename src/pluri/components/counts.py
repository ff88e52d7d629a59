"""Checks that count-valued families share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def check_counts(X: NDArray[Any]) -> NDArray[Any]:
    """Refuse negative and infinite counts; NaN is a missing value, and fractional counts are allowed."""
    # Two reductions that pass over NaN: each sweep over a source of batches checks them again.
    lowest, highest = np.fmin.reduce(X, axis=None, initial=0.0), np.fmax.reduce(X, axis=None, initial=0.0)
    if lowest < 0:
        raise ValueError(f"X must hold non-negative counts, got {lowest}: Negative values in data")
    if highest == np.inf:
        raise ValueError("X must hold finite counts, got infinity")
    return X
