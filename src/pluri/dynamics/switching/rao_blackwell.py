"""The Rao-Blackwellised particle filter: particles for the regimes, a Kalman filter for the state of each.

Particle i is a path of regimes with the mean mu and covariance Sigma of the state given that path. A step predicts and
updates both as a Kalman filter does (the covariance in Joseph's form) and multiplies the weight by

    p(y_t | z_{0:t}, y_{0:t-1}) = N(y_t; C mu + G u, C Sigma C^T + D D^T),

mu and Sigma predicted: with x integrated out, y_t depends on the whole path of regimes. The optimal proposal weighs all
k next regimes, sum_j P(j | z_{t-1}) N(y_t; ...)_j, and draws one from the terms: k times the work, less variance.

References
----------
Doucet, de Freitas, Murphy and Russell (2000), Rao-Blackwellised particle filtering for dynamic Bayesian networks, UAI.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.dynamics.switching.known import SwitchingLinearModel
from pluri.inference.smc.cloud import Scheme, degenerate
from pluri.inference.smc.filter import keeping_steps, report
from pluri.inference.smc.gaussian import cholesky, symmetric
from pluri.inference.smc.model import as_observations
from pluri.inference.smc.resampling import draw_ancestors
from pluri.inference.smc.weights import ParticleDegeneracyError, normalize_log_weights
from pluri.validation import Only, RandomState, as_generator, check_value
from pluri.validation.interruption import interruptible

__all__ = ["RaoBlackwellResult", "rao_blackwell_filter"]

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RaoBlackwellResult:
    """What the filter has seen; T steps, n particles, k regimes, d dimensions.

    Parameters
    ----------
    log_evidence : float
        log p(y_{0:T-1}), the sum of the increments. Its exponential is unbiased.
    increments, ess : ndarray (T,)
        log p(y_t | y_{0:t-1}), and the effective sample size after each observation.
    regime_probabilities : ndarray (T, k)
        p(z_t | y_{0:t}).
    mean, covariance : ndarray (T, d), (T, d, d)
        Of p(x_t | y_{0:t}): sum_i W_i mu_i and sum_i W_i (Sigma_i + (mu_i - mean) (mu_i - mean)^T).
    regimes, ancestors : ndarray (T, n) of int
        Regime of each particle, and its parent one step earlier.
    log_weights : ndarray (T, n)
        Normalised, before any resampling.
    particle_means, particle_covariances : ndarray (n, d), (n, d, d)
        mu and Sigma after the last step.
    interrupted : bool
        Whether Ctrl-C cut the run short.
    """

    log_evidence: float
    increments: Floats
    ess: Floats
    regime_probabilities: Floats
    mean: Floats
    covariance: Floats
    regimes: Indices
    ancestors: Indices
    log_weights: Floats
    particle_means: Floats
    particle_covariances: Floats
    interrupted: bool = False

    def __repr__(self) -> str:
        note = " (interrupted)" if self.interrupted else ""
        size = f"{len(self.increments)} steps, {self.log_weights.shape[1]} particles"
        return f"<RaoBlackwellResult: {size}, log evidence {self.log_evidence:.4f}>{note}"


@dataclass(frozen=True, eq=False)
class Tracks:
    """Regimes (n,) with the mean (n, d) and covariance (n, d, d) of the state given each path of regimes."""

    regimes: Indices
    mean: Floats
    covariance: Floats

    def take(self, indices: Indices) -> Tracks:
        return Tracks(self.regimes[indices], self.mean[indices], self.covariance[indices])


@interruptible
def rao_blackwell_filter(
    model: SwitchingLinearModel,
    observations: ArrayLike,
    n_particles: int = 500,
    proposal: str = "prior",
    resampling: str = "systematic",
    ess_threshold: float = 0.5,
    random_state: RandomState = None,
    verbose: int = 0,
) -> RaoBlackwellResult:
    """Follow the regimes of a switching linear model by particles, and its state exactly given the regimes.

    Parameters
    ----------
    model : SwitchingLinearModel
        The model.
    observations : array-like (T, m)
        NaN where nothing was seen.
    n_particles : int, default=500
        Number of particles.
    proposal : {"prior", "optimal"}, default="prior"
        Draw regimes from the Markov chain, or look ahead at the observation.
    resampling, ess_threshold, random_state, verbose
        As in :func:`particle_filter`.

    Returns
    -------
    RaoBlackwellResult

    Examples
    --------
    >>> from pluri.dynamics import make_maneuvering_target, rao_blackwell_filter
    >>> model = make_maneuvering_target()
    >>> states, observations = model.sample(50, random_state=0)
    >>> result = rao_blackwell_filter(model, observations, n_particles=100, random_state=0)
    >>> result.regime_probabilities.shape, result.covariance.shape
    ((50, 3), (50, 4, 4))
    """
    scheme = Scheme(n_particles, resampling, ess_threshold)
    if not isinstance(model, SwitchingLinearModel):
        raise TypeError(f"model must be a SwitchingLinearModel, got {type(model).__name__}")
    check_value(proposal, "proposal", Only("prior", "optimal"))
    rows = as_observations(model, observations)
    rng = as_generator(random_state)
    arrays = model.arrays
    n, k = int(n_particles), len(arrays.P)
    start = model.sample_regimes(rng, np.broadcast_to(arrays.p0, (n, k)))
    tracks = Tracks(start, np.tile(arrays.mean, (n, 1)), np.tile(arrays.covariance, (n, 1, 1)))
    weights, log_weights, ess = np.full(n, 1 / n), np.full(n, -math.log(n)), float(n)
    records: list[tuple[Any, ...]] = []
    with keeping_steps(lambda: len(records)) as block:
        for t, row in enumerate(rows):
            ancestors = np.arange(n)
            if scheme.calls_for_resampling(ess):
                ancestors = draw_ancestors(rng, weights, resampling, n)
                tracks, log_weights = tracks.take(ancestors), np.full(n, -math.log(n))
            moved, gain = (_look_ahead if proposal == "optimal" else _move)(model, tracks, row, t, rng)
            try:
                weights, increment = normalize_log_weights(log_weights + gain)
            except ParticleDegeneracyError:
                raise degenerate(t, n, "the predictive density") from None
            log_weights = log_weights + gain - increment
            ess = float(1.0 / np.square(weights).sum())
            mean = weights @ moved.mean
            apart = moved.mean - mean
            covariance = np.tensordot(weights, moved.covariance, axes=1) + (weights[:, None] * apart).T @ apart
            shares = np.bincount(moved.regimes, weights, minlength=k)
            records.append((increment, ess, shares, mean, covariance, moved.regimes, ancestors, log_weights))
            tracks = moved
            report(verbose, t, len(rows), increment)
    increments, sizes, probabilities, means, covariances, regimes, parents, logs = (
        np.array(column) for column in zip(*records)
    )
    return RaoBlackwellResult(
        log_evidence=float(increments.sum()),
        increments=increments,
        ess=sizes,
        regime_probabilities=probabilities,
        mean=means,
        covariance=covariances,
        regimes=regimes,
        ancestors=parents,
        log_weights=logs,
        particle_means=tracks.mean,
        particle_covariances=tracks.covariance,
        interrupted=block.interrupted,
    )


def _move(
    model: SwitchingLinearModel, tracks: Tracks, row: Floats, t: int, rng: np.random.Generator
) -> tuple[Tracks, Floats]:
    """Draw regimes from the Markov chain; returns the tracks given `row`, and log p(row | path of regimes)."""
    regimes = model.sample_regimes(rng, model.arrays.P[tracks.regimes])
    return _update(model, _predict(model, Tracks(regimes, tracks.mean, tracks.covariance), t), row, t)


def _look_ahead(
    model: SwitchingLinearModel, tracks: Tracks, row: Floats, t: int, rng: np.random.Generator
) -> tuple[Tracks, Floats]:
    """Update under every next regime, then draw one in proportion to how well it explains `row`."""
    n, k = len(tracks.regimes), len(model.arrays.P)
    repeated = tracks.take(np.repeat(np.arange(n), k))
    every = _predict(model, Tracks(np.tile(np.arange(k), n), repeated.mean, repeated.covariance), t)
    updated, density = _update(model, every, row, t)
    with np.errstate(divide="ignore"):
        terms = np.log(model.arrays.P[tracks.regimes]) + density.reshape(n, k)
    largest = terms.max(axis=1, keepdims=True)
    largest[largest == -np.inf] = 0.0
    shares = np.exp(terms - largest)
    with np.errstate(divide="ignore"):
        gain = largest[:, 0] + np.log(shares.sum(axis=1))
    regimes = model.sample_regimes(rng, np.where(gain[:, None] > -np.inf, shares, 1.0))
    return updated.take(np.arange(n) * k + regimes), gain


def _predict(model: SwitchingLinearModel, tracks: Tracks, t: int) -> Tracks:
    """Moments of x_t given the regimes up to t and the observations before t."""
    arrays, z = model.arrays, tracks.regimes
    dynamics = arrays.A[z]
    mean = np.einsum("nij,nj->ni", dynamics, tracks.mean) + model.offsets(t)[0][z]
    covariance = symmetric(dynamics @ tracks.covariance @ np.swapaxes(dynamics, 1, 2) + arrays.Q[z])
    return Tracks(z, mean, covariance)


def _update(model: SwitchingLinearModel, tracks: Tracks, row: Floats, t: int) -> tuple[Tracks, Floats]:
    """Moments given the entries of `row` that were seen as well, and the log density of those entries."""
    seen = ~np.isnan(row)
    if not seen.any():
        return tracks, np.zeros(len(tracks.regimes))
    arrays, z = model.arrays, tracks.regimes
    emission, error = arrays.C[z][:, seen], arrays.R[z][:, seen][:, :, seen]
    residual = row[seen] - np.einsum("nij,nj->ni", emission, tracks.mean) - model.offsets(t)[1][z][:, seen]
    crossed = emission @ tracks.covariance
    S = symmetric(crossed @ np.swapaxes(emission, 1, 2) + error)
    factor = cholesky(S)
    whitened = np.linalg.solve(factor, residual[:, :, None])[:, :, 0]
    log_scale = np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
    density = -0.5 * np.square(whitened).sum(axis=1) - log_scale - 0.5 * seen.sum() * math.log(2 * math.pi)
    gain = np.swapaxes(np.linalg.solve(S, crossed), 1, 2)
    rest = np.eye(tracks.mean.shape[1]) - gain @ emission
    mean = tracks.mean + np.einsum("nij,nj->ni", gain, residual)
    kept = rest @ tracks.covariance @ np.swapaxes(rest, 1, 2) + gain @ error @ np.swapaxes(gain, 1, 2)
    return Tracks(z, mean, symmetric(kept)), density
