"""Checks that count-valued families share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def check_counts(X: NDArray[Any]) -> NDArray[Any]:
    """Refuse negative and infinite counts; NaN is a missing value, and fractional counts are allowed."""
    if X.size and np.isposinf(X).any():
        raise ValueError("X must hold finite counts, got infinity")
    if X.size and not (np.isnan(X) | (X >= 0)).all():
        raise ValueError(f"X must hold non-negative counts, got {np.nanmin(X)}: Negative values in data")
    return X
