"""Checks of arrays and settings that every family makes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def is_source(X: Any) -> bool:
    """Whether X gives batches by itself."""
    return hasattr(X, "batches") and not hasattr(X, "shape")


def unmasked(X: Any) -> Any:
    """X with NaN where a masked array hides a value; anything else as it is."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    if not np.ma.getmaskarray(X).any():
        return np.asarray(X)
    if X.dtype.kind in "OUS":
        return np.ma.filled(X.astype(object), None)
    return np.ma.filled(X.astype(np.float64), np.nan)


def plain_array(X: Any, dtype: Any = np.float64) -> NDArray[Any]:
    """X for compiled loops, which would be compiled again for every other layout: C order, aligned, not read-only.

    What is so already is not copied. Nor is memory that is read-only (a mapped file, or what joblib hands to its
    workers): the array that comes back looks at it without saying so, and is for loops that do not write to it.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.validation import plain_array
    >>> X = np.ones((2, 3))
    >>> X.flags.writeable = False
    >>> plain = plain_array(X)
    >>> plain.flags.writeable, np.shares_memory(plain, X), plain_array(plain) is plain
    (True, True, True)
    """
    array = np.require(X, dtype, ["C", "A", "E"])
    return array if array.flags.writeable else np.asarray(_Unlocked(array))


class _Unlocked:
    """The memory of an array without the mark that it is read-only."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array  # which owns the memory
        self.__array_interface__ = array.__array_interface__ | {"data": (array.ctypes.data, False)}


def check_width(X: NDArray[Any], n_features: int) -> None:
    """Refuse rows of another width than the parameters: compiled loops do not look where they read and write."""
    if X.shape[1] != n_features:
        raise ValueError(f"X must have {n_features} features, as many as the parameters describe, got {X.shape[1]}")


def check_broadcast(name: str, value: Any, shape: tuple[int, ...], *, least: float = -np.inf) -> NDArray[np.float64]:
    """A hyper-parameter as an array of this shape; refuse what does not fit, is not finite or is below `least`."""
    try:
        array = np.broadcast_to(np.asarray(value, dtype=np.float64), shape)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a number or fit the shape {shape}, got {value!r}") from error
    if not np.isfinite(array).all() or (array < least).any():
        bound = "" if least == -np.inf else f" and at least {least:g}"
        raise ValueError(f"{name} must be finite{bound}, got {value!r}")
    return array


def check_distributions(name: str, values: NDArray[Any]) -> None:
    """Refuse an array whose last axis does not hold distributions."""
    if not np.isfinite(values).all() or (values < 0).any():
        raise ValueError(f"{name} must be finite and non-negative")
    sums = values.sum(axis=-1)
    if not np.allclose(sums, 1.0):
        raise ValueError(
            f"{name} must sum to 1, got {sums}" if sums.ndim == 0 else f"{name} rows must sum to 1, got {sums}"
        )
