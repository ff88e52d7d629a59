"""Where the points of a map are, and which of their pictures have room."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Differences and squares of larger numbers may not be finite.
LARGEST = 1e150

Array = NDArray[np.float64]


class Places(NamedTuple):
    """Where the points are.

    Attributes
    ----------
    coordinates : (n_points, n_images, n_axes): one image of each point, or several
    proportions : (n_points, n_images): how much of a point is at each of its images
    """

    coordinates: Array
    proportions: Array


def places_of(model: Any, proportions: ArrayLike | None = None) -> Places:
    """Coordinates of a fitted model, or coordinates themselves, with one or several images of each point.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.plotting.embedding.places import places_of
    >>> places_of(np.zeros((5, 2))).coordinates.shape
    (5, 1, 2)
    """
    found = model
    if hasattr(model, "images_"):
        found = model.images_
        proportions = getattr(model, "proportions_", None) if proportions is None else proportions
    elif hasattr(model, "embedding_"):
        found = model.embedding_
    elif hasattr(model, "fit"):
        raise TypeError(
            f"model must be fitted and have embedding_, or be an array of coordinates, got {type(model).__name__}"
        )
    coordinates = np.asarray(found)
    if coordinates.dtype.kind not in "biuf" or coordinates.ndim not in (2, 3) or 0 in coordinates.shape[1:]:
        raise ValueError(
            "model must be a fitted embedding or coordinates of shape (n_points, n_axes), or (n_points, n_images, "
            f"n_axes), got {coordinates.dtype} of shape {coordinates.shape}"
        )
    coordinates = coordinates.astype(np.float64)
    if coordinates.ndim == 2:
        coordinates = coordinates[:, None]
    _refuse_missing(coordinates)
    shape = coordinates.shape[:2]
    if proportions is None:
        return Places(coordinates, np.full(shape, 1.0 / shape[1]))
    shares = np.asarray(proportions, dtype=np.float64)
    if shares.shape != shape or not (np.isfinite(shares).all() and (shares >= 0).all()):
        raise ValueError(
            f"proportions must be non-negative, one for each of {shape[1]} images of {shape[0]} points, got an array "
            f"of shape {shares.shape}"
        )
    return Places(coordinates, shares)


def _refuse_missing(coordinates: Array) -> None:
    wrong = ~np.isfinite(coordinates).all(axis=(1, 2))
    if wrong.any():
        first, count = int(wrong.argmax()), int(wrong.sum())
        raise ValueError(f"coordinates must be finite, got NaN or infinity at point {first}, and {count} such in all")
    if coordinates.size and np.abs(coordinates).max() > LARGEST:
        raise ValueError(f"coordinates must be numbers up to {LARGEST:g}, got {np.abs(coordinates).max():g}")


def with_room(places: Array, width: float, height: float, order: NDArray[np.intp]) -> list[int]:
    """Points, taken in an order, whose boxes overlap no box of a point taken before.

    Two boxes in one cell of their size would overlap: each cell has one at most, and only nine have to be looked at.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.plotting.embedding.places import with_room
    >>> with_room(np.array([[0.0, 0.0], [0.5, 0.5], [3.0, 0.0]]), 1.0, 1.0, np.arange(3))
    [0, 2]
    """
    scaled = places / [width, height]
    cells: dict[tuple[int, int], int] = {}
    kept = []
    for point in order.tolist():
        column, row = (int(cell) for cell in np.floor(scaled[point]))
        near = (cells.get((column + a, row + b)) for a in (-1, 0, 1) for b in (-1, 0, 1))
        if all(other is None or np.abs(scaled[other] - scaled[point]).max() >= 1 for other in near):
            cells[column, row] = point
            kept.append(point)
    return kept
