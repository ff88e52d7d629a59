"""Fit a normalizing flow to a density that is known up to its normaliser.

Minimises the free energy ``F = E_(z_0)[log q_0(z_0) - sum_k log |det_k| - beta_t log p~(z_K)] = KL(q || p) - log Z``
by Adam on Monte Carlo batches. ``beta_t`` grows from 0.01 to 1 in the first part of the fit: on a target with several
modes a flow that sees all of it at once settles in one of them.

References
----------
Rezende and Mohamed (2015), Variational inference with normalizing flows, ICML.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from time import perf_counter
from typing import Any

import numpy as np

from pluri.inference.result import IterationState
from pluri.inference.variational.adam import adam_step, decays_of, no_moments
from pluri.inference.variational.flows.flow import Flow, build_flow, log_standard_normal
from pluri.inference.variational.flows.layer import Array
from pluri.inference.variational.flows.modes import ModeCollapseWarning, missed_mode
from pluri.inference.variational.flows.result import FlowResult
from pluri.inference.variational.flows.target import Target, check_target, differentiate
from pluri.progress import open_progress
from pluri.validation import as_generator
from pluri.validation.interruption import hold, interruptible
from pluri.validation.random import RandomState

#: Iterations between two looks at whether the parameters are the best so far.
WINDOW = 100
#: Size of the random start: planar and radial layers have symmetries to break, coupling layers start near the identity.
START = {"planar": 0.3, "radial": 0.3, "mixed": 0.3, "coupling": 0.1, "spline": 0.1}
#: Share of the iterations at the end in which the learning rate falls to a hundredth.
COOLING = 0.3


@interruptible
def fit_flow(
    log_density_and_grad: Callable[[Any], Any],
    dim: int,
    flow: str | Flow = "planar",
    n_layers: int = 8,
    *,
    base: str = "standard",
    anneal: float = 0.5,
    optimizer: str = "adam",
    learning_rate: float = 5e-3,
    batch_size: int = 128,
    max_iter: int = 8000,
    hidden: tuple[int, ...] = (32,),
    n_bins: int = 8,
    bound: float = 5.0,
    backend: str = "numpy",
    check_modes: bool = True,
    random_state: RandomState = None,
    verbose: int = 0,
) -> FlowResult:
    """Fit a flow to an unnormalised density.

    Parameters
    ----------
    log_density_and_grad : callable
        From points (n, dim) to a pair: log densities (n,) and their gradients (n, dim). With ``backend="jax"``: from
        one point (dim,) to a number, written in ``jax.numpy``; the gradient is then made by JAX.
    dim : int
        Number of coordinates.
    flow : {"planar", "radial", "mixed", "coupling", "spline"} or Flow, default="planar"
        See :func:`build_flow`. On four test densities (``benchmarks/reproduce/flows_four_densities.py``) eight coupling
        layers come close from every start; splines come closer still, but not from every start.
    n_layers : int, default=8
        Number of layers.
    base : {"standard", "learned"}, default="standard"
        Whether the base normal has means and scales of its own.
    anneal : float, default=0.5
        Share of the iterations in which the power of the target grows from 0.01 to 1; 0 for none.
    optimizer : {"adam", "rmsprop"}, default="adam"
    learning_rate : float, default=5e-3
        Falls to a hundredth in the last 30% of the iterations.
    batch_size : int, default=128
        Number of samples of an iteration.
    max_iter : int, default=8000
        Number of iterations: there is no test of convergence.
    hidden, n_bins, bound
        Networks and splines of coupling layers; see :func:`build_flow`.
    backend : {"numpy", "jax"}, default="numpy"
        Who makes the gradient of the target.
    check_modes : bool, default=True
        Ascend the target from scattered points at the end, and warn if they find a mode without samples.
    random_state : int, Generator, RandomState or None
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    FlowResult

    Raises
    ------
    ValueError
        If the target is not finite at a sample, is constant, has the wrong shape, or a gradient that is not its own.
    FloatingPointError
        If the fit diverges.

    Warns
    -----
    ModeCollapseWarning
        If the target has a mode that the flow does not cover.
    UserWarning
        After Ctrl-C, if :func:`pluri.on_interrupt` says "keep", when the best parameters so far are returned.

    Examples
    --------
    A banana: z2 is near z1^2. Its normaliser is known, log Z = log(2 pi * 0.5).

    >>> import numpy as np
    >>> from pluri.inference.variational.flows import fit_flow
    >>> def banana(z):
    ...     gap = (z[:, 1] - z[:, 0] ** 2) / 0.5
    ...     gradient = np.column_stack([-z[:, 0] + gap / 0.5 * 2 * z[:, 0], -gap / 0.5])
    ...     return -0.5 * z[:, 0] ** 2 - 0.5 * gap**2, gradient
    >>> result = fit_flow(banana, dim=2, flow="coupling", n_layers=4, max_iter=1000, random_state=1)
    >>> result.kl_estimate(log_z=np.log(np.pi), random_state=0) < 0.1  # the base alone has 6.9
    True
    """
    if backend not in ("numpy", "jax"):
        raise ValueError(f"backend must be 'numpy' or 'jax', got {backend!r}")
    least = {"n_layers": (n_layers, 0), "batch_size": (batch_size, 2), "max_iter": (max_iter, 1)}
    for name, (value, lowest) in least.items():
        if not isinstance(value, Integral) or isinstance(value, bool) or value < lowest:
            raise ValueError(f"{name} must be an integer of at least {lowest}, got {value!r}")
    if not isinstance(anneal, Real) or not 0 <= anneal <= 1:
        raise ValueError(f"anneal must be a share between 0 and 1, got {anneal!r}")
    if not isinstance(learning_rate, Real) or not 0 < learning_rate < math.inf:
        raise ValueError(f"learning_rate must be a positive number, got {learning_rate!r}")
    rng = as_generator(random_state)
    target = Target(differentiate(log_density_and_grad) if backend == "jax" else log_density_and_grad, dim)
    check_target(target, rng)
    if isinstance(flow, str):
        shape = build_flow(flow, dim, n_layers, rng, hidden=tuple(hidden), n_bins=n_bins, bound=bound, base=base)
    elif flow.dim != dim:
        raise ValueError(f"flow must have dim {dim}, got one with dim {flow.dim}")
    else:
        shape = flow
    start = shape.initialize(rng, START[flow] if isinstance(flow, str) else 0.1)
    course = _Course(int(max_iter), float(anneal), float(learning_rate), int(batch_size), decays_of(optimizer))
    fitted = _descend(shape, start, target, course, rng, verbose)
    if check_modes and not fitted.interrupted:
        missed = missed_mode(target, fitted.sample(2000, rng), rng)
        if missed is not None:
            warnings.warn(
                f"the flow has no samples around a mode of the target near {np.array2string(missed, precision=3)}: "
                "try anneal=0.5 or more, more iterations, another random_state, or flow='coupling'",
                ModeCollapseWarning,
                stacklevel=2,
            )
    return fitted


@dataclass(frozen=True)
class _Course:
    """How an iteration depends on its number."""

    max_iter: int
    anneal: float
    learning_rate: float
    batch_size: int
    decays: tuple[float, float]

    def power(self, iteration: int) -> float:
        n_annealed = self.anneal * self.max_iter
        return min(1.0, 0.01 + iteration / n_annealed) if n_annealed else 1.0

    def rate(self, iteration: int) -> float:
        left = (self.max_iter - iteration) / (COOLING * self.max_iter)
        return self.learning_rate * max(min(1.0, left), 0.01)


def free_energy_gradient(
    flow: Flow, parameters: Array, target: Target, base: Array, power: float = 1.0
) -> tuple[float, Array]:
    """Free energy of base draws, with the target itself, and its gradient, with a power of the target.

    Parameters
    ----------
    flow, parameters, target
    base : array of shape (n, dim)
        Draws from N(0, I).
    power : float, default=1.0
        What the log density is multiplied by in the gradient.

    Returns
    -------
    free_energy : float
    gradient : array of shape (n_parameters,)
    """
    z, log_det, cache = flow.forward(parameters, base)
    log_density, slope = target(z)
    share = 1.0 / len(base)
    _, gradient = flow.backward(parameters, cache, -power * share * slope, np.full(len(base), -share))
    return float(np.mean(log_standard_normal(base) - log_det - log_density)), gradient


def _descend(
    flow: Flow, parameters: Array, target: Target, course: _Course, rng: np.random.Generator, verbose: int
) -> FlowResult:
    moments = no_moments(flow.n_parameters)
    trace: list[float] = []
    best, best_energy, interrupted, started = parameters, math.inf, False, perf_counter()
    try:
        with open_progress(verbose) as report:
            for iteration in range(course.max_iter):
                base = rng.standard_normal((course.batch_size, flow.dim))
                energy, gradient = free_energy_gradient(flow, parameters, target, base, course.power(iteration))
                if not (math.isfinite(energy) and np.isfinite(gradient).all()):
                    raise FloatingPointError(f"the fit diverged at iteration {iteration + 1}: lower learning_rate")
                trace.append(energy)
                if iteration % WINDOW == WINDOW - 1:
                    recent = float(np.mean(trace[-WINDOW:]))
                    if recent < best_energy:
                        best, best_energy = parameters, recent
                    if verbose:
                        report(_state(trace, course, perf_counter() - started))
                step, moments = adam_step(gradient, moments, course.rate(iteration), course.decays)
                parameters = parameters + step
    except KeyboardInterrupt as stop:
        if not trace:
            raise
        hold(
            stop,
            f"fit interrupted after {len(trace)} of {course.max_iter} iterations; the best parameters so far are kept",
        )
        interrupted = True
    # The last parameters, unless an earlier state was better on the same draws.
    check = rng.standard_normal((max(1000, course.batch_size), flow.dim))
    if best is not parameters and _energy(flow, best, target, check) < _energy(flow, parameters, target, check):
        parameters = best
    powers = np.array([course.power(iteration) for iteration in range(len(trace))])
    return FlowResult(flow, parameters, np.array(trace), powers, len(trace), interrupted, target)


def _energy(flow: Flow, parameters: Array, target: Target, base: Array) -> float:
    try:
        z, log_det, _ = flow.forward(parameters, base)
        return float(np.mean(log_standard_normal(base) - log_det - target.values(z)))
    except ValueError:
        return math.inf


def _state(trace: list[float], course: _Course, seconds: float) -> IterationState[None]:
    recent = float(np.mean(trace[-WINDOW:]))
    earlier = float(np.mean(trace[-2 * WINDOW : -WINDOW])) if len(trace) >= 2 * WINDOW else math.nan
    return IterationState(
        params=None,
        restart=0,
        n_init=1,
        iteration=len(trace),
        max_iter=course.max_iter,
        objective=-recent,
        log_likelihood=math.nan,
        gain=earlier - recent,
        seconds=seconds,
        accepted=True,
        reason="max_iter" if len(trace) == course.max_iter else None,
    )
