r"""Principal components of binary, count and real data, with their number chosen by the data.

.. math:: y_n \sim N(0, I_d), \qquad x_{nj} \sim \text{family}(\theta_{nj}), \quad \theta_n = W y_n + b, \qquad
   w_i \sim N(0, \alpha_i^{-1} I)

Columns of W that the data do not ask for are switched off (their precision :math:`\alpha_i` grows without bound).
Gaussian data with noise of known variance give probabilistic PCA.

References
----------
.. [1] J. Li and D. Tao, "Simple exponential family PCA", IEEE Transactions on Neural Networks and Learning Systems 24,
   2013.
.. [2] M. E. Tipping and C. M. Bishop, "Probabilistic principal component analysis", JRSS B 61, 1999.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from pluri.factors.exponential_family.estimator import ExponentialFamilyEstimator, signed
from pluri.factors.exponential_family.families import as_family
from pluri.factors.exponential_family.latents import Latents, Loadings
from pluri.factors.exponential_family.learning import ComponentsModel, Fitted, State
from pluri.factors.exponential_family.loadings import intercept_prior
from pluri.factors.exponential_family.observations import Observations, explained_deviance
from pluri.factors.exponential_family.relevance import WeightPrior, active_columns
from pluri.validation import Stored, as_generator, restored_on_failure, weighted_mean

Array = NDArray[np.float64]


class ExponentialFamilyPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ExponentialFamilyEstimator):
    """Probabilistic PCA for exponential families, with automatic relevance determination.

    Parameters
    ----------
    n_components : int, default=2
        Number of latent dimensions; with ``loading_prior="ard"`` the largest number.
    family : {"gaussian", "bernoulli", "poisson"} or family, default="gaussian"
        The distribution of an entry: real numbers with unit noise, zeros and ones, counts; ``GaussianFamily(scale)``
        and ``BinomialFamily(trials)`` are the others.
    fit_intercept : bool, default=True
        Without it one component must be spent on the mean, and rare features are hopeless.
    smoothing : float, default=1.0
        Pseudo-observations of each feature's mean that the intercept sees.
    loading_prior : {"ard", "ridge"} prior or None, default="ard"
        Of the loadings: a precision per component that is learned, a fixed one, or none.
    loading_precision : float, default=1.0
        Precision of the ridge; where learned precisions start.
    precision_update : {"mackay", "em"}, default="mackay"
        How precisions are learned.
    inference : {"laplace", "vb", "map"}, default="laplace"
        Beliefs about latent variables: a Gaussian at the mode; the best Gaussian for a lower bound (Jaakkola's for
        zeros and ones, exact for the other families), which never falls; or points.
    init : {"svd", "random"}, default="svd"
        Loadings to begin with; starts after the first are random.
    n_init, max_iter : int, default=1 and 200
        Number of starts, and of sweeps.
    tol : float, default=1e-6
        A run ends when a sweep changes the objective by less than this share of it.
    warm_start : bool, default=False
        Whether `fit` goes on from the last fit.
    random_state : int, Generator, RandomState or None, default=None
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features_in_)
        Loadings, orthogonal, longest first; the largest entry of each is positive.
    intercept_ : array of shape (n_features_in_,)
    alpha_ : array of shape (n_components,)
        Precisions of the components: small is important.
    effective_components_ : int
        Number of components that are not switched off.
    explained_deviance_ratio_ : array of shape (n_components,)
        Share of the deviance of the intercepts that each component explains, at the posterior modes.
    history_ : History
        All sweeps of all starts.
    objective_history_ : array of shape (n_iter_ + 1,)
        Objective of the best start: log evidence and log prior; for ARD with loadings integrated out.
    lower_bound_ : float
        Its best value.
    n_iter_ : int
    converged_ : bool
    n_features_in_ : int

    Notes
    -----
    NaN is missing, exactly: such entries leave all sums. Sparse matrices are made dense.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors.exponential_family import ExponentialFamilyPCA
    >>> rng = np.random.default_rng(0)
    >>> loadings = np.array([[3.0, 3, 3, 3, 3, 3, 0, 0], [0, 0, 3, -3, 3, -3, 3, -3]])
    >>> X = rng.random((400, 8)) < 1 / (1 + np.exp(-rng.normal(size=(400, 2)) @ loadings))
    >>> model = ExponentialFamilyPCA(5, family="bernoulli").fit(X)
    >>> model.effective_components_
    2
    >>> model.transform(X).shape
    (400, 5)
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "components_": Stored("n_directions", "n_features_in_"),
        "intercept_": Stored("n_features_in_"),
        "alpha_": Stored("n_directions", finite=False),
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        family: Any = "gaussian",
        fit_intercept: bool = True,
        smoothing: float = 1.0,
        loading_prior: str | None = "ard",
        loading_precision: float = 1.0,
        precision_update: str = "mackay",
        inference: str = "laplace",
        init: str = "svd",
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-6,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.family = family
        self.fit_intercept = fit_intercept
        self.smoothing = smoothing
        self.loading_prior = loading_prior
        self.loading_precision = loading_precision
        self.precision_update = precision_update
        self.inference = inference
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    # Learning -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the components.

        After Ctrl-C the model is that of the sweeps so far, with a warning.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            A weight of 2 is the same as the row twice.

        Returns
        -------
        self : object
        """
        with restored_on_failure(self):
            family, prior = self._check_settings({"n_components": 1})
            data = self._read(X, sample_weight, reset=True, family=family)
            most = min(data.n_samples, data.n_features)
            if self.n_components > most:
                raise ValueError(
                    f"n_components must be at most min(n_samples, n_features) = {most}, got {self.n_components} "
                    f"for n_samples={data.n_samples} and n_features={data.n_features}"
                )
            width = int(self.n_components)
            model = ComponentsModel(
                family, self.inference, 1, width, prior, self._intercept_prior(data), "per_component", self.init
            )
            result = self._climb(model, data, self._start(model, data))
            self._store(model, data, result.params)
            self.history_ = result.history
            self.objective_history_ = result.trace
            self.lower_bound_ = float(result.elbo)
            self.n_iter_, self.converged_ = result.n_iter, result.converged
            if prior.kind == "ard" and self.effective_components_ == 0:
                warnings.warn(
                    "no structure beyond the intercept: all components are switched off", UserWarning, stacklevel=2
                )
        return self

    def _start(self, model: ComponentsModel, data: Observations) -> State | None:
        shape = (model.n_latent, data.n_features)
        if self.warm_start and hasattr(self, "components_") and self.components_.shape == shape:
            return model.begin(self._fitted(), data)
        return None

    def _store(self, model: ComponentsModel, data: Observations, state: State) -> None:
        found, latents = state.fitted.loadings[0], state.latents[0]
        axes, sizes, turn = np.linalg.svd(found.weights, full_matrices=False)
        signs = signed(axes)
        weights = axes * (sizes * signs)
        # Of learned precisions the columns are orthogonal already: the order of lengths is that of the axes.
        order = np.argsort(-np.linalg.norm(found.weights, axis=0), kind="stable")
        self.components_ = np.ascontiguousarray(weights.T)
        self.intercept_ = found.intercept
        self.alpha_ = state.fitted.alpha[0][order]
        self.effective_components_ = int(active_columns(sizes, data.n_features).sum())
        self.explained_deviance_ratio_ = explained_deviance(
            data, weights, found.intercept, (latents.mean @ turn.T) * signs
        )

    def _fitted(self) -> Fitted:
        loadings = Loadings(np.ascontiguousarray(self.components_.T), self.intercept_)
        return Fitted(np.ones(1), (loadings,), self.alpha_[None])

    # Answers ------------------------------------------------------------------------------------------------------

    def _believe(self, X: Any) -> Latents:
        data = self._read(X)
        family = as_family(self.family)
        prior = intercept_prior(data, 0.0, True)
        model = self._predictive(
            ComponentsModel(family, self.inference, 1, len(self.components_), WeightPrior(None), prior)
        )
        return model.believe(self._fitted(), data, None, None)[0][0]

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def transform(self, X: Any) -> Array:
        """Posterior modes (means, for a variational fit) of the latent variables, (n_samples, n_components)."""
        check_is_fitted(self)
        return self._believe(X).mean

    def posterior_covariance(self, X: Any) -> Array:
        """How uncertain they are: array of shape (n_samples, n_components, n_components)."""
        check_is_fitted(self)
        return self._believe(X).covariance

    def natural_parameters(self, Y: Any) -> Array:
        """Natural parameters of latent variables of shape (n_samples, n_components)."""
        check_is_fitted(self)
        values = check_array(Y, dtype=np.float64)
        if values.shape[1] != len(self.components_):
            raise ValueError(f"Y must have {len(self.components_)} columns, one per component, got {values.shape[1]}")
        return np.asarray(values @ self.components_ + self.intercept_)

    def inverse_transform(self, Y: Any) -> Array:
        """Means of the data at latent variables of shape (n_samples, n_components)."""
        return as_family(self.family).mean(self.natural_parameters(Y))

    def score_samples(self, X: Any) -> Array:
        """Log evidence of each row: Laplace's approximation, exact for Gaussian data; a lower bound if variational."""
        check_is_fitted(self)
        return self._believe(X).evidence

    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Mean log evidence of the rows, weighted if `sample_weight` is given."""
        return weighted_mean(self.score_samples(X), sample_weight)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draw rows from the fitted model.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, Generator, RandomState or None, default=None
            The estimator's own if None.
        """
        check_is_fitted(self)
        rng = as_generator(self.random_state if random_state is None else random_state)
        latent = rng.normal(size=(n_samples, len(self.components_)))
        return as_family(self.family).sample(latent @ self.components_ + self.intercept_, rng)

    def summary(self) -> str:
        """The fitted model on one page of plain text."""
        check_is_fitted(self)
        state = "converged" if self.converged_ else "not converged"
        lines = [
            f"{type(self).__name__}: {self.effective_components_} active of {len(self.components_)} components, "
            f"{self.n_features_in_} features, {as_family(self.family).name} family",
            f"{self.inference}: {state} after {self.n_iter_} sweeps; objective {self.lower_bound_:.3f}",
            "",
            "component  length   precision  explained deviance",
        ]
        lengths = np.linalg.norm(self.components_, axis=1)
        lines += [
            f"{i:<9d}  {lengths[i]:<7.4g}  {self.alpha_[i]:<9.3g}  {self.explained_deviance_ratio_[i]:.3f}"
            for i in range(len(lengths))
        ]
        return "\n".join(lines)
