"""A mixture as something that EM can learn: parameters, statistics, E-step and M-step.

The objective is  sum_n w_n log sum_j pi_j p(x_n | theta_j) + log p(pi) + log p(theta).  The distributions p(x |
theta_j) and their prior are those of a `pluri.components.ComponentFamily`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pluri.components.family import ComponentFamily, P
from pluri.components.probability_rows import rows_from_logits
from pluri.engine import Batch, Source, Statistics
from pluri.engine.aligned import apart, padded_width
from pluri.engine.first_rows import weighted_initial_rows
from pluri.mixtures import _kernels as kernels
from pluri.priors import Dirichlet, RowPrior

Array = NDArray[np.float64]

FLAT = Dirichlet(1.0)
#: Rows that are worked on at a time: their densities stay in the second-level cache.
BLOCK = 4096
#: What helps against densities of zero or infinity; a family with other arguments has an `advice` of its own.
ADVICE = "use priors that keep probabilities above zero, or fewer components"


@dataclass(frozen=True)
class MixtureParameters(Generic[P]):
    """Weights (k,) that sum to one, the family's own record, and `occupancy` (k,), the rows that each explained."""

    weights: Array
    components: P
    occupancy: Array


@dataclass(frozen=True)
class MixtureStatistics(Statistics):
    """Expected counts under the posterior of the components.

    Attributes
    ----------
    log_likelihood : weighted log-likelihood of the rows
    occupancy : (k,): how many rows each component explains
    components : the family's statistics
    """

    log_likelihood: float
    occupancy: Array
    components: Any


@dataclass(frozen=True)
class MixtureProblem(Generic[P]):
    """The four functions of `pluri.inference.Learnable`, and the two that acceleration asks for.

    Parameters
    ----------
    n_components : number of components
    family : their distribution
    weight_prior : prior on the weights
    weights : weights to start from; those that the family's starting values suggest where None
    """

    n_components: int
    family: ComponentFamily[P, Any]
    weight_prior: RowPrior = FLAT
    weights: Array | None = None

    def initialize(self, source: Source, rng: np.random.Generator) -> MixtureParameters[P]:
        """Starting values that the family finds in (a sample of) the rows.

        A family may have a method ``start(rows, weight, n_components, rng) -> (weights, components)`` for mixtures;
        without it `ComponentFamily.initialize` gives the components and all weights are equal.
        """
        k = self.n_components
        rows, weight = telling_rows(self.family, *weighted_initial_rows(source, self.family.prepare))
        weights: Array = np.full(k, 1.0 / k)
        start = getattr(self.family, "start", None)
        if start is not None:
            weights, components = start(rows, weight, k, rng)
        else:
            components = self.family.initialize(rows, k, rng)
        return MixtureParameters(weights if self.weights is None else self.weights, components, np.full(k, np.nan))

    def expect(self, params: MixtureParameters[P], batch: Batch) -> MixtureStatistics:
        """Expected counts of a batch of independent rows."""
        weight = np.ones(batch.n_samples) if batch.weight is None else batch.weight
        X = self.family.prepare(batch.X)
        total: MixtureStatistics | None = None
        for begin in range(0, max(batch.n_samples, 1), BLOCK):
            rows = slice(begin, min(begin + BLOCK, batch.n_samples))
            part = self._expect_block(params, X[rows], weight[rows])
            total = part if total is None else total + part
        assert total is not None
        return total

    def _expect_block(self, params: MixtureParameters[P], X: Any, weight: Array) -> MixtureStatistics:
        posterior, scores = self.posterior(params, X, weight)
        counted = weight > 0
        log_likelihood = float(weight[counted] @ scores[counted])
        occupancy = posterior[:, : self.n_components].sum(axis=0)
        return MixtureStatistics(log_likelihood, occupancy, self.family.accumulate(params.components, X, posterior))

    def posterior(self, params: MixtureParameters[P], X: Any, weight: Array | None = None) -> tuple[Array, Array]:
        """Weighted responsibilities (n, padded width) and log densities (n,) of prepared rows."""
        n = X.shape[0]
        out = apart((n, padded_width(self.n_components)))
        self.family.log_prob(params.components, X, out)
        scores = apart(n)
        with np.errstate(divide="ignore"):
            log_weights = np.log(params.weights)
        bad = kernels.responsibilities(out, log_weights, np.ones(n) if weight is None else weight, scores)
        if bad >= 0:
            counted = np.ones(n, dtype=bool) if weight is None else weight > 0
            undefined = np.flatnonzero(counted & ~(scores < np.inf))  # worse than impossible: NaN, or infinite
            bad = int(undefined[0]) if undefined.size else bad
            refuse_impossible(
                scores[bad], bad, fitting=weight is not None, advice=getattr(self.family, "advice", ADVICE)
            )
        return out, scores

    def maximize(self, stats: MixtureStatistics, params: MixtureParameters[P]) -> MixtureParameters[P]:
        """Update weights and components; a weight that is exactly zero stays zero."""
        support = params.weights > 0
        weights = self.weight_prior.maximize(
            np.where(support, stats.occupancy, 0.0), params.weights, support=None if support.all() else support
        )
        return MixtureParameters(weights, self.family.maximize(stats.components, params.components), stats.occupancy)

    def log_prior(self, params: MixtureParameters[P]) -> float:
        """Log prior of weights and components."""
        support = params.weights > 0
        weights = self.weight_prior.log_density(params.weights, support=None if support.all() else support)
        return weights + self.family.log_prior(params.components)

    def pack(self, params: MixtureParameters[P]) -> Array:
        """Logarithms of the weights, then the family's own unconstrained vector."""
        with np.errstate(divide="ignore"):
            return np.concatenate([np.log(params.weights), self.family.pack(params.components)])

    def unpack(self, vector: Array, like: MixtureParameters[P]) -> MixtureParameters[P]:
        """The inverse of `pack`; a guess that the M-step could not have given is moved to the nearest it could."""
        k = self.n_components
        weights = rows_from_logits(vector[:k], like.weights, self.weight_prior)
        return MixtureParameters(weights, self.family.unpack(vector[k:], like.components), like.occupancy)


def refuse_impossible(score: float, row: int, *, fitting: bool, advice: str = ADVICE) -> None:
    """Raise for a row of density zero in a fit, and for a density that is not a number anywhere."""
    if score == -np.inf:
        if fitting:
            raise ValueError(
                f"row {row} of a batch has probability zero under the current parameters: every component rules it "
                f"out; {advice}"
            )
        return
    raise FloatingPointError(
        f"the log density of row {row} of a batch is {score}: a component's density has become infinite; {advice}"
    )


def telling_rows(family: Any, rows: Any, weight: NDArray[np.float64] | None) -> tuple[Any, NDArray[np.float64] | None]:
    """The rows that say something about the components, and their weights: those of which something was observed.

    A clustering would take the others for a cluster of their own, and give it a component that explains nothing. What
    an empty row is depends on the family, which may have a method ``telling(rows) -> mask``.
    """
    telling = family.telling(rows) if hasattr(family, "telling") else _observed(rows)
    if telling.all() or not telling.any():
        return rows, weight
    return rows[telling], None if weight is None else weight[telling]


def _observed(rows: Any) -> NDArray[np.bool_]:
    if sparse.issparse(rows) or rows.dtype.kind != "f":
        return np.ones(rows.shape[0], dtype=bool)
    return np.asarray(~np.isnan(rows).all(axis=1))
