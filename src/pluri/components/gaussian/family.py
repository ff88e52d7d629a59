"""What the Gaussian families of mixtures and hidden Markov models have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.components.gaussian import density, packing, update
from pluri.components.gaussian.records import GaussianParameters, GaussianPrior, GaussianStatistics, check_magnitude
from pluri.validation import check_width, plain_array

Array = NDArray[np.float64]


class GaussianComponents:
    """Gaussian components with covariances of one type: a `ComponentFamily` but for starting values and the prior.

    A subclass gives `initialize`, `prior` and `_floor`.
    """

    covariance_type: str
    update_means: bool = True
    update_covariances: bool = True

    def prior(self, parameters: GaussianParameters) -> GaussianPrior:
        """The prior in the form of `pluri.components.gaussian`."""
        raise NotImplementedError  # abstract

    def _floor(self, covariances: Array, kind: str) -> Array | float:
        """Least variances, given the covariances to start from."""
        raise NotImplementedError  # abstract

    def prepare(self, X: NDArray[Any]) -> Array:
        return check_magnitude(plain_array(X))

    def parameters(self, means: Array, covariances: Array) -> GaussianParameters:
        """Record of `means` (k, D) and covariances in the shape of `covariance_type`."""
        kind, group = self.covariance_type, np.arange(len(means))
        if kind == "tied":
            kind, group, covariances = "full", np.zeros(len(means), dtype=np.int64), covariances[None]
        return GaussianParameters(means, covariances, kind, group, self._floor(covariances, kind))

    def log_prob(self, parameters: GaussianParameters, X: Array, out: Array) -> None:
        check_width(X, parameters.means.shape[1])
        density.log_prob(parameters, X, out)

    def accumulate(self, parameters: GaussianParameters, X: Array, posterior: Array) -> GaussianStatistics:
        return density.accumulate(parameters, X, posterior)

    def maximize(self, stats: GaussianStatistics, parameters: GaussianParameters) -> GaussianParameters:
        return update.maximize(
            stats,
            parameters,
            self.prior(parameters),
            update_means=self.update_means,
            update_covariances=self.update_covariances,
        )

    def log_prior(self, parameters: GaussianParameters) -> float:
        if not (self.update_means or self.update_covariances):
            return 0.0
        return update.log_prior(parameters, self.prior(parameters))

    def sample(self, parameters: GaussianParameters, states: NDArray[np.int64], rng: np.random.Generator) -> Array:
        return density.sample(parameters, states, rng)

    def n_free(self, parameters: GaussianParameters) -> int:
        return parameters.means.size + packing.n_covariance_parameters(parameters)

    def pack(self, parameters: GaussianParameters) -> Array:
        return packing.pack(parameters)

    def unpack(self, vector: Array, like: GaussianParameters) -> GaussianParameters:
        return packing.unpack(vector, like, update_means=self.update_means, update_covariances=self.update_covariances)
