"""Evaluating a function where an optimizer says: failures, batches, limits, and Ctrl-C, which loses nothing."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pluri.decisions.bayesian_optimization.history import checked_value
from pluri.progress import open_progress
from pluri.progress.bar import Step
from pluri.validation import Number, Only, Whole, check_count, check_target, check_value
from pluri.validation.interruption import holding, interruptible

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

    from pluri.decisions.bayesian_optimization.optimizer import BayesianOptimizer


@interruptible
def run_evaluations(
    optimizer: BayesianOptimizer,
    f: Callable[[dict[str, Any]], Any],
    n_calls: int,
    *,
    batch_size: int,
    n_jobs: int | None,
    max_seconds: float | None,
    tol: float | None,
    checkpoint: str | Path | None,
    callback: Callable[[BayesianOptimizer], bool | None] | None,
    verbose: int,
) -> OptimizeResult:
    """What `BayesianOptimizer.optimize` does."""
    _check(f, callback, optimizer, tol)
    check_count(n_calls, "n_calls")
    check_count(batch_size, "batch_size")
    check_value(max_seconds, "max_seconds", Number(above=0) | Only(None))
    check_value(n_jobs, "n_jobs", Whole() | Only(None))
    if checkpoint is not None:
        check_target(checkpoint, "checkpoint")
    started, made, message = perf_counter(), 0, f"n_calls={n_calls} evaluations were made"
    with open_progress(verbose) as report, holding(lambda: _interrupted(made), having=lambda: made > 0) as block:
        while made < n_calls and not message.startswith("ended"):
            if max_seconds is not None and perf_counter() - started > max_seconds:
                message = f"ended: max_seconds={max_seconds:g} are over"
                break
            if tol is not None and _nothing_left(optimizer, tol):
                message = f"ended: the expected improvement is below tol={tol:g} everywhere"
                break
            known = len(optimizer._history.pending)  # asked for before, and still open
            try:
                points = optimizer.ask(min(batch_size, n_calls - made))
                for params, (value, constraints, seconds) in zip(points, _evaluated(f, points, optimizer, n_jobs)):
                    optimizer.tell(params, value, constraints, seconds=seconds)
                    made += 1
                    _report(optimizer, report, made, n_calls)
                    if checkpoint is not None:
                        optimizer.save(checkpoint)
                    if callback is not None and callback(optimizer):
                        message = "ended: callback said so"
            finally:  # points that were not evaluated are not under way
                del optimizer._history.pending[known:]
    return _result(optimizer, "interrupted" if block.interrupted else message)


def _check(f: Any, callback: Any, optimizer: BayesianOptimizer, tol: Any) -> None:
    if not callable(f):
        raise ValueError(f"f must be a function, got {f!r}")
    if callback is not None and not callable(callback):
        raise ValueError(f"callback must be a function or None, got {callback!r}")
    check_value(tol, "tol", Number(above=0) | Only(None))
    if tol is not None and optimizer.acquisition != "ei":
        raise ValueError(f"tol is for acquisition='ei', got acquisition={optimizer.acquisition!r}")


def _evaluated(f: Any, points: list[dict[str, Any]], optimizer: BayesianOptimizer, n_jobs: int | None) -> Any:
    """Value, constraints and seconds of each point, as they come."""
    if n_jobs in (None, 1) or len(points) == 1:
        outcomes: Any = (_called(f, params) for params in points)
    else:
        from joblib import Parallel, delayed

        outcomes = Parallel(n_jobs=n_jobs)(delayed(_called)(f, params) for params in points)
    for params, (outcome, seconds, error) in zip(points, outcomes):
        if error is not None:
            warnings.warn(f"f failed at {params}, which counts as the worst value so far: {error}", stacklevel=4)
            yield math.nan, None, seconds
            continue
        value, constraints = _split(outcome, optimizer.n_constraints)
        number = checked_value(value)
        if math.isnan(number):
            warnings.warn(f"f is {value!r} at {params}, which counts as the worst value so far", stacklevel=4)
        yield number, constraints, seconds


def _called(f: Any, params: dict[str, Any]) -> tuple[Any, float, str | None]:
    """What f returned, how long it took, and its error if there was one."""
    started = perf_counter()
    try:
        return f(dict(params)), perf_counter() - started, None
    except Exception as error:  # whatever an experiment may raise
        return None, perf_counter() - started, f"{type(error).__name__}: {error}"


def _split(outcome: Any, n_constraints: int) -> tuple[Any, Any]:
    if not n_constraints:
        return outcome, None
    if not isinstance(outcome, tuple | list) or len(outcome) != 2:
        raise ValueError(
            f"f must return a pair of a value and {n_constraints} constraints (n_constraints), got {outcome!r}"
        )
    return outcome[0], outcome[1]


def _nothing_left(optimizer: BayesianOptimizer, tol: float) -> bool:
    """Whether the highest expected improvement is below the tolerance."""
    largest = optimizer._chooser.highest()
    return largest is not None and largest < tol


def _report(optimizer: BayesianOptimizer, report: Any, made: int, n_calls: int) -> None:
    number = optimizer._history.best()
    best = math.nan if number is None else optimizer._history.evaluations[number].value
    report(Step(made, n_calls, best, reason="done" if made == n_calls else None))


def _interrupted(made: int) -> str:
    return f"optimize was interrupted after {made} evaluations, which are kept; call it again to go on"


def _result(optimizer: BayesianOptimizer, message: str) -> OptimizeResult:
    from scipy.optimize import OptimizeResult

    history = optimizer.history_
    number = optimizer._history.best()
    if number is None and all(one.failed for one in history):
        raise ValueError(
            f"f must return a finite number somewhere, but all of its {len(history)} evaluations failed (history_ has "
            "them)"
        )
    found = number is not None
    return OptimizeResult(
        x=history[number].params if number is not None else None,
        fun=history[number].value if number is not None else math.nan,
        nfev=len(history),
        success=found and message != "interrupted",
        message=message if found else "no evaluation keeps the constraints",
        history=history,
    )
