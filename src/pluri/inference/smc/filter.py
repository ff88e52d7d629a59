"""Particle filters: the hidden state of a model followed through a sequence of observations.

Bootstrap, guided and auxiliary filters with adaptive resampling, and the estimate of the evidence p(y_{0:T-1}) that
comes with them: its exponential is unbiased, so that the logarithm is low by about half its variance. The variance
falls as one over the number of particles.

References
----------
Doucet and Johansen (2011), A tutorial on particle filtering and smoothing: fifteen years later.
Chopin and Papaspiliopoulos (2020), An Introduction to Sequential Monte Carlo, Springer.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.inference.smc.cloud import Cloud, Scheme, degenerate, first_cloud, next_cloud
from pluri.inference.smc.model import StateSpaceModel, as_observations
from pluri.inference.smc.resampling import RESAMPLING_METHODS
from pluri.validation import Only, RandomState, as_generator, check_value
from pluri.validation.interruption import holding, interruptible

__all__ = ["ParticleFilterResult", "particle_filter"]

Floats = NDArray[np.float64]

#: Particle steps that a compiled loop does before the interpreter may be interrupted: a few hundredths of a second.
BLOCK = 2_000_000
STORES = ("moments", "marginals", "paths")


@dataclass(frozen=True, eq=False)
class ParticleFilterResult:
    """What a filter has seen; T is the number of steps that were done, n the number of particles.

    Parameters
    ----------
    log_evidence : float
        log p(y_{0:T-1}), the sum of the increments. Its exponential is unbiased.
    increments : ndarray (T,)
        log p(y_t | y_{0:t-1}); 0 where nothing was seen.
    ess : ndarray (T,)
        Effective sample size 1 / sum W^2 after each observation, before any resampling.
    mean, variance : ndarray (T, ...)
        Of the filtering distribution p(x_t | y_{0:t}).
    particles : ndarray (T, n, ...)
        The clouds; the last one only, (1, n, ...), with ``store="moments"``.
    log_weights : ndarray (T, n)
        Their normalised log weights, before any resampling; the last ones only with ``store="moments"``.
    ancestors : ndarray (T, n) of int, or None
        Index at step t - 1 of the parent of each particle of step t, with ``store="paths"``.
    resampled : ndarray (T,) of bool
        Whether the parents of step t were drawn from step t - 1, instead of going on one each.
    interrupted : bool
        Whether Ctrl-C cut the run short.
    """

    log_evidence: float
    increments: Floats
    ess: Floats
    mean: Floats
    variance: Floats
    particles: NDArray[Any]
    log_weights: Floats
    ancestors: NDArray[np.int64] | None
    resampled: NDArray[np.bool_]
    interrupted: bool = False

    @property
    def weights(self) -> Floats:
        """exp(log_weights)."""
        return np.exp(self.log_weights)

    @property
    def n_steps(self) -> int:
        """Number of observations that were used."""
        return len(self.increments)

    def __repr__(self) -> str:
        note = " (interrupted)" if self.interrupted else ""
        size = f"{self.n_steps} steps, {self.particles.shape[1]} particles"
        return f"<ParticleFilterResult: {size}, log evidence {self.log_evidence:.4f}>{note}"


@interruptible
def particle_filter(
    model: StateSpaceModel,
    observations: ArrayLike,
    n_particles: int = 1000,
    resampling: str = "systematic",
    ess_threshold: float = 0.5,
    proposal: str = "bootstrap",
    random_state: RandomState = None,
    store: str = "marginals",
    verbose: int = 0,
    compiled: bool = True,
) -> ParticleFilterResult:
    """Follow the state of a model through observations.

    Parameters
    ----------
    model : StateSpaceModel
        The model. `LinearGaussianModel`, `StochasticVolatility` and `CompiledModel` run in a compiled loop under the
        bootstrap proposal, any other in a loop over time with array operations over particles.
    observations : array-like (T, ...)
        ``observations[t]`` is handed to the model; where it is all NaN nothing was seen and the weights stay.
    n_particles : int, default=1000
        Number of particles.
    resampling : {"systematic", "stratified", "residual", "multinomial"}, default="systematic"
        See :func:`resample`.
    ess_threshold : float, default=0.5
        Resample when the effective sample size is below this share of the particles: 0 never, 1 at every step.
    proposal : {"bootstrap", "guided", "auxiliary"}, default="bootstrap"
        Particles are drawn from the model's transition, from its own ``sample_proposal``, or from the transition of
        parents that ``log_lookahead`` favours.
    random_state : int, Generator, RandomState or None
        Source of randomness. The compiled and the other loop draw the same numbers from it.
    store : {"marginals", "paths", "moments"}, default="marginals"
        Keep all clouds, all clouds and their ancestors, or the last cloud only.
    verbose : int, default=0
        1 shows ten lines of progress on stderr, 2 a line for each step (or block of compiled steps).
    compiled : bool, default=True
        False runs every model in the loop over time.

    Returns
    -------
    ParticleFilterResult

    Raises
    ------
    ParticleDegeneracyError
        When all weights are zero; its ``t`` is the time step.

    Warns
    -----
    UserWarning
        After Ctrl-C, if :func:`pluri.on_interrupt` says "keep", when the steps that were done are returned.

    Examples
    --------
    >>> from pluri.dynamics import StochasticVolatility
    >>> from pluri.inference.smc import particle_filter
    >>> model = StochasticVolatility(level=-1.0, persistence=0.9, scale=0.5)
    >>> log_variances, returns = model.sample(300, random_state=1)
    >>> result = particle_filter(model, returns, random_state=0)
    >>> error = result.mean - log_variances
    >>> bool((error**2).mean() < log_variances.var())
    True
    """
    scheme = Scheme(n_particles, resampling, ess_threshold, proposal)
    scheme.check(model)
    check_value(store, "store", Only(*STORES))
    return run_filter(model, observations, scheme, as_generator(random_state), store, verbose, compiled)


def run_filter(
    model: Any,
    observations: ArrayLike,
    scheme: Scheme,
    rng: np.random.Generator,
    store: str = "moments",
    verbose: int = 0,
    compiled: bool = True,
    keep: bool = True,
) -> ParticleFilterResult:
    """`particle_filter` for settings that are known to be right; without `keep` Ctrl-C goes through."""
    rows = as_observations(model, observations)
    plan = None
    if compiled and scheme.proposal == "bootstrap" and hasattr(model, "compiled_filter"):
        plan = model.compiled_filter(rows)
    if plan is not None:
        return _run_compiled(plan, scheme, rows, rng, store, verbose, keep)
    return _run(model, scheme, rows, rng, store, verbose, keep)


def _run(
    model: StateSpaceModel,
    scheme: Scheme,
    rows: NDArray[Any],
    rng: np.random.Generator,
    store: str,
    verbose: int,
    keep: bool,
) -> ParticleFilterResult:
    clouds: list[Cloud] = []
    records: list[tuple[float, float, Floats, Floats, bool]] = []
    cloud: Cloud | None = None
    with keeping_steps(lambda: len(records), keep) as block:
        for t, row in enumerate(rows):
            if cloud is None:
                cloud = first_cloud(model, row, scheme, rng)
            else:
                cloud = next_cloud(model, cloud, row, scheme, rng)
            record = (cloud.increment, cloud.ess, cloud.mean, cloud.variance, cloud.resampled)
            if store == "moments":
                clouds = [cloud]
            else:
                clouds.append(cloud)
            records.append(record)
            report(verbose, t, len(rows), cloud.increment)
    increments, ess, mean, variance, resampled = (np.array(column) for column in zip(*records))
    if store != "moments":
        clouds = clouds[: len(records)]
    return ParticleFilterResult(
        log_evidence=float(increments.sum()),
        increments=increments,
        ess=ess,
        mean=mean,
        variance=variance,
        particles=np.array([cloud.particles for cloud in clouds]),
        log_weights=np.array([cloud.log_weights for cloud in clouds]),
        ancestors=np.array([cloud.ancestors for cloud in clouds]) if store == "paths" else None,
        resampled=resampled,
        interrupted=block.interrupted,
    )


def _run_compiled(
    plan: tuple[Any, Any, Floats, int],
    scheme: Scheme,
    observations: NDArray[Any],
    rng: np.random.Generator,
    store: str,
    verbose: int,
    keep: bool,
) -> ParticleFilterResult:
    loop, parameters, targets, d = plan
    n_steps, n = len(observations), int(scheme.n_particles)
    kept = 2 if store == "moments" else n_steps
    storage = (
        np.empty((kept, n * d)),
        np.empty((kept, n)),
        np.empty((kept if store == "paths" else 1, n), dtype=np.int64),
        np.empty(n),
    )
    records = (np.empty(n_steps), np.empty(n_steps), np.empty((n_steps, d)), np.empty((n_steps, d)))
    room = (np.empty(n * d), np.empty(n), np.empty(1))
    in_strata = scheme.resampling in ("stratified", "systematic")
    lots = None if in_strata else (np.empty(n + 1), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64))
    observed = ~np.isnan(observations).reshape(n_steps, -1).all(axis=1)
    method = (RESAMPLING_METHODS.index(scheme.resampling), float(scheme.ess_threshold))
    size = max(1, BLOCK // (n * d))
    done = 0
    with keeping_steps(lambda: done, keep) as block:
        for start in range(0, n_steps, size):
            stop = min(start + size, n_steps)
            failed = loop(rng, parameters, targets, observed, start, stop, method, storage, records, room, lots)
            if failed >= 0:
                _refuse(failed, n, float(records[0][failed]))
            done = stop
            report(verbose, stop - 1, n_steps, float(records[0][stop - 1]))
    increments, ess, mean, variance = (record[:done] for record in records)
    rows = np.array([(done - 1) % 2]) if store == "moments" else slice(done)
    return ParticleFilterResult(
        log_evidence=float(increments.sum()),
        increments=increments,
        ess=ess,
        mean=mean,
        variance=variance,
        particles=storage[0].reshape(kept, n, d)[rows],
        log_weights=storage[1][rows],
        ancestors=storage[2][:done] if store == "paths" else None,
        resampled=np.concatenate([[False], ess[:-1] < scheme.ess_threshold * n]),
        interrupted=block.interrupted,
    )


def _refuse(t: int, n: int, increment: float) -> None:
    if increment == -math.inf:
        raise degenerate(t, n)
    raise ValueError(f"log_observation must return numbers below infinity, got NaN or infinity at time step {t}")


def keeping_steps(n_done: Callable[[], int], keep: bool = True) -> holding:
    """A block that goes through time steps and keeps those before Ctrl-C; without `keep` Ctrl-C goes through."""
    message = lambda: f"interrupted after {n_done()} time steps, which are kept"  # noqa: E731
    return holding(message, having=lambda: keep and n_done() > 0)


def report(verbose: int, t: int, n_steps: int, increment: float) -> None:
    """One line about a time step: all with verbose=2, ten or so with verbose=1."""
    if verbose and (verbose > 1 or t + 1 == n_steps or (t + 1) % max(n_steps // 10, 1) == 0):
        print(f"step {t + 1}/{n_steps}  log evidence increment {increment:.4f}", file=sys.stderr, flush=True)
