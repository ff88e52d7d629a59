r"""How different the rows of a non-negative matrix are: the log determinant of their normalised kernel.

With :math:`S_{ij} = A_{ij}^\rho` and :math:`U_i = S_i / \lVert S_i \rVert`, the kernel of the rows is
:math:`\tilde K = U U^\top` (for :math:`\rho = 1/2` the Bhattacharyya coefficients) and

.. math:: f(A) = \log\det \tilde K \in [-\infty, 0],

which is 0 when the rows share no column and :math:`-\infty` when the :math:`U_i` are linearly dependent. Let
:math:`P = \tilde K^{-1} U`, :math:`R = U \circ P` (the relative gain array: its rows sum to 1) and
:math:`W = U \circ U`. Then

.. math:: A_{ij} \frac{\partial f}{\partial A_{ij}} = 2 \rho \, (R_{ij} - W_{ij}).

The gradient printed in [1]_ has half the first term and lacks the second, which stems from the normalisation; the
one here agrees with finite differences. Consequently a weight :math:`\alpha` there acts like :math:`\alpha / 2` here.

References
----------
.. [1] M. Qiao, W. Bian, R. Y. D. Xu and D. Tao, "Diversified hidden Markov models for sequential labeling", IEEE
   Transactions on Knowledge and Data Engineering 27, 2015.
.. [2] E. H. Bristol, "On a new measure of interaction for multivariable process control", IEEE Transactions on
   Automatic Control 11, 1966.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike

from pluri.priors.protocol import FloatArray, RowPriorWarning

WORST_CONDITION = 1e12
FLOOR = 1e-12


class DiversityWarning(RowPriorWarning):
    """The diversity of the rows is degenerate: rows coincide, or the prior has driven them apart completely."""


def log_determinant(rows: ArrayLike, rho: float = 0.5) -> float:
    """Log determinant of the normalised kernel of the rows, between minus infinity and 0.

    Parameters
    ----------
    rows : array_like, shape (n_rows, n_columns)
        Non-negative, at most as many rows as columns. The scale of a row does not matter.
    rho : float, default=0.5
        Power to which the entries are raised; 0.5 makes the kernel entries Bhattacharyya coefficients.

    Returns
    -------
    float

    Examples
    --------
    >>> from pluri.priors import log_determinant
    >>> log_determinant([[0.9, 0.1], [0.2, 0.8]])
    -0.693147
    >>> log_determinant([[0.5, 0.5], [0.5, 0.5]])
    -inf
    """
    units = unit_rows(rows, rho)
    with np.errstate(divide="ignore"):
        if units.shape[0] == units.shape[1]:
            # Of U rather than U U^T: half the exponent of the condition number.
            half = float(np.linalg.slogdet(units)[1])
        else:
            half = float(np.sum(np.log(np.abs(np.diagonal(np.linalg.qr(units.T, mode="r"))))))
    # Rounding turns dependent rows into a tiny determinant; only then is the rank worth a decomposition.
    if half < -30.0 and np.linalg.matrix_rank(units) < units.shape[0]:
        return -np.inf
    return min(2.0 * half, 0.0)


def relative_gain(rows: ArrayLike, rho: float = 0.5) -> FloatArray:
    """Relative gain array ``U * (K^-1 U)`` of the rows: each row sums to 1, and each column too when it is square.

    Examples
    --------
    >>> from pluri.priors import relative_gain
    >>> relative_gain([[0.9, 0.1], [0.2, 0.8]])
    array([[ 1.2, -0.2],
           [-0.2,  1.2]])
    """
    units = unit_rows(rows, rho)
    return units * _dual_rows(units)


def log_determinant_gradient(rows: ArrayLike, rho: float = 0.5) -> FloatArray:
    """Gradient of :func:`log_determinant`; entries below 1e-12 are read as 1e-12, where the slope is still finite.

    Examples
    --------
    >>> from pluri.priors import log_determinant_gradient
    >>> log_determinant_gradient([[0.9, 0.1], [0.2, 0.8]]).round(6)
    array([[ 0.333333, -3.      ],
           [-2.      ,  0.5     ]])
    """
    unit_rows(rows, rho)  # refuses what the floor would hide
    floored = np.maximum(np.asarray(rows, dtype=np.float64), FLOOR)
    units = unit_rows(floored, rho)
    return 2.0 * rho * units * (_dual_rows(units) - units) / floored


def unit_rows(rows: ArrayLike, rho: float) -> FloatArray:
    """Rows raised to the power ``rho`` and scaled to unit length, after the checks that all functions here share."""
    values = np.asarray(rows, dtype=np.float64)
    if values.ndim != 2 or not (np.isfinite(values).all() and (values >= 0).all()):
        raise ValueError(f"rows must be a finite, non-negative matrix, got shape {values.shape}")
    if not 0 < values.shape[0] <= values.shape[1]:
        raise ValueError(
            "rows must have at most as many rows as columns (otherwise the determinant is 0 whatever they hold), "
            f"got shape {values.shape}"
        )
    if not (np.isfinite(rho) and rho > 0):
        raise ValueError(f"rho must be a positive number, got {rho!r}")
    largest = values.max(axis=1, keepdims=True)
    if not (largest > 0).all():
        raise ValueError("rows must have a positive entry each, got a row of zeros")
    powers = (values / largest) ** rho
    return powers / np.sqrt(np.sum(powers * powers, axis=1, keepdims=True))


def condition_number(units: FloatArray) -> float:
    """Condition number of unit rows, infinite when they are dependent."""
    spectrum = np.linalg.svd(units, compute_uv=False)
    return float(spectrum[0] / spectrum[-1]) if spectrum[-1] > 0 else np.inf


def _dual_rows(units: FloatArray) -> FloatArray:
    """``K^-1 U``: the transposed pseudo-inverse of ``U``."""
    left, spectrum, right = np.linalg.svd(units, full_matrices=False)
    keep = spectrum * WORST_CONDITION > spectrum[0]
    if not keep.all():
        warnings.warn(
            f"the rows are linearly dependent to 1 part in {WORST_CONDITION:.0e}: their pseudo-inverse is used",
            DiversityWarning,
            stacklevel=3,
        )
    inverse = np.where(keep, 1.0 / np.where(keep, spectrum, 1.0), 0.0)
    return (left * inverse) @ right
