"""Accuracy of a labelling whose states have no names of their own.

With ``M[z, y]`` the number of tokens of predicted state ``z`` and true label ``y``, and ``n`` their total,

- one-to-one: ``max over matchings m of  sum_z M[z, m(z)] / n``, each true label used at most once;
- many-to-one: ``sum_z max_y M[z, y] / n``, each state takes its commonest label.

One-to-one never exceeds many-to-one, which tends to 1 as the states become many.

References
----------
.. [1] Johnson, M. (2007). Why doesn't EM find good HMM POS-taggers? EMNLP-CoNLL, 296-305.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.metrics.contingency import assignment, contingency
from pluri.validation import Only, check_value


def one_to_one_accuracy(
    y_true: ArrayLike, y_pred: ArrayLike, *, matching: str = "hungarian", sample_weight: ArrayLike | None = None
) -> float:
    """Accuracy under the best matching of predicted states to true labels.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Labels: whole numbers or strings. A token with an integer label below zero in either is left out.
        The numbers of distinct labels may differ; a state without a partner counts as wrong.
    matching : {"hungarian", "greedy"}, default="hungarian"
        The best matching, or the one that takes the most frequent pair, then the most frequent of what is left, and so
        on, by which some published results were computed; it is never above the best.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the tokens.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from pluri.metrics import one_to_one_accuracy
    >>> one_to_one_accuracy([0, 0, 1, 1], [7, 7, 3, 7])
    0.75
    """
    check_value(matching, "matching", Only("hungarian", "greedy"))
    pairs = contingency(y_true, y_pred, sample_weight)
    rows, columns = (assignment if matching == "hungarian" else _greedy)(pairs.table)
    return float(pairs.table[rows, columns].sum() / pairs.total)


def _greedy(table: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns of the largest cell, then of the largest in other rows and columns, and so on."""
    left = table.astype(np.float64)
    taken = []
    for _ in range(min(table.shape)):
        row, column = np.unravel_index(left.argmax(), left.shape)
        taken.append((row, column))
        left[row], left[:, column] = -1.0, -1.0
    found = np.array(taken, dtype=np.int64)
    return found[:, 0], found[:, 1]


def many_to_one_accuracy(y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    """Accuracy when each predicted state takes its commonest true label (also called purity).

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Labels: whole numbers or strings. A token with an integer label below zero in either is left out.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the tokens.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from pluri.metrics import many_to_one_accuracy
    >>> many_to_one_accuracy([0, 0, 1, 1], [0, 1, 2, 3])
    1.0
    """
    pairs = contingency(y_true, y_pred, sample_weight)
    return float(pairs.table.max(axis=1).sum() / pairs.total)
