"""Rows in clusters that depend on where the rows are: sticks broken at normal probabilities of smooth surfaces.

    z_ik ~ Bernoulli(pi_{c_i k}),   pi_lk ~ Beta(a / K, b (K - 1) / K),
    P(c_i = l) = V_l(u_i) prod_{h<l} (1 - V_h(u_i)),   V_l(u) = Phi(g_l(u)),   V_L = 1

with the surfaces g of `pluri.factors.dictionaries.usage.stick_surfaces`. Neighbours tend to be in one cluster, which
gives a segmentation of an image whose rows are patches. One update: clusters with probabilities integrated out,
exchange of neighbouring sticks, surfaces, probabilities.

References
----------
Rodriguez and Dunson (2011), Nonparametric Bayesian models through probit stick-breaking processes, Bayesian Analysis 6.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.factors.dictionaries.usage.clusters import (
    Array,
    Labels,
    Used,
    draw_labels,
    draw_probabilities,
    first_labels,
    log_memberships,
    log_usage,
    settle,
)
from pluri.factors.dictionaries.usage.stick_surfaces import SurfacePrior, Surfaces
from pluri.priors.hyperpriors import Gamma
from pluri.processes._stick_kernels import exchange_neighbours
from pluri.processes.beta_process import BetaProcess, LogProbabilities, draw_used
from pluri.processes.stick_draws import choose_rows, log_probit_stick_weights
from pluri.validation import check_count

#: Centres of kernels at most, and squared widths in units of their squared distance, unless others are given.
MOST_CENTERS = 200
WIDTH_FACTORS = (1.0, 4.0, 16.0, 64.0, 256.0)
#: Sweeps over the surfaces alone where clusters come from scratch.
START_SWEEPS = 3


@dataclass(frozen=True, eq=False)
class LocatedState:
    """Clusters of rows under probit sticks.

    Attributes
    ----------
    labels : array of shape (n_samples,)
    probabilities : LogProbabilities
        Two arrays of shape (n_clusters, n_components).
    surfaces : Surfaces
    settling : int
        Updates until clusters are left to the sampler; see `clusters.settle`.
    seen : array of shape (n_samples, n_components) or None
        How often each row used each atom, in those of these updates that its cluster is found from.
    """

    labels: Labels
    probabilities: LogProbabilities
    surfaces: Surfaces
    settling: int = 0
    seen: Any = None


def check_locations(locations: Any, n_samples: int | None = None) -> Array:
    """Locations as an array of shape (n_samples, n_dims), or a ValueError."""
    if locations is None:
        raise ValueError("locations must be given for prior='psbp': where each row is, got None")
    places = np.asarray(locations, dtype=np.float64)
    places = places[:, None] if places.ndim == 1 else places
    if places.ndim != 2 or not places.size or (n_samples is not None and len(places) != n_samples):
        rows = "n_samples" if n_samples is None else n_samples
        raise ValueError(f"locations must have shape ({rows}, n_dims), got {np.shape(locations)}")
    if not np.isfinite(places).all():
        raise ValueError("locations must be finite, got NaN or infinity")
    return places


def grid_centers(locations: Array, most: int = MOST_CENTERS) -> tuple[Array, float]:
    """Points of a regular grid over the locations, at most so many, and their distance from each other."""
    low, high = locations.min(axis=0), locations.max(axis=0)
    extent = high - low
    if not (extent > 0).any():
        return locations[:1].copy(), 1.0
    extent = np.where(extent > 0, extent, 0.0)
    spacing = float(extent.max()) / most
    while np.prod(np.floor(extent / spacing) + 1) > most:
        spacing *= 1.02
    steps = np.floor(extent / spacing).astype(int)
    # The grid is centred: what does not fit is left over equally on both sides.
    axes = [begin + 0.5 * (e - s * spacing) + spacing * np.arange(s + 1) for begin, e, s in zip(low, extent, steps)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, locations.shape[1])
    near = squared_distances(locations, grid).min(axis=0) <= spacing**2
    return grid[near], spacing


def squared_distances(locations: Array, centers: Array) -> Array:
    """Squared distances, (n_samples, n_centers)."""
    total = np.zeros((len(locations), len(centers)))
    for each, center in zip(locations.T, centers.T):
        total += np.subtract.outer(each, center) ** 2
    return total


@dataclass(frozen=True, eq=False)
class ProbitStickUsage:
    """Prior of which row uses which atom: clusters of rows that depend on their locations.

    The kernels of all rows and centres are kept for each width: ``8 n_widths n_samples (n_centers + 1)`` bytes.

    Parameters
    ----------
    locations : array-like of shape (n_samples, n_dims)
    n_components : int
    a, b : float
        Numbers of the beta process of each cluster.
    n_clusters : int, default=20
        Largest number of clusters.
    centers : array-like of shape (n_centers, n_dims), optional
        Of the kernels; by default a regular grid of at most 200 points.
    widths : array-like of shape (n_widths,), optional
        Library of the squared widths psi; by default 1, 4, 16, 64 and 256 times the squared distance of the centres.
    precision_prior : Gamma, default=Gamma(3.0, 0.03)
        Of the precisions of the coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors.dictionaries.usage.probit_sticks import ProbitStickUsage
    >>> rng = np.random.default_rng(0)
    >>> places = np.argwhere(np.ones((8, 8)))
    >>> left = places[:, [1]] < 4
    >>> used = (rng.random((64, 6)) < np.where(left, [0.9] * 3 + [0.1] * 3, [0.1] * 3 + [0.9] * 3)).astype(np.int8)
    >>> prior = ProbitStickUsage(places, 6, a=3.0, n_clusters=5)
    >>> state = prior.start(used, rng)
    >>> for _ in range(20):
    ...     state = prior.resample(state, used, rng)
    >>> state.labels.shape
    (64,)
    """

    locations: Any
    n_components: int
    a: float = 10.0
    b: float = 1.0
    n_clusters: int = 20
    centers: Any = None
    widths: Any = None
    precision_prior: Gamma = Gamma(3.0, 0.03)
    process: BetaProcess = field(init=False, repr=False)
    surfaces: SurfacePrior = field(init=False, repr=False)

    def __post_init__(self) -> None:
        places = check_locations(self.locations)
        check_count(self.n_clusters, "n_clusters")
        centers, spacing = grid_centers(places)
        if self.centers is not None:
            centers = np.asarray(self.centers, dtype=np.float64)
            if centers.ndim != 2 or centers.shape[1] != places.shape[1] or not np.isfinite(centers).all():
                raise ValueError(
                    f"centers must be finite, of shape (n_centers, {places.shape[1]}), got {centers.shape}"
                )
        widths = np.asarray(spacing**2 * np.array(WIDTH_FACTORS) if self.widths is None else self.widths, dtype=float)
        if widths.ndim != 1 or not len(widths) or not (np.isfinite(widths) & (widths > 0)).all():
            raise ValueError(f"widths must be one axis of positive numbers, got {self.widths!r}")
        far = squared_distances(places, centers)
        designs = np.empty((len(widths), len(places), len(centers) + 1))
        designs[:, :, 0] = 1.0
        for design, width in zip(designs, widths.tolist()):
            np.exp(far / -width, out=design[:, 1:])
        for name, value in {
            "locations": places, "centers": centers, "widths": widths,
            "process": BetaProcess(self.a, self.b, self.n_components),
            "surfaces": SurfacePrior(designs, self.precision_prior),
        }.items():  # fmt: skip
            object.__setattr__(self, name, value)

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return len(self.locations)

    def start(self, used: Used, rng: np.random.Generator) -> LocatedState:
        """Clusters of rows that use the same atoms, and the rest drawn given them."""
        labels, settling = first_labels(rng, self.process, used, self.n_clusters)
        return self._given_labels(labels, self.surfaces.sample(self.n_clusters - 1, rng), used, rng, settling)

    def _given_labels(
        self, labels: Labels, surfaces: Surfaces, used: Used, rng: np.random.Generator, settling: int
    ) -> LocatedState:
        """State for clusters from scratch, which its surfaces have to follow first."""
        for _ in range(START_SWEEPS):
            surfaces = self.surfaces.resample(surfaces, labels, self.surfaces.predictors(surfaces), rng)
        probabilities = draw_probabilities(rng, self.process, used, labels, self.n_clusters)
        return LocatedState(labels, probabilities, surfaces, settling)

    def log_odds(self, state: LocatedState) -> tuple[Array, NDArray[np.intp]]:
        """Log odds of the atoms in each cluster, and the cluster of each row."""
        return state.probabilities.log_odds, state.labels

    def log_weights(self, state: LocatedState) -> Array:
        """Logarithms of the weights of the clusters at each location: (n_samples, n_clusters)."""
        return log_probit_stick_weights(self.surfaces.chosen_predictors(state.surfaces).T)

    def resample(self, state: LocatedState, used: Used, rng: np.random.Generator) -> LocatedState:
        """Draw clusters, the order of the sticks, the surfaces and the probabilities."""
        if state.settling:
            given, seen = settle(rng, self.process, used, state, self.n_clusters)
            if given is not None:
                fresh = self._given_labels(given, state.surfaces, used, rng, state.settling - 1)
                return replace(fresh, seen=seen)
        surfaces, n_sticks = state.surfaces, self.n_clusters - 1
        predictors = self.surfaces.predictors(surfaces)
        own = np.ascontiguousarray(predictors[surfaces.widths, np.arange(n_sticks)].T)
        labels = draw_labels(rng, self.process, used, state.labels, log_probit_stick_weights(own))
        order = np.arange(n_sticks)
        counts = np.bincount(labels, minlength=self.n_clusters)
        exchange_neighbours(own, labels, counts, 1.0 - rng.random(self.n_clusters), order)
        surfaces = self.surfaces.resample(surfaces.in_order(order), labels, predictors[:, order], rng)
        probabilities = draw_probabilities(rng, self.process, used, labels, self.n_clusters)
        return LocatedState(labels, probabilities, surfaces, max(state.settling - 1, 0))

    def reassign(self, state: LocatedState, used: Used, rng: np.random.Generator) -> LocatedState:
        """Draw the clusters of rows given probabilities and surfaces."""
        scores = self.log_weights(state) + log_memberships(used, state.probabilities)
        return replace(state, labels=choose_rows(rng, scores).astype(np.intp))

    def log_joint(self, state: LocatedState, used: Used) -> float:
        """Log density of the matrix and the state, with log odds in the place of probabilities."""
        weights = self.log_weights(state)[np.arange(self.n_samples), state.labels].sum()
        total = float(weights) + self.surfaces.log_density(state.surfaces)
        return total + log_usage(self.process, used, state.labels, state.probabilities)

    def sample(self, n_samples: int, rng: np.random.Generator) -> tuple[LocatedState, Used]:
        """Draw a state and a matrix from the prior; `n_samples` must be the number of locations."""
        if n_samples != self.n_samples:
            raise ValueError(f"n_samples must be the number of locations ({self.n_samples}), got {n_samples}")
        surfaces = self.surfaces.sample(self.n_clusters - 1, rng)
        weights = log_probit_stick_weights(self.surfaces.chosen_predictors(surfaces).T)
        labels = choose_rows(rng, weights).astype(np.intp)
        probabilities = self.process.posterior(np.zeros((self.n_clusters, self.n_components)), 0).sample(rng)
        used = draw_used(rng, LogProbabilities(probabilities.on[labels], probabilities.off[labels]), n_samples)
        return LocatedState(labels, probabilities, surfaces), used
