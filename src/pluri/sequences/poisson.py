"""Hidden Markov model with Poisson emissions: p(x_t | state i) = prod_d Poisson(x_td | lambda_id)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.components.poisson import PoissonFamily, PoissonParameters
from pluri.sequences.fitting import Prior
from pluri.sequences.forecasting import ForecastsObservations
from pluri.sequences.hmm import HiddenMarkovModel
from pluri.sequences.imputing import ImputesObservations
from pluri.validation import check_broadcast
from pluri.validation.inputs import check_counts

Array = NDArray[np.float64]


class PoissonHMM(ForecastsObservations, ImputesObservations, HiddenMarkovModel):
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
    startprob_init, transmat_init, lambdas_init : arrays, optional
        Starting values, whatever `init_params` says; see `GaussianHMM`.
    topology, diversity, n_init, warm_start, acceleration, checkpoint, engine, n_jobs
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
    _input_tags: ClassVar[Mapping[str, bool]] = {"positive_only": True}

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
        startprob_init: ArrayLike | None = None,
        transmat_init: ArrayLike | None = None,
        lambdas_init: ArrayLike | None = None,
        topology: Any = "ergodic",
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
        self.startprob_init = startprob_init
        self.transmat_init = transmat_init
        self.lambdas_init = lambdas_init
        self.topology = topology
        self.diversity = diversity
        self.n_init = n_init
        self.warm_start = warm_start
        self.acceleration = acceleration
        self.checkpoint = checkpoint
        self.engine = engine
        self.n_jobs = n_jobs

    def _check_data(self, X: Any, *, fitting: bool) -> NDArray[Any]:
        return check_counts(self._validated(X, fitting))

    def _emission(self, given: dict[str, Any]) -> PoissonFamily:
        shape = (self.n_components, self.n_features)
        events = check_broadcast("lambdas_prior", _per_state(self.lambdas_prior, shape), shape, least=0.0)
        exposure = check_broadcast("lambdas_weight", _per_state(self.lambdas_weight, shape), shape, least=0.0)
        rates = self._checked_rates() if "lambdas_" in given else None
        return PoissonFamily(events, exposure, "l" in self.params, rates)

    def _checked_rates(self) -> Array:
        rates = np.atleast_2d(np.asarray(self.lambdas_, dtype=np.float64))
        if len(rates) != self.n_components:
            raise ValueError(f"lambdas_ must have {self.n_components} rows (n_components), got {len(rates)}")
        if not (np.isfinite(rates) & (rates >= 0)).all():
            raise ValueError("lambdas_ must be finite and non-negative")
        return rates

    def _emission_parameters(self, emission: PoissonFamily) -> PoissonParameters:
        return PoissonParameters(self._checked_rates())

    def _store_emission(self, parameters: PoissonParameters) -> None:
        self.lambdas_ = parameters.rates

    def _n_features_of_parameters(self) -> int:
        return int(np.atleast_2d(self.lambdas_).shape[1])


def _per_state(value: Any, shape: tuple[int, int]) -> Any:
    """A value for each state as a column."""
    return np.asarray(value)[:, None] if np.shape(value) == shape[:1] else value
