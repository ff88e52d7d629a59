r"""Stochastic variational inference for conjugate-exponential models, and the batch algorithm that it approximates.

With q(beta | lambda) of the global variables and the local factors at their optimum (`pluri.inference.variational.
conjugate`), the natural gradient of the bound in lambda is

    alpha + sum_n E_q[t(z_n, x_n)] - lambda,

so that batch coordinate ascent sets lambda = alpha + sum_n E_q[t(z_n, x_n)], and a minibatch B gives the unbiased
estimate lambda^ = alpha + (N / |B|) sum_{n in B} E_q[t(z_n, x_n)]. The stochastic step is

    lambda <- (1 - rho_t) lambda + rho_t lambda^,    rho_t = (t + tau)^-kappa,    t = 1, 2, ...

which converges for kappa in (0.5, 1] (sum rho_t = inf, sum rho_t^2 < inf).

References
----------
Hoffman, Blei, Wang and Paisley (2013), Stochastic variational inference, JMLR 14. Robbins and Monro (1951).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Literal

import numpy as np

from pluri.engine import Batch
from pluri.inference.run import History, HistoryRow, IterationState
from pluri.inference.variational.conjugate import (
    ConjugateModel,
    Natural,
    as_source,
    evidence_lower_bound,
    natural_target,
)
from pluri.inference.variational.minibatches import Minibatches, count_rows
from pluri.progress import open_progress
from pluri.validation import Number, Only, check_count, check_value
from pluri.validation.interruption import holding, interruptible


@dataclass(frozen=True)
class RobbinsMonro:
    """Step sizes rho_t = (t + offset)^-decay, t = 1, 2, ...

    Parameters
    ----------
    decay : float, default=0.7
        In (0.5, 1]; 0 keeps the step at 1, which is right for the whole data set at a time only.
    offset : float, default=10.0
        Not negative; the larger, the smaller the first steps.

    Examples
    --------
    >>> from pluri.inference.variational import RobbinsMonro
    >>> [round(RobbinsMonro(decay=1.0, offset=1.0)(t), 3) for t in (1, 2, 3)]
    [0.5, 0.333, 0.25]
    >>> RobbinsMonro(decay=0.5)
    Traceback (most recent call last):
        ...
    ValueError: decay must lie in (0.5, 1], or be 0 for steps on the whole data set, got 0.5
    """

    decay: float = 0.7
    offset: float = 10.0

    def __post_init__(self) -> None:
        if not (self.decay == 0 or Number(above=0.5, most=1).holds(self.decay)):
            raise ValueError(f"decay must lie in (0.5, 1], or be 0 for steps on the whole data set, got {self.decay!r}")
        check_value(self.offset, "offset", Number(least=0))

    def __call__(self, t: int) -> float:
        """Size of step `t`, from 1."""
        return float((t + self.offset) ** -self.decay)


def natural_step(
    model: ConjugateModel, params: Natural, batch: Batch, *, rho: float, n_total: float
) -> tuple[Natural, float]:
    """One stochastic step, and the estimate of the bound at `params` that the batch gives.

    Parameters
    ----------
    model : ConjugateModel
    params : dict of arrays
        Natural parameters of q(beta).
    batch : Batch
        Some rows (or whole sequences) of the data, drawn at random.
    rho : float
        Step size in [0, 1].
    n_total : float
        Number of rows (sequences) of the whole data set.

    Returns
    -------
    params : dict of arrays
    elbo : float
    """
    scale = n_total / batch.n_sequences
    stats, local = model.local_step(batch, params)
    elbo = scale * float(local) + float(model.global_elbo(params))
    if not elbo < math.inf:
        raise FloatingPointError(f"the estimated bound became {elbo}")
    target = natural_target(model.global_prior(), stats, scale)
    return {name: (1.0 - rho) * params[name] + rho * target[name] for name in target}, elbo


@dataclass(frozen=True)
class StochasticResult:
    """What `stochastic_variational_inference` gives back.

    Parameters
    ----------
    params : dict of arrays
        Natural parameters of q(beta) after the last step.
    elbo : float
        The bound over the whole data set at `params`; the last estimate if ``tol=None`` or after Ctrl-C.
    trace : list of float
        The bound over the whole data set after each pass; empty if ``tol=None``.
    history : History
        One row per step; the objective is the minibatch's estimate of the bound before it.
    n_steps, n_passes : int
        Steps done, whole passes done.
    reason : {"converged", "max_iter", "stopped", "interrupted"}
        Why it ended.
    """

    params: Natural
    elbo: float
    trace: list[float]
    history: History = field(repr=False)
    n_steps: int
    n_passes: int
    reason: Literal["converged", "max_iter", "stopped", "interrupted"]

    @property
    def converged(self) -> bool:
        """Whether the bound had settled."""
        return self.reason == "converged"

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C cut the fit short."""
        return self.reason == "interrupted"


