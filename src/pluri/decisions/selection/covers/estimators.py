r"""Set cover and maximum cover: greedy, by annealing, or exactly.

The cheapest sets that hold every element: taking the most new elements for the money again and again costs at most
:math:`H_m \le 1 + \ln m` times the optimum [1]_. Most elements by k sets: the greedy choice reaches 1 - 1/e of the
optimum. Both are hard to do better in general, and small instances are solved exactly.

References
----------
.. [1] V. Chvatal, "A greedy heuristic for the set-covering problem", Mathematics of Operations Research 4, 1979.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from pluri.decisions.selection.constraints import Cardinality, checked_costs
from pluri.decisions.selection.coverage import Coverage, membership_matrix
from pluri.decisions.selection.covers.annealing import CoverMoves, anneal_cover
from pluri.decisions.selection.covers.dynamic import best_cover, cheapest_cover
from pluri.decisions.selection.covers.greedy_cover import cost_bound, greedy_cover, pruned
from pluri.decisions.selection.greedy import Search, choose
from pluri.decisions.selection.set_function import Array, IntArray
from pluri.decisions.selection.similarity_functions import checked_weights
from pluri.processes.dpp.selection.chosen_rows import ChosenRows
from pluri.processes.dpp.selection.row_choice import number_of_rows
from pluri.validation import Allowed, Only, RandomState, Stored, as_generator, check_parameters
from pluri.validation.estimator import Estimator


class _Cover(ChosenRows, OneToOneFeatureMixin, TransformerMixin, Estimator):
    """What both covers share."""

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "method": Only("greedy", "annealing", "exact"),
        "init": Only("greedy", "random"),
    }
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "selected_": Stored("n_chosen", whole=True, least=0, below="n_samples_fit_"),
        "covered_": Stored("n_elements", whole=True, least=0, below=2),
    }
    method: str
    max_iter: int
    n_init: int
    random_state: RandomState
    selected_: IntArray
    covered_: NDArray[np.bool_]
    optimal_: bool
    n_evaluations_: int

    @property
    def _chosen(self) -> IntArray:
        return self.selected_

    def _membership(self, X: Any) -> tuple[Any, list[Any]]:
        """Sets as rows of a matrix, and the names of the elements."""
        if isinstance(X, list | tuple) and len(X) and all(isinstance(one, set | frozenset) for one in X):
            matrix, elements = membership_matrix(X)
            self.n_features_in_ = matrix.shape[1]
            return matrix, elements
        return membership_matrix(validate_data(self, X, accept_sparse="csr", dtype=np.float64))

    def _settings(self) -> dict[str, Any]:
        return {"max_iter": self.max_iter, "n_init": self.n_init, "random_state": as_generator(self.random_state)}

    def _keep(self, membership: Any, selected: IntArray, n_evaluations: int) -> None:
        self.selected_ = np.asarray(selected, dtype=np.int64)
        self.covered_ = np.asarray(membership[self.selected_].sum(axis=0)).ravel() > 0
        self.n_samples_fit_ = int(membership.shape[0])
        self.n_evaluations_ = n_evaluations
        self.n_iter_ = max(1, n_evaluations if self.method == "annealing" else len(self.selected_))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class SetCover(_Cover):
    """Choose the cheapest sets that together hold every element.

    Parameters
    ----------
    method : {"greedy", "annealing", "exact"}, default="greedy"
        The most new elements for the money, one set after the other (and then without sets that were not needed after
        all); simulated annealing; or dynamic programming, for up to 22 elements that differ, or any number if each set
        is an interval of the elements.
    init : {"greedy", "random"}, default="greedy"
        Where annealing begins; after "greedy" it is never worse than that.
    max_iter : int, default=2000
        Moves of annealing.
    n_init : int, default=1
        Runs of annealing.
    random_state : int, Generator, RandomState or None

    Attributes
    ----------
    selected_ : ndarray of int
        Chosen sets; in the order of choice for "greedy", else sorted.
    cost_ : float
        What they cost.
    lower_bound_ : float
        No cover is cheaper: the optimum of linear programming, or the greedy cost over H of the largest set if there
        are more than 200,000 entries.
    optimal_ : bool
        Whether nothing cheaper exists: found exactly, or as cheap as the bound.
    covered_ : ndarray of bool, of shape (n_elements,)
        All True.
    n_evaluations_ : int
        Ratios or states looked at; 0 for "exact".
    n_iter_ : int
        Moves of annealing, or sets chosen one by one.
    n_samples_fit_, n_features_in_ : int

    Examples
    --------
    >>> from pluri.decisions import SetCover
    >>> sets = [{1, 2, 3, 8}, {1, 2, 3, 4}, {5, 6, 7, 8}, {4, 5}]
    >>> SetCover(method="exact").fit(sets).selected_
    array([1, 2])
    >>> SetCover().fit(sets, costs=[1.0, 5.0, 2.0, 1.0]).cost_
    4.0
    """

    cost_: float
    lower_bound_: float

    def __init__(
        self,
        method: str = "greedy",
        *,
        init: str = "greedy",
        max_iter: int = 2000,
        n_init: int = 1,
        random_state: RandomState = None,
    ) -> None:
        self.method = method
        self.init = init
        self.max_iter = max_iter
        self.n_init = n_init
        self.random_state = random_state

    def fit(self, X: Any, y: object = None, costs: ArrayLike | None = None) -> Self:
        """Choose among the sets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_sets, n_elements), or list of sets
            What is not zero is in the set.
        y : ignored
        costs : array-like of shape (n_sets,), optional
            Not negative; 1 by default.
        """
        check_parameters(self)
        membership, elements = self._membership(X)
        prices = np.ones(membership.shape[0]) if costs is None else checked_costs(costs, membership.shape[0])
        missing = np.flatnonzero(np.asarray(membership.sum(axis=0)).ravel() == 0)
        if len(missing):
            told = ", ".join(repr(elements[place]) for place in missing[:10]) + (" ..." if len(missing) > 10 else "")
            raise ValueError(f"every element must be in a set, got {len(missing)} that are in none: {told}")
        greedy, n_looked_at = greedy_cover(membership, prices)
        chosen = greedy
        if self.method == "exact":
            chosen, n_looked_at = cheapest_cover(membership, prices), 0
        elif self.method == "annealing":
            chosen, n_looked_at = self._annealed(membership, prices, greedy)
        self._keep(membership, chosen, n_looked_at)
        self.cost_ = float(prices[self.selected_].sum())
        self.lower_bound_ = self.cost_ if self.method == "exact" else cost_bound(membership, prices, greedy)
        self.optimal_ = self.method == "exact" or self.cost_ <= self.lower_bound_ + 1e-9 * max(1.0, self.cost_)
        return self

    def _annealed(self, membership: Any, prices: Array, greedy: IntArray) -> tuple[IntArray, int]:
        penalty = np.full(membership.shape[1], 1.001 * float(prices.max()) + 1e-9)
        moves = CoverMoves(membership, prices, penalty, keep_size=False)
        n_sets = membership.shape[0]
        start: Any = greedy
        if self.init == "random":
            start = lambda rng: np.flatnonzero(rng.random(n_sets) < 0.5)  # noqa: E731
        found, n_moves = anneal_cover(moves, start, **self._settings())
        completed = pruned(membership, prices, greedy_cover(membership, prices, found)[0])
        if self.init == "greedy" and prices[completed].sum() > prices[greedy].sum():
            completed = greedy
        return np.sort(completed), n_moves


class MaxKCover(_Cover):
    """Choose a number of sets that together hold most elements.

    Parameters
    ----------
    size : int or float, default=10
        Sets at most; a share of them if it is a float between 0 and 1.
    method : {"greedy", "annealing", "exact"}, default="greedy"
        One after the other; simulated annealing by swaps; or dynamic programming, for up to 22 elements that differ.
    init : {"greedy", "random"}, default="greedy"
        Where annealing begins; after "greedy" it is never worse than that.
    max_iter : int, default=2000
        Moves of annealing.
    n_init : int, default=1
        Runs of annealing.
    random_state : int, Generator, RandomState or None

    Attributes
    ----------
    selected_ : ndarray of int
        Chosen sets; in the order of choice for "greedy", else sorted.
    value_ : float
        Weight of what they hold.
    upper_bound_ : float
        No other choice holds more.
    optimal_ : bool
        Whether that is known to be the most.
    covered_ : ndarray of bool, of shape (n_elements,)
    n_evaluations_ : int
        Gains or states looked at; 0 for "exact".
    n_iter_ : int
        Moves of annealing, or sets chosen one by one.
    n_samples_fit_, n_features_in_ : int

    Examples
    --------
    >>> from pluri.decisions import MaxKCover
    >>> sets = [{1, 2, 3, 4}, {1, 2, 5, 6}, {3, 4, 7}]
    >>> MaxKCover(2, method="exact").fit(sets).selected_, MaxKCover(2).fit(sets).value_
    (array([1, 2]), 6.0)
    """

    value_: float
    upper_bound_: float

    def __init__(
        self,
        size: int | float = 10,
        method: str = "greedy",
        *,
        init: str = "greedy",
        max_iter: int = 2000,
        n_init: int = 1,
        random_state: RandomState = None,
    ) -> None:
        self.size = size
        self.method = method
        self.init = init
        self.max_iter = max_iter
        self.n_init = n_init
        self.random_state = random_state

    def fit(self, X: Any, y: object = None, element_weight: ArrayLike | None = None) -> Self:
        """Choose among the sets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_sets, n_elements), or list of sets
            What is not zero is in the set.
        y : ignored
        element_weight : array-like of shape (n_elements,), optional
            What an element is worth; of a list of sets, in the order of the sorted elements.
        """
        check_parameters(self)
        membership, _ = self._membership(X)
        n_sets, n_elements = membership.shape
        size = number_of_rows(self.size, n_sets)
        if size is None:
            raise ValueError("size must be a whole number or a share, got None")
        weights = np.ones(n_elements)
        if element_weight is not None:
            weights = checked_weights(element_weight, n_elements, "element")
        function = Coverage(membership, weights)
        greedy = choose(function, Cardinality(size, n_sets), Search())
        chosen, n_looked_at, self.upper_bound_ = greedy.items, greedy.n_evaluations, float(greedy.upper_bounds[-1])
        if len(greedy.items) == size:
            self.upper_bound_ = min(self.upper_bound_, greedy.value / (1.0 - np.exp(-1.0)))
        if self.method == "exact":
            chosen, n_looked_at = best_cover(membership, weights, size), 0
            self.upper_bound_ = function.value(chosen)
        elif self.method == "annealing":
            chosen, n_looked_at = self._annealed(membership, weights, greedy.items, size)
        self._keep(membership, chosen, n_looked_at)
        self.value_ = float(weights[self.covered_].sum())
        self.optimal_ = self.value_ >= self.upper_bound_ - 1e-9 * max(1.0, self.upper_bound_)
        return self

    def _annealed(self, membership: Any, weights: Array, greedy: IntArray, size: int) -> tuple[IntArray, int]:
        n_sets = membership.shape[0]
        moves = CoverMoves(membership, np.zeros(n_sets), weights, keep_size=True)
        # As many as are allowed: sets that bring nothing now may after a swap.
        rest = np.setdiff1d(np.arange(n_sets), greedy)
        start: Any = np.concatenate([greedy, rest])[:size]
        if self.init == "random":
            start = lambda rng: rng.permutation(n_sets)[:size]  # noqa: E731
        return anneal_cover(moves, start, **self._settings())
