"""Simulated annealing: Metropolis steps whose temperature falls, from several starts.

A search that goes downhill only ends in the nearest valley. Annealing [1]_ also accepts steps upwards, with probability
``exp(-rise / T)``, and lowers T: ``p_T(x)``, proportional to ``exp(-f(x) / T)``, gathers at the minima of f. A single
run of moderate length often ends in the second best valley; several runs, of which the best is kept, seldom do.

References
----------
.. [1] Kirkpatrick, S., Gelatt, C. D. and Vecchi, M. P. (1983). Optimization by simulated annealing. Science 220.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from pluri.optimize.annealing.moves import GaussianSteps, IntegerSteps, Move, array_state, check_bounds, check_steps
from pluri.optimize.annealing.run import AnnealingProgress, Plan, Run, anneal, checked_energy, first_temperature
from pluri.optimize.annealing.schedules import SCHEDULES, Schedule, shares
from pluri.progress import open_progress
from pluri.progress.bar import Report, Step
from pluri.validation import (
    Allowed,
    Flag,
    Number,
    Only,
    RandomState,
    Whole,
    as_generator,
    check_parameters,
)
from pluri.validation.interruption import holding, interruptible

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

#: Moves whose heights give the initial temperature.
N_PROPOSALS = 100


@dataclass(frozen=True, kw_only=True)
class SimulatedAnnealing:
    """Minimise a function of numbers, of integers, or of states of one's own, by simulated annealing.

    Parameters
    ----------
    moves : {"gaussian", "integer"} or callable, default="gaussian"
        Gaussian steps of an array of numbers, steps of an array of integers, or ``moves(rng, x)``, which returns a
        neighbour of any state x: a new object, x stays as it is. A move that computes the energy on its way, or that
        is not as probable as its reverse, returns a `Proposal`. With `step_size` it is called as
        ``moves(rng, x, step_size)``.
    step_size : float or array-like, optional
        Standard deviation of the steps, of all coordinates or of each. A tenth of the distance of its bounds, or 1, if
        None.
    adapt_steps : bool, default=False
        Lengthen or shorten the steps every 50 moves if more than half or less than a fifth of them were accepted.
    schedule : {"exponential", "linear", "logarithmic", "adaptive"} or callable, default="exponential"
        How the temperature falls from level to level: by the factor `cooling`, in a straight line to 0 at the end, as
        ``1 / log(level + e)``, or so that the acceptance follows Lam's curve; or ``schedule(level)``, the share of the
        initial temperature at levels 0, 1, ..., such as ``ExponentialDecay(0.99, minimum=0.01)``.
    initial_temperature : float or "auto", default="auto"
        "auto" makes 100 moves first, and takes the temperature at which half of the rises among them are accepted.
    cooling : float, default=0.995
        Factor of the exponential schedule; 1 keeps the temperature.
    n_per_temperature : int, default=1
        Moves at each level.
    max_iter : int, default=10000
        Moves of a run.
    min_temperature : float, default=0.0
        A run ends below it.
    n_iter_no_change : int, optional
        A run ends after so many moves without a better state.
    n_init : int, default=1
        Runs, of which the best is kept.
    bounds : sequence of pairs (low, high), optional
        One for each coordinate of arrays; steps are reflected there.
    keep_states : bool, default=False
        Whether the states of the best run are returned.
    random_state : int, Generator or None
    verbose : int, default=0
        1 shows progress on stderr; the objective shown is the best energy of the run.
    callback : callable, optional
        Called with an `AnnealingProgress` after each move; returning True ends all runs.

    Examples
    --------
    The lower of two valleys:

    >>> from pluri.optimize import SimulatedAnnealing
    >>> search = SimulatedAnnealing(bounds=[(-2, 2)], max_iter=1000, n_init=5, random_state=0)
    >>> result = search.minimize(lambda x: float((x[0] ** 2 - 1) ** 2 + 0.2 * x[0]))
    >>> result.x.round(1).tolist(), result.success
    ([-1.0], True)

    Subsets of three of eight numbers, with a sum of 20; a move swaps one number for another:

    >>> import numpy as np
    >>> numbers = np.array([1, 2, 4, 5, 7, 9, 11, 16])
    >>> def swap(rng, chosen):
    ...     out, others = rng.integers(3), [i for i in range(8) if i not in chosen]
    ...     return (*chosen[:out], *chosen[out + 1 :], others[rng.integers(5)])
    >>> search = SimulatedAnnealing(moves=swap, max_iter=500, random_state=0)
    >>> result = search.minimize(lambda chosen: abs(numbers[list(chosen)].sum() - 20), (0, 1, 2))
    >>> int(numbers[list(result.x)].sum())
    20
    """

    moves: Literal["gaussian", "integer"] | Move = "gaussian"
    step_size: float | ArrayLike | None = None
    adapt_steps: bool = False
    schedule: Literal["exponential", "linear", "logarithmic", "adaptive"] | Schedule = "exponential"
    initial_temperature: float | Literal["auto"] = "auto"
    cooling: float = 0.995
    n_per_temperature: int = 1
    max_iter: int = 10_000
    min_temperature: float = 0.0
    n_iter_no_change: int | None = None
    n_init: int = 1
    bounds: ArrayLike | None = None
    keep_states: bool = False
    random_state: RandomState = None
    verbose: int = 0
    callback: Callable[[AnnealingProgress], bool | None] | None = None

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "adapt_steps": Flag(),
        "initial_temperature": Number(least=0) | Only("auto"),
        "cooling": Number(above=0, most=1),
        "n_per_temperature": Whole(1),
        "min_temperature": Number(least=0),
        "n_iter_no_change": Whole(1) | Only(None),
        "keep_states": Flag(),
    }

    def __post_init__(self) -> None:
        check_parameters(self)
        for name, known in (("moves", ("gaussian", "integer")), ("schedule", SCHEDULES)):
            value = getattr(self, name)
            if not callable(value) and not Only(*known).holds(value):
                raise ValueError(f"{name} must be {Only(*known)} or a function, got {value!r}")
        if self.callback is not None and not callable(self.callback):
            raise ValueError(f"callback must be a function or None, got {self.callback!r}")
        if callable(self.moves):
            if self.bounds is not None:
                raise ValueError("bounds are for moves='gaussian' or 'integer': moves of one's own keep to their own")
            if self.adapt_steps and self.step_size is None:
                raise ValueError("adapt_steps needs a step_size to begin with if moves is a function")
        check_bounds(self.bounds, self.moves == "integer")

    @interruptible
    def minimize(self, f: Callable[[Any], Any], x0: Any = None) -> OptimizeResult:
        """Search for the state with the lowest energy.

        Parameters
        ----------
        f : callable
            State to a number, the energy. States whose energy is NaN or infinite are never accepted.
        x0 : state, array-like or callable, optional
            Where all runs begin, or ``x0(rng)``, which draws a beginning for each. Drawn between the bounds if None.

        Returns
        -------
        scipy.optimize.OptimizeResult
            ``x``, ``fun``, ``success`` (whether a state of finite energy was found), ``status``, ``message``, ``nit``
            and ``nfev`` as in SciPy; ``trace``, a dict of arrays with an entry for each move of the best run:
            ``energy``, ``best``, ``temperature``, ``accepted`` and ``step_size``; ``acceptance_rate`` of that run;
            ``initial_temperature``; ``run``, its number; ``funs``, the lowest energy of each run; ``states``, if they
            are kept; ``interrupted``.
        """
        if not callable(f):
            raise ValueError(f"f must be a function, got {f!r}")
        rng = as_generator(self.random_state)
        streams = rng.spawn(self.n_init)
        moves, step_size, largest, draw = self._prepared(x0)
        runs: list[Run] = []
        with open_progress(self.verbose) as report, holding(lambda: _interrupted(runs), having=runs) as block:
            plan = None
            for number, stream in enumerate(streams):
                start = draw(stream)
                energy = checked_energy(f(start))
                run = Run(start, energy, start, energy, n_evaluations=1)
                runs.append(run)
                if plan is None:
                    plan = self._plan(run, moves, f, rng, step_size, largest)
                anneal(run, moves, f, plan, stream, self._watch(run, number, report))
                if run.reason.startswith("callback"):
                    break
        return _result(runs, self.keep_states, block.interrupted)

    def _prepared(self, x0: Any) -> tuple[Move, Any, Any, Callable[[np.random.Generator], Any]]:
        """Moves, the first and the largest step size, and how a run begins."""
        if callable(self.moves):
            if x0 is None:
                raise ValueError("x0 must be a state, or a function that draws one, if moves is a function, got None")
            draw_own = x0 if callable(x0) else lambda rng: x0
            if self.step_size is None:
                return self.moves, None, None, draw_own
            shape = np.shape(self.step_size)
            own: Any = check_steps(self.step_size, None, int(np.prod(shape))).reshape(shape)[()]
            return self.moves, own, 1e6 * own, draw_own
        integer = self.moves == "integer"
        bounds = check_bounds(self.bounds, integer)
        if x0 is None and bounds is None:
            raise ValueError("x0 must be given if there are no bounds to draw it from")
        start = None if x0 is None or callable(x0) else array_state(x0, integer, bounds)
        if bounds is not None:
            n_dimensions = len(bounds)
        else:
            n_dimensions = len(array_state(x0(np.random.default_rng(0)), integer, None) if start is None else start)
        size = check_steps(self.step_size, bounds, n_dimensions)
        largest = 1e6 * size if bounds is None else np.maximum(bounds[:, 1] - bounds[:, 0], size)

        def draw(rng: np.random.Generator) -> Any:
            if start is not None:
                return start.copy()
            if callable(x0):
                return array_state(x0(rng), integer, bounds)
            low, high = bounds.T
            return rng.integers(low, high, endpoint=True) if integer else rng.uniform(low, high)

        return (IntegerSteps(bounds) if integer else GaussianSteps(bounds)), size, largest, draw

    def _plan(
        self, run: Run, moves: Move, f: Callable[[Any], Any], rng: np.random.Generator, step_size: Any, largest: Any
    ) -> Plan:
        if self.initial_temperature == "auto":
            first = first_temperature(run, moves, f, rng, step_size, N_PROPOSALS)
        else:
            first = float(self.initial_temperature)
        table = shares(self.schedule, self.cooling, math.ceil(self.max_iter / self.n_per_temperature))
        return Plan(
            None if table is None else first * table, first, self.n_per_temperature, self.max_iter,
            self.min_temperature, self.n_iter_no_change, step_size, largest, self.adapt_steps, self.keep_states,
        )  # fmt: skip

    def _watch(self, run: Run, number: int, report: Report) -> Callable[[int, float], bool]:
        """Called after each move: shows it, and asks the callback."""
        every = max(1, self.max_iter // 100)

        def watch(step: int, temperature: float) -> bool:
            if self.verbose and ((step + 1) % every == 0):
                report(Step(step + 1, self.max_iter, run.best_energy, restart=number, n_init=self.n_init))
            if self.callback is None:
                return False
            now = AnnealingProgress(
                number, step, run.state, run.energy, run.best_state, run.best_energy, temperature
            )  # fmt: skip
            return bool(self.callback(now))

        return watch


def _interrupted(runs: list[Run]) -> str:
    best = min(run.best_energy for run in runs)
    return (
        f"minimize was interrupted after {len(runs[-1].rows)} moves of run {len(runs)}: the best state so far "
        f"(energy {best:.6g}) is kept"
    )


def _result(runs: list[Run], keep_states: bool, interrupted: bool) -> OptimizeResult:
    from scipy.optimize import OptimizeResult

    number = int(np.argmin([run.best_energy for run in runs]))
    best = runs[number]
    found = math.isfinite(best.best_energy)
    trace = best.trace()
    status = 4 if interrupted else 0 if found else 1
    message = "interrupted; the best state so far is kept" if interrupted else runs[-1].reason
    if not found:
        message = "no state of finite energy was found"
    result = OptimizeResult(
        x=best.best_state,
        fun=best.best_energy,
        success=found and not interrupted,
        status=status,
        message=message,
        nit=sum(len(run.rows) for run in runs),
        nfev=sum(run.n_evaluations for run in runs),
        trace=trace,
        acceptance_rate=float(trace["accepted"].mean()) if len(best.rows) else math.nan,
        initial_temperature=float(trace["temperature"][0]) if len(best.rows) else math.nan,
        run=number,
        funs=np.array([run.best_energy for run in runs]),
        interrupted=interrupted,
    )
    if keep_states:
        result.states = best.states
    return result
