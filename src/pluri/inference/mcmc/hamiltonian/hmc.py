"""Hamiltonian Monte Carlo with trajectories of a given number of steps.

References
----------
.. [1] Neal, R. M. (2011). MCMC using Hamiltonian dynamics. Handbook of Markov chain Monte Carlo.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pluri.inference.mcmc.compiled_targets.chains import compiled_step
from pluri.inference.mcmc.hamiltonian.hamiltonian_kernel import HamiltonianKernel
from pluri.inference.mcmc.hamiltonian.leapfrog import DIVERGENCE, GradientState, leapfrog
from pluri.inference.mcmc.kernel import Info


@dataclass(frozen=True)
class HMC(HamiltonianKernel):
    """Hamiltonian Monte Carlo.

    Parameters
    ----------
    value_and_grad : callable
        Position (dim,) to the log density and its gradient (dim,).
    step_size : float or None, default=None
        Length of a leapfrog step. The warm-up begins with it (with 1 if it is None) and adapts it; without a warm-up
        it stays as it is.
    inverse_mass : array-like of shape (dim,) or (dim, dim), optional
        Variances (or covariance) of the target as far as they are known; ones at first.
    metric : {"diag", "dense", "unit"}, default="diag"
        What the warm-up learns of the inverse mass; "unit" learns nothing.
    target_accept : float, default=0.8
        Mean acceptance that the warm-up aims at.
    check_gradient : bool, default=True
        Compare the gradient with finite differences at the start.
    vectorized : bool, default=False
        Whether `value_and_grad` takes a row for each chain, (n, dim), and gives (n,) and (n, dim).
    compiled : bool, default=False
        Whether `value_and_grad` is a function that Numba can compile, ``value_and_grad(x, gradient, data) -> float``:
        it writes the gradient into the vector `gradient`, all of it, and returns the log density. All steps then run
        compiled, chains side by side on threads if `n_jobs` is more than 1.
    data : tuple, array or number, optional
        What the compiled function gets as its third argument: an array, a number, or a tuple or NamedTuple of them;
        without it the function takes two arguments. Other data of the same types need no further compilation.
    n_leapfrog : int, default=16
        Steps of a trajectory.
    jitter : float, default=0.1
        The step size is drawn within this fraction of itself, so that no orbit closes.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference import mcmc
    >>> kernel = mcmc.HMC(lambda x: (-0.5 * x @ x, -x))
    >>> trace = mcmc.sample(kernel, np.zeros(2), random_state=0)
    >>> bool(abs(trace["x"].std() - 1) < 0.1)
    True
    """

    n_leapfrog: int = 16
    jitter: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_leapfrog < 1:
            raise ValueError(f"n_leapfrog must be at least 1, got {self.n_leapfrog!r}")
        if not 0 <= self.jitter < 1:
            raise ValueError(f"jitter must be at least 0 and below 1, got {self.jitter!r}")

    def step(self, rng: np.random.Generator, state: GradientState) -> tuple[GradientState, Info]:
        """One trajectory, accepted with probability ``min(1, exp(H_old - H_new))``."""
        if self.compiled:
            return compiled_step(self, rng, state)
        terrain = self.terrain(len(state.position))
        nominal = self.used_step_size
        step_size = nominal * (1.0 + self.jitter * (2.0 * rng.random() - 1.0))
        momentum = rng.standard_normal(len(state.position))
        energy = 0.5 * float(momentum.dot(momentum)) - state.log_density
        position, log_density, gradient = state.position, state.log_density, state.gradient
        change, n_steps = 0.0, 0
        for n_steps in range(1, self.n_leapfrog + 1):  # noqa: B007
            position, momentum, log_density, gradient = leapfrog(terrain, position, momentum, gradient, step_size)
            change = 0.5 * float(momentum.dot(momentum)) - log_density - energy
            if not change <= DIVERGENCE:
                break
            if change == -math.inf:
                raise ValueError("the log density is +inf at a point of the trajectory: it must be finite or -inf")
        divergent = not change <= DIVERGENCE
        acceptance = 0.0 if divergent else math.exp(min(0.0, -change))
        accepted = rng.random() < acceptance
        if accepted:
            state = GradientState(position, log_density, gradient)
        return state, {
            "acceptance": acceptance,
            "accepted": accepted,
            "n_evaluations": n_steps,
            "divergent": divergent,
            "energy": energy,
            "step_size": nominal,
        }
