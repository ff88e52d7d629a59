"""Mixture of factor analysers by EM: local linear subspaces, each with its own noise.

``y | j ~ N(m_j, W_j W_j' + diag(psi_j))`` with W_j of q columns: a Gaussian mixture whose covariances have
O(D q) parameters instead of O(D^2). With equal noise in all features it is the mixture of probabilistic principal
component analysers.

References
----------
Ghahramani and Hinton (1996), The EM algorithm for mixtures of factor analyzers, CRG-TR-96-1, Toronto.
Tipping and Bishop (1999), Mixtures of probabilistic principal component analyzers, Neural Computation 11.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.engine import ArraySource, Source
from pluri.factors.factor_analyzer_family import NOISES, STARTS, FactorAnalyzerFamily, center_and_floor
from pluri.factors.low_rank_gaussian import LowRankGaussians, canonical
from pluri.mixtures.factor_analyzers.queries import FactorMixtureQueries
from pluri.mixtures.mixture import MixtureModel, Prior
from pluri.validation import Allowed, Number, Only, Stored, Whole, restored_on_failure

Array = NDArray[np.float64]


class FactorAnalyzerMixture(FactorMixtureQueries, MixtureModel):
    """Mixture of factor analysers, fitted by EM.

    Parameters
    ----------
    n_components : int, default=1
        Number of components.
    n_factors : int, default=1
        Number of factors of each component, at most the number of features; with 0, features are independent given
        the component.
    noise_type : {"diag", "isotropic", "shared"}, default="diag"
        A variance for each feature and component; one for each component (probabilistic PCA); or one for each feature,
        the same in all components.
    tol : float, default=1e-4
        EM ends when an iteration raises the mean log-likelihood of a row (with the prior's share) by less.
    max_iter : int, default=500
        Largest number of iterations.
    n_init : int, default=1
        Number of runs; the best is kept.
    init_params : {"kmeans", "k-means++", "random_from_data", "random"}, default="kmeans"
        How rows are clustered to start with; each cluster gives a component by probabilistic PCA.
    noise_floor : float, default=1e-6
        Smallest variance of the noise, as a share of the variance of the feature.
    weight_prior : float, array of shape (n_components,) or prior, default=1.0
        Dirichlet concentration of the weights; 1 is no prior.
    random_state : int, Generator, RandomState or None, default=None
    warm_start : bool, default=False
        Whether `fit` starts from the last solution.
    verbose : int, default=0
        1 shows progress.
    split_merge : int, default=0
        Largest number of accepted split-and-merge moves after EM, which leave poor local maxima.
    acceleration : {None, "squarem", "anderson"}, default=None
        Extrapolate EM; the objective still never falls.
    checkpoint : path or None, default=None
        File to go on from, and to write now and then.
    engine, n_jobs
        Where the E-step runs: see `pluri.engine.open_engine`.

    Attributes
    ----------
    weights_ : array of shape (n_components,)
    means_ : array of shape (n_components, n_features)
    loadings_ : array of shape (n_components, n_features, n_factors)
        Turned so that ``W' diag(1 / noise) W`` is diagonal, strongest factor first.
    noise_variance_ : array of shape (n_components, n_features)
    occupancy_ : array of shape (n_components,)
        Expected number of rows of each component.
    converged_ : bool
    n_iter_ : int
    lower_bound_ : float
        Mean log-likelihood of the rows (with the prior's share) at the last iteration of the best run.
    lower_bounds_ : list of float
        The same by iteration.
    history_ : `pluri.inference.History`
    n_features_in_ : int

    Examples
    --------
    Two lines in space:

    >>> import numpy as np
    >>> from pluri.mixtures.factor_analyzers import FactorAnalyzerMixture
    >>> rng = np.random.default_rng(0)
    >>> t = rng.normal(size=(200, 1))
    >>> X = np.vstack([t[:100] * [1, 1, 0], t[100:] * [0, 1, -1] + [0, 0, 4]]) + 0.05 * rng.normal(size=(200, 3))
    >>> model = FactorAnalyzerMixture(2, n_factors=1, random_state=0).fit(X)
    >>> labels = model.predict(X)
    >>> bool((labels[:100] == labels[0]).all() and (labels[100:] == 1 - labels[0]).all())
    True
    >>> line = model.loadings_[labels[0], :, 0]
    >>> np.abs(line / np.linalg.norm(line)).round(1)
    array([0.7, 0.7, 0. ])
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "means_": Stored("n_components", "n_features_in_"),
        "loadings_": Stored("n_components", "n_features_in_", None),
        "noise_variance_": Stored("n_components", "n_features_in_", least=0),
        "_center": Stored("n_features_in_"),
        "_floor": Stored("n_features_in_"),
    }

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        **MixtureModel._parameters,
        "n_factors": Whole(0),
        "noise_type": Only(*NOISES),
        "init_params": Only(*STARTS),
        "noise_floor": Number(above=0),
    }

    def __init__(
        self,
        n_components: int = 1,
        n_factors: int = 1,
        *,
        noise_type: str = "diag",
        tol: float = 1e-4,
        max_iter: int = 500,
        n_init: int = 1,
        init_params: str = "kmeans",
        noise_floor: float = 1e-6,
        weight_prior: Prior = 1.0,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        split_merge: int = 0,
        acceleration: str | None = None,
        checkpoint: Any = None,
        engine: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_factors = n_factors
        self.noise_type = noise_type
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.noise_floor = noise_floor
        self.weight_prior = weight_prior
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.split_merge = split_merge
        self.acceleration = acceleration
        self.checkpoint = checkpoint
        self.engine = engine
        self.n_jobs = n_jobs

    def _family(self, source: Source | None) -> FactorAnalyzerFamily:
        if source is not None:
            self._center, self._floor = center_and_floor(source, float(self.noise_floor))
            complete = isinstance(source, ArraySource) and not np.isnan(source.X).any()
            self._missing = bool(getattr(self, "_streaming", False) or not complete)
        D = len(self._center)
        if self.n_factors > D:
            raise ValueError(f"n_factors must be at most the number of features ({D}), got {self.n_factors}")
        return FactorAnalyzerFamily(
            int(self.n_factors), self.noise_type, self._center, self._floor, self._missing, self.init_params
        )

    def _component_parameters(self, family: Any) -> LowRankGaussians:
        return LowRankGaussians(self.means_, self.loadings_, self.noise_variance_)

    def _store_components(self, parameters: LowRankGaussians) -> None:
        if not getattr(self, "_streaming", False):  # the statistics of a stream are in the coordinates it began with
            parameters = canonical(parameters)
        self.means_ = parameters.means
        self.loadings_ = parameters.loadings
        self.noise_variance_ = parameters.noise

    def partial_fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from one more batch; see `MixtureModel.partial_fit`. Later batches may have missing values."""
        with restored_on_failure(self):
            self._streaming = self._missing = True  # statistics of all batches must have one form
            return super().partial_fit(X, y, sample_weight)

    def _learn(self, source: Source, on_iteration: Callable[[Any], bool] | None = None) -> None:
        self._streaming = False
        super()._learn(source, on_iteration)

    def _mixture(self) -> tuple[Array, LowRankGaussians]:
        params = self._model()[1]
        return params.weights, params.components

    def _rows_and_posterior(self, X: Any) -> tuple[Array, Array]:
        posterior = self.predict_proba(X)
        return np.asarray(self._check_rows(X, fitting=False), dtype=np.float64), posterior

    def summary(self) -> str:
        """The fitted mixture on one page of plain text."""
        weights, law = self._mixture()
        state = "converged" if self.converged_ else "not converged"
        lines = [
            f"{type(self).__name__}: {len(weights)} components of {law.n_factors} factors, "
            f"{self.n_features_in_} features, noise {self.noise_type}",
            f"EM: {state} after {self.n_iter_} iterations; mean log-likelihood {self.lower_bound_:.6g}",
            "",
            "component  weight  mean noise variance  variance explained by the factors",
        ]
        explained, noise = (law.loadings**2).sum(axis=(1, 2)), law.noise
        for j in range(len(weights)):
            share = explained[j] / (explained[j] + noise[j].sum())
            lines.append(f"{j:<9d}  {weights[j]:<6.3f}  {noise[j].mean():<19.4g}  {share:.1%}")
        return "\n".join(lines)
