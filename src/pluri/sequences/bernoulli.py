"""Hidden Markov model with Bernoulli emissions: p(x_t | state i) = prod_d p_id^x_td (1 - p_id)^(1 - x_td)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.components.bernoulli import MARGIN, BernoulliFamily, BernoulliParameters
from pluri.engine import Batch
from pluri.sequences.fitting import Prior
from pluri.sequences.forecasting import ForecastsObservations
from pluri.sequences.hmm import HiddenMarkovModel
from pluri.sequences.imputing import ImputesObservations
from pluri.validation import Number, Only, check_broadcast, check_value
from pluri.validation.inputs import warn_of_one_side

Array = NDArray[np.float64]


class BernoulliHMM(ForecastsObservations, ImputesObservations, HiddenMarkovModel):
    """Hidden Markov model with Bernoulli emissions: vectors of zeros and ones, independent given the state.

    Parameters
    ----------
    n_components : int, default=1
        Number of states.
    startprob_prior, transmat_prior : float, array or prior object, default=1.0
        Dirichlet concentration of the start distribution and of the transition rows; see `GaussianHMM`.
    probs_prior : float or array, default=1.0
        Both parameters of the beta prior on the probabilities: ``probs_prior - 1`` ones and as many zeros are added
        to every state and feature; at least 1.
    algorithm, random_state, n_iter, tol, verbose, implementation
        See `GaussianHMM`.
    params, init_params : str, default="ste"
        s (start), t (transitions), e (probabilities).
    binarize : float or None, default=0.0
        Values above this are ones (as in scikit-learn's `BernoulliNB`); None if X already holds zeros and ones.
    startprob_init, transmat_init, probs_init : arrays, optional
        Starting values, whatever `init_params` says; see `GaussianHMM`.
    topology, diversity, n_init, warm_start, acceleration, checkpoint, engine, n_jobs
        See `GaussianHMM`.

    Attributes
    ----------
    startprob_ : array of shape (n_components,)
    transmat_ : array of shape (n_components, n_components)
    probs_ : array of shape (n_components, n_features)
    history_, converged_, n_iter_, log_det_, state_occupancy_, n_features_in_
        See `GaussianHMM`.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.sequences import BernoulliHMM
    >>> X = np.tile([[1, 1, 0], [1, 1, 0], [0, 0, 1]], (20, 1))
    >>> model = BernoulliHMM(n_components=2, random_state=0).fit(X)
    >>> model.predict(X)[:6].tolist() in ([0, 0, 1, 0, 0, 1], [1, 1, 0, 1, 1, 0])
    True
    """

    _emission_attributes = {"e": "probs_"}  # noqa: RUF012

    def __init__(
        self,
        n_components: int = 1,
        startprob_prior: Prior = 1.0,
        transmat_prior: Prior = 1.0,
        probs_prior: Any = 1.0,
        algorithm: str = "viterbi",
        random_state: Any = None,
        n_iter: int = 100,
        tol: float = 1e-2,
        verbose: int = 0,
        params: str = "ste",
        init_params: str = "ste",
        implementation: str = "scaling",
        *,
        binarize: float | None = 0.0,
        startprob_init: ArrayLike | None = None,
        transmat_init: ArrayLike | None = None,
        probs_init: ArrayLike | None = None,
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
        self.probs_prior = probs_prior
        self.binarize = binarize
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
        self.probs_init = probs_init
        self.topology = topology
        self.diversity = diversity
        self.n_init = n_init
        self.warm_start = warm_start
        self.acceleration = acceleration
        self.checkpoint = checkpoint
        self.engine = engine
        self.n_jobs = n_jobs

    def _check_data(self, X: Any, *, fitting: bool) -> NDArray[Any]:
        check_value(self.binarize, "binarize", Number(finite=False) | Only(None))
        data = self._validated(X, fitting)
        if self.binarize is None and not np.isin(data[~np.isnan(data)], (0.0, 1.0)).all():
            raise ValueError("X must hold only zeros and ones (and NaN) when binarize is None")
        return data

    def _sequences(self, X: Any, lengths: ArrayLike | None, *, fitting: bool) -> tuple[NDArray[Any], NDArray[np.int64]]:
        data, counts = super()._sequences(X, lengths, fitting=fitting)
        if fitting:
            warn_of_one_side(data, self.binarize)
        return data, counts

    def _check_batch(self, batch: Batch) -> None:
        super()._check_batch(batch)
        warn_of_one_side(batch.X, self.binarize, "the first batch of X")

    def _emission(self, given: dict[str, Any]) -> BernoulliFamily:
        shape = (self.n_components, self.n_features)
        pseudo_count = check_broadcast("probs_prior", self.probs_prior, shape, least=1.0) - 1.0
        probs = self._checked_probs() if "probs_" in given else None
        return BernoulliFamily(pseudo_count, self.binarize, "e" in self.params, probs)

    def _checked_probs(self) -> Array:
        probs = np.atleast_2d(np.asarray(self.probs_, dtype=np.float64))
        if len(probs) != self.n_components:
            raise ValueError(f"probs_ must have {self.n_components} rows (n_components), got {len(probs)}")
        if not ((probs >= 0) & (probs <= 1)).all():
            raise ValueError("probs_ must lie between 0 and 1")
        return np.clip(probs, MARGIN, 1.0 - MARGIN)

    def _emission_parameters(self, emission: BernoulliFamily) -> BernoulliParameters:
        return BernoulliParameters(self._checked_probs())

    def _store_emission(self, parameters: BernoulliParameters) -> None:
        self.probs_ = parameters.probs

    def _n_features_of_parameters(self) -> int:
        return int(np.atleast_2d(self.probs_).shape[1])
