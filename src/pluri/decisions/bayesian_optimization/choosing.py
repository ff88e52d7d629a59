"""From what is known of a function to the next point: models kept up to date, and what is asked of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.decisions.bayesian_optimization.acquisition import Criterion, confidence_schedule
from pluri.decisions.bayesian_optimization.history import History
from pluri.decisions.bayesian_optimization.proposing import (
    N_NEAR,
    N_RANDOM,
    Utility,
    best_point,
    drawn_point,
    free_point,
    is_taken,
)
from pluri.decisions.bayesian_optimization.surrogate import Surrogate, SurrogateSettings, learn_surrogate

Array = NDArray[np.float64]

#: Up to so many evaluations the hyper-parameters are learned anew after each; then when there are so many more.
ALWAYS_LEARN, LEARN_AGAIN = 50, 1.1
#: What the probability of improvement asks for, in standard deviations of the values: with nothing it stays beside its
#: best point, and with .03 or more it ends further from the bottom (`benchmarks/accuracy/improvement_margin.py`).
MARGIN = 0.01
#: Best points near which the next one is searched.
N_BEST = 5


class Choosing(NamedTuple):
    """How points are chosen: the settings of `BayesianOptimizer` of the same names, and how models are learned."""

    acquisition: str
    xi: float | str
    kappa: float | str
    pending: str
    n_constraints: int
    learning: SurrogateSettings


class Chooser:
    """Chooses points, given a history that grows.

    Parameters
    ----------
    history : History
    settings : Choosing
    rng : Generator
    n_initial_points : int or None
    """

    def __init__(
        self, history: History, settings: Choosing, rng: np.random.Generator, n_initial_points: int | None
    ) -> None:
        self.history = history
        self.space = history.space
        self.settings = settings
        self.rng = rng
        self.design = self.space.design(rng, n_initial_points or max(5, self.space.n_dimensions + 1))
        self.n_designed = 0
        self._models: list[Surrogate] = []
        self._n_learned = self._n_included = 0

    def choose(self) -> dict[str, Any]:
        """The next point, which is under way from now on."""
        if self.n_designed < len(self.design):
            row, kind = self._unless_taken(self.design[self.n_designed]), "initial"
            self.n_designed += 1
        elif not len(self.history.objective()[1]):
            row, kind = self._unless_taken(self.space.sample(self.rng, 1)[0]), "initial"
        else:
            row, kind = self._by_models(), "model"
        params = self.space.params(row)
        # The codes of the values themselves, by which the point is known when it is told.
        self.history.pending.append((self.space.row(params), kind))
        return params

    def _unless_taken(self, row: Array) -> Array:
        """The row, or some other that is free if it is known or under way: few integers and choices meet often."""
        taken = self.history.taken()
        free = free_point(self.space, taken, self.rng) if is_taken(row, taken) else None
        return row if free is None else free

    def models(self) -> list[Surrogate]:
        """Models of the objective and of the constraints, given all evaluations; empty if none has succeeded."""
        rows, values = self.history.objective()
        n = len(values)
        if n == 0 or n == self._n_included:
            return self._models
        tables = [(rows, values), *(self.history.constraint(one) for one in range(self.settings.n_constraints))]
        tables = [table for table in tables if len(table[1])]
        if ALWAYS_LEARN < n < LEARN_AGAIN * self._n_learned and len(self._models) == len(tables):
            self._models = [continued(model, *table) for model, table in zip(self._models, tables)]
        else:
            starts = [model.thetas[-1] for model in self._models] if len(self._models) == len(tables) else []
            self._models = [
                learn_surrogate(
                    self.space, *table, self.settings.learning, self.rng, starts[number] if starts else None
                )
                for number, table in enumerate(tables)
            ]
            self._n_learned = n
        self._n_included = n
        return self._models

    def acquisition_at(self, rows: Array) -> Array:
        """Acquisition at rows of codes; a drawn function, negated, for Thompson's choice."""
        if not self.models():
            raise ValueError("there is no model yet: tell at least one evaluation that succeeded")
        utility = self._utility()
        if self.settings.acquisition == "thompson":
            return -utility.model.draw(rows, np.random.default_rng(0))
        values = utility.at(rows)
        return np.exp(values) if utility.criterion.logarithmic else values

    def highest(self) -> float | None:
        """The highest acquisition anywhere; None before there is a model, or while the initial design lasts."""
        if self.n_designed < len(self.design) or not self.models():
            return None
        utility = self._utility()
        rng = np.random.default_rng(0)
        value = best_point(utility, self._best_rows(), np.empty((0, self.space.n_dimensions)), rng)[1]
        return float(np.exp(value)) if utility.criterion.logarithmic else value

    def _by_models(self) -> Array:
        utility = self._utility()
        near, taken = self._best_rows(), self.history.taken()
        by_drawing = self.settings.acquisition == "thompson"
        if by_drawing or (self.settings.pending == "thompson" and self.history.pending):
            return drawn_point(utility.model, utility.constraints, near, taken, self.rng)
        return best_point(utility, near, taken, self.rng)[0]

    def _utility(self) -> Utility:
        """What is maximised, given all evaluations and with assumptions of the points under way."""
        model, *constraints = self.models()
        best = self._threshold(model)
        for row, _ in self.history.pending:
            liar = self.settings.pending == "constant_liar"
            model = model.extended(row, best if liar else float(model.moments(row[None])[0][0]))
            constraints = [one.extended(row, float(one.moments(row[None])[0][0])) for one in constraints]
        return Utility(model, self._criterion(best), tuple(constraints))

    def _criterion(self, best: float) -> Criterion:
        if self.settings.n_constraints and self.history.best() is None:
            return Criterion("feasible")
        kappa = self.settings.kappa
        if isinstance(kappa, str):
            kappa = confidence_schedule(N_RANDOM + N_NEAR, len(self.history.rows))
        return Criterion(self.settings.acquisition, best, self._margin(), float(kappa))

    def _margin(self) -> float:
        """What an improvement must exceed."""
        if not isinstance(self.settings.xi, str):
            return float(self.settings.xi)
        if self.settings.acquisition != "pi":
            return 0.0
        return MARGIN * float(np.std(self.history.objective()[1]))

    def _threshold(self, model: Surrogate) -> float:
        """What is to be improved on: the lowest expected value at a point that was evaluated; without noise its value.

        With constraints only points that keep them count.
        """
        feasible = np.array([one.feasible for one in self.history.evaluations])
        known = feasible if feasible.any() else np.ones(len(feasible), dtype=bool)
        if self.settings.learning.noise_variance == 0:
            return float(model.values[known].min())
        return float(model.moments(np.array(self.history.rows)[known])[0].min())

    def _best_rows(self) -> Array:
        """Rows of the best evaluations so far, those that keep the constraints first."""
        _, values = self.history.objective()
        broken = np.array([not one.feasible for one in self.history.evaluations])
        return np.array(self.history.rows)[np.lexsort((values, broken))[:N_BEST]]


def continued(model: Surrogate, rows: Array, values: Array) -> Surrogate:
    """The model with the observations that are new, and the same hyper-parameters."""
    for row, value in zip(rows[len(model.values) :], values[len(model.values) :]):
        model = model.extended(row, float(value))
    return model
