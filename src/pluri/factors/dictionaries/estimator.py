"""Dictionary learning that infers its size, its sparsity and the noise, with missing values and error bars.

    x_i = sum_k z_ik s_ik d_k + noise,   z_ik ~ Bernoulli(pi_k),   pi_k ~ Beta(a / K, b (K - 1) / K)

Rows are sums of few of K atoms; which ones each row uses has a beta process prior, or one of its relatives in which
rows of a cluster use similar atoms.

References
----------
Zhou, Chen, Paisley, Ren, Sapiro and Carin (2009), Non-parametric Bayesian dictionary learning for sparse image
representations, NIPS.
Paisley and Carin (2009), Nonparametric factor analysis with beta process priors, ICML.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from pluri.factors.dictionaries.fitting import learn, learn_source, store, warn
from pluri.factors.dictionaries.preparation import LARGEST, prepare
from pluri.factors.dictionaries.queries import DictionaryQueries
from pluri.factors.dictionaries.variational import StreamedFit
from pluri.inference import mcmc
from pluri.priors.hyperpriors import Gamma
from pluri.validation import (
    Allowed,
    Flag,
    Made,
    Number,
    Only,
    Stored,
    Whole,
    check_parameters,
    is_source,
    restored_on_failure,
)
from pluri.validation.estimator import Estimator

GAMMA = Made(Gamma, "a prior, Gamma(shape, rate)") | Only(None)


def _takes_batches(model: BetaProcessDictionary) -> bool:
    """Whether sums over batches say all that a model has to know."""
    return bool(model.usage_prior == "beta_process" and model.noise_type == "shared")


class BetaProcessDictionary(StreamedFit, DictionaryQueries, mcmc.Sampled, Estimator):
    """Sparse dictionary with a beta process prior.

    Parameters
    ----------
    n_components : int, default=256
        Largest number of atoms.
    a, b : float, default=10.0 and 1.0
        A row uses about ``a / b`` atoms a priori.
    usage_prior : {"beta_process", "dp", "psbp"}, default="beta_process"
        How likely rows are to use each atom: all alike; alike within a cluster of rows, clusters having a Dirichlet
        process prior; or in clusters that depend on where rows are, which needs `locations`. Codes of new rows know no
        clusters: an atom is as likely in each as over all rows of the fit.
    n_clusters : int, default=20
        Largest number of clusters of "dp" and "psbp".
    share : {"probabilities", "pattern"}, default="probabilities"
        What rows of a cluster have in common: how likely they are to use each atom, or exactly which atoms they use.
        The latter is for Gibbs sampling with "dp" and rows without missing values, and its chains mix slowly.
    inference : {"gibbs", "vb", "svi"}, default="gibbs"
        Gibbs sampling; variational Bayes; or its stochastic version for data in many batches.
    collapsed : bool, default=True
        Whether weights are integrated out when Gibbs sampling draws which atoms are used. False is slower to mix, and
        there for comparison; the other ways of learning take True alone.
    noise_type : {"shared", "per_sample", "per_group"}, default="shared"
        Which rows have the same variance of the noise: all, none, or those of a group (`noise_groups` of `fit`). New
        rows are taken to have the mean of these variances.
    center : {None, "sample", "feature"}, default=None
        What is subtracted first: nothing, the mean of each row, or of each feature.
    noise_prior, weight_prior : Gamma prior or None, default=None
        Of one over the variance of the noise and of the weights, for rows whose mean square is 1; None is
        ``Gamma(1e-6, 1e-6)``.
    init : {"svd", "prior"} or array of shape (n_components, n_features), default="svd"
        Atoms to begin with: principal axes, and then draws of the prior; only the latter; or these.
    n_draws, n_warmup : int, default=100
        Of Gibbs sampling: sweeps of a chain that are kept, and before.
    n_chains, thin : int, default=1
        Of Gibbs sampling: chains, and sweeps from one draw to the next.
    max_iter : int, default=200
        Iterations of variational Bayes at most, or passes of its stochastic version.
    tol : float, default=1e-5
        Variational Bayes ends when the bound rises by less than this share of itself.
    batch_size : int, default=1024
        Rows of a batch of the stochastic version.
    learning_decay, learning_offset : float, default=0.7 and 10.0
        Of the stochastic version: batch t counts ``(learning_offset + t) ** -learning_decay``.
    n_predictive : int, default=30
        Sweeps that codes of new rows are averaged over.
    dtype : {"float64", "float32"}, default="float64"
        Type of codes and atoms while fitting.
    warm_start : bool, default=False
        Whether a further fit begins with the atoms of the last one.
    n_jobs : int or None, default=None
        Chains of Gibbs sampling that run at a time, in threads.
    random_state : int, Generator, RandomState or None, default=None
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features_in_)
        Atoms, most used first: expected ones, given the codes of the draw of highest density. They are not averaged
        over draws, in which atoms change places and signs.
    component_covariance_ : array of shape (n_components, n_components)
        How uncertain the atoms are: covariance of their entries in a feature, given those codes.
    usage_ : array of shape (n_components,)
        Probability that a row uses each atom.
    effective_size_ : dict of int
        Number of atoms, counted in several ways: ``"used"`` by any row; ``"one_percent"``, by at least 1 % of the rows;
        ``"distinct"``, those of the latter with near duplicates counted once; ``"power"``, how many it takes for 99 %
        of the power of the codes.
    noise_variance_, weight_variance_ : float; the former of shape (n_samples,) or (n_groups,) if noises differ
    noise_groups_ : array of shape (n_groups,)
        Labels of the groups of noise; only for ``noise_type="per_group"``.
    cluster_labels_ : array of shape (n_samples,)
        Cluster of each row; only for "dp" and "psbp".
    code_shares_, code_usage_, code_variances_ : arrays of shape (n_classes,) and twice (n_classes, n_components)
        Classes of rows by codes and sizes of weights (with "dp" and "psbp" at most `n_clusters`, otherwise one): share
        of the rows, probability of each atom, variance of its weight. For recovery (:class:`CompressiveRecovery`).
    reconstruction_, reconstruction_std_ : array of shape (n_samples, n_features_in_)
        Mean and standard deviation of the rows without noise, given the data.
    mean_ : array of shape (n_features_in_,)
        What was subtracted; zero unless ``center="feature"``.
    scale_ : float
        Root mean square of the centred data.
    trace_ : `pluri.inference.mcmc.Trace`
        Variances, atoms per row and atoms in use by chain and draw; Gibbs sampling only.
    bound_ : list of float
        Lower bound by iteration; variational Bayes only.
    converged_, n_iter_, n_features_in_ : bool and int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors import BetaProcessDictionary
    >>> rng = np.random.default_rng(0)
    >>> atoms = rng.normal(size=(5, 16)) / 4
    >>> codes = rng.normal(size=(200, 5)) * (rng.random((200, 5)) < 0.3)
    >>> X = codes @ atoms + 0.05 * rng.normal(size=(200, 16))
    >>> model = BetaProcessDictionary(20, random_state=0).fit(X)
    >>> bool(0.04 < model.noise_variance_**0.5 < 0.06)
    True
    >>> model.transform(X).shape
    (200, 20)
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = dict.fromkeys("ab", Number(above=0)) | {
        "n_components": Whole(1),
        "usage_prior": Only("beta_process", "dp", "psbp"),
        "n_clusters": Whole(1),
        "share": Only("probabilities", "pattern"),
        "inference": Only("gibbs", "vb", "svi"),
        "collapsed": Flag(),
        "noise_type": Only("shared", "per_sample", "per_group"),
        "center": Only(None, "sample", "feature"),
        "noise_prior": GAMMA,
        "weight_prior": GAMMA,
        "init": Only("svd", "prior") | Made((np.ndarray, list, tuple), "an array"),
        "batch_size": Whole(1),
        "learning_decay": Number(above=0.5, most=1),
        "learning_offset": Number(least=0),
        "dtype": Only("float64", "float32"),
        "warm_start": Flag(),
    }

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "components_": Stored("n_atoms", "n_features_in_"),
        "component_covariance_": Stored("n_atoms", "n_atoms"),
        "usage_": Stored("n_atoms", least=0),
        "mean_": Stored("n_features_in_"),
        "reconstruction_": Stored("n_rows", "n_features_in_"),
        "reconstruction_std_": Stored("n_rows", "n_features_in_", least=0),
        "cluster_labels_": Stored("n_rows", whole=True, least=0),
        "code_shares_": Stored("n_classes", simplex=True),
        "code_usage_": Stored("n_classes", "n_atoms", least=0, below=1),
        "code_variances_": Stored("n_classes", "n_atoms", least=0),
    }

    def __init__(
        self,
        n_components: int = 256,
        *,
        a: float = 10.0,
        b: float = 1.0,
        usage_prior: str = "beta_process",
        n_clusters: int = 20,
        share: str = "probabilities",
        inference: str = "gibbs",
        collapsed: bool = True,
        noise_type: str = "shared",
        center: str | None = None,
        noise_prior: Gamma | None = None,
        weight_prior: Gamma | None = None,
        init: Any = "svd",
        n_draws: int = 100,
        n_warmup: int = 100,
        n_chains: int = 1,
        thin: int = 1,
        max_iter: int = 200,
        tol: float = 1e-5,
        batch_size: int = 1024,
        learning_decay: float = 0.7,
        learning_offset: float = 10.0,
        n_predictive: int = 30,
        dtype: str = "float64",
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.a = a
        self.b = b
        self.usage_prior = usage_prior
        self.n_clusters = n_clusters
        self.share = share
        self.inference = inference
        self.collapsed = collapsed
        self.noise_type = noise_type
        self.center = center
        self.noise_prior = noise_prior
        self.weight_prior = weight_prior
        self.init = init
        self.n_draws = n_draws
        self.n_warmup = n_warmup
        self.n_chains = n_chains
        self.thin = thin
        self.max_iter = max_iter
        self.tol = tol
        self.batch_size = batch_size
        self.learning_decay = learning_decay
        self.learning_offset = learning_offset
        self.n_predictive = n_predictive
        self.dtype = dtype
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    partial_fit = available_if(_takes_batches)(StreamedFit.partial_fit)

    def fit(
        self, X: Any, y: Any = None, *, locations: ArrayLike | None = None, noise_groups: ArrayLike | None = None
    ) -> Self:
        """Learn a dictionary.

        After Ctrl-C the model is that of the draws so far, with a warning.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a source of batches
            NaN marks a missing value. A source (`pluri.engine`) is for ``inference="svi"``.
        y : ignored
        locations : array-like of shape (n_samples, n_dims), optional
            Where each row is, for ``usage_prior="psbp"`` only.
        noise_groups : array-like of shape (n_samples,), optional
            Label of each row, for ``noise_type="per_group"`` only.

        Returns
        -------
        self : object
        """
        check_parameters(self)
        if (locations is None) == (self.usage_prior == "psbp"):
            needed = "must be given" if locations is None else "must be None"
            raise ValueError(f"locations {needed} for usage_prior={self.usage_prior!r}")
        if self.inference != "gibbs" and not self.collapsed:
            raise ValueError(f"collapsed must be True for inference={self.inference!r}: only 'gibbs' has another way")
        with restored_on_failure(self):
            if is_source(X):
                learn_source(self, X)
                return self
            again = self.warm_start and hasattr(self, "components_")
            data = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", ensure_min_samples=2)
            if np.nanmax(np.abs(data), initial=0.0) > LARGEST:
                raise ValueError(f"X must not exceed {LARGEST:g} in size; rescale it")
            if again and self.components_.shape != (self.n_components, data.shape[1]):
                raise ValueError(
                    f"X and n_components must fit the atoms of the last fit, {self.components_.shape}, for "
                    f"warm_start=True, got {(int(self.n_components), data.shape[1])}"
                )
            prepared = prepare(
                data, center=self.center, dtype=np.dtype(self.dtype), noise_type=self.noise_type,
                noise_groups=noise_groups, locations=locations,
            )  # fmt: skip
            fitted = learn(self, prepared, again)
            store(self, fitted, prepared)
        warn(self, fitted, prepared)
        return self
