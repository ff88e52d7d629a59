"""Weights of a Dirichlet process, broken off a stick: ``b_k ~ Beta(1, alpha)``, ``w_k = b_k prod_{l<k} (1 - b_l)``.

After T breaks ``(alpha / (1 + alpha))^T`` of the stick is left on average, so few weights hold nearly all of it.

References
----------
Sethuraman (1994), A constructive definition of Dirichlet priors, Statistica Sinica 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.validation import RandomState, as_generator, check_count, check_positive

Array = NDArray[np.float64]


def check_tail_mass(tail_mass: float) -> float:
    """Check a share of the stick that may be left over."""
    if not (np.ndim(tail_mass) == 0 and 0 < tail_mass < 1):
        raise ValueError(f"tail_mass must lie between 0 and 1, got {tail_mass!r}")
    return float(tail_mass)


def sticks_to_weights(sticks: ArrayLike) -> Array:
    """Weights from the shares that are broken off what is left, on the last axis.

    They sum to one if the last share is one.

    Examples
    --------
    >>> from pluri.processes import sticks_to_weights
    >>> sticks_to_weights([0.5, 0.5, 1.0])
    array([0.5 , 0.25, 0.25])
    """
    b = np.asarray(sticks, dtype=np.float64)
    if b.ndim == 0 or not ((b >= 0) & (b <= 1)).all():
        raise ValueError("sticks must be shares between 0 and 1 on at least one axis, got other values")
    with np.errstate(divide="ignore"):
        left = np.cumsum(np.log1p(-b), axis=-1)
        before = np.concatenate([np.zeros((*b.shape[:-1], 1)), left[..., :-1]], axis=-1)
        return np.asarray(np.exp(np.log(b) + before))


def weights_to_sticks(weights: ArrayLike) -> Array:
    """Shares that give these weights: the inverse of `sticks_to_weights`; zero once nothing is left.

    Examples
    --------
    >>> from pluri.processes import weights_to_sticks
    >>> weights_to_sticks([0.5, 0.25, 0.25])
    array([0.5, 0.5, 1. ])
    """
    w = np.asarray(weights, dtype=np.float64)
    if w.ndim == 0 or not (w >= 0).all() or (w.sum(axis=-1) > 1 + 1e-9).any():
        raise ValueError("weights must be at least 0 and sum to at most 1 on the last axis, got other values")
    # What is left before each break is added up from the far end, where the small numbers are.
    beyond = np.maximum(1 - w.sum(axis=-1, keepdims=True), 0.0)
    beyond[beyond < 1e-12] = 0.0
    left = np.cumsum(w[..., ::-1], axis=-1)[..., ::-1] + beyond
    return np.clip(np.divide(w, left, out=np.zeros_like(w), where=left > 0), 0.0, 1.0)


@dataclass(frozen=True)
class StickBreaking:
    """Stick-breaking (GEM) distribution of the weights of a Dirichlet process.

    Parameters
    ----------
    alpha : float
        Concentration: the larger, the smaller the pieces.

    Examples
    --------
    >>> from pluri.processes import StickBreaking
    >>> gem = StickBreaking(5.0)
    >>> gem.expected_weights(3).round(4)
    array([0.1667, 0.1389, 0.1157])
    >>> gem.n_sticks(1e-3)
    38
    >>> gem.sample(2, n_sticks=4, random_state=0).shape
    (2, 4)
    """

    alpha: float

    def __post_init__(self) -> None:
        check_positive(self.alpha, "alpha")

    def n_sticks(self, tail_mass: float = 1e-6) -> int:
        """Smallest number of breaks after which less than `tail_mass` is left on average."""
        rate = math.log1p(1 / self.alpha)
        return math.floor(-math.log(check_tail_mass(tail_mass)) / rate) + 1

    def expected_weights(self, n: int) -> Array:
        """Mean of the first n weights: ``alpha^(k-1) / (1 + alpha)^k``."""
        k = np.arange(check_count(n, "n", 0))
        return np.asarray(np.exp(-k * math.log1p(1 / self.alpha)) / (1 + self.alpha))

    def variance_weights(self, n: int) -> Array:
        """Variance of the first n weights."""
        a, k = self.alpha, np.arange(check_count(n, "n", 0))
        squares = 2.0 / ((1 + a) * (2 + a)) * np.exp(-k * math.log1p(2 / a))
        return np.asarray(squares - self.expected_weights(n) ** 2)

    @property
    def expected_sum_of_squares(self) -> float:
        """Mean of the sum of all squared weights: the probability that two draws are equal, ``1 / (1 + alpha)``."""
        return 1.0 / (1.0 + self.alpha)

    def _breaks(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        # Beta(1, alpha) by inversion, without cancellation for a large alpha.
        return np.asarray(-np.expm1(np.log1p(-rng.random(shape)) / self.alpha))

    def sample(
        self,
        n_samples: int = 1,
        *,
        n_sticks: int | None = None,
        tail_mass: float = 1e-6,
        random_state: RandomState = None,
    ) -> Array:
        """Draw weights; the last piece is what is left, so that every row sums to one.

        Parameters
        ----------
        n_samples : int, default=1
        n_sticks : int, optional
            Number of pieces; if not given, as many as leave `tail_mass` on average.
        tail_mass : float, default=1e-6
        random_state : int, Generator or None

        Returns
        -------
        array of shape (n_samples, n_sticks)
        """
        rng = as_generator(random_state)
        size = self.n_sticks(tail_mass) if n_sticks is None else check_count(n_sticks, "n_sticks")
        sticks = self._breaks(rng, (check_count(n_samples, "n_samples", 0), size))
        sticks[:, -1] = 1.0
        return sticks_to_weights(sticks)

    def sample_until(self, tail_mass: float = 1e-6, *, random_state: RandomState = None) -> tuple[Array, float]:
        """Break one stick until less than `tail_mass` is really left: the weights, and what is left."""
        rng = as_generator(random_state)
        limit = math.log(check_tail_mass(tail_mass))
        pieces: list[Array] = []
        log_left = 0.0
        while log_left >= limit:
            b = self._breaks(rng, (max(16, int(4 * self.alpha)),))
            logs = log_left + np.concatenate([[0.0], np.cumsum(np.log1p(-b))])
            end = int(np.argmax(logs < limit)) if (logs < limit).any() else len(b)
            pieces.append(b[:end] * np.exp(logs[:end]))
            log_left = float(logs[end])
        return np.concatenate(pieces), math.exp(log_left)
