"""Hidden Markov model with Poisson emissions: p(x_t | state i) = prod_d Poisson(x_td | lambda_id)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from pluri.sequences.counts import check_counts
from pluri.sequences.hmm import HiddenMarkovModel, Prior
from pluri.sequences.inputs import check_broadcast, check_width
from pluri.sequences.starting_values import filled, kmeans_centers
from pluri.sequences.weighted_sums import WeightedSums, split_missing, weighted_sums

Array = NDArray[np.float64]

#: A rate of exactly zero is read as this: a count there is all but impossible, a zero costs nothing.
SMALLEST_RATE = 1e-300


@dataclass(frozen=True)
class PoissonParameters:
    """rates (k, D): expected counts."""

    rates: Array


@dataclass(frozen=True)
class PoissonEmission:
    """The Poisson observation model, with the prior density prod rate^events exp(-exposure rate)."""

    events: Any = 0.0
    exposure: Any = 0.0
    update: bool = True
    rates: Array | None = None

    def prepare(self, X: NDArray[Any]) -> Array:
        return check_counts(np.ascontiguousarray(X, dtype=np.float64))

    def initialize(self, X: Array, n_components: int, rng: np.random.Generator) -> PoissonParameters:
        if self.rates is not None:
            return PoissonParameters(self.rates)
        # The square root makes the variance of a count about the same everywhere.
        complete = filled(X)
        centers = kmeans_centers(np.sqrt(complete), n_components, rng) ** 2
        return PoissonParameters(np.maximum(centers, 1e-2 * max(float(complete.mean()), 1e-2)))

    def log_prob(self, parameters: PoissonParameters, X: Array, out: Array) -> None:
        k = len(parameters.rates)
        check_width(X, parameters.rates.shape[1])
        values, observed = split_missing(X)
        out[:, k:] = -np.inf
        out[:, :k] = values @ np.log(np.maximum(parameters.rates, SMALLEST_RATE)).T
        out[:, :k] -= parameters.rates.sum(axis=1) if observed is None else observed @ parameters.rates.T
        out[:, :k] -= gammaln(values + 1.0).sum(axis=1, keepdims=True)

    def accumulate(self, parameters: PoissonParameters, X: Array, posterior: Array) -> WeightedSums:
        return weighted_sums(X, posterior, len(parameters.rates))

    def maximize(self, stats: WeightedSums, parameters: PoissonParameters) -> PoissonParameters:
        if not self.update:
            return parameters
        exposure = stats.exposure + self.exposure
        seen = exposure > 0
        rates = (stats.total + self.events) / np.where(seen, exposure, 1.0)
        return PoissonParameters(np.where(seen, rates, parameters.rates))

    def log_prior(self, parameters: PoissonParameters) -> float:
        if not self.update:
            return 0.0
        logs = np.log(np.maximum(parameters.rates, SMALLEST_RATE))
        return float(np.sum(self.events * logs - self.exposure * parameters.rates))

    def sample(self, parameters: PoissonParameters, states: NDArray[np.int64], rng: np.random.Generator) -> Any:
        return rng.poisson(parameters.rates[states])

    def n_free(self, parameters: PoissonParameters) -> int:
        return parameters.rates.size

    def pack(self, parameters: PoissonParameters) -> Array:
        return np.log(np.maximum(parameters.rates, SMALLEST_RATE)).ravel()

    def unpack(self, vector: Array, like: PoissonParameters) -> PoissonParameters:
        return PoissonParameters(np.exp(vector).reshape(like.rates.shape)) if self.update else like


class PoissonHMM(HiddenMarkovModel):
    """Hidden Markov model with Poisson emissions: counts, independent given the state.

    Parameters
    ----------
    n_components : int, default=1
        Number of states.
    startprob_prior, transmat_prior : float, array or prior object, default=1.0
        Dirichlet concentration of the start distribution and of the transition rows; see `GaussianHMM`.
    lambdas_prior, lambdas_weight : float or array, default=0.0
        Gamma prior on the rates as pseudo-data: so many events, seen in so many samples.
    algorithm, random_state, n_iter, tol, verbose, implementation
        See `GaussianHMM`.
    params, init_params : str, default="stl"
        s (start), t (transitions), l (rates).
    diversity, n_init, warm_start, acceleration, checkpoint, engine, n_jobs
        See `GaussianHMM`.

    Attributes
    ----------
    startprob_ : array of shape (n_components,)
    transmat_ : array of shape (n_components, n_components)
    lambdas_ : array of shape (n_components, n_features)
        Expected counts of each state.
    history_, converged_, n_iter_, log_det_, state_occupancy_, n_features_in_
        See `GaussianHMM`.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.sequences import PoissonHMM
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.poisson(2, (100, 1)), rng.poisson(20, (100, 1))])
    >>> sorted(PoissonHMM(n_components=2, random_state=0).fit(X).lambdas_.round().ravel().tolist())
    [2.0, 20.0]
    """

    _emission_attributes = {"l": "lambdas_"}  # noqa: RUF012

    def __init__(
        self,
        n_components: int = 1,
        startprob_prior: Prior = 1.0,
        transmat_prior: Prior = 1.0,
        lambdas_prior: ArrayLike = 0.0,
        lambdas_weight: ArrayLike = 0.0,
        algorithm: str = "viterbi",
        random_state: Any = None,
        n_iter: int = 100,
        tol: float = 1e-2,
        verbose: int = 0,
        params: str = "stl",
        init_params: str = "stl",
        implementation: str = "scaling",
        *,
        diversity: Any = None,
        n_init: int = 1,
        warm_start: bool = False,
        acceleration: str | None = None,
        checkpoint: Any = None,
        engine: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.startprob_prior = startprob_prior
        self.transmat_prior = transmat_prior
        self.lambdas_prior = lambdas_prior
        self.lambdas_weight = lambdas_weight
        self.algorithm = algorithm
        self.random_state = random_state
        self.n_iter = n_iter
        self.tol = tol
        self.verbose = verbose
        self.params = params
        self.init_params = init_params
        self.implementation = implementation
        self.diversity = diversity
        self.n_init = n_init
        self.warm_start = warm_start
        self.acceleration = acceleration
        self.checkpoint = checkpoint
        self.engine = engine
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags

    def _check_data(self, X: Any, *, fitting: bool) -> NDArray[Any]:
        return check_counts(self._validated(X, fitting))

    def _emission(self, given: dict[str, Any]) -> PoissonEmission:
        shape = (self.n_components, self.n_features)
        events = check_broadcast("lambdas_prior", _per_state(self.lambdas_prior, shape), shape, least=0.0)
        exposure = check_broadcast("lambdas_weight", _per_state(self.lambdas_weight, shape), shape, least=0.0)
        rates = self._checked_rates() if "lambdas_" in given else None
        return PoissonEmission(events, exposure, "l" in self.params, rates)

    def _checked_rates(self) -> Array:
        rates = np.atleast_2d(np.asarray(self.lambdas_, dtype=np.float64))
        if len(rates) != self.n_components:
            raise ValueError(f"lambdas_ must have {self.n_components} rows (n_components), got {len(rates)}")
        if not (np.isfinite(rates) & (rates >= 0)).all():
            raise ValueError("lambdas_ must be finite and non-negative")
        return rates

    def _emission_parameters(self, emission: PoissonEmission) -> PoissonParameters:
        return PoissonParameters(self._checked_rates())

    def _store_emission(self, parameters: PoissonParameters) -> None:
        self.lambdas_ = parameters.rates

    def _n_features_of_parameters(self) -> int:
        return int(np.atleast_2d(self.lambdas_).shape[1])


def _per_state(value: Any, shape: tuple[int, int]) -> Any:
    """A value for each state as a column."""
    return np.asarray(value)[:, None] if np.shape(value) == shape[:1] else value
