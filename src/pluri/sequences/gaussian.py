"""Hidden Markov model with Gaussian emissions, p(x_t | state i) = N(x_t | mu_i, S_i), defaults in units of the data.

hmmlearn's ``covars_prior=1e-2`` and ``min_covar=1e-3`` are in the squared unit of the data, whatever that is: 200 daily
returns with a standard deviation of 0.006 have a sum of squares of 0.0072, less than the prior adds to it. "auto" is a
share of each feature's variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.components.gaussian import (
    COVARIANCE_TYPES,
    GaussianComponents,
    GaussianParameters,
    GaussianPrior,
    check_magnitude,
)
from pluri.components.k_means import centers_and_covariance, spread_covariance
from pluri.engine import Source
from pluri.engine.first_rows import weighted_initial_rows
from pluri.sequences.fitting import Prior
from pluri.sequences.forecasting import ForecastsObservations
from pluri.sequences.hmm import HiddenMarkovModel
from pluri.sequences.imputing import ImputesObservations
from pluri.validation import Only, check_broadcast, check_covariances, check_value

Array = NDArray[np.float64]

#: Scale of the prior, and what is added to the starting variances, as a share of each feature's variance.
SHARE = 1e-3


@dataclass(frozen=True)
class GaussianEmission(GaussianComponents):
    """The Gaussian observation model; `means` and `covariances` are starting values, chosen from the data if None."""

    covariance_type: str = "diag"
    min_covar: Any = 1e-3
    means_prior: Any = 0.0
    means_weight: Any = 0.0
    covars_prior: Any = 1e-2
    covars_weight: Any = 1.0
    update_means: bool = True
    update_covariances: bool = True
    means: Array | None = None
    covariances: Array | None = None

    def initialize(self, X: Array, n_components: int, rng: np.random.Generator) -> GaussianParameters:
        means, covariances = self.means, self.covariances
        if means is not None and means.shape != (n_components, X.shape[1]):
            raise ValueError(f"means_ must have shape ({n_components}, {X.shape[1]}), got {means.shape}")
        if means is not None and not np.isfinite(means).all():
            raise ValueError("means_ must be finite")
        if means is None or covariances is None:
            centers, covariance = centers_and_covariance(X, n_components, rng, with_centers=means is None)
            covariance = covariance + self.min_covar * np.eye(X.shape[1])
            means = centers if means is None else means
            if covariances is None:
                covariances = spread_covariance(covariance, self.covariance_type, n_components)
        check_covariances(covariances, self.covariance_type, n_components, X.shape[1])
        parameters = self.parameters(means, covariances)
        self.prior(parameters)  # refuses hyper-parameters that do not fit, before the first sweep
        return parameters

    def prior(self, parameters: GaussianParameters) -> GaussianPrior:
        """Hmmlearn's hyper-parameters in the form of `pluri.components.gaussian`.

        A scalar `covars_prior` of a matrix-valued covariance is that multiple of the identity.
        """
        k, n_features = parameters.means.shape
        location = check_broadcast("means_prior", _per_state(self.means_prior, k), (k, n_features))
        weight = check_broadcast("means_weight", self.means_weight, (k,), least=0.0)
        if parameters.kind == "full":
            n_matrices = len(parameters.covariances)
            scale = self.covars_prior
            if np.ndim(scale) < 2:
                scale = check_broadcast("covars_prior", scale, (n_matrices,), least=0.0)[:, None, None]
                scale = scale * np.eye(n_features)
            degrees = check_broadcast("covars_weight", self.covars_weight, (n_matrices,)) - n_features
            return GaussianPrior(
                location,
                weight,
                check_broadcast("covars_prior", scale, (n_matrices, n_features, n_features)),
                np.maximum(degrees, 0.0),
            )
        degrees = check_broadcast("covars_weight", _per_state(self.covars_weight, k), (k, n_features)) - 1.0
        return GaussianPrior(
            location,
            weight,
            check_broadcast("covars_prior", _per_state(self.covars_prior, k), (k, n_features), least=0.0),
            np.maximum(degrees, 0.0),
        )


def _per_state(value: Any, n_components: int) -> Any:
    """A scalar, a value for each state (k,), or a (k, D) array, ready to broadcast against (k, D)."""
    return np.asarray(value)[:, None] if np.shape(value) == (n_components,) else value


def feature_moments(source: Source) -> tuple[Array, Array]:
    """Mean and variance of each feature in the first rows of the data; variance 1 if it is constant or never seen."""
    rows, weight = weighted_initial_rows(source, lambda X: check_magnitude(np.asarray(X, dtype=np.float64)))
    seen = ~np.isnan(rows)
    shares = seen * (1.0 if weight is None else weight[:, None] / weight.sum())
    total = shares.sum(axis=0)
    shares = shares / np.where(total > 0, total, 1.0)
    mean = (shares * np.where(seen, rows, 0.0)).sum(axis=0)
    variance = (shares * np.where(seen, rows - mean, 0.0) ** 2).sum(axis=0)
    # What rounding leaves of a constant is no scale to go by.
    return mean, np.where(variance > (1e-12 * np.abs(mean)) ** 2, variance, 1.0)


def is_auto(value: Any) -> bool:
    """Whether a setting is left to the data."""
    return isinstance(value, str) and value == "auto"


class InUnitsOfTheData:
    """For models with Gaussian emissions: learns the variances of the features before the fit."""

    min_covar: Any
    feature_variance_: Array

    def _source(self, X: Any, lengths: Any, sequence_weight: Any, labels: Any = None) -> Any:
        source, n_samples = super()._source(X, lengths, sequence_weight, labels)  # type: ignore[misc]
        self.feature_variance_ = feature_moments(source)[1]
        return source, n_samples

    def _feature_variance(self) -> Array | float:
        """The variances; 1 if the parameters were set by hand, when nothing depends on it."""
        return getattr(self, "feature_variance_", 1.0)

    def _starting_addition(self) -> Array:
        """What is added to the starting variances: a number, or one for each feature."""
        if is_auto(self.min_covar):
            return np.asarray(SHARE * self._feature_variance())
        return check_broadcast("min_covar", self.min_covar, (), least=0.0)


class KeepsCovariances(InUnitsOfTheData):
    """For models with one Gaussian a state: covariances in the shape of `covariance_type`, and their prior's scale."""

    n_components: int
    n_features: int
    covariance_type: str
    covars_prior: Any
    _covars_: Array

    @property
    def covars_(self) -> Array:
        """Covariance matrices of the states: (n_components, n_features, n_features)."""
        covars = self._covars_
        # The means may not be set yet (or be wrong); only a spherical covariance does not know its width.
        n_features = self._n_outputs() if self.covariance_type == "spherical" else covars.shape[-1]
        return expand_covariances(covars, self.covariance_type, self.n_components, n_features)

    @covars_.setter
    def covars_(self, covars: ArrayLike) -> None:
        array = np.array(covars, dtype=np.float64)
        if self.covariance_type == "spherical" and array.size == self.n_components:
            array = array.reshape(-1)
        check_covariances(array, self.covariance_type, self.n_components)
        self._covars_ = array

    def _n_outputs(self) -> int:
        """Width of the covariances."""
        return self.n_features

    def _covars_scale(self) -> Any:
        """The scale of the prior: as given, or in units of the features' variances."""
        if not is_auto(self.covars_prior):
            return self.covars_prior
        if not hasattr(self, "feature_variance_"):
            return SHARE  # parameters set by hand: no prior is asked for
        scale = SHARE * self.feature_variance_
        return np.diag(scale) if self.covariance_type in ("full", "tied") else np.tile(scale, (self.n_components, 1))


