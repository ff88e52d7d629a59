r"""What might be observed, and what would then be known: scenarios of a latent class model.

A plan is made before anything of it is observed, so its worth is an average over what could come. A scenario is one
such outcome: probabilities of the latent class given it, and its own probability. Observing one more discrete variable
splits every scenario; as long as there are few, all of them are kept, and information is exact. Beyond, or for real
variables, scenarios are drawn, and the spread over them gives a standard error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.decisions.planning.mixture_information import label_information, normal_information

Array = NDArray[np.float64]

#: Scenarios up to which all outcomes are kept.
MOST_EXACT = 2048


@dataclass(frozen=True)
class ClassColumns:
    """A latent class and columns that are independent given it.

    Attributes
    ----------
    weights : (k,)
        Probabilities of the classes, given what is observed.
    tables : dict of int to (k, v)
        Distribution of each discrete column that is not observed.
    normals : dict of int to ((k,), (k,))
        Means and variances of each normal column that is not observed.
    """

    weights: Array
    tables: dict[int, Array]
    normals: dict[int, tuple[Array, Array]] = field(default_factory=dict)

    @property
    def columns(self) -> list[int]:
        """What can be observed."""
        return sorted([*self.tables, *self.normals])


@dataclass
class Scenarios:
    """Outcomes of what is planned: `shares` (s, k) of the class, `chances` (s,), and whether these are all."""

    shares: Array
    chances: Array
    exact: bool = True


class ClassPlanner:
    """Information about the class, or about one column, from columns that are independent given the class."""

    def __init__(self, model: ClassColumns, target: int | None, n_samples: int, rng: np.random.Generator) -> None:
        self.model, self.target, self.n_samples, self.rng = model, target, n_samples, rng
        self.state = Scenarios(model.weights[None].copy(), np.ones(1))

    @property
    def candidates(self) -> list[int]:
        """Columns that may be observed."""
        return [column for column in self.model.columns if column != self.target]

    def gains(self, columns: list[int]) -> tuple[Array, Array]:
        """Information of each column given what is planned, and its standard error."""
        each = np.array([self._information(column) for column in columns]).reshape(len(columns), -1)
        means = each @ self.state.chances
        if self.state.exact:
            return means, np.zeros(len(columns))
        return means, each.std(axis=1, ddof=1) / np.sqrt(each.shape[1])

    def _information(self, column: int) -> Array:
        shares = self.state.shares
        if self.target is not None:
            return self._about_target(column)
        if column in self.model.tables:
            return label_information(shares, self.model.tables[column])
        means, variances = self.model.normals[column]
        return normal_information(shares, np.broadcast_to(means, shares.shape), variances)

    def _about_target(self, column: int) -> Array:
        """I(x_column; x_target) in each scenario, both discrete."""
        ours, theirs = self.model.tables[column], self.model.tables[self.target]  # type: ignore[index]
        joint = np.einsum("sk,kv,kw->svw", self.state.shares, ours, theirs)
        apart = joint.sum(axis=2, keepdims=True) * joint.sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(joint > 0, joint * np.log(joint / apart), 0.0)
        return np.maximum(terms.sum(axis=(1, 2)), 0.0)

    def add(self, column: int) -> None:
        """Change the scenarios: the column is observed in each."""
        if column in self.model.tables:
            self._split(self.model.tables[column])
        else:
            self._draw_normal(*self.model.normals[column])

    def _split(self, table: Array) -> None:
        state = self.state
        if state.exact and len(state.chances) * table.shape[1] <= MOST_EXACT:
            joint = state.shares[:, None, :] * table.T  # (s, v, k)
            chances = joint.sum(axis=2)
            kept = chances > 0
            self.state = Scenarios((joint[kept].T / chances[kept]).T, (state.chances[:, None] * chances)[kept])
            return
        self._become_draws()
        chances = self.state.shares @ table
        drawn = drawn_outcomes(chances, self.rng)
        self._update(np.log(np.maximum(table[:, drawn].T, 1e-300)))

    def _draw_normal(self, means: Array, variances: Array) -> None:
        self._become_draws()
        source = drawn_outcomes(self.state.shares, self.rng)
        values = means[source] + np.sqrt(variances[source]) * self.rng.standard_normal(len(source))
        self._update(-0.5 * (values[:, None] - means) ** 2 / variances - 0.5 * np.log(variances))

    def _become_draws(self) -> None:
        if self.state.exact:
            which = self.rng.choice(len(self.state.chances), size=self.n_samples, p=self.state.chances)
            self.state = Scenarios(self.state.shares[which], np.full(self.n_samples, 1.0 / self.n_samples), False)

    def _update(self, logs: Array) -> None:
        with np.errstate(divide="ignore"):
            weighted = np.log(self.state.shares) + logs
        weighted -= weighted.max(axis=1, keepdims=True)
        shares = np.exp(weighted)
        self.state = Scenarios(shares / shares.sum(axis=1, keepdims=True), self.state.chances, False)


def drawn_outcomes(chances: Array, rng: np.random.Generator) -> NDArray[Any]:
    """One outcome of each row of probabilities."""
    sums = np.cumsum(chances, axis=1)
    return np.minimum((rng.random((len(chances), 1)) * sums[:, -1:] > sums).sum(axis=1), chances.shape[1] - 1)
