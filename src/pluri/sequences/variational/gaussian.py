"""Hidden Markov model with Gaussian emissions fitted by variational Bayes.

q of the means and precisions is normal-Wishart (`pluri.sequences.variational.normal_wishart`); see
`pluri.sequences.variational.hmm` for the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.components.gaussian import COVARIANCE_TYPES
from pluri.components.k_means import filled
from pluri.engine import Source
from pluri.engine.first_rows import initial_rows
from pluri.sequences.gaussian import SHARE, GaussianEmission, GaussianHMM
from pluri.sequences.variational.hmm import VariationalHMM, as_positive
from pluri.sequences.variational.normal_wishart import NormalWishart, VariationalGaussianEmission
from pluri.validation import Allowed, Only, check_positive_definite

Array = NDArray[np.float64]


class VariationalGaussianHMM(VariationalHMM, GaussianHMM):
    """Gaussian hidden Markov model fitted by variational Bayes: hmmlearn's, with pluri's loop around it.

    Parameters
    ----------
    n_components : int, default=1
        Number of states; those that the data do not ask for are left with their prior. With more states than needed
        there are many local optima: use `n_init`.
    covariance_type : {"spherical", "diag", "full", "tied"}, default="full"
        Form of the Wishart scale: see `pluri.sequences.variational.normal_wishart`.
    startprob_prior, transmat_prior : float, array or prior object, default=None
        Dirichlet concentration of the start distribution and of the transition rows; 1 / n_components if None.
        `transmat_prior` also takes `pluri.priors.Sticky`.
    means_prior, beta_prior : array, default=None
        Location and weight (in observations) of the prior of the means; the mean of the data and 1 if None.
    dof_prior, scale_prior : array, default=None
        Degrees of freedom, above n_features - 1, and scale of the Wishart prior of the precisions; n_features and
        a thousandth of each feature's variance if None (hmmlearn: 1e-3, times the identity).
    algorithm, random_state, verbose, implementation
        See `GaussianHMM`.
    n_iter : int, default=100
        Largest number of iterations of a run.
    tol : float, default=1e-6
        A run ends when the evidence lower bound gains less than this.
    params, init_params : str, default="stmc"
        Which posteriors are updated, and which are set up first: s (start), t (transitions), m (means: `means` and
        `beta`), c (precisions: `dof` and `scale`). Set the ``_prior_`` and ``_posterior_`` attributes of the others
        before `fit`.
    n_init, warm_start, acceleration, checkpoint, engine, n_jobs
        See `GaussianHMM`.

    Attributes
    ----------
    startprob_prior_, startprob_posterior_ : arrays of shape (n_components,)
    transmat_prior_, transmat_posterior_ : arrays of shape (n_components, n_components)
    means_prior_, means_posterior_ : arrays of shape (n_components, n_features)
    beta_prior_, beta_posterior_ : arrays of shape (n_components,)
    dof_prior_, dof_posterior_ : arrays of shape (n_components,), or float if "tied"
    scale_prior_, scale_posterior_ : arrays in the shape of `covariance_type`
    startprob_, transmat_, means_, covars_ : arrays
        Posterior means; `covars_` is scale / dof, the inverse of the mean precision.
    lower_bound_ : float
        Evidence lower bound, the objective of `history_` (hmmlearn's leaves out n_samples * n_features / 2 log(2 pi)).
    history_, converged_, n_iter_, log_det_, state_occupancy_, n_features_in_
        See `GaussianHMM`.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.sequences import VariationalGaussianHMM
    >>> rng = np.random.default_rng(1)
    >>> states = np.cumsum(rng.random(300) < 0.1) % 3
    >>> X = np.array([-4.0, 0.0, 4.0])[states, None] + rng.normal(size=(300, 1))
    >>> model = VariationalGaussianHMM(n_components=6, n_init=10, random_state=0).fit(X)
    >>> int((model.state_occupancy_ > 1).sum())
    3
    """

    _emission_attributes = {"m": "means_posterior_", "c": "scale_posterior_"}  # noqa: RUF012

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        **VariationalHMM._parameters,
        "covariance_type": Only(*COVARIANCE_TYPES),
    }

    def __init__(
        self,
        n_components: int = 1,
        covariance_type: str = "full",
        startprob_prior: Any = None,
        transmat_prior: Any = None,
        means_prior: ArrayLike | None = None,
        beta_prior: ArrayLike | None = None,
        dof_prior: ArrayLike | None = None,
        scale_prior: ArrayLike | None = None,
        algorithm: str = "viterbi",
        random_state: Any = None,
        n_iter: int = 100,
        tol: float = 1e-6,
        verbose: int = 0,
        params: str = "stmc",
        init_params: str = "stmc",
        implementation: str = "scaling",
        *,
        n_init: int = 1,
        warm_start: bool = False,
        acceleration: str | None = None,
        checkpoint: Any = None,
        engine: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.startprob_prior = startprob_prior
        self.transmat_prior = transmat_prior
        self.means_prior = means_prior  # type: ignore[assignment]
        self.beta_prior = beta_prior
        self.dof_prior = dof_prior
        self.scale_prior = scale_prior
        self.algorithm = algorithm
        self.random_state = random_state
        self.n_iter = n_iter
        self.tol = tol
        self.verbose = verbose
        self.params = params
        self.init_params = init_params
        self.implementation = implementation
        self.n_init = n_init
        self.warm_start = warm_start
        self.acceleration = acceleration
        self.checkpoint = checkpoint
        self.engine = engine
        self.n_jobs = n_jobs

    def _record(self, suffix: str, means: Any, beta: Any, dof: Any, scale: Any) -> NormalWishart:
        """Checked hyper-parameters, as a record; `suffix` is of the names in messages."""
        k, n_features = self.n_components, self.n_features
        tied = self.covariance_type == "tied"
        n_scales = 1 if tied else k
        kind = "full" if tied else self.covariance_type
        shape = {"spherical": (k,), "diag": (k, n_features), "full": (n_scales, n_features, n_features)}[kind]
        location = np.asarray(means, dtype=np.float64)
        if location.shape not in ((), (n_features,), (k, n_features), (k, 1)) or not np.isfinite(location).all():
            raise ValueError(f"means{suffix} must be finite and have shape ({k}, {n_features}), got {location.shape}")
        degrees = as_positive(f"dof{suffix}", dof, (n_scales,))
        if not (degrees > n_features - 1).all():
            raise ValueError(f"dof{suffix} must be above n_features - 1 ({n_features - 1}), got {degrees.min()}")
        matrices = np.asarray(scale, dtype=np.float64)
        if kind != "full":
            matrices = as_positive(f"scale{suffix}", matrices, shape)
        else:
            matrices = matrices[..., None, None] * np.eye(n_features) if matrices.ndim < 2 else matrices
            if matrices.shape[-2:] != shape[-2:] or matrices.size not in (np.prod(shape), np.prod(shape[-2:])):
                raise ValueError(f"scale{suffix} must have shape {shape[tied:]}, got {matrices.shape}")
            matrices = np.array(np.broadcast_to(matrices, shape))
            check_positive_definite(matrices, f"scale{suffix}")
        return NormalWishart(
            np.array(np.broadcast_to(location, (k, n_features))),
            as_positive(f"beta{suffix}", beta, (k,)),
            degrees,
            matrices,
            kind,
            np.zeros(k, dtype=np.int64) if tied else np.arange(k),
        )

    def _emission_prior(self, source: Source) -> NormalWishart:
        def chosen(letter: str, name: str, default: Any) -> Any:
            kept = self._kept(letter, f"{name}_prior_")
            given = getattr(self, f"{name}_prior") if kept is None else kept
            return default if given is None else given

        def center() -> Array:
            rows = initial_rows(source, lambda X: np.asarray(X, dtype=np.float64))
            return np.asarray(filled(rows).mean(axis=0))

        location = chosen("m", "means", None)
        return self._record(
            "_prior",
            center() if location is None else location,
            chosen("m", "beta", 1.0),
            chosen("c", "dof", float(self.n_features)),
            chosen("c", "scale", self._default_scale()),
        )

    def _default_scale(self) -> Array:
        """A share of each feature's variance, in the shape of `covariance_type`; of their mean if it is spherical."""
        scale = SHARE * np.broadcast_to(self._feature_variance(), (self.n_features,))
        if self.covariance_type == "spherical":
            return np.full(self.n_components, scale.mean())
        return np.tile(scale, (self.n_components, 1)) if self.covariance_type == "diag" else np.diag(scale)

    def _variational_emission(self, prior: NormalWishart, given: dict[str, Any]) -> VariationalGaussianEmission:
        keep_means, keep_covariances = "means_posterior_" in given, "scale_posterior_" in given
        start = self._record(
            "_posterior_",
            self.means_posterior_ if keep_means else prior.means,
            self.beta_posterior_ if keep_means else prior.beta,
            self.dof_posterior_ if keep_covariances else prior.dof,
            self.scale_posterior_ if keep_covariances else prior.scale,
        )
        return VariationalGaussianEmission(
            self.covariance_type,
            prior,
            min_covar=SHARE * self._feature_variance(),
            update_means="m" in self.params,
            update_covariances="c" in self.params,
            keep_means=keep_means,
            keep_covariances=keep_covariances,
            start=start,
        )

    def _emission_posterior(self) -> NormalWishart:
        return self._record(
            "_posterior_", self.means_posterior_, self.beta_posterior_, self.dof_posterior_, self.scale_posterior_
        )

    def _emission(self, given: dict[str, Any]) -> GaussianEmission:
        return GaussianEmission(covariance_type=self.covariance_type)

    def _store_emission(self, parameters: Any) -> None:
        self._set_hyper_parameters("posterior", parameters)
        super()._store_emission(parameters.center)

    def _store_emission_prior(self, prior: NormalWishart) -> None:
        self._set_hyper_parameters("prior", prior)

    def _set_hyper_parameters(self, which: str, record: NormalWishart) -> None:
        tied = self.covariance_type == "tied"
        setattr(self, f"means_{which}_", record.means)
        setattr(self, f"beta_{which}_", record.beta)
        setattr(self, f"dof_{which}_", float(record.dof[0]) if tied else record.dof)
        setattr(self, f"scale_{which}_", record.scale[0] if tied else record.scale)
