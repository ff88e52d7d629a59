"""Measurements of rows as the samplers and ascents want them: of unit size, with white noise, and without row means.

White noise: with noise of the signal both sides are whitened. Row means: a constant that is added to a row and has a
flat prior is integrated out, as an intercept is. With ``u = S 1`` the measurements are turned so that one of them is
along u, which the constant alone explains, and the others do not see it. Given the row x without its constant, that is
``u'(y - S x) / |u|^2``, up to the noise.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from pluri.factors.dictionaries.records import Array
from pluri.factors.dictionaries.sensing.projections import as_projections, whitened

#: Projections whose sum over the features is smaller than this, beside their size, do not see a constant.
LEAST_VIEW = 1e-8
#: Larger measurements, and those smaller than one over it, could not be squared and summed.
LARGEST = 1e100


@dataclass(frozen=True, eq=False)
class Measurements:
    """Measurements ``y = S x + noise``, in units in which rows x and measurements y are of size 1.

    Attributes
    ----------
    values : array of shape (n_samples, n)
    projections : array of shape (n, n_features) or (n_samples, n, n_features)
    scale, unit : float
        What rows and measurements were divided by.
    offset, gain, spread : arrays of shape (n_samples,), (n_samples or 1, n_features) and (n_samples or 1,), or None
        The constant of a row is ``offset - gain x``, and has `spread` times the variance of the noise besides; None if
        rows have no constant.
    """

    values: Array
    projections: Array
    scale: float = 1.0
    unit: float = 1.0
    offset: Array | None = None
    gain: Array | None = None
    spread: Array | None = None

    @property
    def shared(self) -> bool:
        """Whether all rows are measured in the same way."""
        return self.projections.ndim == 2

    def measured(self, atoms: Array, rows: slice = slice(None)) -> Array:
        """Atoms as the rows measure them: (n_components, n), or (n_rows, n_components, n)."""
        if self.shared:
            return np.ascontiguousarray(atoms @ self.projections.T)
        return np.ascontiguousarray(np.matmul(atoms, self.projections[rows].transpose(0, 2, 1)))

    def seen(self, X: Array) -> Array:
        """Measurements of rows, without noise."""
        if self.shared:
            return np.asarray(X @ self.projections.T)
        return np.asarray(np.matmul(self.projections, X[:, :, None])[:, :, 0])

    def back_projected(self) -> Array:
        """Rows of smallest norm that have these measurements."""
        if self.shared:
            return np.asarray(self.values @ np.linalg.pinv(self.projections).T)
        return np.asarray(np.matmul(np.linalg.pinv(self.projections), self.values[:, :, None])[:, :, 0])

    def whole(self, X: Array) -> Array:
        """Rows with their constants."""
        if self.offset is None or self.gain is None:
            return X
        return np.asarray(X + (self.offset - (self.gain * X).sum(axis=1))[:, None])


def prepare_measurements(
    Y: Any, projections: Any, *, n_features: int | None, noise_model: str, center: str | None, mean: Array | None = None
) -> Measurements:
    """Check measurements and make them what the model is for; `mean` is what all rows have in common.

    Raises
    ------
    ValueError
        If measurements and projections do not fit.
    """
    values = check_array(Y, dtype=np.float64, input_name="Y")
    if float(np.abs(values).max()) > LARGEST:
        raise ValueError(f"Y must not exceed {LARGEST:g} in size, got {np.abs(values).max():.3g}; rescale it")
    if 0 < float(np.abs(values).max()) < 1 / LARGEST:
        raise ValueError(f"Y must not be smaller than {1 / LARGEST:g} in size; rescale it")
    S = as_projections(projections, len(values), n_features)
    if S.shape[-2] != values.shape[1]:
        raise ValueError(f"Y must have {S.shape[-2]} columns, one for each row of projections, got {values.shape[1]}")
    if mean is not None:
        values = values - S @ mean
    if noise_model == "signal":
        values, S = whitened(values, S)
    parts: dict[str, Array] = {}
    if center == "sample":
        values, S, parts = without_constant(values, S)
    unit, length = math.sqrt(float((values**2).mean())), math.sqrt(float((S**2).sum(axis=-1).mean()))
    if unit == 0.0:
        warnings.warn("Y is zero: there is nothing to recover", UserWarning, stacklevel=3)
        unit = 1.0
    if length == 0.0:
        raise ValueError("projections must not be zero")
    scale = unit / length  # of rows whose values, if all were alike, give measurements of this size
    if parts:
        parts["offset"], parts["spread"] = parts["offset"] / scale, parts["spread"] * length**2
    return Measurements(np.ascontiguousarray(values / unit), np.ascontiguousarray(S / length), scale, unit, **parts)


def without_constant(Y: Array, S: Array) -> tuple[Array, Array, dict[str, Array]]:
    """Measurements that do not see a constant of a row, and what the constant is found from."""
    if Y.shape[1] < 2:
        raise ValueError("Y must have at least 2 columns if center='sample': one of them goes to the mean of the row")
    stack = S if S.ndim == 3 else S[None]
    view = stack.sum(axis=2)
    size = np.linalg.norm(view, axis=1)
    if (size <= LEAST_VIEW * np.linalg.norm(stack, axis=(1, 2))).any():
        raise ValueError(
            "projections must see the mean of a row if center='sample': the sum of their columns is zero; "
            "add a row of ones, or give center=None"
        )
    basis = np.linalg.qr(view[:, :, None], mode="complete").Q[:, :, 1:].transpose(0, 2, 1)  # (., n - 1, n)
    weight = view / size[:, None] ** 2
    gain = np.matmul(weight[:, None, :], stack)[:, 0]
    if S.ndim == 2:
        rest, projections = Y @ basis[0].T, basis[0] @ S
        offset = Y @ weight[0]
    else:
        rest, projections = np.matmul(basis, Y[:, :, None])[:, :, 0], np.matmul(basis, S)
        offset = (Y * weight).sum(axis=1)
    return rest, projections, {"offset": offset, "gain": gain, "spread": 1 / size**2}
