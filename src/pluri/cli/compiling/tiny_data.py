"""Small data for every kind of model: what `fit` is given, by a word for it.

Types and shapes are those of real data (a few columns, real numbers as float64, counts and symbols as int64), since
compiled code depends on them; there is little of it, so that a fit is short.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

N_ROWS = 60


def _rng() -> np.random.Generator:
    return np.random.default_rng(20)


def _labels() -> np.ndarray:
    return np.arange(N_ROWS) % 2


def numbers() -> np.ndarray:
    """Two clouds of points."""
    return _rng().normal(size=(N_ROWS, 3)) + 3.0 * _labels()[:, None]


def counts() -> np.ndarray:
    """Documents with two topics."""
    rates = np.where(_labels()[:, None], [6, 6, 6, 1, 1, 1], [1, 1, 1, 6, 6, 6])
    return _rng().poisson(rates) + 1


def trials() -> np.ndarray:
    """Counts of equal totals."""
    return _rng().multinomial(12, [0.4, 0.3, 0.2, 0.1], size=N_ROWS)


def symbols() -> np.ndarray:
    """One of three symbols in each row."""
    return _rng().integers(3, size=(N_ROWS, 1))


def binary() -> np.ndarray:
    """Zeros and ones, of two kinds of rows."""
    return (_rng().random((N_ROWS, 6)) < np.where(_labels()[:, None], 0.8, 0.2)).astype(np.int64)


def target() -> np.ndarray:
    """A linear function of the numbers, with noise."""
    noise: np.ndarray = 0.1 * _rng().normal(size=N_ROWS)
    return numbers() @ [1.0, -0.5, 0.25] + noise


def kernels() -> list[np.ndarray]:
    """A similarity kernel of four items at three times."""
    return [factor @ factor.T + np.eye(4) for factor in _rng().normal(size=(3, 4, 3))]


def _subsets() -> list[np.ndarray]:
    return [np.array([0, 1]), np.array([2]), np.array([1, 3]), np.array([0, 3])] * 4


def _history() -> Any:
    from pluri.cochange import CommitHistory

    commits = [["a.py", "b.py"], ["c.py", "d.py"], ["a.py", "b.py", "c.py"], ["d.py", "a.py"]] * 12
    return CommitHistory.from_records({"time": 1e9 + 1e5 * t, "files": files} for t, files in enumerate(commits))


def _segments() -> tuple[Any, ...]:
    return [[np.eye(4)[:2], np.eye(4)[2:]]] * 3, [[np.array([0]), np.array([1])]] * 3


#: Arguments of `fit` by the name of the kind of data.
DATA: dict[str, Callable[[], tuple[Any, ...]]] = {
    "numbers": lambda: (numbers(),),
    "numbers and labels": lambda: (numbers(), _labels()),
    "numbers and target": lambda: (numbers(), target()),
    "counts": lambda: (counts(),),
    "counts and labels": lambda: (counts(), _labels()),
    "counts and target": lambda: (counts(), target()),
    "trials": lambda: (trials(),),
    "symbols": lambda: (symbols(),),
    "symbols and labels": lambda: (symbols(), _labels()),
    "binary": lambda: (binary(),),
    "binary and labels": lambda: (binary(), _labels()),
    "sequences": lambda: (np.split(numbers(), 4),),
    "sequences and labels": lambda: (np.split(numbers(), 6), np.arange(6) % 2),
    "sequences and numbers": lambda: (np.split(numbers(), 6), np.arange(6.0)),
    "image": lambda: (np.where(_rng().random((6, 6)) < 0.5, 1.0, -1.0),),
    "measurements": lambda: (numbers(), _rng().normal(size=(N_ROWS, 3, 5))),
    "picture": lambda: (_rng().random((12, 14)),),
    "kernels": lambda: (kernels(),),
    "subsets": lambda: (_subsets(), 4),
    "items and subsets": lambda: ((_rng().normal(size=(4, 2)), np.eye(4)), _subsets()),
    "segments": _segments,
    "vectors and tokens": lambda: (
        numbers(),
        [["low", "high"][label : label + 1] * (1 + label) for label in _labels()],
    ),
    "sentences and trees": lambda: ([["a", "b"], ["a", "c", "b"]] * 6, ["(S a (T b))", "(S a (T c b))"] * 6),
    "commits": lambda: (_history(),),
}
