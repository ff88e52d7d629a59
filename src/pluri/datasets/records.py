"""The record every dataset of labelled sequences returns.

Fields are read as attributes or by name, as in scikit-learn's ``Bunch``; the sequences lie one after the other in ``X``
and ``lengths`` says where to cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, repr=False)
class LabelledSequences:
    """Sequences of observations with the state of each.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        Observations of all sequences.
    lengths : ndarray of shape (n_sequences,)
        Lengths of the sequences; they sum to ``n_samples``.
    states : ndarray of shape (n_samples,)
        True state of each observation, from 0.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.datasets import LabelledSequences
    >>> data = LabelledSequences(X=np.zeros((5, 1)), lengths=np.array([3, 2]), states=np.array([0, 1, 1, 0, 0]))
    >>> data
    LabelledSequences(X=float64[5, 1], lengths=int64[2], states=int64[5])
    >>> [states.tolist() for X, states in data.sequences()]
    [[0, 1, 1], [0, 0]]
    >>> sorted(data.keys())
    ['X', 'lengths', 'states']
    """

    X: NDArray[Any]
    lengths: NDArray[np.int64]
    states: NDArray[np.int64]

    @property
    def y(self) -> NDArray[np.int64]:
        """The states, under the name that classifiers use."""
        return self.states

    def sequences(self) -> Iterator[tuple[NDArray[Any], NDArray[np.int64]]]:
        """Observations and states of one sequence after the other (views)."""
        stops = np.cumsum(self.lengths)
        for start, stop in zip(stops - self.lengths, stops):
            yield self.X[start:stop], self.states[start:stop]

    def keys(self) -> list[str]:
        """Names of the fields."""
        return [field.name for field in fields(self)]

    def __getitem__(self, name: str) -> Any:
        """Return a field by its name."""
        if name not in self.keys():
            raise KeyError(name)
        return getattr(self, name)

    def __repr__(self) -> str:
        """Name, kind and shape of each field instead of its values."""
        return f"{type(self).__name__}({', '.join(f'{name}={_describe(self[name])}' for name in self.keys())})"


def _describe(value: Any) -> str:
    if isinstance(value, np.ndarray):
        kind = "str" if value.dtype.kind == "U" else str(value.dtype)
        return f"{kind}{list(value.shape)}"
    return f"{type(value).__name__}[{len(value)}]" if isinstance(value, tuple) else repr(value)
