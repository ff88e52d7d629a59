"""Covariance matrices of scikit-learn kernels at fixed inputs, with their derivatives, many times over.

Learning hyper-parameters evaluates one kernel at the same inputs thousands of times. `covariance_at` turns a kernel
into a record in which all that depends on the inputs only (squared distances) is computed once. Constants, white
noise, RBF and Matern kernels (nu = 1/2, 3/2, 5/2, inf; one length-scale or one for each feature), their sums and
products are evaluated directly; any other kernel is asked itself. With ``t^2 = sum_j d_j^2 / l_j^2``::

    RBF         exp(-t^2/2)                            d/dlog l_j = (d_j^2 / l_j^2) exp(-t^2/2)
    nu = 1/2    exp(-t)                                             (d_j^2 / l_j^2) exp(-t) / t
    nu = 3/2    (1 + a) exp(-a),         a = sqrt(3) t              3 (d_j^2 / l_j^2) exp(-a)
    nu = 5/2    (1 + a + a^2/3) exp(-a), a = sqrt(5) t              5/3 (d_j^2 / l_j^2) (1 + a) exp(-a)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, Product, Sum, WhiteKernel

from pluri.validation import Stored

Array = NDArray[np.float64]
#: A part of a kernel: a matrix (n, n), or a number if it is the same everywhere.
Part = Array | float

#: Largest array of squared distances for each feature; beyond it a kernel is asked itself.
MOST_DISTANCES = 50_000_000


class Covariance(Protocol):
    """A kernel at fixed inputs: log hyper-parameters to the matrix and its derivatives."""

    @property
    def n_parameters(self) -> int:
        """Number of log hyper-parameters that are not fixed."""

    def evaluate(self, theta: Array) -> tuple[Part, list[Part]]:
        """Matrix, and its derivative with respect to each entry of `theta`."""


@dataclass(frozen=True)
class Constant:
    """The same number everywhere; `fixed` is its value if it is not learned."""

    fixed: float | None

    @property
    def n_parameters(self) -> int:
        """0 or 1."""
        return int(self.fixed is None)

    def evaluate(self, theta: Array) -> tuple[Part, list[Part]]:
        """Value and its derivative."""
        if self.fixed is not None:
            return self.fixed, []
        value = math.exp(theta[0])
        return value, [value]


@dataclass(frozen=True)
class White:
    """Independent noise of each input row: the identity matrix times a variance."""

    identity: Array
    fixed: float | None

    @property
    def n_parameters(self) -> int:
        """0 or 1."""
        return int(self.fixed is None)

    def evaluate(self, theta: Array) -> tuple[Part, list[Part]]:
        """Matrix and its derivative."""
        if self.fixed is not None:
            return self.fixed * self.identity, []
        value = math.exp(theta[0]) * self.identity
        return value, [value]


@dataclass(frozen=True)
class Stationary:
    """RBF (`nu` infinite) or Matern kernel.

    Attributes
    ----------
    squared : (n_lengths, n, n)
        Squared distances; for each feature if each has its own length-scale.
    nu : float
    fixed : (n_lengths,) or None
        The length-scales if they are not learned.
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {"squared": Stored(None, "n_train", "n_train")}

    squared: Array
    nu: float
    fixed: Array | None

    @property
    def n_parameters(self) -> int:
        """Number of length-scales to learn."""
        return 0 if self.fixed is not None else len(self.squared)

    def evaluate(self, theta: Array) -> tuple[Part, list[Part]]:
        """Matrix and its derivatives."""
        if self.fixed is not None:
            scaled = [square / length**2 for square, length in zip(self.squared, self.fixed)]
        else:
            scaled = [square * math.exp(-2.0 * log) for square, log in zip(self.squared, theta)]
        total = scaled[0] if len(scaled) == 1 else np.sum(scaled, axis=0)
        value, factor = radial(total, self.nu)
        return value, [] if self.fixed is not None else [square * factor for square in scaled]


