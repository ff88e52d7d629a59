"""The linear Gaussian state-space model, for which the Kalman filter is exact.

    x_0 ~ N(m, P),    x_t = A x_{t-1} + b + w_t,    y_t = C x_t + c + v_t,    w ~ N(0, Q),    v ~ N(0, R).

The best proposal is known too: q(x_t | x_{t-1}, y_t) = N(mu + K (y_t - C mu - c), (I - K C) Q) with mu = A x_{t-1} + b,
K = Q C^T S^-1 and S = C Q C^T + R; the weight is then N(y_t; C mu + c, S), whatever x_t is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.inference.smc.gaussian import as_array, cholesky, covariance_factor, log_density, symmetric
from pluri.inference.smc.model import observation_matrix
from pluri.inference.smc.simulate import simulate

__all__ = ["LinearGaussianModel"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LinearGaussianModel:
    """Linear dynamics and linear observations with Gaussian noise.

    Numbers stand for one-by-one matrices. Covariances of the state may be singular; the guided filter and backward
    simulation need a positive definite `transition_covariance`.

    Parameters
    ----------
    transition_matrix : array-like (d, d)
        A.
    transition_covariance : array-like (d, d)
        Q, positive semi-definite.
    observation_matrix : array-like (m, d)
        C.
    observation_covariance : array-like (m, m)
        R, positive definite.
    initial_mean : array-like (d,)
        m.
    initial_covariance : array-like (d, d)
        P, positive semi-definite.
    transition_offset : array-like (d,), optional
        b.
    observation_offset : array-like (m,), optional
        c.

    Examples
    --------
    >>> from pluri.dynamics import LinearGaussianModel, kalman_filter
    >>> from pluri.inference.smc import particle_filter
    >>> model = LinearGaussianModel(0.9, 1.0, 1.0, 0.25, 0.0, 5.0)
    >>> states, observations = model.sample(100, random_state=0)
    >>> exact = kalman_filter(model, observations).log_evidence
    >>> result = particle_filter(model, observations, n_particles=5000, random_state=0)
    >>> bool(abs(result.log_evidence - exact) < 1)
    True
    """

    transition_matrix: ArrayLike
    transition_covariance: ArrayLike
    observation_matrix: ArrayLike
    observation_covariance: ArrayLike
    initial_mean: ArrayLike
    initial_covariance: ArrayLike
    transition_offset: ArrayLike | None = None
    observation_offset: ArrayLike | None = None

    def __post_init__(self) -> None:
        self.arrays  # noqa: B018 (matrices that do not fit together are refused at once)

    @cached_property
    def arrays(self) -> Arrays:
        """The matrices, checked."""
        dynamics = as_array(self.transition_matrix, (None, None), "transition_matrix")
        d = dynamics.shape[0]
        as_array(dynamics, (d, d), "transition_matrix")
        emission = as_array(self.observation_matrix, (None, d), "observation_matrix")
        m = emission.shape[0]
        noise = as_array(self.transition_covariance, (d, d), "transition_covariance")
        error = as_array(self.observation_covariance, (m, m), "observation_covariance")
        first = as_array(self.initial_covariance, (d, d), "initial_covariance")
        return Arrays(
            A=dynamics,
            b=as_array(
                np.zeros(d) if self.transition_offset is None else self.transition_offset, (d,), "transition_offset"
            ),
            Q=noise,
            Q_factor=covariance_factor(noise, "transition_covariance"),
            C=emission,
            c=as_array(
                np.zeros(m) if self.observation_offset is None else self.observation_offset, (m,), "observation_offset"
            ),
            R=error,
            R_factor=covariance_factor(error, "observation_covariance", definite=True),
            m=as_array(self.initial_mean, (d,), "initial_mean"),
            P=first,
            P_factor=covariance_factor(first, "initial_covariance"),
        )

    def sample(self, n_samples: int, random_state: Any = None) -> tuple[Floats, Floats]:
        """States (n_samples, d) and observations (n_samples, m) drawn from the model."""
        return simulate(self, n_samples, random_state)

    def check_observations(self, observations: ArrayLike) -> Floats:
        """Observations (n_steps, m); entries that were not seen are NaN."""
        return observation_matrix(observations, len(self.arrays.C))

    def sample_initial(self, rng: np.random.Generator, n: int) -> Floats:
        """States (n, d) at the first step."""
        arrays = self.arrays
        return arrays.m + rng.standard_normal((n, len(arrays.m))) @ arrays.P_factor.T

    def sample_transition(self, rng: np.random.Generator, particles: Floats, t: int) -> Floats:
        """States (n, d) one step later."""
        return self._predicted(particles) + rng.standard_normal(particles.shape) @ self.arrays.Q_factor.T

    def sample_observation(self, rng: np.random.Generator, particles: Floats, t: int) -> Floats:
        """Observations (n, m) of states."""
        arrays = self.arrays
        noise = rng.standard_normal((len(particles), len(arrays.C)))
        return particles @ arrays.C.T + arrays.c + noise @ arrays.R_factor.T

    def log_observation(self, observation: Floats, particles: Floats, t: int) -> Floats:
        """Log N(y; C x + c, R), over the entries of y that were seen."""
        arrays = self.arrays
        return _log_seen(observation, particles @ arrays.C.T + arrays.c, arrays.R, arrays.R_factor)

    def log_initial(self, particles: Floats) -> Floats:
        """Log N(x; m, P)."""
        factor = covariance_factor(self.arrays.P, "initial_covariance", definite=True)
        return log_density(particles - self.arrays.m, factor)

    def log_transition(self, new: Floats, old: Floats, t: int) -> Floats:
        """Log N(new; A old + b, Q)."""
        return log_density(new - self._predicted(old), self._definite_factor)

    def log_transition_bound(self, t: int) -> float:
        """Log N(0; 0, Q): the density is nowhere larger."""
        return float(log_density(np.zeros((1, len(self.arrays.b))), self._definite_factor)[0])

    def sample_proposal(self, rng: np.random.Generator, particles: Floats, observation: Floats, t: int) -> Floats:
        """Draws from p(x_t | x_{t-1}, y_t)."""
        mean, factor = self._conditional(particles, observation)
        return mean + rng.standard_normal(particles.shape) @ factor.T

    def log_proposal(self, new: Floats, old: Floats, observation: Floats, t: int) -> Floats:
        """Log p(new | old, y_t)."""
        mean, factor = self._conditional(old, observation)
        return log_density(new - mean, factor)

    def log_lookahead(self, observation: Floats, particles: Floats, t: int) -> Floats:
        """Log p(y_t | x_{t-1}) = log N(y; C (A x + b) + c, C Q C^T + R)."""
        arrays = self.arrays
        covariance = symmetric(arrays.C @ arrays.Q @ arrays.C.T + arrays.R)
        mean = self._predicted(particles) @ arrays.C.T + arrays.c
        return _log_seen(observation, mean, covariance, cholesky(covariance))

    def compiled_filter(self, observations: Floats) -> tuple[Callable[..., int], tuple[Any, ...], Floats, int] | None:
        """The compiled loop, its parameters, what it observes and the dimension; None if it cannot run on this."""
        from pluri.dynamics.linear._particle_kernels import filter_linear

        missing = np.isnan(observations)
        if (missing.any(axis=1) != missing.all(axis=1)).any():
            return None  # rows seen in part are whitened by matrices of their own
        arrays = self.arrays
        inverse = np.linalg.inv(arrays.R_factor)
        constant = -0.5 * len(arrays.C) * np.log(2 * np.pi) - np.log(np.diag(arrays.R_factor)).sum()
        emission = np.ascontiguousarray(inverse @ arrays.C)
        square = tuple(np.ascontiguousarray(x) for x in (arrays.A, arrays.b, arrays.Q_factor))
        parameters = (*square, emission, float(constant), arrays.m.copy(), np.ascontiguousarray(arrays.P_factor))
        whitened = np.ascontiguousarray((observations - arrays.c) @ inverse.T)
        return filter_linear, parameters, whitened, len(arrays.b)

    def _predicted(self, particles: Floats) -> Floats:
        return particles @ self.arrays.A.T + self.arrays.b

    @cached_property
    def _definite_factor(self) -> Floats:
        return covariance_factor(self.arrays.Q, "transition_covariance", definite=True)

    def _conditional(self, particles: Floats, observation: Floats) -> tuple[Floats, Floats]:
        """Mean (n, d) of p(x_t | x_{t-1}, y_t) and the factor of its covariance."""
        arrays = self.arrays
        mean = self._predicted(particles)
        seen = ~np.isnan(np.asarray(observation, dtype=np.float64))
        emission = arrays.C[seen]
        error = arrays.R[np.ix_(seen, seen)]
        gain = np.linalg.solve(emission @ arrays.Q @ emission.T + error, emission @ arrays.Q).T
        rest = np.eye(len(arrays.b)) - gain @ emission
        covariance = symmetric(rest @ arrays.Q @ rest.T + gain @ error @ gain.T)
        residual = np.asarray(observation)[seen] - mean @ emission.T - arrays.c[seen]
        return mean + residual @ gain.T, covariance_factor(covariance, "transition_covariance", definite=True)


@dataclass(frozen=True, eq=False)
class Arrays:
    """Checked matrices of a linear Gaussian model, in the notation of the formulas above; F F^T = X for X_factor."""

    A: Floats
    b: Floats
    Q: Floats
    Q_factor: Floats
    C: Floats
    c: Floats
    R: Floats
    R_factor: Floats
    m: Floats
    P: Floats
    P_factor: Floats


def _log_seen(observation: Floats, mean: Floats, covariance: Floats, factor: Floats) -> Floats:
    seen = ~np.isnan(observation)
    if not seen.all():
        factor = cholesky(covariance[np.ix_(seen, seen)])
    return log_density((observation - mean)[:, seen], factor)
