"""Pictures as arrays, with scikit-image's conventions: (height, width) is grey, (height, width, 3) is colour.

Integers are scaled to [0, 1], numbers with a point are taken as they are, and NaN marks a missing pixel.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
TOLD = "(height, width) or (height, width, 3)"


class Picture(NamedTuple):
    """A picture: `values` (height, width, 1 or 3) with NaN where missing, the `shape` that came, and the `largest`.

    `largest` is the integer that became 1; None if the numbers came with a point.
    """

    values: Array
    shape: tuple[int, ...]
    largest: int | None

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which numbers are not there."""
        return np.isnan(self.values)

    def restore(self, values: Array) -> Array:
        """An array of the shape that came; between 0 and 1 if integers came."""
        return (np.clip(values, 0, 1) if self.largest is not None else values).reshape(self.shape)


def as_picture(image: ArrayLike, mask: ArrayLike | None = None, *, name: str = "image") -> Picture:
    """Check a picture and scale it.

    Parameters
    ----------
    image : array-like of shape (height, width) or (height, width, 3)
        Unsigned 8- or 16-bit integers, Booleans, or floating point.
    mask : array-like of shape (height, width), optional
        Where it is not 0, the pixel is missing.
    name : str
        For error messages.
    """
    found = np.asarray(image)
    if found.ndim == 3 and found.shape[2] == 4:
        raise ValueError(
            f"{name} must have no alpha channel, got shape {found.shape}; "
            "restore image[..., :3] and put the fourth channel back afterwards"
        )
    if found.ndim not in (2, 3) or (found.ndim == 3 and found.shape[2] != 3):
        raise ValueError(f"{name} must have the shape {TOLD}, got {found.shape}")
    values, largest = _scaled(found, name)
    values = values.reshape(*found.shape[:2], -1)
    if np.isinf(values).any() or np.nanmax(np.abs(values), initial=0.0) > 1e100:
        raise ValueError(f"{name} must hold finite numbers of at most 1e100, or NaN where a pixel is missing")
    if 0 < np.nanmax(np.abs(values), initial=0.0) < 1e-100:
        raise ValueError(f"{name} must not hold numbers below 1e-100 only: they cannot be squared; rescale it")
    if mask is not None:
        values = np.where(_checked_mask(mask, found.shape[:2])[..., None], np.nan, values)
    return Picture(values, found.shape, largest)


def as_observed(picture: Picture) -> Picture:
    """The picture, of which at least something must be there."""
    if picture.missing.all():
        raise ValueError("image must have at least one pixel that is not missing, got none")
    return picture


def _scaled(found: NDArray[Any], name: str) -> tuple[Array, int | None]:
    if found.dtype == np.bool_:
        return found.astype(np.float64), 1
    if found.dtype in (np.uint8, np.uint16):
        largest = int(np.iinfo(found.dtype).max)
        return found / float(largest), largest
    if found.dtype.kind == "f":
        return found.astype(np.float64), None
    raise ValueError(
        f"{name} must hold uint8, uint16, Booleans or floating-point numbers, got {found.dtype}; "
        "other integers have no known range"
    )


def _checked_mask(mask: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    found = np.asarray(mask)
    if found.shape != shape or found.dtype.kind not in "biuf":
        raise ValueError(f"mask must be an array of numbers of shape {shape}, got {found.dtype} of {found.shape}")
    return np.asarray(found != 0)
