"""Hidden Markov model with multinomial emissions: vectors of counts, p(x_t | state i) = Mult(x_t | n_t, b_i)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.components.multinomial import MultinomialFamily, MultinomialParameters
from pluri.priors import Dirichlet, as_row_prior
from pluri.sequences.fitting import Prior
from pluri.sequences.forecasting import ForecastsObservations
from pluri.sequences.hmm import HiddenMarkovModel
from pluri.validation import check_broadcast, check_distributions
from pluri.validation.inputs import check_counts

Array = NDArray[np.float64]

FLAT = Dirichlet(1.0)


class MultinomialHMM(ForecastsObservations, HiddenMarkovModel):
    """Hidden Markov model with multinomial emissions: each sample is a vector of counts.

    A row with a NaN is missing as a whole: the count of one symbol says nothing without the number of trials.

    Parameters
    ----------
    n_components : int, default=1
        Number of states.
    n_trials : int, array or None, default=None
        Sum of the counts of a sample: checked if given, and what `sample` draws.
    startprob_prior, transmat_prior : float, array or prior object, default=1.0
        Dirichlet concentration of the start distribution and of the transition rows; see `GaussianHMM`.
    algorithm, random_state, n_iter, tol, verbose, implementation
        See `GaussianHMM`.
    params, init_params : str, default="ste"
        s (start), t (transitions), e (symbol probabilities).
    emissionprob_prior : float, array or prior object, default=1.0
        Dirichlet concentration of the symbol probabilities.
    startprob_init, transmat_init, emissionprob_init : arrays, optional
        Starting values, whatever `init_params` says; see `GaussianHMM`.
    topology, diversity, n_init, warm_start, acceleration, checkpoint, engine, n_jobs
        See `GaussianHMM`.

    Attributes
    ----------
    startprob_ : array of shape (n_components,)
    transmat_ : array of shape (n_components, n_components)
    emissionprob_ : array of shape (n_components, n_features)
    n_trials_ : int or None
        The number of trials, if it is the same in all samples.
    history_, converged_, n_iter_, log_det_, state_occupancy_, n_features_in_
        See `GaussianHMM`.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.sequences import MultinomialHMM
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.multinomial(9, [0.8, 0.1, 0.1], 50), rng.multinomial(9, [0.1, 0.1, 0.8], 50)])
    >>> model = MultinomialHMM(n_components=2, random_state=0).fit(X)
    >>> len(set(model.predict(X)[:50].tolist()))
    1
    """

    _emission_attributes = {"e": "emissionprob_"}  # noqa: RUF012
    _input_tags: ClassVar[Mapping[str, bool]] = {"positive_only": True}

    def __init__(
        self,
        n_components: int = 1,
        n_trials: Any = None,
        startprob_prior: Prior = 1.0,
        transmat_prior: Prior = 1.0,
        algorithm: str = "viterbi",
        random_state: Any = None,
        n_iter: int = 100,
        tol: float = 1e-2,
        verbose: int = 0,
        params: str = "ste",
        init_params: str = "ste",
        implementation: str = "scaling",
        *,
        emissionprob_prior: Prior = 1.0,
        startprob_init: ArrayLike | None = None,
        transmat_init: ArrayLike | None = None,
        emissionprob_init: ArrayLike | None = None,
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
        self.n_trials = n_trials
        self.emissionprob_prior = emissionprob_prior
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
        self.emissionprob_init = emissionprob_init
        self.topology = topology
        self.diversity = diversity
        self.n_init = n_init
        self.warm_start = warm_start
        self.acceleration = acceleration
        self.checkpoint = checkpoint
        self.engine = engine
        self.n_jobs = n_jobs

    def _check_data(self, X: Any, *, fitting: bool) -> NDArray[Any]:
        data = check_counts(self._validated(X, fitting))
        sums = data.sum(axis=1)
        seen = sums[~np.isnan(sums)]
        if fitting:
            if self.n_trials is not None and not np.allclose(seen, _trials(self.n_trials, sums)):
                raise ValueError("X must have rows that add up to n_trials, got other sums")
            if data.shape[1] == 1 and len(np.unique(seen)) > 1:
                warnings.warn(
                    "X has one column, so that all states emit alike: for a column of symbols, use CategoricalHMM",
                    UserWarning,
                    stacklevel=7,
                )
            self.n_trials_ = int(seen[0]) if len(seen) and np.all(seen == seen[0]) else None
        return data

    def _emission(self, given: dict[str, Any]) -> MultinomialFamily:
        n_trials = getattr(self, "n_trials_", None)
        if n_trials is None and self.n_trials is not None and np.unique(np.asarray(self.n_trials)).size == 1:
            n_trials = int(np.asarray(self.n_trials).ravel()[0])
        return MultinomialFamily(
            n_trials,
            as_row_prior("emissionprob_prior", self.emissionprob_prior, (self.n_components, self.n_features)),
            "e" in self.params,
            self._checked_probabilities() if "emissionprob_" in given else None,
        )

    def _checked_probabilities(self) -> Array:
        probabilities = np.atleast_2d(np.asarray(self.emissionprob_, dtype=np.float64))
        if len(probabilities) != self.n_components:
            raise ValueError(f"emissionprob_ must have {self.n_components} rows, got {len(probabilities)}")
        check_distributions("emissionprob_", probabilities)
        return probabilities

    def _emission_parameters(self, emission: MultinomialFamily) -> MultinomialParameters:
        return MultinomialParameters(self._checked_probabilities())

    def _store_emission(self, parameters: MultinomialParameters) -> None:
        self.emissionprob_ = parameters.probabilities

    def _n_features_of_parameters(self) -> int:
        return int(np.atleast_2d(self.emissionprob_).shape[1])


def _trials(n_trials: Any, sums: Array) -> Array:
    """Trials of each observed sample."""
    return check_broadcast("n_trials", n_trials, sums.shape, least=0.0)[~np.isnan(sums)]
