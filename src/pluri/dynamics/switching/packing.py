"""Parameters of a switching system as an unconstrained vector, for extrapolated EM steps.

Probabilities are logits, covariances are Cholesky factors with the logarithm of their diagonal, and features are
measured in units of the prior of their noise, so that a step depends on no unit. The posterior of the regimes that an
E-step starts from is no part of it: a guess begins with that of the parameters it is made from.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.components.probability_rows import rows_from_logits
from pluri.dynamics.switching.parameters import SwitchingParameters

Array = NDArray[np.float64]

#: Letters of `params`, and the fields they stand for, in the order of the vector.
PARTS = {
    "s": ("start",),
    "t": ("transition",),
    "a": ("dynamics", "dynamics_offset"),
    "q": ("dynamics_covariance",),
    "c": ("emission", "emission_offset"),
    "r": ("emission_covariance",),
    "i": ("initial_mean", "initial_covariance"),
}


def pack(params: SwitchingParameters, update: str, unit: Array) -> Array:
    """The parts that `update` names, as a vector."""
    measured = _in_units(params, unit)
    return np.concatenate([np.zeros(0), *(_flat(name, getattr(measured, name)) for name in _names(update))])


def unpack(
    vector: Array, like: SwitchingParameters, update: str, unit: Array, priors: tuple[Any, Any]
) -> SwitchingParameters:
    """The inverse of `pack`; `priors` of start and transition keep their rows where an M-step could put them."""
    measured, begin = _in_units(like, unit), 0
    found: dict[str, Array] = {}
    for name in _names(update):
        now = getattr(measured, name)
        size = _flat(name, now).size
        part, begin = vector[begin : begin + size], begin + size
        if name in ("start", "transition"):
            found[name] = rows_from_logits(part.reshape(now.shape), now, priors[name == "transition"])
        elif name.endswith("covariance"):
            found[name] = _covariances(part, now)
        else:
            found[name] = part.reshape(now.shape).copy()
    return _in_units(replace(measured, **found), 1 / unit)


def _names(update: str) -> list[str]:
    return [name for letter, names in PARTS.items() if letter in update for name in names]


def _in_units(params: SwitchingParameters, unit: Array) -> SwitchingParameters:
    """The same system with feature i measured in ``unit[i]``."""
    return replace(
        params,
        emission=params.emission / unit[:, None],
        emission_offset=params.emission_offset / unit,
        emission_covariance=params.emission_covariance / (unit[:, None] * unit),
    )


def _flat(name: str, value: Array) -> Array:
    if name in ("start", "transition"):
        with np.errstate(divide="ignore"):
            return np.log(value).ravel()
    if not name.endswith("covariance"):
        return value.ravel()
    factors = np.linalg.cholesky(value)
    places = np.arange(value.shape[1])
    factors[:, places, places] = np.log(factors[:, places, places])
    return np.asarray(factors[(slice(None), *np.tril_indices(len(places)))]).ravel()


def _covariances(vector: Array, like: Array) -> Array:
    n, size = len(like), like.shape[1]
    rows, columns = np.tril_indices(size)
    factors = np.zeros_like(like)
    factors[:, rows, columns] = vector.reshape(n, -1)
    places = np.arange(size)
    factors[:, places, places] = np.exp(factors[:, places, places])
    return np.asarray(factors @ np.swapaxes(factors, 1, 2))
