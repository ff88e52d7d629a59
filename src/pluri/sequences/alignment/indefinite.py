"""Similarity matrices that are not positive semi-definite, and what can be done about their negative eigenvalues.

With K = U diag(e) U', training may use K as it is (the dual problem is then not convex, and its solution is a
stationary point), or U max(e, 0) U' ("clip"), U abs(e) U' ("flip"), or K - min(e) 1 ("shift"). Coefficients c that
were learned with a matrix K P are those of P c with K, so that similarities to new sequences need no change.
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
    min_eigenvalue : smallest eigenvalue of the matrix as it came
    """

    gram: Array
    projection: Array | None
    min_eigenvalue: float


def correct(gram: Array, psd: str) -> Corrected:
    """A matrix without negative eigenvalues, or the matrix itself with a warning if it has some."""
    if psd in ("none", "shift"):
        values = np.linalg.eigvalsh(gram)
        smallest = float(values[0])
        if psd == "shift":
            return Corrected(gram + max(-smallest, 0.0) * np.eye(len(gram)), None, smallest)
        if smallest < -ROUNDING * values[-1]:
            warnings.warn(
                f"the similarities of the training sequences are not positive semi-definite (smallest eigenvalue "
                f"{smallest:.3g}, largest {values[-1]:.3g}), so that the solution is a stationary point and need not "
                "be the best one: psd='clip', 'flip' or 'shift' makes the problem convex, and the kernel of "
                "kind='sum' is positive definite",
                IndefiniteKernelWarning,
                stacklevel=4,
            )
        return Corrected(gram, None, smallest)
    values, vectors = np.linalg.eigh(gram)
    factor = (values > 0).astype(np.float64) if psd == "clip" else np.where(values < 0, -1.0, 1.0)
    corrected = (vectors * (factor * values)) @ vectors.T
    return Corrected((corrected + corrected.T) / 2.0, (vectors * factor) @ vectors.T, float(values[0]))
