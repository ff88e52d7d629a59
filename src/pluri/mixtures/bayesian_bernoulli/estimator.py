"""Bernoulli mixture whose clusters are sampled, with weights and probabilities integrated out.

``pi ~ Dirichlet(a/k, ..., a/k)``, ``theta_ij ~ Beta(b, g)``, ``z_n ~ pi``, ``x_ni ~ Bernoulli(theta_i,z_n)``. Several
chains of collapsed Gibbs sweeps (`pluri.mixtures.bayesian_bernoulli.gibbs`) each leave one sample of the labels; what
is asked of the model is averaged over them (`pluri.mixtures.bayesian_bernoulli.predictive`).

References
----------
.. [1] Hu, D., van der Maaten, L., Cho, Y., Saul, L. and Lerner, S. (2010). Latent variable models for predicting file
   dependencies in large-scale software development. NIPS 23.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import DensityMixin

from pluri.factors.binary_completion import BinaryCompletionMixin, BinaryRows, check_binary
from pluri.inference import mcmc
from pluri.mixtures.bayesian_bernoulli.gibbs import BernoulliGibbs
from pluri.mixtures.bayesian_bernoulli.predictive import ClusterTables
from pluri.mixtures.bayesian_bernoulli.queries import ClusterQueries
from pluri.priors.hyperpriors import Beta, Gamma, as_hyperparameter
from pluri.validation import (
    Allowed,
    Made,
    Only,
    RandomState,
    Stored,
    Whole,
    as_generator,
    check_parameters,
    restored_on_failure,
)
from pluri.validation.estimator import Estimator
from pluri.validation.interruption import kept

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Chains still rise if the last quarter of the sweeps brought more than this part of the whole rise.
RISING = 0.05
#: The share of chains that may be far worse than the best.
MOST_LOST = 0.05
#: Chains that differ by less than this in log p(labels, X) are not far from each other, however few rows there are.
LEAST_LOSS = 10.0
#: Rows that the default prior is worth: 0.005 + 0.95.
PRIOR_STRENGTH = 0.955
#: What `weight_concentration` is learned under unless something else is said.
CONCENTRATION_PRIOR = Gamma(1.0, 0.02)


class BayesianBernoulliMixture(ClusterQueries, mcmc.Sampled, BinaryCompletionMixin, DensityMixin, Estimator):
    """Mixture of Bernoulli vectors by collapsed Gibbs sampling.

    Parameters
    ----------
    n_components : int or None, default=200
        Number of clusters; None for a Dirichlet process, which finds it.
    weight_concentration : float, `pluri.priors.Gamma` prior or "learn", default=50.0
        Concentration of the Dirichlet prior of the weights, ``weight_concentration / n_components`` for each; that of
        the Dirichlet process if `n_components` is None. A number is fixed; a prior is what it is drawn under, from its
        mean on; "learn" is Gamma(1, 0.02), whose mean is 50.
    probabilities_prior : `pluri.priors.Beta` prior or None, default=None
        Prior of every probability: ones (a) and zeros (b) that a cluster has seen before any row. By default they sum
        to 0.955, as the published 0.005 and 0.95, and their mean is the share of ones in the data.
    n_chains : int, default=30
        Number of chains; the last draw of each is a sample.
    n_warmup, n_draws : int, default=15
        Sweeps of each chain, before its draws and of its draws, by which it is judged. It begins with rows put in
        clusters one after another, each given those before it, or with the most similar of a few rows, whichever is
        likelier.
    combine : {"joint", "average"}, default="joint"
        How completed rows are averaged over the samples: by how well each explains the known entries, as Bayes' rule
        has it, or each alike.
    binarize : float or None, default=0.0
        Values above this are ones; None if X already holds zeros and ones.
    n_jobs : int or None, default=None
        Chains run at a time, in threads; -1 is all cores. The results do not depend on it.
    random_state : int, Generator, RandomState or None, default=None
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Cluster of each row in the sample of highest log joint probability, from 0 by decreasing size.
    weights_ : array of shape (n_clusters_,)
        Posterior mean weights of its clusters; what is missing to 1 belongs to clusters without members.
    probabilities_ : array of shape (n_clusters_, n_features)
        Posterior mean probabilities of a one in them.
    n_clusters_ : int
        Number of its clusters that have members.
    sample_labels_ : array of shape (n_chains, n_samples)
        Labels of all samples. Numbers of different samples have nothing to do with each other.
    best_chain_ : int
        Which of them is the one above.
    log_joint_trace_ : array of shape (n_chains, n_warmup + n_draws)
        log p(labels, X) after each sweep, from the first.
    n_clusters_trace_ : array of shape (n_chains, n_warmup + n_draws)
    concentrations_ : array of shape (n_chains,)
        Concentration of each sample.
    probabilities_prior_ : Beta
        The prior that was used.
    r_hat_ : float
        Of log p(labels, X) over the draws. Chains of many clusters rarely agree (well above 1.1); averaging over many
        of them is what makes up for it.
    converged_ : bool
        Whether R-hat is at most 1.1, or else log p(labels, X) has stopped rising and the chains found clusters about as
        good as each other's: at most one in twenty lacks more than half of what the best gained over a single cluster.
    lower_bound_ : float
        log p(labels, X) of the best sample.
    n_iter_ : int
        Sweeps of each chain.
    trace_ : `pluri.inference.mcmc.Trace`
        Draws of ``n_clusters`` and ``concentration``.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.mixtures.bayesian_bernoulli.estimator import BayesianBernoulliMixture
    >>> X = np.repeat([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 0]], 20, axis=0)
    >>> model = BayesianBernoulliMixture(5, weight_concentration=1.0, n_chains=4, random_state=0).fit(X)
    >>> model.n_clusters_
    2
    >>> model.predict_missing([0]).round()
    array([1., 1., 1., 0., 0., 0.])
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "sample_labels_": Stored("n_samples_kept", "n_rows", whole=True, least=0),
        "labels_": Stored("n_rows", whole=True, least=0),
        "concentrations_": Stored("n_samples_kept"),
        "weights_": Stored("n_listed"),
        "probabilities_": Stored("n_listed", "n_features_in_", least=0),
    }

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "n_components": Whole(1) | Only(None),
        "probabilities_prior": Made(Beta, "a prior (Beta)") | Only(None),
        "combine": Only("joint", "average"),
    }

    def __init__(
        self,
        n_components: int | None = 200,
        *,
        weight_concentration: float | Gamma | str = 50.0,
        probabilities_prior: Beta | None = None,
        n_chains: int = 30,
        n_warmup: int = 15,
        n_draws: int = 15,
        combine: str = "joint",
        binarize: float | None = 0.0,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.weight_concentration = weight_concentration
        self.probabilities_prior = probabilities_prior
        self.n_chains = n_chains
        self.n_warmup = n_warmup
        self.n_draws = n_draws
        self.combine = combine
        self.binarize = binarize
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Sample the clusters of the rows.

        After Ctrl-C the model is that of the sweeps so far, with a warning.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Values above `binarize` are ones; NaN is a missing entry, left out exactly.
        y : ignored

        Returns
        -------
        self : object
        """
        check_parameters(self)
        with restored_on_failure(self):
            self._sample(check_binary(self, X, binarize=self.binarize, reset=True))
        return self

    def _sample(self, rows: BinaryRows) -> None:
        concentration = as_hyperparameter(self.weight_concentration, "weight_concentration", CONCENTRATION_PRIOR)
        prior = _following(rows) if self.probabilities_prior is None else self.probabilities_prior
        kernel = BernoulliGibbs(rows, self.n_components, concentration, prior)
        self.probabilities_prior_ = prior
        # The rise of the first sweeps says whether that of the last matters, so that the warm-up is recorded too.
        trace = mcmc.sample(
            kernel, kernel.likelier_start, record=kernel.record, n_draws=self.n_warmup + self.n_draws, n_warmup=0,
            n_chains=int(self.n_chains), random_state=as_generator(self.random_state), n_jobs=self.n_jobs,
            backend="threads", verbose=int(self.verbose), warn=False,
        )  # fmt: skip
        self._store(rows, trace)
        if trace.interrupted:
            kept("fit interrupted; the sweeps so far are kept")
            return
        # R-hat alone finds fault with all fits of many clusters, whose chains each keep to clusters of their own.
        verdict = self.trace_.verdict("log_density", limit=mcmc.LATENT_R_HAT_LIMIT)
        if verdict.settled:
            return
        if self._far_apart(kernel, trace):
            self.converged_ = False
            verdict.warn(
                "Several chains are far less likely than the best: a probabilities_prior that suits the share of ones "
                "in X may help",
                stacklevel=4,
            )
        elif _still_rising(self.log_joint_trace_):
            self.converged_ = False
            verdict.warn("log p(labels, X) still rises", stacklevel=4)

    def _store(self, rows: BinaryRows, trace: mcmc.Trace) -> None:
        ends = [end.state for end in trace.ends]
        samples = [_by_size(end.position["labels"]) for end in ends]
        self.trace_ = _last(trace.detached(), self.n_draws)
        self.sample_labels_ = np.array(samples)
        self.concentrations_ = np.array([float(end.position["concentration"]) for end in ends])
        self.log_joint_trace_ = np.asarray(trace.stats["log_density"])
        self.n_clusters_trace_ = np.asarray(trace["n_clusters"])
        self.best_chain_ = int(np.argmax([end.log_density for end in ends]))
        self.lower_bound_ = float(ends[self.best_chain_].log_density)
        self.labels_ = samples[self.best_chain_]
        self.n_clusters_ = int(self.labels_.max()) + 1
        self.n_iter_ = trace.n_draws
        self.tables_ = ClusterTables.of(
            rows, samples, self.concentrations_.tolist(), self.n_components, self.probabilities_prior_
        )
        best = self._best()
        self.weights_ = np.exp(self.tables_.log_weight[best][:-1])
        self.probabilities_ = self.tables_.probabilities(slice(best.start, best.stop - 1))
        self.r_hat_ = self.trace_.verdict("log_density").r_hat
        self.converged_ = True

    def _far_apart(self, kernel: BernoulliGibbs, trace: mcmc.Trace) -> bool:
        """Whether chains lose much of what clusters explain."""
        best = trace.ends[self.best_chain_].state.position
        single = kernel.log_joint({**best, "labels": np.zeros_like(best["labels"])})
        second = self.trace_.stats["log_density"]
        means, noise = second.mean(axis=1), float(second.std(axis=1).mean())
        lost = means.max() - means > max(0.5 * (means.max() - single), LEAST_LOSS, 4.0 * noise)
        return bool(lost.mean() > MOST_LOST)

    def fit_predict(self, X: Any, y: Any = None) -> Integers:
        """Fit, and give `labels_`: the sample itself, not the likeliest clusters given the rest."""
        return self.fit(X).labels_

    def _check_fitted_state(self) -> None:
        if hasattr(self, "tables_") and self.tables_.n_features != self.n_features_in_:
            raise ValueError(f"tables_ must have {self.n_features_in_} columns, got {self.tables_.n_features}")


def _following(rows: BinaryRows) -> Beta:
    """The prior whose mean is the share of ones in the data, half a one and a zero added."""
    known = rows.shape[0] * rows.shape[1] - (0 if rows.missing is None else rows.missing.nnz)
    share = (rows.ones.nnz + 0.5) / (known + 1.0)
    return Beta(PRIOR_STRENGTH * share, PRIOR_STRENGTH * (1.0 - share))


def _last(trace: mcmc.Trace, n_draws: int) -> mcmc.Trace:
    """The last draws of each chain; what came before them was its warm-up."""
    draws, stats = ({name: v[:, -n_draws:] for name, v in part.items()} for part in (trace.draws, trace.stats))
    return replace(trace, draws=draws, stats=stats, n_warmup=max(0, trace.n_draws - n_draws))


def _by_size(labels: Integers) -> Integers:
    """The same clusters numbered from 0 by decreasing size; of equals, the one met first comes first."""
    _, first, inverse, sizes = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    place = np.empty(len(sizes), dtype=np.int64)
    place[np.lexsort((first, -sizes))] = np.arange(len(sizes))
    return place[inverse]


def _still_rising(log_joint: Array) -> bool:
    """Whether the last quarter of the sweeps is above the third, by more than chance and more than next to nothing."""
    quarter = log_joint.shape[1] // 4
    if quarter < 2:
        return False
    last = log_joint[:, -quarter:].mean(axis=1)
    gain = last - log_joint[:, -2 * quarter : -quarter].mean(axis=1)
    whole = float((last - log_joint[:, 0]).mean())
    error = float(gain.std(ddof=1)) / np.sqrt(len(gain)) if len(gain) > 1 else float(log_joint[:, -quarter:].std())
    rise = float(gain.mean())
    return rise > 1.0 and rise > 3.0 * error and rise > RISING * whole
