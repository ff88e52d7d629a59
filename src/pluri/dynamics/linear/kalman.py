"""Kalman filter and Rauch-Tung-Striebel smoother: the exact answers for a linear Gaussian model.

With S = C P C^T + R and K = P C^T S^-1, an observation turns the predicted N(m, P) into

    N(m + K (y - C m - c), (I - K C) P (I - K C)^T + K R K^T);

this form (Joseph) keeps the covariance symmetric and positive. The evidence is the product of N(y_t; C m + c, S).
Entries of an observation that are NaN are left out.

References
----------
Sarkka (2013), Bayesian Filtering and Smoothing, Cambridge University Press.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.dynamics.linear.known import LinearGaussianModel
from pluri.inference.smc.gaussian import cholesky, log_density, symmetric

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
    rows = model.check_observations(observations)
    if not len(rows):
        raise ValueError(f"observations must have at least one row, got shape {rows.shape}")
    arrays = model.arrays
    n_steps, d = len(rows), len(arrays.b)
    mean, covariance = np.empty((n_steps, d)), np.empty((n_steps, d, d))
    predicted_mean, predicted_covariance = np.empty((n_steps, d)), np.empty((n_steps, d, d))
    increments = np.zeros(n_steps)
    m, P = arrays.m, arrays.P
    for t, row in enumerate(rows):
        if t:
            m, P = arrays.A @ m + arrays.b, symmetric(arrays.A @ P @ arrays.A.T + arrays.Q)
        predicted_mean[t], predicted_covariance[t] = m, P
        seen = ~np.isnan(row)
        if seen.any():
            emission, error = arrays.C[seen], arrays.R[np.ix_(seen, seen)]
            S = symmetric(emission @ P @ emission.T + error)
            residual = row[seen] - emission @ m - arrays.c[seen]
            increments[t] = log_density(residual[None], cholesky(S))[0]
            gain = np.linalg.solve(S, emission @ P).T
            rest = np.eye(d) - gain @ emission
            m, P = m + gain @ residual, symmetric(rest @ P @ rest.T + gain @ error @ gain.T)
        mean[t], covariance[t] = m, P
    return KalmanResult(mean, covariance, predicted_mean, predicted_covariance, float(increments.sum()), increments)


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
    filtered = kalman_filter(model, observations)
    dynamics = model.arrays.A
    mean, covariance = filtered.mean.copy(), filtered.covariance.copy()
    for t in range(len(mean) - 2, -1, -1):
        predicted = filtered.predicted_covariance[t + 1]
        # A singular prediction (no noise in some direction) has a pseudo-inverse, which gives the same smoother.
        gain = filtered.covariance[t] @ dynamics.T @ np.linalg.pinv(predicted, hermitian=True)
        mean[t] += gain @ (mean[t + 1] - filtered.predicted_mean[t + 1])
        covariance[t] = symmetric(covariance[t] + gain @ (covariance[t + 1] - predicted) @ gain.T)
    return KalmanResult(
        mean,
        covariance,
        filtered.predicted_mean,
        filtered.predicted_covariance,
        filtered.log_evidence,
        filtered.increments,
    )
