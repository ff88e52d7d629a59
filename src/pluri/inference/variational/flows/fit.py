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
from typing import Any

import numpy as np

from pluri.inference.variational.adam import Adam, decays_of, descend, refuse_divergence
from pluri.inference.variational.flows.flow import Flow, FlowDesign, log_standard_normal
from pluri.inference.variational.flows.layer import Array
from pluri.inference.variational.flows.modes import ModeCollapseWarning, missed_mode
from pluri.inference.variational.flows.result import FlowResult
from pluri.inference.variational.flows.target import Target, check_target, differentiate
from pluri.validation import Number, Only, Whole, as_generator, check_value
from pluri.validation.inputs import RandomState
from pluri.validation.interruption import interruptible

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
    flow: str | FlowDesign | Flow = "planar",
    *,
    anneal: float = 0.5,
    optimizer: str = "adam",
    learning_rate: float = 5e-3,
    batch_size: int = 128,
    max_iter: int = 8000,
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
    flow : {"planar", "radial", "mixed", "coupling", "spline"}, FlowDesign or Flow, default="planar"
        A kind alone has eight layers. On four test densities (``benchmarks/reproduce/flows_four_densities.py``) eight
        coupling layers come close from every start; splines come closer still, but not from every start.
    anneal : float, default=0.5
        Share of the iterations in which the power of the target grows from 0.01 to 1; 0 for none.
    optimizer : {"adam", "rmsprop"}, default="adam"
    learning_rate : float, default=5e-3
        Falls to a hundredth in the last 30% of the iterations.
    batch_size : int, default=128
        Number of samples of an iteration.
    max_iter : int, default=8000
        Number of iterations: there is no test of convergence.
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
    >>> from pluri.inference.variational.flows import FlowDesign, fit_flow
    >>> def banana(z):
    ...     gap = (z[:, 1] - z[:, 0] ** 2) / 0.5
    ...     gradient = np.column_stack([-z[:, 0] + gap / 0.5 * 2 * z[:, 0], -gap / 0.5])
    ...     return -0.5 * z[:, 0] ** 2 - 0.5 * gap**2, gradient
    >>> result = fit_flow(banana, dim=2, flow=FlowDesign("coupling", 4), max_iter=1000, random_state=1)
    >>> result.kl_estimate(log_z=np.log(np.pi), random_state=0) < 0.1  # the base alone has 6.9
    True
    """
    check_value(backend, "backend", Only("numpy", "jax"))
    check_value(batch_size, "batch_size", Whole(2))
    check_value(max_iter, "max_iter", Whole(1))
    check_value(anneal, "anneal", Number(least=0, most=1))
    check_value(learning_rate, "learning_rate", Number(above=0))
    rng = as_generator(random_state)
    target = Target(differentiate(log_density_and_grad) if backend == "jax" else log_density_and_grad, dim)
    check_target(target, rng)
    design = FlowDesign(flow) if isinstance(flow, str) else flow
    shape = design.build(dim, rng) if isinstance(design, FlowDesign) else design
    if shape.dim != dim:
        raise ValueError(f"flow must have dim {dim}, got one with dim {shape.dim}")
    start = shape.initialize(rng, START[design.kind] if isinstance(design, FlowDesign) else 0.1)
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


class _FlowDescent:
    """The flow on its way down, and the best state of it at the end of a window of iterations."""

    def __init__(
        self, flow: Flow, parameters: Array, target: Target, course: _Course, rng: np.random.Generator
    ) -> None:
        self.flow, self.target, self.course, self.rng = flow, target, course, rng
        self.adam = Adam(parameters, course.decays)
        self.seen = self.best = parameters
        self.best_energy = math.inf

    def step(self, number: int) -> float:
        course, self.seen = self.course, self.adam.parameters
        base = self.rng.standard_normal((course.batch_size, self.flow.dim))
        energy, gradient = free_energy_gradient(self.flow, self.seen, self.target, base, course.power(number))
        refuse_divergence(number, energy, gradient)
        self.adam.move(gradient, course.rate(number))
        return energy

    def look(self, energies: list[float]) -> bool:
        """Remember the best; there is no test of convergence."""
        if len(energies) % WINDOW == 0:
            recent = float(np.mean(energies[-WINDOW:]))
            if recent < self.best_energy:
                self.best, self.best_energy = self.seen, recent
        return False

    def result(self) -> Array:
        """The last parameters, unless an earlier state was better on the same draws."""
        last = self.adam.parameters
        check = self.rng.standard_normal((max(1000, self.course.batch_size), self.flow.dim))
        if self.best is not last and self._energy(self.best, check) < self._energy(last, check):
            return self.best
        return last

    def _energy(self, parameters: Array, base: Array) -> float:
        try:
            z, log_det, _ = self.flow.forward(parameters, base)
            return float(np.mean(log_standard_normal(base) - log_det - self.target.values(z)))
        except ValueError:
            return math.inf


def _descend(
    flow: Flow, parameters: Array, target: Target, course: _Course, rng: np.random.Generator, verbose: int
) -> FlowResult:
    state = _FlowDescent(flow, parameters, target, course, rng)
    run = descend(
        state.step, course.max_iter, settled=state.look, window=WINDOW, kept="the best parameters so far are kept",
        verbose=verbose,
    )  # fmt: skip
    n_iter = len(run.losses)
    powers = np.array([course.power(iteration) for iteration in range(n_iter)])
    return FlowResult(flow, state.result(), np.array(run.losses), powers, n_iter, run.interrupted, target)
