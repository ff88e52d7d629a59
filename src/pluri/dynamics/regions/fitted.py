"""From chains to fitted attributes: regions of the kept draws in the units of the data, and names for regimes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from pluri.dynamics.regions.conditionals import multiplied_out, region_moments, regression_posterior
from pluri.dynamics.regions.records import DEFAULT_PRIORS, Moments, Position, RegionPriors
from pluri.dynamics.regions.transitions import Transitions
from pluri.inference import mcmc
from pluri.priors import Gamma
from pluri.priors.hyperpriors import as_hyperparameter
from pluri.validation import Stored

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Log-likelihood for each number of the data that chains may differ by: a noise variance that is 2 % larger costs so
#: much.
NEGLIGIBLE = 0.01

#: What fitted arrays look like.
LAYOUT: Mapping[str, Stored] = {
    "noise_variances_": Stored("n_kept", "n_tasks_", least=0),
    "regime_usage_": Stored("n_tasks_", "n_named", simplex=True),
    "weights_": Stored("n_stored", least=0),
    "draw_index_": Stored("n_stored", whole=True, least=0, below="n_kept"),
    "task_index_": Stored("n_stored", whole=True, least=0, below="n_tasks_"),
    "centers_": Stored("n_stored", "n_features_in_"),
    "precisions_": Stored("n_stored", "n_features_in_", "n_features_in_"),
    "matrices_": Stored("n_stored", "n_features_in_", "n_features_in_"),
    "intercepts_": Stored("n_stored", "n_features_in_"),
    "regimes_": Stored("n_stored", whole=True, least=0, below="n_named"),
    "back_centers_": Stored("n_stored", "n_features_in_"),
    "back_precisions_": Stored("n_stored", "n_features_in_", "n_features_in_"),
    "back_matrices_": Stored("n_stored", "n_features_in_", "n_features_in_"),
    "back_intercepts_": Stored("n_stored", "n_features_in_"),
    "center_": Stored("n_features_in_"),
}


def priors_of(model: Any) -> RegionPriors:
    """Priors from the parameters of an estimator; None is the default."""
    values = []
    for name in ("concentration", "regime_concentration"):
        value, prior = as_hyperparameter(getattr(model, name, "learn"), name, Gamma(1.0, 1.0))
        values.append(value if prior is None else prior)
    return RegionPriors(
        values[0], values[1], model.relevance_prior or DEFAULT_PRIORS.relevance,
        model.noise_prior or DEFAULT_PRIORS.noise,
    )  # fmt: skip


def keep_every(model: Any) -> int:
    """Steps of a chain from one kept position to the next, so that `n_predictive` are kept of all chains together."""
    n_each = -(-int(model.n_predictive) // int(model.n_chains))
    return max(1, int(model.n_draws) * int(model.thin) // n_each)


def store(model: Any, trace: mcmc.Trace, data: Transitions) -> None:
    """Draws, regions and regimes of an estimator."""
    model.trace_ = trace.detached()  # a kernel holds all the data
    ends = [end.state for end in trace.ends]
    best = max(ends, key=lambda state: state.best_log_density)
    model.log_likelihood_ = float(best.best_log_density) - data.starts.size * float(np.log(data.scale))
    model.n_iter_ = int(model.n_warmup) + trace.n_draws * int(model.thin)
    kept = [position for state in ends for position in state.kept] or [best.best]
    tasks = np.repeat(np.arange(len(data.offsets) - 1), np.diff(data.offsets))
    model.n_active_regimes_ = int(np.bincount(trace.flat("n_regimes").astype(np.int64)).argmax())
    model.n_active_regions_ = int(np.bincount(trace.flat("n_regions").astype(np.int64)).argmax())
    chosen = [position["pointers"][tasks, position["labels"]] for position in kept]
    names = common_names(chosen, best.best["pointers"][tasks, best.best["labels"]])
    _store_regions(model, kept, names, data, tasks)
    usage = np.zeros((len(data.offsets) - 1, 1 + max(max(name.values()) for name in names)))
    for regimes, name in zip(chosen, names):
        np.add.at(usage, (tasks, np.array([name[regime] for regime in regimes.tolist()])), 1.0)
    model.regime_usage_ = usage / usage.sum(axis=1, keepdims=True)
    model.center_, model.reach_ = data.center, data.reach


def common_names(chosen: Sequence[Integers], reference: Integers) -> list[dict[int, int]]:
    """For each draw, a name for each regime that transitions have: the same name for the same transitions.

    Regimes of the reference are named by their size, the largest 0. Those of a draw are matched one to one with them
    so that as many transitions as possible have the same name; regimes that are left over get names of their own.
    """
    sizes = np.bincount(reference)
    order = [int(j) for j in np.argsort(-sizes, kind="stable") if sizes[j]]
    of_reference = {j: name for name, j in enumerate(order)}
    code = np.array([of_reference[j] for j in reference.tolist()])
    found = []
    for regimes in chosen:
        there, place = np.unique(regimes, return_inverse=True)
        together = np.zeros((len(there), len(order)))
        np.add.at(together, (place, code), 1.0)
        rows, columns = linear_sum_assignment(-together)
        named = dict(zip(there[rows].tolist(), columns.tolist()))
        left = [j for j in there.tolist() if j not in named]
        found.append(named | {j: len(order) + n for n, j in enumerate(left)})
    return found


def _store_regions(
    model: Any, kept: Sequence[Position], names: Sequence[Mapping[int, int]], data: Transitions, tasks: Integers
) -> None:
    """Regions that have transitions, draw by draw and task by task, in the units of the data."""
    parts: dict[str, list[Any]] = {name: [] for name in LAYOUT if name not in ("regime_usage_", "center_")}
    c, s = data.center, data.scale
    returning = multiplied_out(data.ends, data.starts)
    for draw, (position, name) in enumerate(zip(kept, names)):
        filled = np.zeros(position["log_weights"].shape, dtype=bool)
        filled[tasks, position["labels"]] = True
        at = np.nonzero(filled)
        moments = region_moments(returning, position["labels"], data.offsets, len(filled[0]), len(c))
        back = way_back(moments, position["noise_precision"], data.scatter)
        weights = np.where(filled, np.exp(position["log_weights"]), 0.0)
        parts["weights_"].append((weights / weights.sum(axis=1, keepdims=True))[at])
        parts["draw_index_"].append(np.full(len(at[0]), draw))
        parts["task_index_"].append(at[0])
        forth = (position["centers"], position["precisions"], position["matrices"][position["pointers"]])
        for prefix, (centers, precisions, matrices) in (("", forth), ("back_", back)):
            M = matrices[at]
            parts[f"{prefix}centers_"].append(c + s * centers[at])
            parts[f"{prefix}precisions_"].append(precisions[at] / s**2)
            parts[f"{prefix}matrices_"].append(M[:, :, :-1])
            parts[f"{prefix}intercepts_"].append(c + s * M[:, :, -1] - M[:, :, :-1] @ c)
        parts["noise_variances_"].append((s**2 / position["noise_precision"])[None])
        parts["regimes_"].append(np.array([name[j] for j in position["pointers"][at].tolist()], dtype=np.int64))
    for attribute, values in parts.items():
        setattr(model, attribute, np.concatenate(values))


def way_back(moments: Moments, noise_precision: Array, scatter: Array) -> tuple[Array, Array, Array]:
    """Where steps of each region end, and regressions of their starts on their ends, from sums over reversed steps.

    Centres (L, H, K), precisions (L, H, K, K) and matrices (L, H, K, K + 1): the posterior means of a flow of the
    reversed steps with the same regions. The way back that follows from the flow itself, by Bayes' rule, suffers where
    the noise is not the same in all directions.
    """
    K, counts = len(scatter), moments.counts
    u = DEFAULT_PRIORS.strength + counts
    centers = moments.gram[..., :K, K] / u[..., None]
    around = scatter + moments.gram[..., :K, :K] - u[..., None, None] * centers[..., :, None] * centers[..., None, :]
    freedom = K + DEFAULT_PRIORS.extra_freedom + counts
    precisions = freedom[..., None, None] * np.linalg.inv((around + np.swapaxes(around, -1, -2)) / 2)
    g = noise_precision[:, None, None, None]
    _, found = regression_posterior(g * moments.gram, g * moments.cross, np.ones(K + 1))
    return centers, np.asarray(precisions), np.swapaxes(found, -1, -2)


def judge(model: Any, trace: mcmc.Trace, data: Transitions) -> None:
    """Say whether chains have settled."""
    small = NEGLIGIBLE * data.starts.size * 2
    verdict = trace.verdict("log_density", limit=mcmc.LATENT_R_HAT_LIMIT, negligible={"log_density": small})
    model.converged_ = verdict.settled
    if not trace.interrupted:
        verdict.warn(stacklevel=4)
