"""Mixture for batches whose clusters move, appear, vanish and come back, sampled batch by batch.

A Dirichlet process mixture whose clusters of earlier batches are remembered: each lives on with probability q, its
centre moves by ``N(0, xi I)``, and it attracts points in proportion to those that it has had. Labels of a batch are
sampled with the past as it was found (`pluri.mixtures.batches.dependent_gibbs`); then the likeliest draw becomes the
past.
:class:`pluri.mixtures.DynamicMeans` is the limit of small variances, and much faster.

References
----------
.. [1] Lin, D., Grimson, E. and Fisher, J. (2010). Construction of dependent Dirichlet processes based on Poisson
   processes. Advances in Neural Information Processing Systems 23.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from pluri.inference import mcmc
from pluri.metrics import co_clustering_matrix
from pluri.mixtures.batches.batchwise_clusters import BatchwiseClusters
from pluri.mixtures.batches.dependent_gibbs import ClusterMemory, ClusterPrior, DependentClusterGibbs
from pluri.validation import Allowed, Number, Only, RandomState, as_generator, check_parameters

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
#: Remembered clusters whose weight has fallen below this share of a new one's are forgotten.
FORGOTTEN = 1e-6


class DependentDirichletMixture(mcmc.Sampled, BatchwiseClusters):
    """Dependent Dirichlet process mixture of round Gaussians, by Gibbs sampling of one batch after the other.

    Parameters
    ----------
    concentration : float, default=1.0
        Weight of a new cluster, in points.
    survival : float, default=0.9
        Probability q that a cluster lives on to the next batch.
    noise_variance : float, default=1.0
        Variance of points around their centre, in each direction.
    drift_variance : float, default=0.01
        Variance of the step of a centre from batch to batch, in each direction.
    base_mean : float or array-like of shape (n_features,), optional
        Where new centres are on average; the mean of the first batch by default.
    base_variance : float, optional
        How far from there, in each direction; the mean variance of the columns of the first batch by default, but at
        least `noise_variance`.
    n_draws, n_warmup : int, default=100
        Draws of each chain for each batch, and sweeps before them.
    n_chains : int, default=2
    random_state : int, Generator, RandomState or None
    n_jobs : int, optional
        Chains at a time.
    verbose : int, default=0

    Attributes
    ----------
    labels_ : array of shape (n_samples,), or list of such arrays
        Identity of the cluster of each point in the likeliest draw; a list if `fit` was given a list of batches.
    trace_ : Trace
        Draws of the labels of the last batch: places of the clusters that were remembered (in the order of
        `known_identities_`), then new ones.
    known_identities_ : array
        Clusters that were remembered before the last batch.
    cluster_identities_, cluster_counts_, cluster_ages_ : arrays of shape (n_stored,)
    cluster_centers_ : array of shape (n_stored, n_features)
    cluster_variances_ : array of shape (n_stored,)
        Clusters that are remembered after the last batch: points so far, batches since they were last seen (1 for
        those of the last one), posterior mean and variance of the centre then.
    n_clusters_ : int
        Clusters in all batches together.
    n_clusters_trace_ : list of arrays of shape (n_chains, n_draws)
        Clusters with points in each draw, for each batch.
    n_batches_seen_, n_features_in_ : int

    Examples
    --------
    >>> from pluri.datasets.moving_clusters import make_moving_clusters
    >>> from pluri.mixtures.batches.dependent_dirichlet_mixture import DependentDirichletMixture
    >>> data = make_moving_clusters(n_batches=5, n_clusters=3, min_distance=3.0, random_state=0)
    >>> model = DependentDirichletMixture(noise_variance=0.1, random_state=0).fit(data.batches)
    >>> model.n_clusters_, len(model.labels_)
    (3, 5)
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "concentration": Number(above=0),
        "survival": Number(least=0, most=1),
        "noise_variance": Number(above=0),
        "drift_variance": Number(least=0),
        "base_variance": Number(above=0) | Only(None),
    }

    def __init__(
        self,
        concentration: float = 1.0,
        *,
        survival: float = 0.9,
        noise_variance: float = 1.0,
        drift_variance: float = 0.01,
        base_mean: float | ArrayLike | None = None,
        base_variance: float | None = None,
        n_draws: int = 100,
        n_warmup: int = 100,
        n_chains: int = 2,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.concentration = concentration
        self.survival = survival
        self.noise_variance = noise_variance
        self.drift_variance = drift_variance
        self.base_mean = base_mean
        self.base_variance = base_variance
        self.n_draws = n_draws
        self.n_warmup = n_warmup
        self.n_chains = n_chains
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def similarity_matrix(self) -> NDArray[np.float32]:
        """Posterior probability that two points of the last batch share a cluster: (n_samples, n_samples)."""
        check_is_fitted(self, "trace_")
        return co_clustering_matrix(self.trace_.flat("labels"))

    def _begin(self) -> None:
        check_parameters(self)
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)
        self._history: list[dict[str, NDArray[Any]]] = []
        self.n_clusters_trace_: list[NDArray[Any]] = []
        self.n_batches_seen_ = self.n_clusters_ = 0

    def _prior(self, X: Array) -> ClusterPrior:
        if self.n_batches_seen_ == 0:
            mean = X.mean(axis=0) if self.base_mean is None else np.asarray(self.base_mean, dtype=np.float64)
            if mean.shape not in ((), (X.shape[1],)) or not np.isfinite(mean).all():
                raise ValueError(f"base_mean must be a finite number or {X.shape[1]} of them, got {self.base_mean!r}")
            self._base_mean = np.broadcast_to(mean, X.shape[1]).copy()
            spread = max(float(X.var(axis=0).mean()), float(self.noise_variance))
            self._base_variance = spread if self.base_variance is None else float(self.base_variance)
        return ClusterPrior(
            float(self.concentration), float(self.survival), float(self.noise_variance), self._base_mean,
            self._base_variance, float(self.drift_variance),
        )  # fmt: skip

    def _memory(self, n_features: int) -> ClusterMemory:
        if not hasattr(self, "cluster_centers_"):
            return ClusterMemory.none(n_features)
        return ClusterMemory(
            self.cluster_identities_, self.cluster_counts_, self.cluster_centers_, self.cluster_variances_,
            self.cluster_ages_,
        )  # fmt: skip

    def _advance(self, X: Array) -> Integers:
        memory = self._memory(X.shape[1])
        kernel = DependentClusterGibbs(X, self._prior(X), memory)
        trace, labels = None, np.empty(0, dtype=np.int64)
        if len(X):
            # Each batch has a stream of its own, so that one call of fit and many of partial_fit give the same.
            rng = as_generator(self.random_state)
            if isinstance(self.random_state, int | np.integer):
                rng = np.random.default_rng([int(self.random_state), self.n_batches_seen_])
            trace = mcmc.sample(
                kernel, kernel.start, n_draws=self.n_draws, n_warmup=self.n_warmup, n_chains=self.n_chains,
                random_state=rng, n_jobs=self.n_jobs, verbose=self.verbose, warn=False,
            )  # fmt: skip
            labels = trace.flat("labels")[int(np.argmax(np.ravel(trace.stats["log_density"])))]
        centres, variances, counts = kernel.centres_given(labels)
        n_known, seen = kernel.n_known, counts > 0
        new = np.flatnonzero(seen[n_known:]) + n_known
        names = np.concatenate([memory.identities, self.n_clusters_ + np.arange(len(new))])
        old_seen = seen[:n_known]
        ages = np.where(old_seen, 1, memory.ages + 1)
        total = memory.counts + counts[:n_known]
        kept = np.power(float(self.survival), ages) * total >= FORGOTTEN * float(self.concentration)

        self._history.append({"identities": names[seen], "centers": centres[seen], "sizes": counts[seen]})
        self.known_identities_ = memory.identities
        self.cluster_identities_ = np.concatenate([memory.identities[kept], names[n_known:]])
        self.cluster_counts_ = np.concatenate([total[kept], counts[new]])
        old_centres = np.where(old_seen[:, None], centres[:n_known], memory.means)
        self.cluster_centers_ = np.concatenate([old_centres[kept], centres[new]])
        old_variances = np.where(old_seen, variances[:n_known], memory.variances)
        self.cluster_variances_ = np.concatenate([old_variances[kept], variances[new]])
        self.cluster_ages_ = np.concatenate([ages[kept], np.ones(len(new), dtype=np.int64)])
        self.n_clusters_ += len(new)
        self.n_batches_seen_ += 1
        if trace is not None:
            self.trace_ = trace.detached()
            self.n_clusters_trace_.append(np.asarray(trace.stats["n_clusters"], dtype=np.int64))
        return names[labels]
