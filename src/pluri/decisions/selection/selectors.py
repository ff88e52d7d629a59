"""Rows of a data set chosen by a set function, behind scikit-learn's interface, with a proof of how good it is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from pluri.decisions.selection.budget import choose_within_budget
from pluri.decisions.selection.constraints import Cardinality, Constraint, PartitionMatroid, Together, checked_costs
from pluri.decisions.selection.greedy import Search, Selection, choose
from pluri.decisions.selection.row_selector import RowSelector, groups_of_rows
from pluri.decisions.selection.set_function import Array, SetFunction
from pluri.decisions.selection.sieve import sieve
from pluri.processes.dpp.selection.row_choice import number_of_rows
from pluri.validation import Allowed, Flag, Number, Only, RandomState, Stored, Whole, as_generator, check_parameters


class GreedySelector(RowSelector):
    r"""Choose a number of rows that together are worth most, by a submodular function.

    Parameters
    ----------
    size : int or float, default=10
        Number of rows at most; a share of them if it is a float between 0 and 1.
    function : {"facility_location", "graph_cut", "log_det", "coverage", "features"}, SetFunction or callable
        Of similarities: rows that represent all (the default), or that have much in common with all and little with
        each other, or that are diverse (log det(I + L)). Of the columns: how many are not zero in some chosen row, or
        the square root of each one's total. Or a function of one's own: a `SetFunction` of as many items as there are
        rows, or a callable that takes a list of row numbers, each of whose gains is then a call.
    kernel : {"rbf", "cosine", "linear", "exponential_cosine", "precomputed"} or callable, default="rbf"
        Similarity of rows, for the functions of similarities. "precomputed": X is the matrix of similarities, dense or
        sparse.
    kernel_params : dict, optional
        Parameters of the kernel; the length scale of "rbf" is by default that of `pluri.processes.dpp.DPPSelector`.
    method : {"lazy", "greedy", "stochastic", "sieve"}, default="lazy"
        "lazy" makes the choice of "greedy" and computes far fewer gains; "stochastic" looks at random rows in each
        step; "sieve" sees each row once, in their order.
    epsilon : float, default=0.1
        What "stochastic" and "sieve" may lose: they reach 1 - 1/e - epsilon on average, and 1/2 - epsilon.
    limits : int or dict, optional
        With a `partition` given to `fit`: how many rows of each group at most.
    stop_nonpositive : bool, default=True
        Whether to end before `size` rows when none raises the value any more.
    verify : bool, default=False
        Whether to warn (`SubmodularityWarning`) if a gain rises, of those computed twice and of one in a hundred
        others.
    random_state : int, Generator, RandomState or None

    Attributes
    ----------
    selected_ : ndarray of int
        Chosen rows, in the order of choice.
    gains_, values_ : ndarray of shape (n_chosen,)
        What each added, and the value after it.
    upper_bound_ : float
        No other choice has a higher value: the best of the bounds along the way, and of the value over 1 - 1/e where
        that holds. Infinite if the function is neither submodular nor monotone.
    certificate_ : float
        Share of the bound that the choice reaches; the optimum may be nearer.
    upper_bounds_ : ndarray of shape (size + 1,)
        Bounds for each smaller number of rows (one entry, `upper_bound_`, if groups are limited).
    apriori_bounds_ : ndarray of shape (n_chosen,)
        ``values_ / (1 - 1/e)``; NaN where that is no bound: unless the function is monotone and not negative, and the
        search was "lazy" or "greedy" without limits.
    n_evaluations_ : int
        Gains computed in order to choose.
    n_samples_fit_, n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.decisions import GreedySelector
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [9.0]])
    >>> selector = GreedySelector(3, kernel_params={"length_scale": 0.5}).fit(X)
    >>> selector.selected_
    array([1, 3, 5])
    >>> selector.certificate_ > 0.99
    True
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "method": Only("lazy", "greedy", "stochastic", "sieve"),
        "epsilon": Number(above=0, below=1),
        "stop_nonpositive": Flag(),
        "verify": Flag(),
    }
    upper_bounds_: Array
    apriori_bounds_: Array

    def __init__(
        self,
        size: int | float = 10,
        function: str | SetFunction | Callable[[list[int]], float] = "facility_location",
        *,
        kernel: str | Callable[..., Any] = "rbf",
        kernel_params: dict[str, Any] | None = None,
        method: str = "lazy",
        epsilon: float = 0.1,
        limits: int | dict[Any, int] | None = None,
        stop_nonpositive: bool = True,
        verify: bool = False,
        random_state: RandomState = None,
    ) -> None:
        self.size = size
        self.function = function
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.method = method
        self.epsilon = epsilon
        self.limits = limits
        self.stop_nonpositive = stop_nonpositive
        self.verify = verify
        self.random_state = random_state

    def fit(self, X: Any, y: object = None, partition: ArrayLike | None = None) -> Self:
        """Choose among the rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), or (n_rows, n_rows) if precomputed
        y : ignored
        partition : array-like of shape (n_rows,), optional
            Group of each row, for `limits`.
        """
        check_parameters(self)
        if (partition is None) != (self.limits is None):
            raise ValueError("partition and limits belong together, got one of them without the other")
        n_given = X.shape[0] if hasattr(X, "shape") else len(X)
        size = number_of_rows(self.size, n_given) if n_given else 1
        if size is None:
            raise ValueError("size must be a whole number or a share, got None")
        function, n_rows = self._set_function(X, size)
        constraint: Constraint = Cardinality(size, n_rows)
        if partition is not None:
            groups = groups_of_rows(partition, n_rows, "partition")
            constraint = Together([constraint, PartitionMatroid(groups, self.limits)])  # type: ignore[arg-type]
        found = self._search(function, constraint, size)
        self.upper_bounds_ = found.upper_bounds
        self.apriori_bounds_ = np.full(len(found.items), np.nan)
        exact = self.method in ("lazy", "greedy") and function.submodular
        if exact and partition is None and function.monotone and function.empty_value() >= 0:
            self.apriori_bounds_ = found.values / (1.0 - math.exp(-1.0))
        self._store(found, function, n_rows)
        if len(self.apriori_bounds_) == size:  # it is about as many rows as were asked for
            self.upper_bound_ = min(self.upper_bound_, float(np.nan_to_num(self.apriori_bounds_[-1], nan=np.inf)))
            self.certificate_ = found.value / self.upper_bound_ if self.upper_bound_ > 0 else self.certificate_
        return self

    def _search(self, function: SetFunction, constraint: Constraint, size: int) -> Selection:
        rng = as_generator(self.random_state)
        if self.method == "sieve":
            if self.limits is not None:
                raise ValueError("limits must be None with method='sieve', which knows no groups")
            return sieve(function, size, epsilon=self.epsilon)
        search = Search(
            self.method != "greedy", keep_falling=not self.stop_nonpositive, verify=bool(self.verify), rng=rng
        )
        if self.method == "stochastic":
            search.sample_size = max(1, math.ceil(function.n_items / size * math.log(1.0 / self.epsilon)))
        return choose(function, constraint, search)


