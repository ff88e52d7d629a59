"""Gaussian families for black-box variational inference: draws, densities, entropies and gradients by hand.

``q(z) = N(mean, L L^T)``, with L diagonal (mean field) or lower triangular (full rank), its diagonal stored as
logarithms. ``z = mean + L e`` with ``e ~ N(0, I)`` turns an expectation under q into one under a fixed distribution,
so that ``d/dlambda E_q[f(z)] = E_e[(dz/dlambda)^T grad f(z)]``.

References
----------
Kucukelbir, Tran, Ranganath, Gelman and Blei (2017), Automatic differentiation variational inference, JMLR 18.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Family(Protocol):
    """A family of distributions on R^dim, on a flat parameter array."""

    @property
    def dim(self) -> int:
        """Number of coordinates."""

    @property
    def n_parameters(self) -> int:
        """Length of the parameter array."""

    def standard(self) -> Array:
        """Parameters of N(0, I)."""

    def moments(self, parameters: Array) -> tuple[Array, Array]:
        """Mean (dim,) and factor L (dim, dim) of the covariance."""

    def entropy(self, parameters: Array) -> float:
        """-E_q[log q]."""

    def draw(self, parameters: Array, noise: Array) -> Array:
        """Draws from standard normal noise (n, dim)."""

    def log_prob(self, parameters: Array, z: Array) -> Array:
        """Log q at the rows of z."""

    def slope(self, parameters: Array, noise: Array) -> Array:
        """Gradient of log q with respect to z, at the draws made from the noise."""

    def pull_back(self, parameters: Array, noise: Array, grad_z: Array) -> Array:
        """Gradient with respect to the parameters (n_parameters,), from that with respect to the draws."""

    def score(self, parameters: Array, z: Array) -> Array:
        """Gradient of log q with respect to the parameters at each row: (n, n_parameters)."""


@dataclass(frozen=True)
class MeanFieldGaussian:
    """Independent coordinates; parameters are mean (dim), log standard deviation (dim).

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.variational.families import MeanFieldGaussian
    >>> family = MeanFieldGaussian(2)
    >>> family.draw(np.array([1.0, 2.0, 0.0, np.log(3.0)]), np.array([[1.0, 1.0]]))
    array([[2., 5.]])
    """

    dim: int

    @property
    def n_parameters(self) -> int:
        """Two for each coordinate."""
        return 2 * self.dim

    def standard(self) -> Array:
        """See `Family.standard`."""
        return np.zeros(self.n_parameters)

    def _unpack(self, parameters: Array) -> tuple[Array, Array]:
        return parameters[: self.dim], np.exp(parameters[self.dim :])

    def moments(self, parameters: Array) -> tuple[Array, Array]:
        """See `Family.moments`."""
        mean, scale = self._unpack(parameters)
        return mean.copy(), np.diag(scale)

    def entropy(self, parameters: Array) -> float:
        """See `Family.entropy`."""
        return float(parameters[self.dim :].sum()) + 0.5 * self.dim * (1.0 + np.log(2.0 * np.pi))

    def draw(self, parameters: Array, noise: Array) -> Array:
        """See `Family.draw`."""
        mean, scale = self._unpack(parameters)
        return mean + scale * noise

    def log_probs(self, parameters: Array, z: Array) -> Array:
        """Log density of each coordinate: (n, dim)."""
        mean, scale = self._unpack(parameters)
        return -0.5 * ((z - mean) / scale) ** 2 - parameters[self.dim :] - 0.5 * np.log(2.0 * np.pi)

    def log_prob(self, parameters: Array, z: Array) -> Array:
        """See `Family.log_prob`."""
        return self.log_probs(parameters, z).sum(axis=1)

    def slope(self, parameters: Array, noise: Array) -> Array:
        """See `Family.slope`."""
        return -noise / self._unpack(parameters)[1]

    def pull_back(self, parameters: Array, noise: Array, grad_z: Array) -> Array:
        """See `Family.pull_back`."""
        _, scale = self._unpack(parameters)
        return np.concatenate([grad_z.sum(axis=0), scale * np.einsum("nd,nd->d", grad_z, noise)])

    def score(self, parameters: Array, z: Array) -> Array:
        """See `Family.score`."""
        mean, scale = self._unpack(parameters)
        noise = (z - mean) / scale
        return np.hstack([noise / scale, noise**2 - 1.0])


@dataclass(frozen=True)
class FullRankGaussian:
    """Any covariance; parameters are mean (dim), log diagonal of L (dim), L below its diagonal row by row.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.variational.families import FullRankGaussian
    >>> mean, factor = FullRankGaussian(2).moments(np.array([1.0, 2.0, 0.0, 0.0, 0.5]))
    >>> factor @ factor.T
    array([[1.  , 0.5 ],
           [0.5 , 1.25]])
    """

    dim: int

    @property
    def n_parameters(self) -> int:
        """A mean and a triangle."""
        return self.dim + self.dim * (self.dim + 1) // 2

    def standard(self) -> Array:
        """See `Family.standard`."""
        return np.zeros(self.n_parameters)

    def _unpack(self, parameters: Array) -> tuple[Array, Array]:
        factor = np.zeros((self.dim, self.dim))
        factor[np.tril_indices(self.dim, -1)] = parameters[2 * self.dim :]
        np.fill_diagonal(factor, np.exp(parameters[self.dim : 2 * self.dim]))
        return parameters[: self.dim], factor

    def moments(self, parameters: Array) -> tuple[Array, Array]:
        """See `Family.moments`."""
        mean, factor = self._unpack(parameters)
        return mean.copy(), factor

    def entropy(self, parameters: Array) -> float:
        """See `Family.entropy`."""
        return float(parameters[self.dim : 2 * self.dim].sum()) + 0.5 * self.dim * (1.0 + np.log(2.0 * np.pi))

    def draw(self, parameters: Array, noise: Array) -> Array:
        """See `Family.draw`."""
        mean, factor = self._unpack(parameters)
        return mean + noise @ factor.T

    def _noise(self, parameters: Array, z: Array) -> tuple[Array, Array]:
        mean, factor = self._unpack(parameters)
        return _solve(factor, z - mean), factor

    def log_prob(self, parameters: Array, z: Array) -> Array:
        """See `Family.log_prob`."""
        noise, _ = self._noise(parameters, z)
        log_det = parameters[self.dim : 2 * self.dim].sum()
        return -0.5 * np.einsum("nd,nd->n", noise, noise) - log_det - 0.5 * self.dim * np.log(2.0 * np.pi)

    def slope(self, parameters: Array, noise: Array) -> Array:
        """See `Family.slope`."""
        return -_solve(self._unpack(parameters)[1].T, noise)

    def pull_back(self, parameters: Array, noise: Array, grad_z: Array) -> Array:
        """See `Family.pull_back`."""
        products = grad_z.T @ noise
        on_diagonal = np.diag(products) * np.exp(parameters[self.dim : 2 * self.dim])
        return np.concatenate([grad_z.sum(axis=0), on_diagonal, products[np.tril_indices(self.dim, -1)]])

    def score(self, parameters: Array, z: Array) -> Array:
        """See `Family.score`."""
        noise, factor = self._noise(parameters, z)
        pull = _solve(factor.T, noise)  # L^-T e: the gradient with respect to the mean
        rows, columns = np.tril_indices(self.dim, -1)
        on_diagonal = pull * noise * np.exp(parameters[self.dim : 2 * self.dim]) - 1.0
        return np.hstack([pull, on_diagonal, pull[:, rows] * noise[:, columns]])


def _solve(matrix: Array, rows: Array) -> Array:
    """Solve matrix x = row for each row."""
    return np.asarray(np.linalg.solve(matrix, rows.T).T, dtype=np.float64)


FAMILIES: dict[str, Callable[[int], Family]] = {"mean_field": MeanFieldGaussian, "full_rank": FullRankGaussian}


def make_family(name: str, dim: int) -> Family:
    """Family of a name: ``mean_field`` or ``full_rank``."""
    if name not in FAMILIES:
        raise ValueError(f"family must be one of {sorted(FAMILIES)}, got {name!r}")
    return FAMILIES[name](dim)
