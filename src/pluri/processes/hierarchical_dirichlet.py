"""Groups that share clusters: the hierarchical Dirichlet process and its Chinese restaurant franchise.

``G_0 ~ DP(gamma, H)``, ``G_j ~ DP(alpha, G_0)``. By sticks, ``beta ~ GEM(gamma)`` and each group's weights are
``pi_j ~ DP(alpha, beta)``: Dirichlet with parameters ``alpha beta`` on any finite set of atoms. With the distributions
integrated out, a customer of restaurant j sits down at table t in proportion to its customers n_jt, at a new one to
alpha; a new table orders dish k in proportion to the number m_k of tables that have it, in all restaurants, a new dish
to gamma. Two customers of one restaurant share a dish with probability ``(1 + alpha / (1 + gamma)) / (1 + alpha)``, of
two restaurants with probability ``1 / (1 + gamma)``.

References
----------
Teh, Jordan, Beal and Blei (2006), Hierarchical Dirichlet processes, JASA 101.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.processes.chinese_restaurant import ChineseRestaurantProcess
from pluri.processes.dirichlet import draw_log_dirichlet
from pluri.processes.stick_breaking import StickBreaking
from pluri.validation import RandomState, as_generator, check_count, check_positive

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class HierarchicalDirichletProcess:
    """Weights of a hierarchical Dirichlet process.

    Parameters
    ----------
    alpha : float
        Concentration of the groups around the common weights.
    gamma : float
        Concentration of the common weights.

    Examples
    --------
    >>> from pluri.processes import HierarchicalDirichletProcess
    >>> common, groups = HierarchicalDirichletProcess(5.0, 2.0).sample_weights(3, n_sticks=10, random_state=0)
    >>> common.shape, groups.shape
    ((10,), (3, 10))
    """

    alpha: float
    gamma: float

    def __post_init__(self) -> None:
        check_positive(self.alpha, "alpha")
        check_positive(self.gamma, "gamma")

    def sample_weights(
        self,
        n_groups: int,
        *,
        n_sticks: int | None = None,
        tail_mass: float = 1e-6,
        random_state: RandomState = None,
    ) -> tuple[Array, Array]:
        """Draw common weights and those of each group.

        Parameters
        ----------
        n_groups : int
        n_sticks : int, optional
            Number of weights; if not given, as many as leave `tail_mass` of the common stick on average.
        tail_mass : float, default=1e-6
        random_state : int, Generator or None

        Returns
        -------
        common : array of shape (n_sticks,)
        groups : array of shape (n_groups, n_sticks)
        """
        rng = as_generator(random_state)
        common = StickBreaking(self.gamma).sample(n_sticks=n_sticks, tail_mass=tail_mass, random_state=rng)[0]
        groups = np.exp(draw_log_dirichlet(rng, self.alpha * common, (check_count(n_groups, "n_groups"),)))
        return common, np.asarray(groups)


@dataclass(frozen=True, eq=False)
class Seating:
    """Who sits where and eats what in a franchise.

    Attributes
    ----------
    groups : (n_customers,): restaurant of each customer
    tables : (n_customers,): table of each customer, numbered through all restaurants
    dishes : (n_tables,): dish of each table
    """

    groups: Integers
    tables: Integers
    dishes: Integers

    @property
    def labels(self) -> Integers:
        """Dish of each customer."""
        return np.asarray(self.dishes[self.tables])

    @property
    def n_dishes(self) -> int:
        """Number of dishes."""
        return len(np.unique(self.dishes))

    def tables_of_dishes(self, n_groups: int | None = None) -> Integers:
        """Number of tables of each restaurant that have each dish: (n_groups, n_dishes); dishes numbered from 0."""
        owner = np.zeros(len(self.dishes), dtype=np.int64)
        owner[self.tables] = self.groups
        n = int(self.groups.max(initial=-1)) + 1 if n_groups is None else n_groups
        width = int(self.dishes.max(initial=-1)) + 1
        return np.bincount(owner * width + self.dishes, minlength=n * width).reshape(n, width)


@dataclass(frozen=True)
class ChineseRestaurantFranchise:
    """Hierarchical Dirichlet process with its distributions integrated out.

    Parameters
    ----------
    alpha : float
        Concentration of each restaurant.
    gamma : float
        Concentration of the menu that they share.

    Examples
    --------
    >>> from pluri.processes import ChineseRestaurantFranchise
    >>> franchise = ChineseRestaurantFranchise(alpha=2.0, gamma=1.5)
    >>> seating = franchise.sample([5, 7], random_state=0)
    >>> seating.labels.shape
    (12,)
    >>> bool(franchise.log_probability(seating) < 0)
    True
    """

    alpha: float
    gamma: float

    def __post_init__(self) -> None:
        check_positive(self.alpha, "alpha")
        check_positive(self.gamma, "gamma")

    def sample(self, group_sizes: ArrayLike, random_state: RandomState = None) -> Seating:
        """Seat customers in each restaurant, one restaurant after the other.

        Parameters
        ----------
        group_sizes : array-like of shape (n_groups,)
            Number of customers of each restaurant, at least one.
        random_state : int, Generator or None

        Returns
        -------
        Seating
            Dishes are numbered in the order in which they were first served.
        """
        sizes = np.asarray(group_sizes)
        if sizes.ndim != 1 or not len(sizes) or sizes.dtype.kind not in "iu" or (sizes < 1).any():
            raise ValueError(f"group_sizes must be whole numbers of at least 1, one per group, got {group_sizes!r}")
        rng = as_generator(random_state)
        restaurant = ChineseRestaurantProcess(self.alpha)
        tables, n_tables = [], 0
        for size in sizes:
            seats = restaurant.sample_partition(int(size), rng)
            tables.append(n_tables + seats)
            n_tables += int(seats.max()) + 1
        dishes = ChineseRestaurantProcess(self.gamma).sample_partition(n_tables, rng)
        return Seating(np.repeat(np.arange(len(sizes)), sizes), np.concatenate(tables), dishes)

    def log_probability(self, seating: Seating) -> float:
        """Log probability of a seating: of the partition of each restaurant, and of that of all tables by dish."""
        restaurant = ChineseRestaurantProcess(self.alpha)
        own = sum(restaurant.logpmf(seating.tables[seating.groups == j]) for j in np.unique(seating.groups))
        return float(own + ChineseRestaurantProcess(self.gamma).logpmf(seating.dishes))

    def probability_same_dish(self, same_group: bool) -> float:
        """Probability that two customers eat the same dish."""
        shared = 1 / (1 + self.gamma)
        return (1 + self.alpha * shared) / (1 + self.alpha) if same_group else shared
