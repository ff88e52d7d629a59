"""What is left of every item once some are picked: the squared length of what the picks do not explain.

For features it takes an orthonormal basis of the picks, for any other kernel the Cholesky coefficients of all items.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from pluri.processes.dpp.kernel_forms import Array, FeatureKernel, IntArray, KernelForm


class Residuals(Protocol):
    """What is left of every item once the picks are taken away."""

    def after(self, pick: int, left: float, squares: Array) -> Array:
        """By how much the residuals of all items fall when `pick` is taken; `squares` is a buffer for them."""


class FeatureResiduals:
    """Of features: an orthonormal basis of the picks, one product ``F @ q`` for each."""

    def __init__(self, form: FeatureKernel) -> None:
        self.features = form.features
        self.sparse = form.is_sparse
        self.basis = np.empty((min(64, *form.features.shape), form.features.shape[1]))
        self.n_picks = 0

    def direction(self, pick: int) -> Array:
        """The direction of the picked features that no earlier pick has; it joins the basis."""
        row = self.features[[pick]].toarray().ravel() if self.sparse else self.features[pick].copy()
        basis = self.basis[: self.n_picks]
        for _ in range(2):  # once loses digits where little is left
            row -= (basis @ row) @ basis
        row /= np.sqrt(row @ row)
        if self.n_picks == len(self.basis):
            self.basis = np.concatenate([self.basis, np.empty_like(self.basis)])
        self.basis[self.n_picks] = row
        self.n_picks += 1
        return np.asarray(row)

    def after(self, pick: int, left: float, squares: Array) -> Array:
        """Squared coefficients of all items on what is new in the pick."""
        coefficients = self.features @ self.direction(pick)
        return np.multiply(coefficients, coefficients, out=squares)


class RowResiduals:
    """Of any kernel: the Cholesky coefficients of all items, one row of them for each pick."""

    def __init__(self, form: KernelForm) -> None:
        self.form = form
        self.coefficients = np.empty((min(16, form.n_items), form.n_items))
        self.n_picks = 0

    def append(self, pick: int, left: float) -> Array:
        """Coefficients of all items on what is new in the pick."""
        earlier = self.coefficients[: self.n_picks]
        row = np.asarray(self.form.rows([pick])[0]) - earlier[:, pick] @ earlier
        row /= np.sqrt(left)
        if self.n_picks == len(self.coefficients):
            self.coefficients = np.concatenate([self.coefficients, np.empty_like(self.coefficients)])
        self.coefficients[self.n_picks] = row
        self.n_picks += 1
        return row

    def after(self, pick: int, left: float, squares: Array) -> Array:
        """Squared coefficients of all items on what is new in the pick."""
        row = self.append(pick, left)
        return np.multiply(row, row, out=squares)


class WindowResiduals(RowResiduals):
    """The same for the last picks only: the oldest is rotated out of the Cholesky factor, which never loses digits."""

    def __init__(self, form: KernelForm, window: int) -> None:
        super().__init__(form)
        self.window = window
        self.picks: list[int] = []

    def after(self, pick: int, left: float, squares: Array) -> Array:
        """By how much the residuals fall; less than nothing where the pick that is forgotten explained more."""
        row = self.append(pick, left)
        self.picks.append(pick)
        np.multiply(row, row, out=squares)
        if self.n_picks > self.window:
            squares -= self.forget_oldest() ** 2
        return squares

    def forget_oldest(self) -> Array:
        """Rotate the first row into the others until only what no other pick explains is left of it: returns that."""
        rest, remainder = self.coefficients[1 : self.n_picks], self.coefficients[0].copy()
        del self.picks[0]
        for row, pick in zip(rest, self.picks, strict=True):
            # The factor of the picks stands in their own columns: its diagonal stays positive, the first row vanishes.
            length = np.hypot(row[pick], remainder[pick])
            cosine, sine = row[pick] / length, remainder[pick] / length
            turned = cosine * row + sine * remainder
            remainder = cosine * remainder - sine * row
            row[:] = turned
        self.coefficients[: self.n_picks - 1] = rest.copy()
        self.n_picks -= 1
        return np.asarray(remainder)


class LazyFeatureResiduals(FeatureResiduals):
    """Of features, for the items that are asked about: only what was picked since they were last looked at counts."""

    def left_of(self, items: IntArray, left: Array, known: IntArray) -> Array:
        """What is left of some items, given what was left of them after `known` picks."""
        seen = known[items]
        first = int(seen.min())
        coefficients = self.features[items] @ self.basis[first : self.n_picks].T
        coefficients[seen[:, None] > np.arange(first, self.n_picks)] = 0.0
        return np.asarray(left[items] - (coefficients**2).sum(axis=1))

    def take(self, pick: int, left: float) -> None:
        """Count an item among the picks."""
        self.direction(pick)


class LazyRowResiduals:
    """Of any kernel, for the items that are asked about: their coefficients are solved for, and nothing is kept."""

    def __init__(self, form: KernelForm) -> None:
        self.form = form
        self.diagonal = form.diagonal()
        self.factor = np.zeros((16, 16))
        self.picks: list[int] = []

    def coefficients(self, items: IntArray) -> Array:
        """(n_picks, n) Cholesky coefficients of some items."""
        from scipy.linalg import solve_triangular

        n_picks = len(self.picks)
        entries = self.form.block(items, np.array(self.picks, dtype=np.int64)).T
        if not n_picks:
            return entries
        solved: Array = solve_triangular(self.factor[:n_picks, :n_picks], entries, lower=True, check_finite=False)
        return solved

    def left_of(self, items: IntArray, left: Array, known: IntArray) -> Array:
        """What is left of some items."""
        return np.asarray(self.diagonal[items] - (self.coefficients(items) ** 2).sum(axis=0))

    def take(self, pick: int, left: float) -> None:
        """Count an item among the picks."""
        n_picks = len(self.picks)
        if n_picks == len(self.factor):
            self.factor = np.pad(self.factor, (0, n_picks))
        self.factor[n_picks, :n_picks] = self.coefficients(np.array([pick]))[:, 0]
        self.factor[n_picks, n_picks] = np.sqrt(left)
        self.picks.append(pick)
