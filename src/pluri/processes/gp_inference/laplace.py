"""Laplace's approximation to a Gaussian-process classifier: a Gaussian at the mode of the posterior.

Newton's iteration on ``Psi(f) = log p(y | f) - f' K^-1 f / 2``, with ``W = -d^2 log p(y|f) / df^2`` and
``B = I + sqrt(W) K sqrt(W)``; ``log p(y)`` is about ``Psi(f_hat) - sum log diag chol(B)``.

References
----------
.. [1] Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian processes for machine learning. Algorithms 3.1, 5.1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from pluri.optimize.fixed_point import iterate
from pluri.processes.gp_inference.covariance import Part
from pluri.processes.gp_inference.sites import GaussianSites, factor_of, half_solve, log_sigmoid, site_inverse, solve

Array = NDArray[np.float64]

TOLERANCE = 1e-10
#: A Newton step is halved at most so often before the mode counts as found to rounding.
MOST_HALVINGS = 30


class _Place(NamedTuple):
    """Weights ``K^-1 f``, the latent function f, and the objective there."""

    weights: Array
    latent: Array
    value: float


def laplace(covariance: Array, labels: Array, max_iter: int = 100, start: Array | None = None) -> GaussianSites:
    """Find the mode and the Gaussian there.

    Parameters
    ----------
    covariance : (n, n)
    labels : (n,) of -1 and 1
    max_iter : int, default=100
    start : (n,), optional
        Weights ``K^-1 f`` to begin with, if they are better than zeros.
    """
    target = (labels + 1.0) / 2.0
    history: list[float] = []

    def objective(a: Array, f: Array) -> float:
        return float(-0.5 * a @ f + log_sigmoid(labels * f).sum())

    def newton_step(place: _Place) -> tuple[_Place, float]:
        weights, latent, value = place
        chance = expit(latent)
        precision = chance * (1.0 - chance)
        factor, root = factor_of(covariance, precision)
        right = precision * latent + target - chance
        newton = right - root * solve(factor, root * (covariance @ right))
        step = 1.0
        for _ in range(MOST_HALVINGS):
            proposed = weights + step * (newton - weights)
            moved = covariance @ proposed
            after = objective(proposed, moved)
            if after >= value:
                break
            step *= 0.5
        else:
            proposed, moved, after = weights, latent, value
        history.append(after)
        return _Place(proposed, moved, after), after - value

    place = _Place(
        np.zeros(len(labels)), np.zeros(len(labels)), objective(np.zeros(len(labels)), np.zeros(len(labels)))
    )
    if start is not None:
        pulled = covariance @ start
        if objective(start, pulled) > place.value:
            place = _Place(start, pulled, objective(start, pulled))
    found = iterate(newton_step, place, max_iter=max_iter, tol=TOLERANCE)
    _, latent, value = found.state
    chance = expit(latent)
    precision = chance * (1.0 - chance)
    factor, _ = factor_of(covariance, precision)
    evidence = value - float(np.log(np.diagonal(factor)).sum())
    # At the mode K^-1 f = t - p; the latter form is what prediction uses.
    return GaussianSites(target - chance, precision, latent, evidence, tuple(history), found.converged)


def laplace_gradient(covariance: Array, labels: Array, sites: GaussianSites, slopes: list[Part]) -> Array:
    """Gradient of the approximate log evidence with respect to log hyper-parameters.

    Two ways lead from K to the evidence: directly, and through the mode, which moves the curvature W::

        1/2 a' dK a - 1/2 tr(R dK) + s' (I + K W)^-1 dK (t - p),   s_i = 1/2 var_i d^3 log p(y_i|f_i) / df_i^3

    with ``R = (K + W^-1)^-1`` and the posterior variances var.
    """
    factor, root = factor_of(covariance, sites.precision)
    inner = site_inverse(factor, root)  # R
    half = half_solve(factor, root[:, None] * covariance)
    variance = np.diagonal(covariance) - np.einsum("ij,ij->j", half, half)
    chance = expit(sites.mean)
    third = sites.precision * (2.0 * chance - 1.0)  # d^3 log p(y|f) / df^3
    through = 0.5 * variance * third
    gradient = np.empty(len(slopes))
    for index, part in enumerate(slopes):
        slope = part if isinstance(part, np.ndarray) else np.full(covariance.shape, part)
        direct = 0.5 * float(sites.weights @ slope @ sites.weights) - 0.5 * float(np.sum(inner * slope))
        pushed = slope @ sites.weights
        moved = pushed - covariance @ (inner @ pushed)
        gradient[index] = direct + float(through @ moved)
    return gradient
