r"""Improve a set by adding, removing and swapping items until no single move helps.

With A the inverse of :math:`L_Y` and :math:`U = A L_{Y\cdot}`, all moves are known at once: adding i multiplies the
determinant by :math:`s_i = L_{ii} - L_{iY} U_{\cdot i}`, removing p by :math:`A_{pp}`, and swapping p for i by
:math:`A_{pp} s_i + U_{pi}^2`. A move changes A, U and s by a matrix of rank one, so a step costs O(n_items |Y|).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pluri.processes.dpp.kernel_forms import IntArray, KernelForm, as_kernel_form, as_subset
from pluri.processes.dpp.search.greedy import NOTHING_LEFT, MapResult
from pluri.processes.dpp.search.set_constraints import Mask, SetConstraint, Unconstrained

#: A move must raise the log determinant by more than this: less is rounding, and could go round in circles.
LEAST_GAIN = 1e-9
#: Moves after which everything is computed afresh.
REFRESH = 50


def local_search(
    kernel: Any,
    items: ArrayLike = (),
    *,
    moves: Sequence[str] = ("add", "delete", "swap"),
    constraint: SetConstraint | None = None,
    given: ArrayLike = (),
    exclude: ArrayLike = (),
    max_moves: int = 1000,
) -> MapResult:
    """Make the best single move again and again; the determinant never falls.

    Parameters
    ----------
    kernel : KernelForm or array-like of shape (n_items, n_items)
        The kernel L.
    items : subset, default=()
        Where to begin; its determinant must be positive.
    moves : sequence of {"add", "delete", "swap"}
        What may be done; ``("swap",)`` keeps the size, ``("add",)`` is the greedy search.
    constraint : Cardinality, Budget, PartitionMatroid or None
        Which sets are allowed; all by default.
    given : subset, default=()
        Items that are in the set and stay there.
    exclude : subset, default=()
        Items that must not join.
    max_moves : int, default=1000
        Moves after which the search ends with a ConvergenceWarning.

    Returns
    -------
    MapResult
        The items sorted, without those given; by what each move multiplied the determinant.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp import local_search
    >>> L = np.array([[2.0, 1.9, 0.0], [1.9, 2.1, 0.0], [0.0, 0.0, 1.5]])
    >>> local_search(L, [0], moves=("swap",)).items, local_search(L, [0]).items
    (array([1]), array([1, 2]))
    """
    form = as_kernel_form(kernel)
    unknown = [move for move in moves if move not in ("add", "delete", "swap")]
    if isinstance(moves, str) or unknown or not len(moves):
        raise ValueError(f"moves must be some of 'add', 'delete' and 'swap', got {moves!r}")
    if not isinstance(max_moves, int | np.integer) or max_moves < 0:
        raise ValueError(f"max_moves must be a whole number of at least 0, got {max_moves!r}")
    allowed = Unconstrained() if constraint is None else constraint
    allowed.check(form.n_items)
    fixed = as_subset(given, form.n_items, "given")
    begin = np.union1d(as_subset(items, form.n_items, "items"), fixed)
    blocked = np.zeros(form.n_items, dtype=bool)
    blocked[as_subset(exclude, form.n_items, "exclude")] = True
    if blocked[begin].any():
        raise ValueError(f"exclude must name none of the items to begin with, got {begin[blocked[begin]][0]}")
    included = np.isin(np.arange(form.n_items), begin)
    if not allowed.allows(included):
        raise ValueError("items must be allowed by the constraint to begin with")
    table = _Moves(form, begin)
    gains: list[float] = []
    fresh = True
    while True:
        move = _best_move(table, moves, allowed, fixed, blocked)
        if move is None and fresh:
            break
        if move is not None and len(gains) == max_moves:
            from sklearn.exceptions import ConvergenceWarning

            warnings.warn(
                f"local_search stopped after {max_moves} moves, before a local optimum; raise max_moves",
                ConvergenceWarning,
                stacklevel=2,
            )
            break
        if move is not None:
            gain, leaving, joining = move
            table.make(leaving, joining)
            gains.append(gain)
            fresh = False
        if move is None or len(gains) % REFRESH == 0:
            # The end is never decided on by numbers that have drifted.
            table = _Moves(form, table.items)
            fresh = True
    chosen = np.setdiff1d(table.items, fixed)
    return MapResult(chosen, np.array(gains), table.log_det())


class _Moves:
    """A set and what every move would do to its determinant.

    `items` (k,); `inverse` (k, k) of L_Y; `weights` U (k, n_items); `left` s (n_items,), what adding an item brings.
    """

    def __init__(self, form: KernelForm, items: IntArray) -> None:
        self.form = form
        self.items = np.array(items, dtype=np.int64)
        self.diagonal = np.asarray(form.diagonal(), dtype=np.float64)
        rows = np.asarray(form.rows(self.items), dtype=np.float64).reshape(len(self.items), form.n_items)
        block = rows[:, self.items]
        try:
            factor = np.linalg.cholesky(block)
        except np.linalg.LinAlgError:
            raise ValueError("items must have a positive determinant to begin with, got zero") from None
        if (np.diagonal(factor) ** 2 <= NOTHING_LEFT * self.diagonal[self.items]).any():
            raise ValueError("items must have a positive determinant to begin with, got zero")
        root = np.linalg.inv(factor)
        self.inverse = root.T @ root
        half = root @ rows
        self.weights = root.T @ half
        self.left = self.diagonal - (half**2).sum(axis=0)

    def log_det(self) -> float:
        """Log determinant over the items, computed afresh."""
        return float(np.linalg.slogdet(self.form.block(self.items, self.items))[1]) if len(self.items) else 0.0

    def make(self, leaving: int | None, joining: int | None) -> None:
        """Remove the item at place `leaving`, add the item `joining`."""
        if leaving is not None:
            pivot, column, row = self.inverse[leaving, leaving], self.inverse[:, leaving], self.weights[leaving]
            self.left += row**2 / pivot
            stay = np.arange(len(self.items)) != leaving
            share = column[stay] / pivot
            self.weights = self.weights[stay] - share[:, None] * row
            self.inverse = self.inverse[np.ix_(stay, stay)] - np.outer(share, column[stay])
            self.items = self.items[stay]
        if joining is not None:
            weight, gain = self.weights[:, joining].copy(), float(self.left[joining])
            kernel_row = np.asarray(self.form.rows([joining])[0], dtype=np.float64)
            # What is left of the row once the items explain what they can; the product with U instead of L saves rows.
            explained = kernel_row[self.items] @ self.weights if len(self.items) else np.zeros(self.form.n_items)
            new = (kernel_row - explained) / gain
            self.left -= gain * new**2
            self.weights = np.vstack([self.weights - weight[:, None] * new, new])
            corner = np.append(-weight, 1.0) / np.sqrt(gain)
            self.inverse = np.pad(self.inverse, (0, 1)) + np.outer(corner, corner)
            self.items = np.append(self.items, joining)


def _best_move(
    table: _Moves, moves: Sequence[str], allowed: SetConstraint, fixed: IntArray, blocked: Mask
) -> tuple[float, int | None, int | None] | None:
    """By what the best move multiplies the determinant, the place that falls free, the item that joins; or None."""
    included = np.zeros(len(table.left), dtype=bool)
    included[table.items] = True
    loose = ~np.isin(table.items, fixed)
    least = np.exp(LEAST_GAIN)
    best: tuple[float, int | None, int | None] | None = None
    if "add" in moves:
        open_to = allowed.can_add(included) & ~blocked & (table.left > NOTHING_LEFT * table.diagonal)
        gains = np.where(open_to, table.left, 0.0)
        joining = int(np.argmax(gains))
        if gains[joining] > least:
            best = (float(gains[joining]), None, joining)
    if not loose.any():
        return best
    pivots = np.diagonal(table.inverse)
    if "delete" in moves:
        gains = np.where(loose, pivots, 0.0)
        leaving = int(np.argmax(gains))
        if gains[leaving] > (best[0] if best else least):
            best = (float(gains[leaving]), leaving, None)
    if "swap" in moves:
        table_of_gains = pivots[:, None] * np.maximum(table.left, 0.0) + table.weights**2
        open_to = allowed.can_swap(table.items, included) & ~blocked & loose[:, None]
        open_to = open_to & (table_of_gains > NOTHING_LEFT * pivots[:, None] * table.diagonal)
        table_of_gains[~open_to] = 0.0
        leaving, joining = divmod(int(np.argmax(table_of_gains)), len(table.left))
        if table_of_gains[leaving, joining] > (best[0] if best else least):
            best = (float(table_of_gains[leaving, joining]), leaving, joining)
    return best
