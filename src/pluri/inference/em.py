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
from dataclasses import dataclass, field
from typing import Any, Generic

import numpy as np

from pluri.engine import Run, Source, open_engine
from pluri.inference import checkpoint as storage
from pluri.inference.acceleration import ACCELERATORS, Accelerator
from pluri.inference.checkpoint import Checkpoint
from pluri.inference.learnable import Learnable, Packable, Params, Stats
from pluri.inference.run import (
    NUMERICAL_ERRORS,
    History,
    HistoryRow,
    IterationState,
    Reason,
    RunState,
    begin,
    outcome,
    step,
    verdict,
)
from pluri.progress import open_progress
from pluri.validation import Number, Only, check_count, check_value
from pluri.validation.interruption import hold, interruptible

OnIteration = Callable[[IterationState[Params]], bool | None]


@dataclass(frozen=True)
class Candidate(Generic[Params]):
    """Outcome of a finished run."""

    params: Params
    objective: float
    restart: int
    n_iter: int
    reason: Reason


@dataclass(frozen=True)
class EMResult(Candidate[Params]):
    """What a fit gives back.

    Parameters
    ----------
    params : Params
        Parameters after the last M-step of the best run (the best ones seen, if its objective fell).
    objective : float
        Last objective of that run, which restarts are ranked by; the last M-step came after it.
    restart : int
        Index of that run.
    n_iter : int
        Number of its iterations (E-steps).
    reason : {"converged", "max_iter", "descent", "stopped", "interrupted"}
        Why it ended: the gain was below ``tol``, no iterations were left, the objective fell, ``on_iteration`` said
        so, or Ctrl-C.
    history : History
        All iterations of all runs.
    interrupted : bool
        Whether Ctrl-C cut the fit short, in this run or another.
    """

    history: History
    interrupted: bool = False

    @property
    def converged(self) -> bool:
        """Whether the best run ended because the gain was below ``tol``."""
        return self.reason == "converged"


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
    acceleration: str | None = None,
    checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
    verbose: int = 0,
    on_iteration: OnIteration[Params] | None = None,
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
    engine : None, "serial", "threads", "dask", Engine or distributed.Client
        Where the E-step runs; ``resolve_engine(n_jobs=2)`` of `pluri.engine` gives two threads.
    acceleration : {"squarem", "anderson"}, optional
        Extrapolate; needs ``problem.pack`` and ``problem.unpack``. The objective still never falls.
    checkpoint : path or Checkpoint, optional
        File to go on from if it exists, and to write every ten iterations (`Checkpoint.every`), at the end of a run and
        on Ctrl-C. It stays after the fit: the same call returns at once, a larger ``max_iter`` goes on.
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
    for name, value in {"max_iter": max_iter, "n_init": n_init}.items():
        check_count(value, name)
    check_value(tol, "tol", Number(finite=False))
    starts = () if start is None else start if isinstance(start, list) else [start]
    place = checkpoint if isinstance(checkpoint, Checkpoint | None) else Checkpoint(checkpoint)
    accelerator = _accelerator(acceleration, problem)
    loop = _Loop(problem, source, starts, int(max_iter), tol, int(n_init), acceleration, accelerator, place)
    fit = loop.open(rng)
    failures: list[Exception] = []
    interrupted = False
    with open_engine(engine, None, source) as run, open_progress(verbose) as report:
        try:
            while fit.restart < n_init and not fit.over:
                try:
                    fit.close(loop.run(fit, run, report, on_iteration))
                except _RunFailed as failure:
                    failures.append(failure.error)
                    fit.state = None
                fit.restart += 1
        except KeyboardInterrupt as ctrl_c:
            where = f"{fit.state.iteration if fit.state else 0} iterations of run {fit.restart + 1} of {n_init}"
            if fit.history:
                loop.keep(fit)
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
    return EMResult(**vars(fit.best), history=fit.history, interrupted=interrupted)


@dataclass
class _Fit(Generic[Params]):
    """Everything that changes while fitting, in one place where an interruption finds it in order."""

    streams: list[np.random.Generator]
    restart: int = 0
    state: RunState[Params] | None = None  # of the run in progress
    best: Candidate[Params] | None = None  # among the runs before it
    shapes: str = ""
    history: History = field(default_factory=History)
    over: bool = False

    def close(self, reason: Reason | None) -> None:
        """Rank the run in progress, if it has done an iteration."""
        if self.state is not None and self.state.iteration and reason:
            params, objective = outcome(self.state)
            if self.best is None or objective > self.best.objective:
                self.best = Candidate(params, objective, self.restart, self.state.iteration, reason)
        self.state = None


