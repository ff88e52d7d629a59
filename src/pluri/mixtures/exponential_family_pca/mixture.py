r"""Clusters of binary, count or real data, each with its own few directions of variation.

.. math:: z_n \sim \pi, \quad y_n \sim N(0, I_d), \quad
   x_{nj} \mid z_n = k \sim \text{family}\bigl( w_{kj}^\top y_n + b_{kj} \bigr)

With a diversity prior the local subspaces repel each other, with a sparsity prior directions are dropped; see
:mod:`pluri.mixtures.exponential_family_pca.diversified`. Without latent dimensions this is the latent class model, with
Gaussian data a mixture of probabilistic PCAs with noise of known variance.

References
----------
.. [1] M. E. Tipping and C. M. Bishop, "Mixtures of probabilistic principal component analysers", Neural Computation 11,
   1999.
.. [2] J. Li and D. Tao, "Simple exponential family PCA", IEEE Transactions on Neural Networks and Learning Systems 24,
   2013.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, DensityMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from pluri.factors.exponential_family.estimator import ExponentialFamilyEstimator, check_non_negative, signed
from pluri.factors.exponential_family.families import as_family
from pluri.factors.exponential_family.latents import Loadings
from pluri.factors.exponential_family.learning import LATENTS, ComponentsModel, Fitted, State
from pluri.factors.exponential_family.loadings import InterceptPrior, intercept_prior
from pluri.factors.exponential_family.observations import Observations
from pluri.factors.exponential_family.relevance import WeightPrior
from pluri.factors.exponential_family.starts import latent_classes, learned_counts
from pluri.inference.run import IterationState
from pluri.mixtures.exponential_family_pca.criteria import (
    active_directions,
    bayesian_criterion,
    free_parameters,
    hierarchical_criterion,
    most_likely,
)
from pluri.mixtures.exponential_family_pca.diversified import DiversifiedModel, frames_of
from pluri.mixtures.exponential_family_pca.frames import MANIFOLDS
from pluri.priors.kernels import SubspaceKernel
from pluri.priors.kernels.subspace import SUBSPACE_KERNELS
from pluri.validation import Stored, as_generator, restored_on_failure, weighted_mean, weighted_total

Array = NDArray[np.float64]

#: A component that explains less than this share of the rows is empty.
EMPTY = 1e-6


class ExponentialFamilyPCAMixture(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, DensityMixin, ClusterMixin, ExponentialFamilyEstimator
):
    """Mixture of exponential-family PCAs, whose subspaces may repel each other.

    Parameters
    ----------
    n_components : int, default=2
        Number of clusters.
    n_latent : int, default=1
        Latent dimensions of each; with ``loading_prior="ard"`` the largest number. 0 is the latent class model.
    family : {"gaussian", "bernoulli", "poisson"} or family, default="gaussian"
        The distribution of an entry: real numbers with unit noise, zeros and ones, counts; ``GaussianFamily(scale)``
        and ``BinomialFamily(trials)`` are the others.
    latent : {"per_component", "shared"}, default="per_component"
        Whether the latent variable of a row is inferred for each cluster by itself, which is the structure of the
        exact posterior, or once for all.
    fit_intercept : bool, default=True
    smoothing : float or "auto", default="auto"
        Pseudo-observations of each feature's overall mean that every intercept sees. ``"auto"`` takes for each
        feature the number under which the classes of a latent class model are most probable: few for features that
        tell clusters apart, many for those that do not, whose differences are chance.
    loading_prior : {"ard", "ridge"} prior or None, default="ard"
        Of the loadings: a precision per direction that is learned, a fixed one, or none.
    loading_precision : float, default=1.0
        Precision of the ridge; where learned precisions start.
    precision_update : {"mackay", "em"}, default="mackay"
    inference : {"laplace", "vb", "map"}, default="laplace"
        Beliefs about latent variables: a Gaussian at the mode; the best Gaussian for a lower bound; or points.
    diversity : float, default=0.0
        Strength of the repulsion of the subspaces: weight of the log determinant of their similarities.
    sparsity : float, default=0.0
        Weight of the absolute scales of the directions.
    rho : float, default=0.1
        How fast similarity falls with the angle between subspaces.
    similarity : {"projection", "sum_cosine"}, default="projection"
        A function of the subspaces, or of the sums of their directions; the latter changes with the signs of
        directions, so that it can be satisfied without moving a subspace.
    manifold : {"stiefel", "grassmann"}, default="stiefel"
        Where frames move when there is diversity or sparsity.
    init : {"svd", "random"}, default="svd"
        Loadings to begin with, around the clusters of a latent class model.
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
    weights_ : array of shape (n_components,)
    smoothing_ : array of shape (n_features_in_,)
        Numbers of pseudo-observations that were used.
    components_ : array of shape (n_components, n_latent, n_features_in_)
        Loadings of each cluster, orthogonal, longest first.
    intercepts_ : array of shape (n_components, n_features_in_)
    alpha_ : array of shape (n_components, n_latent)
    frames_ : array of shape (n_components, n_features_in_, n_latent)
        Directions as orthonormal columns.
    scales_ : array of shape (n_components, n_latent)
        Their lengths: ``components_[k].T == frames_[k] * scales_[k]``. Only with ``similarity="sum_cosine"`` may they
        be negative.
    effective_components_ : array of shape (n_components,)
        Number of directions of each cluster that are not switched off.
    similarity_matrix_ : array of shape (n_components, n_components)
        Similarities of the subspaces.
    log_det_history_ : array
        Their log determinant before each sweep of the best start and after the last; only for diversified fits.
    labels_ : array of shape (n_samples,)
    history_ : History
    objective_history_ : array of shape (n_iter_ + 1,)
        Objective of the best start.
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
    >>> from pluri.mixtures.exponential_family_pca import ExponentialFamilyPCAMixture
    >>> rng = np.random.default_rng(0)
    >>> centres = np.repeat([[2.0], [-2.0]], 100, axis=0) * [1, 1, 1, -1, -1, -1]
    >>> theta = centres + 3 * rng.normal(size=(200, 1)) * [1, -1, 0, 0, 0, 0]
    >>> X = rng.random((200, 6)) < 1 / (1 + np.exp(-theta))
    >>> model = ExponentialFamilyPCAMixture(2, 1, family="bernoulli", random_state=0).fit(X)
    >>> bool(abs(model.labels_[:100].mean() - model.labels_[100:].mean()) > 0.9)
    True
    >>> model.components_.shape
    (2, 1, 6)
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "weights_": Stored("n_found", simplex=True),
        "frames_": Stored("n_found", "n_features_in_", "n_directions"),
        "scales_": Stored("n_found", "n_directions"),
        "alpha_": Stored("n_found", "n_directions", finite=False),
        "components_": Stored("n_found", "n_directions", "n_features_in_"),
        "intercepts_": Stored("n_found", "n_features_in_"),
        "labels_": Stored("n_rows", whole=True, least=0, below="n_found"),
    }

    _may_learn_smoothing = True

    def __init__(
        self,
        n_components: int = 2,
        n_latent: int = 1,
        *,
        family: Any = "gaussian",
        latent: str = "per_component",
        fit_intercept: bool = True,
        smoothing: float | str = "auto",
        loading_prior: str | None = "ard",
        loading_precision: float = 1.0,
        precision_update: str = "mackay",
        inference: str = "laplace",
        diversity: float = 0.0,
        sparsity: float = 0.0,
        rho: float = 0.1,
        similarity: str = "projection",
        manifold: str = "stiefel",
        init: str = "svd",
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-6,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.n_latent = n_latent
        self.family = family
        self.latent = latent
        self.fit_intercept = fit_intercept
        self.smoothing = smoothing
        self.loading_prior = loading_prior
        self.loading_precision = loading_precision
        self.precision_update = precision_update
        self.inference = inference
        self.diversity = diversity
        self.sparsity = sparsity
        self.rho = rho
        self.similarity = similarity
        self.manifold = manifold
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    # Learning -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the clusters and their directions.

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
            model, data = self._set_up(X, sample_weight)
            repelled: list[tuple[int, float]] = []

            def watch(state: IterationState[State]) -> None:
                repelled.append((state.restart, state.params.log_det))

            result = self._climb(model, data, self._start(model, data), watch)
            self._store(model, data, result.params)
            self.history_ = result.history
            self.objective_history_ = result.trace
            self.lower_bound_ = float(result.elbo)
            self.n_iter_, self.converged_ = result.n_iter, result.converged
            self.log_det_history_ = np.array(
                [value for restart, value in repelled if restart == result.restart]
                if isinstance(model, DiversifiedModel)
                else []
            )
            self.labels_ = most_likely(self._joint(data))
        return self

    def _set_up(self, X: Any, sample_weight: Any) -> tuple[ComponentsModel, Observations]:
        family, prior = self._check_settings({"n_components": 1, "n_latent": 0})
        for name, allowed in {"latent": LATENTS, "similarity": SUBSPACE_KERNELS, "manifold": MANIFOLDS}.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {allowed}, got {getattr(self, name)!r}")
        diversity, sparsity = (
            check_non_negative("diversity", self.diversity),
            check_non_negative("sparsity", self.sparsity),
        )
        if diversity > 0 and self.n_latent == 0:
            raise ValueError("diversity must be 0 where n_latent is 0, got a positive number: there are no subspaces")
        if not check_non_negative("rho", self.rho) > 0:
            raise ValueError(f"rho must be a positive number, got {self.rho!r}")
        if self.inference == "map" and prior.kind is None and sparsity == 0 and self.n_latent > 0:
            warnings.warn(
                "without a prior on the loadings (loading_prior=None, sparsity=0) point estimates of the latent "
                "variables shrink to zero while loadings grow; set sparsity, or loading_prior='ridge'",
                UserWarning,
                stacklevel=3,
            )
        data = self._read(X, sample_weight, reset=True, family=family)
        most = min(data.n_samples, data.n_features)
        if self.n_latent > most:
            raise ValueError(
                f"n_latent must be at most min(n_samples, n_features) = {most}, got {self.n_latent} "
                f"for n_samples={data.n_samples} and n_features={data.n_features}"
            )
        if self.n_components > data.n_samples:
            raise ValueError(
                f"n_components must be at most the number of samples (n_samples={data.n_samples}), "
                f"got {self.n_components}"
            )
        settings = (
            family, self.inference, int(self.n_components), int(self.n_latent), prior, self._intercept_prior(data),
            self.latent, self.init,
        )  # fmt: skip
        if diversity == 0 and sparsity == 0:
            return ComponentsModel(*settings), data
        manifold = (float(self.rho), self.similarity, self.manifold)
        return DiversifiedModel(*settings, diversity, sparsity, *manifold), data

    def _intercept_prior(self, data: Observations) -> InterceptPrior:
        count = 1.0 if self.smoothing == "auto" else float(self.smoothing)
        prior = intercept_prior(data, count, bool(self.fit_intercept))
        if self.smoothing != "auto" or self.n_components == 1 or not self.fit_intercept:
            return prior
        # Classes found with little smoothing, which tells how much there should be; then once more.
        for stream in np.random.default_rng(0).spawn(2):
            classes = latent_classes(data, int(self.n_components), prior, stream)
            prior = replace(prior, count=learned_counts(data, classes, prior.mean))
        return prior

    def _start(self, model: ComponentsModel, data: Observations) -> State | None:
        shape = (model.n_components, model.n_latent, data.n_features)
        if self.warm_start and hasattr(self, "components_") and self.components_.shape == shape:
            return model.begin(self._fitted(), data)
        return None

    def _store(self, model: ComponentsModel, data: Observations, state: State) -> None:
        fitted = state.fitted
        frames, scales = frames_of(fitted)
        alpha = np.empty_like(fitted.alpha)
        turned = fitted.frames is None
        frames, scales = frames.copy(), scales.copy()
        for k, loadings in enumerate(fitted.loadings):
            lengths = np.linalg.norm(loadings.weights, axis=0) if turned else np.abs(scales[k])
            order = np.argsort(-lengths, kind="stable")
            alpha[k] = fitted.alpha[k][order]
            if not turned:
                frames[k], scales[k] = frames[k][:, order], scales[k][order]
            if self.similarity == "projection" or turned:
                frames[k] = frames[k] * signed(frames[k])
        self.weights_ = fitted.weights
        self.smoothing_ = model.intercept_prior.count
        self.frames_, self.scales_, self.alpha_ = frames, scales, alpha
        self.components_ = np.swapaxes(frames * scales[:, None, :], 1, 2).copy()
        self.intercepts_ = np.stack([loadings.intercept for loadings in fitted.loadings])
        self.effective_components_ = active_directions(scales, data.n_features)
        kernel = SubspaceKernel(float(self.rho), self.similarity)
        self.similarity_matrix_ = kernel(frames) if model.n_latent else np.ones((len(scales), len(scales)))
        empty = np.flatnonzero(self.weights_ < EMPTY)
        if empty.size:
            warnings.warn(
                f"components {empty.tolist()} explain no rows; lower n_components, or raise n_init",
                UserWarning,
                stacklevel=3,
            )
        if model.n_latent and float(self.sparsity) > 0 and not self.effective_components_.any():
            warnings.warn(
                f"sparsity={self.sparsity} is too strong: all scales are zero; try {float(self.sparsity) / 10:.3g}",
                UserWarning,
                stacklevel=3,
            )

    def _fitted(self) -> Fitted:
        loadings = tuple(
            Loadings(np.ascontiguousarray(part.T), intercept)
            for part, intercept in zip(self.components_, self.intercepts_)
        )
        diversified = float(self.diversity) > 0 or float(self.sparsity) > 0
        frames, scales = (self.frames_, self.scales_) if diversified else (None, None)
        return Fitted(self.weights_, loadings, self.alpha_, frames, scales)

    # Answers ------------------------------------------------------------------------------------------------------

    def _believe(self, data: Observations) -> tuple[Array, Array]:
        """Log joint of rows and components, and means of the latents (n_samples, n_components, n_latent)."""
        prior = intercept_prior(data, 0.0, True)
        n_components, width = self.scales_.shape
        model = self._predictive(
            ComponentsModel(as_family(self.family), self.inference, n_components, width, WeightPrior(None), prior)
        )
        latents, _, _ = model.believe(self._fitted(), data, None, None)
        with np.errstate(divide="ignore"):
            joint = np.column_stack([part.evidence for part in latents]) + np.log(self.weights_)
        return joint, np.stack([part.mean for part in latents], axis=1)

    def _joint(self, data: Observations) -> Array:
        return self._believe(data)[0]

    def score_samples(self, X: Any) -> Array:
        """Log evidence of each row: Laplace's approximation, exact for Gaussian data; a lower bound if variational."""
        return np.asarray(logsumexp(self._joint(self._read(X)), axis=1))

    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Mean log evidence of the rows, weighted if `sample_weight` is given."""
        return weighted_mean(self.score_samples(X), sample_weight)

    def predict_proba(self, X: Any) -> Array:
        """Probability of each component, (n_samples, n_components); the latents are integrated out."""
        joint = self._joint(self._read(X))
        return np.exp(joint - logsumexp(joint, axis=1, keepdims=True))

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Most probable component of each row."""
        return most_likely(self._joint(self._read(X)))

    def transform(self, X: Any, component: int | None = None) -> Array:
        """Posterior modes (means, for a variational fit) of the latent variables.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        component : int, optional
            Only for this component, as if all rows belonged to it.

        Returns
        -------
        array of shape (n_samples, n_components * n_latent), or (n_samples, n_latent) for one component
            The latent variables of all components side by side, each times the probability of its component.
        """
        joint, latent = self._believe(self._read(X))
        if component is not None:
            return latent[:, self._index(component)]
        shares = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        return (latent * shares[:, :, None]).reshape(len(latent), -1)

    @property
    def _n_features_out(self) -> int:
        return self.scales_.size

    def inverse_transform(self, Y: Any, component: Any) -> Array:
        """Means of the data at latent variables.

        Parameters
        ----------
        Y : array of shape (n_samples, n_latent)
        component : int or array of shape (n_samples,)
            The component of each row.
        """
        check_is_fitted(self)
        latent = check_array(Y, dtype=np.float64, ensure_min_features=0)
        if latent.shape[1] != self.scales_.shape[1]:
            raise ValueError(f"Y must have {self.scales_.shape[1]} columns, one per dimension, got {latent.shape[1]}")
        labels = np.broadcast_to(np.asarray(component), (len(latent),))
        means = np.empty((len(latent), self.n_features_in_))
        for k in np.unique(labels):
            rows = labels == k
            k = self._index(k)
            theta = latent[rows] @ self.components_[k] + self.intercepts_[k]
            means[rows] = as_family(self.family).mean(theta)
        return means

    def reconstruct(self, X: Any) -> Array:
        """Each row without its noise: means at the posterior modes, averaged over the components; fills NaN."""
        joint, latent = self._believe(self._read(X))
        shares = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        family = as_family(self.family)
        means = np.zeros((len(shares), self.n_features_in_))
        for k, (loadings, intercept) in enumerate(zip(self.components_, self.intercepts_)):
            means += shares[:, [k]] * family.mean(latent[:, k] @ loadings + intercept)
        return means

    def _index(self, component: Any) -> int:
        if not 0 <= int(component) < len(self.weights_):
            raise ValueError(f"component must be between 0 and {len(self.weights_) - 1}, got {component!r}")
        return int(component)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, NDArray[np.int64]]:
        """Draw rows and their components from the fitted model.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, Generator, RandomState or None, default=None
            The estimator's own if None.
        """
        check_is_fitted(self)
        rng = as_generator(self.random_state if random_state is None else random_state)
        labels = rng.choice(len(self.weights_), size=n_samples, p=self.weights_)
        latent = rng.normal(size=(n_samples, self.scales_.shape[1]))
        theta = np.einsum("nd,ndj->nj", latent, self.components_[labels]) + self.intercepts_[labels]
        return as_family(self.family).sample(theta, rng), labels

    # How large it is ----------------------------------------------------------------------------------------------

    def bic(self, X: Any, sample_weight: ArrayLike | None = None) -> float:
        """Bayesian information criterion: the smaller, the better.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        sample_weight : array of shape (n_samples,), optional
            Weight of each row; the number of rows is then the sum of the weights.
        """
        total, n_rows = weighted_total(self.score_samples(X), sample_weight)
        return bayesian_criterion(total, self._free_parameters(), n_rows)

    def hierarchical_bic(self, X: Any, sample_weight: ArrayLike | None = None) -> float:
        """The criterion that weighs the parameters of a component by the rows it explains; the smaller, the better.

        For `sample_weight` see `bic`.
        """
        total, n_rows = weighted_total(self.score_samples(X), sample_weight)
        return hierarchical_criterion(total, self._free_parameters(), self.weights_, n_rows)

    def _free_parameters(self) -> NDArray[np.int64]:
        return free_parameters(self.effective_components_, self.n_features_in_, bool(self.fit_intercept))

    def effective_dimension(self, threshold: float = 1e-2) -> float:
        """Mean number of directions whose scale is above ``threshold`` times the largest of their component."""
        check_is_fitted(self)
        return float(self.weights_ @ active_directions(self.scales_, self.n_features_in_, threshold))

    def prune(self, threshold: float = 1e-3) -> Self:
        """Set directions below ``threshold`` times the largest scale of all to zero.

        Parameters
        ----------
        threshold : float, default=1e-3

        Returns
        -------
        self : object
        """
        check_is_fitted(self)
        check_non_negative("threshold", threshold)
        keep = np.abs(self.scales_) >= threshold * np.abs(self.scales_).max(initial=0.0)
        self.scales_ = np.where(keep, self.scales_, 0.0)
        self.components_ = self.components_ * keep[:, :, None]
        self.effective_components_ = active_directions(self.scales_, self.n_features_in_)
        return self

    def summary(self) -> str:
        """The fitted model on one page of plain text."""
        check_is_fitted(self)
        state = "converged" if self.converged_ else "not converged"
        lines = [
            f"{type(self).__name__}: {len(self.weights_)} components of {self.scales_.shape[1]} dimensions, "
            f"{self.n_features_in_} features, {as_family(self.family).name} family",
            f"{self.inference}: {state} after {self.n_iter_} sweeps; objective {self.lower_bound_:.3f}",
            "",
            "component  weight  active  scales",
        ]
        lines += [
            f"{k:<9d}  {self.weights_[k]:<6.3f}  {self.effective_components_[k]:<6d}  "
            + " ".join(f"{scale:.3g}" for scale in self.scales_[k])
            for k in range(len(self.weights_))
        ]
        return "\n".join(lines)
