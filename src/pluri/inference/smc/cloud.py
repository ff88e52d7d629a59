"""A weighted cloud of particles, and the step that moves it from one observation to the next.

With weights W that add up to one, a step draws x_t^i ~ q(. | x_{t-1}^i, y_t) and multiplies the weights by

    p(y_t | x_t) p(x_t | x_{t-1}) / q(x_t | x_{t-1}, y_t);

their sum is the increment of the evidence, p(y_t | y_{0:t-1}). The product of the increments is an unbiased estimate of
p(y_{0:t}), whatever decides when to resample. The auxiliary filter resamples by W^i eta_i, where eta_i predicts how
well particle i will explain y_t, and divides the weights by eta again; the increment is then
(sum_i W^i eta_i) (mean_j w_j).

References
----------
Gordon, Salmond and Smith (1993), Novel approach to nonlinear/non-Gaussian Bayesian state estimation, IEE Proceedings F.
Pitt and Shephard (1999), Filtering via simulation: auxiliary particle filters, JASA 94.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.inference.smc.model import (
    NEEDS,
    StateSpaceModel,
    checked_log_density,
    checked_particles,
    is_missing,
    require,
)
from pluri.inference.smc.resampling import check_method, draw_ancestors
from pluri.inference.smc.weights import ParticleDegeneracyError, normalize_log_weights
from pluri.validation import Only, check_value

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scheme:
    """How a cloud is moved and when it is resampled.

    Parameters
    ----------
    n_particles : int
        Number of particles.
    resampling : str
        Name of the resampling scheme.
    ess_threshold : float
        Resample when the effective sample size is below this share of the particles: 0 never, 1 at every step.
    proposal : {"bootstrap", "guided", "auxiliary"}
        Where the particles are drawn from.
    """

    n_particles: int
    resampling: str = "systematic"
    ess_threshold: float = 0.5
    proposal: str = "bootstrap"

    def __post_init__(self) -> None:
        if not isinstance(self.n_particles, Integral) or isinstance(self.n_particles, bool) or self.n_particles < 1:
            raise ValueError(f"n_particles must be an integer of at least 1, got {self.n_particles!r}")
        if not isinstance(self.ess_threshold, Real) or not 0 <= self.ess_threshold <= 1:
            raise ValueError(f"ess_threshold must be between 0 and 1, got {self.ess_threshold!r}")
        check_method(self.resampling, "resampling")
        check_value(self.proposal, "proposal", Only(*NEEDS))

    def check(self, model: object) -> None:
        """Refuse a model that lacks what the proposal needs."""
        require(model, ("sample_initial", "sample_transition", "log_observation"), "a particle filter")
        require(model, NEEDS[self.proposal], f"proposal={self.proposal!r}")

    def calls_for_resampling(self, ess: float) -> bool:
        """Whether a cloud of this effective sample size is resampled."""
        return ess < self.ess_threshold * self.n_particles


@dataclass(frozen=True, eq=False)
class Cloud:
    """Weighted particles after an observation.

    Parameters
    ----------
    t : int
        Time step, from 0.
    particles : ndarray (n, ...)
        States.
    log_weights : ndarray (n,)
        Normalised: their exponentials add up to one.
    weights : ndarray (n,)
        exp(log_weights).
    increment : float
        log p(y_t | y_{0:t-1}), estimated.
    ancestors : ndarray (n,) of int
        Index of the parent of each particle in the cloud one step earlier.
    resampled : bool
        Whether the parents were drawn.
    """

    t: int
    particles: NDArray[Any]
    log_weights: Floats
    weights: Floats
    increment: float
    ancestors: NDArray[np.int64]
    resampled: bool

    @property
    def ess(self) -> float:
        """Effective sample size, 1 / sum W^2."""
        return float(1.0 / np.square(self.weights).sum())

    @property
    def mean(self) -> Floats:
        """Weighted mean of the particles."""
        return np.asarray(np.tensordot(self.weights, self.particles, axes=1), dtype=np.float64)

    @property
    def variance(self) -> Floats:
        """Weighted variance of each coordinate."""
        return np.asarray(np.tensordot(self.weights, np.square(self.particles - self.mean), axes=1), dtype=np.float64)


def first_cloud(model: StateSpaceModel, observation: Any, scheme: Scheme, rng: np.random.Generator) -> Cloud:
    """The cloud after the first observation, drawn from the model's initial distribution."""
    n = scheme.n_particles
    particles = checked_particles(model.sample_initial(rng, n), n, "sample_initial", 0)
    log_weights = np.full(n, -math.log(n))
    log_densities = None
    if not is_missing(observation):
        log_densities = checked_log_density(model.log_observation(observation, particles, 0), n, "log_observation", 0)
    return _weighted(0, particles, log_weights, log_densities, 0.0, np.arange(n), False)


