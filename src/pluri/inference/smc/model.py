"""What a state-space model must give, and what it may give, to be followed by particles.

A hidden state x_t moves as a Markov chain and is seen through y_t:

    x_0 ~ p(x_0),    x_t ~ p(x_t | x_{t-1}),    y_t ~ p(y_t | x_t),    t = 0 ... T - 1.

n particles are one array whose first axis has length n; what the other axes mean is the model's affair. A model is any
object with the three methods of `StateSpaceModel`. Further methods, each optional, open further algorithms:

``log_transition(new, old, t)``
    log p(x_t = new_i | x_{t-1} = old_i), (n,): backward simulation, guided filters, ancestor sampling.
``sample_proposal(rng, particles, observation, t)`` and ``log_proposal(new, old, observation, t)``
    Draws from q(x_t | x_{t-1}, y_t) and their log density: guided filters.
``log_lookahead(observation, particles, t)``
    How well x_{t-1} = particles_i is going to explain y_t, (n,), log of any positive function: auxiliary filters.
``log_initial(particles)``
    log p(x_0): the joint density of a path.
``log_transition_bound(t)``
    An upper bound of log_transition: backward simulation by rejection.
``check_observations(observations)``
    Observations as the model wants them, or an error.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["StateSpaceModel"]

Floats = NDArray[np.float64]


class StateSpaceModel(Protocol):
    """A model that can be simulated, and whose observation density can be evaluated.

    Examples
    --------
    A random walk seen in noise.

    >>> import numpy as np
    >>> from pluri.inference.smc import particle_filter
    >>> class RandomWalk:
    ...     def sample_initial(self, rng, n):
    ...         return rng.normal(size=n)
    ...     def sample_transition(self, rng, particles, t):
    ...         return particles + rng.normal(size=particles.shape)
    ...     def log_observation(self, observation, particles, t):
    ...         return -0.5 * (observation - particles) ** 2
    >>> result = particle_filter(RandomWalk(), np.array([0.4, 1.2, 2.0]), n_particles=2000, random_state=0)
    >>> result.mean.round(1)
    array([0.2, 0.8, 1.5])
    """

    def sample_initial(self, rng: np.random.Generator, n: int) -> NDArray[Any]:
        """`n` draws of the state at the time of the first observation."""

    def sample_transition(self, rng: np.random.Generator, particles: NDArray[Any], t: int) -> NDArray[Any]:
        """One draw of the state at time t for each state at time t - 1."""

    def log_observation(self, observation: Any, particles: NDArray[Any], t: int) -> Floats:
        """Log p(y_t | x_t) of each particle, (n,); -inf where it is impossible."""


#: What each proposal needs besides the three methods that all models have.
NEEDS = {
    "bootstrap": (),
    "guided": ("log_transition", "sample_proposal", "log_proposal"),
    "auxiliary": ("log_lookahead",),
}


def require(model: object, names: tuple[str, ...], purpose: str) -> None:
    """Say which methods a model lacks."""
    missing = [name for name in names if not callable(getattr(model, name, None))]
    if missing:
        raise TypeError(f"{purpose} needs a model with {', '.join(missing)}, which {type(model).__name__} has not")


def as_observations(model: object, observations: ArrayLike) -> NDArray[Any]:
    """Observations (T, ...) as the model wants them."""
    check = getattr(model, "check_observations", None)
    values = np.asarray(check(observations) if check is not None else observations)
    if values.ndim == 0 or not len(values):
        raise ValueError(f"observations must have at least one row, got shape {values.shape}")
    return values


def observation_matrix(observations: ArrayLike, n_columns: int) -> Floats:
    """Observations as (T, n_columns); a vector is taken for one column."""
    try:
        values = np.asarray(observations, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"observations must be numbers: {error}") from None
    if values.ndim == 1 and n_columns == 1:
        values = values[:, None]
    if values.ndim != 2 or values.shape[1] != n_columns:
        raise ValueError(f"observations must have shape (n_steps, {n_columns}), got {values.shape}")
    return values


def is_missing(observation: Any) -> bool:
    """Whether nothing was seen: every entry is NaN."""
    values = np.asarray(observation)
    return values.dtype.kind == "f" and values.size > 0 and bool(np.isnan(values).all())


def checked_particles(value: object, n: int, source: str, t: int) -> NDArray[Any]:
    """Particles that a model's method gave, or a sentence about what is wrong with them."""
    particles = np.asarray(value)
    if particles.ndim == 0 or particles.shape[0] != n:
        raise ValueError(
            f"{source} must return {n} particles along the first axis, got shape {particles.shape} at time step {t}"
        )
    return particles


def checked_log_density(value: object, n: int, source: str, t: int) -> Floats:
    """Log densities (n,) that a model's method gave, or a sentence about what is wrong with them."""
    values = np.asarray(value, dtype=np.float64)
    if values.shape != (n,):
        raise ValueError(f"{source} must return shape ({n},), got {values.shape} at time step {t}")
    if not (values < np.inf).all():
        bad = values[~(values < np.inf)]
        raise ValueError(f"{source} must return numbers below infinity, got {bad[0]} at time step {t}")
    return values