@dataclass(frozen=True)
class _Loop(Generic[Params, Stats]):
    """What stays the same in all runs of a fit."""

    problem: Learnable[Params, Stats]
    source: Source
    starts: Sequence[Params]
    max_iter: int
    tol: float
    n_init: int
    acceleration: str | None
    accelerator: Accelerator | None
    checkpoint: Checkpoint | None

    @property
    def header(self) -> dict[str, Any]:
        """What a checkpoint of this fit must say of it."""
        described = self.checkpoint.fingerprint if self.checkpoint else ""
        fingerprint = f"{type(self.problem).__name__} {described}".strip()
        return {"fingerprint": fingerprint, "n_init": self.n_init, "acceleration": self.acceleration}

    def open(self, rng: np.random.Generator) -> _Fit[Params]:
        """The fit of the checkpoint, or a new one."""
        if self.checkpoint is None or not self.checkpoint.exists():
            return _Fit(rng.spawn(self.n_init))
        path = self.checkpoint.path
        stored, leaves = storage.read(path)

        def compare(name: str, expected: Any) -> None:
            if stored.get(name) != expected:
                raise ValueError(
                    f"checkpoint {os.fspath(path)!r} belongs to another fit: its {name} is {stored.get(name)!r}, "
                    f"this one has {expected!r}; give another path or remove the file"
                )

        for name, expected in self.header.items():
            compare(name, expected)
        # Parameters of the right make, which may be costly; their values are not used.
        params = self.starts[0] if self.starts else self.problem.initialize(self.source, np.random.default_rng(0))
        compare("shapes", storage.shapes(params))
        pattern = {
            "state": begin(params, self.accelerator),
            "best": Candidate(params, 0.0, 0, 0, "converged"),
            "history": dict.fromkeys(HistoryRow._fields),
        }
        tree = storage.unflatten(leaves, pattern)
        history = History(zip(*(tree["history"][name].tolist() for name in HistoryRow._fields)))
        streams = storage.streams_from_json(stored["streams"])
        return _Fit(streams, stored["restart"], tree["state"], tree["best"], stored["shapes"], history)

    def keep(self, fit: _Fit[Params]) -> None:
        """Write the checkpoint, if there is to be one."""
        if self.checkpoint is None:
            return
        streams = storage.streams_to_json(fit.streams)
        header = self.header | {"shapes": fit.shapes, "restart": fit.restart, "streams": streams}
        history = {name: np.array(column) for name, column in fit.history.to_dict().items()}
        storage.write(self.checkpoint.path, header, {"state": fit.state, "best": fit.best, "history": history})

    def run(
        self, fit: _Fit[Params], engine: Run, report: Callable[[Any], None], on_iteration: OnIteration[Params] | None
    ) -> Reason:
        """One run of the fit, or the rest of it; changes `fit`."""
        state = fit.state = fit.state or self._begin(fit)
        reason = verdict(state, self.max_iter, self.tol)
        while reason is None:
            last = state.objective if state.iteration else math.nan
            with _numerical_failures():
                state, row = step(self.problem, engine, state, fit.restart, self.accelerator, self.tol)
            fit.history.append(row)
            fit.state = state
            reason = verdict(state, self.max_iter, self.tol)
            seen = IterationState(
                params=state.image, n_init=self.n_init, max_iter=self.max_iter, gain=row.objective - last,
                reason=reason, **row._asdict(),
            )  # fmt: skip
            report(seen)
            if on_iteration is not None:
                try:
                    stop = bool(on_iteration(seen))
                except StopIteration:
                    stop = fit.over = True
                reason = reason or ("stopped" if stop else None)
            if reason or (self.checkpoint and state.iteration % self.checkpoint.every == 0):
                self.keep(fit)
        return reason

    def _begin(self, fit: _Fit[Params]) -> RunState[Params]:
        with _numerical_failures():
            given = fit.restart < len(self.starts)
            params = (
                self.starts[fit.restart] if given else self.problem.initialize(self.source, fit.streams[fit.restart])
            )
        fit.shapes = storage.shapes(params) if self.checkpoint is not None else ""
        return begin(params, self.accelerator)


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
    check_value(acceleration, "acceleration", Only(None, *sorted(ACCELERATORS)))
    if not isinstance(problem, Packable):
        raise ValueError(
            f"acceleration must be None for a problem without pack and unpack ({type(problem).__name__}), "
            f"got {acceleration!r}"
        )
    return ACCELERATORS[acceleration]()