def next_cloud(model: Any, cloud: Cloud, observation: Any, scheme: Scheme, rng: np.random.Generator) -> Cloud:
    """The cloud after one more observation."""
    n, t = scheme.n_particles, cloud.t + 1
    missing = is_missing(observation)
    log_weights, weights, ess = cloud.log_weights, cloud.weights, cloud.ess
    log_first = 0.0  # log sum_i W^i eta_i
    lookahead = None
    if scheme.proposal == "auxiliary" and not missing:
        lookahead = checked_log_density(model.log_lookahead(observation, cloud.particles, t), n, "log_lookahead", t)
        try:
            weights, log_first = normalize_log_weights(log_weights + lookahead)
        except ParticleDegeneracyError:
            raise degenerate(t, n, "log_lookahead") from None
        ess = float(1.0 / np.square(weights).sum())
    resampled = scheme.calls_for_resampling(ess)
    if resampled:
        ancestors = draw_ancestors(rng, weights, scheme.resampling, n)
        log_weights = np.full(n, -math.log(n))
        if lookahead is not None:
            log_weights = log_weights - lookahead[ancestors]
    else:
        ancestors = np.arange(n)
        log_first = 0.0
    parents = cloud.particles[ancestors]
    if scheme.proposal == "guided" and not missing:
        drawn = model.sample_proposal(rng, parents, observation, t)
        particles = checked_particles(drawn, n, "sample_proposal", t)
        proposed = checked_log_density(model.log_proposal(particles, parents, observation, t), n, "log_proposal", t)
        moved = checked_log_density(model.log_transition(particles, parents, t), n, "log_transition", t)
        if not (proposed > -np.inf).all():
            raise ValueError(f"log_proposal must be finite at its own draws, got -inf at time step {t}")
        log_weights = log_weights + moved - proposed
    else:
        particles = checked_particles(model.sample_transition(rng, parents, t), n, "sample_transition", t)
    seen = None
    if not missing:
        seen = checked_log_density(model.log_observation(observation, particles, t), n, "log_observation", t)
    return _weighted(t, particles, log_weights, seen, log_first, ancestors, resampled)


def degenerate(t: int, n: int, source: str = "log_observation") -> ParticleDegeneracyError:
    """The error of a cloud that has lost its track."""
    return ParticleDegeneracyError(
        f"all {n} particles have weight zero at time step {t}: {source} is -inf for every one of them. "
        "Use more particles, a proposal that looks at the observation, or an observation density with heavier tails",
        t,
    )


def _weighted(
    t: int,
    particles: NDArray[Any],
    log_weights: Floats,
    log_densities: Floats | None,
    log_first: float,
    ancestors: NDArray[np.int64],
    resampled: bool,
) -> Cloud:
    if log_densities is None:
        return Cloud(t, particles, log_weights, np.exp(log_weights), 0.0, ancestors, resampled)
    try:
        weights, log_total = normalize_log_weights(log_weights + log_densities)
    except ParticleDegeneracyError:
        raise degenerate(t, len(particles)) from None
    log_weights = log_weights + log_densities - log_total
    return Cloud(t, particles, log_weights, weights, log_first + log_total, ancestors, resampled)
