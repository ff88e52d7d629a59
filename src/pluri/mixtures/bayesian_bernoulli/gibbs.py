"""Collapsed Gibbs sampling of the clusters of binary rows.

Weights ``pi ~ Dirichlet(a/k, ..., a/k)`` and probabilities ``theta_ij ~ Beta(b, g)`` are integrated out. In the counts
N_j of members of cluster j, and N_ij of those among them that have a one in column i,

    log p(z, X) = lgamma(a) - lgamma(N + a) + sum_j [lgamma(N_j + a/k) - lgamma(a/k)]
                  + sum_ij [log B(b + N_ij, g + N_j - N_ij) - log B(b, g)].

With infinitely many clusters (a Dirichlet process) the sum over j in the first line becomes
``sum_{j: N_j > 0} [log a + lgamma(N_j)]``. Where an entry of X is missing it is left out of the counts, which is exact.
Each row is drawn given all others, in random order [1]_ [2]_.

References
----------
.. [1] Neal, R. M. (2000). Markov chain sampling methods for Dirichlet process mixture models. Journal of
   Computational and Graphical Statistics 9, 249-265 (algorithm 3).
.. [2] Hu, D., van der Maaten, L., Cho, Y., Saul, L. and Lerner, S. (2010). Latent variable models for predicting file
   dependencies in large-scale software development. NIPS 23.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from pluri.factors.binary_completion import BinaryRows
from pluri.mixtures.bayesian_bernoulli.counts import Counts, ListedRows, Tables, Workspace
from pluri.priors.hyperpriors import Beta, Hyperparameter
from pluri.validation import check_count, check_positive

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Position = Mapping[str, NDArray[Any]]

#: Clusters that there is room for at first if their number has no limit.
FIRST_ROOM = 32
#: Numbers of clusters in which rows are put by likeness, to begin with.
SCATTERED = (2, 2, 2, 4, 8)
#: The prior counts lie between this and one over it, so that a product of two factors has room.
EXTREME = 1e-100


@dataclass(frozen=True, eq=False)
class LabelState:
    """Where a chain is: the labels and the concentration, and log p(z, X) there."""

    position: Position
    log_density: float


@dataclass(frozen=True, eq=False)
class BernoulliGibbs:
    """Collapsed Gibbs sampler of a Bernoulli mixture: a kernel for `pluri.inference.mcmc.sample`.

    Positions are dicts: ``labels`` (n_samples,) of cluster numbers, -1 for a row that has none yet, and
    ``concentration``. Rows without a cluster get one in turn, each given those before it.

    Parameters
    ----------
    data : BinaryRows
    n_components : int or None
        Number of clusters; None for a Dirichlet process.
    weight_concentration : Hyperparameter, default=Hyperparameter(50.0)
        a of the module: fixed, or drawn too under a gamma prior.
    probabilities_prior : Beta, default=Beta(0.005, 0.95)
        b and g of the module.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors.binary_completion import BinaryRows, pattern
    >>> from pluri.inference import mcmc
    >>> from pluri.mixtures.bayesian_bernoulli.gibbs import BernoulliGibbs
    >>> from pluri.priors.hyperpriors import Hyperparameter
    >>> X = np.repeat([[1, 1, 0, 0], [0, 0, 1, 1]], 10, axis=0)
    >>> kernel = BernoulliGibbs(BinaryRows(pattern(X)), None, Hyperparameter(1.0))
    >>> trace = mcmc.sample(kernel, kernel.start(), record=kernel.record, n_draws=50, n_warmup=50, n_chains=2,
    ...                     random_state=0, warn=False)
    >>> int(np.median(trace["n_clusters"]))
    2
    """

    data: BinaryRows
    n_components: int | None
    weight_concentration: Hyperparameter = Hyperparameter(50.0)
    probabilities_prior: Beta = Beta(0.005, 0.95)
    _rows: ListedRows = field(init=False, repr=False)
    _tables: Tables = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.n_components is not None:
            check_count(self.n_components, "n_components")
        check_positive(self.weight_concentration.value, "weight_concentration")
        prior = self.probabilities_prior
        if not (EXTREME <= prior.a <= 1 / EXTREME and EXTREME <= prior.b <= 1 / EXTREME):
            raise ValueError(
                f"probabilities_prior must have a and b between {EXTREME:g} and {1 / EXTREME:g}, got {prior!r}"
            )
        object.__setattr__(self, "_rows", ListedRows.of(self.data))
        object.__setattr__(self, "_tables", Tables.of(self.data.shape[0], prior))

    def adaptation(self, n_warmup: int) -> None:
        """Nothing is tuned."""
        return None

    def start(self) -> Position:
        """Position in which no row has a cluster yet."""
        labels = np.full(self.data.shape[0], -1, dtype=np.int64)
        return {"labels": labels, "concentration": np.asarray(self.weight_concentration.value)}

    def likelier_start(self, rng: np.random.Generator) -> Position:
        """The likeliest of some positions: rows seated in turn, or each with the most similar of 2, 4, ... rows.

        Rows seated in turn can all end in one cluster that single rows do not leave, where an empty cluster expects
        few ones and the rows have many.
        """
        seated = self.init(rng, self.start())
        best, highest = seated.position, seated.log_density
        most = self.data.shape[0] if self.n_components is None else min(self.data.shape[0], int(self.n_components))
        for number in (number for number in SCATTERED if number <= most):
            position = {**best, "labels": self._scattered_labels(rng, number)}
            value = self.log_joint(position)
            if value > highest:
                best, highest = position, value
        return best

    def _scattered_labels(self, rng: np.random.Generator, number: int) -> Integers:
        ones, n = self.data.ones, self.data.shape[0]
        centers = ones[np.sort(rng.choice(n, size=number, replace=False))]
        similarity = 2.0 * (ones @ centers.T).toarray() - np.diff(centers.indptr)
        return np.asarray(similarity.argmax(axis=1), dtype=np.int64)

    def init(self, rng: np.random.Generator, position: Position) -> LabelState:
        """State at a position; rows without a cluster get one first."""
        labels = np.asarray(position["labels"], dtype=np.int64)
        if labels.shape != self.data.shape[:1]:
            raise ValueError(f"position['labels'] must have shape {self.data.shape[:1]}, got {labels.shape}")
        if labels.size and self.n_components is not None and labels.max() >= self.n_components:
            raise ValueError(f"position['labels'] must be below {self.n_components}, got {labels.max()}")
        alpha = float(position["concentration"])
        if (labels < 0).any():
            labels, counts = self._pass(rng, labels, alpha, self._rows, np.flatnonzero(labels < 0))
        else:
            counts = Counts.of(self._rows, labels, self._room(labels))
        return self._state(labels, alpha, counts, self._rows)

    def step(self, rng: np.random.Generator, state: LabelState) -> tuple[LabelState, dict[str, float]]:
        """One sweep over all rows, and the concentration if it is learned."""
        new = self._move(rng, state.position, self._rows)
        return new, {"n_clusters": float(len(np.unique(new.position["labels"])))}

    def sweep(self, rng: np.random.Generator, position: Position, data: BinaryRows) -> Position:
        """Labels and concentration after a sweep given other data than the kernel's own."""
        return self._move(rng, position, ListedRows.of(data)).position

    def record(self, position: Position) -> dict[str, Any]:
        """What to keep of each sweep: numbers, not the labels of all rows."""
        return {
            "n_clusters": np.asarray(len(np.unique(position["labels"]))), "concentration": position["concentration"],
        }  # fmt: skip

    def log_joint(self, position: Position, data: BinaryRows | None = None) -> float:
        """Log p(z, X) given the concentration."""
        rows = self._rows if data is None else ListedRows.of(data)
        labels = np.asarray(position["labels"], dtype=np.int64)
        counts = Counts.of(rows, labels, self._room(labels))
        return self._state(labels, float(position["concentration"]), counts, rows).log_density

    def sample_prior(self, rng: np.random.Generator) -> Position:
        """Draw a concentration, if it is learned, and labels by an urn."""
        alpha, prior = self.weight_concentration
        if prior is not None:
            alpha = float(rng.gamma(prior.shape) / prior.rate)
        labels = np.empty(self.data.shape[0], dtype=np.int64)
        sizes = np.zeros(len(labels) + 1 if self.n_components is None else self.n_components)
        for n in range(len(labels)):
            if self.n_components is None:
                weights = np.where(np.arange(len(sizes)) == np.argmin(sizes > 0), alpha, sizes)
            else:
                weights = sizes + alpha / self.n_components
            labels[n] = rng.choice(len(sizes), p=weights / weights.sum())
            sizes[labels[n]] += 1
        return {"labels": labels, "concentration": np.asarray(alpha)}

    def sample_data(self, rng: np.random.Generator, position: Position) -> BinaryRows:
        """Draw rows given labels, with the same entries missing as in the data."""
        from pluri.factors.binary_completion import pattern

        found, labels = np.unique(position["labels"], return_inverse=True)
        theta = rng.beta(self.probabilities_prior.a, self.probabilities_prior.b, size=(len(found), self.data.shape[1]))
        drawn = (rng.random(self.data.shape) < theta[labels]).astype(np.float64)
        if self.data.missing is not None:
            drawn[self.data.missing.nonzero()] = 0.0
        return BinaryRows(pattern(drawn), self.data.missing)

    def log_prior(self, sizes: Integers, alpha: float) -> float:
        """Log p(z) of labels whose clusters have these sizes."""
        sizes = sizes[sizes > 0]
        total = float(gammaln(alpha) - gammaln(sizes.sum() + alpha))
        if self.n_components is None:
            return total + len(sizes) * math.log(alpha) + float(gammaln(sizes).sum())
        share = alpha / self.n_components
        return total + float((gammaln(sizes + share) - gammaln(share)).sum())

    def _room(self, labels: Integers) -> int:
        if self.n_components is not None:
            return int(self.n_components)
        return max(FIRST_ROOM, int(labels.max(initial=-1)) + 2)

    def _state(self, labels: Integers, alpha: float, counts: Counts, rows: ListedRows) -> LabelState:
        from pluri.mixtures.bayesian_bernoulli._gibbs_kernels import log_evidence

        value = self.log_prior(counts.sizes, alpha)
        value += log_evidence(rows, counts, self._tables)
        return LabelState({"labels": labels, "concentration": np.asarray(alpha)}, float(value))

    def _move(self, rng: np.random.Generator, position: Position, rows: ListedRows) -> LabelState:
        alpha = float(position["concentration"])
        order = rng.permutation(len(position["labels"]))
        labels, counts = self._pass(rng, position["labels"].astype(np.int64), alpha, rows, order)
        if self.weight_concentration.learned:
            alpha = self._draw_concentration(rng, alpha, counts.sizes)
        return self._state(labels, alpha, counts, rows)

    def _pass(
        self, rng: np.random.Generator, labels: Integers, alpha: float, rows: ListedRows, order: Integers
    ) -> tuple[Integers, Counts]:
        """Draw the labels of some rows in turn, in copies."""
        from pluri.mixtures.bayesian_bernoulli._gibbs_kernels import sweep

        labels, infinite = labels.copy(), self.n_components is None
        uniforms = rng.random(len(order))
        log_prior = self._tables.log_prior(alpha, self.n_components)
        capacity, start = self._room(labels), 0
        while True:
            counts = Counts.of(rows, labels, capacity)
            fresh = int(np.argmin(counts.sizes > 0)) if infinite else 0
            start, fresh = sweep(
                rows,
                counts,
                self._tables,
                log_prior,
                labels,
                order,
                uniforms,
                start,
                fresh,
                infinite,
                Workspace.of(capacity),
            )
            if start == len(order):
                return labels, counts
            capacity *= 2

    def _draw_concentration(self, rng: np.random.Generator, alpha: float, sizes: Integers) -> float:
        from pluri.inference.mcmc.slice_sampling import Slice

        prior = self.weight_concentration.prior

        def log_density(x: Array) -> float:
            value = math.exp(x[0])
            return self.log_prior(sizes, value) - prior.rate * value + prior.shape * float(x[0])

        kernel = Slice(log_density, width=1.0)
        state, _ = kernel.step(rng, kernel.init(rng, np.array([math.log(alpha)])))
        return math.exp(float(state.position[0]))
