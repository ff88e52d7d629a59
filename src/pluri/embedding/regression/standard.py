"""Rows and coordinates in the units that the priors are for, and fitted mixtures back in those of the data.

Rows are centred and divided by one number, so that their mean variance is one; coordinates likewise, so that the
largest variance of one is one: no prior knows a unit. Rows of more features than there are rows are turned into the
space that they span first, which loses nothing: all priors are the same in every direction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import svd

from pluri.embedding.regression.prediction import JointMixture

Array = NDArray[np.float64]

#: Singular values below this share of the largest are rounding.
LEAST_SINGULAR = 1e-10


@dataclass(frozen=True, eq=False)
class Standard:
    """Standardised rows (n, r), and how they were made.

    Attributes
    ----------
    rows : (n, r)
    center : (D,): mean of the rows
    scale : what they were divided by
    basis : (D, r): orthonormal directions of the span of the rows, or None if they were not turned
    """

    rows: Array
    center: Array
    scale: float
    basis: Array | None

    @classmethod
    def of(cls, X: Array, reduce: bool) -> Standard:
        """Centre, turn and scale rows."""
        center = X.mean(axis=0)
        rows = X - center
        basis = None
        if reduce:
            _, singular, right = svd(rows, full_matrices=False)
            rank = max(int((singular > LEAST_SINGULAR * singular[0]).sum()), 1)
            basis = np.ascontiguousarray(right[:rank].T)
            rows = rows @ basis
        variance = float((rows**2).mean())
        scale = math.sqrt(variance) if variance > 0 else 1.0
        return cls(np.ascontiguousarray(rows / scale), center, scale, basis)


@dataclass(frozen=True, eq=False)
class StandardCoordinates:
    """Standardised coordinates (n, K), with the centre and the number that they were divided by."""

    values: Array
    center: Array
    scale: float

    @classmethod
    def of(cls, x: Array) -> StandardCoordinates:
        """Centre and scale coordinates."""
        center = x.mean(axis=0)
        scale = float(x.std(axis=0).max())
        scale = scale if scale > 0 else 1.0
        return cls(np.ascontiguousarray((x - center) / scale), center, scale)


def in_units(mixture: JointMixture, rows: Standard, x: StandardCoordinates) -> JointMixture:
    """A mixture in the units of the data; of turned rows if these were turned, which are then centred."""
    means = mixture.means * rows.scale
    return mixture._replace(
        centers=mixture.centers * x.scale + x.center,
        variances=mixture.variances * x.scale**2,
        means=means if rows.basis is not None else means + rows.center,
        loadings=mixture.loadings * (rows.scale / x.scale),
        noise_variances=mixture.noise_variances * rows.scale**2,
    )