class BudgetSelector(RowSelector):
    """Choose rows that together are worth most and cost no more than a budget.

    Parameters
    ----------
    budget : float, default=10.0
        What the chosen rows may cost together.
    function, kernel, kernel_params, limits, verify, random_state
        See `GreedySelector`.
    method : {"celf", "benefit", "ratio"}, default="celf"
        Choose by gain and by gain per cost, and keep the better ("cost-effective lazy forward"), or only one of these.
    n_enumerated : int, default=0
        Try every beginning of up to so many rows (at most 3) and go on by gain per cost: 3 reach 1 - 1/e of the
        optimum of a monotone function, for few rows only.

    Attributes
    ----------
    selected_, gains_, values_, upper_bound_, certificate_, n_evaluations_
        See `GreedySelector`.
    cost_ : float
        What the chosen rows cost.
    costs_ : ndarray of shape (n_samples_fit_,)
    n_samples_fit_, n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.decisions import BudgetSelector
    >>> sets = np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 1]])
    >>> selector = BudgetSelector(3.0, function="coverage").fit(sets, costs=[4.0, 1.0, 1.0, 1.0])
    >>> sorted(selector.selected_.tolist()), selector.cost_, selector.upper_bound_
    ([1, 2, 3], 3.0, 5.0)
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "budget": Number(above=0),
        "method": Only("celf", "benefit", "ratio"),
        "n_enumerated": Whole(0, 3),
        "verify": Flag(),
    }
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        **RowSelector._fitted_layout,
        "costs_": Stored("n_samples_fit_", least=0),
    }
    cost_: float
    costs_: Array

    def __init__(
        self,
        budget: float = 10.0,
        function: str | SetFunction | Callable[[list[int]], float] = "facility_location",
        *,
        kernel: str | Callable[..., Any] = "rbf",
        kernel_params: dict[str, Any] | None = None,
        method: str = "celf",
        n_enumerated: int = 0,
        limits: int | dict[Any, int] | None = None,
        verify: bool = False,
        random_state: RandomState = None,
    ) -> None:
        self.budget = budget
        self.function = function
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.method = method
        self.n_enumerated = n_enumerated
        self.limits = limits
        self.verify = verify
        self.random_state = random_state

    def fit(self, X: Any, y: object = None, costs: ArrayLike | None = None, partition: ArrayLike | None = None) -> Self:
        """Choose among the rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), or (n_rows, n_rows) if precomputed
        y : ignored
        costs : array-like of shape (n_rows,), optional
            What each row costs, not negative; 1 by default.
        partition : array-like of shape (n_rows,), optional
            Group of each row, for `limits`.
        """
        check_parameters(self)
        if (partition is None) != (self.limits is None):
            raise ValueError("partition and limits belong together, got one of them without the other")
        function, n_rows = self._set_function(X, None)
        prices = np.ones(n_rows) if costs is None else checked_costs(costs, n_rows)
        others: list[Constraint] = []
        if partition is not None:
            others = [PartitionMatroid(groups_of_rows(partition, n_rows, "partition"), self.limits)]  # type: ignore[arg-type]
        found = choose_within_budget(
            function, prices, float(self.budget), method=self.method, n_enumerated=self.n_enumerated, others=others,
            search=Search(verify=bool(self.verify), rng=as_generator(self.random_state)),
        )  # fmt: skip
        self._store(found, function, n_rows)
        self.costs_, self.cost_ = prices, float(prices[found.items].sum())
        return self
