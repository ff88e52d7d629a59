"""Resampling: particles are copied or dropped so that particle i is expected n w_i times among the n that go on.

- *multinomial*: n independent draws, from ordered uniforms made of cumulative exponentials;
- *residual*: floor(n w_i) copies, the rest multinomial on the fractional parts;
- *stratified*: one uniform point in each of n equal intervals;
- *systematic*: the points (j + u) / n with one uniform u.

All take time proportional to n, and give indices in ascending order. Residual and stratified never have a larger
variance than multinomial; systematic mostly has the smallest, though it has no such guarantee.

References
----------
Douc and Cappe (2005), Comparison of resampling schemes for particle filtering, ISPA 2005.
"""

from __future__ import annotations

from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.validation import RandomState, as_generator

__all__ = ["RESAMPLING_METHODS", "resample"]

#: Names that `resample` and the filters take.
RESAMPLING_METHODS = ("multinomial", "residual", "stratified", "systematic")

Indices = NDArray[np.int64]


def resample(
    weights: ArrayLike, method: str = "systematic", random_state: RandomState = None, n: int | None = None
) -> Indices:
    """Draw particles in proportion to their weights.

    Parameters
    ----------
    weights : array-like (n_particles,)
        Non-negative, at least one positive; only their proportions count.
    method : {"systematic", "stratified", "residual", "multinomial"}, default="systematic"
        Scheme; the expected number of copies of particle i is n w_i / sum(w) under each.
    random_state : int, Generator, RandomState or None
        Source of randomness.
    n : int, optional
        Number of draws; as many as there are particles by default.

    Returns
    -------
    ndarray (n,) of int
        Indices of the particles that go on, ascending. A particle of weight zero is never among them.

    Examples
    --------
    >>> from pluri.inference.smc import resample
    >>> resample([0.5, 0.25, 0.25, 0.0], random_state=0).tolist()
    [0, 0, 1, 2]
    """
    check_method(method)
    values = _checked_weights(weights)
    if n is None:
        n = values.size
    elif not isinstance(n, Integral) or isinstance(n, bool) or n < 1:
        raise ValueError(f"n must be an integer of at least 1, got {n!r}")
    return draw_ancestors(as_generator(random_state), values, method, int(n))


def check_method(method: str, name: str = "method") -> None:
    """Refuse the name of a scheme that does not exist."""
    if method not in RESAMPLING_METHODS:
        raise ValueError(f"{name} must be one of {', '.join(RESAMPLING_METHODS)}, got {method!r}")


def draw_ancestors(rng: np.random.Generator, weights: NDArray[np.float64], method: str, n: int) -> Indices:
    """`resample` for weights (n_particles,) that are known to be right."""
    from pluri.inference.smc import _kernels  # the compiler is loaded when it is needed

    out = np.empty(n, dtype=np.int64)
    if method == "systematic":
        _kernels.invert_strata(weights, rng.random(1), out)
    elif method == "residual":
        copies = np.empty(weights.size, dtype=np.int64)
        remainders = np.empty(weights.size)
        left = _kernels.take_shares(weights, n, copies, remainders)
        extra = np.empty(left, dtype=np.int64)
        if left:
            _kernels.invert(remainders, _ordered_uniforms(rng, left), left, extra)
        _kernels.merge(copies, extra, left, out)
    elif method == "stratified":
        _kernels.invert_strata(weights, rng.random(n), out)
    else:
        _kernels.invert(weights, _ordered_uniforms(rng, n), n, out)
    return out


def _ordered_uniforms(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    from pluri.inference.smc import _kernels

    points = np.empty(n)
    _kernels.order(rng.standard_exponential(n + 1), n, points)
    return points


def _checked_weights(weights: ArrayLike) -> NDArray[np.float64]:
    values = np.ascontiguousarray(weights, dtype=np.float64)
    if values.ndim != 1 or not values.size:
        raise ValueError(f"weights must be a vector with at least one entry, got shape {values.shape}")
    wrong = ~(values >= 0) | (values == np.inf)
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        raise ValueError(f"weights must be finite and not negative, got {values[i]} at particle {i}")
    total = values.sum()
    if not 0 < total < np.inf:
        raise ValueError(f"weights must have a positive finite sum, got {total}")
    if total < 1e-290:  # n / total must not overflow
        values = values / values.max()
    return values
