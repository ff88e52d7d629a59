"""Filtering as the data arrive: one row in, the state's mean out, in constant time and memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.dynamics.linear.input_rows import input_rows
from pluri.dynamics.linear.parameters import LinearParameters

Array = NDArray[np.float64]

__all__ = ["OnlineKalmanFilter"]

ONE = np.array([1], dtype=np.int64)
ONE_ROW = np.array([0, 1], dtype=np.int64)


class OnlineKalmanFilter:
    """The running distribution of the hidden state; made by the ``filter()`` of `LinearDynamicalSystem`.

    Attributes
    ----------
    mean, covariance : arrays of shape (n_components,) and (n_components, n_components)
        Of the state now, given the rows so far; those of the first state before the first row.
    log_likelihood : float
        Log-likelihood of the rows so far.
    n_steps : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.dynamics import LinearDynamicalSystem
    >>> walk = np.cumsum(np.ones(30)) + np.tile([0.1, -0.1], 15)
    >>> online = LinearDynamicalSystem(1, max_iter=5, tol=-np.inf).fit(walk[:, None]).filter()
    >>> for value in (1.0, np.nan, 3.0):
    ...     state = online.update([value])
    >>> online.n_steps, online.predict()[0].shape
    (3, (1,))
    """

    def __init__(self, parameters: LinearParameters) -> None:
        self._parameters = parameters
        self._ahead = parameters.m, parameters.P  # of the state at the next row
        self.mean, self.covariance = self._ahead
        self.log_likelihood = 0.0
        self.n_steps = 0

    def update(self, x: ArrayLike, inputs: Any = None) -> Array:
        """Take one row (n_features,), NaN where nothing was seen, and its inputs; return the mean of the state."""
        p = self._parameters
        row = np.array(x, dtype=np.float64).reshape(-1)
        if row.shape != p.c.shape:
            raise ValueError(f"x must have {len(p.c)} values, got {row.size}")
        if np.isinf(row).any():
            raise ValueError("x must hold finite numbers or NaN, got infinity")
        used = self._inputs(inputs)
        now = LinearParameters(**{**vars(p), "m": self._ahead[0], "P": self._ahead[1]})
        result = now.filter(row[None], used, ONE_ROW)
        mean, covariance, more = result.mean[0].copy(), result.covariance[0].copy(), float(result.increments[0])
        ahead = p.A @ mean + p.b + p.B @ used[0], p.A @ covariance @ p.A.T + p.Q
        # With no call in between, so that Ctrl-C leaves the filter before the row or after it.
        self.mean, self.covariance, self._ahead = mean, covariance, ahead
        self.log_likelihood, self.n_steps = self.log_likelihood + more, self.n_steps + 1
        return self.mean

    def predict(self, inputs: Any = None) -> tuple[Array, Array]:
        """Mean (n_features,) and covariance of the next row, before it is seen; `inputs` are those of that row."""
        p, (mean, covariance) = self._parameters, self._ahead
        used = self._inputs(inputs)[0]
        return p.C @ mean + p.c + p.D @ used, p.C @ covariance @ p.C.T + p.full_noise

    def _inputs(self, inputs: Any) -> Array:
        if inputs is not None:
            inputs = np.asarray(inputs, dtype=np.float64).reshape(1, -1)
        return input_rows(inputs, ONE, self._parameters.B.shape[1])
