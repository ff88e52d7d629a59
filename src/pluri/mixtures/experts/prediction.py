"""What draws of experts say about y at new inputs: a mixture of normals, over the draws and over the experts of each.

Its moments, density, distribution function and quantiles are exact given the draws; nothing is simulated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from pluri.mixtures.experts import _kernels
from pluri.processes.stick_draws import probit_stick_weights

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
#: Numbers that one chunk of rows times draws times experts may have.
CHUNK = 2_000_000


@dataclass(frozen=True, eq=False)
class ExpertDraws:
    """Draws of all parameters.

    Attributes
    ----------
    sticks : (n_draws, K - 1, p)
    coefficients : (n_draws, K, p)
    precisions : (n_draws, K)
    """

    sticks: Array
    coefficients: Array
    precisions: Array

    def __len__(self) -> int:
        return len(self.precisions)

    def weights_at(self, design: Array) -> Array:
        """Weights of the experts at rows of a design: (n, n_draws, K)."""
        return probit_stick_weights(np.tensordot(design, self.sticks, axes=(1, 2)))

    def means_at(self, design: Array) -> Array:
        """Means of the experts at rows of a design: (n, n_draws, K)."""
        return np.tensordot(design, self.coefficients, axes=(1, 2))

    def curves_at(self, design: Array) -> Array:
        """Regression function of each draw: (n, n_draws)."""
        return np.asarray((self.weights_at(design) * self.means_at(design)).sum(axis=2))

    def chunks(self, n_rows: int) -> Iterator[slice]:
        """Rows that are looked at together."""
        size = max(1, CHUNK // self.precisions.size)
        for begin in range(0, n_rows, size):
            yield slice(begin, min(begin + size, n_rows))

    def moments(self, design: Array) -> tuple[Array, Array]:
        """Mean and variance of y at each row."""
        mean, variance = np.empty(len(design)), np.empty(len(design))
        for rows in self.chunks(len(design)):
            weights, means = self.weights_at(design[rows]) / len(self), self.means_at(design[rows])
            mean[rows] = (weights * means).sum(axis=(1, 2))
            squares = (means - mean[rows, None, None]) ** 2 + 1.0 / self.precisions
            variance[rows] = (weights * squares).sum(axis=(1, 2))
        return mean, variance

    def _normals(self, design: Array) -> tuple[Array, Array, Array]:
        """Weights and means (n, n_draws * K), and standard deviations, of one mixture for each row."""
        shape = (len(design), self.precisions.size)
        weights = (self.weights_at(design) / len(self)).reshape(shape)
        return weights, self.means_at(design).reshape(shape), 1.0 / np.sqrt(self.precisions.ravel())

    def densities(self, design: Array, values: Array) -> Array:
        """Density of y at `values` (n, n_values), for each row its own."""
        out = np.empty(values.shape)
        for rows in self.chunks(len(design)):
            _kernels.mixture_densities(*self._normals(design[rows]), np.ascontiguousarray(values[rows]), out[rows])
        return out

    def quantiles(self, design: Array, levels: Array) -> Array:
        """Quantiles of y: (n, n_levels)."""
        out = np.empty((len(design), len(levels)))
        for rows in self.chunks(len(design)):
            _kernels.mixture_quantiles(*self._normals(design[rows]), levels, out[rows])
        return out

    def sample(self, rng: np.random.Generator, design: Array, n_samples: int) -> Array:
        """Draw y: (n, n_samples). Each column belongs to one draw of the parameters."""
        out = np.empty((len(design), n_samples))
        for column, draw in enumerate(rng.integers(len(self), size=n_samples)):
            totals = np.cumsum(probit_stick_weights(design @ self.sticks[draw].T), axis=1)
            chosen = (rng.random((len(design), 1)) * totals[:, -1:] >= totals).sum(axis=1)
            chosen = np.minimum(chosen, totals.shape[1] - 1)
            means = np.einsum("np,np->n", design, self.coefficients[draw][chosen])
            out[:, column] = means + rng.standard_normal(len(design)) / np.sqrt(self.precisions[draw][chosen])
        return out


def same_experts(labels: Integers, n_experts: int, best: int) -> Integers:
    """Which expert of each draw is the same as the first, second, ... of all: those that share the most rows.

    Parameters
    ----------
    labels : array of shape (n_draws, n_rows)
    n_experts : int
    best : int
        Draw to begin with; the others are then compared with how often each row went to which expert.

    Returns
    -------
    array of shape (n_draws, n_experts)
        Numbers of the experts in each draw; the first of all draws has the most rows.
    """
    n_draws, n_rows = labels.shape
    rows = np.arange(n_rows)
    shares = np.zeros((n_experts, n_rows))
    shares[labels[best], rows] = 1.0
    order = np.tile(np.arange(n_experts), (n_draws, 1))
    for _ in range(2):
        total = np.zeros_like(shares)
        for draw, own in enumerate(labels):
            together = np.zeros((n_experts, n_experts))
            np.add.at(together.T, own, shares.T)
            order[draw] = linear_sum_assignment(together, maximize=True)[1]
            total[np.argsort(order[draw])[own], rows] += 1.0
        shares = total
    return order[:, np.argsort(-shares.sum(axis=1), kind="stable")]
