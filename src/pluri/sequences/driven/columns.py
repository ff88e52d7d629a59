"""Which columns of X are inputs: known before each step, while the others are what the model describes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


def input_columns(name: str, value: Any, n_features: int, names: Sequence[str] | None = None) -> Integers:
    """Numbers of the columns that an argument lists by number (from the end if negative) or by name.

    Examples
    --------
    >>> from pluri.sequences.driven.columns import input_columns
    >>> input_columns("inputs", ["wind", -1], 3, ["power", "wind", "hour"])
    array([1, 2])
    """
    listed = [] if value is None else [value] if isinstance(value, str | int | np.integer) else list(value)
    found = [_column(name, one, n_features, names) for one in listed]
    if len(set(found)) < len(found):
        raise ValueError(f"{name} must list each column once, got {listed!r}")
    if found and len(found) >= n_features:
        raise ValueError(
            f"{name} must leave at least one column of X that is not an input, got {len(found)} of {n_features} columns"
        )
    return np.array(found, dtype=np.int64)


def _column(name: str, one: Any, n_features: int, names: Sequence[str] | None) -> int:
    if isinstance(one, str):
        if names is None:
            raise ValueError(f"{name} must list columns by number where X has no column names, got {one!r}")
        if one not in names:
            raise ValueError(f"{name} must list columns of X ({', '.join(map(str, names))}), got {one!r}")
        return list(names).index(one)
    if isinstance(one, bool | np.bool_) or not isinstance(one, int | np.integer):
        raise ValueError(f"{name} must list columns of X by number or by name, got {one!r}")
    if not -n_features <= one < n_features:
        raise ValueError(f"{name} must list columns of X, which has {n_features}, got {one}")
    return int(one) % n_features


class Layout(NamedTuple):
    """Where things stand in a row: the columns of X, then `order` times the outputs, the last step first.

    Attributes
    ----------
    n_features : columns of X
    inputs, outputs : numbers of the columns of X that are inputs, and of the others
    order : how many steps back the regressors reach
    """

    n_features: int
    inputs: Integers
    outputs: Integers
    order: int

    @classmethod
    def of(cls, n_features: int, inputs: Integers, order: int = 0) -> Layout:
        """The layout whose outputs are all columns but the inputs."""
        return cls(n_features, inputs, np.setdiff1d(np.arange(n_features), inputs), order)

    @property
    def n_regressors(self) -> int:
        """Number of regressors: lagged outputs, then inputs."""
        return self.order * len(self.outputs) + len(self.inputs)

    @property
    def columns(self) -> Integers:
        """Lagged outputs, inputs, outputs."""
        lags = self.n_features + np.arange(self.order * len(self.outputs))
        return np.concatenate([lags, self.inputs, self.outputs]).astype(np.int64)

    def with_lags(self, X: NDArray[Any], lengths: Integers) -> NDArray[Any]:
        """X with the outputs of the last steps beside it; before the first step of a sequence they are missing."""
        if not self.order:
            return X
        width = len(self.outputs)
        wide = np.full((len(X), self.n_features + self.order * width), np.nan, dtype=X.dtype)
        wide[:, : self.n_features] = X
        place = np.arange(len(X)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        for lag in range(1, self.order + 1):
            rows = np.flatnonzero(place >= lag)
            columns = self.n_features + (lag - 1) * width + np.arange(width)
            wide[rows[:, None], columns] = X[rows[:, None] - lag, self.outputs]
        return wide
