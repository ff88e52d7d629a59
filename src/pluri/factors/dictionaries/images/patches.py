"""A picture as overlapping patches, and back: where patches overlap, their average."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from pluri.factors.dictionaries.images.pixels import as_picture
from pluri.validation import Allowed, Stored, Whole, check_parameters
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]


class PatchGrid(NamedTuple):
    """Where the patches of a picture are: their first rows and first columns, and how long their sides are."""

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    size: int

    @classmethod
    def of(cls, shape: tuple[int, ...], size: int, stride: int = 1) -> PatchGrid:
        """All places a stride apart, and the last one, so that every pixel is in a patch."""
        if stride > size:
            raise ValueError(f"stride must be at most patch_size ({size}), or pixels are left out, got {stride}")
        if min(shape[:2]) < size:
            raise ValueError(f"image must have at least {size} x {size} pixels (patch_size), got {shape[:2]}")
        places = [np.unique(np.append(np.arange(0, side - size + 1, stride), side - size)) for side in shape[:2]]
        return cls(places[0], places[1], size)

    @property
    def n_patches(self) -> int:
        """How many there are."""
        return len(self.rows) * len(self.columns)

    def windows(self, pixels: NDArray[Any]) -> NDArray[Any]:
        """View of a picture (height, width, c) as (height - size + 1, width - size + 1, size, size, c)."""
        return np.moveaxis(sliding_window_view(pixels, (self.size, self.size), axis=(0, 1)), 2, -1)

    def extract(self, pixels: NDArray[Any], which: Any = slice(None)) -> NDArray[Any]:
        """Some patches of a picture (height, width, c), as rows; they are counted along its rows."""
        numbers = np.arange(self.n_patches)[which]
        rows, columns = self.rows[numbers // len(self.columns)], self.columns[numbers % len(self.columns)]
        return self.windows(pixels)[rows, columns].reshape(len(numbers), -1)

    def add(self, total: NDArray[Any], patches: NDArray[Any], which: slice = slice(None)) -> None:
        """Change the picture `total`, (height, width, c): add patches to it.

        `which` are whole rows of patches.
        """
        first, stop, _ = which.indices(len(self.rows))
        c = total.shape[2]
        shaped = patches.reshape(stop - first, len(self.columns), self.size, self.size, c)
        for i in range(self.size):
            for j in range(self.size):
                place = np.ix_(self.rows[first:stop] + i, self.columns + j)
                total[place] += shaped[:, :, i, j]


class PatchExtractor(TransformerMixin, Estimator):
    """Cut a picture into overlapping patches, and put patches together to a picture.

    Parameters
    ----------
    patch_size : int, default=8
        Pixels of a side of a patch.
    stride : int, default=1
        Pixels from one patch to the next, at most `patch_size`. The last patch of a row or column may be nearer to the
        one before: every pixel is in a patch.

    Attributes
    ----------
    image_shape_ : tuple of int
        Shape of the picture, (height, width) or (height, width, 3).
    locations_ : array of shape (n_patches, 2)
        Row and column of the first pixel of each patch.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors import PatchExtractor
    >>> image = np.arange(30.0).reshape(5, 6)
    >>> extractor = PatchExtractor(3, stride=2).fit(image)
    >>> patches = extractor.transform(image)
    >>> patches.shape
    (6, 9)
    >>> bool((extractor.inverse_transform(patches) == image).all())
    True
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {"patch_size": Whole(1), "stride": Whole(1)}
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {"locations_": Stored("n_patches", 2, least=0)}

    def __init__(self, patch_size: int = 8, *, stride: int = 1) -> None:
        self.patch_size = patch_size
        self.stride = stride

    def fit(self, image: ArrayLike, y: Any = None) -> Self:
        """Note the shape of a picture.

        Parameters
        ----------
        image : array-like of shape (height, width) or (height, width, 3)
        y : ignored

        Returns
        -------
        self : object
        """
        check_parameters(self)
        picture = as_picture(image)
        grid = self._grid(picture.shape)
        self.image_shape_ = tuple(picture.shape)
        rows, columns = np.meshgrid(grid.rows, grid.columns, indexing="ij")
        self.locations_ = np.column_stack([rows.ravel(), columns.ravel()])
        return self

    def transform(self, image: ArrayLike) -> Array:
        """Patches of a picture, which may have another size than the one fitted.

        Parameters
        ----------
        image : array-like of shape (height, width) or (height, width, 3)
            Integers are scaled to [0, 1], as scikit-image does; NaN marks a missing pixel.

        Returns
        -------
        array of shape (n_patches, patch_size * patch_size) or (n_patches, patch_size * patch_size * 3)
            Along the rows of the picture.
        """
        check_is_fitted(self)
        picture = as_picture(image)
        if len(picture.shape) != len(self.image_shape_):
            raise ValueError(f"image must be like the one fitted, {self.image_shape_}, got shape {picture.shape}")
        return np.ascontiguousarray(self._grid(picture.shape).extract(picture.values))

    def inverse_transform(self, patches: ArrayLike) -> Array:
        """Picture of the shape fitted: the average of the patches that have a pixel, NaN left out.

        Parameters
        ----------
        patches : array-like of shape (n_patches, n_features)
            As :meth:`transform` gives them.

        Returns
        -------
        array of shape (height, width) or (height, width, 3)
            NaN where no patch has a value.
        """
        check_is_fitted(self)
        grid = self._grid(self.image_shape_)
        c = 1 if len(self.image_shape_) == 2 else 3
        values, shape = np.asarray(patches, dtype=np.float64), (grid.n_patches, grid.size**2 * c)
        if values.shape != shape:
            raise ValueError(
                f"patches must have shape {shape} for a picture of {self.image_shape_}, got {values.shape}"
            )
        height, width = self.image_shape_[:2]
        return average_patches(grid, values, (height, width, c)).reshape(self.image_shape_)

    def _grid(self, shape: tuple[int, ...]) -> PatchGrid:
        return PatchGrid.of(shape, int(self.patch_size), int(self.stride))


def average_patches(grid: PatchGrid, patches: Array, shape: tuple[int, int, int]) -> Array:
    """Average over the patches that have a pixel; if they agree on it, exactly what they say.

    Differences from one of them are averaged: the sum of equal numbers divided by their number may be another one.
    """
    there = ~np.isnan(patches)
    count, first, total = np.zeros(shape), np.full(shape, -np.inf), np.zeros(shape)
    grid.add(count, there.astype(np.float64))
    _largest(grid, first, np.where(there, patches, -np.inf))
    base = np.where(count > 0, first, 0.0)
    grid.add(total, np.where(there, patches - grid.extract(base), 0.0))
    return np.where(count > 0, base + total / np.maximum(count, 1), np.nan)


def _largest(grid: PatchGrid, found: Array, patches: Array) -> None:
    shaped = patches.reshape(len(grid.rows), len(grid.columns), grid.size, grid.size, found.shape[2])
    for i in range(grid.size):
        for j in range(grid.size):
            place = np.ix_(grid.rows + i, grid.columns + j)
            found[place] = np.maximum(found[place], shaped[:, :, i, j])
