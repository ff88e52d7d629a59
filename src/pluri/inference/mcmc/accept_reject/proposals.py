"""Further ways to propose: along the gradient (Langevin), and single sites of a discrete vector.

Langevin proposals are ``x' = x + e^2/2 M^-1 grad log f(x) + e M^-1/2 z``: one leapfrog step with a fresh momentum, so
that the Metropolis-Hastings ratio, with its asymmetric q, equals the change of ``H = -log f + p' M^-1 p / 2``.

References
----------
.. [1] Roberts, G. O. and Rosenthal, J. S. (1998). Optimal scaling of discrete approximations to Langevin diffusions.
       JRSS B 60, 255-268.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.inference.mcmc.accept_reject.metropolis_hastings import (
    LogDensity,
    PointState,
    acceptance_of,
    initial_point,
    one_number,
    step_info,
)
from pluri.inference.mcmc.hamiltonian.hamiltonian_kernel import HamiltonianKernel
from pluri.inference.mcmc.hamiltonian.leapfrog import GradientState, leapfrog
from pluri.inference.mcmc.kernel import Info


@dataclass(frozen=True)
class Langevin(HamiltonianKernel):
    """Metropolis-adjusted Langevin algorithm (MALA): a random walk that leans uphill.

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
    target_accept : float, default=0.574
        Mean acceptance that the warm-up aims at; 0.574 is best in many dimensions.
    check_gradient : bool, default=True
        Compare the gradient with finite differences at the start.
    vectorized : bool, default=False
        Whether `value_and_grad` takes a row for each chain, (n, dim), and gives (n,) and (n, dim).

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference import mcmc
    >>> from pluri.inference.mcmc.accept_reject.proposals import Langevin
    >>> trace = mcmc.sample(Langevin(lambda x: (-0.5 * x @ x, -x)), np.zeros(2), n_draws=2000, random_state=0)
    >>> bool(abs(trace["x"].std() - 1) < 0.1)
    True
    """

    target_accept: float = 0.574

    def step(self, rng: np.random.Generator, state: GradientState) -> tuple[GradientState, Info]:
        """One proposal, accepted or not."""
        terrain = self.terrain(len(state.position))
        step_size = self.step_size if self.step_size is not None else 1.0
        momentum = rng.standard_normal(len(state.position))
        before = 0.5 * float(momentum.dot(momentum)) - state.log_density
        position, momentum, log_density, gradient = leapfrog(
            terrain, state.position, momentum, state.gradient, step_size
        )
        change = before + log_density - 0.5 * float(momentum.dot(momentum))
        acceptance = acceptance_of(log_density, change)
        accepted = rng.random() < acceptance
        info = step_info(acceptance, accepted, log_density)
        info["step_size"] = step_size
        return (GradientState(position, log_density, gradient) if accepted else state), info


@dataclass(frozen=True)
class DiscreteFlip:
    """Metropolis for vectors of categories: give one site at a time another value, all others being equally likely.

    With two values this is the single-spin flip. The position is a vector of whole numbers from 0 on.

    Parameters
    ----------
    log_density : callable
        Position (n_sites,) of int64 to the log probability, up to a constant.
    n_values : int or array-like of shape (n_sites,), default=2
        Number of values of each site.
    n_flips : int or None, default=None
        Proposals of one step, at sites chosen at random; None stands for as many as there are sites.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference import mcmc
    >>> from pluri.inference.mcmc.accept_reject.proposals import DiscreteFlip
    >>> kernel = DiscreteFlip(lambda x: 1.0 * x[0] + 1.0 * (x[0] == x[1]))
    >>> trace = mcmc.sample(kernel, np.zeros(2), n_draws=2000, random_state=0, warn=False)
    >>> weight = np.exp([[1, 0], [1, 2]])
    >>> bool(abs(trace["x"][..., 0].mean() - weight[1].sum() / weight.sum()) < 0.03)
    True
    """

    log_density: LogDensity
    n_values: Any = 2
    n_flips: int | None = None

    def __post_init__(self) -> None:
        n_values = np.asarray(self.n_values)
        if n_values.dtype.kind not in "iu" or n_values.ndim > 1 or n_values.size == 0 or n_values.min() < 2:
            raise ValueError(f"n_values must be whole numbers of at least 2, got {self.n_values!r}")
        if self.n_flips is not None and self.n_flips < 1:
            raise ValueError(f"n_flips must be at least 1, got {self.n_flips!r}")
        object.__setattr__(self, "n_values", n_values)

    def init(self, rng: np.random.Generator, position: Any) -> PointState:
        """State at a position: whole numbers, in any numeric type."""
        given = np.asarray(position)
        if given.ndim != 1 or given.size == 0 or not np.isfinite(given).all() or (given != np.round(given)).any():
            raise ValueError(f"the position must be a vector of whole numbers, got {position!r}")
        sites: NDArray[np.int64] = given.astype(np.int64)
        if self.n_values.ndim == 1 and len(self.n_values) != len(sites):
            raise ValueError(f"n_values must have {len(sites)} entries, one for each site, got {len(self.n_values)}")
        if (sites < 0).any() or (sites >= self.n_values).any():
            raise ValueError("the position must hold values from 0 to n_values - 1")
        return initial_point(self.log_density, sites)

    def step(self, rng: np.random.Generator, state: PointState) -> tuple[PointState, Info]:
        """Some sites, one after another."""
        n_sites = len(state.position)
        n_flips = self.n_flips if self.n_flips is not None else n_sites
        sites = rng.integers(n_sites, size=n_flips)
        counts = self.n_values if self.n_values.ndim == 0 else self.n_values[sites]
        # Adding 1 to n - 1 modulo n reaches each other value alike, and the way back has the same chance.
        turns = 1 + rng.integers(counts - 1, size=n_flips)
        limits = np.broadcast_to(counts, n_flips)
        uniforms = rng.random(n_flips)
        total, n_accepted, undefined, outside = 0.0, 0, 0.0, 0.0
        for index in range(n_flips):
            site = sites[index]
            proposed = state.position.copy()
            proposed[site] = (proposed[site] + turns[index]) % limits[index]
            log_density = one_number(self.log_density(proposed))
            acceptance = acceptance_of(log_density, log_density - state.log_density)
            undefined += log_density != log_density
            outside += log_density == -math.inf
            total += acceptance
            if uniforms[index] < acceptance:
                state = PointState(proposed, log_density)
                n_accepted += 1
        return state, {
            "acceptance": total / n_flips,
            "accepted": n_accepted / n_flips,
            "n_evaluations": n_flips,
            "undefined": undefined,
            "outside": outside,
        }

    def adaptation(self, n_warmup: int) -> None:
        """Nothing to learn."""
        return