class GaussianHMM(ForecastsObservations, ImputesObservations, KeepsCovariances, HiddenMarkovModel):
    """Hidden Markov model with Gaussian emissions.

    Parameters
    ----------
    n_components : int, default=1
        Number of states.
    covariance_type : {"spherical", "diag", "full", "tied"}, default="diag"
        One variance a state, one a state and feature, a matrix a state, or one matrix shared by all states.
    min_covar : float or "auto", default="auto"
        Added to the diagonal of the starting covariances; "auto" is a thousandth of each feature's variance (hmmlearn:
        1e-3).
    startprob_prior, transmat_prior : float, array or prior object, default=1.0
        Dirichlet concentration of the start distribution and of the rows of the transition matrix; below 1 asks for
        sparse rows. `transmat_prior` also takes `pluri.priors.Sticky`.
    means_prior, means_weight : float or array, default=0
        Location and weight of the normal prior on the means; weight 0 is no prior.
    covars_prior, covars_weight : float or array, default="auto" and 1
        Scale and weight of the inverse-gamma (spherical, diag) or inverse-Wishart (full, tied) prior. The small
        default scale keeps a state from collapsing onto one point: "auto" is a thousandth of each feature's variance,
        in whatever unit it comes. hmmlearn's default is the number 1e-2, which is large for data of a small scale.
    algorithm : {"viterbi", "map"}, default="viterbi"
        What `predict` and `decode` return: the most probable path, or the most probable state at each step.
    random_state : int, numpy Generator, RandomState or None, default=None
        Seed of the starting values and of `sample`.
    n_iter : int, default=100
        Largest number of EM iterations of a run.
    tol : float, default=1e-2
        EM stops when the objective (log-likelihood plus log prior) gains less than this.
    verbose : int, default=0
        1 shows a progress bar.
    params, init_params : str, default="stmc"
        Which parameters EM updates, and which are set from the data first: s (start), t (transitions), m (means),
        c (covariances). Set the others as attributes before `fit`, or better by the next four arguments.
    implementation : {"scaling", "log"}, default="scaling"
        Scaled recursion (with log space where it underflows), or log space throughout (slower).
    startprob_init, transmat_init, means_init, covars_init : arrays, optional
        Starting values, whatever `init_params` says; `covars_init` in the shape of `covariance_type`. A probability
        of zero stays zero; one that is positive where `topology` has none is refused. Unlike attributes they survive
        `clone`, and so cross-validation and searches.
    topology : {"ergodic", "left-right", "cyclic"} or mask of shape (n_components, n_components), default="ergodic"
        Transitions that may happen; all others have probability zero, exactly. "left-right": to the same state or to
        any later one, starting in state 0, and the starting values of the emissions come from consecutive parts of
        the sequences. "cyclic": to the same state or the next, from the last to the first. A mask holds 0 and 1.
        States of a cycle or of a mask start in no order, so that `n_init` above 1 helps.
    diversity : float or `pluri.priors.Diversity`, default=None
        Strength of the determinantal prior that keeps the rows of the transition matrix apart; 0 or None is none.
    n_init : int, default=1
        Number of runs from different starting values; the best one is kept.
    warm_start : bool, default=False
        Go on from the parameters of the last `fit`.
    acceleration : {"squarem", "anderson"} or None, default=None
        Extrapolate the EM steps; the objective still never falls.
    checkpoint : path or None, default=None
        File in which to keep the state of the fit; a fit that finds it goes on from there.
    engine : {"serial", "threads", "dask"}, `distributed.Client` or None, default=None
        Where the E-step runs.
    n_jobs : int or None, default=None
        Number of threads; -1 is all cores.

    Attributes
    ----------
    startprob_ : array of shape (n_components,)
    transmat_ : array of shape (n_components, n_components)
    means_ : array of shape (n_components, n_features)
    covars_ : array of shape (n_components, n_features, n_features)
        Always full matrices when read; set it in the shape of `covariance_type`.
    history_ : `pluri.inference.History`
        Objective, log-likelihood and seconds of every iteration of every run.
    converged_ : bool
    n_iter_ : int
    log_det_ : float
        log det of the transition rows' kernel: 0 for a permutation, -inf if two rows are alike.
    state_occupancy_ : array of shape (n_components,)
        Expected number of samples in each state.
    feature_variance_ : array of shape (n_features,)
        What "auto" is relative to.
    n_features_in_ : int

    Examples
    --------
    >>> from pluri.datasets import make_toy_hmm
    >>> from pluri.sequences import GaussianHMM
    >>> toy = make_toy_hmm(random_state=0)
    >>> model = GaussianHMM(n_components=5, diversity=1.0, random_state=0).fit(toy.X, lengths=toy.lengths)
    >>> sorted(model.means_[:, 0].round().tolist())
    [1.0, 2.0, 3.0, 4.0, 5.0]
    """

    _emission_attributes = {"m": "means_", "c": "covars_"}  # noqa: RUF012
    means_: Array

    def __init__(
        self,
        n_components: int = 1,
        covariance_type: str = "diag",
        min_covar: float | str = "auto",
        startprob_prior: Prior = 1.0,
        transmat_prior: Prior = 1.0,
        means_prior: ArrayLike = 0,
        means_weight: ArrayLike = 0,
        covars_prior: ArrayLike | str = "auto",
        covars_weight: ArrayLike = 1,
        algorithm: str = "viterbi",
        random_state: Any = None,
        n_iter: int = 100,
        tol: float = 1e-2,
        verbose: int = 0,
        params: str = "stmc",
        init_params: str = "stmc",
        implementation: str = "scaling",
        *,
        startprob_init: ArrayLike | None = None,
        transmat_init: ArrayLike | None = None,
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
        self.covariance_type = covariance_type
        self.min_covar = min_covar
        self.startprob_prior = startprob_prior
        self.transmat_prior = transmat_prior
        self.means_prior = means_prior
        self.means_weight = means_weight
        self.covars_prior = covars_prior
        self.covars_weight = covars_weight
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
        self.means_init = means_init
        self.covars_init = covars_init
        self.topology = topology
        self.diversity = diversity
        self.n_init = n_init
        self.warm_start = warm_start
        self.acceleration = acceleration
        self.checkpoint = checkpoint
        self.engine = engine
        self.n_jobs = n_jobs

    def _emission(self, given: dict[str, Array]) -> GaussianEmission:
        check_value(self.covariance_type, "covariance_type", Only(*COVARIANCE_TYPES))
        return GaussianEmission(
            covariance_type=self.covariance_type,
            min_covar=self._starting_addition(),
            means_prior=self.means_prior,
            means_weight=self.means_weight,
            covars_prior=self._covars_scale(),
            covars_weight=self.covars_weight,
            update_means="m" in self.params,
            update_covariances="c" in self.params,
            means=np.asarray(given["means_"], dtype=np.float64) if "means_" in given else None,
            covariances=self._covars_ if "covars_" in given else None,
        )

    def _emission_parameters(self, emission: GaussianEmission) -> GaussianParameters:
        means = np.asarray(self.means_, dtype=np.float64)
        if means.ndim != 2 or len(means) != self.n_components:
            raise ValueError(f"means_ must have shape ({self.n_components}, n_features), got {means.shape}")
        if not np.isfinite(means).all():
            raise ValueError("means_ must be finite")
        check_covariances(self._covars_, self.covariance_type, self.n_components, means.shape[1])
        return emission.parameters(means, self._covars_)

    def _store_emission(self, parameters: GaussianParameters) -> None:
        self.means_ = parameters.means
        self._covars_ = parameters.covariances[0] if self.covariance_type == "tied" else parameters.covariances

    def _n_features_of_parameters(self) -> int:
        return int(np.shape(self.means_)[1])


def expand_covariances(covars: Array, covariance_type: str, n_components: int, n_features: int) -> Array:
    """Full matrices, (n_components, n_features, n_features), of covariances of any type."""
    diagonal = np.eye(n_features, dtype=bool)
    if covariance_type == "spherical":
        return np.where(diagonal, np.asarray(covars).reshape(n_components, -1)[:, :1, None], 0.0)
    if covariance_type == "diag":
        return np.where(diagonal, covars[:, :, None], 0.0)
    if covariance_type == "full":
        return covars
    return np.tile(covars, (n_components, 1, 1))
