"""Hidden Markov model with exponential emissions: waiting times, p(x_t | state i) = prod_d r_id exp(-r_id x_td)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.components.k_means import filled, kmeans_centers
from pluri.components.weighted_sums import WeightedSums, split_missing, weighted_sums
from pluri.sequences import HiddenMarkovModel

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ExponentialParameters:
    """rates (k, D): inverse mean waiting times."""

    rates: Array


@dataclass(frozen=True)
class ExponentialEmission:
    """The exponential observation model; `rates` are starting values, chosen from the data if None."""

    update: bool = True
    rates: Array | None = None

    def prepare(self, X: NDArray[Any]) -> Array:
        return np.ascontiguousarray(X, dtype=np.float64)

    def initialize(self, X: Array, n_components: int, rng: np.random.Generator) -> ExponentialParameters:
        if self.rates is not None:
            return ExponentialParameters(self.rates)
        logs = np.log(np.maximum(filled(X), 1e-6))  # a logarithm makes the spread about the same everywhere
        return ExponentialParameters(np.exp(-kmeans_centers(logs, n_components, rng)))

    def log_prob(self, parameters: ExponentialParameters, X: Array, out: Array) -> None:
        k = len(parameters.rates)
        values, observed = split_missing(X)  # a missing value is 0 in `values` and in `observed`
        logs = np.log(parameters.rates)
        out[:, k:] = -np.inf  # compiled functions work on a padded number of states
        out[:, :k] = (logs.sum(axis=1) if observed is None else observed @ logs.T) - values @ parameters.rates.T

    def accumulate(self, parameters: ExponentialParameters, X: Array, posterior: Array) -> WeightedSums:
        return weighted_sums(X, posterior, len(parameters.rates))

    def maximize(self, stats: WeightedSums, parameters: ExponentialParameters) -> ExponentialParameters:
        if not self.update:
            return parameters
        seen = stats.total > 0  # a state that explains nothing keeps its rates
        return ExponentialParameters(
            np.where(seen, stats.exposure / np.where(seen, stats.total, 1.0), parameters.rates)
        )

    def log_prior(self, parameters: ExponentialParameters) -> float:
        return 0.0

    def sample(self, parameters: ExponentialParameters, states: NDArray[np.int64], rng: np.random.Generator) -> Array:
        return rng.exponential(1.0 / parameters.rates[states])

    def n_free(self, parameters: ExponentialParameters) -> int:
        return parameters.rates.size

    def pack(self, parameters: ExponentialParameters) -> Array:
        return np.log(parameters.rates).ravel()

    def unpack(self, vector: Array, like: ExponentialParameters) -> ExponentialParameters:
        return ExponentialParameters(np.exp(vector).reshape(like.rates.shape)) if self.update else like


class ExponentialHMM(HiddenMarkovModel):
    """Hidden Markov model with exponential emissions.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.exponential(1.0, (300, 1)), rng.exponential(20.0, (300, 1))])
    >>> model = ExponentialHMM(n_components=2, random_state=0).fit(X)
    >>> sorted((1.0 / model.rates_).ravel().round().tolist())
    [1.0, 19.0]
    """

    _emission_attributes = {"r": "rates_"}  # noqa: RUF012

    def __init__(
        self,
        n_components: int = 1,
        *,
        startprob_prior: Any = 1.0,
        transmat_prior: Any = 1.0,
        algorithm: str = "viterbi",
        implementation: str = "scaling",
        params: str = "str",
        init_params: str = "str",
        n_iter: int = 100,
        tol: float = 1e-2,
        n_init: int = 1,
        diversity: Any = None,
        warm_start: bool = False,
        acceleration: str | None = None,
        checkpoint: Any = None,
        engine: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.startprob_prior = startprob_prior
        self.transmat_prior = transmat_prior
        self.algorithm = algorithm
        self.implementation = implementation
        self.params = params
        self.init_params = init_params
        self.n_iter = n_iter
        self.tol = tol
        self.n_init = n_init
        self.diversity = diversity
        self.warm_start = warm_start
        self.acceleration = acceleration
        self.checkpoint = checkpoint
        self.engine = engine
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def _check_data(self, X: Any, *, fitting: bool) -> NDArray[Any]:
        data = self._validated(X, fitting)
        if (data < 0).any():
            raise ValueError(f"X must hold waiting times of at least 0, got {np.nanmin(data)}")
        return data

    def _emission(self, given: dict[str, Any]) -> ExponentialEmission:
        return ExponentialEmission("r" in self.params, given.get("rates_"))

    def _emission_parameters(self, emission: ExponentialEmission) -> ExponentialParameters:
        return ExponentialParameters(np.atleast_2d(self.rates_))

    def _store_emission(self, parameters: ExponentialParameters) -> None:
        self.rates_ = parameters.rates

    def _n_features_of_parameters(self) -> int:
        return int(np.shape(self.rates_)[1])
