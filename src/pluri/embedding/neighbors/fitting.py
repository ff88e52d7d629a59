"""From neighbour distributions to a map: where to begin, the stages of a fit, and the optimiser in each of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_array

from pluri.embedding.neighbors.dense import CostFunction
from pluri.embedding.neighbors.distributions import Neighbors
from pluri.embedding.neighbors.input_data import Objects
from pluri.embedding.neighbors.optimizers import (
    Descended,
    Objective,
    Settings,
    run_jitter,
    run_lbfgs,
    run_momentum,
    run_spectral,
)
from pluri.inference import HistoryRow

Array = NDArray[np.float64]

OPTIMIZERS = ("lbfgs", "spectral", "momentum", "jitter")
#: Standard deviation of points at the beginning, and of the noise that tells equal objects apart.
START, UNEQUAL = 1e-2, 1e-4
#: Part of the iterations of the published schedule that are jittered (3500 of 4000).
JITTERED = 7 / 8
#: Stages of a fit whose perplexity falls or whose extra dimensions vanish, and the part of the iterations they have.
N_STAGES, STAGED = 10, 0.5
#: Price of a squared extra coordinate, in the first and in the last stage.
PENALTIES = (1e-4, 1e2)
#: What attraction counts in the first stage of a map with heavy tails, and the part of the iterations that it has.
EXAGGERATION, EXAGGERATED = 12.0, 0.1
#: Most that an iteration moves a coordinate of such a map: parts that share no neighbours would fly apart.
FARTHEST = 10.0
#: Step of momentum with heavy tails, where points that are far apart pull at each other less and less; it is multiplied
#: by the fifth that momentum leaves of a gradient.
HEAVY_RATE = 5.0
#: Largest step where the learning rate is "auto", and the bound on its product with 1 + in-degree.
RATE, STABLE = 0.2, 0.45
#: Curvature that the attraction alone does not give, relative to the mean one.
RIDGE = 1e-6


@dataclass(frozen=True)
class Plan:
    """How a map is sought.

    Attributes
    ----------
    optimizer : one of `OPTIMIZERS`
    learning_rate : a number, or "auto"
    jitter : standard deviation of the noise of the optimiser "jitter"
    max_iter, tol, verbose : as everywhere
    heavy : whether tails are heavy
    """

    optimizer: str
    learning_rate: Any
    jitter: float
    max_iter: int
    tol: float
    verbose: int = 0
    heavy: bool = False


@dataclass(frozen=True)
class Stage:
    """A part of a fit.

    Attributes
    ----------
    perplexity : a number, or None: dissimilarities as they are
    penalty : price of a squared extra coordinate
    share : part of the iterations
    attraction : what attraction counts
    """

    perplexity: float | None
    penalty: float
    share: float
    attraction: float = 1.0


def pca_start(X: Array, n_components: int, rng: np.random.Generator) -> Array:
    """Principal components (n, L), so short that all points are close, with noise that tells equal rows apart."""
    from sklearn.decomposition import PCA

    n, width = X.shape
    points = np.zeros((n, n_components))
    size = min(n_components, width, n)
    pca = PCA(size, svd_solver="covariance_eigh" if width <= 1000 else "randomized", random_state=0)
    spread = np.abs(X - X.mean(axis=0)).max()
    if spread > 0:
        scores = pca.fit_transform(X / spread)
        points[:, :size] = START * scores / max(float(scores[:, 0].std()), 1e-12)
    return points + UNEQUAL * rng.standard_normal((n, n_components))


def random_start(n: int, n_components: int, rng: np.random.Generator) -> Array:
    """Points (n, L) very close to the origin."""
    return START * rng.standard_normal((n, n_components))


def start_of(init: Any, objects: Objects, n_components: int, rng: np.random.Generator) -> Array:
    """Where points begin (n, L), as the parameter `init` says."""
    vectors = not (isinstance(objects.metric, str) and objects.metric == "precomputed")
    if isinstance(init, str):
        if init not in ("auto", "pca", "random"):
            raise ValueError(f"init must be one of 'auto', 'pca', 'random' or an array, got {init!r}")
        if init == "pca" and not vectors:
            raise ValueError("init must be 'auto', 'random' or an array with metric='precomputed', got 'pca'")
        if init == "random" or not vectors:
            return random_start(objects.n, n_components, rng)
        return pca_start(objects.rows, n_components, rng)
    given = check_array(init, dtype=np.float64, input_name="init")
    if given.shape != (objects.n, n_components):
        raise ValueError(f"init must have shape {(objects.n, n_components)}, got {given.shape}")
    return np.array(given)


def step_rates(in_degree: Array, learning_rate: Any) -> Array:
    """Step of each object (n, 1) per unit of gradient.

    With D the diagonal matrix of 1 + in-degree, the attraction has curvature 2 (D - W), and the eigenvalues of
    D^-1 (D - W) lie between 0 and 2: steps s / (1 + in-degree) contract if s < 1/2, and where hubs have neighbours that
    have no others they diverge if s > 1/2 (a single object that moves alone would allow 1). So "auto" takes shorter
    steps for hubs.
    """
    if learning_rate == "auto":
        return np.minimum(RATE, STABLE / (1.0 + in_degree))[:, None]
    return np.full((len(in_degree), 1), float(learning_rate))


def stages(perplexity: float | None, perplexity_start: float | None, extra: int, *, heavy: bool = False) -> list[Stage]:
    """The parts of a fit, in order; a single one if nothing is annealed and tails are not heavy."""
    if heavy:
        first, *others = stages(perplexity, perplexity_start, extra)
        return [replace(first, share=EXAGGERATED, attraction=EXAGGERATION), first, *others]
    if perplexity_start is None and not extra:
        return [Stage(perplexity, 0.0, 1.0)]
    penalties = np.geomspace(*PENALTIES, N_STAGES) if extra else np.zeros(N_STAGES)
    values: list[float | None] = [perplexity] * N_STAGES
    if perplexity_start is not None and perplexity is not None:
        values = list(np.geomspace(perplexity_start, perplexity, N_STAGES + 1)[:-1])
    early = [Stage(value, float(price), STAGED / N_STAGES) for value, price in zip(values, penalties, strict=True)]
    return [*early, Stage(perplexity, 0.0, 1.0 - STAGED)]


def fit_map(
    cost_of: Callable[[float | None, float], CostFunction],
    start: Array,
    plan: Plan,
    parts: list[Stage],
    extra: int,
    rng: np.random.Generator,
) -> tuple[Descended, CostFunction]:
    """Minimise the cost through all stages; the points (n, L) found, and the cost function asked for.

    Parameters
    ----------
    cost_of : callable
        Perplexity, and what attraction counts, to the cost function.
    start : (n, L)
    plan : Plan
    parts : list of Stage
    extra : int
        Dimensions that the early stages have in addition.
    rng : Generator
    """
    n, kept = start.shape
    points = np.column_stack([start, random_start(n, extra, rng)]) if extra else start
    rows: list[HistoryRow] = []
    interrupted = False
    for part in parts[:-1]:
        cost = cost_of(part.perplexity, part.attraction)
        objective = partial(_penalised, cost, part.penalty, kept)
        most = round(part.share * plan.max_iter)
        found = descend_with(plan, objective, points, cost.neighbors, most, rng, math.inf, attraction=part.attraction)
        rows += found.rows
        points = found.points
        if found.interrupted:
            interrupted = True
            break
    points = points[:, :kept]
    cost = cost_of(parts[-1].perplexity, parts[-1].attraction)
    if interrupted:
        found = Descended(points, cost(points).value, rows, interrupted=True)
    else:
        left = plan.max_iter - len(rows)
        noisy = round(JITTERED * plan.max_iter) - len(rows)
        found = descend_with(plan, partial(_penalised, cost, 0.0, kept), points, cost.neighbors, left, rng, noisy)
    rows += found.rows if not interrupted else []
    numbered = [row._replace(iteration=number + 1) for number, row in enumerate(rows)]
    return replace(found, rows=numbered), cost


def descend_with(
    plan: Plan,
    objective: Objective,
    start: Array,
    neighbors: Neighbors,
    max_iter: int,
    rng: np.random.Generator,
    n_jittered: float = 0,
    movable: int | None = None,
    attraction: float = 1.0,
) -> Descended:
    """Run the optimiser of a plan from a start, for at most `max_iter` iterations."""
    max_iter = max(1, max_iter)
    rates = step_rates(neighbors.in_degree, plan.learning_rate) / attraction
    if plan.heavy and plan.optimizer == "momentum" and plan.learning_rate == "auto":
        rates = np.full_like(rates, HEAVY_RATE / attraction)
    farthest = FARTHEST if plan.heavy else math.inf
    noisy = int(min(max(n_jittered, 0), max_iter))
    settings = Settings(max_iter, plan.tol, rates, plan.jitter, noisy, farthest, movable, plan.verbose)
    if plan.optimizer == "jitter":
        return run_jitter(objective, start, settings, rng)
    if plan.optimizer == "momentum":
        return run_momentum(objective, start, settings, rng)
    if plan.optimizer == "spectral":
        return run_spectral(objective, start, settings, spectral_solver(neighbors.P))
    return run_lbfgs(objective, start, settings)


def _penalised(cost: CostFunction, penalty: float, kept: int, points: Array) -> tuple[float, Array]:
    """Cost and gradient, with the price of coordinates beyond those that are kept."""
    found = cost(points)
    if not penalty or points.shape[1] == kept:
        return found.value, found.gradient
    gradient = found.gradient.copy()
    gradient[:, kept:] += 2.0 * penalty * points[:, kept:]
    return found.value + penalty * float((points[:, kept:] ** 2).sum()), gradient


def spectral_solver(P: Any) -> Callable[[Array], Array]:
    """Solve with the curvature of the attraction, 2 (D - W) with W = P + P' and D its row sums, plus a small ridge.

    Dense: by a Cholesky factor, computed once. Sparse: by conjugate gradients, to a tenth of the right-hand side.
    """
    W = P + P.T
    degrees = np.asarray(W.sum(axis=1)).ravel()
    ridge = RIDGE * float(degrees.mean())
    if not sparse.issparse(P):
        from scipy.linalg import cho_factor, cho_solve

        curvature = -2.0 * W
        curvature[np.diag_indices_from(curvature)] += 2.0 * degrees + ridge
        factor = cho_factor(curvature, lower=True, overwrite_a=True)
        return lambda gradient: np.asarray(cho_solve(factor, gradient))
    from scipy.sparse.linalg import cg

    curvature = sparse.diags_array(2.0 * degrees + ridge) - 2.0 * W
    preconditioner = sparse.diags_array(1.0 / (2.0 * degrees + ridge))

    def solve(gradient: Array) -> Array:
        columns = [cg(curvature, column, rtol=0.1, maxiter=50, M=preconditioner)[0] for column in gradient.T]
        return np.column_stack(columns)

    return solve
