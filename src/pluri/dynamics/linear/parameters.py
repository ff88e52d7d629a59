"""Parameters of a linear dynamical system, in the letters of its formula, and what is allowed of them.

x_1 ~ N(m, P),    x_{t+1} = A x_t + B u_t + b + w_t,    y_t = C x_t + D u_t + c + v_t,    w ~ N(0, Q),  v ~ N(0, R).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.dynamics.linear.passes import Emission, Pass, collapse, filter_sequences, linear_system
from pluri.inference.smc.gaussian import covariance_factor

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

COVARIANCE_TYPES = ("diag", "full", "spherical")

#: Letters of `params`, as in the formula, and the attributes that they stand for.
LETTERS: Mapping[str, str] = {
    "m": "initial_mean_",
    "P": "initial_covariance_",
    "A": "transition_matrix_",
    "B": "transition_input_",
    "b": "transition_offset_",
    "Q": "transition_covariance_",
    "C": "observation_matrix_",
    "D": "observation_input_",
    "c": "observation_offset_",
    "R": "observation_covariance_",
}
#: Largest spectral radius of A that counts as stable.
STABLE_RADIUS = 1.0 - 1e-4


@dataclass(frozen=True, eq=False)
class LinearParameters:
    """The arrays of the formula for d states, n outputs and q inputs; R is (n,) variances or a matrix (n, n)."""

    m: Array
    P: Array
    A: Array
    B: Array
    b: Array
    Q: Array
    C: Array
    D: Array
    c: Array
    R: Array

    @property
    def full_noise(self) -> Array:
        """R as a matrix."""
        return np.diag(self.R) if self.R.ndim == 1 else self.R

    def filter(self, rows: Array, inputs: Array, offsets: Integers) -> Pass:
        """Run the filter over outputs (n_rows, n) with holes and inputs (n_rows, q)."""
        n_rows, d = len(rows), len(self.m)
        system = linear_system(self.A, root_of(self.Q), self.m, root_of(self.P))
        shift, drift = self.c, np.empty((n_rows, d))
        drift[:] = self.b
        if inputs.shape[1]:
            shift = shift + inputs @ self.D.T
            drift += inputs @ self.B.T
        return filter_sequences(system, collapse(rows - shift, Emission(self.C, self.R)), drift, offsets)


def root_of(covariance: Array) -> Array:
    """F with F F^T = covariance, which may be singular; what rounding made negative counts as zero."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def spectral_radius(A: Array) -> float:
    """Largest modulus of an eigenvalue."""
    return float(np.abs(np.linalg.eigvals(A)).max())


def shapes(d: int, n: int, q: int) -> dict[str, tuple[int, ...]]:
    """Shape of each part for d states, n outputs and q inputs."""
    return {
        "m": (d,),
        "P": (d, d),
        "A": (d, d),
        "B": (d, q),
        "b": (d,),
        "Q": (d, d),
        "C": (n, d),
        "D": (n, q),
        "c": (n,),
        "R": (n, n),
    }


def checked_part(letter: str, value: Any, shape: tuple[int, ...], covariance_type: str) -> Array:
    """One part as an array of its shape, or a sentence that names it; R in the form that its type is kept in."""
    name = LETTERS[letter]
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of numbers of shape {shape}, got {value!r}") from None
    if letter == "R":
        array = _as_noise(array, shape[0], name)
    elif array.ndim == 0 and shape and all(length == 1 for length in shape):
        array = array.reshape(shape)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {array[~np.isfinite(array)][0]}")
    if letter in "PQR":
        covariance_factor(array, name, definite=letter == "R")
    if letter != "R" or covariance_type == "full":
        return array
    variances = np.diag(array).copy()
    if np.count_nonzero(array - np.diag(variances)):
        raise ValueError(f"{name} must be diagonal for covariance_type={covariance_type!r}")
    if covariance_type == "spherical" and np.ptp(variances) > 1e-9 * variances.max():
        raise ValueError(f"{name} must have one variance for covariance_type='spherical', got {variances}")
    return variances


def _as_noise(array: Array, n: int, name: str) -> Array:
    """A number or a vector of variances stands for a diagonal matrix."""
    if array.ndim == 0:
        return np.asarray(array * np.eye(n))
    if array.ndim == 1:
        if array.shape != (n,):
            raise ValueError(f"{name} must have {n} variances or shape {(n, n)}, got shape {array.shape}")
        return np.diag(array)
    return array


def in_units(params: LinearParameters, unit: Array) -> LinearParameters:
    """The same system with output i measured in ``unit[i]``."""
    square = unit[:, None] * unit if params.R.ndim == 2 else unit * unit
    outputs = {
        "C": params.C / unit[:, None],
        "D": params.D / unit[:, None],
        "c": params.c / unit,
        "R": params.R / square,
    }
    return LinearParameters(**{**vars(params), **outputs})


def pack(params: LinearParameters, learned: str) -> Array:
    """The learned parts as an unconstrained vector: covariances by triangular factors, that of R log-diagonal."""
    parts = []
    for letter in learned:
        value = getattr(params, letter)
        if letter == "R":
            value = np.log(value) if value.ndim == 1 else _log_cholesky(value)
        elif letter in "PQ":
            # The triangle of a QR decomposition is a factor of a singular covariance too.
            # Its rows have any sign: with the diagonal not negative, the factors of two like covariances are alike.
            upper = np.asarray(np.linalg.qr(root_of(value).T, mode="r"))
            upper *= np.where(np.diag(upper) < 0, -1.0, 1.0)[:, None]
            value = upper[np.triu_indices(len(value))]
        parts.append(np.ravel(value))
    return np.concatenate(parts) if parts else np.zeros(0)


def unpack(vector: Array, like: LinearParameters, learned: str, *, stable: bool) -> LinearParameters:
    """The inverse of `pack`; an A that is not stable where it must be is shrunk."""
    found: dict[str, Array] = {field.name: getattr(like, field.name) for field in fields(like)}
    begin = 0
    for letter in learned:
        now = found[letter]
        if letter in "PQ" or (letter == "R" and now.ndim == 2):
            size = len(now) * (len(now) + 1) // 2
            upper = np.zeros_like(now)
            upper[np.triu_indices(len(now))] = vector[begin : begin + size]
            if letter == "R":
                np.fill_diagonal(upper, np.exp(np.diag(upper)))
            found[letter] = upper.T @ upper
        else:
            size = now.size
            part = vector[begin : begin + size].reshape(now.shape)
            found[letter] = np.exp(part) if letter == "R" else part.copy()
        begin += size
    if stable:
        radius = spectral_radius(found["A"])
        if radius > STABLE_RADIUS:
            found["A"] = found["A"] * (STABLE_RADIUS / radius)
    return LinearParameters(**found)


def _log_cholesky(covariance: Array) -> Array:
    upper = np.linalg.cholesky(covariance).T.copy()
    np.fill_diagonal(upper, np.log(np.diag(upper)))
    return np.asarray(upper[np.triu_indices(len(upper))])
