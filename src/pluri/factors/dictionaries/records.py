"""What a dictionary is learned from, where a sampler is, and what a fit gives: the records of the family.

    x_i = sum_k z_ik s_ik d_k + noise,   d_k ~ N(0, I / P),   s_ik ~ N(0, 1 / g_s),   noise ~ N(0, I / g_e)

for rows i of P values, atoms k = 1 ... K and z of zeros and ones. A code is the row ``w_i = z_i * s_i``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
#: Of float32 or float64.
Floats = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows as the samplers and ascents want them: centred, scaled, and of the type of all that is large.

    Attributes
    ----------
    values : array of shape (n_samples, n_features), float32 or float64
        Zero where a value is missing.
    observed : array of bool of the same shape, or None
        None if nothing is missing; what is all True becomes None.
    noise_group : array of int of shape (n_samples,)
        Which of the noise precisions is that of each row.
    n_noise_groups : int
    locations : array of shape (n_samples, n_dims), or None
    """

    values: Floats
    observed: NDArray[np.bool_] | None
    noise_group: NDArray[np.intp]
    n_noise_groups: int = 1
    locations: Array | None = None

    def __post_init__(self) -> None:
        if self.observed is not None and self.observed.all():
            object.__setattr__(self, "observed", None)

    @property
    def n_observed(self) -> NDArray[np.int64]:
        """Values that are there, by row."""
        n, P = self.values.shape
        return np.full(n, P) if self.observed is None else self.observed.sum(axis=1)

    @classmethod
    def of(cls, values: Any, dtype: Any = np.float64, **others: Any) -> Rows:
        """Rows of an array in which NaN marks what is missing, with one noise for all unless told otherwise."""
        X = np.ascontiguousarray(values, dtype=dtype)
        missing = np.isnan(X)
        observed = None
        if missing.any():
            observed, X = ~missing, np.where(missing, X.dtype.type(0), X)
        others.setdefault("noise_group", np.zeros(len(X), dtype=np.intp))
        return cls(X, observed, **others)


@dataclass(frozen=True, eq=False)
class DictionaryState:
    """Where a sampler is. Its arrays are changed in place by compiled loops, which get copies from a sweep.

    Attributes
    ----------
    components : array of shape (n_components, n_features)
        Atoms.
    weights : array of shape (n_samples, n_components)
        s. Where z is zero: zero if it is integrated out (collapsed), a draw of the prior otherwise.
    used : array of int8 of shape (n_samples, n_components)
        z.
    noise_precision : array of shape (n_noise_groups,)
    weight_precision : float
    usage : object
        State of the prior of `used`.
    """

    components: Floats
    weights: Floats
    used: NDArray[np.int8]
    noise_precision: Array
    weight_precision: float
    usage: Any


@dataclass(frozen=True, eq=False)
class DictionaryFit:
    """What a fit gives, in the units of `Rows`, whichever way it learned.

    Attributes
    ----------
    components : array of shape (n_components, n_features)
        Expected atoms, given the codes of the best draw or under q.
    component_covariance : array of shape (n_components, n_components)
        Of the atoms, in one feature.
    usage : array of shape (n_components,)
        Share of the rows that use each atom, mean over the posterior.
    power : array of shape (n_components,)
        Sum over rows of the squared length of what an atom adds, mean over the posterior.
    noise_precision : array of shape (n_noise_groups,)
    weight_precision : float
    mean, variance : array of shape (n_samples, n_features)
        Of the rows without noise, given the data.
    weights, used : array of shape (n_samples, n_components)
        The last codes, from which a further fit can go on.
    converged : bool
    n_iter : int
    cluster_labels : array of shape (n_samples,) or None
    trace : `pluri.inference.mcmc.Trace` or None
    bound : list of float or None
    classes : CodeClasses or None
        Classes of rows by their codes.
    """

    components: Floats
    component_covariance: Array
    usage: Array
    power: Array
    noise_precision: Array
    weight_precision: float
    mean: Floats
    variance: Floats
    weights: Floats
    used: NDArray[np.int8]
    converged: bool
    n_iter: int
    cluster_labels: NDArray[np.intp] | None = None
    trace: Any = None
    bound: list[float] | None = None
    classes: Any = None
