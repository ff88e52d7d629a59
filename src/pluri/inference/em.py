"""Expectation-maximisation for any model: the one loop that all families share.

Iterates ``theta <- argmax_theta' E[log p(X, Z | theta') | X, theta] + log p(theta')``, which never lowers the
objective ``J(theta) = log p(X | theta) + log p(theta)``. One iteration is an E-step at the current parameters, its
objective, an M-step, then the test ``J_t - J_(t-1) < tol``; so ``max_iter=n`` means n E-steps and n M-steps.

References
----------
Dempster, Laird and Rubin (1977), Maximum likelihood from incomplete data via the EM algorithm, JRSS B 39.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from pluri.engine import Source, open_engine
from pluri.inference import checkpoint as storage
from pluri.inference.acceleration import ACCELERATORS, Accelerator
from pluri.inference.learnable import Learnable, Packable, Params, Stats
from pluri.inference.restarts import Fit, resume, save
from pluri.inference.result import EMResult, IterationState
from pluri.inference.run import NUMERICAL_ERRORS, AscentWarning, Reason, begin, step, verdict
from pluri.progress import open_progress
from pluri.validation import check_count, check_writable
from pluri.validation.interruption import hold, interruptible

__all__ = ["AscentWarning", "EMResult", "IterationState", "Learnable", "Packable", "expectation_maximization"]


@interruptible
def expectation_maximization(
    problem: Learnable[Params, Stats],
    source: Source,
    *,
    rng: np.random.Generator,
    max_iter: int = 100,
    tol: float = 1e-2,
    n_init: int = 1,
    start: Params | Sequence[Params] | None = None,
    engine: Any = None,
    n_jobs: int | None = None,
    acceleration: str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 10,
    fingerprint: str = "",
    verbose: int = 0,
    on_iteration: Callable[[IterationState[Params]], bool | None] | None = None,
) -> EMResult[Params]:
    """Fit a model by EM, or MAP-EM if it has a prior.

    Parameters
    ----------
    problem : Learnable
        The model.
    source : Source
        The data.
    rng : numpy.random.Generator
        Each run gets a stream of its own spawned from it, so run ``i`` is the same whatever ``n_init`` is.
    max_iter : int, default=100
        Largest number of iterations (E-steps) of a run.
    tol : float, default=1e-2
        A run ends when an EM step raises the objective by less; ``-inf`` never stops early.
    n_init : int, default=1
        Number of runs; the one with the highest last objective wins. A run that fails numerically is dropped with a
        warning as long as another succeeds.
    start : Params or list of Params, optional
        Starting points of the first runs, in place of ``problem.initialize``.
    engine, n_jobs
        Where the E-step runs: see :func:`pluri.engine.open_engine`.
    acceleration : {"squarem", "anderson"}, optional
        Extrapolate; needs ``problem.pack`` and ``problem.unpack``. The objective still never falls.
    checkpoint : path, optional
        File to go on from if it exists, and to write every ``checkpoint_every`` iterations, at the end of a run and
        on Ctrl-C. It stays after the fit: the same call returns at once, a larger ``max_iter`` goes on.
    checkpoint_every : int, default=10
        Iterations between two writes.
    fingerprint : str, default=""
        Description of data and settings; a checkpoint with another one is refused.
    verbose : int, default=0
        1 shows a progress bar (a line per ten iterations if stderr is no terminal), 2 a line per iteration.
    on_iteration : callable, optional
        Called after each iteration; returning True ends the run, raising ``StopIteration`` the whole fit.

    Returns
    -------
    EMResult
        Whether to warn when ``converged`` is False is left to the caller.

    Raises
    ------
    FloatingPointError
        If the objective becomes NaN or +inf. It may be -inf (a start under which the data are impossible) as long as
        the M-step copes.

    Warns
    -----
    AscentWarning
        Once per run in which the objective falls by more than rounding explains.
    UserWarning
        After Ctrl-C, if :func:`pluri.on_interrupt` says "keep", when the best parameters so far are returned; otherwise
        they are the attribute ``result`` of the ``KeyboardInterrupt``, unless no iteration was complete.

    Examples
    --------
    The share of heads of a coin of which every toss is seen: one M-step solves it.

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from pluri.engine import ArraySource, Statistics
    >>> from pluri.inference import expectation_maximization
    >>> @dataclass(frozen=True)
    ... class Tosses(Statistics):
    ...     heads: float
    ...     tosses: int
    ...     log_likelihood: float
    >>> class Coin:
    ...     def initialize(self, source, rng):
    ...         return rng.uniform(0.2, 0.8)
    ...     def expect(self, share, batch):
    ...         heads, tosses = batch.X.sum(), len(batch.X)
    ...         return Tosses(heads, tosses, heads * np.log(share) + (tosses - heads) * np.log1p(-share))
    ...     def maximize(self, stats, share):
    ...         return stats.heads / stats.tosses
    ...     def log_prior(self, share):
    ...         return 0.0
    >>> tosses = ArraySource(np.array([[1.0], [1.0], [0.0], [1.0]]))
    >>> result = expectation_maximization(Coin(), tosses, rng=np.random.default_rng(0))
    >>> float(result.params), result.converged
    (0.75, True)
    """
    for name, value in {"max_iter": max_iter, "n_init": n_init, "checkpoint_every": checkpoint_every}.items():
        check_count(value, name)
    if not isinstance(tol, Real) or tol != tol:
        raise ValueError(f"tol must be a number, got {tol!r}")
    accelerator = _accelerator(acceleration, problem)
    starts: Sequence[Params] = () if start is None else start if isinstance(start, list) else [start]
    header = {
        "fingerprint": f"{type(problem).__name__} {fingerprint}".strip(),
        "n_init": int(n_init),
        "acceleration": acceleration,
    }
    fit: Fit[Params] = Fit(rng.spawn(n_init))
    if checkpoint is not None:
        if not Path(checkpoint).absolute().parent.is_dir():
            raise ValueError(f"checkpoint must lie in an existing directory, got {os.fspath(checkpoint)!r}")
        check_writable(checkpoint, "checkpoint")
        if Path(checkpoint).exists():
            pattern_rng = np.random.default_rng(0)  # shows the make of the parameters; their values are not used
            like = lambda: starts[0] if starts else problem.initialize(source, pattern_rng)  # noqa: E731
            fit = resume(checkpoint, header, like, accelerator)

    def keep() -> None:
        if checkpoint is not None:
            save(checkpoint, header, fit)

    failures: list[Exception] = []
    interrupted = False
    with open_engine(engine, n_jobs, source) as run, open_progress(verbose) as report:

        def one_run() -> Reason:
            restart = fit.restart
            if fit.state is None:
                with _numerical_failures():
                    given = restart < len(starts)
                    params = starts[restart] if given else problem.initialize(source, fit.streams[restart])
                fit.state = begin(params, accelerator)
                fit.shapes = storage.shapes(params) if checkpoint is not None else ""
            reason = verdict(fit.state, max_iter, tol)
            while reason is None:
                last = fit.state.objective if fit.state.iteration else math.nan
                with _numerical_failures():
                    state, row = step(problem, run, fit.state, restart, accelerator, tol)
                fit.history.append(row)
                fit.state = state
                reason = verdict(state, max_iter, tol)
                seen = IterationState(
                    params=state.image,
                    n_init=n_init,
                    max_iter=max_iter,
                    gain=row.objective - last,
                    reason=reason,
                    **row._asdict(),
                )
                report(seen)
                if on_iteration is not None:
                    try:
                        stop = bool(on_iteration(seen))
                    except StopIteration:
                        stop = fit.over = True
                    reason = reason or ("stopped" if stop else None)
                if reason or state.iteration % checkpoint_every == 0:
                    keep()
            return reason

        try:
            while fit.restart < n_init and not fit.over:
                try:
                    fit.close(one_run())
                except _RunFailed as failure:
                    failures.append(failure.error)
                    fit.state = None
                fit.restart += 1
        except KeyboardInterrupt as ctrl_c:
            where = f"{fit.state.iteration if fit.state else 0} iterations of run {fit.restart + 1} of {n_init}"
            if fit.history:
                keep()
            fit.close((fit.state and verdict(fit.state, max_iter, tol)) or "interrupted")
            if fit.best is None:
                raise
            hold(ctrl_c, f"fit interrupted after {where}; the best parameters so far are kept")
            interrupted = True
    if fit.best is None:
        raise failures[0]
    if failures:
        warnings.warn(
            f"{len(failures)} of {n_init} runs failed numerically and were dropped; the first failure was "
            f"{type(failures[0]).__name__}: {failures[0]}",
            RuntimeWarning,
            stacklevel=2,
        )
    best = fit.best
    return EMResult(best.params, best.objective, best.restart, best.n_iter, best.reason, fit.history, interrupted)


class _RunFailed(Exception):
    """One run broke down; the others may still succeed."""

    def __init__(self, error: Exception) -> None:
        self.error = error


@contextmanager
def _numerical_failures() -> Iterator[None]:
    """Mark the errors that end one run only; those of ``on_iteration`` are not among them."""
    try:
        yield
    except NUMERICAL_ERRORS as error:
        raise _RunFailed(error) from error


def _accelerator(acceleration: str | None, problem: object) -> Accelerator | None:
    if acceleration is None:
        return None
    if acceleration not in ACCELERATORS:
        raise ValueError(f"acceleration must be None or one of {sorted(ACCELERATORS)}, got {acceleration!r}")
    if not isinstance(problem, Packable):
        raise ValueError(
            f"acceleration must be None for a problem without pack and unpack ({type(problem).__name__}), "
            f"got {acceleration!r}"
        )
    return ACCELERATORS[acceleration]()
