r"""Structured variational inference in a switching system: q(regimes) q(states), each a whole chain.

    log p(y) >= ELBO = E_q[log p(y, x, z)] + H(q(x)) + H(q(z)),

where q(x) is a Gaussian over paths with the precision of a linear system whose matrices are averaged over q(z), and
q(z) is a Markov chain whose "emissions" are the expected log densities of the state's moves. Each is exact given the
other, so that updating them in turn never lowers the bound; with q(z) at its best it is

    ELBO = log Z + E_q[log p(y | x)] + H(q(x)),

Z being the normaliser of the chain. With one regime q(x) is the Kalman smoother, and the bound is log p(y).

References
----------
Ghahramani and Hinton (2000), Variational learning for switching state-space models, Neural Computation 12.
Pavlovic, Rehg and MacCormick (2001), Learning switching linear models of human motion, NIPS 13.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pluri.components.chain.forward_backward import Chain, Smoothed, smooth
from pluri.dynamics.block_tridiagonal import PathDistribution
from pluri.dynamics.switching.parameters import SwitchingParameters
from pluri.dynamics.switching.potentials import Potentials, log_normal, observation_potentials
from pluri.dynamics.switching.rao_blackwell import Room

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SwitchingPosterior:
    """q of some sequences that lie end to end.

    Attributes
    ----------
    regimes : (n, k): q(z_t)
    mean, covariance : (n, d), (n, d, d): of q(x_t)
    lagged : (n, d, d): Cov(x_{t+1}, x_t), 0 in the last step of a sequence
    elbo : (n_sequences,)
    chain, log_emission : what q(z) is the posterior of: a chain, and expected log densities (n, padded width)
    """

    regimes: Array
    mean: Array
    covariance: Array
    lagged: Array
    elbo: Array
    chain: Chain
    log_emission: Array


def infer(
    parameters: SwitchingParameters,
    X: Array,
    offsets: Integers,
    start: Array | None = None,
    *,
    max_iter: int = 100,
    tol: float = 1e-6,
) -> SwitchingPosterior:
    """Update q(x) and q(z) in turn until the bound of each sequence gains less than `tol`, or `max_iter` times.

    A sequence that has converged rests, so that what is found does not depend on the sequences beside it. `start` is
    q(z) (n, k); that of the interacting multiple model filter if None.
    """
    regimes = filtered_start(parameters, X, offsets) if start is None else start
    system = Precomputed.of(parameters, observation_potentials(parameters, X))
    chain = Chain.from_probabilities(parameters.start, parameters.transition)
    lengths, ones = np.diff(offsets), np.ones(len(offsets) - 1)
    before, resting = np.full(len(ones), -np.inf), np.zeros(len(ones), dtype=bool)
    for sweep in range(max_iter):
        paths, mean, covariance, lagged = state_paths(system, regimes, offsets)
        log_emission, shared = expected_log_densities(system, mean, covariance, lagged, offsets, chain.width)
        found = smooth_regimes(chain, log_emission, offsets, ones)
        elbo = found.scores + _sums(shared, offsets) + path_entropy(paths, lengths)
        resting |= ~(elbo - before > tol)
        new = found.posterior[:, : chain.n_states]
        if resting.all() or sweep + 1 == max_iter:
            break
        regimes, before = np.where(np.repeat(resting, lengths)[:, None], regimes, new), elbo
    return SwitchingPosterior(new, mean, covariance, lagged, elbo, chain, log_emission)


def smooth_regimes(chain: Chain, log_emission: Array, offsets: Integers, weight: Array) -> Smoothed:
    """Posterior of the regimes, their starts and pairs, weighted by sequence; log densities are not changed."""
    return smooth(chain, lambda begin, end: log_emission[begin:end].copy(), offsets, weight)


@dataclass(frozen=True, eq=False)
class Precomputed:
    """What does not change between sweeps: inverse covariances, and the observations' pull on the states."""

    parameters: SwitchingParameters
    precision: Array  # (k, d, d): Q^-1
    lifted: Array  # (k, d, d): Q^-1 A
    initial_precision: Array  # (k, d, d)
    seen: Potentials

    @classmethod
    def of(cls, parameters: SwitchingParameters, seen: Potentials) -> Precomputed:
        """Of parameters, and potentials of the observations."""
        precision = _inverse(parameters.dynamics_covariance)
        first = _inverse(parameters.initial_covariance)
        return cls(parameters, precision, precision @ parameters.dynamics, first, seen)