def radial(total: Array, nu: float) -> tuple[Array, Array]:
    """A stationary kernel of ``t^2`` (any shape) and ``-2 dk/dt^2``, of which all its derivatives are multiples.

    With respect to ``log l_j`` it is multiplied by ``d_j^2 / l_j^2``, to an input ``z_j`` by ``(x_j - z_j) / l_j^2``.
    """
    if nu == math.inf:
        value = np.exp(-0.5 * total)
        return value, value
    if nu == 0.5:
        distance = np.sqrt(total)
        value = np.exp(-distance)
        return value, value / np.maximum(distance, 1e-300)
    if nu == 1.5:
        distance = np.sqrt(3.0 * total)
        decay = np.exp(-distance)
        return (1.0 + distance) * decay, 3.0 * decay
    distance = np.sqrt(5.0 * total)
    decay = np.exp(-distance)
    return (1.0 + distance + (5.0 / 3.0) * total) * decay, (5.0 / 3.0) * (1.0 + distance) * decay


@dataclass(frozen=True)
class Combined:
    """Sum or product of two kernels."""

    first: Covariance
    second: Covariance
    product: bool

    @property
    def n_parameters(self) -> int:
        """Those of both."""
        return self.first.n_parameters + self.second.n_parameters

    def evaluate(self, theta: Array) -> tuple[Part, list[Part]]:
        """Matrix and its derivatives, the first kernel's before the second's."""
        count = self.first.n_parameters
        a, da = self.first.evaluate(theta[:count])
        b, db = self.second.evaluate(theta[count:])
        if self.product:
            return a * b, [part * b for part in da] + [a * part for part in db]
        return a + b, da + db


@dataclass(frozen=True)
class Asked:
    """Any other kernel: scikit-learn evaluates it."""

    kernel: Any
    X: Any

    @property
    def n_parameters(self) -> int:
        """Number of log hyper-parameters that are not fixed."""
        return int(self.kernel.n_dims)

    def evaluate(self, theta: Array) -> tuple[Part, list[Part]]:
        """Matrix and its derivatives."""
        value, gradient = self.kernel.clone_with_theta(theta)(self.X, eval_gradient=True)
        return value, [gradient[:, :, index] for index in range(gradient.shape[2])]


def covariance_at(kernel: Any, X: Any) -> Covariance:
    """Prepare a scikit-learn kernel for inputs X.

    Only exact types are taken apart: a subclass may have changed what they mean.
    """
    kind = type(kernel)
    if kind in (Sum, Product):
        return Combined(covariance_at(kernel.k1, X), covariance_at(kernel.k2, X), kind is Product)
    if kind is ConstantKernel:
        return Constant(float(kernel.constant_value) if kernel.hyperparameter_constant_value.fixed else None)
    if kind is WhiteKernel:
        return White(np.eye(len(X)), float(kernel.noise_level) if kernel.hyperparameter_noise_level.fixed else None)
    if (kind is RBF or (kind is Matern and kernel.nu in (0.5, 1.5, 2.5, math.inf))) and isinstance(X, np.ndarray):
        lengths = np.atleast_1d(np.asarray(kernel.length_scale, dtype=np.float64))
        # scikit-learn itself complains about a number of length-scales other than that of the features.
        if len(lengths) in (1, X.shape[1]) and len(lengths) * len(X) ** 2 <= MOST_DISTANCES:
            columns = [X] if len(lengths) == 1 else [X[:, [j]] for j in range(X.shape[1])]
            squared = np.stack([squareform(pdist(column, "sqeuclidean"), checks=False) for column in columns])
            fixed = lengths if kernel.hyperparameter_length_scale.fixed else None
            return Stationary(squared, math.inf if kind is RBF else float(kernel.nu), fixed)
    return Asked(kernel, X)


def as_matrix(part: Part, n: int) -> Array:
    """A copy of a part as a matrix (n, n)."""
    return np.array(part) if isinstance(part, np.ndarray) else np.full((n, n), part)
