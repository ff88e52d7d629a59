"""Families of observations by name, with priors that follow from the data where none are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.processes.conjugate import DirichletMultinomial
from pluri.processes.conjugate_clusters.prior_defaults import TYPICAL_CLUSTERS, make_likelihood
from pluri.processes.conjugate_gaussian import NormalGamma
from pluri.processes.conjugate_regression import MatrixNormalInverseWishart
from pluri.sequences.infinite.observations import (
    LIKELIHOODS,
    ObservationModel,
    has_partial_rows,
    lagged_rows,
    refuse_partial_rows,
)

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Families by name, and what can be said of their priors.
FAMILIES: dict[str, tuple[str, ...]] = {
    "gaussian": ("mean", "strength", "df", "scale"),
    "diag": ("mean", "strength", "shape", "rate"),
    "categorical": ("concentration",),
    "poisson": ("shape", "rate"),
    "bernoulli": ("a", "b"),
    "autoregressive": ("mean", "strength", "df", "scale"),
}
#: Dirichlet concentration of the symbols of a state.
SYMBOL_CONCENTRATION = 0.3
#: How many rows the prior mean of a Gaussian state is worth.
MEAN_STRENGTH = 0.01


def family_name(family: Any) -> str:
    """Name of a family that is given by name or as a conjugate likelihood."""
    if isinstance(family, str):
        if family in FAMILIES:
            return family
    else:
        for name, likelihood in LIKELIHOODS.items():
            if isinstance(family, likelihood) and name != "categorical":
                return name
    names = ", ".join(map(repr, FAMILIES))
    raise ValueError(f"family must be one of {names} or a conjugate likelihood, got {family!r}")


def learn_model(
    family: Any,
    prior: Mapping[str, Any] | None,
    X: Array,
    offsets: Integers,
    *,
    order: int = 1,
    n_symbols: Sequence[int] = (),
) -> ObservationModel:
    """Observation model for given data.

    Parameters
    ----------
    family : a name of `FAMILIES`, or a conjugate likelihood
    prior : what is not to be chosen from the data; None with a likelihood, which has its own
    X : (n_steps, n_features); NaN is missing, symbols are 0, ..., V - 1
    offsets : (n_sequences + 1,): where each sequence begins and ends
    order : of "autoregressive"
    n_symbols : number of symbols of each column of "categorical"
    """
    name, d = family_name(family), X.shape[1]
    if name == "multinomial":
        refuse_partial_rows(X, f"family={name!r}")
    everything = (tuple(range(d)),)
    if not isinstance(family, str):
        return _given(family, name, prior, d, everything)
    given = dict(prior or {})
    unknown = sorted(set(given) - set(FAMILIES[name]))
    if unknown:
        raise ValueError(f"component_prior of {name!r} may have {', '.join(FAMILIES[name])}, got {unknown[0]!r}")
    if name == "categorical":
        weight = _numbers(given.get("concentration", SYMBOL_CONCENTRATION))
        each = tuple(DirichletMultinomial(int(size), weight) for size in n_symbols)
        return ObservationModel(name, each, tuple((f,) for f in range(d)))
    if name == "autoregressive":
        return ObservationModel(name, (_autoregression(given, X, offsets, order),), everything, order)
    if name == "diag":
        model = ObservationModel(name, (_columns(given, X),), everything)
    else:
        filled = _filled(X)
        model = ObservationModel(name, (make_likelihood(name, given, filled, np.ones(len(filled))),), everything)
    return model.by_column() if has_partial_rows(X) else model


def _given(
    family: Any, name: str, prior: Mapping[str, Any] | None, d: int, columns: tuple[tuple[int, ...], ...]
) -> ObservationModel:
    if prior is not None:
        raise ValueError("component_prior must be None when family is a likelihood, which has its own")
    if name != "autoregressive":
        if family.n_features != d:
            raise ValueError(f"family is for {family.n_features} columns, but X has {d}")
        return ObservationModel(name, (family,), columns)
    order, rest = divmod(family.n_predictors - 1, d)
    if family.n_targets != d or rest:
        raise ValueError(
            f"family must regress {d} targets, the columns of X, on 1 and a number of past rows, got "
            f"{family.n_targets} targets and {family.n_predictors} predictors"
        )
    return ObservationModel(name, (family,), columns, order)


def _filled(X: Array) -> Array:
    """X with the means of its columns in place of what is missing; zeros in a column of which nothing is there."""
    missing = np.isnan(X)
    if not missing.any():
        return X
    number = (~missing).sum(axis=0)
    means = np.where(missing, 0.0, X).sum(axis=0) / np.maximum(number, 1)
    return np.where(missing, means, X)


def _variances(residuals: Array, number: Array) -> Array:
    """Mean squares of columns, of which `number` entries are there; one that never varies gets a little."""
    variance = (residuals**2).sum(axis=0) / np.maximum(number, 1)
    return np.asarray(np.maximum(variance, 1e-6 * (float(variance.mean()) or 1.0)))


def _columns(given: Mapping[str, Any], X: Array) -> NormalGamma:
    d = X.shape[1]
    filled = _filled(X)
    mean = filled.mean(axis=0)
    variance = _variances(filled - mean, (~np.isnan(X)).sum(axis=0))
    # In one dimension the same as the default of "gaussian": half its degrees of freedom, and half its scale.
    rate = given.get("rate", 0.5 * variance / TYPICAL_CLUSTERS ** (2.0 / d))
    return NormalGamma(d, given.get("mean", mean), given.get("strength", MEAN_STRENGTH), given.get("shape", 1.5), rate)


def _autoregression(given: Mapping[str, Any], X: Array, offsets: Integers, order: int) -> MatrixNormalInverseWishart:
    """Around the regression of all rows together, which is worth `strength` rows.

    Coefficients vary from state to state in units of its noise. By default `strength` is the share of the variance of
    the columns that the prior expects for noise, so that they vary by about 1, after all columns have been scaled.
    """
    d = X.shape[1]
    rows = lagged_rows(X, offsets, order)
    whole = ~np.isnan(rows).any(axis=1)
    if not whole.any() and has_partial_rows(X):  # a guess of the scale is enough
        rows = lagged_rows(_filled(X), offsets, order)
        whole = ~np.isnan(rows).any(axis=1)
    rows = rows[whole]
    if not len(rows):
        raise ValueError(
            f"X must have a sequence of more than order={order} rows for family='autoregressive', got none"
        )
    predictors, targets = rows[:, : 1 + order * d], rows[:, 1 + order * d :]
    mean = given.get("mean")
    if mean is None:
        mean = np.linalg.lstsq(predictors, targets, rcond=None)[0].T
    residuals = targets - predictors @ np.asarray(mean, dtype=np.float64).T
    scale = given.get("scale", np.diag(_variances(residuals, np.full(d, len(rows)))) / TYPICAL_CLUSTERS ** (2.0 / d))
    if np.ndim(scale) == 0:
        scale = float(scale) * np.eye(d)
    strength = given.get("strength")
    if strength is None:
        total = _variances(targets - targets.mean(axis=0), np.full(d, len(rows)))
        strength = float(np.mean(np.diagonal(scale) / total)) if order else MEAN_STRENGTH
    squares = _variances(predictors, np.full(predictors.shape[1], len(rows)))
    return MatrixNormalInverseWishart(mean, float(strength) * np.diag(squares), given.get("df", d + 2.0), scale)


def _numbers(value: Any) -> Any:
    array = np.asarray(value, dtype=np.float64)
    return float(array) if array.ndim == 0 else tuple(array.tolist())
