"""Sticks broken into pieces, drawn given how often each piece was used.

``p_t = V_t prod_{l<t} (1 - V_l)`` with ``V_t ~ Beta(1, concentration)``; given n_t uses of piece t and n_{>t} of later
ones, ``V_t ~ Beta(1 + n_t, concentration + n_{>t})``. Under a Gamma(a, b) prior the concentration is
``Gamma(a + #V, b - sum log(1 - V))`` [1]_; only pieces up to the last one used say anything of it, and the others are
drawn after it, so that pieces never used do not hold it back. All of it is done in logarithms: concentrations near zero
leave nothing of a stick that a double could tell from zero.

References
----------
.. [1] Ishwaran, H. and Zarepour, M. (2000). Markov chain Monte Carlo in approximate Dirichlet and beta two-parameter
   process hierarchical models. Biometrika 87, 371-390.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.priors.hyperpriors import Gamma

Array = NDArray[np.float64]
#: Concentrations are kept between these: a vague gamma prior is mostly below the smallest double.
LEAST, MOST = 1e-6, 1e6


class Sticks(NamedTuple):
    """Broken sticks.

    Attributes
    ----------
    pieces : array of shape (..., n_pieces)
    rest : array of shape (...)
        What is left of each stick; zero if the last piece took it.
    concentration : float
    """

    pieces: Array
    rest: Array
    concentration: float


def log_gamma(rng: np.random.Generator, shape: NDArray[np.floating]) -> Array:
    """Logarithms of gamma variables; -inf for a shape of zero."""
    with np.errstate(divide="ignore"):
        return np.log(rng.standard_gamma(shape + 1.0)) + np.log(1.0 - rng.random(np.shape(shape))) / shape


def draw_concentration(rng: np.random.Generator, n_pieces: int, log_left: float, prior: Gamma) -> float:
    """Concentration of sticks of which `n_pieces` were broken off, `log_left` the sum of ``log(1 - V)``."""
    value = rng.standard_gamma(prior.shape + n_pieces) / (prior.rate - log_left)
    return float(np.clip(value, LEAST, MOST))


def draw_fractions(
    rng: np.random.Generator, counts: NDArray[np.integer], concentration: float, prior: Gamma | None,
    *, closed: bool,
) -> tuple[Array, Array, float]:  # fmt: skip
    """Logarithms of V and 1 - V, of all pieces but the last if that takes what is left, and the concentration."""
    n_free = counts.shape[-1] - closed
    from_here = np.cumsum(counts[..., ::-1], axis=-1)[..., ::-1]
    here, later = counts[..., :n_free], from_here[..., :n_free] - counts[..., :n_free]
    taken, left = log_gamma(rng, here + np.float64(1.0)), log_gamma(rng, later + np.float64(concentration))
    both = np.logaddexp(taken, left)
    log_taken, log_left = taken - both, left - both
    told = from_here[..., :n_free] > 0
    if prior is not None:
        concentration = draw_concentration(rng, int(told.sum()), float(log_left[told].sum()), prior)
        fresh = np.log(1.0 - rng.random(told.shape)) / concentration
        with np.errstate(divide="ignore"):
            log_taken = np.where(told, log_taken, np.log(-np.expm1(fresh)))
        log_left = np.where(told, log_left, fresh)
    return log_taken, log_left, concentration


def draw_sticks(
    rng: np.random.Generator,
    counts: NDArray[np.integer],
    concentration: float,
    prior: Gamma | None = None,
    *,
    closed: bool = True,
) -> Sticks:
    """Draw sticks, and their concentration, given counts.

    Parameters
    ----------
    rng : Generator
    counts : int array of shape (..., n_pieces)
        Uses of each piece.
    concentration : float
        The one before.
    prior : Gamma, optional
        Of the concentration, which is otherwise left as it is.
    closed : bool, default=True
        Whether the last piece takes all that is left.

    Returns
    -------
    Sticks
    """
    log_taken, log_left, concentration = draw_fractions(rng, counts, concentration, prior, closed=closed)
    passed = np.cumsum(log_left, axis=-1)
    before = np.concatenate([np.zeros((*passed.shape[:-1], 1)), passed], axis=-1)
    pieces, rest = np.exp(log_taken + before[..., :-1]), np.exp(before[..., -1])
    if closed:
        return Sticks(np.concatenate([pieces, rest[..., None]], axis=-1), np.zeros_like(rest), concentration)
    return Sticks(pieces, rest, concentration)


def mean_sticks(counts: NDArray[np.integer], concentration: float) -> Array:
    """Expected pieces given counts, the last one taking all that is left: shape of `counts`."""
    from_here = np.cumsum(counts[..., ::-1], axis=-1)[..., ::-1]
    here = counts[..., :-1]
    taken = (1.0 + here) / (1.0 + concentration + from_here[..., :-1])
    left = np.cumprod(1.0 - taken, axis=-1)
    ones = np.ones((*counts.shape[:-1], 1))
    return np.concatenate([taken, ones], axis=-1) * np.concatenate([ones, left], axis=-1)


def draw_shares(rng: np.random.Generator, shapes: Array) -> Array:
    """Dirichlet draws, one for each row of shapes; rows sum to one however small the shapes."""
    logs = log_gamma(rng, shapes)
    top = logs.max(axis=-1, keepdims=True)
    shares = np.exp(logs - np.where(np.isfinite(top), top, 0.0))
    # Shapes so small that even logarithms overflow: all to the largest of them.
    lost = ~np.isfinite(top[..., 0])
    if lost.any():
        shares[lost] = 0.0
        shares[lost, shapes[lost].argmax(axis=-1)] = 1.0
    return shares / shares.sum(axis=-1, keepdims=True)
