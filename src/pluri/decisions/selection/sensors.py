r"""Where to put sensors: places whose measurements tell most about a Gaussian field.

The field has covariance k(x, x') and a sensor adds noise. Four things can be asked for: information about all places
without a sensor (mutual information, which does not waste sensors on the border), entropy of the measurements,
information about the field itself, or the total variance that is taken away.

References
----------
.. [1] A. Krause, A. Singh and C. Guestrin, "Near-optimal sensor placements in Gaussian processes", Journal of Machine
   Learning Research 9, 2008.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.gaussian_process.kernels import RBF, Kernel
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from pluri.decisions.selection.budget import choose_within_budget
from pluri.decisions.selection.chain_information import best_on_a_line
from pluri.decisions.selection.constraints import Cardinality, checked_costs
from pluri.decisions.selection.covariance_residuals import checked_covariance
from pluri.decisions.selection.covers.annealing import anneal_subset
from pluri.decisions.selection.gaussian_functions import (
    GaussianEntropy,
    GaussianMutualInformation,
    InformationGain,
)
from pluri.decisions.selection.greedy import Search, Selection, choose, in_order
from pluri.decisions.selection.set_function import Array, IntArray, SetFunction
from pluri.decisions.selection.variance_reduction import VarianceReduction
from pluri.processes.dpp.selection.chosen_rows import ChosenRows
from pluri.processes.dpp.selection.row_choice import default_length_scale, number_of_rows
from pluri.validation import Allowed, Number, Only, RandomState, Stored, as_generator, check_parameters, check_value
from pluri.validation.estimator import Estimator


class SensorPlacement(ChosenRows, OneToOneFeatureMixin, TransformerMixin, Estimator):
    """Choose places for sensors in a Gaussian field.

    Parameters
    ----------
    size : int, float or None, default=10
        Number of sensors; a share of the places if it is a float between 0 and 1. None: as many as `budget` pays for.
        Fewer are chosen where one more would add nothing: mutual information falls again beyond half of the places.
    criterion : {"mutual_information", "entropy", "information_gain", "variance"}
        What to maximise: information about the places without a sensor, entropy of the measurements, information
        about the field, or the variance taken away (which has no guarantee: it is not submodular).
    kernel : kernel of `sklearn.gaussian_process.kernels`, "precomputed" or None, default=None
        Covariance of the field between places. "precomputed": `fit` is given the covariance matrix. None: an RBF of
        variance 1, with the length scale of `pluri.processes.dpp.DPPSelector`.
    noise_variance : float, default=0.1
        Of a measurement. (For "entropy" and "mutual_information" it is a part of what is measured at a place.)
    budget : float, optional
        Instead of `size`: what the sensors may cost; costs are given to `fit`.
    method : {"greedy", "annealing", "exact"}, default="greedy"
        "annealing" swaps sensors from the greedy choice on, which it is never worse than (a number of sensors, not a
        budget). "exact" is dynamic programming for mutual information or entropy on a line: kernel Matern with nu = 0.5
        (or times a constant), one column, and no noise.
    max_iter : int, default=2000
        Moves of annealing.
    random_state : int, Generator, RandomState or None
        Of annealing.

    Attributes
    ----------
    selected_ : ndarray of int
        Places of the sensors in the order of choice ("exact": sorted).
    gains_, values_ : ndarray of shape (n_chosen,)
        What each sensor added, and the criterion after it.
    upper_bound_ : float
        No other placement of this size or cost is better.
    certificate_ : float
        Share of the bound that is reached, where both are positive; NaN elsewhere (an entropy may be negative).
    upper_bounds_ : ndarray
        Bounds for 0, 1, ..., size sensors; one entry with a budget.
    apriori_bounds_ : ndarray of shape (n_chosen,)
        ``values_ / (1 - 1/e)`` for "information_gain" (after annealing the last only), NaN for the others, of which it
        is no bound.
    posterior_variance_ : ndarray of shape (n_samples_fit_,)
        Variance of the field at each place, given all sensors.
    cost_ : float
    n_evaluations_ : int
        Gains, and values of annealing, that were computed.
    n_iter_ : int
        Moves of annealing, or sensors chosen one by one.
    n_samples_fit_, n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from pluri.decisions import SensorPlacement
    >>> line = np.arange(9.0)[:, None]
    >>> SensorPlacement(2, kernel=RBF(2.0)).fit(line).selected_
    array([3, 7])
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "criterion": Only("mutual_information", "entropy", "information_gain", "variance"),
        "noise_variance": Number(least=0),
        "budget": Number(above=0) | Only(None),
        "method": Only("greedy", "annealing", "exact"),
    }
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "selected_": Stored("n_chosen", whole=True, least=0, below="n_samples_fit_"),
        "gains_": Stored("n_chosen"),
        "values_": Stored("n_chosen"),
        "posterior_variance_": Stored("n_samples_fit_", least=0),
    }

    selected_: IntArray
    n_samples_fit_: int

    def __init__(
        self,
        size: int | float | None = 10,
        criterion: str = "mutual_information",
        *,
        kernel: Any = None,
        noise_variance: float = 0.1,
        budget: float | None = None,
        method: str = "greedy",
        max_iter: int = 2000,
        random_state: RandomState = None,
    ) -> None:
        self.size = size
        self.criterion = criterion
        self.kernel = kernel
        self.noise_variance = noise_variance
        self.budget = budget
        self.method = method
        self.max_iter = max_iter
        self.random_state = random_state

    @property
    def _chosen(self) -> IntArray:
        return self.selected_

    def fit(self, X: Any, y: object = None, costs: ArrayLike | None = None) -> Self:
        """Choose among the places.

        Parameters
        ----------
        X : array-like of shape (n_places, n_dimensions), or (n_places, n_places) if the covariance is precomputed
        y : ignored
        costs : array-like of shape (n_places,), optional
            Of a sensor at each place, for `budget`; 1 by default.
        """
        check_parameters(self)
        if (self.size is None) == (self.budget is None):
            raise ValueError(f"one of size and budget must be given, got size={self.size} and budget={self.budget}")
        if costs is not None and self.budget is None:
            raise ValueError("costs are of use with a budget only, got costs and budget=None")
        places = validate_data(self, X, dtype=np.float64)
        n_places = len(places)
        size = number_of_rows(self.size, n_places)
        covariance = self._covariance(places, size)
        function = self._function(covariance)
        prices = np.ones(n_places) if costs is None else checked_costs(costs, n_places)
        found = self._choose(function, places, covariance, size, prices)
        self.selected_, self.gains_, self.values_ = found.items, found.gains, found.values
        self.upper_bounds_, self.upper_bound_ = found.upper_bounds, float(found.upper_bounds[-1])
        guaranteed = self.criterion == "information_gain" and size is not None
        self.apriori_bounds_ = found.values / (1.0 - np.exp(-1.0)) if guaranteed else np.full(len(found.items), np.nan)
        if self.method == "annealing":
            self.apriori_bounds_[:-1] = np.nan  # what annealing has swapped is not in the order of a greedy choice
        if guaranteed and len(found.items) == size:
            self.upper_bound_ = min(self.upper_bound_, float(self.apriori_bounds_[-1]))
        reached = found.value if len(found.items) else 0.0
        self.certificate_ = reached / self.upper_bound_ if min(reached, self.upper_bound_) > 0 else float("nan")
        self.n_evaluations_ = found.n_evaluations
        self.n_iter_ = self.max_iter if self.method == "annealing" else max(1, len(found.items))
        self.cost_ = float(prices[found.items].sum())
        self.posterior_variance_ = _variance_left(covariance, found.items, float(self.noise_variance))
        self.n_samples_fit_ = n_places
        return self

    def _covariance(self, places: Array, size: int | None) -> Array:
        kernel = self.kernel
        if isinstance(kernel, str):
            if kernel != "precomputed":
                raise ValueError(f"kernel must be a kernel of scikit-learn, 'precomputed' or None, got {kernel!r}")
            return checked_covariance(places)
        if kernel is None:
            kernel = RBF(default_length_scale(places, size))
        if not isinstance(kernel, Kernel):
            raise ValueError(f"kernel must be a kernel of scikit-learn, 'precomputed' or None, got {kernel!r}")
        return checked_covariance(kernel(places))

    def _function(self, covariance: Array) -> SetFunction:
        noise = float(self.noise_variance)
        measured = covariance + noise * np.eye(len(covariance))
        if self.criterion == "mutual_information":
            return GaussianMutualInformation(measured)
        if self.criterion == "entropy":
            return GaussianEntropy(measured)
        if self.criterion == "information_gain":
            check_value(noise, "noise_variance", Number(above=0))
            return InformationGain(covariance, noise)
        return VarianceReduction(covariance, noise)

    def _choose(
        self, function: SetFunction, places: Array, covariance: Array, size: int | None, prices: Array
    ) -> Selection:
        if self.method == "exact":
            if size is None:
                raise ValueError("size must be given with method='exact', got None")
            return best_on_a_line(function, self.criterion, self.kernel, places, float(self.noise_variance), size)
        # The number of sensors is what was asked for: an entropy may fall, and still more is known with more sensors.
        search = Search(lazy=False, keep_falling=self.criterion == "entropy")
        if size is None:
            if self.method == "annealing":
                raise ValueError("size must be given with method='annealing', got None")
            return choose_within_budget(function, prices, float(self.budget), search=search)  # type: ignore[arg-type]
        found = choose(function, Cardinality(size, function.n_items), search)
        return self._annealed(function, found) if self.method == "annealing" else found

    def _annealed(self, function: SetFunction, greedy: Selection) -> Selection:
        items, n_values = anneal_subset(
            function.value, function.n_items, greedy.items, max_iter=self.max_iter,
            random_state=as_generator(self.random_state),
        )  # fmt: skip
        if function.value(items) <= greedy.value:
            return greedy
        return in_order(function, items, greedy.upper_bounds, greedy.n_evaluations + n_values)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _takes_sparse(self) -> bool:
        return False


def _variance_left(covariance: Array, chosen: IntArray, noise: float) -> Array:
    """Variance of the field at each place, given measurements at the chosen ones."""
    own = np.diagonal(covariance).copy()
    if not len(chosen):
        return own
    observed = covariance[np.ix_(chosen, chosen)] + noise * np.eye(len(chosen))
    across = covariance[:, chosen]
    explained = np.sum(across @ np.linalg.pinv(observed, hermitian=True) * across, axis=1)
    return np.maximum(own - explained, 0.0)
