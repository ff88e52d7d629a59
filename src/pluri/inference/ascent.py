"""Maximisation by L-BFGS with what a fit owes its user: restarts, a history that never falls, Ctrl-C, progress.

For smooth objectives; what alternates between expectation and maximisation runs in
`pluri.inference.expectation_maximization`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from pluri.inference import History, HistoryRow, IterationState
from pluri.inference.run import Reason
from pluri.progress import open_progress
from pluri.validation.interruption import holding

Array = NDArray[np.float64]
Objective = Callable[[Array], tuple[float, Array]]

#: Gradients below this count as zero; objectives here are means over subsets, of order one.
FLAT = 1e-7


@dataclass(frozen=True)
class Ascent:
    """Where a climb ended.

    Attributes
    ----------
    point : (n_parameters,): the best point of the best run
    objective : the value there
    restart, n_iter, reason : index of the best run, number of its iterations, and why it ended
    history : all iterations of all runs
    interrupted : whether Ctrl-C cut the climb short
    """

    point: Array
    objective: float
    restart: int
    n_iter: int
    reason: Reason
    history: History
    interrupted: bool

    @property
    def converged(self) -> bool:
        """Whether the best run reached the top, to the tolerance asked for."""
        return self.reason == "converged"


def climb(
    objective: Objective, starts: Sequence[Array], *, max_iter: int = 200, tol: float = 1e-9, verbose: int = 0
) -> Ascent:
    """Maximise from each start and keep the best.

    Parameters
    ----------
    objective : callable
        Point to value and gradient; the value is -inf where there is none.
    starts : list of arrays
    max_iter : int
        Most iterations of a run.
    tol : float
        A run ends when an iteration gains less, relative to the objective if that is above one.
    verbose : int

    Raises
    ------
    ValueError
        If the objective is finite at none of the starts.
    """
    run = _Run(objective, len(starts))
    best: tuple[float, Array, int, int, Reason] | None = None
    history = History()
    interrupted = False
    with open_progress(verbose) as report:
        for restart, start in enumerate(starts):
            reason: Reason
            run.begin(restart, start)
            if not math.isfinite(run.value):
                continue

            def follow(intermediate_result: Any, restart: int = restart) -> None:
                row = run.finish_iteration()
                history.append(row)
                seen: IterationState[Array] = IterationState(
                    params=run.point, n_init=len(starts), max_iter=max_iter, gain=run.gain, reason=None, **row._asdict()
                )
                report(seen)

            with holding(run.how_far) as block:
                result = minimize(
                    run.negative, start, jac=True, method="L-BFGS-B", callback=follow,
                    options={"maxiter": max_iter, "ftol": tol, "gtol": FLAT, "maxcor": 20, "maxls": 50},
                )  # fmt: skip
                reason = _reason(result, run.value)
            if block.interrupted:
                reason, interrupted = "interrupted", True
            if not run.iteration:  # the start was the top: the history shows it all the same
                history.append(run.finish_iteration())
            if best is None or run.value > best[0]:
                best = (run.value, run.point, restart, run.iteration, reason)
            if interrupted:
                break
    if best is None:
        raise ValueError("the objective must be finite at one of the starting points at least, got -inf at all of them")
    value, point, restart, n_iter, reason = best
    return Ascent(point, value, restart, n_iter, reason, history, interrupted)


class _Run:
    """The best point of one run so far, however the optimiser ends."""

    def __init__(self, objective: Objective, n_starts: int) -> None:
        self.objective, self.n_starts = objective, n_starts

    def begin(self, restart: int, start: Array) -> None:
        self.restart, self.iteration, self.gain = restart, 0, math.nan
        self.point = np.array(start, dtype=np.float64)
        self.value = self.objective(self.point)[0]
        self.last = self.value
        self.clock = perf_counter()

    def how_far(self) -> str:
        return (
            f"fit interrupted after {self.iteration} iterations of run {self.restart + 1} of {self.n_starts}; the best "
            "parameters so far are kept"
        )

    def negative(self, point: Array) -> tuple[float, Array]:
        value, gradient = self.objective(point)
        if not (math.isfinite(value) and np.isfinite(gradient).all()):
            # Bad enough to turn the line search back, not so bad that interpolation gives a step of nothing.
            return -self.value + 10 * max(1.0, abs(self.value)), np.zeros(len(point))
        if value > self.value:
            self.value, self.point = value, point.copy()
        return -value, -gradient

    def finish_iteration(self) -> HistoryRow:
        self.iteration += 1
        self.gain, self.last = self.value - self.last, self.value
        before, self.clock = self.clock, perf_counter()
        return HistoryRow(self.restart, self.iteration, self.value, self.value, self.clock - before)


def _reason(result: Any, value: float) -> Reason:
    if result.success:
        return "converged"
    if result.status == 1:
        return "max_iter"
    # The line search can give up at the top, where differences of the objective are rounding errors.
    return "converged" if np.abs(result.jac).max() < 1e-4 * max(1.0, abs(value)) else "stopped"
