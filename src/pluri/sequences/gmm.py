"""Hidden Markov model with Gaussian-mixture emissions: p(x_t | state i) = sum_m w_im N(x_t | mu_im, S_im)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pluri.components.gaussian import COVARIANCE_TYPES
from pluri.sequences.emissions.gaussian_mixture import MixtureEmission, MixtureParameters, check_mixture
from pluri.sequences.fitting import Prior
from pluri.sequences.forecasting import ForecastsObservations
from pluri.sequences.gaussian import InUnitsOfTheData
from pluri.sequences.hmm import HiddenMarkovModel
from pluri.sequences.imputing import ImputesObservations
from pluri.validation import Only, Whole, check_broadcast, check_value


class GMMHMM(ForecastsObservations, ImputesObservations, InUnitsOfTheData, HiddenMarkovModel):
    """Hidden Markov model whose states emit from mixtures of Gaussians.

    Parameters
    ----------
    n_components : int, default=1
        Number of states.
    n_mix : int, default=1
        Number of Gaussian components of each state.
    min_covar : float or "auto", default="auto"
        Added to the diagonal of the starting covariances; "auto" is a thousandth of each feature's variance (hmmlearn:
        1e-3).
    startprob_prior, transmat_prior : float, array or prior object, default=1.0
        Dirichlet concentration of the start distribution and of the transition rows; see `GaussianHMM`.
    weights_prior : float or array, default=1.0
        Dirichlet concentration of the mixture weights.
    means_prior, means_weight : float or array, default=0.0
        Location and weight of the normal prior on the means.
    covars_prior, covars_weight : float, array or None, default=None
        Inverse-gamma (spherical, diag: alpha and beta) or inverse-Wishart (full, tied: scale and degrees of freedom)
        prior on the covariances; None is flat.
    algorithm : {"viterbi", "map"}, default="viterbi"
    covariance_type : {"spherical", "diag", "full", "tied"}, default="diag"
        "tied" shares one matrix among the components of a state.
    random_state, n_iter, tol, verbose, implementation
        See `GaussianHMM`.
    params, init_params : str, default="stmcw"
        s (start), t (transitions), m (means), c (covariances), w (weights).
    startprob_init, transmat_init, weights_init, means_init, covars_init : arrays, optional
        Starting values, whatever `init_params` says; see `GaussianHMM`.
    topology, diversity, n_init, warm_start, acceleration, checkpoint, engine, n_jobs
        See `GaussianHMM`.

    Attributes
    ----------
    startprob_ : array of shape (n_components,)
    transmat_ : array of shape (n_components, n_components)
    weights_ : array of shape (n_components, n_mix)
    means_ : array of shape (n_components, n_mix, n_features)
    covars_ : array
        (n_components, n_mix) spherical, (n_components, n_mix, n_features) diag, (n_components, n_mix, n_features,
        n_features) full, (n_components, n_features, n_features) tied.
    history_, converged_, n_iter_, log_det_, state_occupancy_, n_features_in_
        See `GaussianHMM`.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.sequences import GMMHMM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 1)) + rng.choice([-9, -6, 6, 9], size=(300, 1))
    >>> GMMHMM(n_components=2, n_mix=2, random_state=0).fit(X).means_.shape
    (2, 2, 1)
    """

    _emission_attributes = {"m": "means_", "c": "covars_", "w": "weights_"}  # noqa: RUF012

    def __init__(
        self,
        n_components: int = 1,
        n_mix: int = 1,
        min_covar: float | str = "auto",
        startprob_prior: Prior = 1.0,
        transmat_prior: Prior = 1.0,
        weights_prior: ArrayLike = 1.0,
        means_prior: ArrayLike = 0.0,
        means_weight: ArrayLike = 0.0,
        covars_prior: ArrayLike | None = None,
        covars_weight: ArrayLike | None = None,
        algorithm: str = "viterbi",
        covariance_type: str = "diag",
        random_state: Any = None,
        n_iter: int = 100,
        tol: float = 1e-2,
        verbose: int = 0,
        params: str = "stmcw",
        init_params: str = "stmcw",
        implementation: str = "scaling",
        *,
        startprob_init: ArrayLike | None = None,
        transmat_init: ArrayLike | None = None,
        weights_init: ArrayLike | None = None,
        means_init: ArrayLike | None = None,
        covars_init: ArrayLike | None = None,
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
        self.startprob_prior, self.transmat_prior = startprob_prior, transmat_prior
        self.n_mix = n_mix
        self.min_covar = min_covar
        self.weights_prior = weights_prior
        self.means_prior, self.means_weight = means_prior, means_weight
        self.covars_prior, self.covars_weight = covars_prior, covars_weight
        self.covariance_type = covariance_type
        self.algorithm = algorithm
        self.random_state = random_state
        self.n_iter = n_iter
        self.tol = tol
        self.verbose = verbose
        self.params, self.init_params = params, init_params
        self.implementation = implementation
        self.startprob_init, self.transmat_init = startprob_init, transmat_init
        self.weights_init = weights_init
        self.means_init, self.covars_init = means_init, covars_init
        self.topology = topology
        self.diversity = diversity
        self.n_init = n_init
        self.warm_start = warm_start
        self.acceleration = acceleration
        self.checkpoint = checkpoint
        self.engine = engine
        self.n_jobs = n_jobs

    def _emission(self, given: dict[str, Any]) -> MixtureEmission:
        check_value(self.covariance_type, "covariance_type", Only(*COVARIANCE_TYPES))
        check_value(self.n_mix, "n_mix", Whole(1))
        starting = {name: np.asarray(value, dtype=np.float64) for name, value in given.items()}
        check_broadcast("weights_prior", self.weights_prior, (self.n_components, self.n_mix))
        return MixtureEmission(
            n_mix=self.n_mix,
            covariance_type=self.covariance_type,
            min_covar=self._starting_addition(),
            weights_prior=self.weights_prior,
            means_prior=self.means_prior,
            means_weight=self.means_weight,
            covars_prior=self.covars_prior,
            covars_weight=self.covars_weight,
            update_weights="w" in self.params,
            update_means="m" in self.params,
            update_covariances="c" in self.params,
            weights=starting.get("weights_"),
            means=starting.get("means_"),
            covariances=starting.get("covars_"),
        )

    def _emission_parameters(self, emission: MixtureEmission) -> MixtureParameters:
        weights, means, covars = (np.asarray(a, dtype=np.float64) for a in (self.weights_, self.means_, self.covars_))
        n_features = means.shape[2] if means.ndim == 3 else -1
        check_mixture(weights, means, covars, self.covariance_type, (self.n_components, self.n_mix, n_features))
        return emission.parameters(weights, means, covars)

    def _store_emission(self, parameters: MixtureParameters) -> None:
        k, n_mix, gaussians = self.n_components, self.n_mix, parameters.gaussians
        self.weights_ = parameters.weights
        self.means_ = gaussians.means.reshape(k, n_mix, -1)
        lead = (k,) if self.covariance_type == "tied" else (k, n_mix)
        self.covars_ = gaussians.covariances.reshape(*lead, *gaussians.covariances.shape[1:])

    def _n_features_of_parameters(self) -> int:
        return int(np.shape(self.means_)[2])
