"""Labels of one batch given clusters remembered from earlier ones: the posterior and its Gibbs sampler.

A remembered cluster k with ``c_k`` points so far, last seen ``a_k`` batches ago, is met again with weight
``q^a_k c_k``; once it has n points in this batch the weight is ``c_k + n``; a new cluster has weight alpha. These
conditionals belong to

    p(z) ~ prod_{k old, used} q^a_k Gamma(c_k + n_k) / Gamma(c_k)  prod_{k new} alpha Gamma(n_k),

the Chinese restaurant if nothing is remembered. Points are normal around the centre of their cluster; a new centre is
``N(m0, rho I)``, a remembered one its posterior moved on, ``N(m_k, (P_k + a_k xi) I)``. Centres are integrated out.

References
----------
.. [1] Lin, D., Grimson, E. and Fisher, J. (2010). Construction of dependent Dirichlet processes based on Poisson
   processes. Advances in Neural Information Processing Systems 23.
.. [2] Campbell, T. et al. (2013). Dynamic clustering via asymptotics of the dependent Dirichlet process mixture.
   Advances in Neural Information Processing Systems 26.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from pluri.mixtures.batches import _dynamic_kernels

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Position = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class ClusterMemory:
    """Clusters of earlier batches.

    Attributes
    ----------
    identities : (k,)
    counts : (k,)
        Points of all batches so far.
    means : (k, n_features), variances : (k,)
        Posterior of the centres when the clusters were last seen; variances are the same in all directions.
    ages : (k,)
        Batches since then: 1 for clusters of the last batch.
    """

    identities: Integers
    counts: Integers
    means: Array
    variances: Array
    ages: Integers

    @classmethod
    def none(cls, n_features: int) -> ClusterMemory:
        """Nothing remembered."""
        nothing = np.empty(0, dtype=np.int64)
        return cls(nothing, nothing, np.empty((0, n_features)), np.empty(0), nothing)


@dataclass(frozen=True, eq=False)
class ClusterPrior:
    """Parameters of the model: see the module.

    Attributes
    ----------
    concentration : float, alpha
    survival : float, q
    noise_variance : float, of a point around its centre
    base_mean : (n_features,), m0
    base_variance : float, rho
    drift_variance : float, xi
    """

    concentration: float
    survival: float
    noise_variance: float
    base_mean: Array
    base_variance: float
    drift_variance: float


@dataclass(frozen=True, eq=False)
class LabelState:
    """Labels, and the log of their posterior probability up to a constant."""

    position: Position
    log_density: float


@dataclass(frozen=True, eq=False)
class DependentClusterGibbs:
    """Gibbs sampler on the labels of one batch.

    Positions are dicts with ``labels`` (n,): places of remembered clusters come first, then those of new ones in the
    order of their first points.

    Parameters
    ----------
    X : array-like of shape (n, n_features)
    prior : ClusterPrior
    memory : ClusterMemory, optional
        Nothing is remembered by default: a Dirichlet process mixture.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference import mcmc
    >>> from pluri.mixtures.batches.dependent_gibbs import ClusterPrior, DependentClusterGibbs
    >>> X = np.array([[0.0], [0.2], [9.0], [9.2], [9.1]])
    >>> kernel = DependentClusterGibbs(X, ClusterPrior(1.0, 0.9, 0.1, np.zeros(1), 25.0, 0.1))
    >>> trace = mcmc.sample(kernel, kernel.start, n_draws=200, n_warmup=50, n_chains=1, random_state=0, warn=False)
    >>> bool((trace["labels"] == [0, 0, 1, 1, 1]).all(axis=2).mean() > 0.7)
    True
    """

    X: Any
    prior: ClusterPrior
    memory: ClusterMemory | None = None

    def __post_init__(self) -> None:
        X = np.asarray(self.X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != len(self.prior.base_mean):
            raise ValueError(f"X must have {len(self.prior.base_mean)} columns, got shape {X.shape}")
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "memory", ClusterMemory.none(X.shape[1]) if self.memory is None else self.memory)

    @property
    def known(self) -> ClusterMemory:
        """Remembered clusters."""
        assert self.memory is not None
        return self.memory

    @property
    def n_known(self) -> int:
        """How many."""
        return len(self.known.counts)

    @property
    def log_weights(self) -> Array:
        """Log weights of remembered clusters that have no point in this batch: (n_known,)."""
        with np.errstate(divide="ignore"):
            return np.asarray(self.known.ages * np.log(self.prior.survival) + np.log(self.known.counts))

    def centre_priors(self) -> tuple[Array, Array]:
        """Means (n_known + 1, n_features) and precisions of all centres before this batch; a new one's is last."""
        known, prior = self.known, self.prior
        variances = known.variances + known.ages * prior.drift_variance
        means = np.concatenate([known.means, prior.base_mean[None]])
        return means, 1.0 / np.append(variances, prior.base_variance)

    def adaptation(self, n_warmup: int) -> None:
        """Nothing is tuned."""
        return None

    def init(self, rng: np.random.Generator, position: Position) -> LabelState:
        """State at a position."""
        labels = np.asarray(position["labels"])
        if labels.shape != self.X.shape[:1] or (labels < 0).any() or (labels >= self.n_known + len(labels)).any():
            raise ValueError(f"the position must have a label for each of {len(self.X)} points")
        return LabelState(position, self.log_joint(labels))

    def step(self, rng: np.random.Generator, state: LabelState) -> tuple[LabelState, dict[str, float]]:
        """One sweep."""
        position = self.sweep(rng, state.position, self.X)
        labels = position["labels"]
        return LabelState(position, self.log_joint(labels)), {"n_clusters": float(len(np.unique(labels)))}

    def start(self, rng: np.random.Generator) -> Position:
        """Every point in a cluster of its own, which sweeps then merge."""
        return {"labels": self.n_known + np.arange(len(self.X))}

    def sweep(self, rng: np.random.Generator, position: Position, data: ArrayLike) -> Position:
        """Every label once, in a random order."""
        X = np.asarray(data, dtype=np.float64)
        n, n_known = len(X), self.n_known
        labels = np.array(position["labels"], dtype=np.int64)
        counts, sums = np.zeros(n_known + n, dtype=np.int64), np.zeros((n_known + n, X.shape[1]))
        np.add.at(counts, labels, 1)
        np.add.at(sums, labels, X)
        before = _dynamic_kernels.Before(
            self.log_weights,
            self.known.counts.astype(np.float64),
            *self.centre_priors(),
            math.log(self.prior.concentration),
            1.0 / self.prior.noise_variance,
        )
        order, uniforms, work = rng.permutation(n), rng.random(n), np.empty(n_known + n + 1)
        _dynamic_kernels.sweep_labels(X, order, uniforms, before, labels, counts, sums, work)
        return {"labels": self.canonical(labels)}

    def canonical(self, labels: Integers) -> Integers:
        """The same clusters, new ones numbered in the order of their first points."""
        new = labels >= self.n_known
        _, first, inverse = np.unique(labels[new], return_index=True, return_inverse=True)
        rank = np.empty(len(first), dtype=np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        renamed = labels.copy()
        renamed[new] = self.n_known + rank[inverse]
        return renamed

    def log_prior(self, labels: Integers) -> float:
        """Log weight of the labels, up to a constant."""
        n_known = self.n_known
        counts = np.bincount(labels, minlength=n_known)
        old, new = counts[:n_known], counts[n_known:]
        used, c = old > 0, self.known.counts
        again = self.log_weights[used] + gammaln(c[used] + old[used]) - gammaln(c[used] + 1.0)
        new = new[new > 0]
        return float(again.sum() + len(new) * math.log(self.prior.concentration) + gammaln(new).sum())

    def log_likelihood(self, labels: Integers, data: ArrayLike | None = None) -> float:
        """Log density of the points given their labels, centres integrated out."""
        X = self.X if data is None else np.asarray(data, dtype=np.float64)
        means, precisions = self.centre_priors()
        source = np.minimum(labels, self.n_known)
        away = X - means[source]
        n_places, d, s = int(labels.max(initial=-1)) + 1, X.shape[1], self.prior.noise_variance
        counts, sums = np.bincount(labels, minlength=n_places), np.zeros((n_places, d))
        np.add.at(sums, labels, away)
        before = precisions[np.minimum(np.arange(n_places), self.n_known)]
        after = before + counts / s
        gain = 0.5 * d * np.log(before / after).sum() + 0.5 * ((sums / s) ** 2 / after[:, None]).sum()
        return float(gain - 0.5 * len(X) * d * math.log(2 * math.pi * s) - 0.5 * (away**2).sum() / s)

    def log_joint(self, labels: Integers) -> float:
        """Log density of points and labels, up to a constant."""
        return self.log_prior(labels) + self.log_likelihood(labels)

    def sample_data(self, rng: np.random.Generator, position: Position) -> Array:
        """Draw points given their labels."""
        labels = np.asarray(position["labels"])
        means, precisions = self.centre_priors()
        source = np.minimum(np.arange(labels.max() + 1), self.n_known)
        centres = means[source] + rng.standard_normal((len(source), means.shape[1])) / np.sqrt(precisions[source, None])
        noise = math.sqrt(self.prior.noise_variance) * rng.standard_normal((len(labels), means.shape[1]))
        return np.asarray(centres[labels] + noise)

    def centres_given(self, labels: Integers) -> tuple[Array, Array, Integers]:
        """Posterior means and variances of the centres of all places, and how many points each has."""
        n_places = max(self.n_known, int(labels.max(initial=-1)) + 1)
        means, precisions = self.centre_priors()
        source = np.minimum(np.arange(n_places), self.n_known)
        counts, sums = np.bincount(labels, minlength=n_places), np.zeros((n_places, self.X.shape[1]))
        np.add.at(sums, labels, self.X)
        after = precisions[source] + counts / self.prior.noise_variance
        centres = (precisions[source, None] * means[source] + sums / self.prior.noise_variance) / after[:, None]
        return centres, 1.0 / after, counts
