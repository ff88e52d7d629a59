r"""Lower bounds from the updates of a perceptron, made exact.

The dual of ``min c'x, F_0 + sum_i x_i F_i >= 0`` is ``max -<F_0, Y>, <F_i, Y> = c_i, Y >= 0``: every such Y proves
that no feasible x has a value below ``-<F_0, Y>``. The matrix of a perceptron's updates is positive semidefinite but
meets the equations only nearly. It is repaired:

- Where each F_i is one entry of the diagonal (the relaxation of MAXCUT), by scaling rows and columns.
- Else by the smallest change that meets the equations, mixed with a dual point inside the cone as far as is needed for
  the result to be positive semidefinite. If no such inner point is found there is no bound.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pluri.optimize.sdp.matrices import MatrixFamily
from pluri.optimize.sdp.oracles import is_positive_definite

Array = NDArray[np.float64]

#: An equation counts as met up to this, relative to its largest right-hand side.
EQUATION = 1e-9
#: Rounds of alternating projections in search of an inner dual point, and the size up to which they are tried.
PROJECTIONS, LARGEST = 200, 300
#: How far inner points lie from the best dual point, as shares of the way to the first of them.
SHARES = (1.0, 0.25, 0.05, 0.01)


class Certificate:
    """The best lower bound so far, with the dual matrix that proves it.

    Parameters
    ----------
    family : MatrixFamily
        F_0, F_1, ..., F_n.
    c : ndarray of shape (n,)

    Attributes
    ----------
    bound : float
        Minus infinity while there is none.
    Y : ndarray of shape (m, m) or None
    """

    def __init__(self, family: MatrixFamily, c: Array) -> None:
        self.first = family.one(0)
        self.rest = family.without_first()
        self.c = c
        self.bound = -math.inf
        self.Y: Array | None = None
        self.diagonal = _single_entries(self.rest, c)
        self._inner: Array | None = None
        self._searched = False
        self._solver: Array | None = None

    def improve(self, Z: Array, z_objective: float) -> bool:
        """Take the matrix of some updates into account; whether the bound rises."""
        Y = self._scaled(Z) if self.diagonal is not None else self._repaired(Z, z_objective)
        if Y is None:
            return False
        bound = self.value(Y)
        if not bound > self.bound:
            return False
        self.bound, self.Y = bound, Y
        return True

    def value(self, Y: Array) -> float:
        """``-<F_0, Y>``."""
        return -float(np.einsum("ij,ij->", self.first, Y))

    def residual(self, Y: Array) -> float:
        """Largest violation of an equation of the dual."""
        return float(np.abs(self.rest.inner(Y) - self.c).max(initial=0.0))

    def _scaled(self, Z: Array) -> Array:
        """``SZS`` with the diagonal that the equations ask for; a row that is zero gets its diagonal entry alone."""
        assert self.diagonal is not None
        now = np.diag(Z)
        scale = np.where(now > 0, np.sqrt(self.diagonal / np.where(now > 0, now, 1.0)), 0.0)
        Y = Z * scale * scale[:, None]
        np.fill_diagonal(Y, self.diagonal)
        return Y

    def _repaired(self, Z: Array, z_objective: float) -> Array | None:
        found = self.rest.inner(Z)
        along = float(found @ self.c)
        scale = along / float(found @ found) if along > 0 else 1.0 / z_objective if z_objective > 0 else 0.0
        Y = self._onto_equations(Z * scale)
        if Y is None:
            return None
        if is_positive_definite(Y):
            self._inner = Y if self._inner is None else self._inner
            return Y
        if self._inner is None and not self._searched:
            self._searched = True
            self._inner = self._find_inner(Y)
        if self._inner is None:
            return None
        inner = [self._inner] if self.Y is None else [self.Y + share * (self._inner - self.Y) for share in SHARES]
        mixed = [one for one in (_mixed(Y, point) for point in inner) if one is not None]
        return max(mixed, key=self.value, default=None)

    def _onto_equations(self, Y: Array) -> Array | None:
        """The nearest matrix with ``<F_i, Y> = c_i``; None if there is none."""
        if self._solver is None:
            self._solver = np.asarray(np.linalg.pinv(self.rest.gram, rcond=1e-12, hermitian=True), dtype=np.float64)
        solver = self._solver
        for _ in range(2):  # the second time for what rounding has left
            Y = Y + self.rest.combine(np.asarray(solver @ (self.c - self.rest.inner(Y))))
        met = self.residual(Y) <= EQUATION * max(1.0, float(np.abs(self.c).max()))
        return (Y + Y.T) / 2 if met else None

    def _find_inner(self, Y: Array) -> Array | None:
        """A positive definite matrix that meets the equations: near the identity, or by alternating projections."""
        identity = np.eye(len(Y))
        size = float(np.abs(Y).max()) or 1.0
        for power in range(-6, 11):
            candidate = self._onto_equations(size * 2.0**power * identity)
            if candidate is not None and is_positive_definite(candidate):
                return candidate
        if len(Y) > LARGEST:
            return None
        for share in (0.1, 0.01, 0.001):
            candidate = Y
            for _ in range(PROJECTIONS):
                values, vectors = np.linalg.eigh(candidate)
                projected = self._onto_equations((vectors * np.maximum(values, share * size)) @ vectors.T)
                if projected is None:
                    return None
                if is_positive_definite(projected - 0.1 * share * size * identity):
                    return projected
                candidate = projected
        return None


def _mixed(Y: Array, inner: Array) -> Array | None:
    """The point nearest to Y on the way to an inner point that is positive semidefinite."""
    from scipy.linalg import eigh

    if not is_positive_definite(inner):
        return None
    least = float(eigh(Y, inner, eigvals_only=True, subset_by_index=[0, 0])[0])
    # A little further than the boundary, for rounding.
    share = min(1.0, max(0.0, -least / (1.0 - least)) * (1 + 1e-9) + 1e-12)
    return Y + share * (inner - Y)


def _single_entries(rest: MatrixFamily, c: Array) -> Array | None:
    """The diagonal that the equations prescribe, if each matrix is one positive entry of it, and c is positive."""
    if rest.n != rest.m or len(rest.dense) or len(rest.weights) or not (c > 0).all():
        return None
    combined = np.bincount(rest.owner * rest.m + rest.row, rest.value, minlength=rest.n * rest.m)
    table = combined.reshape(rest.n, rest.m)
    on_diagonal = (rest.row == rest.column).all()
    if not on_diagonal or (np.count_nonzero(table, axis=0) != 1).any() or (np.count_nonzero(table, axis=1) != 1).any():
        return None
    total = table.sum(axis=0)
    return c[np.argmax(table != 0, axis=0)] / total if (total > 0).all() else None
