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
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.dynamics.switching.known import SwitchingLinearModel
from pluri.inference.smc.cloud import Scheme, degenerate
from pluri.inference.smc.filter import keeping_steps, report
from pluri.inference.smc.gaussian import symmetric
from pluri.inference.smc.model import as_observations
from pluri.inference.smc.resampling import draw_ancestors
from pluri.inference.smc.weights import ParticleDegeneracyError, normalize_log_weights
from pluri.validation import Only, RandomState, as_generator, check_value
from pluri.validation.interruption import interruptible

__all__ = ["RaoBlackwellResult", "rao_blackwell_filter"]

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
PROPOSALS = ("prior", "optimal")


class Matrices(NamedTuple):
    """A switching system at one time step, as compiled functions take it.

    Attributes
    ----------
    start, transition : (k,), (k, k): probabilities of the first regime, and of the next one
    A, b, Q : (k, d, d), (k, d), (k, d, d): the state moves on to A x + b, with covariance Q
    C, c, R : (g, m, d), (g, m), (g, m, m): it is seen as C x + c, with covariance R; g is k, or 1 for all regimes
    first_mean, first_covariance : (k, d), (k, d, d): of the state at the first observation, given its regime
    """

    start: Floats
    transition: Floats
    A: Floats
    b: Floats
    Q: Floats
    C: Floats
    c: Floats
    R: Floats
    first_mean: Floats
    first_covariance: Floats


class Room(NamedTuple):
    """Space for a Kalman step of d dimensions and m outputs."""

    seen: Indices
    residual: Floats
    whitened: Floats
    factor: Floats
    crossed: Floats
    scaled: Floats
    rest: Floats
    product: Floats

    @classmethod
    def of(cls, d: int, m: int) -> Room:
        """Fresh space."""
        whole = np.empty(m, dtype=np.int64)
        pairs = [np.empty((m, m)), np.empty((m, d)), np.empty((m, d)), np.empty((d, d)), np.empty((d, d))]
        return cls(whole, np.empty(m), np.empty(m), *pairs)


class Tracks(NamedTuple):
    """Regimes (n,) with the mean (n, d) and covariance (n, d, d) of the state given each path of regimes."""

    regimes: Indices
    mean: Floats
    covariance: Floats

    @classmethod
    def of(cls, n: int, d: int) -> Tracks:
        """Tracks that mean nothing yet."""
        return cls(np.zeros(n, dtype=np.int64), np.zeros((n, d)), np.zeros((n, d, d)))

    def take(self, indices: Indices) -> Tracks:
        """Copies of some tracks."""
        return Tracks(self.regimes[indices], self.mean[indices], self.covariance[indices])


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
    check_value(proposal, "proposal", Only(*PROPOSALS))
    rows = np.ascontiguousarray(as_observations(model, observations), dtype=np.float64)
    fixed = matrices_of(model, 0) if model.arrays.u.ndim == 1 else None
    return track(lambda t: fixed or matrices_of(model, t), rows, scheme, proposal, as_generator(random_state), verbose)


def matrices_of(model: SwitchingLinearModel, t: int) -> Matrices:
    """A known model at time step t; what comes before the first observation is integrated out."""
    arrays = model.arrays
    (push, lift), across = model.offsets(t), np.swapaxes(arrays.A, 1, 2)
    first = symmetric(arrays.A @ arrays.covariance @ across + arrays.Q)
    values = (arrays.p0 @ arrays.P, arrays.P, arrays.A, push, arrays.Q, arrays.C, lift, arrays.R)
    # Copies: read-only arrays would have the compiled functions compiled once more.
    return Matrices(*(np.array(value) for value in (*values, arrays.A @ arrays.mean + push, first)))


