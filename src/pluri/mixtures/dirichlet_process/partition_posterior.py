"""The posterior over partitions under a Dirichlet process mixture: what its samplers have in common.

``p(z, x | alpha) = alpha^K Gamma(alpha) / Gamma(alpha + n) prod_k Gamma(n_k) p(x_k)``, where ``p(x_k)`` is the marginal
density of the rows of cluster k, parameters integrated out. Samplers are kernels for `pluri.inference.mcmc.sample`, and
show the three pure functions that a test of correctness needs: `sample_prior`, `sample_data` and `sweep`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.mixtures.dirichlet_process.seating import Prepared, Seating, in_order
from pluri.priors.hyperpriors import Gamma, Hyperparameter, as_hyperparameter
from pluri.processes.chinese_restaurant import ChineseRestaurantProcess
from pluri.processes.concentration import CONCENTRATION_PRIOR, draw_concentration
from pluri.processes.conjugate import DirichletMultinomial
from pluri.processes.conjugate_clusters.records import Array, Integers, checked_data, cluster_sums

Position = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class PartitionState:
    """Where a sampler is, and the best that it has seen: the position of highest log joint density."""

    position: Position
    log_density: float
    best: Position
    best_log_density: float


@dataclass(frozen=True, eq=False)
class PartitionPosterior:
    """Data, a conjugate likelihood and a concentration.

    Positions are dicts: ``labels`` (n_samples,), clusters numbered in the order in which they appear, and ``alpha``.

    Parameters
    ----------
    likelihood : Conjugate
        `NormalInverseWishart`, `NormalGamma`, `BetaBernoulli`, `DirichletMultinomial` or `GammaPoisson`.
    data : array-like or sparse matrix of shape (n_samples, n_features)
    concentration : float, Gamma or "learn", default=1.0
        A number is fixed; a prior is what it is learned under, from its mean on; "learn" is Gamma(1, 1).
    """

    likelihood: Any
    data: Any
    concentration: float | Gamma | str = 1.0
    _concentration: Hyperparameter = field(init=False, repr=False)
    _prepared: Prepared = field(init=False, repr=False)

    def __post_init__(self) -> None:
        concentration = as_hyperparameter(self.concentration, "concentration", CONCENTRATION_PRIOR)
        data = checked_data(self.likelihood, self.data)
        if not data.shape[0]:
            raise ValueError("data must have at least one row, got none")
        object.__setattr__(self, "data", data)
        object.__setattr__(self, "_concentration", concentration)
        object.__setattr__(self, "_prepared", Prepared(self.likelihood, data))

    def adaptation(self, n_warmup: int) -> None:
        """Nothing is tuned."""
        return None

    def init(self, rng: np.random.Generator, position: Position) -> PartitionState:
        """State at a position."""
        labels = np.asarray(position["labels"])
        if labels.shape != (self.data.shape[0],) or labels.min() < 0:
            raise ValueError(f"the position must have a label for each of {self.data.shape[0]} rows")
        kept = {"labels": in_order(labels), "alpha": np.asarray(float(position["alpha"]))}
        value = self.log_joint(kept)
        return PartitionState(kept, value, kept, value)

    def step(self, rng: np.random.Generator, state: PartitionState) -> tuple[PartitionState, dict[str, float]]:
        """One sweep."""
        position, info = self._sweep(rng, state.position, self._prepared)
        value = self.log_joint(position)
        best = (position, value) if value > state.best_log_density else (state.best, state.best_log_density)
        return PartitionState(position, value, *best), info

    def sweep(self, rng: np.random.Generator, position: Position, data: Any) -> Position:
        """One sweep given data of the same shape."""
        prepared = Prepared(self.likelihood, checked_data(self.likelihood, data))
        return self._sweep(rng, position, prepared)[0]

    @abstractmethod
    def _sweep(
        self, rng: np.random.Generator, position: Position, prepared: Prepared
    ) -> tuple[Position, dict[str, float]]:
        """One sweep, and what is known about it."""

    def record(self, position: Position) -> dict[str, Any]:
        """What to keep of a position."""
        labels = position["labels"]
        sizes = np.bincount(labels)
        large = int((sizes >= 0.01 * len(labels)).sum())
        return {
            "alpha": position["alpha"], "n_clusters": np.asarray(len(sizes)), "n_large_clusters": np.asarray(large),
            "labels": labels.astype(np.int32),
        }  # fmt: skip

    def log_likelihood(self, position: Position, data: Any = None) -> float:
        """Log density of the data given the partition, parameters integrated out."""
        labels = np.asarray(position["labels"])
        sums = cluster_sums(self.likelihood, self.data if data is None else data, labels, int(labels.max()) + 1)
        return float(self.likelihood.log_marginal(sums).sum())

    def log_joint(self, position: Position, data: Any = None) -> float:
        """Log density of the data and the partition, given the concentration."""
        prior = ChineseRestaurantProcess(float(position["alpha"])).log_eppf(np.bincount(position["labels"]))
        return prior + self.log_likelihood(position, data)

    def sample_prior(self, rng: np.random.Generator) -> Position:
        """Draw a position from the prior."""
        alpha, prior = self._concentration
        if prior is not None:
            alpha = rng.gamma(prior.shape) / prior.rate
        labels = ChineseRestaurantProcess(alpha).sample_partition(self.data.shape[0], rng)
        return {"labels": labels, "alpha": np.asarray(float(alpha))}

    def sample_data(self, rng: np.random.Generator, position: Position) -> Array:
        """Draw data given the partition, parameters of the clusters from their prior."""
        labels = np.asarray(position["labels"])
        data = np.empty(self.data.shape)
        tokens = self._prepared.rows.total
        for k in range(labels.max() + 1):
            own = np.flatnonzero(labels == k)
            parameters = self.likelihood.sample_posterior(rng, self.likelihood.empty())
            if isinstance(self.likelihood, DirichletMultinomial):
                data[own] = rng.multinomial(tokens[own].astype(np.int64), parameters)
            else:
                data[own] = self.likelihood.sample_data(rng, parameters, len(own))
        return data

    def sample_start(self, rng: np.random.Generator, n_clusters: int | None = None) -> Position:
        """Where a chain may begin: rows in some clusters at random, or seated one after another as the data ask for."""
        n = self.data.shape[0]
        if n_clusters is not None:
            labels = in_order(rng.integers(0, n_clusters, size=n))
        else:
            seating = Seating(self._prepared, np.full(n, -1))
            seating.sweep(rng, self._concentration.value)
            labels = seating.labels
        return {"labels": labels, "alpha": np.asarray(self._concentration.value)}

    def _draw_alpha(self, rng: np.random.Generator, alpha: float, labels: Integers) -> float:
        prior = self._concentration.prior
        if prior is None:
            return alpha
        return draw_concentration(rng, alpha, len(labels), int(labels.max()) + 1, prior)