@interruptible
def stochastic_variational_inference(
    model: ConjugateModel,
    data: Any,
    *,
    rng: np.random.Generator,
    batch_size: int | None = 256,
    schedule: RobbinsMonro | None = None,
    max_iter: int = 10,
    tol: float | None = 1e-4,
    start: Natural | None = None,
    engine: Any = None,
    verbose: int = 0,
    on_iteration: Callable[[IterationState[Natural]], bool | None] | None = None,
) -> StochasticResult:
    """Fit a conjugate-exponential model by noisy natural-gradient steps on minibatches.

    Parameters
    ----------
    model : ConjugateModel
    data : array or sparse matrix of shape (n_samples, n_features), Source or Minibatches
        Rows of an array are drawn in a new random order each pass. A source keeps its own batches, which are shuffled
        within a window of 16: its rows should not be sorted. :class:`Minibatches` says otherwise.
    rng : numpy.random.Generator
    batch_size : int or None, default=256
        Rows of an array in a minibatch; None is all of them. A source and `Minibatches` are cut already.
    schedule : RobbinsMonro, optional
        Step sizes; by default ``RobbinsMonro(0.7, 10.0)``. A decay of 0 (steps of size 1: batch coordinate ascent) is
        accepted only if one minibatch has all the data. To go on with an earlier fit, raise the offset by its steps.
    max_iter : int, default=10
        Largest number of passes over the data.
    tol : float or None, default=1e-4
        Stop when the bound over the whole data set changes by less than `tol` times its size from pass to pass. With
        None the bound is not computed: there is one reading of the data per pass instead of two, and no test of
        convergence.
    start : dict of arrays, optional
        Parameters to start from, in place of ``model.initialize``.
    engine : None, "serial", "threads", "dask", Engine or distributed.Client
        Where that bound is computed; ``resolve_engine(n_jobs=2)`` of `pluri.engine` gives two threads.
    verbose : int, default=0
        1 shows a progress bar over the passes.
    on_iteration : callable, optional
        Called after each pass; returning True ends the fit.

    Returns
    -------
    StochasticResult

    Warns
    -----
    UserWarning
        After Ctrl-C, if :func:`pluri.on_interrupt` says "keep", when the parameters so far are returned.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.variational import RobbinsMonro, stochastic_variational_inference
    >>> class Mean:  # of a normal distribution of unit variance, with a standard normal prior
    ...     prior = {"precision_mean": np.zeros(1), "precision": np.ones(1)}
    ...     def initialize(self, source, rng):
    ...         return self.prior
    ...     def global_prior(self):
    ...         return self.prior
    ...     def local_step(self, batch, q):
    ...         mean, variance = q["precision_mean"] / q["precision"], 1 / q["precision"]
    ...         bound = -0.5 * ((batch.X - mean) ** 2 + variance + np.log(2 * np.pi)).sum()
    ...         return {"precision_mean": batch.X.sum(axis=0), "precision": np.full(1, len(batch.X))}, bound
    ...     def global_elbo(self, q):
    ...         mean, variance = q["precision_mean"] / q["precision"], 1 / q["precision"]
    ...         return -0.5 * float(np.sum(variance + mean**2 - 1 - np.log(variance)))
    >>> x = np.random.default_rng(0).normal(3.0, 1.0, size=(1000, 1))
    >>> result = stochastic_variational_inference(Mean(), x, rng=np.random.default_rng(1), batch_size=50)
    >>> mean = result.params["precision_mean"] / result.params["precision"]
    >>> bool(abs(mean[0] - x.sum() / 1001) < 0.05)
    True
    """
    check_count(max_iter, "max_iter")
    check_value(tol, "tol", Number(finite=False) | Only(None))
    parts = data if isinstance(data, Minibatches) else Minibatches(data, batch_size)
    source = as_source(parts.data)
    n_rows = count_rows(parts.data)
    total = float(n_rows if parts.n_total is None else parts.n_total)
    if not 0 < total < math.inf:
        raise ValueError(f"n_total must be finite and positive, got {total}")
    params = model.initialize(source, rng) if start is None else start
    steps = _Steps(model, RobbinsMonro() if schedule is None else schedule, params, n_rows, total)
    trace: list[float] = []
    n_passes = 0
    reason: Literal["converged", "max_iter", "stopped", "interrupted"] = "max_iter"
    message = lambda: f"fit interrupted after {len(steps.history)} steps; the parameters so far are kept"  # noqa: E731
    with open_progress(verbose) as report:
        with holding(message, having=steps.history) as block:
            for number in range(1, max_iter + 1):
                began = perf_counter()
                for batch in parts.drawn(rng):
                    steps.take(batch)
                n_passes = number
                previous = trace[-1] if trace else math.nan
                if tol is not None:
                    steps.bound = evidence_lower_bound(model, source, steps.params, engine=engine)
                    trace.append(steps.bound)
                gain = steps.bound - previous
                settled = tol is not None and abs(gain) < tol * max(1.0, abs(steps.bound))
                ended: Any = "converged" if settled else "max_iter" if number == max_iter else None
                seen = IterationState(
                    params=steps.params, restart=0, n_init=1, iteration=number, max_iter=max_iter,
                    objective=steps.bound, log_likelihood=steps.bound, gain=gain, seconds=perf_counter() - began,
                    accepted=True, reason=ended,
                )  # fmt: skip
                report(seen)
                told = on_iteration is not None and bool(on_iteration(seen))
                if ended or told:
                    reason = ended or "stopped"
                    break
        if block.interrupted:
            reason = "interrupted"
    n_steps = len(steps.history)
    return StochasticResult(steps.params, steps.bound, trace, steps.history, n_steps, n_passes, reason)


class _Steps:
    """The parameters on their way, and the last that is known of the bound."""

    def __init__(
        self, model: ConjugateModel, schedule: RobbinsMonro, params: Natural, n_rows: int, n_total: float
    ) -> None:
        self.model, self.schedule, self.params = model, schedule, params
        self.n_rows, self.n_total = n_rows, n_total
        self.bound = math.nan
        self.history = History()

    def take(self, batch: Batch) -> None:
        """One natural-gradient step."""
        if self.schedule.decay == 0 and batch.n_sequences < self.n_rows:
            raise ValueError(
                f"decay must lie in (0.5, 1] unless a minibatch has all {self.n_rows} rows, got 0 with "
                f"{batch.n_sequences} rows"
            )
        started = perf_counter()
        number = len(self.history) + 1
        self.params, self.bound = natural_step(
            self.model, self.params, batch, rho=self.schedule(number), n_total=self.n_total
        )
        self.history.append(HistoryRow(0, number, self.bound, self.bound, perf_counter() - started))
