"""Bernoulli mixture whose clusters are sampled, with weights and probabilities integrated out.

``pi ~ Dirichlet(a/k, ..., a/k)``, ``theta_ij ~ Beta(b, g)``, ``z_n ~ pi``, ``x_ni ~ Bernoulli(theta_i,z_n)``. Several
chains of collapsed Gibbs sweeps (`pluri.mixtures.bernoulli_gibbs`) each leave one sample of the labels; what is asked
of the model is averaged over them (`pluri.mixtures.bernoulli_predictive`).

References
----------
.. [1] Hu, D., van der Maaten, L., Cho, Y., Saul, L. and Lerner, S. (2010). Latent variable models for predicting file
   dependencies in large-scale software development. NIPS 23.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from pluri.factors.binary_completion import BLOCK, BinaryCompletionMixin, BinaryRows, check_binary
from pluri.inference import mcmc
from pluri.mixtures.bernoulli_gibbs import BernoulliGibbs
from pluri.mixtures.bernoulli_predictive import ClusterTables
from pluri.validation import RandomState, Stored, as_generator, restored_on_failure
from pluri.validation.estimator import Estimator
from pluri.validation.interruption import kept

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

COMBINATIONS = ("joint", "average")
#: A chain has settled if the last quarter of the sweeps brought less than this part of the whole rise.
SETTLED = 0.05
#: R-hat below which chains agree, and the share of them that may be far worse than the best where it is not.
AGREEING, MOST_LOST = 1.1, 0.05
#: Chains that differ by less than this in log p(labels, X) are not far from each other, however few rows there are.
LEAST_LOSS = 10.0
#: Rows that the default prior is worth: 0.005 + 0.95.
PRIOR_STRENGTH = 0.955
#: Above this number of rows a matrix of all pairs is not made.
MOST_PAIRS = 20_000


class BayesianBernoulliMixture(BinaryCompletionMixin, DensityMixin, Estimator):
    """Mixture of Bernoulli vectors by collapsed Gibbs sampling.

    Parameters
    ----------
    n_components : int or None, default=200
        Number of clusters; None for a Dirichlet process, which finds it.
    weight_concentration : float, default=50.0
        Concentration of the Dirichlet prior of the weights, ``weight_concentration / n_components`` for each; that of
        the Dirichlet process if `n_components` is None.
    success_prior, failure_prior : float, optional
        Parameters of the beta prior of every probability: ones and zeros that a cluster has seen before any row. By
        default they sum to 0.955, as the published 0.005 and 0.95, and their mean is the share of ones in the data.
    n_chains : int, default=30
        Number of chains; the last state of each is a sample.
    n_sweeps : int, default=30
        Length of each chain. It begins with rows put in clusters one after another, each given those before it, or
        with the most similar of a few rows, whichever is likelier.
    combine : {"joint", "average"}, default="joint"
        How completed rows are averaged over the samples: by how well each explains the known entries, as Bayes' rule
        has it, or each alike.
    learn_concentration : bool, default=False
        Draw the concentration too, under an exponential prior with mean `weight_concentration`.
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
    log_joint_trace_ : array of shape (n_chains, n_sweeps)
        log p(labels, X) after each sweep.
    n_clusters_trace_ : array of shape (n_chains, n_sweeps)
    concentrations_ : array of shape (n_chains,)
        Concentration of each sample.
    success_prior_, failure_prior_ : float
        The prior that was used.
    r_hat_ : float
        Split R-hat of log p(labels, X) over the second halves of the chains. Chains of many clusters rarely agree
        (well above 1.1); averaging over many of them is what makes up for it.
    converged_ : bool
        Whether log p(labels, X) has stopped rising and chains found clusters about as good as each other's: R-hat is
        below 1.1, or at most one in twenty lacks more than half of what the best gained over a single cluster.
    lower_bound_ : float
        log p(labels, X) of the best sample.
    n_iter_ : int
        Sweeps of each chain.
    trace_ : `pluri.inference.mcmc.Trace`
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.mixtures.bayesian_bernoulli import BayesianBernoulliMixture
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

    def __init__(
        self,
        n_components: int | None = 200,
        *,
        weight_concentration: float = 50.0,
        success_prior: float | None = None,
        failure_prior: float | None = None,
        n_chains: int = 30,
        n_sweeps: int = 30,
        combine: str = "joint",
        learn_concentration: bool = False,
        binarize: float | None = 0.0,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.weight_concentration = weight_concentration
        self.success_prior = success_prior
        self.failure_prior = failure_prior
        self.n_chains = n_chains
        self.n_sweeps = n_sweeps
        self.combine = combine
        self.learn_concentration = learn_concentration
        self.binarize = binarize
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    def _check_settings(self) -> None:
        for name in ("n_chains", "n_sweeps"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name} must be an integer of at least 1, got {value!r}")
        if self.combine not in COMBINATIONS:
            raise ValueError(f"combine must be one of {COMBINATIONS}, got {self.combine!r}")

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
        self._check_settings()
        with restored_on_failure(self):
            self._sample(check_binary(self, X, binarize=self.binarize, reset=True))
        return self

    def _sample(self, rows: BinaryRows) -> None:
        success, failure = _beta_prior(rows, self.success_prior, self.failure_prior)
        kernel = BernoulliGibbs(
            rows, self.n_components, self.weight_concentration, success, failure, bool(self.learn_concentration)
        )
        self.success_prior_, self.failure_prior_ = float(success), float(failure)
        trace = mcmc.sample(
            kernel, kernel.likelier_start, record=kernel.record, n_draws=int(self.n_sweeps), n_warmup=0,
            n_chains=int(self.n_chains), random_state=as_generator(self.random_state), n_jobs=self.n_jobs,
            backend="threads", verbose=int(self.verbose), warn=False,
        )  # fmt: skip
        self._store(rows, trace)
        if trace.interrupted:
            kept("fit interrupted; the sweeps so far are kept")
        elif self._far_apart(kernel, trace):
            self.converged_ = False
            warnings.warn(
                f"the chains disagree (r_hat_ {self.r_hat_:.2f}): several are far less likely than the best; "
                "raise n_sweeps, or give success_prior and failure_prior that suit the share of ones in X",
                ConvergenceWarning,
                stacklevel=3,
            )
        elif not self.converged_:
            warnings.warn(
                f"log p(labels, X) still rises after n_sweeps={self.n_sweeps} sweeps; raise n_sweeps",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _store(self, rows: BinaryRows, trace: mcmc.Trace) -> None:
        ends = [end.state for end in trace.ends]
        samples = [_by_size(end.position["labels"]) for end in ends]
        self.trace_ = trace.detached()
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
            rows, samples, self.concentrations_.tolist(), self.n_components, self.success_prior_, self.failure_prior_
        )
        best = self._best()
        self.weights_ = np.exp(self.tables_.log_weight[best][:-1])
        self.probabilities_ = self.tables_.probabilities(slice(best.start, best.stop - 1))
        second = self.log_joint_trace_[:, self.n_iter_ // 2 :]
        flat = second.shape[1] < 4 or float(np.ptp(second)) == 0.0
        self.r_hat_ = float("nan") if flat else float(mcmc.r_hat(second))
        self.converged_ = not _still_rising(self.log_joint_trace_)

    def _far_apart(self, kernel: BernoulliGibbs, trace: mcmc.Trace) -> bool:
        """Whether chains lose much of what clusters explain; R-hat alone finds fault with all fits of many clusters."""
        if not self.r_hat_ > AGREEING:
            return False
        best = trace.ends[self.best_chain_].state.position
        single = kernel.log_joint({**best, "labels": np.zeros_like(best["labels"])})
        second = self.log_joint_trace_[:, self.n_iter_ // 2 :]
        means, noise = second.mean(axis=1), float(second.std(axis=1).mean())
        lost = means.max() - means > max(0.5 * (means.max() - single), LEAST_LOSS, 4.0 * noise)
        return bool(lost.mean() > MOST_LOST)

    def _best(self) -> slice:
        """Rows of the tables of the best sample; the last one is the empty cluster."""
        return self.tables_.of_sample(self.best_chain_)

    def _blocks(self, X: Any) -> list[tuple[slice, BinaryRows]]:
        check_is_fitted(self)
        rows = check_binary(self, X, binarize=self.binarize, reset=False)
        step = max(1, BLOCK // self.tables_.n_rows)
        return [(slice(first, first + step), rows[first : first + step]) for first in range(0, rows.shape[0], step)]

    def _complete(self, ones: Any, zeros: Any) -> Array:
        tables = self.tables_
        answer = np.empty(ones.shape)
        step = max(1, BLOCK // tables.n_rows)
        for first in range(0, len(answer), step):
            part = slice(first, first + step)
            weights = tables.posterior(tables.log_joint(ones[part], zeros[part]), self.combine)
            answer[part] = tables.expected(weights)
        return answer

    def score_samples(self, X: Any) -> Array:
        """Log of the posterior predictive probability of each row, averaged over the samples.

        Missing entries of X are summed out.
        """
        total = [self.tables_.log_joint_complete(rows) for _, rows in self._blocks(X)]
        return np.concatenate([np.logaddexp.reduce(part, axis=1) for part in total]) - np.log(len(self.sample_labels_))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean of :meth:`score_samples`."""
        return float(self.score_samples(X).mean())

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the clusters of the best sample.

        Only of that one: cluster numbers of different samples do not correspond, so that averages over samples would
        mean nothing. See :meth:`similarity_matrix` for what can be averaged.

        Returns
        -------
        array of shape (n_samples, n_clusters_ + 1)
            The last column is a cluster that has no members yet.
        """
        parts = []
        for _, rows in self._blocks(X):
            joint = self.tables_.log_joint_complete(rows)[:, self._best()]
            parts.append(np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)))
        return np.concatenate(parts)

    def predict(self, X: Any) -> Integers:
        """Likeliest cluster of the best sample; `n_clusters_` for a row that is like none of them."""
        return self.predict_proba(X).argmax(axis=1)

    def fit_predict(self, X: Any, y: Any = None) -> Integers:
        """Fit, and give `labels_`: the sample itself, not the likeliest clusters given the rest."""
        return self.fit(X).labels_

    def similarity_matrix(self, rows: ArrayLike | None = None) -> NDArray[np.float32]:
        """Share of the samples in which two rows of the training data are in the same cluster.

        Parameters
        ----------
        rows : sequence of int, optional
            Numbers of the rows; all by default, of which there must not be more than 20,000.

        Returns
        -------
        array of shape (n_rows, n_rows), float32
        """
        from pluri.metrics.partition_posterior import co_clustering_matrix

        check_is_fitted(self)
        labels = self.sample_labels_
        if rows is not None:
            chosen = np.asarray(rows)
            usable = chosen.ndim == 1 and chosen.size > 0 and chosen.dtype.kind in "iu"
            if not usable or chosen.min() < 0 or chosen.max() >= labels.shape[1]:
                raise ValueError(f"rows must be numbers of rows from 0 to {labels.shape[1] - 1}, got {rows!r}")
            labels = labels[:, chosen]
        if labels.shape[1] > MOST_PAIRS:
            raise ValueError(f"rows must be given, at most {MOST_PAIRS}, got {labels.shape[1]}: all pairs need room")
        return co_clustering_matrix(labels)

    def sample(self, n_samples: int = 1) -> tuple[Integers, Integers]:
        """Draw rows from the posterior predictive distribution, each from a sample chosen at random.

        Returns
        -------
        X : array of shape (n_samples, n_features) of zeros and ones
        labels : array of shape (n_samples,)
            Row of `tables_`: which cluster of which sample.
        """
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(f"n_samples must be an integer of at least 1, got {n_samples!r}")
        rng = as_generator(self.random_state)
        weights = np.exp(self.tables_.log_weight)
        labels = rng.choice(len(weights), size=int(n_samples), p=weights / weights.sum())
        X = np.empty((int(n_samples), self.n_features_in_), dtype=np.int64)
        for cluster in np.unique(labels):
            members = np.flatnonzero(labels == cluster)
            theta = self.tables_.probabilities(slice(int(cluster), int(cluster) + 1))
            X[members] = rng.random((len(members), X.shape[1])) < theta
        return X, labels

    def summary(self, n_clusters: int = 10, n_columns: int = 5) -> str:
        """The largest clusters and their likeliest columns, on one page of plain text."""
        check_is_fitted(self)
        state = "settled" if self.converged_ else "not settled"
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
        lines = [
            f"{type(self).__name__}: {len(self.sample_labels_)} chains of {self.n_iter_} sweeps, "
            f"{self.n_clusters_} clusters in the best",
            f"log p(labels, X) {self.lower_bound_:.2f}, {state}; split R-hat {self.r_hat_:.2f}",
            "",
            "cluster  rows    likeliest columns",
        ]
        sizes = np.bincount(self.labels_)
        for j in range(min(n_clusters, self.n_clusters_)):
            order = np.argsort(-self.probabilities_[j], kind="stable")[:n_columns]
            columns = ", ".join(f"{names[i]} {self.probabilities_[j, i]:.2f}" for i in order)
            lines.append(f"{j:<7d}  {sizes[j]:<6d}  {columns}")
        return "\n".join(lines)

    def _check_fitted_state(self) -> None:
        if hasattr(self, "tables_") and self.tables_.n_features != self.n_features_in_:
            raise ValueError(f"tables_ must have {self.n_features_in_} columns, got {self.tables_.n_features}")


def _beta_prior(rows: BinaryRows, success: float | None, failure: float | None) -> tuple[float, float]:
    """Both prior counts; what is not given follows the share of ones in the data, half a one and a zero added."""
    known = rows.shape[0] * rows.shape[1] - (0 if rows.missing is None else rows.missing.nnz)
    share = (rows.ones.nnz + 0.5) / (known + 1.0)
    return (
        PRIOR_STRENGTH * share if success is None else success,
        PRIOR_STRENGTH * (1.0 - share) if failure is None else failure,
    )


def _by_size(labels: Integers) -> Integers:
    """The same clusters numbered from 0 by decreasing size; of equals, the one met first comes first."""
    _, first, inverse, sizes = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    place = np.empty(len(sizes), dtype=np.int64)
    place[np.lexsort((first, -sizes))] = np.arange(len(sizes))
    return place[inverse]


def _still_rising(log_joint: Array) -> bool:
    """Whether the last quarter of the sweeps is above the third, by more than chance and more than a trifle."""
    quarter = log_joint.shape[1] // 4
    if quarter < 2:
        return False
    last = log_joint[:, -quarter:].mean(axis=1)
    gain = last - log_joint[:, -2 * quarter : -quarter].mean(axis=1)
    whole = float((last - log_joint[:, 0]).mean())
    error = float(gain.std(ddof=1)) / np.sqrt(len(gain)) if len(gain) > 1 else float(log_joint[:, -quarter:].std())
    rise = float(gain.mean())
    return rise > 1.0 and rise > 3.0 * error and rise > SETTLED * whole
