"""Posterior of a hierarchical Dirichlet process mixture by seating customers and serving tables.

The sampler keeps the table of every row and the dish (cluster) of every table. A row joins table t of its group with
probability ``~ n_jt f_k(x)``, k being the dish of t, or opens one with ``~ alpha (sum_k m_k f_k(x) + gamma f_0(x)) /
(m + gamma)``. Then each table as a whole chooses a dish again, which moves many rows at once.

References
----------
Teh, Jordan, Beal and Blei (2006), Hierarchical Dirichlet processes, JASA 101, section 5.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from pluri.processes.grouped_mixture import (
    Array,
    GibbsState,
    GroupedMixture,
    Integers,
    Position,
    as_position,
    choose,
)


@dataclass(frozen=True, eq=False)
class FranchiseGibbs(GroupedMixture):
    """Gibbs sampler on the table of each row and the dish of each table.

    Positions are dicts: ``tables`` (n_samples,), ``dishes`` (n_tables,), ``alpha`` and ``gamma``. Parameters: see
    `GroupedMixture`.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes import BetaBernoulli, FranchiseGibbs
    >>> kernel = FranchiseGibbs(BetaBernoulli(3), [[0, 0, 0], [1, 1, 1], [1, 1, 1]], ["a", "a", "b"])
    >>> rng = np.random.default_rng(0)
    >>> state, info = kernel.step(rng, kernel.init(rng, kernel.sample_prior(rng)))
    >>> kernel.labels(state.position).shape
    (3,)
    """

    def labels(self, position: Position) -> Integers:
        """Cluster of each row."""
        return np.asarray(position["dishes"][position["tables"]])

    def init(self, rng: np.random.Generator, position: Position) -> GibbsState:
        """State at a position."""
        if np.shape(position["tables"]) != self.groups.shape:
            raise ValueError("the position must have a table for each row")
        return GibbsState(position, self.log_joint(position))

    def step(self, rng: np.random.Generator, state: GibbsState) -> tuple[GibbsState, dict[str, float]]:
        """One sweep."""
        position = self.sweep(rng, state.position, self.data)
        info = {"n_clusters": float(position["dishes"].max() + 1), "n_tables": float(len(position["dishes"]))}
        return GibbsState(position, self.log_joint(position)), info

    def log_joint(self, position: Position) -> float:
        """Log density of data and seating, given the concentrations."""
        alpha, gamma = float(position["alpha"]), float(position["gamma"])
        sizes, servings = np.bincount(position["tables"]), np.bincount(position["dishes"])
        seats = gammaln(sizes).sum() + len(sizes) * np.log(alpha)
        seats += (gammaln(alpha) - gammaln(alpha + self.group_sizes)).sum()
        menu = gammaln(servings).sum() + len(servings) * np.log(gamma) + gammaln(gamma) - gammaln(gamma + len(sizes))
        return self.log_likelihood(position) + float(seats + menu)

    def sample_prior(self, rng: np.random.Generator) -> Position:
        """Draw a position from the prior."""
        seating, alpha, gamma = self._prior_seating(rng)
        return as_position(tables=seating.tables, dishes=seating.dishes, alpha=alpha, gamma=gamma)

    def sweep(self, rng: np.random.Generator, position: Position, data: ArrayLike) -> Position:
        """Every customer once, every table once, then the concentrations."""
        X = np.asarray(data, dtype=np.float64)
        alpha, gamma = float(position["alpha"]), float(position["gamma"])
        rows = self.likelihood.statistics(X)
        seats = _Seats(rows, self.groups, position["tables"], position["dishes"], self.likelihood.empty)
        for i, group in enumerate(self.groups.tolist()):
            seats.stand_up(i)
            log_density = self.likelihood.log_predictive(seats.statistics[: len(seats.servings) + 1], X[i])
            orders = np.log([*seats.servings, gamma]) + log_density
            own = seats.tables_of[group]
            weights = [np.log(seats.sizes[t]) + log_density[seats.dishes[t]] for t in own]
            weights.append(np.log(alpha) + np.logaddexp.reduce(orders) - np.log(len(seats.dishes) + gamma))
            choice = choose(rng, np.array(weights))
            if choice == len(own):
                seats.open_table(group, choose(rng, orders))
            seats.sit_down(i, own[choice])
        self._serve(rng, rows, seats, gamma)
        alpha, gamma = self._draw_concentrations(rng, alpha, gamma, len(seats.dishes), len(seats.servings))
        return as_position(tables=seats.tables, dishes=np.array(seats.dishes), alpha=alpha, gamma=gamma)

    def _serve(self, rng: np.random.Generator, rows: Array, seats: _Seats, gamma: float) -> None:
        """Let every table choose its dish again, for all its customers at once."""
        of_tables = self.likelihood.empty(len(seats.dishes))
        np.add.at(of_tables, seats.tables, rows)
        for t, own in enumerate(of_tables):
            seats.take_dish_from(t, own)
            before = seats.statistics[: len(seats.servings) + 1]
            gain = self.likelihood.log_marginal(before + own) - self.likelihood.log_marginal(before)
            seats.bring_dish_to(t, choose(rng, np.log([*seats.servings, gamma]) + gain), own)


class _Seats:
    """Tables and dishes while they change: numbered without gaps, with the statistics of each dish."""

    def __init__(
        self, rows: Array, groups: Integers, tables: Integers, dishes: Integers, empty: Callable[[int], Array]
    ) -> None:
        self.rows = rows
        self.tables = np.array(tables)
        self.dishes = dishes.tolist()
        self.sizes = np.bincount(tables).tolist()
        self.servings = np.bincount(dishes).tolist()
        self.tables_of: list[list[int]] = [[] for _ in range(int(groups.max()) + 1)]
        self.owners = [0] * len(self.dishes)
        for table, group in {(t, g) for t, g in zip(tables.tolist(), groups.tolist())}:
            self.owners[table] = group
            self.tables_of[group].append(table)
        for own in self.tables_of:
            own.sort()
        # One dish for each row, and the one that no table has, is the most that there can be.
        self.statistics = empty(len(rows) + 2)
        np.add.at(self.statistics, dishes[tables], rows)

    def stand_up(self, i: int) -> None:
        table = int(self.tables[i])
        self.tables[i] = -1
        self.sizes[table] -= 1
        self.statistics[self.dishes[table]] -= self.rows[i]
        if self.sizes[table]:
            return
        self._drop_serving(self.dishes[table])
        self.tables_of[self.owners[table]].remove(table)
        last = len(self.dishes) - 1
        if table != last:
            self.tables[self.tables == last] = table
            own = self.tables_of[self.owners[last]]
            own[own.index(last)] = table
        for values in (self.sizes, self.owners, self.dishes):
            values[table] = values[last]
            values.pop()

    def sit_down(self, i: int, table: int) -> None:
        self.tables[i] = table
        self.sizes[table] += 1
        self.statistics[self.dishes[table]] += self.rows[i]

    def open_table(self, group: int, dish: int) -> None:
        self.tables_of[group].append(len(self.dishes))
        self.dishes.append(dish)
        self.sizes.append(0)
        self.owners.append(group)
        self._add_serving(dish)

    def take_dish_from(self, table: int, own: Array) -> None:
        dish = self.dishes[table]
        self.statistics[dish] -= own
        self.dishes[table] = -1
        self._drop_serving(dish)

    def bring_dish_to(self, table: int, dish: int, own: Array) -> None:
        self.dishes[table] = dish
        self.statistics[dish] += own
        self._add_serving(dish)

    def _add_serving(self, dish: int) -> None:
        if dish == len(self.servings):
            self.servings.append(0)
        self.servings[dish] += 1

    def _drop_serving(self, dish: int) -> None:
        self.servings[dish] -= 1
        if self.servings[dish]:
            return
        last = len(self.servings) - 1
        self.statistics[dish] = self.statistics[last]
        self.statistics[last] = 0  # exactly: rounding must not be left in an empty dish
        self.dishes = [dish if value == last else value for value in self.dishes]
        self.servings[dish] = self.servings[last]
        self.servings.pop()