def state_paths(system: Precomputed, regimes: Array, offsets: Integers) -> tuple[PathDistribution, Array, Array, Array]:
    """q(x) given q(z): its distribution, means, covariances and covariances from step to step."""
    parameters = system.parameters
    n, (k, d, _) = len(regimes), parameters.sizes
    first, later = first_and_later(offsets)
    A, b = parameters.dynamics, parameters.dynamics_offset
    moved = regimes[later]
    back = np.swapaxes(A, 1, 2) @ system.lifted
    pushed = np.einsum("kij,kj->ki", system.precision, b)
    pulled = np.einsum("kji,kj->ki", A, pushed)
    diagonal, linear = system.seen.averaged(regimes)
    diagonal[first] += (regimes[first] @ system.initial_precision.reshape(k, -1)).reshape(-1, d, d)
    initial = np.einsum("kij,kj->ki", system.initial_precision, parameters.initial_mean)
    linear[first] += regimes[first] @ initial
    diagonal[later] += (moved @ system.precision.reshape(k, -1)).reshape(-1, d, d)
    diagonal[later - 1] += (moved @ back.reshape(k, -1)).reshape(-1, d, d)
    linear[later] += moved @ pushed
    linear[later - 1] -= moved @ pulled
    below = np.zeros((n, d, d))
    below[later - 1] = -(moved @ system.lifted.reshape(k, -1)).reshape(-1, d, d)
    paths = PathDistribution.from_precision(diagonal, below, offsets)
    return paths, paths.solve(linear), *paths.covariances()


def expected_log_densities(
    system: Precomputed, mean: Array, covariance: Array, lagged: Array, offsets: Integers, width: int
) -> tuple[Array, Array]:
    """E_q(x) of the log density of each step's move in each regime (n, width), and of what all regimes share (n,)."""
    parameters = system.parameters
    n, (k, d, _) = len(mean), parameters.sizes
    first, later = first_and_later(offsets)
    out = np.full((n, width), -np.inf)
    factor = np.linalg.cholesky(system.initial_precision)
    for z in range(k):
        apart = mean[first] - parameters.initial_mean[z]
        out[first, z] = log_normal(apart, factor[z])
    out[first, :k] -= 0.5 * covariance[first].reshape(-1, d * d) @ system.initial_precision.reshape(k, -1).T
    factor = np.linalg.cholesky(system.precision)
    for z in range(k):
        apart = mean[later] - mean[later - 1] @ parameters.dynamics[z].T - parameters.dynamics_offset[z]
        out[later, z] = log_normal(apart, factor[z])
    # tr(Q^-1 Cov(x_t - A x_{t-1})), as products of flattened matrices.
    back = np.swapaxes(parameters.dynamics, 1, 2) @ system.lifted
    spread = covariance[later].reshape(-1, d * d) @ system.precision.reshape(k, -1).T
    spread += covariance[later - 1].reshape(-1, d * d) @ back.reshape(k, -1).T
    spread -= 2.0 * lagged[later - 1].reshape(-1, d * d) @ system.lifted.reshape(k, -1).T
    out[later, :k] -= 0.5 * spread
    seen = system.seen.expected(mean, covariance)
    if len(seen) == 1:
        return out, seen[0]
    out[:, :k] += seen.T
    return out, np.zeros(n)


def path_entropy(paths: PathDistribution, lengths: Integers) -> Array:
    """Entropy of q(x) of each sequence."""
    d = paths.factors.shape[1]
    return 0.5 * lengths * d * (1.0 + np.log(2 * np.pi)) - 0.5 * paths.log_determinants()


def filtered_start(parameters: SwitchingParameters, X: Array, offsets: Integers) -> Array:
    """p(z_t | y), roughly: a chain whose densities come from a filter with one Gaussian for each regime."""
    from pluri.dynamics.switching import _kalman_kernels as kernels

    k, d, m = parameters.sizes
    if k == 1:
        return np.ones((len(X), 1))
    chain = Chain.from_probabilities(parameters.start, parameters.transition)
    log_densities = np.full((len(X), chain.width), -np.inf)
    rows = np.empty((len(X), k))
    spaces = [(np.empty(k), np.zeros((k, d)), np.zeros((k, d, d))) for _ in range(2)]
    kernels.interacting_filters(parameters.matrices(), X, offsets, rows, *spaces, Room.of(d, m))
    log_densities[:, :k] = rows
    found = smooth_regimes(chain, log_densities, offsets, np.ones(len(offsets) - 1))
    return found.posterior[:, :k]


def first_and_later(offsets: Integers) -> tuple[Integers, Integers]:
    """Rows that begin a sequence, and all others."""
    begins = offsets[:-1][np.diff(offsets) > 0]
    later = np.ones(int(offsets[-1]), dtype=bool)
    later[begins] = False
    return begins, np.flatnonzero(later)


def _sums(values: Array, offsets: Integers) -> Array:
    """Sums over the steps of each sequence."""
    n_sequences = len(offsets) - 1
    which = np.repeat(np.arange(n_sequences), np.diff(offsets))
    return np.asarray(np.bincount(which, values, minlength=n_sequences), dtype=np.float64)


def _inverse(covariances: Array) -> Array:
    """Inverse of positive definite matrices, symmetric."""
    inverse = np.linalg.inv(covariances)
    return np.asarray(0.5 * (inverse + np.swapaxes(inverse, 1, 2)), dtype=np.float64)
