"""Random-walk Metropolis one coordinate at a time, each with a step size learned in the warm-up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.inference.mcmc.accept_reject.metropolis_hastings import (
    LogDensity,
    acceptance_of,
    as_vector,
    initial_point,
    one_number,
)
from pluri.inference.mcmc.accept_reject.step_search import StepSearch, with_setting
from pluri.inference.mcmc.kernel import Info
from pluri.validation import Number, check_value

Array = NDArray[np.float64]


class ComponentState(NamedTuple):
    """Where a chain is, and how each coordinate's last proposal fared."""

    position: Array
    log_density: float
    acceptance: Array


@dataclass(frozen=True)
class ComponentWise:
    """Random-walk Metropolis that moves one coordinate at a time, each with a step size of its own.

    A step visits every coordinate once. Needs more evaluations than :class:`RandomWalk`, and knows no covariance, but
    copes with scales that differ widely.

    Parameters
    ----------
    log_density : callable
        Position (dim,) to the log density of the target, up to a constant.
    step_size : float or array-like of shape (dim,), default=2.4
        Standard deviations of the proposals.
    adapt : bool, default=True
        Learn the step sizes in the warm-up, each to the acceptance `target_accept`.
    target_accept : float, default=0.44

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference import mcmc
    >>> from pluri.inference.mcmc.accept_reject.component_wise import ComponentWise
    >>> kernel = ComponentWise(lambda x: -0.5 * float(x[0] ** 2 + (x[1] / 1000) ** 2))
    >>> trace = mcmc.sample(kernel, np.zeros(2), n_draws=1000, random_state=0)
    >>> (trace.flat("x").std(axis=0) / [1, 1000]).round(0)
    array([1., 1.])
    """

    log_density: LogDensity
    step_size: Any = 2.4
    adapt: bool = True
    target_accept: float = 0.44

    tuned = ("step_size",)
    healthy_acceptance = (0.1, 0.8)

    def __post_init__(self) -> None:
        step_size = np.asarray(self.step_size, dtype=np.float64)
        if step_size.ndim > 1 or not ((step_size > 0) & np.isfinite(step_size)).all():
            raise ValueError(f"step_size must be positive, a number or one for each coordinate, got {self.step_size!r}")
        check_value(self.target_accept, "target_accept", Number(above=0, below=1))
        object.__setattr__(self, "step_size", step_size)

    def init(self, rng: np.random.Generator, position: Any) -> ComponentState:
        """State at a position."""
        state = initial_point(self.log_density, as_vector(position))
        if self.step_size.ndim == 1 and len(self.step_size) != len(state.position):
            raise ValueError(f"step_size must have {len(state.position)} entries, got {len(self.step_size)}")
        return ComponentState(*state, np.zeros(len(state.position)))

    def step(self, rng: np.random.Generator, state: ComponentState) -> tuple[ComponentState, Info]:
        """One proposal for each coordinate."""
        position, value = state.position, state.log_density
        dim = len(position)
        moves = self.step_size * rng.standard_normal(dim)
        uniforms = rng.random(dim)
        acceptance = np.empty(dim)
        n_accepted, undefined, outside = 0, 0.0, 0.0
        for index in range(dim):
            proposed = position.copy()
            proposed[index] += moves[index]
            log_density = one_number(self.log_density(proposed))
            acceptance[index] = chance = acceptance_of(log_density, log_density - value)
            undefined += log_density != log_density
            outside += log_density == -math.inf
            if uniforms[index] < chance:
                position, value = proposed, log_density
                n_accepted += 1
        return ComponentState(position, value, acceptance), {
            "acceptance": float(acceptance.mean()),
            "accepted": n_accepted / dim,
            "n_evaluations": dim,
            "undefined": undefined,
            "outside": outside,
        }

    def adaptation(self, n_warmup: int) -> ComponentAdaptation | None:
        """Each step size by Robbins-Monro."""
        return ComponentAdaptation() if self.adapt else None


class ComponentAdaptation:
    """Warm-up of :class:`ComponentWise`."""

    def start(self, rng: np.random.Generator, kernel: ComponentWise, state: ComponentState) -> ComponentWise:
        """One search for each coordinate."""
        steps = np.broadcast_to(kernel.step_size, state.position.shape)
        self._searches = [StepSearch(float(step), kernel.target_accept) for step in steps]
        return with_setting(kernel, "step_size", np.array(steps))

    def update(
        self, rng: np.random.Generator, kernel: ComponentWise, state: ComponentState, info: Info
    ) -> ComponentWise:
        """Adapt every step size."""
        pairs = zip(self._searches, state.acceptance.tolist())
        return with_setting(kernel, "step_size", np.array([search.update(value) for search, value in pairs]))

    def finish(self, kernel: ComponentWise) -> ComponentWise:
        """Keep the averaged step sizes."""
        return with_setting(kernel, "step_size", np.array([search.finish() for search in self._searches]))
