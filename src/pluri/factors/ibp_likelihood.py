"""Data as sums of features that are on or off, ``X = Z A + noise``, with the features A integrated out.

With ``A ~ N(0, f)`` and noise ``N(0, s)`` in every entry and ``M = Z' Z + (s / f) I``,
``log p(X | Z) = -N D / 2 log(2 pi) - (N - K) D / 2 log s - K D / 2 log f - D / 2 log |M|
- tr(X' (I - Z M^-1 Z') X) / (2 s)``. A bias is one more column of Z that is always on, with a variance of its own.

References
----------
Griffiths and Ghahramani (2011), The Indian buffet process: an introduction and review, JMLR 12.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FeaturePosterior:
    """Features given Z: ``A ~ N(mean, noise_variance * spread)`` in every column of the data.

    Attributes
    ----------
    mean : (n_columns, n_dims): first the bias, if there is one
    spread : (n_columns, n_columns): M^-1
    log_determinant : log |M|
    """

    mean: Array
    spread: Array
    log_determinant: float


def with_bias(Z: NDArray[np.int8], bias_variance: float | None) -> NDArray[np.int8]:
    """Z with a first column of ones, if there is a bias."""
    return Z if bias_variance is None else np.column_stack([np.ones(len(Z), dtype=np.int8), Z])


def feature_posterior(
    X: Array, Z: NDArray[np.int8], noise_variance: float, feature_variance: float, bias_variance: float | None = None
) -> FeaturePosterior:
    """Posterior of the features; `bias_variance` may be infinite (a flat prior) or None (no bias)."""
    columns = with_bias(Z, bias_variance).astype(np.float64)
    penalty = np.full(columns.shape[1], noise_variance / feature_variance)
    if bias_variance is not None:
        penalty[0] = noise_variance / bias_variance
    M = columns.T @ columns + np.diag(penalty)
    if not len(M):
        return FeaturePosterior(np.zeros((0, X.shape[1])), M, 0.0)
    factor = cho_factor(M, lower=True)
    spread = cho_solve(factor, np.eye(len(M)))
    log_determinant = 2 * float(np.log(np.diagonal(factor[0])).sum())
    return FeaturePosterior(cho_solve(factor, columns.T @ X), (spread + spread.T) / 2, log_determinant)


def collapsed_log_likelihood(
    X: Array, Z: NDArray[np.int8], noise_variance: float, feature_variance: float, bias_variance: float | None = None
) -> float:
    """Log density of the data given Z; up to a constant if the bias has a flat prior.

    Parameters
    ----------
    X : array of shape (n_samples, n_dims)
    Z : array of shape (n_samples, n_features)
    noise_variance, feature_variance : float
    bias_variance : float, optional

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors.ibp_likelihood import collapsed_log_likelihood
    >>> X, Z = np.array([[1.0], [-0.5]]), np.array([[1], [1]], dtype=np.int8)
    >>> collapsed_log_likelihood(X, Z, 0.25, 1.0)
    -3.8279728
    """
    n, d = X.shape
    posterior = feature_posterior(X, Z, noise_variance, feature_variance, bias_variance)
    n_columns = len(posterior.mean)
    fitted = with_bias(Z, bias_variance) @ posterior.mean
    explained = float((X * (X - fitted)).sum())
    logs = Z.shape[1] * math.log(feature_variance)
    if bias_variance is not None and math.isfinite(bias_variance):
        logs += math.log(bias_variance)
    constant = n * math.log(2 * math.pi) + (n - n_columns) * math.log(noise_variance) + logs
    return -0.5 * (d * (constant + posterior.log_determinant) + explained / noise_variance)
