"""A fit of a dictionary by coordinate ascent: what an estimator asks for, where it starts, what comes out."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pluri.factors.dictionaries.records import Array, DictionaryFit, Rows
from pluri.factors.dictionaries.start import principal_axes
from pluri.factors.dictionaries.variational import precisions
from pluri.factors.dictionaries.variational.clustered_usage import (
    SWEEPS_WITHOUT_CLUSTERS,
    ClusteredUsage,
    first_responsibilities,
)
from pluri.factors.dictionaries.variational.learned_dictionary import DictionaryBeliefs, LearnedDictionary
from pluri.factors.dictionaries.variational.precisions import PRECISION_PRIOR
from pluri.factors.dictionaries.variational.stochastic import N_SWEEPS, StochasticDictionary
from pluri.inference.variational.coordinate_ascent import coordinate_ascent
from pluri.inference.variational.stochastic import RobbinsMonro, stochastic_variational_inference
from pluri.priors.hyperpriors import Hyperparameter
from pluri.validation import as_generator
from pluri.validation.interruption import Interrupted

if TYPE_CHECKING:
    from pluri.factors.dictionaries.estimator import BetaProcessDictionary

#: Share of the bound below which the noise of stochastic steps cannot be told from a gain.
SMALLEST_GAIN = 1e-3


def fit(model: BetaProcessDictionary, rows: Rows, init: Any) -> DictionaryFit:
    """Run the ascent of an estimator, or noisy steps if ``inference="svi"``.

    Parameters
    ----------
    model : BetaProcessDictionary
        Only its parameters are read.
    rows : Rows
    init : {"prior", "svd"} or array of shape (n_components, n_features)
        Atoms to start from.

    Returns
    -------
    DictionaryFit
    """
    if model.inference == "svi":
        return fit_stochastic(model, rows, init)
    learned = asked_for(model)
    rng = as_generator(model.random_state)
    start = learned.start(rows, first_atoms(rng, rows, int(model.n_components), init))
    if learned.usage.n_clusters > 1:
        start = _with_clusters(learned, rows, start, rng)
    result = coordinate_ascent(
        learned, rows, rng=rng, start=start, max_iter=int(model.max_iter), tol=float(model.tol),
        verbose=int(model.verbose),
    )  # fmt: skip
    labels = result.params.usage.labels if learned.usage.n_clusters > 1 else None
    fitted = as_fit(result.params, rows, result.n_iter, result.converged)
    return replace(fitted, bound=result.trace.tolist(), cluster_labels=labels)


def fit_stochastic(model: BetaProcessDictionary, rows: Rows, init: Any) -> DictionaryFit:
    """Run noisy steps on minibatches of rows that are in memory.

    There are at most `max_iter` passes; they end when the bound over all rows rises by less than `tol` of itself, or
    than `SMALLEST_GAIN`, below which the noise of the steps cannot be told from a gain.
    """
    learned = replace(asked_for(model, stochastic=True), n_sweeps=N_SWEEPS)
    rng, n = as_generator(model.random_state), len(rows.values)
    atoms = first_atoms(rng, rows, int(model.n_components), init)
    online = StochasticDictionary(learned, atoms, float(n), rows.values.dtype)
    values = rows.values if rows.observed is None else np.where(rows.observed, rows.values, np.nan)
    result = stochastic_variational_inference(
        online, values, rng=rng, batch_size=int(model.batch_size), max_iter=int(model.max_iter),
        schedule=RobbinsMonro(float(model.learning_decay), float(model.learning_offset)),
        tol=max(float(model.tol), SMALLEST_GAIN), verbose=int(model.verbose),
    )  # fmt: skip
    fitted = as_fit(online.coded(rows, result.params), rows, result.n_passes, result.converged)
    return replace(fitted, bound=list(result.trace))


def asked_for(model: BetaProcessDictionary, *, stochastic: bool = False) -> LearnedDictionary:
    """The model that the parameters of an estimator describe; ValueError if it cannot be learned in this way.

    `stochastic`: from minibatches, which neither clusters of rows nor noise of their own go with.
    """
    way = "minibatches" if stochastic else f"inference={model.inference!r}"
    refused = {"usage_prior": {"psbp"}, "share": {"pattern"}}
    if stochastic:
        refused |= {"usage_prior": {"psbp", "dp"}, "noise_type": {"per_sample", "per_group"}}
    for name, values in refused.items():
        if (value := getattr(model, name)) in values:
            raise ValueError(f"{name} must not be {value!r} with {way}")
    n_clusters = int(model.n_clusters) if model.usage_prior == "dp" else 1
    return LearnedDictionary(
        ClusteredUsage(float(model.a), float(model.b), n_clusters),
        Hyperparameter(1.0, model.noise_prior or PRECISION_PRIOR),
        Hyperparameter(1.0, model.weight_prior or PRECISION_PRIOR),
    )


def first_atoms(rng: np.random.Generator, rows: Rows, n_components: int, init: Any) -> Array:
    """Atoms to start from: draws of the prior, principal axes and then draws of the prior, or those that are given."""
    if not isinstance(init, str):
        return np.asarray(init, dtype=np.float64)
    P = rows.values.shape[1]
    atoms = rng.standard_normal((n_components, P)) / math.sqrt(P)
    if init == "svd":
        axes = principal_axes(rows.values)[:n_components]
        atoms[: len(axes)] = axes
    return atoms


def _with_clusters(
    learned: LearnedDictionary, rows: Rows, start: DictionaryBeliefs, rng: np.random.Generator
) -> DictionaryBeliefs:
    """Where the ascent with clusters starts: from some sweeps without, and k-means on the probabilities of use."""
    usage = ClusteredUsage(learned.usage.a, learned.usage.b)
    alone = replace(learned, usage=usage)
    first = replace(start, usage=usage.start(np.full(start.entries.used.shape, 0.1)))
    result = coordinate_ascent(alone, rows, rng=rng, start=first, max_iter=SWEEPS_WITHOUT_CLUSTERS, tol=0.0)
    if result.interrupted:
        raise Interrupted
    q, used = result.params, result.params.entries.used
    return replace(q, usage=learned.usage.start(used, first_responsibilities(used, learned.usage.n_clusters, rng)))


def as_fit(q: DictionaryBeliefs, rows: Rows, n_iter: int, converged: bool) -> DictionaryFit:
    """What a fit gives, from the parameters of q."""
    codes, squares, D = q.codes, q.squares, q.components
    e = np.broadcast_to(q.component_variances, D.shape).astype(D.dtype)
    used = q.entries.used
    return DictionaryFit(
        components=D,
        component_covariance=np.diag(np.asarray(q.component_variances, dtype=np.float64).mean(axis=1)),
        usage=used.mean(axis=0, dtype=np.float64),
        power=squares.sum(axis=0, dtype=np.float64) * (D.astype(np.float64) ** 2 + e).sum(axis=1),
        noise_precision=precisions.mean(q.noise_precision),
        weight_precision=float(precisions.mean(q.weight_precision)[0]),
        mean=codes @ D,
        variance=np.maximum((squares - codes**2) @ D**2 + squares @ e, 0),
        weights=q.entries.mean,
        used=(used > 0.5).astype(np.int8),
        converged=converged,
        n_iter=n_iter,
    )
