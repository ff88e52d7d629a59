r"""Elementary symmetric polynomials in logarithms: the normalisers of determinantal point processes of fixed size.

.. math:: e_m(\lambda) = \sum_{|J| = m} \prod_{n \in J} \lambda_n, \qquad
   e_m^n = e_m^{n-1} + \lambda_n e_{m-1}^{n-1}

All terms are positive, so the recursion loses nothing in logarithms, whatever the range of the values.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pluri.processes.dpp.kernel_forms import Array


def log_elementary(log_values: ArrayLike, order: int) -> Array:
    """Logarithms of the elementary symmetric polynomials e_0, ..., e_order.

    Parameters
    ----------
    log_values : array_like (n,)
        Logarithms of non-negative values; -inf is a value of zero.
    order : int
        Highest order wanted; those beyond n are zero (-inf).

    Returns
    -------
    ndarray (order + 1,)

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp import log_elementary
    >>> np.exp(log_elementary(np.log([1.0, 2.0, 3.0]), 3)).round(6)
    array([ 1.,  6., 11.,  6.])
    """
    from pluri.processes.dpp._symmetric_kernels import fold

    values = _checked(log_values, order)
    result = np.empty(order + 1)
    fold(values, result)
    return result


def log_elementary_table(log_values: ArrayLike, order: int) -> Array:
    """Entry (n, m) is log e_m of the first n values, shape (n_values + 1, order + 1).

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp import log_elementary_table
    >>> np.exp(log_elementary_table(np.log([1.0, 2.0]), 2)).round(6)
    array([[1., 0., 0.],
           [1., 1., 0.],
           [1., 3., 2.]])
    """
    from pluri.processes.dpp._symmetric_kernels import fill_table

    values = _checked(log_values, order)
    table = np.empty((values.size + 1, order + 1))
    fill_table(values, table)
    return table


def log_elementary_without(log_values: ArrayLike, order: int) -> Array:
    """Entry n is log e_order of all values but the n-th, by sums of positive terms and not by division.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp import log_elementary_without
    >>> np.exp(log_elementary_without(np.log([1.0, 2.0, 3.0]), 1)).round(6)
    array([5., 4., 3.])
    """
    from pluri.processes.dpp._symmetric_kernels import leave_one_out

    values = _checked(log_values, order)
    result = np.empty(values.size)
    leave_one_out(values, log_elementary_table(values, order), np.empty(order + 1), result)
    return result


def _checked(log_values: ArrayLike, order: int) -> Array:
    values = np.ascontiguousarray(log_values, dtype=np.float64)
    if values.ndim != 1 or np.isnan(values).any() or np.isposinf(values).any():
        raise ValueError(f"log_values must be a vector of numbers below infinity, got shape {values.shape}")
    if isinstance(order, bool) or order != int(order) or order < 0:
        raise ValueError(f"order must be a non-negative whole number, got {order!r}")
    return values
