"""One run of EM: a record of where it stands, the step that moves it on, and the verdict whether it is over.

A step is an E-step at the current point, then an M-step. With acceleration the point may be a guess: it is kept when
the objective there is at least the last one, otherwise the run goes back to the M-step's own result.
"""

from __future__ import annotations

import math
import warnings
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, Generic, Literal, cast

import numpy as np

from pluri.engine import Run
from pluri.inference.acceleration import Accelerator
from pluri.inference.history import HistoryRow
from pluri.inference.learnable import Learnable, Packable, Params, Stats

Reason = Literal["converged", "max_iter", "descent", "stopped", "interrupted"]
NUMERICAL_ERRORS = (FloatingPointError, np.linalg.LinAlgError, ValueError)


class AscentWarning(RuntimeWarning):
    """The objective fell, which EM with a correct M-step never does."""


@dataclass(frozen=True)
class RunState(Generic[Params]):
    """Where a run stands between two iterations; enough to go on from, bit for bit.

    Parameters
    ----------
    point : Params
        Where the next E-step looks.
    image : Params
        Result of the last M-step; differs from ``point`` only when ``guessed``.
    best, best_objective : Params, float
        The best point whose objective is known.
    objective, log_likelihood : float
        At the last point that was kept.
    gain : float
        Increase of the objective over the last EM step; NaN when the last step was not a plain one.
    guessed : bool
        Whether ``point`` is an accelerator's proposal.
    memory : object
        The accelerator's memory.
    iteration : int
        Number of E-steps done.
    fell : bool
        Whether the objective has fallen in this run.
    """

    point: Params
    image: Params
    best: Params
    best_objective: float = -math.inf
    objective: float = -math.inf
    log_likelihood: float = -math.inf
    gain: float = math.nan
    guessed: bool = False
    memory: Any = None
    iteration: int = 0
    fell: bool = False


def begin(params: Params, accelerator: Accelerator | None) -> RunState[Params]:
    """State of a run before its first iteration."""
    return RunState(params, params, params, memory=accelerator.start() if accelerator else None)


def slack(objective: float) -> float:
    """Fall of the objective that rounding explains."""
    return 1e-7 * max(1.0, abs(objective))


def verdict(state: RunState[Params], max_iter: int, tol: float) -> Reason | None:
    """Why the run is over, or None."""
    if state.gain < tol:
        return "converged" if state.gain >= -slack(state.objective - state.gain) else "descent"
    return "max_iter" if state.iteration >= max_iter else None


def outcome(state: RunState[Params]) -> tuple[Params, float]:
    """Parameters that the run gives and the objective to rank it by.

    These are the last M-step's result and the last objective; after a fall, the best point seen.
    """
    if state.objective < state.best_objective - slack(state.best_objective):
        return state.best, state.best_objective
    return state.image, state.objective


def step(
    problem: Learnable[Params, Stats],
    run: Run,
    state: RunState[Params],
    restart: int,
    accelerator: Accelerator | None,
    tol: float,
) -> tuple[RunState[Params], HistoryRow]:
    """One iteration: E-step, objective, M-step, and the accelerator's proposal for the next point."""
    started = perf_counter()
    iteration = state.iteration + 1
    try:
        with np.errstate(all="ignore") if state.guessed else nullcontext():  # a wild guess is refused, not reported
            log_likelihood, objective, image = _em_step(problem, run, state)
    except NUMERICAL_ERRORS as error:
        if not (state.guessed and accelerator):
            error.add_note(f"at iteration {iteration} of run {restart + 1}")
            raise
        refused = accelerator.judge(state.memory, False)
        state = replace(state, point=state.image, guessed=False, gain=math.nan, memory=refused, iteration=iteration)
        row = (restart, iteration, state.objective, state.log_likelihood, perf_counter() - started, False)
        return state, HistoryRow(*row)

    gain = objective - state.objective if iteration > 1 else math.nan
    fell = gain < -slack(state.objective)
    if fell and not state.fell:
        warnings.warn(
            f"the objective fell from {state.objective:.10g} to {objective:.10g} at iteration {iteration} of run "
            f"{restart + 1}, which a correct M-step never causes; the best parameters seen are kept",
            AscentWarning,
            stacklevel=3,
        )
    memory: Any = state.memory
    guess: Params | None = None
    if accelerator:
        memory = accelerator.judge(memory, True) if state.guessed else memory
        proposal = _propose(problem, accelerator, memory, state.point, image)
        memory, guess = proposal
    if state.guessed:
        # Only the gain of a plain EM step can tell convergence: a guess may land just above the last objective.
        guess, gain = (None, math.nan) if gain < tol else (guess, math.nan)
    is_best = objective >= state.best_objective
    state = RunState(
        point=image if guess is None else guess,
        image=image,
        best=state.point if is_best else state.best,
        best_objective=objective if is_best else state.best_objective,
        objective=objective,
        log_likelihood=log_likelihood,
        gain=gain,
        guessed=guess is not None,
        memory=memory,
        iteration=iteration,
        fell=state.fell or fell,
    )
    return state, HistoryRow(restart, iteration, objective, log_likelihood, perf_counter() - started)


def _em_step(problem: Learnable[Params, Stats], run: Run, state: RunState[Params]) -> tuple[float, float, Params]:
    """Log-likelihood and objective at the point, and the M-step's result; numerical errors refuse a guess."""
    stats = run(partial(problem.expect, state.point))
    log_likelihood = float(stats.log_likelihood)
    objective = log_likelihood + float(problem.log_prior(state.point))
    least = state.objective if state.guessed else -math.inf
    if not least <= objective < math.inf:
        raise FloatingPointError(f"the objective became {objective}")
    image = problem.maximize(stats, state.point)
    # An improvement can lie where the M-step breaks down, for instance where a component has no weight.
    if state.guessed and np.isnan(cast("Packable[Params]", problem).pack(image)).any():
        raise FloatingPointError("the M-step gave NaN")
    return log_likelihood, objective, image


def _propose(
    problem: Learnable[Params, Stats], accelerator: Accelerator, memory: Any, point: Params, image: Params
) -> tuple[Any, Params | None]:
    """Next point to try; None when there is no proposal, or it lies outside the prior's support."""
    packable = cast("Packable[Params]", problem)
    memory, vector = accelerator.propose(memory, packable.pack(point), packable.pack(image))
    if vector is None:
        return memory, None
    try:
        with np.errstate(all="ignore"):
            guess = packable.unpack(vector, image)
            if math.isfinite(problem.log_prior(guess)):
                return memory, guess
    except NUMERICAL_ERRORS:
        pass
    return accelerator.judge(memory, False), None
