"""What a method of estimating the dimension is given, and what it gives."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class DimensionSettings(NamedTuple):
    """Parameters of :class:`pluri.embedding.IntrinsicDimension` that methods read."""

    n_neighbors: int
    min_neighbors: int
    averaging: str
    threshold: float
    radii: tuple[float, float] | None


class Estimate(NamedTuple):
    """A dimension.

    Attributes
    ----------
    dimension : float
    local : (n_samples,), the dimension around each row; None if the method has no such thing
    """

    dimension: float
    local: Array | None
