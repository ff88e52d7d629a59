"""What lies between points of a map: rows that a reversible model makes of places, along straight cuts.

No browser can run the model, so the rows are made when the page is written: exactly along cuts that were asked for, and
over a lattice of places, between which the page interpolates along any cut that a reader chooses. Where a map has more
than two coordinates, the lattice is of the first two, and the others at a place are those of its nearest points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.report.embedding_data import packed
from pluri.report.pictures import MOST_PIXELS, Range, sprite_sheet, thumbnails

#: Pictures along a cut, both ends included.
STEPS = 9
MOST_CUTS = 200
#: Pixels of the pictures of the lattice, a share of those of the whole page, and of a row that is drawn as a line.
LATTICE_PIXELS = MOST_PIXELS // 4
MOST_FEATURES = 512
N_NEAREST = 5
MARGIN = 0.02

Array = NDArray[np.float64]
Inverse = Callable[[Array], Any]


class Look(NamedTuple):
    """How rows are shown: as pictures of a shape (height, width, channels), or as lines if there is none."""

    shape: tuple[int, int, int] | None
    values: Range | None


def inverse_of(model: Any, inverse: Any) -> Inverse | None:
    """The way back from coordinates to rows: given as a function or model, or that of the model itself."""
    given = model if inverse is None else inverse
    found = getattr(given, "inverse_transform", None)
    if callable(found):
        return found
    if inverse is not None and not callable(inverse):
        raise TypeError(f"inverse must be a function or a model with inverse_transform, got {type(inverse).__name__}")
    return inverse


def synthesized(inverse: Inverse, coordinates: Array) -> Array:
    """Rows of coordinates, checked."""
    rows = np.asarray(inverse(coordinates), dtype=np.float64)
    if rows.ndim < 2 or len(rows) != len(coordinates) or not np.isfinite(rows).all():
        raise ValueError(
            f"inverse must give a row of finite numbers for each of {len(coordinates)} places, got shape {rows.shape}"
        )
    return rows.reshape(len(rows), -1)


def shows(look: Look, inverse: Inverse, coordinates: Array) -> bool:
    """Whether rows can be shown: as pictures of this look, or as lines that are not too long."""
    n_features = synthesized(inverse, coordinates[:1]).shape[1]
    return n_features <= MOST_FEATURES if look.shape is None else n_features == np.prod(look.shape)


def lattice_places(coordinates: Array, size: int) -> tuple[Array, Array]:
    """Places of a lattice over the first two coordinates, row by row from the lowest, and its corners.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.report.embedding_cuts import lattice_places
    >>> places, corners = lattice_places(np.array([[0.0, 0.0], [1.0, 2.0]]), 3)
    >>> places.shape, corners.round(2).tolist()
    ((9, 2), [[-0.02, -0.04], [1.02, 2.04]])
    """
    flat = coordinates[:, :2]
    low, high = flat.min(axis=0), flat.max(axis=0)
    extent = np.where(high > low, high - low, 1.0)
    corners = np.array([low - MARGIN * extent, high + MARGIN * extent])
    sides = [np.linspace(corners[0, axis], corners[1, axis], size) for axis in range(2)]
    places = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    if coordinates.shape[1] == 2:
        return places, corners
    from sklearn.neighbors import NearestNeighbors

    nearest = NearestNeighbors(n_neighbors=min(N_NEAREST, len(flat))).fit(flat / extent)
    rows = nearest.kneighbors(places / extent, return_distance=False)
    return np.hstack([places, coordinates[rows, 2:].mean(axis=1)]), corners


def lattice_data(inverse: Inverse, coordinates: Array, look: Look, size: int) -> dict[str, Any]:
    """Rows over a lattice, for the page."""
    places, corners = lattice_places(coordinates, size)
    return {"size": size, "corners": corners.tolist(), **_shown(synthesized(inverse, places), look)}


def checked_cuts(cuts: Sequence[tuple[int, int]], n_points: int) -> NDArray[np.int64]:
    """Pairs of points."""
    pairs = np.asarray(cuts)
    if pairs.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ValueError(f"cuts must be pairs of points, as in [(0, 5)], got an array of shape {pairs.shape}")
    if pairs.min() < 0 or pairs.max() >= n_points:
        raise ValueError(f"cuts must hold points from 0 to {n_points - 1}, got {pairs.min()} to {pairs.max()}")
    if len(pairs) > MOST_CUTS:
        raise ValueError(f"cuts must be at most {MOST_CUTS}, got {len(pairs)}: each adds {STEPS} pictures to the page")
    return pairs.astype(np.int64)


def cut_data(inverse: Inverse, coordinates: Array, look: Look, pairs: NDArray[np.int64]) -> dict[str, Any]:
    """Rows along straight cuts, one cut after the other, for the page."""
    share = np.linspace(0.0, 1.0, STEPS)[:, None]
    places = [(1 - share) * coordinates[begin] + share * coordinates[end] for begin, end in pairs]
    rows = synthesized(inverse, np.concatenate(places))
    return {"pairs": pairs.tolist(), "steps": STEPS, **_shown(rows, look)}


def _shown(rows: Array, look: Look) -> dict[str, Any]:
    n_features = rows.shape[1]
    if look.shape is None:
        if n_features > MOST_FEATURES:
            raise ValueError(
                f"picture_shape must be given for rows of more than {MOST_FEATURES} features, which cannot be drawn as "
                f"lines, got rows of {n_features}"
            )
        return {"features": n_features, "rows": packed(rows.astype(np.float32))}
    if n_features != np.prod(look.shape):
        raise ValueError(
            f"picture_shape must be that of the model's rows, of {n_features} features, got {look.shape}, with "
            f"{int(np.prod(look.shape))} values"
        )
    pictures = rows.reshape(len(rows), *look.shape)
    values = look.values or Range(float(rows.min()), float(rows.max()))
    return {"pictures": sprite_sheet(thumbnails(pictures, values, most_pixels=LATTICE_PIXELS))}


def look_of(images: NDArray[Any] | None, picture_shape: ArrayLike | None, values: Range | None) -> Look:
    """How rows are shown: in the given shape, else in that of the pictures of the points."""
    if picture_shape is None:
        return Look(None, None) if images is None else Look(images.shape[1:], values)
    shape = tuple(int(side) for side in np.atleast_1d(picture_shape))
    if len(shape) == 2:
        shape = (*shape, 1)
    if len(shape) != 3 or shape[2] not in (1, 3) or min(shape) < 1:
        raise ValueError(f"picture_shape must be (height, width) or (height, width, 3), got {picture_shape}")
    return Look(shape, values)
