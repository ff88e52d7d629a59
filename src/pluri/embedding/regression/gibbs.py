"""Gibbs sampler of the regression of rows on spectral coordinates, which are data (model in `records`).

A sweep draws labels, lets clusters exchange their sticks, then draws which coordinates each cluster uses with loadings
and means integrated out, loadings and means together, scales if they are learned, noise, centres (given the constants
of the regressions, see `conditionals`), precisions, sticks and concentration. The three pure functions that a test of
correctness needs are `sample_prior`, `sample_data` and `sweep`.

References
----------
Chen, Silva, Paisley, Wang, Dunson and Carin (2010), Compressive sensing on manifolds using a nonparametric mixture of
factor analyzers, IEEE Transactions on Signal Processing 58.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.embedding.regression.conditionals import log_joint_rows
from pluri.embedding.regression.dimension import effective_ranks, summary_of_ranks
from pluri.embedding.regression.records import DEFAULT_PRIORS, Position, RegressionPriors, RegressionState
from pluri.embedding.regression.sweep import ClusterRegression
from pluri.inference.mcmc.kernel import CountAfterWarmup
from pluri.validation import check_count

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SpectralRegressionGibbs:
    """Gibbs sampler of rows given coordinates: a kernel for `pluri.inference.mcmc.sample`.

    Positions are dicts: ``labels`` (n,), ``log_weights`` (J,), ``centers`` and ``precisions`` (J, K), ``means`` (J, D),
    ``loadings`` (J, K, D), which are zero where ``support`` (J, K) is, ``scales`` (K,), ``noise_precision`` (J,),
    ``loading_precision``, ``mean_precision`` and ``concentration``.

    Parameters
    ----------
    coordinates : array-like of shape (n_samples, n_coordinates)
    rows : array-like of shape (n_samples, n_features)
    n_components : int, default=20
        Largest number of clusters.
    priors : RegressionPriors, optional
    shared : bool, default=False
        Whether all clusters use the same coordinates.
    scales : array-like of shape (n_coordinates,), default=None
        Fixed scales of the coordinates; None learns them.
    keep_every : int, default=1
        Steps after the warm-up from one position that is kept for predictions to the next.
    counting : bool, default=True
        Whether steps are counted and positions kept; the driver turns it off during the warm-up.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.embedding.regression import SpectralRegressionGibbs
    >>> from pluri.inference import mcmc
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(60, 2))
    >>> rows = np.outer(x[:, 0], [1.0, -1, 0]) + 0.1 * rng.normal(size=(60, 3))
    >>> kernel = SpectralRegressionGibbs(x, rows, n_components=2, scales=np.ones(2))
    >>> trace = mcmc.sample(kernel, kernel.sample_prior, record=kernel.record, n_draws=50, n_warmup=100, n_chains=1,
    ...                     random_state=0, warn=False)
    >>> trace["dimension"].shape
    (1, 50)
    """

    coordinates: Any
    rows: Any
    n_components: int = 20
    priors: RegressionPriors = DEFAULT_PRIORS
    shared: bool = False
    scales: Any = None
    keep_every: int = 1
    counting: bool = True

    def __post_init__(self) -> None:
        check_count(self.n_components, "n_components")
        for name in ("coordinates", "rows"):
            value = np.ascontiguousarray(getattr(self, name), dtype=np.float64)
            if value.ndim != 2 or not value.size or not np.isfinite(value).all():
                raise ValueError(f"{name} must be a finite matrix with rows and columns, got shape {value.shape}")
            object.__setattr__(self, name, value)
        if len(self.coordinates) != len(self.rows):
            raise ValueError(f"rows must be as many as coordinates ({len(self.coordinates)}), got {len(self.rows)}")
        if self.scales is not None:
            object.__setattr__(self, "scales", np.asarray(self.scales, dtype=np.float64))

    @property
    def model(self) -> ClusterRegression:
        """The model without data."""
        return ClusterRegression(
            int(self.n_components), self.coordinates.shape[1], self.rows.shape[1], self.priors, bool(self.shared),
            self.scales,
        )  # fmt: skip

    def adaptation(self, n_warmup: int) -> CountAfterWarmup:
        """Nothing is tuned, but positions of the warm-up are not kept."""
        return CountAfterWarmup()

    def init(self, rng: np.random.Generator, position: Position) -> RegressionState:
        """State at a position."""
        joint = log_joint_rows(position, self.coordinates, self.rows, self.coordinates)
        value = self.model.log_posterior(position, joint)
        ranks = np.zeros((2, len(self.rows)))  # the start is no draw
        return RegressionState(position, value, joint, position, -math.inf, (), 0, ranks)

    def step(self, rng: np.random.Generator, state: RegressionState) -> tuple[RegressionState, dict[str, float]]:
        """One sweep."""
        model = self.model
        position = model.labelled(rng, state.position, state.log_joint)
        position = model.swept(rng, position, self.coordinates, self.rows, self.coordinates)
        joint = log_joint_rows(position, self.coordinates, self.rows, self.coordinates)
        moved = followed(state, position, model.log_posterior(position, joint), joint, self)
        return moved, {"n_clusters": float(len(set(position["labels"].tolist())))}

    def coordinates_of(self, position: Position) -> Array:
        """Coordinates of the rows, which are data."""
        return np.asarray(self.coordinates)

    def record(self, position: Position) -> dict[str, Any]:
        """What to keep of a position: dimensions, number of clusters, precisions."""
        return recorded(position, self.coordinates)

    def sample_prior(self, rng: np.random.Generator) -> Position:
        """Draw a position from the prior."""
        return self.model.sample_prior(rng, len(self.rows))

    def sample_data(self, rng: np.random.Generator, position: Position) -> Array:
        """Draw coordinates and rows given a position: (n, K + D)."""
        labels = position["labels"]
        spread = rng.standard_normal(self.coordinates.shape) / np.sqrt(position["precisions"][labels])
        x = position["centers"][labels] + spread
        return np.hstack([x, self.model.sample_rows(rng, position, x)])

    def sweep(self, rng: np.random.Generator, position: Position, data: ArrayLike) -> Position:
        """All variables once, given coordinates and rows side by side (n, K + D)."""
        both, K = np.asarray(data, dtype=np.float64), self.coordinates.shape[1]
        x, rows = np.ascontiguousarray(both[:, :K]), np.ascontiguousarray(both[:, K:])
        position = self.model.labelled(rng, position, log_joint_rows(position, x, rows, x))
        return self.model.swept(rng, position, x, rows, x)


def followed(state: RegressionState, position: Position, value: float, joint: Array, kernel: Any) -> RegressionState:
    """The state after a step of a kernel: the best position, and after the warm-up what is kept and summed."""
    if not kernel.counting:
        return RegressionState(position, value, joint, position, -math.inf, (), 0, state.ranks)
    best = (position, value) if value > state.best_log_density else (state.best, state.best_log_density)
    n_counted = state.n_counted + 1
    kept = (*state.kept, position) if n_counted % kernel.keep_every == 0 else state.kept
    by_cluster = np.stack([position["support"].sum(axis=1), effective_ranks(position, kernel.coordinates_of(position))])
    return RegressionState(
        position, value, joint, *best, kept, n_counted, state.ranks + by_cluster[:, position["labels"]]
    )


def recorded(position: Position, x: Array) -> dict[str, Any]:
    """What the trace has of a position."""
    share = np.bincount(position["labels"], minlength=len(position["means"])) / len(position["labels"])
    return {
        **summary_of_ranks(position, x),
        "n_clusters": np.asarray((share > 0).sum()),
        "noise_variance": np.asarray(share @ (1 / position["noise_precision"])),
        "loading_precision": position["loading_precision"],
        "concentration": position["concentration"],
    }
