r"""Mean-field coordinate ascent for any model: one loop that raises the evidence lower bound block by block.

The posterior p(z | x) is approximated by the best q in a family of products, the one with the largest

    ELBO(q) = E_q[log p(x, z)] - E_q[log q(z)] = log p(x) - KL(q || p(. | x))  <=  log p(x).

Replacing one factor at a time by its optimum, log q_j = E_{q without j}[log p(x, z)] + const, never lowers the bound.
The loop is that of expectation-maximisation with "bound" for "objective" and "sweep over the blocks" for "M-step", so
`pluri.inference.expectation_maximization` runs it: restarts, the ascent check, Ctrl-C and the history are the same.
Where the local factors add up over rows of data, a model is better given as `ConjugateModel`: its statistics may come
from files or a cluster.

References
----------
Blei, Kucukelbir and McAuliffe (2017), Variational inference: a review for statisticians, JASA 112.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pluri.inference.em import expectation_maximization
from pluri.inference.run import AscentWarning, History, IterationState, Reason, slack
from pluri.progress import open_progress
from pluri.validation.interruption import interruptible

Params = TypeVar("Params")
Data = TypeVar("Data", contravariant=True)


class VariationalModel(Protocol[Params, Data]):
    """A family of q and its bound: what `coordinate_ascent` runs."""

    def initialize(self, data: Data, rng: np.random.Generator) -> Params:
        """Parameters of q to start a run from; all randomness comes from `rng`."""
        ...

    def update(self, params: Params, data: Data) -> Params:
        """One sweep: every block replaced by its optimum given the others."""
        ...

    def elbo(self, params: Params, data: Data) -> float:
        """The bound at these parameters."""
        ...


@runtime_checkable
class BlockModel(Protocol[Params, Data]):
    """A model that shows its blocks, in place of `update`: with ``strict=True`` each is checked by itself."""

    def initialize(self, data: Data, rng: np.random.Generator) -> Params:
        """Parameters of q to start a run from."""
        ...

    def elbo(self, params: Params, data: Data) -> float:
        """The bound at these parameters."""
        ...

    @property
    def blocks(self) -> Mapping[str, Callable[[Params, Data], Params]]:
        """The updates by name, in the order of a sweep."""
        ...


@dataclass(frozen=True)
class CoordinateAscentResult(Generic[Params]):
    """What `coordinate_ascent` gives back.

    Parameters
    ----------
    params : Params
        Parameters of q after the last sweep of the best run (the best ones seen, if its bound fell).
    elbo : float
        The bound at `params`.
    trace : ndarray of shape (n_iter + 1,)
        The bound before each sweep of that run, and after the last.
    restart : int
        Index of that run.
    n_iter : int
        Number of its sweeps.
    reason : {"converged", "max_iter", "descent", "stopped", "interrupted"}
        Why it ended.
    history : History
        All sweeps of all runs; the objective is the bound before the sweep.
    interrupted : bool
        Whether Ctrl-C cut the fit short.
    """

    params: Params
    elbo: float
    trace: NDArray[np.float64]
    restart: int
    n_iter: int
    reason: Reason
    history: History
    interrupted: bool = False

    @property
    def converged(self) -> bool:
        """Whether the bound had stopped rising."""
        return self.reason == "converged"


@dataclass(frozen=True)
class _Whole:
    """The data as a source of one batch, which is the data itself."""

    data: Any

    def batches(self) -> Iterator[Any]:
        yield self

    def load(self) -> Any:
        return self.data


@dataclass(frozen=True)
class _Bound:
    log_likelihood: float

    def __add__(self, other: Any) -> Any:
        return NotImplemented  # there is one batch only


@dataclass(frozen=True)
class _Sweeps(Generic[Params]):
    """The model as the EM loop sees it: the E-step evaluates the bound, the M-step is a sweep."""

    model: Any
    data: Any
    strict: bool
    in_blocks: bool

    def initialize(self, source: Any, rng: np.random.Generator) -> Params:
        params: Params = self.model.initialize(self.data, rng)
        return params

    def expect(self, params: Params, batch: Any) -> _Bound:
        return _Bound(float(self.model.elbo(params, self.data)))

    def maximize(self, stats: _Bound, params: Params) -> Params:
        if not self.in_blocks:
            swept: Params = self.model.update(params, self.data)
            return swept
        before = stats.log_likelihood
        for name, block in self.model.blocks.items():
            params = block(params, self.data)
            if self.strict:
                after = float(self.model.elbo(params, self.data))
                if not after >= before - slack(before):
                    raise AscentWarning(f"block {name!r} lowered the bound from {before:.10g} to {after:.10g}")
                before = after
        return params

    def log_prior(self, params: Params) -> float:
        return 0.0  # the bound has everything


@interruptible
def coordinate_ascent(
    model: VariationalModel[Params, Any] | BlockModel[Params, Any],
    data: Any = None,
    *,
    rng: np.random.Generator,
    max_iter: int = 100,
    tol: float = 1e-6,
    n_init: int = 1,
    start: Params | Sequence[Params] | None = None,
    strict: bool = False,
    may_fall: bool = False,
    verbose: int = 0,
    on_iteration: Callable[[IterationState[Params]], bool | None] | None = None,
) -> CoordinateAscentResult[Params]:
    """Maximise a bound by coordinate ascent.

    Parameters
    ----------
    model : VariationalModel or BlockModel
        The model; `initialize`, `elbo`, and `update` or `blocks`.
    data : object, optional
        Handed to every method of the model as it is.
    rng : numpy.random.Generator
        Each run gets a stream of its own spawned from it.
    max_iter : int, default=100
        Largest number of sweeps of a run.
    tol : float, default=1e-6
        A run ends when a sweep changes the bound by at most `tol` times its size (or `tol`, if that is below 1).
        Components that empty themselves make plateaus: give them a small one. Negative: never stop early.
    n_init : int, default=1
        Number of runs; the one with the highest bound wins.
    start : Params or list of Params, optional
        Where the first runs start, in place of ``model.initialize``.
    strict : bool, default=False
        Raise `AscentWarning` as an error when the bound falls, which only a mistake in the model can cause. A model
        with `blocks` is then checked after each of them, and the message names the one at fault.
    may_fall : bool, default=False
        Whether falls are expected, as when neighbouring blocks are updated at the same time; then nobody is warned
        and the best parameters seen are returned.
    verbose : int, default=0
        1 shows a progress bar, 2 a line per sweep.
    on_iteration : callable, optional
        Called after each sweep; returning True ends the run, raising ``StopIteration`` the whole fit.

    Returns
    -------
    CoordinateAscentResult
        Whether to warn when ``converged`` is False is left to the caller.

    Raises
    ------
    FloatingPointError
        If the bound becomes NaN or +inf.

    Warns
    -----
    AscentWarning
        Once per run in which the bound falls by more than rounding explains; the run ends there.
    UserWarning
        After Ctrl-C, if :func:`pluri.on_interrupt` says "keep", when the best parameters so far are returned.

    Examples
    --------
    A correlated Gaussian approximated by two independent ones: the means are exact, each variance is that of one
    coordinate given the other.

    >>> import numpy as np
    >>> from pluri.inference.variational import coordinate_ascent
    >>> class Pair:
    ...     precision, mean = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([3.0, -1.0])
    ...     def initialize(self, data, rng):
    ...         return rng.normal(size=2)
    ...     def update(self, q, data):
    ...         first = self.mean[0] - 0.5 * (q[1] - self.mean[1])
    ...         return np.array([first, self.mean[1] - 0.5 * (first - self.mean[0])])
    ...     def elbo(self, q, data):
    ...         gap = q - self.mean
    ...         return -0.5 * gap @ self.precision @ gap + 0.5 * np.log(3 / 4)
    >>> result = coordinate_ascent(Pair(), rng=np.random.default_rng(0), tol=1e-12)
    >>> result.params.round(4), round(result.elbo, 4), result.converged
    (array([ 3., -1.]), -0.1438, True)
    """
    if not isinstance(tol, Real) or tol != tol:
        raise ValueError(f"tol must be a number, got {tol!r}")
    if strict and may_fall:
        raise ValueError("strict and may_fall exclude each other, got both")
    reasons: dict[int, Reason] = {}

    def has_settled(gain: float, bound: float) -> bool:
        return abs(gain) <= tol * max(1.0, abs(bound))

    with open_progress(verbose) as report, _falls(strict, may_fall):

        def watch(state: IterationState[Params]) -> bool:
            reason: Reason | None = None
            if not may_fall and state.gain < -slack(state.objective):
                reason = "descent"
            elif has_settled(state.gain, state.objective):
                reason = "converged"
            if reason is not None:
                reasons[state.restart] = reason
            seen = replace(state, reason=reason or state.reason)
            report(seen)
            stop = on_iteration is not None and bool(on_iteration(seen))
            return stop or reason is not None

        result = expectation_maximization(
            _Sweeps(model, data, strict, isinstance(model, BlockModel)),
            _Whole(data),
            rng=rng,
            max_iter=max_iter,
            tol=-np.inf,  # relative to the bound's size, which only `watch` sees
            n_init=n_init,
            start=start,
            on_iteration=watch,
        )
    elbo = float(model.elbo(result.params, data))
    trace = np.append(result.history.run(result.restart).objective, elbo)
    ended: Reason = reasons.get(result.restart, result.reason)
    if ended == "max_iter" and has_settled(elbo - result.objective, elbo):
        ended = "converged"  # on the last sweep
    return CoordinateAscentResult(
        result.params, elbo, trace, result.restart, result.n_iter, ended, result.history, result.interrupted
    )


@contextmanager
def _falls(strict: bool, may_fall: bool) -> Iterator[None]:
    """What a falling bound leads to: a warning, an error, or nothing."""
    if not strict and not may_fall:
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error" if strict else "ignore", AscentWarning)
        yield
