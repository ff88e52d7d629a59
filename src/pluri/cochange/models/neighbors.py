"""Commits that changed some of the same files vote for the others that they changed.

With the files S given, and |r| files in the commit r, the score of file i is

    p_i = sum_r v_r [i in r] / sum_r v_r,    v_r = w_r |S n r|^a sum_{s in S n r} 1 / n_s,    n_s = sum_{r has s} w_r,

    w_r = 1 / ((|r| - 1)^b (1 + age_r / c)),

times h / (h + d) with the effective number of voters h = (sum v)^2 / sum v^2. With a = b = d = 0 and c infinite this is
the mean of the confidences of the single files, up to a factor that is the same for all i. What it adds: a commit of
two files says more about what belongs together than one of fifty (b), a late one says more than an early one (c), a
commit with two of the given files says more than two commits with one each (a), and the word of few commits is not
taken for certain (d).
"""

from __future__ import annotations

from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pluri.cochange.models.counted import CountedTransactions
from pluri.cochange.models.counting import Array, Places, row_votes, votes


class CommitNeighbors(CountedTransactions):
    """Items by the votes of past transactions that have some of those present; small and late ones count more.

    Parameters
    ----------
    size_power : float, default=1.0
        A transaction of k items counts ``1 / (k - 1)^size_power``; 0 lets all count alike.
    age_scale : float or None, default=1000.0
        A transaction counts half when this many came after it, a third after twice as many, and so on. The rows must
        then be in the order of time. None lets all count alike.
    overlap_power : float, default=1.0
        A transaction with m of the items present counts ``m^overlap_power`` times the sum of its votes for each.
    shrinkage : float, default=3.0
        Number of equal votes against everything; it keeps the score of items that few transactions support away
        from one. The ranking does not depend on it.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_features,)
        Number of the transactions that contain each item.
    row_votes_, row_squares_ : ndarray of shape (n_samples,)
        How much each transaction counts by its size and age, and the square of that (summed, for a weight above 1).

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.cochange import CommitNeighbors
    >>> X = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 1, 1, 0], [1, 1, 0, 0]])
    >>> CommitNeighbors().fit(X).predict_missing([0]).round(2)
    array([1.  , 0.47, 0.07, 0.07])
    """

    def __init__(
        self,
        size_power: float = 1.0,
        age_scale: float | None = 1000.0,
        overlap_power: float = 1.0,
        shrinkage: float = 3.0,
    ) -> None:
        self.size_power = size_power
        self.age_scale = age_scale
        self.overlap_power = overlap_power
        self.shrinkage = shrinkage

    def _check_parameters(self) -> None:
        for name in ("size_power", "overlap_power", "shrinkage"):
            value = getattr(self, name)
            if not _is_number(value) or not (np.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}")
        scale = self.age_scale
        if scale is not None and not (_is_number(scale) and np.isfinite(scale) and scale > 0):
            raise ValueError(f"age_scale must be a positive number or None, got {scale!r}")

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Keep the transactions.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n_samples, n_features)
            Not zero where an item occurs; the earliest transaction first.
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            A transaction of weight 2 counts as two.

        Returns
        -------
        self
        """
        super().fit(X, y, sample_weight)
        self.row_votes_, self.row_squares_ = row_votes(self._rows, size_power=self.size_power, age_scale=self.age_scale)
        return self

    def _scores(self, present: Places, absent: Places) -> Array:
        return votes(
            self._rows,
            present,
            absent,
            row_votes=self.row_votes_,
            row_squares=self.row_squares_,
            overlap_power=self.overlap_power,
            shrinkage=self.shrinkage,
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
