"""Gibbs sampler of aligned factor analysers: clusters, loadings and a coherent space of coordinates learned at once.

    y_i = A_j L (x_i - mh_j) + m_j + noise,   j = z(i),   x_i = sum_k W_ik s_k,   s_k ~ N(mh_z(k), I/be_z(k)),

the rest as in `records`. W has the steps of a random walk between the rows, so that rows that are neighbours have
coordinates that are. A sweep draws labels, then the anchors s one after the other, then all that `sweep` draws, with
the anchors in the place of the coordinates where those have a density. The three pure functions that a test of
correctness needs are `sample_prior`, `sample_data` and `sweep`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csc_array, csr_array

from pluri.embedding.regression._aligned_kernels import Terms, Walk, draw_anchors
from pluri.embedding.regression.conditionals import log_joint_rows
from pluri.embedding.regression.gibbs import followed, recorded
from pluri.embedding.regression.records import DEFAULT_PRIORS, Position, RegressionPriors, RegressionState
from pluri.embedding.regression.sweep import ClusterRegression
from pluri.inference.mcmc.kernel import CountAfterWarmup
from pluri.validation import check_count

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class AlignedGibbs:
    """Gibbs sampler of aligned factor analysers: a kernel for `pluri.inference.mcmc.sample`.

    Positions are those of `SpectralRegressionGibbs` with ``anchors`` (n, K).

    Parameters
    ----------
    rows : array-like of shape (n_samples, n_features)
    walk : array-like or sparse array of shape (n_samples, n_samples)
        Steps of a random walk; rows sum to one.
    n_coordinates, n_components : int, default=2 and 20
        K, and the largest number of clusters.
    priors : RegressionPriors, optional
    shared, scales, counting
        As in `SpectralRegressionGibbs`.
    keep_every : int, default=2**62
        Positions are not kept, since coordinates of different draws are not comparable.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.embedding import AlignedGibbs, walk_matrix
    >>> from pluri.inference import mcmc
    >>> rng = np.random.default_rng(0)
    >>> rows = np.outer(rng.normal(size=40), [1.0, -1, 0]) + 0.1 * rng.normal(size=(40, 3))
    >>> kernel = AlignedGibbs(rows, walk_matrix(rows), 2, 3, scales=np.ones(2))
    >>> trace = mcmc.sample(kernel, kernel.sample_prior, record=kernel.record, n_draws=20, n_warmup=20, n_chains=1,
    ...                     random_state=0, warn=False)
    >>> trace["n_clusters"].shape
    (1, 20)
    """

    rows: Any
    walk: Any
    n_coordinates: int = 2
    n_components: int = 20
    priors: RegressionPriors = DEFAULT_PRIORS
    shared: bool = False
    scales: Any = None
    keep_every: int = 2**62
    counting: bool = True
    columns: Any = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        check_count(self.n_components, "n_components")
        check_count(self.n_coordinates, "n_coordinates")
        rows = np.ascontiguousarray(self.rows, dtype=np.float64)
        if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all():
            raise ValueError(f"rows must be a finite matrix with rows and columns, got shape {rows.shape}")
        walk = csr_array(self.walk, dtype=np.float64)
        if walk.shape != (len(rows), len(rows)) or not np.allclose(walk.sum(axis=1), 1.0, atol=1e-6):
            raise ValueError(
                f"walk must have shape {(len(rows), len(rows))} and rows that sum to one, got shape {walk.shape}"
            )
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "walk", walk)
        object.__setattr__(self, "columns", _columns(walk))
        if self.scales is not None:
            object.__setattr__(self, "scales", np.asarray(self.scales, dtype=np.float64))

    @property
    def model(self) -> ClusterRegression:
        """The model of rows given coordinates."""
        return ClusterRegression(
            int(self.n_components), int(self.n_coordinates), self.rows.shape[1], self.priors, bool(self.shared),
            self.scales, isotropic=True,
        )  # fmt: skip

    def adaptation(self, n_warmup: int) -> CountAfterWarmup:
        """Nothing is tuned."""
        return CountAfterWarmup()

    def coordinates_of(self, position: Position) -> Array:
        """Coordinates of the rows, W s."""
        return np.asarray(self.walk @ position["anchors"])

    def init(self, rng: np.random.Generator, position: Position) -> RegressionState:
        """State at a position."""
        joint = log_joint_rows(position, self.coordinates_of(position), self.rows, position["anchors"])
        value = self.model.log_posterior(position, joint)
        ranks = np.zeros((2, len(self.rows)))  # the start is no draw
        return RegressionState(position, value, joint, position, -math.inf, (), 0, ranks)

    def step(self, rng: np.random.Generator, state: RegressionState) -> tuple[RegressionState, dict[str, float]]:
        """One sweep."""
        position = self._swept(rng, state.position, self.rows, state.log_joint)
        joint = log_joint_rows(position, self.coordinates_of(position), self.rows, position["anchors"])
        moved = followed(state, position, self.model.log_posterior(position, joint), joint, self)
        return moved, {"n_clusters": float(len(set(position["labels"].tolist())))}

    def record(self, position: Position) -> dict[str, Any]:
        """What to keep of a position: dimensions, number of clusters, precisions."""
        return recorded(position, self.coordinates_of(position))

    def sample_prior(self, rng: np.random.Generator) -> Position:
        """Draw a position from the prior."""
        position = self.model.sample_prior(rng, len(self.rows))
        labels = position["labels"]
        spread = rng.standard_normal((len(labels), int(self.n_coordinates))) / np.sqrt(position["precisions"][labels])
        return {**position, "anchors": position["centers"][labels] + spread}

    def sample_data(self, rng: np.random.Generator, position: Position) -> Array:
        """Draw rows given a position."""
        return self.model.sample_rows(rng, position, self.coordinates_of(position))

    def sweep(self, rng: np.random.Generator, position: Position, data: ArrayLike) -> Position:
        """All variables once."""
        rows = np.ascontiguousarray(data, dtype=np.float64)
        joint = log_joint_rows(position, self.coordinates_of(position), rows, position["anchors"])
        return self._swept(rng, position, rows, joint)

    def _swept(self, rng: np.random.Generator, position: Position, rows: Array, log_joint: Array) -> Position:
        position = self.model.labelled(rng, position, log_joint)
        anchors = self.drawn_anchors(rng, position, rows)
        found = self.model.swept(rng, position, np.asarray(self.walk @ anchors), rows, anchors)
        return {**found, "anchors": anchors}

    def drawn_anchors(self, rng: np.random.Generator, position: Position, rows: Array) -> Array:
        """New anchors, each drawn given the others."""
        terms = anchor_terms(position, rows, rng.standard_normal(position["anchors"].shape))
        anchors = np.array(position["anchors"], dtype=np.float64, order="C")
        x = np.ascontiguousarray(self.walk @ anchors)
        K = anchors.shape[1]
        draw_anchors(self.columns, terms, anchors, x, np.empty((K, K)), np.empty((2, K)))
        return anchors


def anchor_terms(position: Position, rows: Array, normals: Array) -> Terms:
    """What the draw of the anchors needs of the other variables."""
    labels, noise = position["labels"], position["noise_precision"]
    used = position["loadings"] * position["scales"][:, None]
    inner = noise[:, None, None] * (used @ used.transpose(0, 2, 1))
    constants = position["means"] - np.einsum("jk,jkd->jd", position["centers"], used)
    linear = np.empty((len(rows), used.shape[1]))
    for j in np.unique(labels):
        mine = labels == j
        linear[mine] = noise[j] * ((rows[mine] - constants[j]) @ used[j].T)
    precisions = np.ascontiguousarray(position["precisions"])
    return Terms(labels, np.ascontiguousarray(inner), linear, position["centers"], precisions, normals)


def _columns(walk: Any) -> Walk:
    columns = csc_array(walk)
    return Walk(
        columns.indptr.astype(np.int64), columns.indices.astype(np.int64), columns.data.astype(np.float64)
    )  # fmt: skip
