"""Mixture of grouped data whose clusters are shared by the groups: the model under two Gibbs samplers.

``G_0 ~ DP(gamma, H)``, ``G_j ~ DP(alpha, G_0)``, and row i of group j comes from a cluster drawn from G_j, with the
parameters of the clusters integrated out (`pluri.processes.conjugate`). The samplers are kernels for
`pluri.inference.mcmc.sample`, and show the three pure functions that a test of correctness needs: `sample_prior`,
`sample_data` and `sweep`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pluri.priors.hyperpriors import Gamma, Hyperparameter, as_hyperparameter
from pluri.processes.concentration import CONCENTRATION_PRIOR, draw_concentration, draw_group_concentration
from pluri.processes.hierarchical_dirichlet import ChineseRestaurantFranchise, Seating

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Position = Mapping[str, NDArray[Any]]


def as_position(**values: Any) -> Position:
    """Arrays by name."""
    return {name: np.asarray(value) for name, value in values.items()}


@dataclass(frozen=True, eq=False)
class GibbsState:
    """Where a sampler is, and the log density of data and assignments there."""

    position: Position
    log_density: float


def choose(rng: np.random.Generator, log_weights: Array) -> int:
    weights = np.exp(log_weights - log_weights.max())
    total = np.cumsum(weights)
    return min(int(np.searchsorted(total, rng.random() * total[-1], side="right")), len(weights) - 1)


@dataclass(frozen=True, eq=False)
class GroupedMixture:
    """What both samplers are made from: grouped data, a conjugate likelihood and concentrations.

    Parameters
    ----------
    likelihood : Conjugate
        For instance `NormalInverseWishart` or `DirichletMultinomial`.
    data : array-like of shape (n_samples, n_features)
    groups : array-like of shape (n_samples,)
        Group of each row, any labels.
    alpha, gamma : float, Gamma or "learn", default=1.0
        Concentrations of the groups and of the common level: fixed, learned under a prior, or learned under
        ``Gamma(1, 1)``.
    """

    likelihood: Any
    data: Any
    groups: Any
    alpha: float | Gamma | Literal["learn"] = 1.0
    gamma: float | Gamma | Literal["learn"] = 1.0
    _concentrations: tuple[Hyperparameter, Hyperparameter] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        concentrations = tuple(
            as_hyperparameter(getattr(self, name), name, CONCENTRATION_PRIOR) for name in ("alpha", "gamma")
        )
        object.__setattr__(self, "_concentrations", concentrations)
        data = self.likelihood.check(self.data)
        groups = np.asarray(self.groups)
        if groups.shape != (len(data),) or not len(data):
            raise ValueError(f"groups must have one label for each of at least one row of data, got {groups.shape}")
        codes = np.unique(groups, return_inverse=True)[1].astype(np.int64)
        if codes.max() == 0:
            warnings.warn(
                "groups has only one group: this is a Dirichlet process mixture with a needless level",
                UserWarning,
                stacklevel=3,
            )
        object.__setattr__(self, "data", data)
        object.__setattr__(self, "groups", codes)

    @property
    def group_sizes(self) -> Integers:
        """Number of rows of each group."""
        return np.bincount(self.groups)

    def adaptation(self, n_warmup: int) -> None:
        """Nothing is tuned."""
        return None

    def labels(self, position: Position) -> Integers:
        """Cluster of each row."""
        raise NotImplementedError  # abstract

    def record(self, position: Position) -> dict[str, Any]:
        """What to keep of a position, of the same shape whatever the number of clusters."""
        labels = self.labels(position)
        kept = {"alpha": position["alpha"], "gamma": position["gamma"], "n_clusters": np.asarray(labels.max() + 1)}
        return {**kept, "labels": labels}

    def sample_data(self, rng: np.random.Generator, position: Position) -> Array:
        """Draw data given the assignment, parameters of the clusters from their prior."""
        labels = self.labels(position)
        data = np.empty((len(labels), self.likelihood.n_features))
        for k in range(labels.max() + 1):
            own = labels == k
            parameters = self.likelihood.sample_posterior(rng, self.likelihood.empty())
            data[own] = self.likelihood.sample_data(rng, parameters, int(own.sum()))
        return data

    def log_likelihood(self, position: Position, data: Array | None = None) -> float:
        """Log density of the data given the assignment, parameters integrated out."""
        labels = self.labels(position)
        return float(self.likelihood.log_marginal(self._statistics(labels, self.data if data is None else data)).sum())

    def _statistics(self, labels: Integers, data: Array) -> Array:
        rows = self.likelihood.statistics(data)
        total = self.likelihood.empty(int(labels.max()) + 1)
        np.add.at(total, labels, rows)
        return np.asarray(total)

    def _prior_concentrations(self, rng: np.random.Generator) -> tuple[float, float]:
        alpha, gamma = (
            rng.gamma(one.prior.shape) / one.prior.rate if one.learned else one.value for one in self._concentrations
        )
        return alpha, gamma

    def _prior_seating(self, rng: np.random.Generator) -> tuple[Seating, float, float]:
        alpha, gamma = self._prior_concentrations(rng)
        seating = ChineseRestaurantFranchise(alpha, gamma).sample(self.group_sizes, rng)
        # The franchise seats group after group; customers of a group are exchangeable, so any order will do.
        order = np.argsort(self.groups, kind="stable")
        tables = np.empty_like(seating.tables)
        tables[order] = seating.tables
        return Seating(self.groups, tables, seating.dishes), alpha, gamma

    def _draw_concentrations(
        self, rng: np.random.Generator, alpha: float, gamma: float, n_tables: int, n_clusters: int
    ) -> tuple[float, float]:
        groups, top = self._concentrations
        if groups.learned:
            alpha = draw_group_concentration(rng, alpha, self.group_sizes, n_tables, groups.prior)
        if top.learned:
            gamma = draw_concentration(rng, gamma, n_tables, n_clusters, top.prior)
        return alpha, gamma
