r"""Mutual information of blocks of Gaussian variables: a mast with several instruments, a transect, an image tile.

With S the covariance of all variables, P = S^-1, A the variables of the chosen blocks and B those that a further block
would add,

.. math:: F(A \cup B) - F(A) = \tfrac12 \log\det S_{BB \mid A} + \tfrac12 \log\det P_{BB \mid A},
   \qquad F(A) = I(X_A; X_\text{rest}),

where both matrices are what is left after a partial Cholesky factorisation with pivots A. A block of b variables costs
O(b^2 |A|) beside A, whatever the number of variables.

References
----------
.. [1] A. Krause, A. Singh and C. Guestrin, "Near-optimal sensor placements in Gaussian processes", Journal of Machine
   Learning Research 9, 2008.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pluri.decisions.selection.covariance_residuals import Residuals, checked_covariance, inverse, log_det
from pluri.decisions.selection.set_function import Array, IntArray, SelectionState, SetFunction, checked_items


@dataclass
class BlockState:
    """What is known of the variables of the chosen blocks.

    Attributes
    ----------
    given_chosen, given_rest : Residuals
        Of the covariance and of the precision.
    inside : (n_variables,) bool
        Whether a variable is in a chosen block.
    """

    given_chosen: Residuals
    given_rest: Residuals
    inside: Array

    def take(self, block: IntArray) -> None:
        """Change the record: the variables are chosen."""
        for variable in block[~self.inside[block].astype(bool)]:
            self.given_chosen.pivot(int(variable))
            self.given_rest.pivot(int(variable))
        self.inside[block] = 1.0


class GaussianBlockInformation(SetFunction):
    """Information that the variables of some blocks give about all the others; zero for none and for all.

    Parameters
    ----------
    covariance : array-like of shape (n_variables, n_variables)
        Positive definite: with the noise of an observation.
    blocks : list of array-likes or sets of int, or array-like of shape (n_variables,)
        The variables of each block; or the number of each variable's block, negative for variables that cannot be
        chosen and are only to be known about. If blocks overlap, gains need not diminish, and no bound is proved.

    Attributes
    ----------
    blocks : list of ndarray
    covariance, precision : ndarray of shape (n_variables, n_variables)

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.decisions import GaussianBlockInformation, GreedySelector
    >>> line = np.arange(8.0)
    >>> covariance = np.exp(-0.5 * (line[:, None] - line) ** 2) + 0.1 * np.eye(8)
    >>> f = GaussianBlockInformation(covariance, [[0, 1], [3, 4], [6, 7], [5]])
    >>> f.value([1]) > f.value([3])
    True
    >>> GreedySelector(2, f).fit(np.zeros((4, 1))).selected_  # one row for each block
    array([1, 0])
    """

    monotone: bool | None = False
    batch = 1 << 30  # all gains together

    def __init__(self, covariance: Any, blocks: Any) -> None:
        self.covariance = checked_covariance(covariance)
        self.precision = inverse(self.covariance)
        self.blocks = _checked_blocks(blocks, len(self.covariance))
        self.n_items = len(self.blocks)
        each = np.concatenate(self.blocks)
        self.submodular = len(np.unique(each)) == len(each)

    def value(self, items: ArrayLike) -> float:
        """f(items)."""
        chosen = checked_items(items, self.n_items)
        if not len(chosen):
            return 0.0
        inside = np.unique(np.concatenate([self.blocks[block] for block in chosen]))
        if len(inside) == len(self.covariance):
            return 0.0
        whole = np.ix_(inside, inside)
        return 0.5 * (log_det(self.covariance[whole]) + log_det(self.precision[whole]))

    def _begin(self) -> BlockState:
        residuals = Residuals.of(self.covariance), Residuals.of(self.precision)
        return BlockState(*residuals, np.zeros(len(self.covariance)))

    def _gains(self, state: SelectionState, items: IntArray) -> Array:
        memory: BlockState = state.memory
        new = [self.blocks[item][memory.inside[self.blocks[item]] == 0] for item in items]
        return 0.5 * (_log_dets_left(memory.given_chosen, new) + _log_dets_left(memory.given_rest, new))

    def _insert(self, item: int, state: SelectionState) -> None:
        state.memory.take(self.blocks[item])

    def majorant(self) -> SetFunction | None:
        """H(X_A) less what is left of each block given all others: monotone, submodular, nowhere below."""
        return _BlockEntropy(self) if self.submodular else None


class _BlockEntropy(GaussianBlockInformation):
    """Entropy of the chosen blocks less that of each given all other variables."""

    monotone: bool | None = True
    submodular: bool = True

    def __init__(self, information: GaussianBlockInformation) -> None:
        self.covariance, self.precision = information.covariance, information.precision
        self.blocks, self.n_items = information.blocks, information.n_items
        self.last = np.array([0.5 * log_det(self.precision[np.ix_(one, one)]) for one in self.blocks])

    def value(self, items: ArrayLike) -> float:
        chosen = checked_items(items, self.n_items)
        if not len(chosen):
            return 0.0
        inside = np.concatenate([self.blocks[block] for block in chosen])
        return float(0.5 * log_det(self.covariance[np.ix_(inside, inside)]) + self.last[chosen].sum())

    def _gains(self, state: SelectionState, items: IntArray) -> Array:
        entropy = _log_dets_left(state.memory.given_chosen, [self.blocks[item] for item in items])
        return np.asarray(0.5 * entropy + self.last[items])

    def majorant(self) -> SetFunction | None:
        return None


def _log_dets_left(residuals: Residuals, blocks: Sequence[IntArray]) -> Array:
    """Log determinants of blocks of what is left of a matrix."""
    columns = np.array(residuals.columns).reshape(len(residuals.columns), len(residuals.matrix))
    found = np.empty(len(blocks))
    for place, block in enumerate(blocks):
        explained = columns[:, block]
        found[place] = log_det(residuals.matrix[np.ix_(block, block)] - explained.T @ explained)
    return found


def _checked_blocks(blocks: Any, n_variables: int) -> list[IntArray]:
    """The variables of each block."""
    if isinstance(blocks, list | tuple):
        blocks = [sorted(one) if isinstance(one, set | frozenset) else one for one in blocks]
    if isinstance(blocks, list) and blocks and all(np.ndim(one) == 1 for one in blocks):
        found = [checked_items(one, n_variables) for one in blocks]
    else:
        labels = np.asarray(blocks)
        if labels.shape != (n_variables,) or labels.dtype.kind not in "iu" or labels.max() < 0:
            raise ValueError(
                f"blocks must be lists of variables, or the number of the block of each of {n_variables} variables, "
                f"got {blocks!r}"
            )
        found = [np.flatnonzero(labels == number) for number in range(int(labels.max()) + 1)]
    empty = [number for number, one in enumerate(found) if not len(one)]
    if empty:
        raise ValueError(f"blocks must each have at least one variable, got none in block {empty[0]}")
    return found
