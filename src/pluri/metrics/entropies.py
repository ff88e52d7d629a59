"""Entropy, divergence and mutual information of tables of probabilities.

``H(p) = -sum p log p``, ``KL(p || q) = sum p log(p / q)``, ``I(X; Y) = KL(p(x, y) || p(x) p(y))``, with
``0 log 0 = 0``. Every function takes the base of the logarithm: e gives nats, 2 bits, 10 hartleys. A table must sum to
one; it is not rescaled. To estimate these quantities from data see `pluri.metrics.entropy_from_samples`.

References
----------
Cover and Thomas (2006), Elements of Information Theory, 2nd edition, Wiley.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr, rel_entr, xlogy

Array = NDArray[np.float64]

#: How far a table may be from a total of one.
TOLERANCE = 1e-6


def log_base(base: float) -> float:
    """Natural logarithm of a base, by which nats are divided."""
    if not (isinstance(base, numbers.Real) and base > 0 and base != 1 and math.isfinite(base)):
        raise ValueError(f"base must be a positive number other than 1, got {base!r}")
    return math.log(base)


def as_probabilities(p: ArrayLike, name: str, *, axis: int | None = -1, n_axes: int | None = None) -> Array:
    """Check a table of probabilities that sums to one over `axis`, or altogether if that is None."""
    table = np.asarray(p, dtype=np.float64)
    if table.ndim == 0 or table.size == 0:
        raise ValueError(f"{name} must hold at least one probability on at least one axis, got shape {table.shape}")
    if n_axes is not None and table.ndim != n_axes:
        raise ValueError(f"{name} must have {n_axes} axes, got shape {table.shape}")
    if not np.isfinite(table).all() or (table < 0).any():
        raise ValueError(f"{name} must hold finite probabilities of at least 0, got other values")
    total = np.asarray(table.sum(axis=axis))
    if (np.abs(total - 1) > TOLERANCE).any():
        raise ValueError(f"{name} must sum to 1, got {total.ravel()[np.abs(total.ravel() - 1).argmax()]:.8g}")
    return table


def _pair(p: ArrayLike, q: ArrayLike) -> tuple[Array, Array]:
    first, second = as_probabilities(p, "p"), as_probabilities(q, "q")
    if first.shape[-1] != second.shape[-1]:
        raise ValueError(f"p and q must have equal last axes, got shapes {first.shape} and {second.shape}")
    return first, second


def _result(nats: ArrayLike, base: float) -> float | Array:
    value = np.asarray(nats) / log_base(base)
    return float(value) if value.ndim == 0 else value


def entropy(p: ArrayLike, *, base: float = math.e) -> float | Array:
    """Entropy of a distribution, or of each row of several.

    Parameters
    ----------
    p : array-like of shape (..., n_outcomes)
        Probabilities; the last axis sums to one.
    base : float, default=e

    Returns
    -------
    float or array of shape (...)
        Between 0 and ``log(n_outcomes)``.

    Examples
    --------
    >>> from pluri.metrics import entropy
    >>> entropy([0.5, 0.25, 0.25], base=2)
    1.5
    """
    return _result(entr(as_probabilities(p, "p")).sum(axis=-1), base)


def joint_entropy(p: ArrayLike, *, base: float = math.e) -> float:
    """Entropy of all variables of a table together: ``H(X, Y, ...)``, one axis each.

    Examples
    --------
    >>> from pluri.metrics import joint_entropy
    >>> joint_entropy([[0.25, 0.25], [0.25, 0.25]], base=2)
    2.0
    """
    return float(entr(as_probabilities(p, "p", axis=None)).sum() / log_base(base))


def conditional_entropy(p: ArrayLike, *, given: int | Sequence[int] = -1, base: float = math.e) -> float:
    """What remains unknown when some variables of a table are known: ``H(X | Y) = H(X, Y) - H(Y)``.

    Parameters
    ----------
    p : array-like
        Joint probabilities, one axis per variable.
    given : int or sequence of ints, default=-1
        Axes of the known variables.
    base : float, default=e

    Examples
    --------
    >>> from pluri.metrics import conditional_entropy
    >>> conditional_entropy([[0.5, 0.0], [0.0, 0.5]])
    0.0
    """
    table = as_probabilities(p, "p", axis=None)
    known = tuple(np.atleast_1d(given).tolist())
    if not all(isinstance(axis, int) and -table.ndim <= axis < table.ndim for axis in known):
        raise ValueError(f"given must name axes of p, which has {table.ndim}, got {given!r}")
    others = tuple(set(range(table.ndim)) - {axis % table.ndim for axis in known})
    # Not a difference of entropies: every term has the right sign, so that the result is never below zero.
    margin = np.broadcast_to(table.sum(axis=others, keepdims=True), table.shape)
    return float(-rel_entr(table, np.maximum(margin, table)).sum() / log_base(base)) + 0.0


def cross_entropy(p: ArrayLike, q: ArrayLike, *, base: float = math.e) -> float | Array:
    """Mean length of a code made for `q` when the outcomes follow `p`: ``-sum p log q``.

    Infinite where `q` excludes an outcome that `p` allows. Rows as in `entropy`.

    Examples
    --------
    >>> from pluri.metrics import cross_entropy
    >>> cross_entropy([0.5, 0.5], [0.25, 0.75], base=2)
    1.2075187
    """
    first, second = _pair(p, q)
    return _result(-xlogy(first, second).sum(axis=-1), base)


def kl_divergence(p: ArrayLike, q: ArrayLike, *, base: float = math.e) -> float | Array:
    """Kullback-Leibler divergence ``KL(p || q) = sum p log(p / q)``.

    At least zero, zero only if `p` equals `q`, infinite where `q` excludes an outcome that `p` allows. Rows as in
    `entropy`.

    Examples
    --------
    >>> from pluri.metrics import kl_divergence
    >>> kl_divergence([1.0, 0.0], [0.5, 0.5], base=2)
    1.0
    >>> kl_divergence([0.5, 0.5], [1.0, 0.0])
    inf
    """
    first, second = _pair(p, q)
    return _result(np.maximum(rel_entr(first, second).sum(axis=-1), 0.0), base)


def js_divergence(p: ArrayLike, q: ArrayLike, *, base: float = math.e) -> float | Array:
    """Jensen-Shannon divergence: mean divergence of `p` and of `q` from their midpoint; at most ``log 2``.

    Its square root is a metric. Rows as in `entropy`.

    Examples
    --------
    >>> from pluri.metrics import js_divergence
    >>> js_divergence([1.0, 0.0], [0.0, 1.0], base=2)
    1.0
    """
    first, second = _pair(p, q)
    middle = (first + second) / 2
    nats = (rel_entr(first, middle).sum(axis=-1) + rel_entr(second, middle).sum(axis=-1)) / 2
    return _result(np.maximum(nats, 0.0), base)


def mutual_information(p_xy: ArrayLike, *, base: float = math.e) -> float:
    """Mutual information of the two variables of a table: ``I(X; Y) = H(X) + H(Y) - H(X, Y)``.

    Parameters
    ----------
    p_xy : array-like of shape (n_x, n_y)
        Joint probabilities.
    base : float, default=e

    Examples
    --------
    >>> from pluri.metrics import mutual_information
    >>> mutual_information([[0.5, 0.0], [0.0, 0.5]], base=2)
    1.0
    """
    table = as_probabilities(p_xy, "p_xy", axis=None, n_axes=2)
    product = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True)
    return float(max(rel_entr(table, product).sum(), 0.0) / log_base(base))


def conditional_mutual_information(p_xyz: ArrayLike, *, base: float = math.e) -> float:
    """Mutual information of the first two variables when the third is known: ``I(X; Y | Z)``.

    Parameters
    ----------
    p_xyz : array-like of shape (n_x, n_y, n_z)
        Joint probabilities.
    base : float, default=e

    Examples
    --------
    Two fair coins, and whether they agree: given the third, either coin tells the other.

    >>> import numpy as np
    >>> from pluri.metrics import conditional_mutual_information
    >>> agree = np.zeros((2, 2, 2))
    >>> agree[[0, 0, 1, 1], [0, 1, 0, 1], [1, 0, 0, 1]] = 0.25
    >>> conditional_mutual_information(agree, base=2)
    1.0
    """
    table = as_probabilities(p_xyz, "p_xyz", axis=None, n_axes=3)
    together = table.sum(axis=(0, 1), keepdims=True)
    product = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True)
    independent = np.divide(product, together, out=np.zeros_like(table), where=together > 0)
    return float(max(rel_entr(table, independent).sum(), 0.0) / log_base(base))


def pointwise_mutual_information(p_xy: ArrayLike, *, base: float = math.e) -> Array:
    """How much more often each pair meets than by chance: ``log p(x, y) / (p(x) p(y))``.

    -inf for a pair that never meets, NaN for a value that never occurs. Its mean over `p_xy` is the mutual
    information.

    Parameters
    ----------
    p_xy : array-like of shape (n_x, n_y)
        Joint probabilities.
    base : float, default=e

    Returns
    -------
    array of shape (n_x, n_y)

    Examples
    --------
    >>> from pluri.metrics import pointwise_mutual_information
    >>> pointwise_mutual_information([[0.5, 0.0], [0.0, 0.5]], base=2)
    array([[  1., -inf],
           [-inf,   1.]])
    """
    table = as_probabilities(p_xy, "p_xy", axis=None, n_axes=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(table) - np.log(table.sum(axis=1, keepdims=True)) - np.log(table.sum(axis=0, keepdims=True))
    return np.asarray(logs / log_base(base))


def varentropy(p: ArrayLike, *, base: float = math.e) -> float | Array:
    """Variance of ``-log p(X)``, in squared units.

    By the asymptotic equipartition property ``-log p(X_1, ..., X_n) / n`` tends to the entropy with standard deviation
    ``sqrt(varentropy / n)``; about ``exp(n H)`` sequences share nearly all of the probability.

    Examples
    --------
    >>> from pluri.metrics import varentropy
    >>> varentropy([0.5, 0.25, 0.25], base=2)
    0.25
    """
    table = as_probabilities(p, "p")
    surprise = -np.log(np.where(table > 0, table, 1.0))
    centred = surprise - (table * surprise).sum(axis=-1, keepdims=True)
    return _result((table * centred**2).sum(axis=-1) / log_base(base), base)


def bregman_divergence(
    x: ArrayLike, y: ArrayLike, generator: Callable[[Array], float], gradient: Callable[[Array], ArrayLike]
) -> float:
    """Bregman divergence ``F(x) - F(y) - <grad F(y), x - y>`` of a convex function F.

    The squared norm gives the squared distance, negative entropy the Kullback-Leibler divergence.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.metrics import bregman_divergence
    >>> bregman_divergence([3.0, 0.0], [0.0, 4.0], lambda v: v @ v, lambda v: 2 * v)
    25.0
    """
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if first.shape != second.shape:
        raise ValueError(f"x and y must have equal shapes, got {first.shape} and {second.shape}")
    slope = np.asarray(gradient(second), dtype=np.float64)
    return float(generator(first) - generator(second) - np.sum(slope * (first - second)))
