r"""Labels on a grid, p(x) proportional to exp(J sum_{s~t} 1[x_s = x_t]), seen through noise: the pieces of the model.

Grids are arrays (n_images, depth, height, width), with free boundaries; images of a stack do not touch. A label
field with K = 2 is the Ising model: spins x_s x_t = 2 * 1[x_s = x_t] - 1, so that Ising's coupling J is an agreement
of 2 J here, less the constant J for each edge.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.processes.ising.noise import LogLikelihood

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LabelField:
    """A posterior over the labels of grids: what mean field, Gibbs and exact sums all start from.

    Attributes
    ----------
    log_likelihood : (n_images, depth, height, width, K)
        log p(y | label) of each pixel, 0 where nothing was seen.
    agreement : float
        Log weight of two neighbours with the same label.
    constant : float
        Added to the log density, so that it is Ising's for K = 2.
    """

    log_likelihood: Array
    agreement: float
    constant: float = 0.0

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the grids: (n_images, depth, height, width)."""
        return self.log_likelihood.shape[:-1]

    @property
    def n_labels(self) -> int:
        """Number of labels K."""
        return int(self.log_likelihood.shape[-1])

    @cached_property
    def colors(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Indices of the black and of the white fields of the checkerboard: no two of a colour are neighbours."""
        parity = np.indices(self.shape)[1:].sum(axis=0).ravel() % 2
        return np.flatnonzero(parity == 0), np.flatnonzero(parity == 1)

    def log_density(self, labels: NDArray[Any]) -> float:
        """Logarithm of p(labels, y), up to the normaliser of the prior."""
        seen = np.take_along_axis(self.log_likelihood, labels[..., None].astype(np.int64), axis=-1).sum()
        equal = sum(int((low == high).sum()) for low, high in neighbour_pairs(labels))
        return float(seen + self.agreement * equal + self.constant)


def neighbour_pairs(values: NDArray[Any]) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """The two ends of every edge, for each of the three axes of the grids."""
    pairs = []
    for axis in (1, 2, 3):
        cut = [slice(None)] * values.ndim
        low, high = list(cut), list(cut)
        low[axis], high[axis] = slice(None, -1), slice(1, None)
        pairs.append((values[tuple(low)], values[tuple(high)]))
    return pairs


def neighbour_sum(values: Array) -> Array:
    """Sum over the neighbours of each pixel; any further axes are kept."""
    total = np.zeros_like(values)
    for (low, high), (low_total, high_total) in zip(neighbour_pairs(values), neighbour_pairs(total)):
        low_total += high
        high_total += low
    return total


def n_edges(shape: tuple[int, ...]) -> int:
    """Number of edges of all grids."""
    return sum(low.size for low, _ in neighbour_pairs(np.empty(shape, dtype=np.int8)))


def as_grids(Y: ArrayLike, neighbors: int) -> tuple[Array, tuple[int, ...]]:
    """Observations as (n_images, depth, height, width), and the shape they came in; NaN is allowed.

    With 4 neighbours a pixel lies in a plane: two axes are an image, three a stack of images; with 2 and 6 likewise.
    """
    if neighbors not in (2, 4, 6):
        raise ValueError(f"neighbors must be 2 (a line), 4 (a plane) or 6 (space), got {neighbors!r}")
    axes = neighbors // 2
    values = np.asarray(Y, dtype=np.float64)
    if values.ndim not in (axes, axes + 1):
        raise ValueError(
            f"Y must have {axes} axes, or {axes + 1} for a stack, with neighbors={neighbors}, got shape {values.shape}"
        )
    if values.size == 0:
        raise ValueError(f"Y must have at least one pixel, got shape {values.shape}")
    if np.isinf(values).any():
        raise ValueError("Y must be finite, or NaN where nothing was seen, got infinity")
    stacked = values[None] if values.ndim == axes else values
    return stacked.reshape(len(stacked), *(1,) * (3 - axes), *stacked.shape[1:]), values.shape


def entropies(proba: Array) -> Array:
    """Entropy in nats of each pixel's marginal."""
    return -(proba * np.log(np.where(proba > 0, proba, 1.0))).sum(axis=-1)


def observed_field(Y: ArrayLike, neighbors: int, noise: LogLikelihood, n_labels: int, coupling: float) -> LabelField:
    """The posterior of the labels of Y: with two labels the coupling is Ising's, with more it is that of Potts."""
    grids, _ = as_grids(Y, neighbors)
    log_likelihood = np.array(noise(grids), dtype=np.float64)
    if log_likelihood.shape != (*grids.shape, n_labels):
        raise ValueError(
            f"noise_model must give {n_labels} log-likelihoods for each pixel, shape "
            f"{(*grids.shape, n_labels)}, got {log_likelihood.shape}"
        )
    log_likelihood[np.isnan(grids)] = 0.0
    if np.isnan(log_likelihood).any() or not np.isfinite(log_likelihood.max(axis=-1)).all():
        raise ValueError("noise_model must leave each pixel a possible label, got NaN, +inf or only -inf")
    if n_labels > 2:
        return LabelField(log_likelihood, coupling)
    return LabelField(log_likelihood, 2.0 * coupling, -coupling * n_edges(grids.shape))


@dataclass(frozen=True)
class GridMeanField:
    """Mean field of a `LabelField`, as `pluri.inference.variational.coordinate_ascent` runs it.

    q has the shape of the log-likelihood. An update is log q_i(k) = log p(y_i | k) + J sum_{j ~ i} q_j(k) + const,
    on one colour of the checkerboard after the other, which is exact coordinate ascent; `parallel` updates all pixels
    from the same neighbours, which may oscillate.
    """

    field: LabelField
    damping: float = 1.0
    parallel: bool = False

    def initialize(self, data: None, rng: np.random.Generator) -> Array:
        """Every pixel by itself."""
        return _softmax(self.field.log_likelihood)

    def update(self, q: Array, data: None = None) -> Array:
        """One sweep."""
        k = self.field.n_labels
        q = q.copy()
        flat, log_likelihood = q.reshape(-1, k), self.field.log_likelihood.reshape(-1, k)
        blocks = [np.concatenate(self.field.colors)] if self.parallel else list(self.field.colors)
        for pixels in blocks:
            pull = neighbour_sum(q).reshape(-1, k)[pixels]
            optimum = _softmax(log_likelihood[pixels] + self.field.agreement * pull)
            flat[pixels] += self.damping * (optimum - flat[pixels])
        return q

    def elbo(self, q: Array, data: None = None) -> float:
        """Lower bound of log p(y) + log Z(J)."""
        agreeing = sum(float((low * high).sum()) for low, high in neighbour_pairs(q))
        # A label that the noise model rules out has probability 0, and 0 * -inf is 0 here.
        seen = float((q * np.where(q > 0, self.field.log_likelihood, 0.0)).sum())
        return self.field.agreement * agreeing + self.field.constant + seen + float(entropies(q).sum())


def _softmax(logits: Array) -> Array:
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)
