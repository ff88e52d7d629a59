"""How often a decoder is wrong: with true tokens before each, and on its own.

The teacher-forced error is the share of steps at which the most probable token, given the true ones before it, is not
the true one. The free-running error is that of what the network decodes by itself: the share of wrong frames where
frames and labels are aligned, and otherwise the edit distance divided by the number of true tokens.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Integers = NDArray[np.int64]


class Scores(NamedTuple):
    """What a decoder is worth on some data.

    Attributes
    ----------
    teacher_forced_error : share of wrong tokens, given the true ones before
    free_running_error : of what it decodes by itself, greedily
    perplexity : exponential of the mean negative log-probability of the true tokens
    """

    teacher_forced_error: float
    free_running_error: float
    perplexity: float


def edit_distances(
    first: ArrayLike, first_lengths: ArrayLike, second: ArrayLike, second_lengths: ArrayLike
) -> Integers:
    """Least number of insertions, deletions and replacements between rows of two padded arrays.

    Examples
    --------
    >>> from pluri.networks.error_rates import edit_distances
    >>> edit_distances([[1, 2, 3], [1, 0, 0]], [3, 1], [[1, 3], [2, 2]], [2, 2])
    array([1, 2])
    """
    one, other = np.asarray(first), np.asarray(second)
    n, m = np.asarray(first_lengths, dtype=np.int64), np.asarray(second_lengths, dtype=np.int64)
    # Row i of the table: distances of the first i tokens from all beginnings of the other sequence.
    row = np.broadcast_to(np.arange(other.shape[1] + 1), (len(one), other.shape[1] + 1)).copy()
    found = np.where(n == 0, m, 0)
    for i in range(1, one.shape[1] + 1):
        new = np.empty_like(row)
        new[:, 0] = i
        replaced = row[:, :-1] + (one[:, i - 1 : i] != other)
        deleted = row[:, 1:] + 1
        best = np.minimum(replaced, deleted)
        for j in range(1, other.shape[1] + 1):
            new[:, j] = np.minimum(best[:, j - 1], new[:, j - 1] + 1)
        row = new
        here = n == i
        found[here] = row[here, m[here]]
    return found


def errors_by_position(truth: ArrayLike, lengths: ArrayLike, found: ArrayLike) -> tuple[NDArray[np.float64], Integers]:
    """Share of wrong tokens at each place of padded rows, and how many rows are long enough to have that place."""
    right, tokens = np.asarray(truth), np.asarray(found)
    length = min(right.shape[1], tokens.shape[1])
    inside = np.arange(length) < np.asarray(lengths)[:, None]
    wrong = (right[:, :length] != tokens[:, :length]) & inside
    counts = inside.sum(axis=0)
    return wrong.sum(axis=0) / np.maximum(counts, 1), counts
