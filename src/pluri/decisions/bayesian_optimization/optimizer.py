"""Bayesian optimisation: find the minimum of an expensive function in few evaluations.

A Gaussian process is fitted to the evaluations so far; the next point is where an acquisition function, which weighs a
low mean against a large uncertainty, is highest [1]_. Numbers, integers and choices may be mixed; evaluations may be
noisy, fail, run at the same time, and be subject to constraints, which are modelled likewise.

References
----------
.. [1] Shahriari, B., Swersky, K., Wang, Z., Adams, R. P. and de Freitas, N. (2016). Taking the human out of the loop: a
   review of Bayesian optimization. Proceedings of the IEEE 104.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from pluri.decisions.bayesian_optimization.answers import ModelAnswers
from pluri.decisions.bayesian_optimization.choosing import Chooser, Choosing
from pluri.decisions.bayesian_optimization.history import Evaluation, History, told_evaluations
from pluri.decisions.bayesian_optimization.past_search import FromSearches
from pluri.decisions.bayesian_optimization.plain_data import PlainData
from pluri.decisions.bayesian_optimization.running import run_evaluations
from pluri.decisions.bayesian_optimization.space import Space
from pluri.decisions.bayesian_optimization.surrogate import SurrogateSettings
from pluri.validation import (
    Allowed,
    Flag,
    Number,
    Only,
    RandomState,
    Whole,
    as_generator,
    check_count,
    check_parameters,
)

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

Array = NDArray[np.float64]


class BayesianOptimizer(ModelAnswers, PlainData, FromSearches):
    """Find the minimum of an expensive function with a Gaussian process that chooses where to evaluate it next.

    Parameters
    ----------
    space : dict
        Names and dimensions: `Real`, `Integer`, `Categorical`, a list of choices, or a distribution of `scipy.stats`.
    acquisition : {"ei", "pi", "lcb", "thompson"}, default="ei"
        Expected improvement, probability of improvement, lower confidence bound, or the minimum of a function drawn
        from the posterior.
    n_initial_points : int, optional
        Evaluations before there is a model, at the points of a Latin hypercube; the larger of 5 and the number of
        dimensions plus 1 if None.
    kernel : {"matern52", "rbf"}, default="matern52"
    noise_variance : float or "learn", default="learn"
        Variance of an evaluation around the function; 0 for a function without noise.
    hyper_inference : {"map", "slice", "nuts"}, default="map"
        Hyper-parameters at the mode of their posterior, or acquisitions averaged over draws from it.
    n_draws, n_warmup : int, default=10 and 50
        Draws of the hyper-parameters, and steps before them.
    xi : float or "auto", default="auto"
        What an improvement must exceed to count, in units of the values. "auto" is 0, but for "pi" a hundredth of
        the standard deviation of the values: without that it would stay beside its best point.
    kappa : float or "schedule", default=2.0
        Standard deviations of the confidence bound; "schedule" grows as the theory of bandits asks.
    pending : {"kriging_believer", "constant_liar", "thompson"}, default="kriging_believer"
        How points under way are taken into account: as if their value were the one that is expected, or the best so
        far; or further points are those of a drawn function.
    maximize : bool, default=False
    n_constraints : int, default=0
        Constraints of an evaluation, each of which must be at most 0. For "ei", "pi" and "thompson".
    random_state : int, Generator or None

    Attributes
    ----------
    best_params_ : dict
        Of the best evaluation that keeps the constraints.
    best_score_ : float
        Its value.
    history_ : list of Evaluation
        All evaluations, in the order they came.
    surrogate_ : Surrogate
        The model of the function, given all of them; its values are negated if `maximize`.

    Examples
    --------
    >>> from pluri.decisions import BayesianOptimizer, Categorical, Real
    >>> def loss(params):
    ...     return (params["x"] - 0.3) ** 2 + (params["shape"] == "square")
    >>> space = {"x": Real(-1, 1), "shape": Categorical(["round", "square"])}
    >>> optimizer = BayesianOptimizer(space, random_state=0)
    >>> result = optimizer.optimize(loss, n_calls=15)
    >>> result.x["shape"], round(result.x["x"], 1)
    ('round', 0.3)

    Or evaluate by yourself, in the order and at the time you like:

    >>> optimizer = BayesianOptimizer(space, random_state=0)
    >>> for params in optimizer.ask(4):
    ...     optimizer.tell(params, loss(params))
    >>> len(optimizer.history_)
    4
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "acquisition": Only("ei", "pi", "lcb", "thompson"),
        "n_initial_points": Whole(1) | Only(None),
        "kernel": Only("matern52", "rbf"),
        "noise_variance": Number(least=0) | Only("learn"),
        "hyper_inference": Only("map", "slice", "nuts"),
        "xi": Number(least=0) | Only("auto"),
        "kappa": Number(least=0) | Only("schedule"),
        "pending": Only("kriging_believer", "constant_liar", "thompson"),
        "maximize": Flag(),
        "n_constraints": Whole(0),
    }

    def __init__(
        self,
        space: Mapping[str, Any],
        *,
        acquisition: Literal["ei", "pi", "lcb", "thompson"] = "ei",
        n_initial_points: int | None = None,
        kernel: Literal["matern52", "rbf"] = "matern52",
        noise_variance: float | Literal["learn"] = "learn",
        hyper_inference: Literal["map", "slice", "nuts"] = "map",
        n_draws: int = 10,
        n_warmup: int = 50,
        xi: float | Literal["auto"] = "auto",
        kappa: float | Literal["schedule"] = 2.0,
        pending: Literal["kriging_believer", "constant_liar", "thompson"] = "kriging_believer",
        maximize: bool = False,
        n_constraints: int = 0,
        random_state: RandomState = None,
    ) -> None:
        self.space = Space.of(space)
        self.acquisition = acquisition
        self.n_initial_points = n_initial_points
        self.kernel = kernel
        self.noise_variance = noise_variance
        self.hyper_inference = hyper_inference
        self.n_draws = n_draws
        self.n_warmup = n_warmup
        self.xi = xi
        self.kappa = kappa
        self.pending = pending
        self.maximize = maximize
        self.n_constraints = n_constraints
        check_parameters(self)
        if n_constraints and acquisition == "lcb":
            raise ValueError("acquisition must be 'ei', 'pi' or 'thompson' if there are constraints, got 'lcb'")
        self._history = History(self.space, sign=-1.0 if maximize else 1.0)
        learning = SurrogateSettings(kernel, noise_variance, hyper_inference, n_draws, n_warmup)
        choosing = Choosing(acquisition, xi, kappa, pending, n_constraints, learning)
        self._chooser = Chooser(self._history, choosing, as_generator(random_state), n_initial_points)

    @property
    def history_(self) -> list[Evaluation]:
        """All evaluations, in the order they came."""
        return list(self._history.evaluations)

    @property
    def best_params_(self) -> dict[str, Any]:
        """Parameters of the best evaluation that keeps the constraints."""
        return self._best().params

    @property
    def best_score_(self) -> float:
        """Value of the best evaluation that keeps the constraints."""
        return self._best().value

    def _best(self) -> Evaluation:
        number = self._history.best()
        if number is None:
            kept = " that keeps the constraints" if self.n_constraints else ""
            raise AttributeError(
                f"there is no best point yet: none of {len(self._history.rows)} evaluations has a finite value{kept}"
            )
        return self._history.evaluations[number]

    def ask(self, n: int | None = None) -> Any:
        """Where to evaluate next.

        Parameters
        ----------
        n : int, optional
            How many points, to be evaluated at the same time.

        Returns
        -------
        dict, or list of n dicts if n is given
        """
        if n is None:
            return self._chooser.choose()
        return [self._chooser.choose() for _ in range(check_count(n, "n"))]

    def tell(self, params: Any, value: Any, constraints: Any = None, *, seconds: float = math.nan) -> None:
        """Report evaluations, at points that were asked for or at any others.

        Parameters
        ----------
        params : dict or list of dicts
            Numbers may be rounded: a point within a hundredth of each range of one that was asked for stands for it.
        value : float or list of floats
            NaN if the evaluation failed.
        constraints : sequence of float, or list of those, optional
            Values of the constraints.
        seconds : float, optional
            How long the evaluation took.
        """
        told = told_evaluations(params, value, constraints, self.space, self.n_constraints)
        for point, row, number, limits in told:
            self._history.add(point, row, number, limits, float(seconds))

    def withdraw(self, params: Any = None) -> None:
        """Points that were asked for will not be evaluated after all, and no longer count as under way.

        One that failed is told with NaN instead, and avoided from then on.

        Parameters
        ----------
        params : dict or list of dicts, optional
            All points under way by default.
        """
        pending = self._history.pending
        if params is None:
            pending.clear()
            return
        for row in self.space.rows([params] if isinstance(params, Mapping) else list(params)):
            place = self._history.place_under_way(row)
            if place is None:
                raise ValueError(f"params must be under way (asked for and not told), got {self.space.params(row)}")
            del pending[place]

    def optimize(
        self,
        f: Callable[[dict[str, Any]], Any],
        n_calls: int = 30,
        *,
        batch_size: int = 1,
        n_jobs: int | None = None,
        max_seconds: float | None = None,
        tol: float | None = None,
        checkpoint: str | Path | None = None,
        callback: Callable[[BayesianOptimizer], bool | None] | None = None,
        verbose: int = 0,
    ) -> OptimizeResult:
        """Evaluate a function again and again, at points that are worth it; calling it again goes on.

        Parameters
        ----------
        f : callable
            A dict of parameters to a number; with constraints to a pair of a number and their values. NaN, infinities
            and exceptions are failures, which are avoided from then on.
        n_calls : int, default=30
            Evaluations to make now.
        batch_size : int, default=1
            Points that are chosen together.
        n_jobs : int, optional
            Points of a batch that are evaluated at the same time, in processes.
        max_seconds : float, optional
            No evaluation begins later than this.
        tol : float, optional
            Ends when the expected improvement anywhere is below this, in units of the values (with "ei").
        checkpoint : path, optional
            File that holds everything after each evaluation, for `load`.
        callback : callable, optional
            Called with the optimizer after each evaluation; returning True ends the search.
        verbose : int, default=0
            1 shows progress on stderr.

        Returns
        -------
        scipy.optimize.OptimizeResult
            ``x`` (a dict), ``fun``, ``nfev``, ``success``, ``message``, ``history``.
        """
        return run_evaluations(
            self, f, n_calls, batch_size=batch_size, n_jobs=n_jobs, max_seconds=max_seconds, tol=tol,
            checkpoint=checkpoint, callback=callback, verbose=verbose,
        )  # fmt: skip
