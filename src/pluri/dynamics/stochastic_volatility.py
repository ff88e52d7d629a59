"""Stochastic volatility: returns whose log variance is a hidden autoregression.

    x_0 ~ N(m, s^2 / (1 - phi^2)),    x_t = m + phi (x_{t-1} - m) + s e_t,    y_t ~ N(0, exp(x_t)).

The look-ahead of the auxiliary filter is the density of y_t at the predicted log variance.

References
----------
Kim, Shephard and Chib (1998), Stochastic volatility: likelihood inference and comparison with ARCH models, Review of
Economic Studies 65.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.inference.smc.model import observation_matrix

__all__ = ["StochasticVolatility"]

Floats = NDArray[np.float64]
LOG_2_PI = math.log(2 * math.pi)


@dataclass(frozen=True)
class StochasticVolatility:
    """Log variance of returns as a first-order autoregression.

    Parameters
    ----------
    level : float, default=-1.0
        m, the mean of the log variance.
    persistence : float, default=0.95
        phi, between -1 and 1.
    scale : float, default=0.3
        s, positive.

    Examples
    --------
    >>> from pluri.dynamics import StochasticVolatility
    >>> from pluri.inference.smc import particle_filter
    >>> model = StochasticVolatility()
    >>> _, returns = model.sample(200, random_state=0)
    >>> result = particle_filter(model, returns, n_particles=500, random_state=0)
    >>> result.mean.shape
    (200, 1)
    """

    level: float = -1.0
    persistence: float = 0.95
    scale: float = 0.3

    def __post_init__(self) -> None:
        for name in ("level", "persistence", "scale"):
            value = getattr(self, name)
            if not isinstance(value, Real) or not math.isfinite(value):
                raise ValueError(f"{name} must be a finite number, got {value!r}")
        if not -1 < self.persistence < 1:
            raise ValueError(f"persistence must be between -1 and 1, got {self.persistence}")
        if not self.scale > 0:
            raise ValueError(f"scale must be positive, got {self.scale}")

    @property
    def initial_scale(self) -> float:
        """Standard deviation of x_0, and of every x_t."""
        return self.scale / math.sqrt(1 - self.persistence**2)

    def sample(self, n_samples: int, random_state: Any = None) -> tuple[Floats, Floats]:
        """Log variances (n_samples, 1) and returns (n_samples, 1) drawn from the model."""
        from pluri.inference.smc.simulate import simulate

        return simulate(self, n_samples, random_state)

    def check_observations(self, observations: ArrayLike) -> Floats:
        """Returns (n_steps, 1); NaN where there is none."""
        return observation_matrix(observations, 1)

    def sample_initial(self, rng: np.random.Generator, n: int) -> Floats:
        """Log variances (n, 1) at the first step."""
        return self.level + self.initial_scale * rng.standard_normal((n, 1))

    def sample_transition(self, rng: np.random.Generator, particles: Floats, t: int) -> Floats:
        """Log variances (n, 1) one step later."""
        return self._predicted(particles) + self.scale * rng.standard_normal(particles.shape)

    def sample_observation(self, rng: np.random.Generator, particles: Floats, t: int) -> Floats:
        """Returns (n, 1) for log variances."""
        return np.exp(0.5 * particles) * rng.standard_normal(particles.shape)

    def log_observation(self, observation: Floats, particles: Floats, t: int) -> Floats:
        """Log N(y; 0, exp(x))."""
        x = particles[:, 0]
        with np.errstate(over="ignore"):  # so far out that the density is zero
            return -0.5 * (LOG_2_PI + x + np.square(observation[0]) * np.exp(-x))

    def log_initial(self, particles: Floats) -> Floats:
        """Log density of x_0."""
        return _log_normal(particles[:, 0] - self.level, self.initial_scale)

    def log_transition(self, new: Floats, old: Floats, t: int) -> Floats:
        """Log density of a move."""
        return _log_normal((new - self._predicted(old))[:, 0], self.scale)

    def log_transition_bound(self, t: int) -> float:
        """Log density of a move without noise."""
        return -0.5 * LOG_2_PI - math.log(self.scale)

    def log_lookahead(self, observation: Floats, particles: Floats, t: int) -> Floats:
        """Log density of y_t at the predicted log variance."""
        return self.log_observation(observation, self._predicted(particles), t)

    def compiled_filter(self, observations: Floats) -> tuple[Callable[..., int], tuple[Any, ...], Floats, int]:
        """The compiled loop, its parameters, what it observes and the dimension."""
        from pluri.dynamics import _volatility_kernels

        parameters = tuple(float(x) for x in (self.level, self.persistence, self.scale, self.initial_scale))
        return _volatility_kernels.filter_volatility, parameters, observations, 1

    def _predicted(self, particles: Floats) -> Floats:
        return self.level + self.persistence * (particles - self.level)


def _log_normal(difference: Floats, scale: float) -> Floats:
    return -0.5 * np.square(difference / scale) - 0.5 * LOG_2_PI - math.log(scale)