class RaoBlackwellFilter:
    """The cloud of tracks between two observations: `step` takes one more."""

    def __init__(self, scheme: Scheme, proposal: str, sizes: tuple[int, int, int], rng: np.random.Generator) -> None:
        k, d, m = sizes
        self.scheme, self.rng, self.n_steps, self.n_regimes = scheme, rng, 0, k
        n = int(scheme.n_particles)
        self.tracks, self._next = Tracks.of(n, d), Tracks.of(n, d)
        self._gains, self._room = np.empty(n), Room.of(d, m)
        self._ahead = (np.empty(k), np.empty((k, d)), np.empty((k, d, d))) if proposal == "optimal" else None
        self.weights, self.log_weights = np.full(n, 1 / n), np.full(n, -math.log(n))
        self.ancestors, self.increment, self.ess = np.arange(n), 0.0, float(n)

    def step(self, system: Matrices, row: Floats) -> None:
        """Move on to the next observation; NaN where nothing was seen."""
        from pluri.dynamics.switching import _kalman_kernels as kernels  # the compiler is loaded when it is needed

        n = len(self.weights)
        self.ancestors = np.arange(n)
        if self.scheme.calls_for_resampling(self.ess):
            self.ancestors = draw_ancestors(self.rng, self.weights, self.scheme.resampling, n)
            self.tracks, self.log_weights = self.tracks.take(self.ancestors), np.full(n, -math.log(n))
        uniforms = self.rng.random(n)
        first = self.n_steps == 0
        kernels.move(system, first, row, uniforms, self.tracks, self._next, self._gains, self._room, self._ahead)
        try:
            self.weights, self.increment = normalize_log_weights(self.log_weights + self._gains)
        except ParticleDegeneracyError:
            raise degenerate(self.n_steps, n, "the predictive density") from None
        self.log_weights = self.log_weights + self._gains - self.increment
        self.ess = float(1.0 / np.square(self.weights).sum())
        self.tracks, self._next = self._next, self.tracks
        self.n_steps += 1

    @property
    def regime_probabilities(self) -> Floats:
        """p(z_t | y_{0:t}): (k,)."""
        return np.asarray(np.bincount(self.tracks.regimes, self.weights, self.n_regimes), dtype=np.float64)

    def moments(self) -> tuple[Floats, Floats]:
        """Mean (d,) and covariance (d, d) of p(x_t | y_{0:t})."""
        mean = self.weights @ self.tracks.mean
        apart = self.tracks.mean - mean
        within = np.tensordot(self.weights, self.tracks.covariance, axes=1)
        return mean, symmetric(within + (self.weights[:, None] * apart).T @ apart)


def track(
    system: Callable[[int], Matrices],
    rows: Floats,
    scheme: Scheme,
    proposal: str,
    rng: np.random.Generator,
    verbose: int = 0,
) -> RaoBlackwellResult:
    """`rao_blackwell_filter` of a system that is known to be right, given as a function of time."""
    sizes = system(0)
    cloud = RaoBlackwellFilter(scheme, proposal, (len(sizes.start), sizes.b.shape[1], rows.shape[1]), rng)
    records: list[tuple[Any, ...]] = []
    with keeping_steps(lambda: len(records)) as block:
        for t, row in enumerate(rows):
            cloud.step(system(t), row)
            seen = (cloud.increment, cloud.ess, cloud.regime_probabilities, *cloud.moments())
            records.append((*seen, cloud.tracks.regimes.copy(), cloud.ancestors, cloud.log_weights))
            report(verbose, t, len(rows), cloud.increment)
    increments, ess, probabilities, means, covariances, regimes, parents, logs = (
        np.array(column) for column in zip(*records)
    )
    return RaoBlackwellResult(
        log_evidence=float(increments.sum()),
        increments=increments,
        ess=ess,
        regime_probabilities=probabilities,
        mean=means,
        covariance=covariances,
        regimes=regimes,
        ancestors=parents,
        log_weights=logs,
        particle_means=cloud.tracks.mean,
        particle_covariances=cloud.tracks.covariance,
        interrupted=block.interrupted,
    )
