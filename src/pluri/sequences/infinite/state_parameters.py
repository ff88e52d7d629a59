"""Posterior means of the parameters of states, by the names that people use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pluri.sequences.infinite.observations import Array, ObservationModel


def state_parameters(model: ObservationModel, sums: Sequence[Array]) -> dict[str, Any]:
    """Posterior means given the statistics of the states, (n_states, n_statistics) for each likelihood.

    Covariances and variances are those of the posterior mean where it exists, that is from two degrees of freedom
    above the smallest.
    """
    first = model.likelihoods[0]
    if model.family == "gaussian":
        _, df, center, scatter = first._posterior(sums[0])
        return {"means": first.mean + center, "covariances": scatter / _divisor(df - first.n_features - 1)}
    if model.family == "autoregressive":
        df, factor, _, _ = first._posterior(sums[0])
        corner = factor[:, first.n_predictors :, first.n_predictors :]
        scatter = corner @ np.swapaxes(corner, 1, 2)
        return {
            "coefficients": first.posterior_mean(sums[0]),
            "covariances": scatter / _divisor(df - first.n_targets - 1),
        }
    if model.family in ("categorical", "multinomial"):
        tables = [each._alpha + own for each, own in zip(model.likelihoods, sums)]
        return {"probabilities": [table / table.sum(axis=1, keepdims=True) for table in tables]}
    columns = [_column(model.family, each, own) for each, own in zip(model.likelihoods, sums)]
    return {name: np.concatenate([column[name] for column in columns], axis=1) for name in columns[0]}


def _column(family: str, likelihood: Any, sums: Array) -> dict[str, Array]:
    if family == "diag":
        _, center, shape, rate = likelihood._posterior(sums)
        return {"means": np.asarray(likelihood.mean) + center, "variances": rate / np.maximum(shape - 1, 0.5)}
    if family == "bernoulli":
        heads, tails = likelihood._heads_and_tails(sums)
        return {"probabilities": heads / (heads + tails)}
    shape, rate = likelihood._prior
    return {"rates": (shape + sums[:, 2:]) / (rate + sums[:, :1])}


def _divisor(freedom: Array) -> Array:
    return np.maximum(freedom, 1.0)[:, None, None]
