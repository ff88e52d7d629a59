"""Batches of memory-mapped files: shipped as a path and a range of rows, read where the work runs.

In the process that opened the file a slice gives a view of the open map; in another process it opens the file again.
The workers of a cluster must therefore see the file under the same path.
"""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.engine.batches import Batch


@dataclass(frozen=True)
class FileArray:
    """Where a two-dimensional array lies in a file: element (i, j) is at ``offset + i strides[0] + j strides[1]``."""

    path: str
    dtype: np.dtype[Any]
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def extent(self) -> int:
        """Number of bytes from the first element to the end of the last."""
        return sum((n - 1) * stride for n, stride in zip(self.shape, self.strides)) + self.dtype.itemsize

    def rows(self, start: int, stop: int) -> FileArray:
        """Give the part that holds the rows ``start:stop``."""
        return replace(self, offset=self.offset + start * self.strides[0], shape=(stop - start, self.shape[1]))

    def open(self) -> NDArray[Any]:
        """Map the array into memory, read-only."""
        if 0 in self.shape:
            return np.empty(self.shape, dtype=self.dtype)
        try:
            raw = np.memmap(self.path, dtype=np.uint8, mode="r", offset=self.offset, shape=(self.extent,))
        except (OSError, ValueError) as error:
            raise OSError(
                f"cannot read bytes {self.offset} to {self.offset + self.extent} of {self.path} in this process: "
                "every worker must see the same file under the same path"
            ) from error
        return np.ndarray(self.shape, dtype=self.dtype, buffer=raw, strides=self.strides)


@dataclass(frozen=True, eq=False)
class NpySlice:
    """A batch of rows of a memory-mapped file; pickles to a few hundred bytes plus its lengths, weights and labels.

    Examples
    --------
    >>> import pickle, tempfile, pathlib
    >>> import numpy as np
    >>> from pluri.engine import NpySource
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "X.npy"
    ...     np.save(path, np.arange(100_000.0).reshape(50_000, 2))
    ...     lazy = list(NpySource(path, batch_size=20_000).batches())[2]
    ...     message = pickle.dumps(lazy)
    ...     batch = pickle.loads(message).load()
    ...     batch.X[0], batch.n_samples, len(message) < 1000
    (array([80000., 80001.]), 10000, True)
    """

    location: FileArray
    lengths: NDArray[np.int64] | None = None
    weight: NDArray[np.float64] | None = None
    labels: NDArray[np.int64] | None = None
    view: NDArray[Any] | None = field(default=None, repr=False)  # of the open map; stays in this process

    def load(self) -> Batch:
        """Give the batch as a view of the file; nothing is read until its values are used."""
        X = self.location.open() if self.view is None else self.view
        return Batch(X, self.lengths, self.weight, self.labels)

    def __reduce__(self) -> tuple[Any, ...]:
        return NpySlice, (self.location, self.lengths, self.weight, self.labels)


def locate(X: NDArray[Any]) -> FileArray | None:
    """Find where a two-dimensional array lies in a file, or None if it does not or cannot be read from there again.

    ``X.offset`` of a sliced ``numpy.memmap`` is that of the array it was sliced from, so the chain of bases is
    followed to the array that owns the map and the distance between the two is added.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.engine.mapped import locate
    >>> locate(np.zeros((3, 2))) is None
    True
    """
    owner: Any = X
    while isinstance(owner, np.ndarray) and not isinstance(owner.base, mmap.mmap):
        owner = owner.base
    # A copy-on-write map ("c") may differ from its file.
    if not isinstance(owner, np.memmap) or owner.filename is None or owner.mode == "c":
        return None
    if X.size == 0 or min(X.strides) < 0 or X.dtype.hasobject:
        return None
    path = os.fspath(owner.filename)
    distance = X.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    location = FileArray(path, X.dtype, int(owner.offset + distance), X.shape, X.strides)
    # A deleted or shortened file can still be read through the open map, but not opened again.
    if not os.path.isfile(path) or os.path.getsize(path) < location.offset + location.extent:
        return None
    if owner.mode != "r":
        owner.flush()
    return location
