"""One run of simulated annealing: Metropolis steps at a temperature that falls.

A move from x to x' is accepted with probability ``min(1, exp((f(x) - f(x')) / T) q(x | x') / q(x' | x))``, so that at a
constant temperature states are visited in proportion to ``exp(-f(x) / T)``. What is not finite is never accepted. The
best state is kept beside the current one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.optimize.annealing.moves import Move, Proposal
from pluri.optimize.annealing.schedules import acceptance_target
from pluri.validation import Number

Array = NDArray[np.float64]

#: Acceptance between which step sizes stay as they are, what they are multiplied by outside, and after how many steps.
LOWEST_ACCEPTANCE, HIGHEST_ACCEPTANCE = 0.2, 0.5
SHORTER, LONGER = 0.7, 1.4
STEPS_BETWEEN = 50
#: An adaptive temperature can fall or rise by this factor of e in the course of a run.
RANGE = 60.0
#: Acceptance is averaged over this share of a run.
MEMORY = 0.01

COLUMNS = ("energy", "best", "temperature", "accepted", "step_size")
MUTABLE = (np.ndarray, list, dict, set, bytearray)


class AnnealingProgress(NamedTuple):
    """Where a run stands, as its callback sees it.

    Attributes
    ----------
    restart, iteration : int
        Run and step, both from 0.
    state, energy
        The current ones.
    best_state, best_energy
        The best of this run.
    temperature : float
    """

    restart: int
    iteration: int
    state: Any
    energy: float
    best_state: Any
    best_energy: float
    temperature: float


@dataclass(frozen=True)
class Plan:
    """What a run is to do: temperatures, when to end, what to keep.

    Attributes
    ----------
    temperatures : (n_levels,), or None if they depend on the acceptance
    first : float
        Temperature at the beginning.
    n_per_temperature, max_iter : int
    lowest : float
        Ends below this temperature.
    patience : int or None
        Ends after so many steps without a better state.
    step_size : (n_dimensions,), a number, or None
    largest_step : as `step_size`
    adapt : bool
        Whether step sizes follow the acceptance.
    keep_states : bool
    """

    temperatures: Array | None
    first: float
    n_per_temperature: int
    max_iter: int
    lowest: float
    patience: int | None
    step_size: Any
    largest_step: Any
    adapt: bool
    keep_states: bool


@dataclass
class Run:
    """A run under way: the current state, the best one, and what happened so far.

    Attributes
    ----------
    state, energy : the current ones
    best_state, best_energy : the best ones
    rows : values of `COLUMNS` after each step
    states : current state after each step, if they are kept
    n_evaluations : int
    reason : str, why it ended
    """

    state: Any
    energy: float
    best_state: Any
    best_energy: float
    rows: list[tuple[float, ...]] = field(default_factory=list)
    states: list[Any] = field(default_factory=list)
    n_evaluations: int = 0
    reason: str = ""

    def trace(self) -> dict[str, Array]:
        """Columns by name, an entry for each step."""
        table = np.array(self.rows, dtype=np.float64).reshape(-1, len(COLUMNS))
        return {name: table[:, column].copy() for column, name in enumerate(COLUMNS)}


def checked_energy(value: Any) -> float:
    """An energy as a number: infinite for what is not finite, an error for what is none."""
    if isinstance(value, float):  # np.float64 is one
        return value if math.isfinite(value) else math.inf
    if not isinstance(value, str | bytes | bool | type(None)) and np.size(value) == 1:
        try:
            number = float(np.asarray(value).reshape(()))
        except (TypeError, ValueError):
            pass
        else:
            return number if math.isfinite(number) else math.inf
    raise ValueError(f"f must return a number, got {value!r}")


def propose(
    move: Move, f: Callable[[Any], Any], rng: np.random.Generator, state: Any, step_size: Any
) -> tuple[Any, float, float, int]:
    """A state, its energy, the log ratio of the move, and evaluations of f that it took."""
    proposed = move(rng, state) if step_size is None else move(rng, state, step_size)
    if isinstance(proposed, Proposal):
        new, energy, log_ratio = proposed
        if not Number(finite=False).holds(log_ratio):
            raise ValueError(f"log_ratio of a Proposal must be a number, got {log_ratio!r}")
    else:
        new, energy, log_ratio = proposed, None, 0.0
    if new is state and isinstance(new, MUTABLE):
        raise ValueError(
            f"moves must return a new state and leave the old one as it is, got the same {type(new).__name__} back"
        )
    if energy is None:
        return new, checked_energy(f(new)), log_ratio, 1
    return new, checked_energy(energy), log_ratio, 0


def anneal(
    run: Run, move: Move, f: Callable[[Any], Any], plan: Plan, rng: np.random.Generator,
    watch: Callable[[int, float], bool],
) -> None:  # fmt: skip
    """Carry `run` on to its end, changing it; `watch(step, temperature)` may end it early."""
    temperature, step_size = plan.first, plan.step_size
    since, n_accepted, acceptance, length = 0, 0, 0.5, mean_step(step_size)
    for step in range(plan.max_iter):
        if plan.temperatures is not None:
            temperature = float(plan.temperatures[step // plan.n_per_temperature])
        if temperature < plan.lowest:
            run.reason = f"the temperature fell below min_temperature={plan.lowest:g}"
            return
        new, energy, log_ratio, n_evaluations = propose(move, f, rng, run.state, step_size)
        run.n_evaluations += n_evaluations
        accepted = accepts(rng, run.energy, energy, temperature, log_ratio)
        since += 1
        if accepted:
            run.state, run.energy = new, energy
            n_accepted += 1
            if energy < run.best_energy:
                run.best_state, run.best_energy, since = new, energy, 0
        run.rows.append((run.energy, run.best_energy, temperature, accepted, length))
        if plan.keep_states:
            run.states.append(run.state)
        if watch(step, temperature):
            run.reason = "callback ended it"
            return
        if plan.patience is not None and since >= plan.patience:
            run.reason = f"no better state in n_iter_no_change={plan.patience} steps"
            return
        if plan.temperatures is None:
            temperature, acceptance = steered(temperature, acceptance, accepted, (step + 1) / plan.max_iter, plan)
        if plan.adapt and (step + 1) % STEPS_BETWEEN == 0:
            step_size = adapted(step_size, n_accepted / STEPS_BETWEEN, plan.largest_step)
            n_accepted, length = 0, mean_step(step_size)
    run.reason = f"max_iter={plan.max_iter} steps were made"


def mean_step(step_size: Any) -> float:
    """Step size as one number; NaN if there is none."""
    return math.nan if step_size is None else float(np.mean(step_size))


def accepts(rng: np.random.Generator, old: float, new: float, temperature: float, log_ratio: float) -> bool:
    """Metropolis and Hastings' decision; at temperature 0 only what is not worse is accepted."""
    if not new < math.inf:
        return False
    if old == math.inf:
        return True
    if temperature == 0.0:
        return new <= old
    # Differences of huge energies divided by small temperatures overflow to infinity, which is right.
    log_acceptance = min((old - new) / temperature, 1e300) + log_ratio
    return log_acceptance >= 0.0 or -rng.standard_exponential() < log_acceptance


