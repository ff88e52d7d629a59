"""Forecasts: the distribution of the rows after the last one, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from pluri.dynamics.linear.input_rows import input_rows
from pluri.dynamics.linear.parameters import LinearParameters
from pluri.dynamics.linear.passes import Pass

Array = NDArray[np.float64]

__all__ = ["Forecast"]


@dataclass(frozen=True, eq=False)
class Forecast:
    """What comes after each sequence.

    Parameters
    ----------
    mean, std : ndarray (n_sequences, horizon, n_features)
        Of each output.
    lower, upper : ndarray (n_sequences, horizon, n_features)
        Bounds between which each output lies with probability `level`, the parameters being taken as known.
    level : float
    states, state_covariance : ndarray (n_sequences, horizon, d), (n_sequences, horizon, d, d)
        Mean and covariance of the states.
    """

    mean: Array
    std: Array
    lower: Array
    upper: Array
    level: float
    states: Array
    state_covariance: Array

    def __repr__(self) -> str:
        sequences, horizon, n = self.mean.shape
        return f"<Forecast: {sequences} sequences, {horizon} steps, {n} features, intervals of {self.level:g}>"


def forecast_after(parameters: LinearParameters, result: Pass, inputs: Array, future: Array, level: float) -> Forecast:
    """Forecasts after each sequence of a filtered pass, for inputs of its rows and future ones (sequence, step, q)."""
    horizon = future.shape[1]
    n_sequences, d = len(result.offsets) - 1, len(parameters.m)
    mean, covariance = np.tile(parameters.m, (n_sequences, 1)), np.tile(parameters.P, (n_sequences, 1, 1))
    long = np.diff(result.offsets) > 0
    last = result.offsets[1:][long] - 1
    # An empty sequence has its first row still to come.
    drift = parameters.b + inputs[last] @ parameters.B.T
    mean[long] = result.mean[last] @ parameters.A.T + drift
    covariance[long] = _moved(parameters, result.covariance[result.slot[last]])
    states, spreads = np.empty((n_sequences, horizon, d)), np.empty((n_sequences, horizon, d, d))
    for step in range(horizon):
        states[:, step], spreads[:, step] = mean, covariance
        mean = mean @ parameters.A.T + parameters.b + future[:, step] @ parameters.B.T
        covariance = _moved(parameters, covariance)
    outputs = states @ parameters.C.T + parameters.c + future @ parameters.D.T
    variance = np.einsum("ij,shjk,ik->shi", parameters.C, spreads, parameters.C)
    std = np.sqrt(variance + np.diag(parameters.full_noise))
    width = float(ndtri(0.5 + 0.5 * level)) * std
    return Forecast(outputs, std, outputs - width, outputs + width, float(level), states, spreads)


def _moved(parameters: LinearParameters, covariance: Array) -> Array:
    return np.asarray(parameters.A @ covariance @ parameters.A.T + parameters.Q)


def future_rows(future: Any, n_sequences: int, horizon: int, n_inputs: int) -> Array:
    """Future inputs (n_sequences, horizon, n_inputs): one array for all sequences, or a list with one for each."""
    name, step = "future_inputs", np.array([horizon], dtype=np.int64)
    if future is None and n_inputs:
        raise ValueError(f"{name} must be given, {horizon} rows of {n_inputs}: the model was fitted with inputs")
    if not _one_for_each(future):
        return np.tile(input_rows(future, step, n_inputs, name), (n_sequences, 1, 1))
    if len(future) != n_sequences:
        raise ValueError(f"{name} must have one array for each of {n_sequences} sequences, got {len(future)}")
    return np.stack([input_rows(one, step, n_inputs, name) for one in future])


def _one_for_each(future: Any) -> bool:
    """Whether future inputs are a list of arrays, or anything with three axes."""
    if isinstance(future, list | tuple) and any(hasattr(one, "shape") and np.ndim(one) > 0 for one in future):
        return True
    return future is not None and np.ndim(future) == 3
