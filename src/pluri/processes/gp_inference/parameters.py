"""Hyper-parameters by name: which entries of a scikit-learn kernel's theta they are, and their priors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.priors.hyperpriors import HyperPrior, LogUniform, Uniform

Array = NDArray[np.float64]

NOISE = "noise_variance"
#: What people call the parameters of scikit-learn's kernels.
FAMILIAR = {"constant_value": "signal_variance"}


@dataclass(frozen=True)
class Parameter:
    """One hyper-parameter.

    Attributes
    ----------
    name : str
        What it is called in a trace: its last name in the kernel ("length_scale", "signal_variance") if no other
        has that, its full name ("k1__length_scale") otherwise.
    full_name : str
        As the kernel calls it.
    size : int
        Number of values: more than one for a length-scale of each feature.
    bounds : (low, high)
        Limits of the values when they are optimised.
    """

    name: str
    full_name: str
    size: int
    bounds: tuple[float, float]


def parameters_of(kernel: Any, noise_bounds: tuple[float, float] | None) -> tuple[Parameter, ...]:
    """Hyper-parameters that are not fixed, in the order of theta; the noise comes last.

    Parameters
    ----------
    kernel : scikit-learn kernel
    noise_bounds : (low, high), or None if the noise is not learned
    """
    learned = [one for one in kernel.hyperparameters if not one.fixed]
    last = [one.name.rsplit("__", 1)[-1] for one in learned]
    short = [FAMILIAR.get(name, name) for name in last]
    found = []
    for one, name in zip(learned, short):
        limits = np.atleast_2d(one.bounds)
        bounds = float(limits[:, 0].min()), float(limits[:, 1].max())
        found.append(Parameter(name if short.count(name) == 1 else one.name, one.name, one.n_elements, bounds))
    if noise_bounds is not None:
        found.append(Parameter(NOISE, NOISE, 1, noise_bounds))
    return tuple(found)


def choose_priors(
    parameters: tuple[Parameter, ...], given: Mapping[str, HyperPrior] | None, extent: float, spread: float
) -> tuple[HyperPrior, ...]:
    """A prior for each entry of theta.

    Where none is given: length-scales are uniform up to three times the extent of the inputs, variances log-uniform
    from ``e^-10`` to ``e^5`` times the spread of the observations, all others log-uniform between their bounds.
    """
    given = dict(given or {})
    priors: list[HyperPrior] = []
    used = set()
    for parameter in parameters:
        last = parameter.full_name.rsplit("__", 1)[-1]
        names = (parameter.full_name, parameter.name, last, FAMILIAR.get(last, last))
        name = next((name for name in names if name in given), None)
        if name is not None:
            used.add(name)
            prior = given[name]
            if not all(hasattr(prior, method) for method in ("chart", "log_density", "support")):
                raise ValueError(f"priors[{name!r}] must be a prior such as Uniform(0, 10), got {prior!r}")
        elif last == "length_scale":
            prior = Uniform(0.0, 3.0 * extent)
        elif last in ("constant_value", "noise_level", NOISE):
            prior = LogUniform(math.exp(-10.0) * spread, math.exp(5.0) * spread)
        else:
            prior = LogUniform(*parameter.bounds)
        priors += [prior] * parameter.size
    unknown = sorted(set(given) - used)
    if unknown:
        known = ", ".join(repr(parameter.name) for parameter in parameters)
        raise ValueError(f"priors has {unknown[0]!r}, which is no hyper-parameter to learn; there are {known}")
    return tuple(priors)


def log_bounds(parameters: tuple[Parameter, ...]) -> Array:
    """Limits of theta: (n_theta, 2)."""
    rows = [np.log(parameter.bounds) for parameter in parameters for _ in range(parameter.size)]
    return np.array(rows).reshape(-1, 2)


def by_name(parameters: tuple[Parameter, ...], theta: Array) -> dict[str, Any]:
    """Values of the hyper-parameters (not their logarithms): numbers, or arrays for several length-scales."""
    values, start = {}, 0
    for parameter in parameters:
        part = np.exp(theta[start : start + parameter.size])
        values[parameter.name] = part if parameter.size > 1 else part[0]
        start += parameter.size
    return values


def measure_inputs(X: Any) -> float:
    """Largest range of a feature; 1 if all are constant or the inputs are no matrix of numbers."""
    if not isinstance(X, np.ndarray) or X.size == 0:
        return 1.0
    return float(np.ptp(X, axis=0).max()) or 1.0
