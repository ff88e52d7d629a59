"""Independence Metropolis: proposals that do not depend on where the chain is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pluri.inference.mcmc.accept_reject.metropolis_hastings import (
    LogDensity,
    acceptance_of,
    initial_point,
    one_number,
    step_info,
)
from pluri.inference.mcmc.kernel import Info


class IndependenceState(NamedTuple):
    """Where a chain is, with the log densities of the target and of the proposal there."""

    position: Any
    log_density: float
    log_proposal: float


@dataclass(frozen=True)
class Independence:
    """Metropolis-Hastings whose proposals do not depend on where the chain is.

    Parameters
    ----------
    log_density : callable
        Position to the log density of the target, up to a constant.
    sample : callable
        ``sample(rng)`` draws a position; its tails should be at least as heavy as those of the target.
    log_proposal : callable
        Position to the log density of `sample`, up to a constant.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference import mcmc
    >>> from pluri.inference.mcmc.accept_reject.independence import Independence
    >>> kernel = Independence(
    ...     lambda x: -0.5 * float(x @ x),
    ...     sample=lambda rng: 1.5 * rng.standard_normal(1),
    ...     log_proposal=lambda x: -0.5 * float(x @ x) / 1.5**2,
    ... )
    >>> trace = mcmc.sample(kernel, np.zeros(1), n_draws=1000, n_warmup=0, random_state=0)
    >>> bool(abs(trace["x"].std() - 1) < 0.1)
    True
    """

    log_density: LogDensity
    sample: Callable[[np.random.Generator], Any]
    log_proposal: LogDensity

    def init(self, rng: np.random.Generator, position: Any) -> IndependenceState:
        """State at a position, which must be one that the proposal can reach."""
        state = initial_point(self.log_density, position)
        log_proposal = one_number(self.log_proposal(state.position), "log_proposal")
        if not math.isfinite(log_proposal):
            raise ValueError(f"log_proposal must be finite at the initial position, got {log_proposal}")
        return IndependenceState(*state, log_proposal)

    def step(self, rng: np.random.Generator, state: IndependenceState) -> tuple[IndependenceState, Info]:
        """One draw of the proposal, accepted or not."""
        position = self.sample(rng)
        log_density = one_number(self.log_density(position))
        log_proposal = one_number(self.log_proposal(position), "log_proposal")
        if not math.isfinite(log_proposal):
            raise ValueError(f"log_proposal must be finite at what sample draws, got {log_proposal}")
        change = (log_density - log_proposal) - (state.log_density - state.log_proposal)
        acceptance = acceptance_of(log_density, change)
        accepted = rng.random() < acceptance
        info = step_info(acceptance, accepted, log_density)
        return (IndependenceState(position, log_density, log_proposal) if accepted else state), info

    def adaptation(self, n_warmup: int) -> None:
        """Nothing to learn."""
        return
