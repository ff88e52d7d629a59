"""Parameters of a switching system: a record, the checks of hand-set ones, and what the filters take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.dynamics.switching.known import SwitchingLinearModel
from pluri.dynamics.switching.rao_blackwell import Matrices, matrices_of
from pluri.inference.smc.gaussian import as_array, covariance_factor
from pluri.validation import check_distributions

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SwitchingParameters:
    """A switching system of k regimes, d components and m features; g is k, or 1 if all regimes are observed alike.

    Attributes
    ----------
    start, transition : (k,), (k, k): probabilities of the first regime, and of the next one
    dynamics, dynamics_offset, dynamics_covariance : (k, d, d), (k, d), (k, d, d): A, b and Q
    emission, emission_offset, emission_covariance : (g, m, d), (g, m), (g, m, m): C, c and R
    initial_mean, initial_covariance : (k, d), (k, d, d): of the first state, given the first regime
    occupancy : (k,): steps that each regime explained in the E-step these parameters come from
    kept : (n_samples, k): posterior of the regimes that the next E-step starts from; (0, k) if it is not kept
    """

    start: Array
    transition: Array
    dynamics: Array
    dynamics_offset: Array
    dynamics_covariance: Array
    emission: Array
    emission_offset: Array
    emission_covariance: Array
    initial_mean: Array
    initial_covariance: Array
    occupancy: Array
    kept: Array

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Numbers of regimes, components and features."""
        return len(self.start), self.dynamics.shape[1], self.emission.shape[1]

    def matrices(self) -> Matrices:
        """What filters take."""
        values = (
            self.start,
            self.transition,
            self.dynamics,
            self.dynamics_offset,
            self.dynamics_covariance,
            self.emission,
            self.emission_offset,
            self.emission_covariance,
            self.initial_mean,
            self.initial_covariance,
        )
        return Matrices(*(np.array(value, dtype=np.float64) for value in values))


#: Attributes of the estimator, the fields of the record that they hold, and the letters of `params`.
FIELDS = {
    "startprob_": "start",
    "transmat_": "transition",
    "dynamics_": "dynamics",
    "dynamics_offset_": "dynamics_offset",
    "dynamics_covariance_": "dynamics_covariance",
    "emission_": "emission",
    "emission_offset_": "emission_offset",
    "emission_covariance_": "emission_covariance",
    "initial_mean_": "initial_mean",
    "initial_covariance_": "initial_covariance",
}
LETTERS = {
    "s": ("startprob_",),
    "t": ("transmat_",),
    "a": ("dynamics_", "dynamics_offset_"),
    "q": ("dynamics_covariance_",),
    "c": ("emission_", "emission_offset_"),
    "r": ("emission_covariance_",),
    "i": ("initial_mean_", "initial_covariance_"),
}


def checked(values: dict[str, Any], n_regimes: int, n_components: int, n_groups: int) -> dict[str, Array]:
    """Some attributes as arrays of the right shapes, or a sentence that names the one that is wrong.

    What all regimes share may come without the axis of regimes.
    """
    k, d = n_regimes, n_components
    shapes: dict[str, tuple[int | None, ...]] = {
        "startprob_": (k,),
        "transmat_": (k, k),
        "dynamics_": (k, d, d),
        "dynamics_offset_": (k, d),
        "dynamics_covariance_": (k, d, d),
        "emission_": (n_groups, None, d),
        "emission_offset_": (n_groups, None),
        "emission_covariance_": (n_groups, None, None),
        "initial_mean_": (k, d),
        "initial_covariance_": (k, d, d),
    }
    found: dict[str, Array] = {}
    for name, value in values.items():
        shape = shapes[name]
        array = np.asarray(value, dtype=np.float64)
        if array.ndim == len(shape) - 1 and name not in ("startprob_", "transmat_"):
            array = np.tile(array, (shape[0] or 1, *[1] * array.ndim))
        found[name] = as_array(array, shape, name)
    for name in ("startprob_", "transmat_"):
        if name in found:
            check_distributions(name, found[name])
    widths = {found[name].shape[1] for name in shapes if name.startswith("emission") and name in found}
    if len(widths) > 1:
        raise ValueError(f"emission_, emission_offset_ and emission_covariance_ must be of one width, got {widths}")
    for name in ("dynamics_covariance_", "emission_covariance_", "initial_covariance_"):
        for z, matrix in enumerate(found.get(name, ())):
            as_array(matrix, (len(matrix), len(matrix)), name)
            covariance_factor(matrix, f"{name} of regime {z}", definite=True)
    return found


def from_attributes(found: dict[str, Array]) -> SwitchingParameters:
    """The record of checked attributes."""
    k = len(found["startprob_"])
    values = {field: found[name] for name, field in FIELDS.items()}
    return SwitchingParameters(**values, occupancy=np.full(k, np.nan), kept=np.empty((0, k)))


def attributes_of(model: SwitchingLinearModel) -> dict[str, Array]:
    """A known model as attributes: what comes before its first observation is integrated out."""
    if model.arrays.u.ndim == 2:
        raise ValueError("model must have inputs that do not change over time, got a row for each time step")
    return dict(zip(FIELDS, matrices_of(model, 0), strict=True))
