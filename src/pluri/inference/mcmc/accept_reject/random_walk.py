"""Random-walk Metropolis: normal steps around where the chain is, with scale and shape learned in the warm-up.

``x' = x + step_size * L z`` with ``L L' = covariance``. The step size follows Robbins and Monro,
``log s += gain_t (acceptance - target)``, to the acceptance that is best for a normal target: 0.44 in one dimension,
falling to 0.234 in many. The covariance is that of the draws of the warm-up, in windows that double, so that with the
step size ``2.38 / sqrt(d)`` proposals have the covariance ``2.38^2 / d Sigma + eps I``.

References
----------
.. [1] Gelman, A., Roberts, G. O. and Gilks, W. R. (1996). Efficient Metropolis jumping rules. Bayesian Statistics 5.
.. [2] Haario, H., Saksman, E. and Tamminen, J. (2001). An adaptive Metropolis algorithm. Bernoulli 7, 223-242.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pluri.inference.mcmc.accept_reject.metropolis_hastings import (
    LogDensity,
    PointState,
    acceptance_of,
    as_vector,
    initial_point,
    one_number,
    step_info,
)
from pluri.inference.mcmc.accept_reject.step_search import (
    StepSearch,
    best_acceptance,
    checked_step,
    shrunk_covariance,
    square_root,
    with_setting,
)
from pluri.inference.mcmc.adaptation import RunningVariance, window_ends
from pluri.inference.mcmc.kernel import Info
from pluri.validation import Only, check_value

Array = NDArray[np.float64]
Adapt = bool | Literal["scale", "covariance"]


@dataclass(frozen=True)
class RandomWalk:
    """Random-walk Metropolis for a density on vectors.

    Parameters
    ----------
    log_density : callable
        Position (dim,) to the log density of the target, up to a constant.
    step_size : float or None, default=None
        Scale of the proposals; None stands for ``2.38 / sqrt(dim)``.
    covariance : array-like of shape (dim, dim) or (dim,), optional
        Shape of the proposals, best the covariance (or variances) of the target; the identity at first.
    adapt : bool, "scale" or "covariance", default=True
        What the warm-up learns: True both, False nothing.
    target_accept : float, optional
        Acceptance aimed at; 0.44 for one dimension, falling to 0.234.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference import mcmc
    >>> from pluri.inference.mcmc.accept_reject.random_walk import RandomWalk
    >>> kernel = RandomWalk(lambda x: -0.5 * float(x @ x))
    >>> trace = mcmc.sample(kernel, np.zeros(2), n_draws=3000, random_state=0)
    >>> bool(abs(trace["x"].std() - 1) < 0.1)
    True
    """

    log_density: LogDensity
    step_size: float | None = None
    covariance: Any = None
    adapt: Adapt = True
    target_accept: float | None = None

    tuned = ("step_size", "covariance")
    healthy_acceptance = (0.1, 0.6)

    def __post_init__(self) -> None:
        checked_step(self.step_size)
        check_value(self.adapt, "adapt", Only(True, False, "scale", "covariance"))
        if self.target_accept is not None and not 0 < self.target_accept < 1:
            raise ValueError(f"target_accept must lie between 0 and 1, got {self.target_accept!r}")
        root = None
        if self.covariance is not None:
            covariance = np.asarray(self.covariance, dtype=np.float64)
            root = square_root(covariance, "covariance")
            object.__setattr__(self, "covariance", covariance)
        object.__setattr__(self, "_root", root)

    def init(self, rng: np.random.Generator, position: Any) -> PointState:
        """State at a position."""
        state = initial_point(self.log_density, as_vector(position))
        if self.covariance is not None and len(self.covariance) != len(state.position):
            raise ValueError(
                f"covariance must be for {len(state.position)} coordinates, got shape {self.covariance.shape}"
            )
        return state

    def step(self, rng: np.random.Generator, state: PointState) -> tuple[PointState, Info]:
        """One proposal, accepted or not."""
        root: Array | None = self._root  # type: ignore[attr-defined]
        step_size = self.step_size if self.step_size is not None else 2.38 / math.sqrt(len(state.position))
        move = rng.standard_normal(len(state.position))
        if root is not None:
            move = root.dot(move) if root.ndim == 2 else root * move
        position = state.position + step_size * move
        log_density = one_number(self.log_density(position))
        acceptance = acceptance_of(log_density, log_density - state.log_density)
        accepted = rng.random() < acceptance
        info = step_info(acceptance, accepted, log_density)
        info["step_size"] = step_size
        return (PointState(position, log_density) if accepted else state), info

    def adaptation(self, n_warmup: int) -> RandomWalkAdaptation | None:
        """Step size by Robbins-Monro; the covariance from the draws, in windows."""
        return RandomWalkAdaptation(n_warmup, self.adapt, self.target_accept) if self.adapt else None


class RandomWalkAdaptation:
    """Warm-up of :class:`RandomWalk`."""

    def __init__(self, n_warmup: int, adapt: Adapt, target_accept: float | None):
        self._ends = window_ends(n_warmup) if adapt != "scale" else ()
        self._scale = adapt != "covariance"
        self._target = target_accept
        self._done = 0

    def start(self, rng: np.random.Generator, kernel: RandomWalk, state: PointState) -> RandomWalk:
        """Begin with the step size of a standard normal."""
        dim = len(state.position)
        step_size = kernel.step_size if kernel.step_size is not None else 2.38 / math.sqrt(dim)
        self._search = StepSearch(step_size, self._target or best_acceptance(dim))
        self._seen = RunningVariance(dim, dense=True)
        covariance = np.ones(dim) if kernel.covariance is None else kernel.covariance
        return replace(kernel, step_size=step_size, covariance=covariance)

    def update(self, rng: np.random.Generator, kernel: RandomWalk, state: PointState, info: Info) -> RandomWalk:
        """Adapt the step size; at the end of a window, the covariance as well."""
        self._done += 1
        if self._scale:
            kernel = with_setting(kernel, "step_size", self._search.update(info["acceptance"]))
        if not self._ends or self._done <= self._ends[0] or self._done > self._ends[-1]:
            return kernel
        self._seen.add(state.position)
        if self._done not in self._ends:
            return kernel
        covariance = shrunk_covariance(self._seen)
        self._seen = RunningVariance(len(state.position), dense=True)
        if covariance is None:  # nothing moved in this window
            return kernel
        kernel = replace(kernel, covariance=covariance)
        if not self._scale:
            return kernel
        step_size = 2.38 / math.sqrt(len(state.position))
        self._search.restart(step_size)
        return with_setting(kernel, "step_size", step_size)

    def finish(self, kernel: RandomWalk) -> RandomWalk:
        """Keep the averaged step size."""
        return with_setting(kernel, "step_size", self._search.finish()) if self._scale else kernel
