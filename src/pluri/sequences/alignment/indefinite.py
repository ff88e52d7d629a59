"""Similarity matrices that are not positive semi-definite, and what can be done about their negative eigenvalues.

With K = U diag(e) U', training may use K as it is (the dual problem is then not convex, and its solution is a
stationary point), or U max(e, 0) U' ("clip"), U abs(e) U' ("flip"), or K - min(e) 1 ("shift"). Coefficients c that
were learned with a matrix K P are those of P c with K, so that similarities to new sequences need no change.

A shift makes each sequence more similar to itself, and sequences that are equal are the same one: e are then the
eigenvalues of the different sequences alone, and all copies of a sequence become more similar to each other. So a
sequence twice and a sequence of weight two are learned from alike.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CHOICES = ("none", "clip", "flip", "shift")
#: Negative eigenvalues of less than this share of the largest one are rounding.
ROUNDING = 1e-8


class IndefiniteKernelWarning(UserWarning):
    """A similarity matrix has negative eigenvalues, and is used as it is."""


class Corrected(NamedTuple):
    """A matrix to learn with.

    Attributes
    ----------
    gram : (n, n)
    projection : (n, n), P of the module's docstring; None where it is the identity
    min_eigenvalue : smallest eigenvalue of the matrix as it came, of different sequences for "shift"
    """

    gram: Array
    projection: Array | None
    min_eigenvalue: float


def correct(gram: Array, psd: str) -> Corrected:
    """A matrix without negative eigenvalues, or the matrix itself with a warning if it has some."""
    if psd == "shift":
        original = _originals(gram)
        different = np.unique(original)
        smallest = float(np.linalg.eigvalsh(gram[np.ix_(different, different)])[0])
        return Corrected(gram + max(-smallest, 0.0) * (original[:, None] == original), None, smallest)
    if psd == "none":
        values = np.linalg.eigvalsh(gram)
        smallest = float(values[0])
        if smallest < -ROUNDING * values[-1]:
            warnings.warn(
                f"the similarities of the training sequences are not positive semi-definite (smallest eigenvalue "
                f"{smallest:.3g}, largest {values[-1]:.3g}), so that the solution is a stationary point and need not "
                "be the best one: psd='shift', 'clip' or 'flip' makes the problem convex, and the kernel of "
                "kind='sum' is positive definite",
                IndefiniteKernelWarning,
                stacklevel=4,
            )
        return Corrected(gram, None, smallest)
    values, vectors = np.linalg.eigh(gram)
    factor = (values > 0).astype(np.float64) if psd == "clip" else np.where(values < 0, -1.0, 1.0)
    corrected = (vectors * (factor * values)) @ vectors.T
    return Corrected((corrected + corrected.T) / 2.0, (vectors * factor) @ vectors.T, float(values[0]))


def _originals(gram: Array) -> NDArray[np.int64]:
    """(n,): the first of the sequences that are equal to each; equal ones have the same similarities to all."""
    diagonal, rounding = np.diag(gram), 1e-12 * np.abs(gram).max(initial=0.0)
    alike = np.abs(gram - diagonal) <= rounding
    alike &= alike.T
    original = np.arange(len(gram))
    for row in range(len(gram)):
        if original[row] == row:
            others = row + 1 + np.flatnonzero(alike[row, row + 1 :])
            same = (np.abs(gram[others] - gram[row]) <= rounding).all(axis=1)
            original[others[same]] = row
    return original
