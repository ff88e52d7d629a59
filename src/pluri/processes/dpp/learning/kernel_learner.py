"""The kernel of a determinantal point process from observed subsets, without features of the items.

Maximises ``sum_t log det L_Yt - T log det(L + I)`` over positive semi-definite L. The maximum is not unique: flipping
the signs of rows and columns together changes no probability, so compare probabilities, never entries.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from pluri.inference import History, HistoryRow, expectation_maximization
from pluri.inference.ascent import climb
from pluri.processes.dpp.finite import DPP
from pluri.processes.dpp.learning.fixed_points import KernelEM, Picard, spectrum_point, subset_source
from pluri.processes.dpp.learning.gradients import (
    CholeskyObjective,
    FactorObjective,
    StochasticFactors,
    initial_factors,
    initial_spectrum,
    kernel_of_spectrum,
    popularity_weights,
    quality_odds,
    widened_start,
)
from pluri.processes.dpp.learning.likelihood import (
    factor_value_and_gradient,
    kernel_value,
    mean_log_likelihood,
    subset_log_probabilities,
)
from pluri.processes.dpp.learning.observations import SubsetCounts, count_subsets
from pluri.processes.gp_inference.learning import one_thread_if_small
from pluri.validation import Allowed, Number, Only, Stored, Whole, as_generator, check_parameters
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]


class DPPKernelLearner(Estimator):
    """Kernel of a determinantal point process, learned from subsets by maximum likelihood.

    Items that never occur get zero rows, which is their maximum-likelihood estimate.

    Parameters
    ----------
    inference : {"gradient", "picard", "em", "low_rank", "quality"}, default="gradient"
        How: L-BFGS on a Cholesky factor, which needs the fewest iterations; the Picard fixed point; EM over the
        eigenvectors; L-BFGS on ``L = V V'`` with V of shape (n_items, rank), for many items; or the best model
        without repulsion, in closed form (a baseline).
    rank : int, optional
        Columns of V for "low_rank", at least the size of the largest subset. By default one more, which makes local
        maxima rarer.
    alpha : float, default=0.0
        Weight of the penalty of "low_rank", which draws rare items to zero: ``alpha / 2 sum_i |v_i|^2 / count_i``.
    batch_size : int, optional
        Different subsets in a mini-batch of "low_rank"; None uses all of them by L-BFGS.
    learning_rate : float, default=0.05
        Of the mini-batches.
    step_size : float, default=1.0
        Longest step of "picard"; above 1 it is shortened where the likelihood would fall.
    n_rotations : int, default=3
        Steps of the eigenvectors in each iteration of "em".
    acceleration : {"squarem", "anderson"}, optional
        Extrapolate "picard".
    max_iter : int, default=500
        Most iterations of a run (epochs, with mini-batches).
    tol : float, default=1e-7
        A run ends when an iteration raises the mean log-likelihood by less.
    n_init : int, default=1
        Number of runs from different random starts. There are local maxima: use several.
    warm_start : bool, default=False
        Start the first run from the last kernel, if the items are as many.
    random_state : int, Generator, RandomState or None, default=None
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    L_ : array of shape (n_items, n_items)
        The kernel; not for "low_rank".
    factors_ : array of shape (n_items, rank)
        V of "low_rank".
    log_likelihood_ : float
        Mean log-likelihood of the subsets.
    history_ : `pluri.inference.History`
        Objective after each iteration: the mean log-likelihood, less the penalty; it never falls within a run.
    dpp_ : `pluri.processes.dpp.DPP`
        The process with the kernel learned.
    n_items_ : int
    n_iter_ : int
        Iterations of the best run.
    converged_ : bool

    References
    ----------
    Mariet and Sra (2015); Gillenwater et al. (2014); Gartrell et al. (2017): see `fixed_points` and `gradients`.

    Examples
    --------
    Items 0 and 1 are never chosen together, item 2 does not care.

    >>> from pluri.processes.dpp.learning import DPPKernelLearner
    >>> subsets = [[0], [1], [0, 2], [1, 2], [], [2]] * 10
    >>> model = DPPKernelLearner(random_state=0).fit(subsets)
    >>> baseline = DPPKernelLearner("quality").fit(subsets)
    >>> model.log_likelihood_, baseline.log_likelihood_
    (-1.79..., -1.96...)
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "L_": Stored("n_items_", "n_items_"),
        "factors_": Stored("n_items_", None),
    }

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "inference": Only("gradient", "picard", "em", "low_rank", "quality"),
        "rank": Whole(1) | Only(None),
        "batch_size": Whole(1) | Only(None),
        "n_rotations": Whole(1),
        "alpha": Number(least=0),
        "learning_rate": Number(above=0),
        "step_size": Number(least=1),
    }

    L_: Array
    factors_: Array

    def __init__(
        self,
        inference: str = "gradient",
        *,
        rank: int | None = None,
        alpha: float = 0.0,
        batch_size: int | None = None,
        learning_rate: float = 0.05,
        step_size: float = 1.0,
        n_rotations: int = 3,
        acceleration: str | None = None,
        max_iter: int = 500,
        tol: float = 1e-7,
        n_init: int = 1,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.inference = inference
        self.rank = rank
        self.alpha = alpha
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.step_size = step_size
        self.n_rotations = n_rotations
        self.acceleration = acceleration
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, subsets: Any, n_items: int | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the kernel; Ctrl-C ends the fit with a warning and keeps the best one so far.

        Parameters
        ----------
        subsets : list of subsets, boolean array of shape (n_subsets, n_items), or SubsetCounts
            Each subset is a list of item numbers or a mask; it may be empty.
        n_items : int, optional
            Size of the ground set; one more than the largest number if None.
        sample_weight : array of shape (n_subsets,), optional
            A weight of 2 is the same as the subset twice.

        Returns
        -------
        self : object
        """
        self._check_settings()
        counts = count_subsets(subsets, n_items, sample_weight)
        rank = self._rank(counts)
        rng = as_generator(self.random_state)
        seen = np.flatnonzero(counts.item_weights() > 0)
        start = self._start(counts.n_items, rank)
        with one_thread_if_small(len(seen)):
            if self.inference == "quality" or not seen.size:
                found, outcome = self._without_repulsion(counts.renumbered(seen), rank)
            else:
                inner = (
                    None
                    if start is None
                    else start[seen]
                    if self.inference == "low_rank"
                    else start[np.ix_(seen, seen)]
                )
                found, outcome = self._learn(counts.renumbered(seen), rank, inner, rng)
        for name in ("L_", "factors_"):
            self.__dict__.pop(name, None)
        if self.inference == "low_rank":
            self.factors_ = np.zeros((counts.n_items, rank))
            self.factors_[seen] = found
            self.log_likelihood_ = factor_value_and_gradient(self.factors_, counts, gradient=False)[0]
        else:
            self.L_ = np.zeros((counts.n_items, counts.n_items))
            self.L_[np.ix_(seen, seen)] = found
            self.log_likelihood_ = kernel_value(self.L_, counts)
        self.n_items_ = counts.n_items
        self.history_ = outcome.history
        self.n_iter_ = outcome.n_iter
        self.converged_ = outcome.reason == "converged"
        if outcome.reason in ("max_iter", "stopped"):
            warnings.warn(
                f"the likelihood still rose after {outcome.n_iter} iterations (max_iter={self.max_iter}): raise "
                f"max_iter or tol{'' if self.inference == 'gradient' else ', or use inference=' + repr('gradient')}",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _learn(
        self, counts: SubsetCounts, rank: int, start: Array | None, rng: np.random.Generator
    ) -> tuple[Array, Any]:
        """Kernel or factors of the items that occur, and how the search went."""
        outcome: Any
        if self.inference == "gradient":
            whole = CholeskyObjective(counts)
            kernels = [kernel_of_spectrum(*initial_spectrum(counts, one)) for one in rng.spawn(self.n_init)]
            if start is not None:
                kernels[0] = spectrum_point(start).L  # definite, though the last kernel may be singular
            starts = [whole.point(kernel) for kernel in kernels]
            outcome = climb(whole, starts, max_iter=self.max_iter, tol=self.tol / 100, verbose=self.verbose)
            return whole.kernel(outcome.point), outcome
        loop: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol, "n_init": self.n_init}
        loop |= {"rng": rng, "verbose": self.verbose}
        if self.inference == "picard":
            picard = Picard(counts, float(self.step_size))
            given = None if start is None else picard.point(spectrum_point(start).L)
            loop["acceleration"] = self.acceleration
            outcome = expectation_maximization(picard, subset_source(counts), start=given, **loop)
            return outcome.params.L, outcome
        if self.inference == "em":
            em = KernelEM(counts, int(self.n_rotations))
            origin = None if start is None else spectrum_point(start)
            outcome = expectation_maximization(em, subset_source(counts), start=origin, **loop)
            return outcome.params.L, outcome
        objective = FactorObjective(counts, popularity_weights(counts, float(self.alpha)))
        if self.batch_size is not None:
            epochs = StochasticFactors(objective, rank, int(self.batch_size), float(self.learning_rate))
            first = None if start is None else epochs.point(_filled(start, counts, rng), rng)
            outcome = expectation_maximization(epochs, epochs.source(), start=first, **loop)
            return outcome.params.V, outcome
        starts = [] if start is None else [_filled(start, counts, rng).ravel()]
        interrupted = False
        for stream in rng.spawn(self.n_init)[len(starts) :]:
            if not interrupted:
                factors, interrupted = widened_start(objective, rank, stream, self.max_iter, self.tol)
                starts.append(factors.ravel())
        max_iter = 1 if interrupted else self.max_iter
        outcome = climb(objective, starts, max_iter=max_iter, tol=self.tol / 100, verbose=self.verbose)
        if interrupted:
            outcome = replace(outcome, reason="interrupted", interrupted=True)
        return outcome.point.reshape(-1, rank), outcome

    def _without_repulsion(self, counts: SubsetCounts, rank: int) -> tuple[Array, Any]:
        kernel = np.zeros((0, rank)) if self.inference == "low_rank" else np.diag(quality_odds(counts))
        value = 0.0 if not len(kernel) else kernel_value(kernel, counts)
        return kernel, _ClosedForm(History([HistoryRow(0, 1, value, value, 0.0)]))

    def _check_settings(self) -> None:
        check_parameters(self)
        if self.acceleration is not None and self.inference != "picard":
            raise ValueError(f"acceleration must be None unless inference is 'picard', got {self.acceleration!r}")

    def _rank(self, counts: SubsetCounts) -> int:
        if self.inference != "low_rank":
            return counts.n_items
        rank = min(counts.largest + 1, counts.n_items) if self.rank is None else int(self.rank)
        if counts.largest > rank:
            raise ValueError(
                f"rank must be at least the size of the largest subset ({counts.largest}), got {rank}: a kernel of "
                "that rank gives larger subsets probability zero"
            )
        return rank

    def _start(self, n_items: int, rank: int) -> Array | None:
        """The last kernel or factors, if a fit may go on from them."""
        if not self.warm_start:
            return None
        last = getattr(self, "factors_" if self.inference == "low_rank" else "L_", None)
        shape = (n_items, rank)
        return last if last is not None and last.shape == shape else None

    @property
    def dpp_(self) -> DPP:
        """The determinantal point process with the kernel learned."""
        check_is_fitted(self, "n_items_")
        return DPP(features=self.factors_) if hasattr(self, "factors_") else DPP(self.L_)

    def log_prob(self, subsets: Any) -> Array:
        """Log-probability of each subset: (n_subsets,); -inf for an impossible one."""
        check_is_fitted(self, "n_items_")
        low = hasattr(self, "factors_")
        return subset_log_probabilities(self.factors_ if low else self.L_, subsets, factor=low)

    def score(self, subsets: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Mean log-likelihood of subsets; -inf, with a warning, if one is impossible."""
        check_is_fitted(self, "n_items_")
        low = hasattr(self, "factors_")
        counts = count_subsets(subsets, self.n_items_, sample_weight)
        return mean_log_likelihood(self.factors_ if low else self.L_, counts, factor=low)


def _filled(start: Array, counts: SubsetCounts, rng: np.random.Generator) -> Array:
    """Factors with random rows for items that had none, as subsets with them would be impossible."""
    return np.where(start.any(axis=1, keepdims=True), start, initial_factors(counts, start.shape[1], rng))


class _ClosedForm:
    """Outcome of a fit without iterations."""

    n_iter = 1
    reason = "converged"

    def __init__(self, history: History) -> None:
        self.history = history
