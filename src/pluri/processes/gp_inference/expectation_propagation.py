"""Expectation propagation for a Gaussian-process classifier: sites whose Gaussians match moments.

For each observation, the site is taken out of the approximate posterior (the cavity), the true likelihood put in, and
the site set so that mean and variance agree. All sites are updated at once, with damping, and the posterior is
recomputed after each sweep: the fixed points are those of updating them one by one, and a sweep is two products
of matrices.

References
----------
.. [1] Minka, T. P. (2001). Expectation propagation for approximate Bayesian inference. UAI.
.. [2] Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian processes for machine learning. Section 3.6.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.optimize.fixed_point import iterate
from pluri.processes.gp_inference.covariance import Part
from pluri.processes.gp_inference.laplace import laplace
from pluri.processes.gp_inference.sites import GaussianSites, factor_of, half_solve, site_inverse, solve, tilted_moments

Array = NDArray[np.float64]

TOLERANCE = 1e-8


class _Sweep(NamedTuple):
    """Sites (precision and shift), where they should move, how far that is, and what was computed on the way.

    `last_move` and `damping` are those with which they came here; `factor` and `root` belong to the precisions.
    """

    precision: Array
    shift: Array
    new_precision: Array
    new_shift: Array
    move: float
    last_move: float
    damping: float
    factor: Array
    root: Array


def expectation_propagation(
    covariance: Array, labels: Array, max_iter: int = 500, damping: float = 0.8
) -> GaussianSites:
    """Iterate to the fixed point.

    Parameters
    ----------
    covariance : (n, n)
    labels : (n,) of -1 and 1
    max_iter : int, default=500
        Largest number of sweeps.
    damping : float, default=0.8
        How far the sites move to their new values in a sweep; less when a sweep moves them farther than the last.
    """
    # Laplace's sites are near, and cost a fraction of the sweeps that they save.
    start = laplace(covariance, labels)
    prior_variance = np.diagonal(covariance)
    history: list[float] = []

    def match(precision: Array, shift: Array, last_move: float, damping: float) -> _Sweep:
        factor, root = factor_of(covariance, precision)
        half = half_solve(factor, root[:, None] * covariance)
        variance = prior_variance - np.einsum("ij,ij->j", half, half)
        pulled = covariance @ shift
        mean = pulled - half.T @ (half @ shift)
        cavity_precision = np.maximum(1.0 / variance - precision, 1e-10 / prior_variance)
        cavity_variance = 1.0 / cavity_precision
        cavity_mean = cavity_variance * (mean / variance - shift)
        log_mass, tilted_mean, tilted_variance = _moments(labels, cavity_mean, cavity_variance)
        history.append(_log_evidence(covariance, factor, precision, shift, log_mass, cavity_mean, cavity_variance))
        new_precision = np.maximum(1.0 / tilted_variance - cavity_precision, 0.0)
        new_shift = tilted_mean / tilted_variance - cavity_mean * cavity_precision
        # In units of the cavity, so that the scale of the kernel does not matter.
        move = float(np.max(np.abs(new_precision - precision) * cavity_variance, initial=0.0))
        move = max(move, float(np.max(np.abs(new_shift - shift) * np.sqrt(cavity_variance), initial=0.0)))
        return _Sweep(precision, shift, new_precision, new_shift, move, last_move, damping, factor, root)

    def step(last: _Sweep) -> tuple[_Sweep, float]:
        damping = max(0.8 * last.damping, 0.05) if last.move > last.last_move else last.damping
        precision = last.precision + damping * (last.new_precision - last.precision)
        shift = last.shift + damping * (last.new_shift - last.shift)
        swept = match(precision, shift, last.move, damping)
        return swept, swept.move

    last = match(start.precision, start.precision * start.mean + start.weights, np.inf, damping)
    if last.move > TOLERANCE:
        last = iterate(step, last, max_iter=max_iter, tol=TOLERANCE).state
    weights = last.shift - last.root * solve(last.factor, last.root * (covariance @ last.shift))
    converged = last.move <= TOLERANCE
    return GaussianSites(weights, last.precision, covariance @ weights, history[-1], tuple(history), converged)


def _moments(labels: Array, mean: Array, variance: Array) -> tuple[Array, Array, Array]:
    """Tilted moments, by the compiled loop unless its exponentials might overflow."""
    if float(np.min(labels * mean, initial=0.0)) > -600.0:
        from pluri.processes.gp_inference._tilted_kernels import compiled_tilted_moments

        return compiled_tilted_moments(labels, mean, variance)
    return tilted_moments(labels, mean, variance)


def _log_evidence(
    covariance: Array, factor: Array, precision: Array, shift: Array, log_mass: Array, cavity_mean: Array,
    cavity_variance: Array,
) -> float:  # fmt: skip
    """Log evidence in a form that is finite for sites of precision 0.

    A site is ``exp(-tau f^2 / 2 + nu f)`` times a constant, chosen so that site and likelihood have the same mass
    against the cavity: ``log c = log Z - log E_cavity exp(-tau f^2 / 2 + nu f)``. The mass of all sites against the
    prior is ``-1/2 log|B| + 1/2 nu' S nu``.
    """
    spread = 1.0 + precision * cavity_variance
    against_cavity = (
        -0.5 * np.log(spread)
        + 0.5 * (cavity_variance * shift**2 + 2.0 * cavity_mean * shift - precision * cavity_mean**2) / spread
    )
    pulled = covariance @ shift
    half = half_solve(factor, np.sqrt(precision) * pulled)
    quadratic = float(shift @ pulled - half @ half)
    return float((log_mass - against_cavity).sum() - np.log(np.diagonal(factor)).sum() + 0.5 * quadratic)


def site_gradient(covariance: Array, sites: GaussianSites, slopes: list[Part]) -> Array:
    """Gradient of the log evidence with the sites held: ``1/2 tr((a a' - R) dK)``, ``R = (K + diag(1/tau))^-1``.

    At a fixed point of expectation propagation, and at a maximum of a variational bound, the sites do not contribute.
    """
    factor, root = factor_of(covariance, sites.precision)
    difference = np.outer(sites.weights, sites.weights) - site_inverse(factor, root)
    return np.array([0.5 * float(np.sum(difference * slope)) for slope in slopes])
