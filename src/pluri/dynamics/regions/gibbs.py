"""Gibbs sampler of a flow by regions (model in `records`).

A sweep draws the region of each transition, lets regions exchange their sticks, lets each region choose its matrix,
and draws matrices, relevances, places of the regions, noise, sticks and concentrations. What nothing was seen of is
integrated out where the others are drawn and drawn after them from its prior: sticks beyond the last one in use, and
matrices that empty regions point to. Without that a chain with many empty regions would hardly move. All matrices are
integrated out where regions choose theirs. The three pure functions that a test of correctness
needs are `sample_prior`, `sample_data` and `sweep`.

References
----------
Ishwaran and James (2001), Gibbs sampling methods for stick-breaking priors, JASA 96; Teh, Jordan, Beal and Blei (2006),
Hierarchical Dirichlet processes, JASA 101.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.dynamics.regions.conditionals import (
    chosen_regions,
    cumulated,
    draw_matrices,
    draw_places,
    log_joint_rows,
    multiplied_out,
    region_moments,
    regression_posterior,
    squared_residuals,
)
from pluri.dynamics.regions.pointers import chosen_pointers
from pluri.dynamics.regions.records import DEFAULT_PRIORS, Moments, Position, RegionPriors, RegionState
from pluri.dynamics.regions.sticks import drawn_concentration, used_sticks
from pluri.inference.mcmc.kernel import CountAfterWarmup
from pluri.priors import Gamma
from pluri.processes.stick_draws import choose_rows, draw_sticks, exchange_labels
from pluri.validation import check_count

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RegionGibbs:
    """Gibbs sampler of transitions: a kernel for `pluri.inference.mcmc.sample`.

    Positions are dicts: ``labels`` (n,), ``log_weights`` (L, H), ``pointers`` (L, H), ``centers`` (L, H, K),
    ``precisions`` (L, H, K, K), ``matrices`` (J, K, K + 1), whose last column is zero without intercept,
    ``relevance`` (K or K + 1,), ``noise_precision`` (L,), ``concentration``, and, with tasks that share matrices,
    ``regime_log_weights`` (J,) and ``regime_concentration``.

    Parameters
    ----------
    starts, ends : array-like of shape (n_transitions, n_features)
        Rows that transitions begin and end with, those of a task together; centred and of order one.
    offsets : array-like of shape (n_tasks + 1,)
        Where the transitions of each task begin and end.
    n_regimes : int, default=80
        Largest number of matrices.
    n_regions : int or None, default=40
        Largest number of regions of each task; None is a single layer, in which each region has a matrix of its own.
    scatter : array-like of shape (n_features, n_features), optional
        Prior mean of the covariance of a region; identity by default.
    intercept : bool, default=True
    priors : RegionPriors, optional
    keep_every : int, default=1
        Steps after the warm-up from one position that is kept for predictions to the next.
    counting : bool, default=True
        Whether steps are counted and positions kept; the driver turns it off during the warm-up.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.dynamics.regions import RegionGibbs
    >>> from pluri.inference import mcmc
    >>> x = np.random.default_rng(0).normal(size=(100, 2))
    >>> kernel = RegionGibbs(x, 0.9 * x, [0, 100], n_regimes=3, n_regions=2)
    >>> trace = mcmc.sample(kernel, kernel.sample_prior, record=kernel.record, n_draws=50, n_warmup=100, n_chains=1,
    ...                     random_state=0, warn=False)
    >>> trace["n_regimes"].shape
    (1, 50)
    """

    starts: Any
    ends: Any
    offsets: Any
    n_regimes: int = 80
    n_regions: int | None = 40
    scatter: Any = None
    intercept: bool = True
    priors: RegionPriors = DEFAULT_PRIORS
    keep_every: int = 1
    counting: bool = True
    products: Any = None

    def __post_init__(self) -> None:
        check_count(self.n_regimes, "n_regimes")
        for name in ("starts", "ends"):
            value = np.ascontiguousarray(getattr(self, name), dtype=np.float64)
            if value.ndim != 2 or 0 in value.shape or not np.isfinite(value).all():
                raise ValueError(f"{name} must be a finite matrix with rows and columns, got shape {value.shape}")
            object.__setattr__(self, name, value)
        if self.starts.shape != self.ends.shape:
            raise ValueError(f"ends must have the shape of starts ({self.starts.shape}), got {self.ends.shape}")
        offsets = np.asarray(self.offsets, dtype=np.int64)
        if offsets.ndim != 1 or len(offsets) < 2 or offsets[0] != 0 or offsets[-1] != len(self.starts):
            raise ValueError(f"offsets must lead from 0 to {len(self.starts)}, got {self.offsets!r}")
        if (np.diff(offsets) < 0).any() or (self.n_regions is None and len(offsets) != 2):
            raise ValueError(f"offsets must rise, and be two without n_regions, got {self.offsets!r}")
        object.__setattr__(self, "offsets", offsets)
        scatter = np.eye(self.starts.shape[1]) if self.scatter is None else np.asarray(self.scatter, dtype=np.float64)
        object.__setattr__(self, "scatter", scatter)
        if self.products is None:
            object.__setattr__(self, "products", multiplied_out(self.starts, self.ends))

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """L, H, J and K."""
        n_regions = self.n_regimes if self.n_regions is None else self.n_regions
        return len(self.offsets) - 1, int(n_regions), int(self.n_regimes), self.starts.shape[1]

    @property
    def n_inputs(self) -> int:
        """Columns of a matrix that are drawn."""
        return self.starts.shape[1] + int(self.intercept)

    def adaptation(self, n_warmup: int) -> CountAfterWarmup:
        """Nothing is tuned, but positions of the warm-up are not kept."""
        return CountAfterWarmup()

    def init(self, rng: np.random.Generator, position: Position) -> RegionState:
        """State at a position."""
        edges, value = cumulated(log_joint_rows(position, self.products, self.offsets))
        return RegionState(position, value, edges, position, -math.inf)

    def step(self, rng: np.random.Generator, state: RegionState) -> tuple[RegionState, dict[str, float]]:
        """One sweep."""
        position = self._swept(rng, state.position, state.edges, self.products)
        edges, value = cumulated(log_joint_rows(position, self.products, self.offsets))
        info = {"n_regions": float(self._n_used_regions(position))}
        if not self.counting:
            return RegionState(position, value, edges, position, -math.inf), info
        best = (position, value) if value > state.best_log_density else (state.best, state.best_log_density)
        n_counted = state.n_counted + 1
        kept = (*state.kept, position) if n_counted % self.keep_every == 0 else state.kept
        return RegionState(position, value, edges, *best, kept, n_counted), info

    def sweep(self, rng: np.random.Generator, position: Position, data: ArrayLike) -> Position:
        """All variables once, given starts and ends side by side (n, 2 K)."""
        both, K = np.asarray(data, dtype=np.float64), self.starts.shape[1]
        products = multiplied_out(both[:, :K], both[:, K:])
        edges, _ = cumulated(log_joint_rows(position, products, self.offsets))
        return self._swept(rng, position, edges, products)

    def _swept(self, rng: np.random.Generator, position: Position, edges: Array, products: Array) -> Position:
        _, H, _, K = self.sizes
        labels = chosen_regions(rng, edges)
        drawn = self._exchanged_regions(rng, {**position, "labels": labels})
        moments = region_moments(products, drawn["labels"], self.offsets, H, K)
        if self.n_regions is not None:
            drawn |= chosen_pointers(rng, drawn, moments, self.priors.regime_concentration)
        return self.drawn_parameters(rng, drawn, moments)

    def _exchanged_regions(self, rng: np.random.Generator, position: Position) -> dict[str, NDArray[Any]]:
        """The position with regions that may have exchanged their sticks."""
        _, H, _, _ = self.sizes
        drawn = {name: np.array(value) for name, value in position.items()}
        moved = ["centers", "precisions"] + ["pointers"] * (self.n_regions is not None)
        for task, (a, b) in enumerate(pairwise(self.offsets)):
            counts = np.bincount(drawn["labels"][a:b], minlength=H)
            order = exchange_labels(rng, drawn["log_weights"][task], counts)
            for name in moved:
                drawn[name][task] = drawn[name][task, order]
            if self.n_regions is None:
                drawn["matrices"] = drawn["matrices"][order]
            drawn["labels"][a:b] = np.argsort(order)[drawn["labels"][a:b]]
        return drawn

    def drawn_parameters(self, rng: np.random.Generator, position: Position, moments: Moments) -> dict[str, Any]:
        """Everything but labels and pointers, drawn anew."""
        _, _, _, K = self.sizes
        drawn = {**position, **self._drawn_matrices(rng, position, moments)}
        freedom = K + self.priors.extra_freedom
        drawn["centers"], drawn["precisions"] = draw_places(rng, moments, self.scatter, self.priors.strength, freedom)
        squares = squared_residuals(moments, drawn["matrices"][drawn["pointers"]]).sum(axis=1)
        shape = self.priors.noise.shape + K * moments.counts.sum(axis=1) / 2
        drawn["noise_precision"] = rng.gamma(shape) / (self.priors.noise.rate + squares / 2)
        used, log_rests = used_sticks(position["log_weights"], moments.counts)
        concentration = drawn_concentration(
            rng, self.priors.concentration, float(position["concentration"]), used, log_rests
        )
        drawn["concentration"] = np.asarray(concentration)
        drawn["log_weights"] = np.stack([draw_sticks(rng, counts, concentration)[0] for counts in moments.counts])
        return drawn

    def _drawn_matrices(self, rng: np.random.Generator, position: Position, moments: Moments) -> dict[str, Array]:
        """Matrices of the regions that have transitions, relevances given these, then the other matrices."""
        _, _, J, K = self.sizes
        P, relevance, prior = self.n_inputs, position["relevance"], self.priors.relevance
        precision = position["noise_precision"][:, None] * np.ones(moments.counts.shape)
        share = (position["pointers"].ravel() == np.arange(J)[:, None]) * precision.ravel()  # (J, L H)
        gram = (share @ moments.gram.reshape(share.shape[1], -1)).reshape(J, K + 1, K + 1)
        cross = (share @ moments.cross.reshape(share.shape[1], -1)).reshape(J, K, K + 1)
        used = np.zeros(J, dtype=bool)
        used[position["pointers"][moments.counts > 0]] = True
        matrices = np.zeros((J, K, K + 1))
        matrices[used, :, :P] = draw_matrices(rng, *regression_posterior(gram[used], cross[used], relevance))
        squares = (matrices[used, :, :P] ** 2).sum(axis=(0, 1))
        relevance = rng.gamma(prior.shape + K * used.sum() / 2, size=P) / (prior.rate + squares / 2)
        fresh = rng.standard_normal((J - int(used.sum()), K, P)) / np.sqrt(relevance)
        matrices[~used, :, :P] = fresh
        return {"matrices": matrices, "relevance": relevance}

    def sample_prior(self, rng: np.random.Generator) -> Position:
        """Draw a position from the prior."""
        L, H, J, K = self.sizes
        concentration, regime = (
            rng.gamma(prior.shape) / prior.rate if isinstance(prior, Gamma) else float(prior)
            for prior in (self.priors.concentration, self.priors.regime_concentration)
        )
        nothing = Moments(
            np.zeros((L, H)), np.zeros((L, H, K + 1, K + 1)), np.zeros((L, H, K, K + 1)), np.zeros((L, H))
        )
        log_weights = np.stack([draw_sticks(rng, counts, concentration)[0] for counts in nothing.counts])
        prior = self.priors.relevance
        relevance = rng.gamma(prior.shape, size=self.n_inputs) / prior.rate
        matrices = np.zeros((J, K, K + 1))
        matrices[:, :, : self.n_inputs] = rng.standard_normal((J, K, self.n_inputs)) / np.sqrt(relevance)
        freedom = K + self.priors.extra_freedom
        centers, precisions = draw_places(rng, nothing, self.scatter, self.priors.strength, freedom)
        found: dict[str, Any] = {
            "labels": np.concatenate([
                choose_rows(rng, np.tile(weights, (n, 1))) for weights, n in zip(log_weights, np.diff(self.offsets))
            ]),
            "log_weights": log_weights,
            "pointers": np.arange(H)[None],
            "centers": centers,
            "precisions": precisions,
            "matrices": matrices,
            "relevance": relevance,
            "noise_precision": rng.gamma(self.priors.noise.shape, size=L) / self.priors.noise.rate,
            "concentration": np.asarray(concentration),
        }  # fmt: skip
        if self.n_regions is not None:
            regime_weights, _ = draw_sticks(rng, np.zeros(J), regime)
            found["regime_log_weights"], found["regime_concentration"] = regime_weights, np.asarray(regime)
            found["pointers"] = choose_rows(rng, np.tile(regime_weights, (L * H, 1))).reshape(L, H)
        return found

    def sample_data(self, rng: np.random.Generator, position: Position) -> Array:
        """Draw starts and ends of the transitions given a position: (n, 2 K)."""
        tasks = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
        place = tasks, position["labels"]
        root = np.linalg.cholesky(np.linalg.inv(position["precisions"][place]))
        normals = rng.standard_normal((2, *self.starts.shape))
        x = position["centers"][place] + (root @ normals[0][..., None])[..., 0]
        t = np.column_stack([x, np.ones(len(x))])
        M = position["matrices"][position["pointers"][place]]
        noise = normals[1] / np.sqrt(position["noise_precision"][tasks])[:, None]
        return np.hstack([x, (M @ t[..., None])[..., 0] + noise])

    def _n_used_regions(self, position: Position) -> int:
        return sum(len(set(position["labels"][a:b].tolist())) for a, b in pairwise(self.offsets))

    def record(self, position: Position) -> dict[str, Any]:
        """What to keep of a position: numbers of regions and regimes in use, noise and hyper-parameters."""
        tasks = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
        told = {
            "n_regions": np.asarray(self._n_used_regions(position)),
            "n_regimes": np.asarray(len(set(position["pointers"][tasks, position["labels"]].tolist()))),
            "noise_variance": 1 / position["noise_precision"],
            "relevance": position["relevance"],
            "concentration": position["concentration"],
        }
        if self.n_regions is not None:
            told["regime_concentration"] = position["regime_concentration"]
        return told
