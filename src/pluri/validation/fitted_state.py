"""What the arrays of a fitted model must look like, said once: a table of shapes and ranges, held against a model.

Compiled loops do not look where they read and write, so a model whose arrays do not belong together can end the process
that uses it. A model that comes from a file is therefore held against the table of its class, `_fitted_layout`, which
gives for each attribute the names of its axes. A name that is an attribute of the model (``n_features_in_``) stands for
its value; any other name stands for one length, the same wherever it occurs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Sums of distributions may be off by so much; what is in a file was rounded on another machine.
TOLERANCE = 1e-6


@dataclass(frozen=True, init=False)
class Stored:
    """What an array must look like; see `check_layout`.

    Parameters
    ----------
    *axes : str, int or None
        Length of each axis: a number, a name, a name and what is added to it ("n+1"), or None for any.
    whole : bool, default=False
        Whether only integers (or truth values) will do.
    least, below : number or str, optional
        Range of all entries: at least the one and less than the other; a name stands for its length.
    finite : bool, default=True
        Whether NaN and infinities are refused.
    simplex : bool, default=False
        Whether the last axis holds distributions.
    """

    axes: tuple[str | int | None, ...]
    whole: bool
    least: float | str | None
    below: float | str | None
    finite: bool
    simplex: bool

    def __init__(
        self,
        *axes: str | int | None,
        whole: bool = False,
        least: float | str | None = None,
        below: float | str | None = None,
        finite: bool = True,
        simplex: bool = False,
    ) -> None:
        fields = {"axes": axes, "whole": whole, "least": least, "below": below, "finite": finite, "simplex": simplex}
        for name, value in fields.items():
            object.__setattr__(self, name, value)


def check_layout(owner: Any, layout: Mapping[str, Stored]) -> dict[str, int]:
    """Refuse a model whose attributes are not as its table says; those that it lacks, or that are None, are skipped.

    Parameters
    ----------
    owner : object
        A model, or a part of one.
    layout : dict of str to Stored
        What each attribute must look like. A name with ``[]`` is a list (or the values of a dict) of such arrays.

    Returns
    -------
    dict of str to int
        The lengths that names stand for.

    Raises
    ------
    ValueError
        In one sentence that names the attribute.

    Examples
    --------
    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> from pluri.validation import Stored, check_layout
    >>> layout = {"means_": Stored("k", "n_features_in_"), "labels_": Stored("n", whole=True, least=0, below="k")}
    >>> model = SimpleNamespace(n_features_in_=2, means_=np.zeros((3, 2)), labels_=np.array([0, 2, 1]))
    >>> check_layout(model, layout)["k"]
    3
    >>> model.labels_[1] = 2**40
    >>> check_layout(model, layout)
    Traceback (most recent call last):
    ...
    ValueError: labels_ must be less than k (3), got 1099511627776
    """
    lengths: dict[str, int] = {}
    for name, expected in layout.items():
        for place, value in _values(owner, name):
            _check_one(owner, place, value, expected, lengths)
    return lengths


def _values(owner: Any, name: str) -> Iterator[tuple[str, Any]]:
    value = getattr(owner, name.removesuffix("[]"), None)
    if value is None:
        return
    if not name.endswith("[]"):
        yield name, value
        return
    name = name.removesuffix("[]")
    if not isinstance(value, list | tuple | dict):
        raise ValueError(f"{name} must be a list of arrays, got {type(value).__name__}")
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        yield f"{name}[{key!r}]", item


def _check_one(owner: Any, name: str, value: Any, expected: Stored, lengths: dict[str, int]) -> None:
    array = np.asarray(value)
    kinds = "biu" if expected.whole else "biuf"
    if array.dtype.kind not in kinds or not array.dtype.isnative:
        raise ValueError(f"{name} must hold {'integers' if expected.whole else 'numbers'}, got {array.dtype}")
    if array.ndim != len(expected.axes):
        raise ValueError(f"{name} must have {len(expected.axes)} axes, got shape {array.shape}")
    for axis, extent in zip(expected.axes, array.shape):
        wanted = _length(owner, axis, extent, lengths)
        if extent != wanted:
            told = ", ".join(map(str, expected.axes))
            raise ValueError(f"{name} must have shape ({told}) with {axis} = {wanted}, got {array.shape}")
    if expected.finite and not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {array[~np.isfinite(array)].flat[0]}")
    if expected.least is not None and array.size:
        least, told = _bound(owner, expected.least, lengths)
        if (array < least).any():
            raise ValueError(f"{name} must be at least {told}, got {array.min()}")
    if expected.below is not None and array.size:
        below, told = _bound(owner, expected.below, lengths)
        if (array >= below).any():
            raise ValueError(f"{name} must be less than {told}, got {array.max()}")
    if expected.simplex:
        _check_simplex(name, array)


def _length(owner: Any, axis: str | int | None, extent: int, lengths: dict[str, int]) -> int:
    """What an axis must be; a name that is new takes the length that it meets."""
    if axis is None:
        return extent
    if isinstance(axis, int):
        return axis
    name, _, more = axis.partition("+")
    added = int(more or 0)
    known = getattr(owner, name, lengths.get(name))
    if not isinstance(known, Integral):
        known = lengths.setdefault(name, extent - added)
    return int(known) + added


def _bound(owner: Any, bound: float | str, lengths: dict[str, int]) -> tuple[float, str]:
    if not isinstance(bound, str):
        return bound, f"{bound:g}"
    known = getattr(owner, bound, lengths.get(bound))
    if not isinstance(known, Integral):
        raise ValueError(f"{bound} must be known, got nothing that tells it")
    return int(known), f"{bound} ({known})"


def _check_simplex(name: str, array: NDArray[Any]) -> None:
    if (array < -TOLERANCE).any():
        raise ValueError(f"{name} must hold probabilities, got {array.min()}")
    sums = array.sum(axis=-1, dtype=np.float64)
    if (np.abs(sums - 1.0) > TOLERANCE).any():
        raise ValueError(f"{name} must sum to 1, got {sums.flat[np.abs(sums - 1.0).argmax()]}")


def check_compressed(name: str, indptr: Any, indices: Any, n_rows: int, n_columns: int) -> None:
    """Refuse places of a compressed sparse matrix that lie outside it.

    Parameters
    ----------
    name : str
        What the matrix is called.
    indptr : array of shape (n_rows + 1,)
        Where the places of each row begin and end.
    indices : array
        Columns, one row after the other.
    n_rows, n_columns : int
        The shape.

    Examples
    --------
    >>> from pluri.validation import check_compressed
    >>> check_compressed("table", [0, 1, 3], [0, 0, 1], 2, 2)
    >>> check_compressed("table", [0, 1, 3], [0, 0, 7], 2, 2)
    Traceback (most recent call last):
    ...
    ValueError: the indices of table must lie between 0 and 1, got 7
    """
    starts, places = np.asarray(indptr), np.asarray(indices)
    for part, array in (("indptr", starts), ("indices", places)):
        if array.dtype.kind not in "iu" or not array.dtype.isnative or array.ndim != 1:
            raise ValueError(f"the {part} of {name} must be integers in one row, got {array.dtype} {array.shape}")
    if len(starts) != n_rows + 1 or starts[0] != 0 or starts[-1] != len(places) or (starts[1:] < starts[:-1]).any():
        raise ValueError(f"the indptr of {name} must rise from 0 to {len(places)} in {n_rows} steps")
    if len(places) and (places.min() < 0 or places.max() >= n_columns):
        wrong = places.min() if places.min() < 0 else places.max()
        raise ValueError(f"the indices of {name} must lie between 0 and {n_columns - 1}, got {wrong}")
