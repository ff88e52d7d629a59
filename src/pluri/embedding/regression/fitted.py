"""From chains to fitted attributes: what both reversible embeddings store after sampling."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.embedding.regression.prediction import JointMixture, drawn, mixture_of, place_log_density
from pluri.embedding.regression.records import DEFAULT_PRIORS, Position, RegressionPriors
from pluri.embedding.regression.standard import Standard, StandardCoordinates, in_units
from pluri.inference import mcmc
from pluri.priors import Gamma
from pluri.priors.hyperpriors import as_hyperparameter

Array = NDArray[np.float64]

#: Larger data could not be squared and summed.
LARGEST = 1e100
#: Log density for each number of the data that chains may differ by: a noise variance that is 2 % larger costs so much.
NEGLIGIBLE = 0.01
#: Dimensions that two ways of counting may differ by without a warning.
MOST_APART = 1.0
#: Share of the training rows whose coordinates count as outside.
OUTSIDE = 1e-3
#: Coordinates drawn to know where that share lies.
N_PLACES = 2000


def priors_of(model: Any) -> RegressionPriors:
    """Priors from the parameters of an estimator; None is the default."""
    value, prior = as_hyperparameter(model.concentration, "concentration", Gamma(1.0, 1.0))
    return RegressionPriors(
        model.support_prior or DEFAULT_PRIORS.support, value if prior is None else prior,
        model.noise_prior or DEFAULT_PRIORS.noise, model.coordinate_prior or DEFAULT_PRIORS.coordinate,
        model.loading_prior or DEFAULT_PRIORS.loading, model.mean_precision_prior or DEFAULT_PRIORS.mean,
    )  # fmt: skip


def check_size(X: Array) -> None:
    """Refuse data that could not be squared."""
    if float(np.abs(X).max()) > LARGEST:
        raise ValueError(f"X must not exceed {LARGEST:g} in size, got {np.abs(X).max():.3g}; rescale it")


def keep_every(model: Any) -> int:
    """Steps of a chain from one kept position to the next, so that `n_predictive` are kept of all chains together."""
    n_each = -(-int(model.n_predictive) // int(model.n_chains))
    return max(1, int(model.n_draws) * int(model.thin) // n_each)


def store_mixture(model: Any, mixture: JointMixture, rows: Standard, x: StandardCoordinates) -> None:
    """Fitted arrays of an estimator, in the units of the data."""
    found = in_units(mixture, rows, x)
    model.draw_index_, model.weights_, model.centers_, model.variances_ = found[:4]
    model.means_, model.loadings_, model.noise_variances_ = found[4:]
    model.basis_ = rows.basis
    model.offset_ = rows.center if rows.basis is not None else None


def store_trace(model: Any, trace: mcmc.Trace) -> Position:
    """Draws, dimensions and labels of an estimator; gives the position of highest density."""
    model.trace_ = replace(trace, ends=())  # a kernel holds all the data, and chains are not gone on with
    ends = [end.state for end in trace.ends]
    best = max(ends, key=lambda state: state.best_log_density)
    model.log_joint_ = float(best.best_log_density)
    model.n_iter_ = int(model.n_warmup) + trace.n_draws * int(model.thin)
    n_counted = sum(state.n_counted for state in ends)
    ranks = np.sum([state.ranks for state in ends], axis=0) / max(n_counted, 1)
    model.local_dimension_, model.local_effective_rank_ = ranks
    model.dimension_ = float(trace["dimension"].mean())
    model.effective_rank_ = float(trace["effective_rank"].mean())
    model.dimension_posterior_ = trace.flat("rank_shares").mean(axis=0)
    model.n_active_clusters_ = int(np.bincount(trace.flat("n_clusters").astype(np.int64)).argmax())
    labels = best.best["labels"]
    there = np.unique(labels)
    order = there[np.argsort(-best.best["log_weights"][there], kind="stable")]
    model.labels_ = np.argsort(order)[np.searchsorted(there, labels)].astype(np.int64)
    return best.best


def kept_mixture(model: Any, trace: mcmc.Trace, best: Position) -> JointMixture:
    """Mixture of the kept positions of all chains, or of the best position."""
    kept = [position for end in trace.ends for position in end.state.kept]
    if model.point == "best" or not kept:
        return mixture_of([best])
    n_asked = min(len(kept), int(model.n_predictive))
    return mixture_of([kept[number * len(kept) // n_asked] for number in range(n_asked)])


def store_support(model: Any, mixture: JointMixture, x: Array, rng: np.random.Generator) -> None:
    """Log density of coordinates below which hardly any row lies: of the training, or drawn from the model.

    So small a share of few rows is none; drawn ones are as many as are needed.
    """
    _, places = drawn(mixture, N_PLACES, rng)
    model.support_floor_ = min(
        float(np.quantile(place_log_density(mixture, where), OUTSIDE, method="lower")) for where in (x, places)
    )


def judge(model: Any, trace: mcmc.Trace, n_features: int, *, averaged: bool = False) -> None:
    """Say whether chains have settled, and what to think of the dimension.

    Averaged over chains, as predictions are: each chain may stay near its own partition of the rows, but all together
    must not go on rising.
    """
    small = NEGLIGIBLE * len(model.embedding_) * (n_features + model.embedding_.shape[1])
    values = trace.stats["log_density"]
    values = values.mean(axis=0, keepdims=True) if averaged else values
    verdict = mcmc.judge({"log_density": values}, mcmc.LATENT_R_HAT_LIMIT, {"log_density": small})
    model.converged_ = verdict.settled
    if trace.interrupted:
        return
    verdict.warn(stacklevel=4)
    gap = abs(model.dimension_ - model.effective_rank_)
    if gap > MOST_APART or model.dimension_ > n_features:
        warnings.warn(
            f"the number of dimensions is unsure: clusters use {model.dimension_:.1f} coordinates, but have "
            f"{model.effective_rank_:.1f} directions that matter (effective_rank_) of {n_features} features; the "
            "second number is usually the better one",
            UserWarning,
            stacklevel=3,
        )
