r"""What might be observed of a Gaussian mixture, whose columns depend on each other within a component.

Given a component, columns are jointly normal: their covariance given what is planned is the same in all scenarios,
their means are not. Information about the component is exact up to quadrature. About some columns T that are wanted it
is the entropy of a mixture in one dimension, less its mean over drawn values of T,

.. math:: I(x_j; x_T) = h(x_j) - E_{x_T} h(x_j \mid x_T),

so that what is drawn is only what has no closed form, and a single Gaussian is exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pluri.decisions.planning.mixture_information import normal_information, normal_mixture_entropy
from pluri.decisions.planning.scenarios import drawn_outcomes

Array = NDArray[np.float64]


class GaussianPlanner:
    """Information about the component of a Gaussian mixture, or about some of its columns.

    Parameters
    ----------
    weights : (k,)
        Probabilities of the components, given what is observed.
    means, covariances : (k, d), (k, d, d)
        Of the columns that are not observed, given those that are.
    columns : list of int
        Their numbers.
    n_samples : int
    rng : Generator
    target : list of int, optional
        Columns that information is wanted about; the component by default.
    """

    def __init__(
        self, weights: Array, means: Array, covariances: Array, columns: list[int], n_samples: int,
        rng: np.random.Generator, target: list[int] | None = None,
    ) -> None:  # fmt: skip
        self.columns, self.n_samples, self.rng = columns, n_samples, rng
        self.shares, self.means, self.covariances = weights[None].copy(), means[None].copy(), covariances.copy()
        self.exact = True
        self.wanted = [columns.index(column) for column in target or []]

    @property
    def candidates(self) -> list[int]:
        """Columns that may be observed."""
        return [column for place, column in enumerate(self.columns) if place not in self.wanted]

    def gains(self, columns: list[int]) -> tuple[Array, Array]:
        """Information of each column given what is planned, and its standard error."""
        places = [self.columns.index(column) for column in columns]
        table = self._about_target(places) if self.wanted else self._about_component(places)
        if table.shape[1] == 1:
            return table[:, 0], np.zeros(len(columns))
        return np.maximum(table.mean(axis=1), 0.0), table.std(axis=1, ddof=1) / np.sqrt(table.shape[1])

    def _about_component(self, places: list[int]) -> Array:
        """In each scenario (n_places, n_scenarios)."""
        return np.array(
            [normal_information(self.shares, self.means[:, :, j], self.covariances[:, j, j]) for j in places]
        ).reshape(len(places), -1)

    def _about_target(self, places: list[int]) -> Array:
        """In each scenario, with a drawn value of the target; of a single scenario, with many."""
        wanted = np.array(self.wanted)
        inner = self.covariances[:, wanted[:, None], wanted]
        across = self.covariances[:, wanted][:, :, places]  # (k, n_wanted, n_places)
        slopes = np.linalg.solve(inner, across)
        left = np.maximum(self.covariances[:, places, places] - np.sum(across * slopes, axis=1), 1e-300)
        many = self.n_samples if self.exact else 1
        shares, means = (np.repeat(one, many, axis=0) for one in (self.shares, self.means))
        factors = np.linalg.cholesky(inner)
        source = drawn_outcomes(shares, self.rng)
        noise = self.rng.standard_normal((len(source), len(wanted)))
        drawn = means[np.arange(len(source)), source][:, wanted] + np.einsum("nij,nj->ni", factors[source], noise)
        gaps = drawn[:, None] - means[:, :, wanted]  # (n, k, n_wanted)
        scaled = np.einsum("kij,nkj->nki", np.linalg.inv(factors), gaps)
        logs = -0.5 * (scaled**2).sum(axis=2) - np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
        given = _updated(shares, logs)
        found = np.empty((len(places), len(source)))
        for number, place in enumerate(places):
            before = normal_mixture_entropy(self.shares, self.means[:, :, place], self.covariances[:, place, place])
            moved = means[:, :, place] + np.einsum("nkw,kw->nk", gaps, slopes[:, :, number])
            found[number] = before - normal_mixture_entropy(given, moved, left[:, number])
        return found

    def add(self, column: int) -> None:
        """Change the scenarios: the column is observed in each."""
        if self.exact:
            self.shares = np.repeat(self.shares, self.n_samples, axis=0)
            self.means = np.repeat(self.means, self.n_samples, axis=0)
            self.exact = False
        place = self.columns.index(column)
        variances = self.covariances[:, place, place]
        source = drawn_outcomes(self.shares, self.rng)
        rows = np.arange(len(source))
        values = self.means[rows, source, place] + np.sqrt(variances[source]) * self.rng.standard_normal(len(source))
        gaps = values[:, None] - self.means[:, :, place]
        self.shares = _updated(self.shares, -0.5 * gaps**2 / variances - 0.5 * np.log(variances))
        slopes = self.covariances[:, :, place] / variances[:, None]
        self.means = self.means + gaps[:, :, None] * slopes
        self.covariances = self.covariances - slopes[:, :, None] * self.covariances[:, None, place, :]
        # What is observed in every scenario tells no more; a variance of zero would have no density.
        self.covariances[:, place, place] = np.maximum(self.covariances[:, place, place], 1e-300)


def _updated(shares: Array, log_densities: Array) -> Array:
    """Probabilities of the components given what was drawn."""
    with np.errstate(divide="ignore"):
        logs = np.log(shares) + log_densities
    found = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(found / found.sum(axis=1, keepdims=True))
