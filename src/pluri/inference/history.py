"""What a fit went through, one row per iteration: the record behind every ``history_`` attribute.

The rows are plain tuples of Python numbers, so that a history can be stored beside the model without pickle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class HistoryRow(NamedTuple):
    """One iteration.

    Parameters
    ----------
    restart : int
        Index of the run (0 to ``n_init - 1``).
    iteration : int
        Number of E-steps that this run has done, this one included.
    objective : float
        Log-likelihood plus log prior at the parameters that the E-step saw.
    log_likelihood : float
        The log-likelihood alone.
    seconds : float
        Duration of the E-step and the M-step.
    accepted : bool
        False when an acceleration tried a point and fell back; the objective is then that of the point kept.
    """

    restart: int
    iteration: int
    objective: float
    log_likelihood: float
    seconds: float
    accepted: bool = True


class History:
    """Rows of a fit in the order they happened; each column is also an attribute.

    Attributes
    ----------
    restart, iteration, objective, log_likelihood, seconds, accepted : ndarray of shape (n_rows,)
        The columns described in :class:`HistoryRow`.

    Examples
    --------
    >>> from pluri.inference import History, HistoryRow
    >>> history = History([HistoryRow(0, 1, -9.0, -9.0, 0.1), HistoryRow(0, 2, -7.5, -7.5, 0.1)])
    >>> history
    History(1 run, 2 iterations, objective -9 -> -7.5, 0.2 s)
    >>> history.objective
    array([-9. , -7.5])
    >>> history[-1].iteration
    2
    """

    def __init__(self, rows: Iterable[tuple[Any, ...]] = ()) -> None:
        # Whole rows, not columns: one append is all or nothing even when Ctrl-C falls into it.
        self.rows: list[tuple[Any, ...]] = [tuple(row) for row in rows]

    def append(self, row: HistoryRow) -> None:
        """Add one iteration."""
        self.rows.append(tuple(row))

    def run(self, restart: int) -> History:
        """Rows of one run only.

        Examples
        --------
        >>> from pluri.inference import History, HistoryRow
        >>> history = History([HistoryRow(0, 1, -9.0, -9.0, 0.1), HistoryRow(1, 1, -8.0, -8.0, 0.1)])
        >>> history.run(1).objective
        array([-8.])
        """
        return History(row for row in self.rows if row[0] == restart)

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns as lists, ready for ``pandas.DataFrame`` or JSON.

        Examples
        --------
        >>> from pluri.inference import History, HistoryRow
        >>> History([HistoryRow(0, 1, -9.0, -9.0, 0.1)]).to_dict()["objective"]
        [-9.0]
        """
        return {name: [row[column] for row in self.rows] for column, name in enumerate(HistoryRow._fields)}

    def _column(self, name: str, dtype: type) -> NDArray[Any]:
        column = HistoryRow._fields.index(name)
        return np.array([row[column] for row in self.rows], dtype=dtype)

    @property
    def restart(self) -> NDArray[np.int64]:
        return self._column("restart", np.int64)

    @property
    def iteration(self) -> NDArray[np.int64]:
        return self._column("iteration", np.int64)

    @property
    def objective(self) -> NDArray[np.float64]:
        return self._column("objective", np.float64)

    @property
    def log_likelihood(self) -> NDArray[np.float64]:
        return self._column("log_likelihood", np.float64)

    @property
    def seconds(self) -> NDArray[np.float64]:
        return self._column("seconds", np.float64)

    @property
    def accepted(self) -> NDArray[np.bool_]:
        return self._column("accepted", np.bool_)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> HistoryRow:
        return HistoryRow(*self.rows[index])

    def __iter__(self) -> Iterator[HistoryRow]:
        return (HistoryRow(*row) for row in self.rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, History) and self.rows == other.rows

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if not self.rows:
            return "History(empty)"
        runs = len({row[0] for row in self.rows})
        return (
            f"History({runs} run{'s' * (runs > 1)}, {len(self)} iteration{'s' * (len(self) > 1)}, "
            f"objective {self.rows[0][2]:.6g} -> {self.rows[-1][2]:.6g}, {self.seconds.sum():.3g} s)"
        )
