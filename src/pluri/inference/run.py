"""One run of EM and its history: where the run stands, the step that moves it on, and the verdict whether it is over.

A step is an E-step at the current point, then an M-step. With acceleration the point may be a guess: it is kept when
the objective there is at least the last one, otherwise the run goes back to the M-step's own result. A history has a
row per iteration, plain tuples of Python numbers, so that it can be stored beside the model without pickle.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, Generic, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from pluri.engine import Run
from pluri.inference.acceleration import Accelerator
from pluri.inference.learnable import Learnable, Packable, Params, Stats

Reason = Literal["converged", "max_iter", "descent", "stopped", "interrupted"]
NUMERICAL_ERRORS = (FloatingPointError, np.linalg.LinAlgError, ValueError)


class AscentWarning(RuntimeWarning):
    """The objective fell, which EM with a correct M-step never does."""


class HistoryRow(NamedTuple):
    """One iteration.

    Parameters
    ----------
    restart : int
        Index of the run (0 to ``n_init - 1``).
    iteration : int
        Number of E-steps that this run has done, this one included.
    objective : float
        Log-likelihood plus log prior at the parameters that the E-step saw.
    log_likelihood : float
        The log-likelihood alone.
    seconds : float
        Duration of the E-step and the M-step.
    accepted : bool
        False when an acceleration tried a point and fell back; the objective is then that of the point kept.
    """

    restart: int
    iteration: int
    objective: float
    log_likelihood: float
    seconds: float
    accepted: bool = True


class History:
    """Rows of a fit in the order they happened; each column is also an attribute.

    Attributes
    ----------
    restart, iteration, objective, log_likelihood, seconds, accepted : ndarray of shape (n_rows,)
        The columns described in :class:`HistoryRow`.

    Examples
    --------
    >>> from pluri.inference import History, HistoryRow
    >>> history = History([HistoryRow(0, 1, -9.0, -9.0, 0.1), HistoryRow(0, 2, -7.5, -7.5, 0.1)])
    >>> history
    History(1 run, 2 iterations, objective -9 -> -7.5, 0.2 s)
    >>> history.objective
    array([-9. , -7.5])
    >>> history[-1].iteration
    2
    """

    def __init__(self, rows: Iterable[tuple[Any, ...]] = ()) -> None:
        # Whole rows, not columns: one append is all or nothing even when Ctrl-C falls into it.
        self.rows: list[tuple[Any, ...]] = [tuple(row) for row in rows]

    def append(self, row: HistoryRow) -> None:
        """Add one iteration."""
        self.rows.append(tuple(row))

    def run(self, restart: int) -> History:
        """Rows of one run only.

        Examples
        --------
        >>> from pluri.inference import History, HistoryRow
        >>> history = History([HistoryRow(0, 1, -9.0, -9.0, 0.1), HistoryRow(1, 1, -8.0, -8.0, 0.1)])
        >>> history.run(1).objective
        array([-8.])
        """
        return History(row for row in self.rows if row[0] == restart)

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns as lists, ready for ``pandas.DataFrame`` or JSON.

        Examples
        --------
        >>> from pluri.inference import History, HistoryRow
        >>> History([HistoryRow(0, 1, -9.0, -9.0, 0.1)]).to_dict()["objective"]
        [-9.0]
        """
        return {name: [row[column] for row in self.rows] for column, name in enumerate(HistoryRow._fields)}

    def _column(self, name: str, dtype: type) -> NDArray[Any]:
        column = HistoryRow._fields.index(name)
        return np.array([row[column] for row in self.rows], dtype=dtype)

    @property
    def restart(self) -> NDArray[np.int64]:
        return self._column("restart", np.int64)

    @property
    def iteration(self) -> NDArray[np.int64]:
        return self._column("iteration", np.int64)

    @property
    def objective(self) -> NDArray[np.float64]:
        return self._column("objective", np.float64)

    @property
    def log_likelihood(self) -> NDArray[np.float64]:
        return self._column("log_likelihood", np.float64)

    @property
    def seconds(self) -> NDArray[np.float64]:
        return self._column("seconds", np.float64)

    @property
    def accepted(self) -> NDArray[np.bool_]:
        return self._column("accepted", np.bool_)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> HistoryRow:
        return HistoryRow(*self.rows[index])

    def __iter__(self) -> Iterator[HistoryRow]:
        return (HistoryRow(*row) for row in self.rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, History) and self.rows == other.rows

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if not self.rows:
            return "History(empty)"
        runs = len({row[0] for row in self.rows})
        return (
            f"History({runs} run{'s' * (runs > 1)}, {len(self)} iteration{'s' * (len(self) > 1)}, "
            f"objective {self.rows[0][2]:.6g} -> {self.rows[-1][2]:.6g}, {self.seconds.sum():.3g} s)"
        )


@dataclass(frozen=True)
class IterationState(Generic[Params]):
    """What ``on_iteration`` sees after each iteration.

    Parameters
    ----------
    params : Params
        Parameters after this iteration's M-step.
    restart, n_init : int
        Index of the run, from 0, and number of runs.
    iteration, max_iter : int
        Number of E-steps this run has done, and at most does.
    objective, log_likelihood : float
        At the parameters that the E-step saw.
    gain : float
        Increase of the objective since the last iteration; NaN at the first.
    seconds : float
        Duration of the iteration.
    accepted : bool
        False when an accelerated step was refused.
    reason : {"converged", "max_iter", "descent"} or None
        Why the run ends here, None if it goes on.
    """

    params: Params
    restart: int
    n_init: int
    iteration: int
    max_iter: int
    objective: float
    log_likelihood: float
    gain: float
    seconds: float
    accepted: bool
    reason: Reason | None


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
