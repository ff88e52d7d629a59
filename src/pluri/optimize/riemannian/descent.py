"""The loop that all descent methods share: direction, line search, step, test."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from pluri.optimize.riemannian.line_search import strong_wolfe
from pluri.optimize.riemannian.problem import CurveProblem, ManifoldProblem
from pluri.optimize.riemannian.result import Journal, Reason, RiemannianResult
from pluri.validation import Number, check_count, check_value
from pluri.validation.interruption import holding

Array = NDArray[np.float64]
#: What is said after Ctrl-C.
INTERRUPTED = "Descent on the manifold stopped early: interrupted: the point reached so far is returned"
FirstStep = Literal["scaled", "unit"]


class Directions(Protocol):
    """A rule for directions; it remembers what it needs of the past."""

    def propose(self, slopes: Array, precondition: Callable[[Array], Array] | None) -> Array:
        """Direction at a point with these slopes."""
        ...

    def observe(self, move: Array, slopes: Array, change: Array) -> None:
        """Learn from a step: the move, the slopes after it, and their change."""
        ...

    def forget(self) -> bool:
        """Drop the past; False if there was none."""
        ...


@dataclass(frozen=True)
class Tolerances:
    """When a descent ends: a change of the value, a norm of the gradient, or a length of the step below these."""

    tol: float
    gradient_tol: float = 1e-6
    step_tol: float = 1e-10


@dataclass(frozen=True)
class LineSearch:
    """Constants of the strong Wolfe conditions, and the first trial step.

    It is ``2 (f_k - f_(k-1)) / slope`` (the decrease of the last step, expected again), 1.1 times that and at most one
    if `cap_first_step`; or always one with ``first_step="unit"``.
    """

    c1: float = 1e-4
    c2: float = 0.9
    first_step: FirstStep = "scaled"
    cap_first_step: bool = True

    def first(self, value: float, previous: float, slope: float) -> float:
        """First trial step, after one from the value `previous`."""
        if self.first_step == "unit" or not (math.isfinite(previous) and value < previous):
            return 1.0
        expected = 2.2 * (value - previous) / slope
        return min(1.0, expected) if self.cap_first_step else expected


@dataclass
class Descent:
    """State of a run: where it is, and how it ended."""

    value: float
    slopes: Array
    n_iter: int = 0
    reason: Reason = "max_iter"
    journal: Journal = field(default_factory=Journal)

    @property
    def converged(self) -> bool:
        """Whether a tolerance was met."""
        return self.reason in ("converged", "gradient", "step")


def downhill(slopes: Array, precondition: Callable[[Array], Array] | None) -> Array:
    """Negative gradient: as the preconditioner scales it, or of length one."""
    return -slopes / float(np.linalg.norm(slopes)) if precondition is None else -precondition(slopes)


def descend(
    problem: CurveProblem,
    directions: Directions,
    tolerances: Tolerances,
    search: LineSearch,
    *,
    max_iter: int,
    state: Descent | None = None,
    journal: Journal | None = None,
    on_iteration: Callable[[Descent], bool | None] | None = None,
) -> Descent:
    """Run a descent method until a tolerance is met; on Ctrl-C what was reached is returned."""
    if state is None:
        value, slopes = problem.evaluate()
        state = Descent(value, slopes, journal=journal or Journal())
        state.journal.add(value, float(np.linalg.norm(slopes)), problem.n_evaluations)
    previous = math.nan
    begin = state.n_iter
    with holding(INTERRUPTED) as block:
        while True:
            norm = float(np.linalg.norm(state.slopes))
            if norm < tolerances.gradient_tol:
                state.reason = "gradient"
                break
            if state.n_iter - begin >= max_iter:
                state.reason = "max_iter"
                break
            direction, slope = _direction(problem, directions, state.slopes)
            first = search.first(state.value, previous, slope)
            longest = problem.longest(direction)
            phi = problem.along(direction)
            line = strong_wolfe(phi, state.value, slope, first=first, longest=longest, c1=search.c1, c2=search.c2)
            if line.step == 0.0:
                if directions.forget():
                    previous = math.nan
                    continue
                state.reason = "line_search"
                break
            previous, old = state.value, state.slopes
            value, slopes = problem.advance(line.step)
            state.value, state.slopes = value, slopes
            state.n_iter += 1
            move = line.step * direction
            directions.observe(move, slopes, slopes - old)
            norm = float(np.linalg.norm(slopes))
            state.journal.add(value, norm, problem.n_evaluations, step=line.step, slope=slope, strong=line.strong)
            if on_iteration is not None and on_iteration(state):
                state.reason = "stopped"
                break
            if abs(previous - value) < tolerances.tol:
                state.reason = "converged"
                break
            if float(np.linalg.norm(move)) < tolerances.step_tol:
                state.reason = "step"
                break
    if block.interrupted:
        state.reason = "interrupted"
    return state


def _direction(problem: CurveProblem, directions: Directions, slopes: Array) -> tuple[Array, float]:
    """A direction and the slope along it; the past is dropped if it does not lead down."""
    direction = directions.propose(slopes, problem.precondition)
    slope = float(slopes @ direction)
    if not (slope < 0 and math.isfinite(slope)):
        directions.forget()
        direction = directions.propose(slopes, problem.precondition)
        slope = float(slopes @ direction)
    return direction, slope


def run(
    problem: ManifoldProblem,
    directions: Directions,
    tolerances: Tolerances,
    search: LineSearch,
    *,
    max_iter: int,
    on_iteration: Callable[[Descent], bool | None] | None,
) -> RiemannianResult:
    """Descend, and say so if the end was not a good one."""
    check_count(max_iter, "max_iter")
    for name, value in {"tol": tolerances.tol, "gradient_tol": tolerances.gradient_tol}.items():
        check_value(value, name, Number(finite=False))
    state = descend(problem, directions, tolerances, search, max_iter=max_iter, on_iteration=on_iteration)
    if not state.converged and state.reason not in ("stopped", "interrupted"):
        # Imported here: scikit-learn is slow to load, and this is rarely needed.
        from sklearn.exceptions import ConvergenceWarning

        advice = {
            "max_iter": f"no tolerance was met in max_iter={max_iter} steps: raise max_iter or tol",
            "line_search": "no step lowers the objective although the gradient is not small: check the gradient, "
            "or raise gradient_tol",
        }[state.reason]
        warnings.warn(f"Descent on the manifold stopped early: {advice}", ConvergenceWarning, stacklevel=3)
    return RiemannianResult(
        point=problem.point,
        value=state.value,
        gradient_norm=float(np.linalg.norm(state.slopes)),
        converged=state.converged,
        reason=state.reason,
        n_iter=state.n_iter,
        n_evaluations=problem.n_evaluations,
        history=state.journal.arrays(),
        interrupted=state.reason == "interrupted",
    )
