"""Pictures as measurements of their tiles, and back.

A picture is cut into tiles that do not overlap, each of which is measured by a projection. Sides that are not multiples
of the tile are continued by reflection, and cropped again on the way back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, check_is_fitted

from pluri.factors.dictionaries.sensing.projections import (
    Kind,
    as_projections,
    check_few,
    measure,
    random_projections,
)
from pluri.validation import Allowed, Flag, Stored, Whole, as_generator, check_parameters
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]

RANDOM = ("gaussian", "binary", "mask")


class PatchCompressor(Estimator):
    """Measurements of the tiles of a picture.

    Parameters
    ----------
    patch_size : int, default=8
        Side of a tile in pixels.
    n_measurements : int, default=25
        Measurements of a tile; not used if `projection` is an array.
    projection : {"gaussian", "binary", "mask"} or array of shape (n_measurements, n_features), default="gaussian"
        What the projections are: drawn at random (`random_projections`), or one that is given for all tiles, such as
        that of `SVDProjection`.
    shared : bool, default=False
        Whether all tiles have the same random projection; otherwise each has its own.
    random_state : int, Generator, RandomState or None, default=None

    Attributes
    ----------
    projections_ : array of shape (n_tiles, n_measurements, n_features) or (n_measurements, n_features)
    locations_ : array of shape (n_tiles, 2)
        Row and column of the centre of each tile, in pixels.
    image_shape_ : tuple of int
        Shape of the picture, (height, width) or (height, width, channels). A tile of a colour picture has the
        channels of all its pixels as features.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors.dictionaries.sensing import PatchCompressor
    >>> image = np.add.outer(np.arange(20.0), np.arange(13.0))
    >>> compressor = PatchCompressor(4, n_measurements=6, random_state=0).fit(image)
    >>> compressor.transform(image).shape
    (20, 6)
    >>> tiles = compressor.tiles(image)
    >>> bool(np.array_equal(compressor.inverse_transform(tiles), image))
    True
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "patch_size": Whole(1),
        "n_measurements": Whole(1),
        "shared": Flag(),
    }
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "locations_": Stored("n_tiles", 2),
    }

    def __init__(
        self,
        patch_size: int = 8,
        n_measurements: int = 25,
        *,
        projection: Any = "gaussian",
        shared: bool = False,
        random_state: Any = None,
    ) -> None:
        self.patch_size = patch_size
        self.n_measurements = n_measurements
        self.projection = projection
        self.shared = shared
        self.random_state = random_state

    def fit(self, image: Any, y: Any = None) -> Self:
        """Draw the projections for pictures of this shape.

        Parameters
        ----------
        image : array-like of shape (height, width) or (height, width, channels)
        y : ignored

        Returns
        -------
        self : object
        """
        check_parameters(self)
        picture = checked_picture(image)
        side = int(self.patch_size)
        rows, columns = (-(-extent // side) for extent in picture.shape[:2])
        n_features = side * side * (picture.shape[2] if picture.ndim == 3 else 1)
        if isinstance(self.projection, str):
            if self.projection not in RANDOM:
                raise ValueError(
                    f"projection must be 'gaussian', 'binary', 'mask' or an array, got {self.projection!r}"
                )
            check_few(int(self.n_measurements), n_features)
            self.projections_ = random_projections(
                int(self.n_measurements), n_features, None if self.shared else rows * columns,
                kind=cast(Kind, self.projection), random_state=as_generator(self.random_state),
            )  # fmt: skip
        else:
            self.projections_ = as_projections(self.projection, rows * columns, n_features)
        self.image_shape_ = picture.shape
        corners = np.stack(np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij"), axis=-1)
        self.locations_ = corners.reshape(-1, 2) * float(side) + (side - 1) / 2
        return self

    def tiles(self, image: Any) -> Array:
        """The tiles of a picture as rows, from left to right and top to bottom: (n_tiles, n_features)."""
        picture = self._known(image)
        side = int(self.patch_size)
        margins = [(0, -extent % side) for extent in picture.shape[:2]] + [(0, 0)] * (picture.ndim - 2)
        padded = np.pad(picture, margins, mode="reflect")
        rows, columns = padded.shape[0] // side, padded.shape[1] // side
        blocks = padded.reshape(rows, side, columns, side, -1).transpose(0, 2, 1, 3, 4)
        return np.ascontiguousarray(blocks.reshape(rows * columns, -1))

    def transform(self, image: Any) -> Array:
        """Measurements of the tiles of a picture: (n_tiles, n_measurements)."""
        return measure(self.tiles(image), self.projections_)

    def fit_transform(self, image: Any, y: Any = None) -> Array:
        """Draw the projections, then measure the tiles."""
        return self.fit(image).transform(image)

    def inverse_transform(self, tiles: Any) -> Array:
        """The picture that tiles (n_tiles, n_features) make up, cropped to the shape that was fitted."""
        check_is_fitted(self)
        side, shape = int(self.patch_size), self.image_shape_
        rows, columns = (-(-extent // side) for extent in shape[:2])
        values = check_array(tiles, dtype=np.float64, input_name="tiles")
        expected = (rows * columns, side * side * int(np.prod(shape[2:])))
        if values.shape != expected:
            raise ValueError(f"tiles must have shape {expected}, got {values.shape}")
        blocks = values.reshape(rows, columns, side, side, -1).transpose(0, 2, 1, 3, 4)
        whole = blocks.reshape(rows * side, columns * side, -1)[: shape[0], : shape[1]]
        return np.ascontiguousarray(whole.reshape(shape))

    def _known(self, image: Any) -> Array:
        check_is_fitted(self)
        picture = checked_picture(image)
        if picture.shape != self.image_shape_:
            raise ValueError(f"image must have the shape {self.image_shape_} that was fitted, got {picture.shape}")
        return picture


def checked_picture(image: Any) -> Array:
    """A picture as an array of numbers, grey or with channels last."""
    found = check_array(image, dtype=np.float64, allow_nd=True, ensure_2d=False, input_name="image")
    if found.ndim not in (2, 3):
        raise ValueError(f"image must have shape (height, width) or (height, width, channels), got {found.shape}")
    return np.asarray(found)