def steered(temperature: float, acceptance: float, accepted: bool, progress: float, plan: Plan) -> tuple[float, float]:
    """The next temperature and average acceptance, by the modified schedule of Lam."""
    weight = 1.0 / max(20.0, MEMORY * plan.max_iter)
    acceptance += weight * (accepted - acceptance)
    change = min(0.2, RANGE / plan.max_iter)
    factor = -change if acceptance > acceptance_target(progress) else change
    return temperature * math.exp(factor), acceptance


def adapted(step_size: Any, acceptance: float, largest: Any) -> Any:
    """Shorter steps if too few were accepted, longer ones if too many."""
    if acceptance < LOWEST_ACCEPTANCE:
        return step_size * SHORTER
    if acceptance > HIGHEST_ACCEPTANCE:
        return np.minimum(step_size * LONGER, largest)
    return step_size


def first_temperature(
    run: Run, move: Move, f: Callable[[Any], Any], rng: np.random.Generator, step_size: Any, n_proposals: int
) -> float:
    """A temperature at which about half of the moves upwards are accepted: their median height / log 2.

    It is measured on a walk from the first state that accepts whatever is finite; better states on the way are kept
    in `run`.
    """
    state, energy, rises = run.state, run.energy, []
    for _ in range(n_proposals):
        new, other, _, n_evaluations = propose(move, f, rng, state, step_size)
        run.n_evaluations += n_evaluations
        if math.isfinite(other):
            if math.isfinite(energy) and other > energy:
                rises.append(other - energy)
            state, energy = new, other
            if energy < run.best_energy:
                run.best_state, run.best_energy = state, energy
    return float(np.median(rises)) / math.log(2.0) if rises else 1.0
