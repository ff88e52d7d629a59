"""Hyper-parameters by name: which entries of a scikit-learn kernel's theta they are, and their priors."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

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


def default_kernel(extent: float = 1.0, spread: float = 1.0) -> Any:
    """A signal variance of 1 and a length-scale of 1, which may be learned as far as data of this scale ask for."""
    return ConstantKernel(1.0, scaled_bounds(spread)) * RBF(1.0, scaled_bounds(extent))


def scaled_bounds(scale: float) -> tuple[float, float]:
    """scikit-learn's bounds, wider for data whose scale is not 1."""
    return 1e-5 * min(1.0, scale), 1e5 * max(1.0, scale)


def start_of_scale(extent: float, spread: float, noise: float | None) -> Array:
    """Theta of the default kernel (and of the noise, as a share of the spread) at which to start on such data."""
    start = [spread, 0.3 * extent] if noise is None else [spread, 0.3 * extent, noise * spread]
    return np.log(start)


def warn_of_offset(residual: Array, unexplained: Array) -> None:
    """Say so if what a fit leaves unexplained is much the same number for every row.

    Parameters
    ----------
    residual : (n,)
        Observations minus the prior mean.
    unexplained : (n,)
        Observations minus the posterior mean.
    """
    offset = float(unexplained.mean())
    error = float(unexplained.std()) / math.sqrt(len(unexplained))
    if abs(offset) > max(5.0 * error, 0.3 * math.sqrt(np.mean(residual**2))):
        warnings.warn(
            f"the fit leaves out {offset:.3g} of every y on average, so that predictions are that far off: y is far "
            "from its prior mean, or the units of X or y from the kernel's; set normalize_y=True, standardise X, or "
            "give a kernel with a length-scale and bounds that fit the data",
            ConvergenceWarning,
            stacklevel=3,
        )


def measure_inputs(X: Any) -> float:
    """Largest range of a feature; 1 if all are constant or the inputs are no matrix of numbers."""
    if not isinstance(X, np.ndarray) or X.size == 0:
        return 1.0
    return float(np.ptp(X, axis=0).max()) or 1.0
