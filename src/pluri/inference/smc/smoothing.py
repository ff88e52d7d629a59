"""Smoothing: states given observations that came later.

- *Backward simulation* draws whole paths: x_{T-1} from the last cloud, then x_t from the cloud at t with weights
  W_t^i p(x_{t+1} | x_t^i). Exact draws look at all n particles; rejection draws i from W_t and accepts it with
  probability p(x_{t+1} | x_t^i) / bound, and looks at all only when that fails too often.
- *Ancestral paths* are the histories of the last particles: free, but after many resamplings they share their
  beginning, so that early states have few values.
- *Fixed-lag* smoothing takes each state from the histories of the cloud `lag` steps later.

References
----------
Godsill, Doucet and West (2004), Monte Carlo smoothing for nonlinear time series, JASA 99.
Douc, Garivier, Moulines and Olsson (2011), Sequential Monte Carlo smoothing for general state space hidden Markov
models, Annals of Applied Probability 21.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.inference.smc.filter import ParticleFilterResult
from pluri.inference.smc.model import require
from pluri.inference.smc.resampling import draw_ancestors
from pluri.validation import Only, RandomState, as_generator, check_count, check_value
from pluri.validation.interruption import holding, interruptible

__all__ = ["ancestral_paths", "backward_simulation", "fixed_lag_smoother"]

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

#: Pairs of particles whose transition density is evaluated at a time.
PAIRS = 1_000_000
#: Rounds of rejection before all particles are looked at.
ROUNDS = 20


@interruptible
def backward_simulation(
    model: Any,
    result: ParticleFilterResult,
    n_paths: int = 100,
    method: str = "exact",
    random_state: RandomState = None,
) -> NDArray[Any]:
    """Draw paths of states given all observations.

    Parameters
    ----------
    model : StateSpaceModel
        The model that was filtered, with ``log_transition`` (and ``log_transition_bound`` for rejection).
    result : ParticleFilterResult
        With all clouds stored.
    n_paths : int, default=100
        Number of paths.
    method : {"exact", "rejection"}, default="exact"
        Work per step n_particles * n_paths, or about n_paths where the bound is not too far off. Both have the same
        distribution.
    random_state : int, Generator, RandomState or None
        Source of randomness.

    Returns
    -------
    ndarray (T, n_paths, ...)
        Equally weighted paths.

    Warns
    -----
    UserWarning
        After Ctrl-C, if :func:`pluri.on_interrupt` says "keep", when the paths that are complete are
        returned.

    Examples
    --------
    >>> from pluri.dynamics import StochasticVolatility
    >>> from pluri.inference.smc import backward_simulation, particle_filter
    >>> model = StochasticVolatility()
    >>> _, returns = model.sample(50, random_state=0)
    >>> result = particle_filter(model, returns, n_particles=200, random_state=0)
    >>> backward_simulation(model, result, n_paths=10, random_state=0).shape
    (50, 10, 1)
    """
    check_value(method, "method", Only("exact", "rejection"))
    check_count(n_paths, "n_paths")
    require(model, ("log_transition",) + ("log_transition_bound",) * (method == "rejection"), "backward simulation")
    _check_stored(result)
    rng = as_generator(random_state)
    size = max(1, PAIRS // result.log_weights.shape[1])
    done: list[NDArray[Any]] = []
    message = lambda: f"interrupted after {sum(paths.shape[1] for paths in done)} paths, which are kept"  # noqa: E731
    with holding(message, having=done):
        for start in range(0, int(n_paths), size):
            done.append(_backward_paths(model, result, min(size, int(n_paths) - start), method, rng))
    return np.concatenate(done, axis=1)


def ancestral_paths(result: ParticleFilterResult, indices: Indices | None = None) -> NDArray[Any]:
    """Histories of the last particles, which carry the weights of the last step.

    Parameters
    ----------
    result : ParticleFilterResult
        With ``store="paths"``.
    indices : ndarray of int, optional
        Which of the last particles; all by default.

    Returns
    -------
    ndarray (T, n, ...)

    Examples
    --------
    >>> from pluri.dynamics import StochasticVolatility
    >>> from pluri.inference.smc import ancestral_paths, particle_filter
    >>> result = particle_filter(StochasticVolatility(), [0.1, 0.2], n_particles=5, random_state=0, store="paths")
    >>> ancestral_paths(result).shape
    (2, 5, 1)
    """
    ancestors = _check_ancestors(result)
    current = np.arange(ancestors.shape[1]) if indices is None else np.asarray(indices)
    paths = np.empty((result.n_steps, len(current), *result.particles.shape[2:]), dtype=result.particles.dtype)
    for t in range(result.n_steps - 1, -1, -1):
        paths[t] = result.particles[t, current]
        current = ancestors[t, current]
    return paths


def fixed_lag_smoother(result: ParticleFilterResult, lag: int) -> tuple[Floats, Floats]:
    """Mean and variance of p(x_t | y_{0:t+lag}), from the histories of the cloud `lag` steps later.

    Parameters
    ----------
    result : ParticleFilterResult
        With ``store="paths"``.
    lag : int
        How many later observations count; 0 is the filter. Short lags leave out what is learned later, long ones
        meet histories that have merged.

    Returns
    -------
    mean, variance : ndarray (T, ...)

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.dynamics import StochasticVolatility
    >>> from pluri.inference.smc import fixed_lag_smoother, particle_filter
    >>> result = particle_filter(StochasticVolatility(), [0.1, 0.2], n_particles=5, random_state=0, store="paths")
    >>> mean, variance = fixed_lag_smoother(result, lag=0)
    >>> bool(np.allclose(mean, result.mean))
    True
    """
    ancestors = _check_ancestors(result)
    check_count(lag, "lag", 0)
    n_steps = result.n_steps
    mean = np.empty((n_steps, *result.particles.shape[2:]))
    variance = np.empty_like(mean)
    for t in range(n_steps):
        last = min(t + int(lag), n_steps - 1)
        current = np.arange(ancestors.shape[1])
        for s in range(last, t, -1):
            current = ancestors[s, current]
        weights = np.exp(result.log_weights[last])
        states = result.particles[t, current]
        mean[t] = np.tensordot(weights, states, axes=1)
        variance[t] = np.tensordot(weights, np.square(states - mean[t]), axes=1)
    return mean, variance


def _backward_paths(
    model: Any, result: ParticleFilterResult, n_paths: int, method: str, rng: np.random.Generator
) -> NDArray[Any]:
    particles, log_weights = result.particles, result.log_weights
    paths = np.empty((result.n_steps, n_paths, *particles.shape[2:]), dtype=particles.dtype)
    last = draw_ancestors(rng, np.exp(log_weights[-1]), "multinomial", n_paths)
    paths[-1] = particles[-1, rng.permutation(last)]
    for t in range(result.n_steps - 2, -1, -1):
        chosen = np.full(n_paths, -1)
        pending = np.arange(n_paths)
        if method == "rejection":
            pending = _reject(model, particles[t], np.exp(log_weights[t]), paths[t + 1], t, chosen, rng)
        if len(pending):
            chosen[pending] = draw_backward(model, particles[t], log_weights[t], paths[t + 1, pending], t, rng)
        paths[t] = particles[t, chosen]
    return paths


def draw_backward(
    model: Any, old: NDArray[Any], log_weights: Floats, new: NDArray[Any], t: int, rng: np.random.Generator
) -> Indices:
    """For each of `new` (m, ...) at t + 1, one index of `old` (n, ...) at t, by W^i p(new | old_i)."""
    n, m = len(old), len(new)
    pairs = model.log_transition(np.repeat(new, n, axis=0), np.tile(old, (m,) + (1,) * (old.ndim - 1)), t + 1)
    pairs = np.asarray(pairs, dtype=np.float64)
    if pairs.shape != (n * m,):
        raise ValueError(f"log_transition must return shape ({n * m},), got {pairs.shape} at time step {t + 1}")
    terms = pairs.reshape(m, n) + log_weights
    largest = terms.max(axis=1, keepdims=True)
    if not np.isfinite(largest).all():
        raise ValueError(
            f"log_transition must be finite from some particle at time step {t} to each state of a path at {t + 1}, "
            f"got {largest[~np.isfinite(largest)][0]}"
        )
    reached = np.cumsum(np.exp(terms - largest), axis=1)
    points = rng.random(m) * reached[:, -1]
    # The last particle that has any weight is the first whose sum is the whole sum.
    return np.minimum((reached <= points[:, None]).sum(axis=1), (reached < reached[:, -1:]).sum(axis=1))


def _reject(
    model: Any,
    old: NDArray[Any],
    weights: Floats,
    new: NDArray[Any],
    t: int,
    chosen: Indices,
    rng: np.random.Generator,
) -> Indices:
    """Write into `chosen` what rejection accepts in some rounds; returns what is left."""
    bound = float(model.log_transition_bound(t + 1))
    pending = np.arange(len(new))
    for _ in range(ROUNDS):
        guesses = rng.permutation(draw_ancestors(rng, weights, "multinomial", len(pending)))
        log_ratio = model.log_transition(new[pending], old[guesses], t + 1) - bound
        if (log_ratio > 1e-9).any():
            raise ValueError(f"log_transition_bound is exceeded by log_transition at time step {t + 1}")
        accepted = np.log1p(-rng.random(len(pending))) <= log_ratio
        chosen[pending[accepted]] = guesses[accepted]
        pending = pending[~accepted]
        if not len(pending):
            break
    return pending


def _check_stored(result: ParticleFilterResult) -> None:
    if len(result.particles) != result.n_steps:
        raise ValueError("result must hold all clouds: filter with store='marginals' or store='paths'")


def _check_ancestors(result: ParticleFilterResult) -> Indices:
    if result.ancestors is None:
        raise ValueError("result must hold ancestors: filter with store='paths'")
    return result.ancestors
