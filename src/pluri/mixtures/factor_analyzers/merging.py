"""Moves that coordinate ascent cannot make by itself: joining two components, and turning the factors of one.

Started from k-means, it leaves a plane cut into pieces. So two components are replaced by one, made from the rows of
both, and some sweeps follow; if the bound is then higher, the merge stays. Pairs are tried in the order of a rough
estimate of what the merge gains: the log-likelihood of the rows of both under one Gaussian of low rank against their
present one, with half of log n for each parameter saved. And two factors may share one direction, each needed for what
the other leaves; turned to principal axes, one of them is nothing and goes. So do factors as weak as those that noise
alone gives, which would take many sweeps to fade.

References
----------
Hughes and Sudderth (2013), Memoized online variational inference for Dirichlet process mixture models, NIPS.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.engine import ArraySource
from pluri.factors.low_rank_gaussian import LowRankGaussians, Patterns, log_density, principal_factors
from pluri.inference import AscentWarning, expectation_maximization
from pluri.mixtures.factor_analyzers.beliefs import FactorMixtureBeliefs, ratio, stick_posterior
from pluri.mixtures.factor_analyzers.nonparametric_mean_field import LEAST_NOISE, FactorMixtureMeanField, normalized
from pluri.validation.interruption import Interrupted, holding

Array = NDArray[np.float64]

#: Sweeps after a merge, before the bound decides; more rounds of them if the bound would be reached at that pace; and
#: pairs tried in vain before the search ends.
TRIAL_SWEEPS = 15
MORE_ROUNDS = 6
MAX_FAILURES = 15
#: A pair is not tried if the rough estimate loses so much for each of its rows: they are far apart.
HOPELESS = 1.0
#: Components with fewer expected rows do not count as occupied.
LEAST_ROWS = 0.5


def merge_components(
    model: FactorMixtureMeanField,
    X: Array,
    beliefs: FactorMixtureBeliefs,
    bound: float,
    *,
    rng: np.random.Generator,
    max_iter: int,
    tol: float,
    on_merge: Callable[[Any], None] | None = None,
) -> tuple[FactorMixtureBeliefs, float]:
    """Merge pairs of components as long as that raises the bound.

    Parameters
    ----------
    model : FactorMixtureMeanField
    X : array of shape (n_samples, n_features)
    beliefs, bound : where coordinate ascent ended, and the bound there
    rng : numpy.random.Generator
    max_iter, tol : of coordinate ascent after a merge that pays
    on_merge : called with the `EMResult` of each accepted merge

    Returns
    -------
    FactorMixtureBeliefs, float
        Beliefs after the last merge, and their bound.
    """
    source = ArraySource(X)

    def settled(start: FactorMixtureBeliefs, sweeps: int) -> Any:
        """Where coordinate ascent leads from here if that is better than `bound`, with factors on principal axes."""
        trial = _run(model, source, start, rng, sweeps, tol)
        for _ in range(MORE_ROUNDS):
            if trial is None or trial.converged or trial.objective > bound + tol:
                break
            # What is left to climb, against what the last sweeps gained: factors that are not needed fade slowly.
            path = trial.history.run(trial.restart).objective
            if bound - trial.objective > MORE_ROUNDS * float(path[-1] - path[len(path) // 2]):
                break
            trial = _run(model, source, without_weak_factors(trial.params, len(X)), rng, sweeps, tol)
        if trial is None or not trial.objective > bound + tol:
            return None
        if not trial.converged:
            trial = _run(model, source, trial.params, rng, max_iter, tol) or trial
        for start in (without_weak_factors(trial.params, len(X)), on_principal_axes(trial.params)):
            turned = _run(model, source, start, rng, max_iter, tol)
            if turned is not None and turned.objective > trial.objective:
                return turned
        return trial

    def keep(found: Any) -> None:
        nonlocal beliefs, bound
        beliefs, bound = found.params, found.objective
        if on_merge is not None:
            on_merge(found)

    with holding("merging interrupted; the merges so far are kept"):
        for start in (without_weak_factors(beliefs, len(X)), on_principal_axes(beliefs)):
            if (turned := settled(start, max_iter)) is not None:
                keep(turned)
                break
        failures = 0
        while failures < MAX_FAILURES:
            shares, _ = normalized(model.local(beliefs, X)[0])
            for first, second in _candidates(beliefs, X, shares):
                found = settled(_merged(model, beliefs, X, shares, first, second), TRIAL_SWEEPS)
                if found is not None:
                    keep(found)
                    failures = 0
                    break
                failures += 1
                if failures >= MAX_FAILURES:
                    break
            else:
                break
    return beliefs, bound


def on_principal_axes(q: FactorMixtureBeliefs) -> FactorMixtureBeliefs:
    """Factors of each component turned so that the loadings in use are orthogonal, the longest first."""
    loadings, spread = q.loadings.copy(), q.loading_spread.copy()
    for j, on in enumerate(q.support > 0.5):
        if on.sum() > 1:
            _, singular, right = np.linalg.svd(loadings[j, on], full_matrices=False)
            axes = np.zeros((int(on.sum()), loadings.shape[2]))
            axes[: len(singular)] = singular[:, None] * right
            loadings[j, on], spread[j, on] = axes, spread[j, on].mean()
    return replace(q, loadings=loadings, loading_spread=spread)


def without_weak_factors(q: FactorMixtureBeliefs, n: int) -> FactorMixtureBeliefs:
    """Factors on principal axes, and those off that are no stronger than noise might make them.

    The largest eigenvalue of the covariance of n rows of pure noise is near ``(1 + (D / n)^(1/2))^2`` of its variance;
    twice the excess counts as weak.
    """
    q = on_principal_axes(q)
    D = q.means.shape[1]
    counts = np.maximum(n * weights_of(q), 1.0)
    strength = (q.loadings**2).sum(axis=2) * ratio(q.noise_precision) / ratio(q.factor_precision)[:, None]
    weak = (q.support > 0.5) & (strength < 2 * ((1 + np.sqrt(D / counts)) ** 2 - 1)[:, None])
    return replace(
        q, support=np.where(weak, 1e-3, q.support), loadings=np.where(weak[:, :, None], 0.0, q.loadings)
    )  # fmt: skip


def weights_of(q: FactorMixtureBeliefs) -> Array:
    """Expected weights of the components."""
    share = q.sticks[:, 0] / q.sticks.sum(axis=1)
    share[-1] = 1.0
    return np.asarray(share * np.concatenate([[1.0], np.cumprod(1 - share[:-1])]))


def _run(
    model: FactorMixtureMeanField, source: ArraySource, start: Any, rng: np.random.Generator, max_iter: int, tol: float
) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error", AscentWarning)  # of the model itself, this is never seen
        try:
            result = expectation_maximization(model, source, rng=rng, start=start, max_iter=max_iter, tol=tol)
        except (FloatingPointError, np.linalg.LinAlgError):
            return None
    if result.interrupted:
        raise Interrupted
    return result


def _candidates(q: FactorMixtureBeliefs, X: Array, shares: Array) -> list[tuple[int, int]]:
    """Pairs of occupied components, those with the largest estimated gain first."""
    counts = shares.sum(axis=0)
    occupied = np.flatnonzero(counts > LEAST_ROWS)
    labels = shares.argmax(axis=1)
    ranks = (q.support > 0.5).sum(axis=1)
    D = X.shape[1]
    noise = 1 / ratio(q.noise_precision)
    scaled = q.loadings * (q.support > 0.5)[:, :, None] / np.sqrt(ratio(q.factor_precision))[:, None, None]
    law = LowRankGaussians(q.means, scaled.transpose(0, 2, 1), np.full(q.means.shape, noise))
    own = log_density(law, Patterns.of(X))[np.arange(len(X)), labels] + np.log(np.maximum(counts, 1e-300))[labels]
    gains: dict[tuple[int, int], float] = {}
    for first, second in combinations(occupied.tolist(), 2):
        rows = (labels == first) | (labels == second)
        if rows.sum() < 2:
            gains[first, second] = math.inf
            continue
        # Pieces of a line may look like points, and those of a plane like lines: the whole may need a factor more.
        least, sum_of_ranks = int(max(ranks[first], ranks[second])), int(ranks[first] + ranks[second])
        for rank in range(least, min(sum_of_ranks + 1, q.support.shape[1], D) + 1):
            mean, loadings, _ = principal_factors(X[rows], np.ones(rows.sum()), rank, LEAST_NOISE)
            both = LowRankGaussians(mean[None], loadings[None], np.full((1, D), noise))
            together = log_density(both, Patterns.of(X[rows])).sum()
            together += rows.sum() * math.log(counts[first] + counts[second])
            saved = D * (1 + sum_of_ranks - rank)
            gain = float(together - own[rows].sum() + 0.5 * saved * math.log(len(X)))
            gains[first, second] = max(gain, gains.get((first, second), -math.inf))
        if gains[first, second] < -HOPELESS * rows.sum():
            del gains[first, second]
    return sorted(gains, key=lambda pair: -gains[pair])


def _merged(
    model: FactorMixtureMeanField, q: FactorMixtureBeliefs, X: Array, shares: Array, first: int, second: int
) -> FactorMixtureBeliefs:
    """Beliefs with the rows of both in the first component, and the second empty; sticks by size."""
    counts = shares.sum(axis=0)
    joined, _ = model.with_component(q, first, X, shares[:, first] + shares[:, second])
    counts[first] += counts[second]
    counts[second] = 0.0
    joined = model.without_component(joined, second)
    counts = np.append(np.delete(counts, second), 0.0)
    order = np.argsort(-counts, kind="stable")
    return replace(joined.taken(order), sticks=stick_posterior(counts[order], ratio(q.concentration)))
