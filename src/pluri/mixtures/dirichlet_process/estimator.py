"""Mixture whose number of components is learned: the scikit-learn estimator around three ways to infer it.

``G ~ DP(alpha, H)``, ``theta_i ~ G``, ``x_i ~ p(x | theta_i)`` with H conjugate to the likelihood. The number of
clusters is not chosen but has a posterior; so have the partition, the concentration and every prediction.

References
----------
Neal (2000), Markov chain sampling methods for Dirichlet process mixture models, JCGS 9.
Blei and Jordan (2006), Variational inference for Dirichlet process mixtures, Bayesian Analysis 1.
Wade and Ghahramani (2018), Bayesian cluster analysis: point estimation and credible balls, Bayesian Analysis 13.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix, issparse
from sklearn.base import ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from pluri.inference import mcmc
from pluri.metrics.partition_posterior import minimize_expected_loss
from pluri.mixtures.dirichlet_process.answers import MixtureAnswers
from pluri.mixtures.dirichlet_process.collapsed_gibbs import CollapsedGibbs
from pluri.mixtures.dirichlet_process.partition_posterior import PartitionPosterior
from pluri.mixtures.dirichlet_process.predictive import Predictive, from_draws
from pluri.mixtures.dirichlet_process.slice_gibbs import SliceGibbs
from pluri.mixtures.dirichlet_process.variational import (
    TruncatedMeanField,
    WeightedRows,
    expected_weights,
    mean_concentration,
)
from pluri.mixtures.dirichlet_process.variational_search import best_beliefs
from pluri.mixtures.dirichlet_process.weighted_rows import check_row_weights, copies, merged, refuse_missing, row_order
from pluri.priors.hyperpriors import Gamma, Hyperparameter, as_hyperparameter
from pluri.processes.concentration import CONCENTRATION_PRIOR
from pluri.processes.conjugate_clusters._kernels import BINARY, COLUMNS, GAUSSIAN, TOKENS
from pluri.processes.conjugate_clusters.prior_defaults import family_kind, make_likelihood
from pluri.processes.conjugate_clusters.records import (
    Array,
    Integers,
    check_values,
    checked_data,
    cluster_sums,
    kind_of,
    weighted_sums,
)
from pluri.validation import (
    Allowed,
    Only,
    RandomState,
    Stored,
    Whole,
    as_generator,
    check_parameters,
    restored_on_failure,
)
from pluri.validation.estimator import Estimator

#: Draws that the search for a point estimate looks at.
MOST_DRAWS = 100
#: Larger data could not be squared and summed.
LARGEST = 1e100


class DirichletProcessMixture(MixtureAnswers, ClusterMixin, Estimator):
    """Mixture with a Dirichlet process prior: clustering and density estimation without a number of clusters.

    Parameters
    ----------
    family : {"gaussian", "bernoulli", "multinomial", "poisson"} or a conjugate likelihood, default="gaussian"
        Distribution of the rows of a cluster. Or one of `pluri.processes`: `NormalInverseWishart`, `NormalGamma`,
        `BetaBernoulli`, `DirichletMultinomial`, `GammaPoisson`.
    inference : {"gibbs", "slice", "vb"}, default="gibbs"
        Collapsed Gibbs sampling; slice sampling, in which all rows move at once; or a truncated variational
        approximation, which is fast and has no posterior over partitions.
    component_prior : dict, optional
        Parameters of the prior that are not to be chosen from the data: ``mean``, ``strength``, ``df``, ``scale`` of
        "gaussian" (the mean of the data, 0.01, n_features + 2, and variances of the data divided by
        5^(2 / n_features): the scale matters most, it says how large clusters are; a number is times the identity);
        ``a``, ``b`` of "bernoulli" (two rows around the frequencies in the data); ``concentration`` of "multinomial"
        (0.5); ``shape``, ``rate`` of "poisson" (1, and one over the mean of each column).
    concentration : float, `pluri.priors.Gamma` prior or "learn", default="learn"
        Of the process: the larger, the more clusters. A number is fixed; a prior is what it is learned under, from its
        mean on; "learn" is Gamma(1, 1).
    init_clusters : int, optional
        Chains begin with rows in so many clusters at random; by default rows are seated one after another.
    n_draws, n_warmup : int, default=100, 200
        Draws kept of each chain, and sweeps before them.
    thin : int, default=5
        Sweeps from one draw to the next.
    n_chains : int, default=2
    split_merge : int, default=5
        Proposals of the samplers to split or merge clusters, in each sweep.
    point_estimate : {"vi", "binder", "map"}, default="vi"
        `labels_` has the smallest expected variation of information or Binder loss, or is the draw of highest density.
    n_predictive : int, default=100
        Draws that predictions average over.
    max_components : int, default=20
        Truncation of the variational approximation.
    n_init : int, default=3
        Starts of the variational approximation with each of 1, 2, 4, ..., `max_components` clusters by k-means; then
        clusters are merged or dissolved as long as the bound rises. The fit with the highest bound is kept.
    tol, max_iter : float, int, default=1e-6, 500
        The variational approximation ends when a sweep changes the bound by less than this share of it.
    warm_start : bool, default=False
        Chains begin where those of the last fit stopped, without a warm-up.
    random_state : int, Generator, RandomState or None
    n_jobs : int, optional
        Chains at a time, in threads.
    verbose : int, default=0

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Point estimate of the partition, the largest cluster first.
    n_clusters_ : int
        Number of its clusters.
    weights_ : array of shape (n_clusters_,)
        Share of the rows in each.
    cluster_centers_ : array of shape (n_clusters_, n_features_in_)
        Posterior means: of the rows for Gaussian clusters and counts, of probabilities otherwise.
    concentration_ : float
        Posterior mean.
    likelihood_ : conjugate likelihood with its prior
    predictive_ : Predictive
        What predictions are made from.
    trace_ : Trace
        Draws of ``labels``, ``alpha`` and ``n_clusters``; samplers only.
    n_clusters_trace_, concentration_trace_, log_joint_trace_ : arrays of shape (n_chains, n_draws)
        Samplers only.
    expected_loss_ : float
        Of `labels_`, in nats for "vi"; samplers only.
    elbo_ : list of float
        Lower bound by sweep; variational only.
    converged_ : bool
    n_iter_ : int
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.mixtures.dirichlet_process import DirichletProcessMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 1.0, size=(40, 2)) for c in (-6.0, 0.0, 6.0)])
    >>> model = DirichletProcessMixture(random_state=0).fit(X)
    >>> model.n_clusters_
    3
    >>> bool(model.n_components_posterior()[3] > 0.5)
    True
    >>> model.predict([[6.0, 5.0]]) == model.labels_[-1]
    array([ True])
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "weights_": Stored("n_clusters_"),
        "labels_": Stored("n_rows", whole=True, least=0, below="n_clusters_"),
    }

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "inference": Only("gibbs", "slice", "vb"),
        "point_estimate": Only("vi", "binder", "map"),
        "max_components": Whole(1),
        "split_merge": Whole(0),
        "init_clusters": Whole(1) | Only(None),
    }

    def __init__(
        self,
        family: Any = "gaussian",
        *,
        inference: str = "gibbs",
        component_prior: Mapping[str, Any] | None = None,
        concentration: float | Gamma | str = "learn",
        init_clusters: int | None = None,
        n_draws: int = 100,
        n_warmup: int = 200,
        thin: int = 5,
        n_chains: int = 2,
        split_merge: int = 5,
        point_estimate: str = "vi",
        n_predictive: int = 100,
        max_components: int = 20,
        n_init: int = 3,
        tol: float = 1e-6,
        max_iter: int = 500,
        warm_start: bool = False,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.family = family
        self.inference = inference
        self.component_prior = component_prior
        self.concentration = concentration
        self.init_clusters = init_clusters
        self.n_draws = n_draws
        self.n_warmup = n_warmup
        self.thin = thin
        self.n_chains = n_chains
        self.split_merge = split_merge
        self.point_estimate = point_estimate
        self.n_predictive = n_predictive
        self.max_components = max_components
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._is_gaussian()
        tags.input_tags.positive_only = not self._is_gaussian()
        return tags

    def _is_gaussian(self) -> bool:
        try:
            return family_kind(self.family) in (GAUSSIAN, COLUMNS)
        except ValueError:
            return True

    def _check_settings(self) -> None:
        check_parameters(self)
        family_kind(self.family)
        self._concentration()

    def _concentration(self) -> Hyperparameter:
        return as_hyperparameter(self.concentration, "concentration", CONCENTRATION_PRIOR)

    def _check_rows(self, X: Any, *, fitting: bool) -> Any:
        sparse = False if self._is_gaussian() else "csr"
        data = validate_data(
            self, X, dtype=np.float64, accept_sparse=sparse, ensure_all_finite="allow-nan", reset=fitting
        )
        refuse_missing(data)
        if issparse(data):
            data = csr_matrix(data, copy=True)  # what follows puts entries in order
            data.sum_duplicates()
            data.eliminate_zeros()
        if np.abs(data).max() > LARGEST:
            raise ValueError(f"X must not exceed {LARGEST:g} in size; rescale it")
        check_values(family_kind(self.family), data)
        return data

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Infer the clusters.

        After Ctrl-C the model is that of the draws so far, with a warning.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Zeros and ones for "bernoulli", counts for "multinomial" and "poisson"; these may be sparse.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight 2 counts as two rows. Samplers take whole numbers only.

        Returns
        -------
        self : object
        """
        self._check_settings()
        with restored_on_failure(self):
            data = self._check_rows(X, fitting=True)
            weights = check_row_weights(sample_weight, data.shape[0])
            if self.inference == "vb":
                self._fit_vb(data, weights)
            else:
                self._fit_chains(data, weights)
        return self

    # Sampling ---------------------------------------------------------------------------------------------------

    def _fit_chains(self, data: Any, weights: Array) -> None:
        repeated = copies(weights)
        order, _ = row_order(data[repeated])
        rows = data[repeated[order]]
        likelihood = make_likelihood(self.family, self.component_prior, rows, np.ones(rows.shape[0]))
        kernel_class = CollapsedGibbs if self.inference == "gibbs" else SliceGibbs
        kernel = kernel_class(likelihood, rows, self.concentration, n_proposals=int(self.split_merge))
        rng = as_generator(self.random_state)
        warm, start = self._start(kernel)
        trace = mcmc.sample(
            kernel, start, record=kernel.record, n_draws=self.n_draws,
            n_warmup=0 if warm else self.n_warmup, n_chains=self.n_chains, thin=self.thin, random_state=rng,
            n_jobs=self.n_jobs, backend="threads", verbose=int(self.verbose), warn=False,
        )  # fmt: skip
        best = max((end.state for end in trace.ends), key=lambda state: state.best_log_density)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        draws, alphas = trace.flat("labels"), trace.flat("alpha")
        labels = self._point_estimate(draws, np.asarray(best.best["labels"]), rng)
        chosen = _spread(len(draws), int(self.n_predictive))
        self.likelihood_ = likelihood
        self.predictive_ = from_draws(likelihood, kernel.data, draws[chosen], alphas[chosen], labels)
        self.trace_ = replace(
            trace.detached(), draws={**trace.draws, "labels": np.ascontiguousarray(trace["labels"][..., place])}
        )
        self.concentration_ = float(alphas.mean())
        self.n_iter_ = (0 if warm else int(self.n_warmup)) + trace.n_draws * int(self.thin)
        for name in ("elbo_", "lower_bound_"):
            self.__dict__.pop(name, None)
        self._name_clusters(kernel.data, labels, np.ones(len(labels)))
        self._label_rows(data, weights, labels[place])
        self._judge(trace)

    def _start(self, kernel: PartitionPosterior) -> tuple[bool, Any]:
        n = kernel.data.shape[0]
        before = getattr(self, "trace_", None) if self.warm_start else None
        if before is not None and len(before.ends) == self.n_chains and len(before.ends[0].position["labels"]) == n:
            return True, [dict(end.position) for end in before.ends]
        n_clusters = None if self.init_clusters is None else min(int(self.init_clusters), n)
        return False, lambda rng: kernel.sample_start(rng, n_clusters)

    def _point_estimate(self, draws: Integers, best: Integers, rng: np.random.Generator) -> Integers:
        if self.point_estimate == "map":
            self.expected_loss_ = float("nan")
            labels = best
        else:
            n = draws.shape[1]
            kept = draws[_spread(len(draws), MOST_DRAWS)]
            found = minimize_expected_loss(
                kept, loss=self.point_estimate, n_starts=8 if n <= 2000 else 2, random_state=rng
            )
            self.expected_loss_, labels = found.expected_loss, found.labels
        rank = np.argsort(np.argsort(-np.bincount(labels), kind="stable"), kind="stable")
        return np.asarray(rank[labels])

    def _label_rows(self, data: Any, weights: Array, labels: Integers) -> None:
        """`labels` are those of the copies of rows; rows without a copy get the likeliest cluster."""
        number = weights.astype(np.int64)
        self.labels_ = np.zeros(len(number), dtype=np.int64)
        seen = number > 0
        self.labels_[seen] = labels[(np.cumsum(number) - number)[seen]]
        if not seen.all():
            self.labels_[~seen] = self.predictive_.probabilities(data[~seen]).argmax(axis=1)

    def _judge(self, trace: mcmc.Trace) -> None:
        verdict = trace.verdict("log_density", limit=mcmc.LATENT_R_HAT_LIMIT)
        self.converged_ = verdict.settled
        if not trace.interrupted:
            verdict.warn(stacklevel=5)

    # Variational inference --------------------------------------------------------------------------------------

    def _fit_vb(self, data: Any, weights: Array) -> None:
        distinct, counts = merged(data, weights)
        likelihood = make_likelihood(self.family, self.component_prior, distinct, counts)
        rows = WeightedRows(checked_data(likelihood, distinct), counts)
        model = TruncatedMeanField(likelihood, int(self.max_components), self._concentration())
        result = best_beliefs(
            model, rows, as_generator(self.random_state), n_init=int(self.n_init), max_iter=int(self.max_iter),
            tol=float(self.tol), verbose=int(self.verbose),
        )  # fmt: skip
        q = result.params
        self.likelihood_ = likelihood
        log_weights = np.log(expected_weights(q.sticks))
        everyone = Predictive(likelihood, q.statistics, q.sizes, log_weights, np.eye(len(q.sizes)))
        component = everyone.probabilities(rows.data).argmax(axis=1)
        used, labels = np.unique(component, return_inverse=True)
        occupied = np.bincount(labels, weights=counts)
        rank = np.argsort(np.argsort(-occupied, kind="stable"), kind="stable")
        shares = np.zeros((len(q.sizes), len(used)))
        shares[used, rank] = 1.0
        self.predictive_ = replace(everyone, shares=shares)
        self._name_clusters(rows.data, rank[labels], counts)
        self.labels_ = self.predictive_.probabilities(checked_data(likelihood, data)).argmax(axis=1)
        self.concentration_ = mean_concentration(q.alpha)
        self.elbo_, self.lower_bound_ = result.trace.tolist(), float(result.elbo)
        self.n_iter_, self.converged_ = int(result.n_iter), bool(result.converged)
        for name in ("trace_", "expected_loss_"):
            self.__dict__.pop(name, None)
        if not result.converged and not result.interrupted:
            warnings.warn(
                f"the bound still rises after max_iter={self.max_iter} sweeps; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _name_clusters(self, data: Any, labels: Integers, weights: Array) -> None:
        sizes = np.bincount(labels, weights=weights)
        self.n_clusters_ = len(sizes)
        self.weights_ = sizes / sizes.sum()
        if (weights == 1).all():
            sums = cluster_sums(self.likelihood_, data, labels, len(sizes))
        else:
            member = np.zeros((len(labels), len(sizes)))
            member[np.arange(len(labels)), labels] = weights
            sums = weighted_sums(self.likelihood_, data, member)
        self.cluster_centers_ = _centers(self.likelihood_, sums)
        self.n_tokens_ = max(1, round(float(weights @ np.asarray(data.sum(axis=1)).ravel()) / weights.sum()))

    def _check_fitted_state(self) -> None:
        if not hasattr(self, "predictive_"):
            return
        for name, likelihood in (("likelihood_", self.likelihood_), ("predictive_", self.predictive_.likelihood)):
            if likelihood.n_features != self.n_features_in_:
                raise ValueError(f"{name} must have {self.n_features_in_} features, got {likelihood.n_features}")
        if self.predictive_.shares.shape[1] != self.n_clusters_:
            raise ValueError(f"predictive_ must have shares of {self.n_clusters_} clusters")


def _spread(n: int, most: int) -> Integers:
    """Numbers below n, spread evenly, at most so many."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))


def _centers(likelihood: Any, statistics: Array) -> Array:
    kind = kind_of(likelihood)
    if kind in (GAUSSIAN, COLUMNS):
        center = likelihood._posterior(statistics)[2 if kind == GAUSSIAN else 1]
        return np.asarray(np.asarray(likelihood.mean) + center)
    if kind == TOKENS:
        counts = likelihood._alpha + statistics
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))
    if kind == BINARY:
        heads, tails = likelihood._heads_and_tails(statistics)
        return np.asarray(heads / (heads + tails))
    shape, rate = likelihood._prior
    return np.asarray((shape + statistics[:, 2:]) / (rate + statistics[:, :1]))
