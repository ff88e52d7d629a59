"""Labels of rows on demand: whoever knows them, counted and checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d

#: Gives the labels of rows of the pool, by their numbers.
Oracle = Callable[[NDArray[np.int64]], Any]


class CountingOracle:
    """An oracle that counts the labels it was asked for, and checks what it gives.

    Parameters
    ----------
    oracle : callable or array-like of shape (n_pool,)
        Function of the numbers of rows that gives their labels; or the labels of all rows, of which only those asked
        for are looked at.

    Attributes
    ----------
    n_labels : int
        Labels asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.decisions.active.oracle import CountingOracle
    >>> oracle = CountingOracle(["a", "b", "a"])
    >>> oracle(np.array([2, 1])).tolist(), oracle.n_labels
    (['a', 'b'], 2)
    """

    def __init__(self, oracle: Oracle | ArrayLike) -> None:
        labels = None if callable(oracle) else np.asarray(oracle)
        if labels is not None and labels.ndim != 1:
            raise ValueError(
                f"oracle must be callable, or the labels of the rows of X_pool, got {type(oracle).__name__}"
            )
        self._ask: Any = oracle if labels is None else lambda rows: labels[rows]
        self.n_known = None if labels is None else len(labels)
        self.n_labels = 0

    def __call__(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Labels of rows."""
        answer = self._ask(rows)
        if answer is None:
            raise ValueError(f"oracle must give a label for each row, got None for rows {rows.tolist()}")
        labels = check_labels(np.atleast_1d(np.asarray(answer)), len(rows), "what oracle returns", rows)
        self.n_labels += len(rows)
        return labels


def check_labels(y: Any, n_rows: int, name: str = "y", rows: Any = None) -> NDArray[Any]:
    """One label for each row, none of them missing or infinite."""
    if y is None:
        raise ValueError(f"{name} must be labels: learning requires y to be passed, but the target y is None")
    try:
        labels = np.asarray(y)
    except ValueError:  # lists of different lengths
        raise ValueError(
            f"{name} must be one label for each of {n_rows} rows, got lists of different lengths: a sequence has one "
            "label as a whole; what is labelled step by step is a pool of steps"
        ) from None
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = column_or_1d(labels, warn=True)
    if labels.shape != (n_rows,):
        raise ValueError(f"{name} must be one label for each of {n_rows} rows, got shape {labels.shape}")
    if labels.dtype.kind == "f":
        wrong = ~np.isfinite(labels)
    elif labels.dtype.kind == "O":
        wrong = np.array([_is_no_label(one) for one in labels], dtype=bool)
    else:
        return labels
    if wrong.any():
        place = int(wrong.argmax())
        raise ValueError(
            f"{name} must be labels, got {labels[place]!r} for row {place if rows is None else int(rows[place])}"
        )
    return labels


def _is_no_label(one: Any) -> bool:
    try:
        return one is None or bool(one != one) or one in (np.inf, -np.inf)
    except TypeError:  # pandas.NA is neither equal nor different
        return True


def joined_labels(first: NDArray[Any], second: NDArray[Any], name: str = "y") -> NDArray[Any]:
    """Labels after those so far; numbers beside texts are refused, of which NumPy would make other texts.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.decisions.active.oracle import joined_labels
    >>> joined_labels(np.array(["a"]), np.array(["bc"])).tolist()
    ['a', 'bc']
    """
    kinds = [_kind(labels) for labels in (first, second)]
    if None not in kinds and kinds[0] != kinds[1]:
        raise ValueError(
            f"{name} must be {kinds[0]} as the labels so far (such as {first[0]!r}), got {kinds[1]} ({second[0]!r})"
        )
    return np.concatenate([first, second])


def _kind(labels: NDArray[Any]) -> str | None:
    """Whether labels are numbers or texts; None if they are neither or there are none."""
    if not len(labels):
        return None
    if labels.dtype.kind in "biuf":
        return "numbers"
    return "texts" if labels.dtype.kind in "UST" or all(isinstance(one, str) for one in labels) else None


def check_known(y: NDArray[Any], classes: Any, name: str = "y") -> None:
    """Refuse labels that are none of the classes."""
    if classes is None:
        return
    unknown = sorted({str(label) for label in y.tolist()} - {str(label) for label in np.asarray(classes).tolist()})
    if unknown:
        raise ValueError(
            f"{name} must be among classes ({', '.join(map(str, np.asarray(classes).tolist()))}), got "
            f"{', '.join(unknown[:5])}"
        )
