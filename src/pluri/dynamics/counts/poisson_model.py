"""Counts given Gaussian states: what all observation models share, and Poisson counts.

The expected log-likelihood of a neuron is concave in its loadings and its intercept (or shape) together, so that the
M-step is a few Newton steps for all neurons at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from pluri.dynamics.counts.newton import ascend
from pluri.dynamics.counts.records import PoissonObservation, Posteriors

Array = NDArray[np.float64]
Derivatives = tuple[Array, Array, Array]

#: Largest exponent of a Poisson rate: beyond it only the refusal of a step is left.
HIGHEST = 80.0
#: Rows that are worked on at a time.
BLOCK = 4096


def theta_moments(loadings: Array, means: Array, covariances: Array) -> tuple[Array, Array]:
    """Means c_i' m_t and variances c_i' V_t c_i of the natural parameters: (n, N) each."""
    outer = (loadings[:, :, None] * loadings[:, None, :]).reshape(len(loadings), -1)
    return means @ loadings.T, np.maximum(covariances.reshape(len(means), -1) @ outer.T, 0.0)


def site_derivatives(loadings: Array, value: Array, residual: Array, curvature: Array) -> Derivatives:
    """Sums over neurons of log-likelihoods, gradients in the mean of the states, and precisions."""
    n, p = len(value), loadings.shape[1]
    outer = (loadings[:, :, None] * loadings[:, None, :]).reshape(len(loadings), -1)
    return value.sum(axis=1), residual @ loadings, (curvature @ outer).reshape(n, p, p)


@dataclass(frozen=True, eq=False)
class PoissonModel:
    """Poisson counts, whose expectations are known: exp(mean + variance / 2)."""

    def sites(
        self, observation: PoissonObservation, counts: Array, *, integrates: bool = True
    ) -> Callable[..., Derivatives]:
        """Function of means and covariances, for `variational_paths` or `laplace_paths`."""
        seen = ~np.isnan(counts)
        y = np.where(seen, counts, 0.0)

        def evaluate(means: Array, covariances: Array, rows: NDArray[np.bool_] | None = None) -> Derivatives:
            theta, variance = theta_moments(observation.loadings, means, covariances)
            theta += observation.intercept
            exponent = theta + 0.5 * variance if integrates else theta
            rate = np.where(seen, np.exp(np.minimum(exponent, HIGHEST)), 0.0)
            return site_derivatives(observation.loadings, y * theta - rate, y - rate, rate)

        return evaluate

    def working_sites(self, observation: PoissonObservation, counts: Array, center: Array) -> tuple[Array, Array]:
        """Sites at rates equal to the counts plus a half: gradients at `center` (n, p), and precisions (n, p, p)."""
        rate = np.where(np.isnan(counts), 0.0, counts + 0.5)
        away = np.log(np.where(rate > 0, rate, 1.0)) - observation.intercept - center @ observation.loadings.T
        return site_derivatives(observation.loadings, rate, rate * away, rate)[1:]

    def constants(self, observation: PoissonObservation, counts: Array) -> Array:
        """The part of each row's log-likelihood that does not depend on states: (n,)."""
        return -np.nansum(gammaln(counts + 1.0), axis=1)

    def maximize(self, posteriors: Posteriors, observation: PoissonObservation) -> PoissonObservation:
        """Loadings and intercepts of a larger expected log-likelihood; neurons without a count stay as they are."""
        p = observation.loadings.shape[1]

        def evaluate(point: Array) -> Derivatives:
            n, d = point.shape
            out = np.zeros(n), np.zeros((n, d)), np.zeros((n, d, d))
            for part in posteriors.parts:
                for begin in range(0, len(part[0]), BLOCK):
                    _add_poisson(out, point, *(array[begin : begin + BLOCK] for array in part))
            return out

        start = np.column_stack([observation.loadings, observation.intercept])
        point = ascend(evaluate, start, np.ones(start.shape, dtype=bool))
        return PoissonObservation(point[:, :p].copy(), point[:, p].copy())

    def log_prior(self, observation: PoissonObservation) -> float:
        """There is none."""
        return 0.0


def _add_poisson(
    out: Derivatives, point: Array, counts: Array, weight: Array, means: Array, covariances: Array
) -> None:
    """Add to `out` the expected log-likelihood of each neuron and its derivatives in (c, d).

    With z = (m + V c, 1) the rate exp(c'm + d + c'V c / 2) has the gradient rate z and the second derivatives
    rate (z z' + V).
    """
    n, p = means.shape
    loadings, intercept = point[:, :p], point[:, p]
    seen = ~np.isnan(counts)
    y = np.where(seen, counts, 0.0) * weight[:, None]
    theta, variance = theta_moments(loadings, means, covariances)
    theta += intercept
    rate = np.where(seen, np.exp(np.minimum(theta + 0.5 * variance, HIGHEST)), 0.0) * weight[:, None]
    z = np.ones((len(loadings), n, p + 1))
    z[:, :, :p] = means + np.matmul(covariances, loadings.T).transpose(2, 0, 1)
    out[0][:] += (y * theta - rate).sum(axis=0)
    weighted = rate.T[:, :, None] * z
    out[1][:] -= weighted.sum(axis=1)
    out[1][:, :p] += y.T @ means
    out[1][:, p] += y.sum(axis=0)
    out[2][:] += np.matmul(z.transpose(0, 2, 1), weighted)
    out[2][:, :p, :p] += (rate.T @ covariances.reshape(n, -1)).reshape(-1, p, p)
