"""Gaussian mixture: p(x) = sum_j pi_j N(x | mu_j, S_j), by EM or by Riemannian optimisation."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.components.gaussian import COVARIANCE_TYPES, CollapsedComponentError, GaussianParameters
from pluri.components.starting_shares import INIT_PARAMS
from pluri.components.weighted_sums import averages, pooled_sums
from pluri.engine import Source
from pluri.engine.first_rows import weighted_initial_rows
from pluri.inference import EMResult
from pluri.mixtures.gaussian import given
from pluri.mixtures.gaussian.family import GaussianFamily, RepulsiveMeans, reference_whitening
from pluri.mixtures.gaussian.given import covariance_shape
from pluri.mixtures.imputing import ImputesRows
from pluri.mixtures.learning import MixtureParameters, MixtureProblem
from pluri.mixtures.mixture import DIVERSITY, MixtureModel, Prior
from pluri.priors import DeterminantalPrior
from pluri.priors.kernels import RBFKernel
from pluri.validation import Allowed, Number, Only, Stored

Array = NDArray[np.float64]


class GaussianMixture(ImputesRows, MixtureModel):
    """Gaussian mixture with scikit-learn's interface, and what it lacks.

    Weights for rows, missing values, priors, components that stay apart, second-order optimisation, restarts that
    split and merge, data larger than memory, clusters of machines.

    Parameters
    ----------
    n_components : int, default=1
        Number of components.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        A matrix for each component, one matrix for all, a variance for each component and feature, or one for each
        component.
    tol : float, default=1e-3
        EM stops when the objective gains less than this for each unit of weight (row).
    reg_covar : float, default=1e-6
        No variance, in any direction, falls below it. scikit-learn adds it to the variances; here the M-step is the
        exact optimum above the floor, so that the objective never falls.
    max_iter : int, default=100
        Largest number of iterations of a run; 0 keeps the starting values.
    n_init : int, default=1
        Number of runs from different starting values; the best one is kept.
    init_params : {"kmeans", "k-means++", "random", "random_from_data"}, default="kmeans"
        How rows are divided at the start: by k-means, by the nearest of seeds that k-means++ or chance picks, or in
        random shares.
    weights_init, means_init, precisions_init : arrays, optional
        Starting values; `precisions_init` in the shape of `covariance_type`.
    random_state : int, numpy Generator, RandomState or None, default=None
        Of the starting values and of `sample`.
    warm_start : bool, default=False
        Go on from the parameters of the last `fit`.
    verbose : int, default=0
        1 shows a progress bar.
    verbose_interval : int, default=10
        For scikit-learn's signature; the progress bar chooses its own pace.
    inference : {"em", "riemannian", "riemannian_cg", "cholesky"}, default="em"
        Expectation-maximisation; L-BFGS or conjugate gradients on the manifold of positive definite matrices with the
        likelihood reformulated so that one component is a convex problem (full covariances, no missing values): fewer
        passes when components overlap; or L-BFGS on Cholesky factors, the baseline.
    weight_prior : float, array or prior object, default=1.0
        Dirichlet concentration of the weights; 1 is no prior, below 1 empties components.
    mean_prior, mean_precision_prior : array of shape (n_features,) and float, optional
        Location (the mean of the data if None) and weight in rows of the normal prior on the means.
    covariance_prior, degrees_of_freedom_prior : float or array, and float, optional
        Scale and degrees of freedom (n_features + 2 if None: the prior's mean is then the scale) of the inverse-Wishart
        prior on covariances. A number is that multiple of the identity.
    diversity : float or `pluri.priors.DeterminantalPrior`, optional
        Weight of the determinantal prior that keeps the means apart. A number uses the Bhattacharyya kernel of
        components that have the covariance of the data within clusters; a prior of your own sees the means as rows.
    split_merge : int, default=0
        After EM, try up to so many moves that join two components and divide a third; repeated while one helps.
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
    weights_ : array of shape (n_components,)
    means_ : array of shape (n_components, n_features)
    covariances_ : array
        In the shape of `covariance_type`: (k, D, D), (D, D), (k, D) or (k,).
    precisions_, precisions_cholesky_ : arrays
        Inverse covariances, and their upper triangular factors.
    converged_ : bool
    n_iter_ : int
    lower_bound_ : float
        Objective (log-likelihood plus log prior) for each unit of weight.
    lower_bounds_ : list of float
        The same after each iteration of the best run.
    objective_ : float
    history_ : `pluri.inference.History`
    occupancy_ : array of shape (n_components,)
        Expected number of rows of each component.
    n_evaluations_ : int
        Passes over the data; not set by EM, where it is `n_iter_`.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.mixtures import GaussianMixture
    >>> X = np.array([[1.0, 2.0], [1.0, 4.0], [1.0, np.nan], [10.0, 2.0], [10.0, 4.0], [10.0, 0.0]])
    >>> model = GaussianMixture(n_components=2, random_state=0).fit(X)
    >>> np.sort(model.means_[:, 0]).round(1)
    array([ 1., 10.])
    >>> labels = model.predict([[0.0, np.nan], [12.0, 3.0]])
    >>> model.means_[labels, 0].round(1)
    array([ 1., 10.])
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "means_": Stored("n_components", "n_features_in_"),
    }

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        **MixtureModel._parameters,
        "covariance_type": Only(*COVARIANCE_TYPES),
        "init_params": Only(*INIT_PARAMS),
        "inference": Only("em", "riemannian", "riemannian_cg", "cholesky"),
        "reg_covar": Number(least=0),
        "diversity": DIVERSITY,
        "mean_precision_prior": Number(least=0) | Only(None),
    }

    _least_samples = 2
    n_evaluations_: int

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        max_iter: int = 100,
        n_init: int = 1,
        init_params: str = "kmeans",
        weights_init: ArrayLike | None = None,
        means_init: ArrayLike | None = None,
        precisions_init: ArrayLike | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
        inference: str = "em",
        weight_prior: Prior = 1.0,
        mean_prior: ArrayLike | None = None,
        mean_precision_prior: float | None = None,
        covariance_prior: ArrayLike | None = None,
        degrees_of_freedom_prior: float | None = None,
        diversity: Any = None,
        split_merge: int = 0,
        acceleration: str | None = None,
        checkpoint: Any = None,
        engine: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.means_init = means_init
        self.precisions_init = precisions_init
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.inference = inference
        self.weight_prior = weight_prior
        self.mean_prior = mean_prior
        self.mean_precision_prior = mean_precision_prior
        self.covariance_prior = covariance_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.diversity = diversity
        self.split_merge = split_merge
        self.acceleration = acceleration
        self.checkpoint = checkpoint
        self.engine = engine
        self.n_jobs = n_jobs

    # Settings ---------------------------------------------------------------------------------------------------

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.inference == "em":
            return
        if self.covariance_type != "full":
            raise ValueError(
                f"covariance_type must be 'full' for inference={self.inference!r}, got {self.covariance_type!r}"
            )
        for name, neutral in (("diversity", (None, 0)), ("acceleration", (None,)), ("checkpoint", (None,))):
            if getattr(self, name) not in neutral:
                raise ValueError(f"{name} must be None for inference={self.inference!r}: only EM takes it")

    def _family(self, source: Source | None) -> GaussianFamily:
        n_features = int(self.n_features_in_) if hasattr(self, "n_features_in_") else np.shape(self.means_)[1]
        family = GaussianFamily(self.covariance_type, float(self.reg_covar), self.init_params)
        family = dataclasses.replace(family, **self._conjugate_prior(source, n_features))
        if source is None:
            return dataclasses.replace(family, repulsion=self._repulsion(source))
        shape = self.n_components, n_features
        means, precisions = self.means_init, self.precisions_init
        return dataclasses.replace(
            family,
            means=None if means is None else given.starting_means(means, shape),
            covariances=None if precisions is None else given.covariances(precisions, self.covariance_type, shape),
            repulsion=self._repulsion(source),
        )

    def _check_rows(self, X: Any, *, fitting: bool) -> Any:
        rows = super()._check_rows(X, fitting=fitting)
        if fitting:
            given.warn_of_floor(rows, float(self.reg_covar), getattr(self, "feature_names_in_", None))
        return rows

    def _conjugate_prior(self, source: Source | None, n_features: int) -> dict[str, Any]:
        prior: dict[str, Any] = {}
        if self.mean_precision_prior:
            location = self.mean_prior
            if location is None:
                location = getattr(self, "mean_prior_", None) if source is None else _observed_mean(source)
            location = np.asarray(location, dtype=np.float64)
            if location.shape != (n_features,) or not np.isfinite(location).all():
                raise ValueError(f"mean_prior must be finite and have shape ({n_features},), got {self.mean_prior!r}")
            self.mean_prior_ = location
            prior |= {"mean_prior": location, "mean_precision": float(self.mean_precision_prior)}
        elif self.mean_prior is not None:
            raise ValueError("mean_prior needs mean_precision_prior, its weight in rows")
        if self.covariance_prior is not None:
            prior |= {
                "covariance_scale": given.prior_scale(self.covariance_prior, self.covariance_type, n_features),
                "degrees": given.prior_degrees(self.degrees_of_freedom_prior, n_features),
            }
        elif self.degrees_of_freedom_prior is not None:
            raise ValueError("degrees_of_freedom_prior needs covariance_prior, the scale that it gives weight to")
        return prior

    def _repulsion(self, source: Source | None) -> RepulsiveMeans | None:
        value = self.diversity
        if value is None:
            return None
        if isinstance(value, DeterminantalPrior):
            return RepulsiveMeans(value) if value.weight > 0 else None
        if value == 0:
            return None
        if source is not None:
            rows, weight = weighted_initial_rows(source, lambda X: np.ascontiguousarray(X, dtype=np.float64))
            self._whitening = reference_whitening(rows, weight, self.n_components, float(self.reg_covar))
        return RepulsiveMeans(DeterminantalPrior(RBFKernel(1.0), float(value)), self._whitening)

    def _starting_weights(self) -> Array | None:
        return None if self.weights_init is None else given.starting_weights(self.weights_init, self.n_components)

    # Fitted attributes ------------------------------------------------------------------------------------------

    def _component_parameters(self, family: GaussianFamily) -> GaussianParameters:
        means = np.asarray(self.means_, dtype=np.float64)
        factors = np.asarray(self._factors(), dtype=np.float64)
        shape = covariance_shape(self.covariance_type, self.n_components, means.shape[1])
        if factors.shape != shape:
            raise ValueError(
                f"covariance_type must be that of the last fit for queries, partial_fit and warm_start: "
                f"{self.covariance_type!r} has factors of shape {shape}, the fitted ones have {factors.shape}"
            )
        if self.covariance_type in ("diag", "spherical"):
            return family.parameters(means, 1.0 / factors**2)
        if not hasattr(self, "covariances_"):
            inverse = np.linalg.inv(factors)
            return family.parameters(means, np.swapaxes(inverse, -1, -2) @ inverse)
        parameters = family.parameters(means, np.asarray(self.covariances_, dtype=np.float64))
        matrices = factors if factors.ndim == 3 else factors[None]
        log_determinant = -2.0 * np.log(np.diagonal(matrices, axis1=1, axis2=2)).sum(axis=1)
        # As scikit-learn does, densities follow the factors; a program may set them by hand.
        vars(parameters)["whitening"] = np.ascontiguousarray(matrices.transpose(0, 2, 1)), log_determinant
        return parameters

    def _factors(self) -> Any:
        """Factors of the precisions; made from the covariances if a program has set only these by hand."""
        if hasattr(self, "precisions_cholesky_"):
            return self.precisions_cholesky_
        covariances = np.asarray(self.covariances_, dtype=np.float64)
        if self.covariance_type in ("diag", "spherical"):
            return 1.0 / np.sqrt(covariances)
        return np.swapaxes(np.linalg.inv(np.linalg.cholesky(covariances)), -1, -2)

    def _store_components(self, parameters: GaussianParameters) -> None:
        self.means_ = parameters.means
        if self.covariance_type in ("diag", "spherical"):
            self.covariances_ = parameters.covariances
            self.precisions_cholesky_ = 1.0 / np.sqrt(parameters.covariances)
            self.precisions_ = self.precisions_cholesky_**2
            return
        whitening, _ = parameters.whitening
        factors = np.ascontiguousarray(whitening.transpose(0, 2, 1))
        precisions = factors @ whitening
        tied = self.covariance_type == "tied"
        self.covariances_ = parameters.covariances[0] if tied else parameters.covariances
        self.precisions_cholesky_ = factors[0] if tied else factors
        self.precisions_ = precisions[0] if tied else precisions

    # The other ways of learning -------------------------------------------------------------------------------

    def _run(
        self,
        problem: MixtureProblem[Any],
        source: Source,
        total: float,
        start: MixtureParameters[Any] | None,
        on_iteration: Callable[[Any], bool] | None,
    ) -> EMResult[MixtureParameters[Any]]:
        if hasattr(self, "n_evaluations_"):
            del self.n_evaluations_
        if self.inference == "em":
            try:
                return super()._run(problem, source, total, start, on_iteration)
            except (FloatingPointError, CollapsedComponentError) as error:
                raise ValueError(
                    "Fitting the mixture model failed because some components have ill-defined empirical covariance "
                    "(for instance caused by singleton or collapsed samples). Try to decrease the number of "
                    "components, increase reg_covar, or scale the input data."
                ) from error
        from pluri.mixtures.riemannian.manifold_fit import fit_on_manifold

        return fit_on_manifold(self, problem, source, total, start, on_iteration)

    def _check_fitted_state(self) -> None:
        super()._check_fitted_state()
        for name in ("covariances_", "precisions_", "precisions_cholesky_"):
            if hasattr(self, "weights_") and hasattr(self, name):
                shape = covariance_shape(self.covariance_type, self.n_components, self.means_.shape[1])
                if np.shape(getattr(self, name)) != shape:
                    raise ValueError(f"{name} must have shape {shape}, got {np.shape(getattr(self, name))}")


def _observed_mean(source: Source) -> Array:
    """Weighted mean of what is observed of each feature: 0 if that is nothing."""
    return averages(pooled_sums(source, partial(np.asarray, dtype=np.float64)))[0]
