"""Switching linear dynamics: a linear Gaussian system whose matrices follow a hidden Markov chain.

    z_t ~ P(. | z_{t-1}),    x_t = A_z x_{t-1} + F_z u_t + B_z w_t,    y_t = C_z x_t + G_z u_t + D_z v_t,

with z = z_t, w and v standard normal, t = 0 ... T - 1; z_{-1} ~ p_0 and x_{-1} ~ N(mu_0, Sigma_0) describe the moment
before the first observation. Given the regimes z the model is linear and Gaussian, which the Rao-Blackwellised filter
exploits.

References
----------
Doucet, Gordon and Krishnamurthy (2001), Particle filters for state estimation of jump Markov linear systems, IEEE
Transactions on Signal Processing 49.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.inference.smc.filter import ParticleFilterResult
from pluri.inference.smc.gaussian import as_array, cholesky, covariance_factor, log_density
from pluri.inference.smc.model import observation_matrix
from pluri.validation import RandomState

__all__ = ["SwitchingLinearModel", "regime_probabilities"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SwitchingLinearModel:
    """A linear Gaussian system with k regimes.

    A particle is a row (z, x): the regime, from 0, then the state.

    Parameters
    ----------
    transition : array-like (k, k)
        P, rows are where the regime comes from.
    initial_probabilities : array-like (k,)
        p_0.
    dynamics, dynamics_noise : array-like (k, d, d), (k, d, any)
        A and B; the state's noise has covariance B B^T.
    emission, emission_noise : array-like (k, m, d), (k, m, any)
        C and D; D D^T must be positive definite.
    initial_mean, initial_covariance : array-like (d,), (d, d)
        mu_0 and Sigma_0.
    dynamics_input, emission_input : array-like (k, d, n_inputs), (k, m, n_inputs), optional
        F and G.
    inputs : array-like (n_inputs,) or (n_steps, n_inputs), optional
        u: the same at all times, or one row for each.

    Examples
    --------
    >>> from pluri.dynamics import make_maneuvering_target, regime_probabilities
    >>> from pluri.inference.smc import particle_filter
    >>> model = make_maneuvering_target()
    >>> states, observations = model.sample(30, random_state=0)
    >>> result = particle_filter(model, observations, n_particles=300, random_state=0)
    >>> regime_probabilities(model, result).shape
    (30, 3)
    """

    transition: ArrayLike
    initial_probabilities: ArrayLike
    dynamics: ArrayLike
    dynamics_noise: ArrayLike
    emission: ArrayLike
    emission_noise: ArrayLike
    initial_mean: ArrayLike
    initial_covariance: ArrayLike
    dynamics_input: ArrayLike | None = None
    emission_input: ArrayLike | None = None
    inputs: ArrayLike | None = None

    def __post_init__(self) -> None:
        self.arrays  # noqa: B018 (matrices that do not fit together are refused at once)

    @cached_property
    def arrays(self) -> SwitchingArrays:
        """The matrices, checked."""
        transition = as_array(self.transition, (None, None), "transition")
        k = len(transition)
        initial = as_array(self.initial_probabilities, (k,), "initial_probabilities")
        as_array(transition, (k, k), "transition")
        for name, rows in {"transition": transition, "initial_probabilities": initial}.items():
            if (rows < 0).any() or np.abs(rows.sum(axis=-1) - 1).max() > 1e-8:
                raise ValueError(f"{name} must have rows that are not negative and add up to 1")
        dynamics = as_array(self.dynamics, (k, None, None), "dynamics")
        d = dynamics.shape[1]
        as_array(dynamics, (k, d, d), "dynamics")
        emission = as_array(self.emission, (k, None, d), "emission")
        m = emission.shape[1]
        B = as_array(self.dynamics_noise, (k, d, None), "dynamics_noise")
        D = as_array(self.emission_noise, (k, m, None), "emission_noise")
        R = D @ np.swapaxes(D, 1, 2)
        told = "the covariance of emission_noise in regime"
        factors = [covariance_factor(R[i], f"{told} {i}", definite=True) for i in range(k)]
        covariance = as_array(self.initial_covariance, (d, d), "initial_covariance")
        inputs = np.zeros(1) if self.inputs is None else np.array(self.inputs, dtype=np.float64)
        if inputs.ndim not in (1, 2) or not np.isfinite(inputs).all():
            raise ValueError(f"inputs must be finite, of shape (n_inputs,) or (n_steps, n_inputs), got {inputs.shape}")
        n_inputs = inputs.shape[-1]
        F, G = self.dynamics_input, self.emission_input
        return SwitchingArrays(
            P=transition,
            p0=initial,
            A=dynamics,
            B=B,
            C=emission,
            D=D,
            F=as_array(np.zeros((k, d, n_inputs)) if F is None else F, (k, d, n_inputs), "dynamics_input"),
            G=as_array(np.zeros((k, m, n_inputs)) if G is None else G, (k, m, n_inputs), "emission_input"),
            u=inputs,
            Q=B @ np.swapaxes(B, 1, 2),
            R=R,
            R_factor=np.array(factors),
            mean=as_array(self.initial_mean, (d,), "initial_mean"),
            covariance=covariance,
            factor=covariance_factor(covariance, "initial_covariance"),
        )

    def sample(self, n_samples: int, random_state: RandomState = None) -> tuple[Floats, Floats]:
        """Particles (n_samples, 1 + d), regime first, and observations (n_samples, m) drawn from the model."""
        from pluri.inference.smc.simulate import simulate

        return simulate(self, n_samples, random_state)

    def check_observations(self, observations: ArrayLike) -> Floats:
        """Observations (n_steps, m); entries that were not seen are NaN."""
        return observation_matrix(observations, self.arrays.C.shape[1])

    def offsets(self, t: int) -> tuple[Floats, Floats]:
        """F u_t (k, d) and G u_t (k, m)."""
        arrays = self.arrays
        if arrays.u.ndim == 2 and t >= len(arrays.u):
            raise ValueError(f"inputs must have a row for every time step, got {len(arrays.u)} and needed step {t}")
        u = arrays.u if arrays.u.ndim == 1 else arrays.u[t]
        return arrays.F @ u, arrays.G @ u

    def sample_regimes(self, rng: np.random.Generator, rows: Floats) -> NDArray[np.int64]:
        """One regime for each row of probabilities (n, k)."""
        reached = np.cumsum(rows, axis=1)
        points = rng.random(len(rows)) * reached[:, -1]
        # A point that rounds up to the whole sum still belongs to a regime that is possible.
        last = rows.shape[1] - 1 - np.argmax(rows[:, ::-1] > 0, axis=1)
        return np.minimum((reached <= points[:, None]).sum(axis=1), last)

    def sample_initial(self, rng: np.random.Generator, n: int) -> Floats:
        """Particles (n, 1 + d) at the first observation."""
        arrays = self.arrays
        regimes = self.sample_regimes(rng, np.broadcast_to(arrays.p0, (n, len(arrays.p0))))
        states = arrays.mean + rng.standard_normal((n, len(arrays.mean))) @ arrays.factor.T
        return self.sample_transition(rng, np.column_stack([regimes, states]), 0)

    def sample_transition(self, rng: np.random.Generator, particles: Floats, t: int) -> Floats:
        """Particles (n, 1 + d) one step later."""
        arrays = self.arrays
        z = self.sample_regimes(rng, arrays.P[particles[:, 0].astype(np.int64)])
        noise = rng.standard_normal((len(z), arrays.B.shape[2]))
        states = np.einsum("nij,nj->ni", arrays.A[z], particles[:, 1:])
        states += self.offsets(t)[0][z] + np.einsum("nij,nj->ni", arrays.B[z], noise)
        return np.column_stack([z, states])

    def sample_observation(self, rng: np.random.Generator, particles: Floats, t: int) -> Floats:
        """Observations (n, m) of particles."""
        arrays = self.arrays
        z = particles[:, 0].astype(np.int64)
        noise = rng.standard_normal((len(z), arrays.D.shape[2]))
        mean = np.einsum("nij,nj->ni", arrays.C[z], particles[:, 1:]) + self.offsets(t)[1][z]
        return mean + np.einsum("nij,nj->ni", arrays.D[z], noise)

    def log_observation(self, observation: Floats, particles: Floats, t: int) -> Floats:
        """Log N(y; C x + G u, D D^T), over the entries of y that were seen."""
        arrays = self.arrays
        seen = ~np.isnan(observation)
        offset = self.offsets(t)[1]
        values = np.empty(len(particles))
        for k in range(len(arrays.P)):
            chosen = particles[:, 0] == k
            factor = arrays.R_factor[k] if seen.all() else cholesky(arrays.R[k][np.ix_(seen, seen)])
            residual = observation - particles[chosen, 1:] @ arrays.C[k].T - offset[k]
            values[chosen] = log_density(residual[:, seen], factor)
        return values

    def log_transition(self, new: Floats, old: Floats, t: int) -> Floats:
        """Log P(z_t | z_{t-1}) N(x_t; A x_{t-1} + F u, B B^T); B B^T must be positive definite."""
        arrays = self.arrays
        offset = self.offsets(t)[0]
        z = new[:, 0].astype(np.int64)
        with np.errstate(divide="ignore"):
            values = np.log(arrays.P)[old[:, 0].astype(np.int64), z]
        for k in range(len(arrays.P)):
            chosen = z == k
            factor = covariance_factor(arrays.Q[k], f"the covariance of dynamics_noise in regime {k}", definite=True)
            values[chosen] += log_density(new[chosen, 1:] - old[chosen, 1:] @ arrays.A[k].T - offset[k], factor)
        return values


@dataclass(frozen=True, eq=False)
class SwitchingArrays:
    """Checked matrices of a switching linear model, in the notation of the formulas above; Q = B B^T, R = D D^T."""

    P: Floats
    p0: Floats
    A: Floats
    B: Floats
    C: Floats
    D: Floats
    F: Floats
    G: Floats
    u: Floats
    Q: Floats
    R: Floats
    R_factor: Floats
    mean: Floats
    covariance: Floats
    factor: Floats


def regime_probabilities(model: SwitchingLinearModel, result: ParticleFilterResult) -> Floats:
    """Filtered probabilities p(z_t = k | y_{0:t}) from the clouds of a particle filter.

    Parameters
    ----------
    model : SwitchingLinearModel
        The model.
    result : ParticleFilterResult
        With all clouds stored.

    Returns
    -------
    ndarray (T, k)
    """
    k = len(model.arrays.P)
    weights = result.weights
    return np.stack([np.where(result.particles[..., 0] == i, weights, 0.0).sum(axis=1) for i in range(k)], axis=1)
