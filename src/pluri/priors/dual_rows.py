r"""The determinant of a kernel :math:`K = U U^\top` and the dual rows :math:`P = K^{-1} U`, fast for small matrices.

The condition number is that of :math:`U`, never its square. LAPACK is called without NumPy's checks, which cost more
than the arithmetic on a matrix of twenty states.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg.lapack import dgetrf, dgetri

from pluri.priors.protocol import FloatArray

SMALLEST_PIVOT = 1e-15


def dual_rows(units: FloatArray) -> tuple[float, FloatArray]:
    """Return log det K and K^-1 U; minus infinity and ``units`` when they are linearly dependent to rounding.

    Parameters
    ----------
    units : ndarray, shape (n_rows, n_columns)
        U, rows of unit length, at most as many as columns.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.priors.dual_rows import dual_rows
    >>> log_det, dual = dual_rows(np.array([[0.6, 0.8], [0.8, 0.6]]))
    >>> log_det
    -2.545931
    >>> dual
    array([[-2.142857,  2.857143],
           [ 2.857143, -2.142857]])
    """
    square = units.shape[0] == units.shape[1]
    if square:
        factors, order, failed = dgetrf(units)
    else:
        orthogonal, factors = np.linalg.qr(units.T)
        failed = not factors.diagonal().all()
    if failed:
        return -math.inf, units
    pivots = np.abs(factors.diagonal())
    log_det = 2.0 * float(np.add.reduce(np.log(pivots)))
    if log_det < -40.0 and not pivots.min() > SMALLEST_PIVOT:  # a single pivot of 1e-15 gives -69
        return -math.inf, units
    if square:
        # The Fortran order of U^-1 is the C order of its transpose, which is K^-1 U.
        return log_det, dgetri(factors, order, overwrite_lu=True)[0].T
    return log_det, np.linalg.solve(factors, orthogonal.T)
