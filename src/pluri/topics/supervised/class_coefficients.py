r"""Coefficients of classes given the shares of topics: p(y_d = c) proportional to exp(w_c' zbar_d), w_ck ~ N(0, s^2).

They are put at their mode, or moved by elliptical slices [1]_, which leave their conditional distribution invariant.

References
----------
.. [1] Murray, I., Adams, R. P. and MacKay, D. J. C. (2010). Elliptical slice sampling. AISTATS.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp

Array = NDArray[np.float64]
#: Elliptical slices for each sweep over the tokens: they are cheap beside it.
SLICES = 5


def log_classes(coefficients: Array, shares: Array, label: NDArray[Any]) -> float:
    """Log probability of the classes of documents."""
    scores = log_softmax(shares @ coefficients.T, axis=1)
    return float(scores[np.arange(len(label)), label].sum())


def slice_coefficients(
    rng: np.random.Generator, coefficients: Array, shares: Array, label: NDArray[Any], prior_var: float
) -> Array:
    """Move the coefficients some times by elliptical slices."""
    current = coefficients
    for _ in range(SLICES):
        threshold = log_classes(current, shares, label) + math.log(rng.uniform())
        other = rng.normal(scale=math.sqrt(prior_var), size=current.shape)
        angle = rng.uniform(0, 2 * math.pi)
        low, high = angle - 2 * math.pi, angle
        while True:
            proposal = math.cos(angle) * current + math.sin(angle) * other
            if log_classes(proposal, shares, label) > threshold:
                current = proposal
                break
            low, high = (angle, high) if angle < 0 else (low, angle)
            angle = rng.uniform(low, high)
    return current


def maximal_coefficients(
    start: Array, shares: Array, label: NDArray[Any], prior_var: float, *, max_iter: int = 30
) -> Array:
    """Mode of the coefficients of classes given the shares of topics, from a start.

    Parameters
    ----------
    start : array of shape (n_classes, n_topics)
    shares : array of shape (n_documents, n_topics)
    label : int array of shape (n_documents,)
    prior_var : float
    max_iter : int, default=30

    Returns
    -------
    array of shape (n_classes, n_topics)
    """
    from scipy.optimize import minimize

    rows = np.arange(len(label))

    def loss(flat: Array) -> tuple[float, Array]:
        coefficients = flat.reshape(start.shape)
        scores = shares @ coefficients.T
        totals = logsumexp(scores, axis=1, keepdims=True)
        value = float((totals[:, 0] - scores[rows, label]).sum()) + 0.5 * float(flat @ flat) / prior_var
        gap = np.exp(scores - totals)
        gap[rows, label] -= 1.0
        return value, (gap.T @ shares).ravel() + flat / prior_var

    found = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": max_iter})
    best: Array = found.x.reshape(start.shape)
    return best
