"""Kalman filter and Rauch-Tung-Striebel smoother: the exact answers for a linear Gaussian model.

With S = C P C^T + R and K = P C^T S^-1, an observation turns the predicted N(m, P) into

    N(m + K (y - C m - c), (I - K C) P),

and the evidence is the product of N(y_t; C m + c, S). Entries of an observation that are NaN are left out. What is
computed is the equivalent in information form with square roots of the covariances (`pluri.dynamics.linear.passes`).

References
----------
Sarkka (2013), Bayesian Filtering and Smoothing, Cambridge University Press.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.dynamics.linear.known import LinearGaussianModel
from pluri.dynamics.linear.passes import Emission, Pass, collapse, filter_sequences, linear_system, smooth_sequences

__all__ = ["KalmanResult", "kalman_filter", "kalman_smoother"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class KalmanResult:
    """Moments of the state given observations.

    Parameters
    ----------
    mean, covariance : ndarray (T, d), (T, d, d)
        Of p(x_t | y_{0:t}) after filtering, of p(x_t | y_{0:T-1}) after smoothing.
    predicted_mean, predicted_covariance : ndarray (T, d), (T, d, d)
        Of p(x_t | y_{0:t-1}).
    log_evidence : float
        log p(y_{0:T-1}).
    increments : ndarray (T,)
        log p(y_t | y_{0:t-1}); 0 where nothing was seen.
    """

    mean: Floats
    covariance: Floats
    predicted_mean: Floats
    predicted_covariance: Floats
    log_evidence: float
    increments: Floats

    def __repr__(self) -> str:
        size = f"{len(self.mean)} steps, {self.covariance.shape[-1]} dimensions"
        return f"<KalmanResult: {size}, log evidence {self.log_evidence:.4f}>"


def kalman_filter(model: LinearGaussianModel, observations: ArrayLike) -> KalmanResult:
    """Filter exactly.

    Parameters
    ----------
    model : LinearGaussianModel
        The model.
    observations : array-like (T, m)
        NaN where nothing was seen.

    Returns
    -------
    KalmanResult

    Examples
    --------
    >>> from pluri.dynamics import LinearGaussianModel, kalman_filter
    >>> model = LinearGaussianModel(1.0, 1.0, 1.0, 1.0, 0.0, 1.0)
    >>> kalman_filter(model, [0.0, 2.0]).mean.round(2).tolist()
    [[0.0], [1.2]]
    """
    result = _filtered(model, observations)
    return _result(result, result.mean, result.covariance[result.slot])


def kalman_smoother(model: LinearGaussianModel, observations: ArrayLike) -> KalmanResult:
    """Smooth exactly: each state given all observations.

    Parameters
    ----------
    model : LinearGaussianModel
        The model.
    observations : array-like (T, m)
        NaN where nothing was seen.

    Returns
    -------
    KalmanResult
        With smoothed ``mean`` and ``covariance``; the rest is the filter's.

    Examples
    --------
    >>> from pluri.dynamics import LinearGaussianModel, kalman_smoother
    >>> model = LinearGaussianModel(1.0, 1.0, 1.0, 1.0, 0.0, 1.0)
    >>> kalman_smoother(model, [0.0, 2.0]).mean.round(2).tolist()
    [[0.4], [1.2]]
    """
    result = _filtered(model, observations)
    smoothed = smooth_sequences(result)
    return _result(result, smoothed.mean, smoothed.covariance[smoothed.slot])


def _filtered(model: LinearGaussianModel, observations: ArrayLike) -> Pass:
    rows = model.check_observations(observations)
    if not len(rows):
        raise ValueError(f"observations must have at least one row, got shape {rows.shape}")
    arrays = model.arrays
    system = linear_system(arrays.A, arrays.Q_factor, arrays.m, arrays.P_factor)
    variances = np.diag(arrays.R)
    independent = not np.count_nonzero(arrays.R - np.diag(variances))
    observed = collapse(rows - arrays.c, Emission(arrays.C, variances.copy() if independent else arrays.R))
    drift = np.tile(arrays.b, (len(rows), 1))
    return filter_sequences(system, observed, drift, np.array([0, len(rows)], dtype=np.int64))


def _result(result: Pass, mean: Floats, covariance: Floats) -> KalmanResult:
    return KalmanResult(
        mean,
        covariance,
        result.predicted_mean,
        result.predicted_covariance[result.slot],
        float(result.increments.sum()),
        result.increments,
    )
