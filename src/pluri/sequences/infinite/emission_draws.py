"""Observations drawn given the states of all steps and the parameters of the states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.sequences.infinite.observations import Integers, ObservationModel

Array = NDArray[np.float64]


def draw_parameters(rng: np.random.Generator, model: ObservationModel, sums: Sequence[Array]) -> list[Any]:
    """Parameters of each state, by likelihood, given their statistics."""
    nothing = model.prepare(np.empty((0, model.n_features)), np.zeros(1, dtype=np.int64))
    return nothing.draw(rng, sums)


def empty_sums(model: ObservationModel, n_states: int) -> list[Array]:
    """Statistics of states without observations."""
    return [np.asarray(likelihood.empty(n_states)) for likelihood in model.likelihoods]


def draw_observations(
    rng: np.random.Generator,
    model: ObservationModel,
    parameters: Sequence[Any],
    labels: Integers,
    offsets: Integers,
    given: Array,
) -> Array:
    """Draw X given the state of each step.

    Parameters
    ----------
    parameters : of each state, by likelihood
    labels : (n_steps,)
    offsets : (n_sequences + 1,)
    given : (n_steps, n_features)
        What "autoregressive" takes for the rows that have no density; what is NaN stays so.
    """
    if model.family == "autoregressive":
        return _regress(rng, model, parameters[0], labels, offsets, given)
    out = np.empty(given.shape)
    for likelihood, own, (location, spread) in zip(model.likelihoods, model.columns, parameters):
        out[:, list(own)] = _rows(rng, model.family, likelihood, location[labels], spread[labels])
    out[np.isnan(given)] = np.nan
    return out


def _rows(rng: np.random.Generator, family: str, likelihood: Any, location: Array, spread: Array) -> Array:
    if family == "gaussian":
        return np.asarray(location + np.einsum("tij,tj->ti", spread, rng.standard_normal(location.shape)))
    if family == "diag":
        return np.asarray(location + np.sqrt(spread) * rng.standard_normal(location.shape))
    if family == "poisson":
        return rng.poisson(spread).astype(np.float64)
    if family == "bernoulli":
        return (np.log1p(-rng.random(location.shape)) < location).astype(np.float64)
    shares = np.exp(location).cumsum(axis=1)
    if family == "multinomial":
        return rng.multinomial(1, np.diff(shares / shares[:, -1:], axis=1, prepend=0.0)).astype(np.float64)
    threshold = rng.random((len(shares), 1)) * shares[:, -1:]
    return np.minimum((shares <= threshold).sum(axis=1, keepdims=True), shares.shape[1] - 1).astype(np.float64)


def _regress(
    rng: np.random.Generator,
    model: ObservationModel,
    parameters: Any,
    labels: Integers,
    offsets: Integers,
    given: Array,
) -> Array:
    out = given.copy()
    noise = np.einsum("tij,tj->ti", parameters.root[labels], rng.standard_normal(given.shape))
    for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist()):
        for t in range(begin + model.order, end):
            past = out[t - model.order : t][::-1].ravel()
            if not np.isnan(past).any() and not np.isnan(given[t]).any():
                out[t] = parameters.coefficients[labels[t]] @ np.append(1.0, past) + noise[t]
    return out
