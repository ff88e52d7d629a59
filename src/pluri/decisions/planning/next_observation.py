r"""Which variable of a fitted model to observe next, with costs.

What an observation of x_j is worth is the information that it is expected to give about the latent state z (or about a
target t), given what is known already,

.. math:: I(z; x_j \mid \text{seen}) = H(z \mid \text{seen}) - E\,H(z \mid \text{seen}, x_j),

in nats. A plan for a budget takes the most information for the money, one variable after the other; if variables are
independent given z, information is monotone submodular and the plan is near the best one.

References
----------
.. [1] D. Lindley, "On a measure of the information provided by an experiment", Annals of Mathematical Statistics 27,
   1956.
.. [2] A. Krause and C. Guestrin, "Near-optimal nonmyopic value of information in graphical models", UAI 2005.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.decisions.planning.adapters import planner_of
from pluri.decisions.planning.chain_steps import StepPlanner
from pluri.decisions.planning.field_places import PlacePlanner
from pluri.decisions.selection.constraints import ROUNDING, checked_costs
from pluri.validation import Number, RandomState, Whole, as_generator, check_value

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class ObservationScores:
    """What each variable that could be observed is worth.

    Attributes
    ----------
    candidates : (n,) int64
        Columns, time steps or rows of places.
    information : (n,)
        Expected, in nats.
    standard_error : (n,)
        Of Monte Carlo; zero where the value is exact (up to quadrature).
    costs : (n,)
    """

    candidates: IntArray
    information: Array
    standard_error: Array
    costs: Array

    @property
    def best(self) -> int:
        """The candidate with the most information for its cost."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(self.costs > 0, self.information / self.costs, np.inf * np.sign(self.information))
        return int(self.candidates[np.nanargmax(ratio)])


@dataclass(frozen=True)
class ObservationPlan:
    """Variables to observe, in the order of choice.

    Attributes
    ----------
    items : (n,) int64
    gains : (n,)
        Information of each given those before it, in nats.
    standard_error : (n,)
        Of each gain.
    values : (n,)
        Information of all up to each.
    cost : float
        Of all.
    """

    items: IntArray
    gains: Array
    standard_error: Array
    values: Array
    cost: float


class NextObservation:
    """What to observe next of a fitted latent variable model.

    Parameters
    ----------
    model : fitted model
        A `GaussianMixture`, `BernoulliMixture`, `CategoricalMixture` or `NaiveBayes` (which column of a row), a
        `GaussianHMM`, `CategoricalHMM`, `BernoulliHMM` or `PoissonHMM` (which step of a sequence, with all columns of
        it that are missing), or a `GaussianProcessRegressor` (which place).
    target : None, int or array-like, default=None
        What information is wanted about. None: the component, class, path of states, or the function at all candidate
        places. A column of a discrete mixture or of naive Bayes; one or several columns of a Gaussian mixture; or
        places (n, n_features) of a Gaussian process.
    n_samples : int, default=512
        Drawn outcomes where a plan cannot go through all.
    random_state : int, Generator, RandomState or None

    Examples
    --------
    A question that splits two kinds of animals, and one that does not:

    >>> import numpy as np
    >>> from pluri.decisions import NextObservation
    >>> from pluri.mixtures import NaiveBayes
    >>> X = np.array([[1, 1, 0], [1, 0, 0], [1, 1, 1], [0, 1, 0], [0, 0, 1], [0, 1, 1]])
    >>> model = NaiveBayes(inference="bayes").fit(X, ["bird", "bird", "bird", "fish", "fish", "fish"])
    >>> planner = NextObservation(model)
    >>> nothing_known = [np.nan, np.nan, np.nan]
    >>> planner.information(nothing_known).best
    0
    >>> planner.information(nothing_known, costs=[10.0, 1.0, 1.0]).best
    2
    >>> planner.plan(nothing_known, budget=2).items
    array([0, 2])
    """

    def __init__(
        self, model: Any, target: Any = None, *, n_samples: int = 512, random_state: RandomState = None
    ) -> None:
        check_value(n_samples, "n_samples", Whole(2))
        self.model = model
        self.target = target
        self.n_samples = n_samples
        self.random_state = random_state

    def information(self, X: Any, costs: ArrayLike | None = None) -> ObservationScores:
        """What each variable that is not observed is expected to tell.

        Parameters
        ----------
        X : array-like
            What is known: a row, or a sequence (n_steps, n_features), with NaN (or None) for what is not observed; of a
            Gaussian process, the candidate places (n_places, n_features).
        costs : array-like, optional
            Of each column, step or place; 1 by default.

        Returns
        -------
        ObservationScores
        """
        planner, prices = self._begin(X, costs)
        information, errors = planner.gains(planner.candidates)
        candidates = np.array(planner.candidates, dtype=np.int64)
        return ObservationScores(candidates, information, errors, prices[candidates])

    def plan(self, X: Any, budget: float, costs: ArrayLike | None = None) -> ObservationPlan:
        """Variables to observe together, by information for the money.

        Parameters
        ----------
        X : array-like
            See `information`.
        budget : float
            What they may cost.
        costs : array-like, optional
            Of each column, step or place; 1 by default.

        Returns
        -------
        ObservationPlan
        """
        check_value(budget, "budget", Number(above=0))
        planner, prices = self._begin(X, costs)
        left = list(planner.candidates)
        spent = 0.0
        chosen: list[int] = []
        gains: list[float] = []
        errors: list[float] = []
        while True:
            left = [one for one in left if spent + prices[one] <= budget * (1.0 + ROUNDING)]
            if not left:
                break
            found, error = planner.gains(left)
            price = prices[left]
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(price > 0, found / price, np.where(found > 0, np.inf, 0.0))
            best = int(np.argmax(ratio))
            if found[best] <= 0:
                break
            chosen.append(left[best])
            gains.append(float(found[best]))
            errors.append(float(error[best]))
            spent += float(prices[left[best]])
            planner.add(left.pop(best))
        return ObservationPlan(
            np.array(chosen, dtype=np.int64), np.array(gains), np.array(errors), np.cumsum(gains), spent
        )

    def _begin(self, X: Any, costs: ArrayLike | None) -> tuple[Any, Array]:
        planner = planner_of(self.model, X, self.target, self.n_samples, as_generator(self.random_state))
        if not planner.candidates:
            raise ValueError("X must have something that is not observed, got nothing that is NaN")
        # Steps and places are rows of X; columns are those of its only row.
        number = (
            len(X) if isinstance(planner, StepPlanner | PlacePlanner) else int(np.size(np.asarray(X, dtype=object)))
        )
        prices = np.ones(number) if costs is None else checked_costs(costs, number)
        return planner, prices
