"""Projections in the sense of Kullback-Leibler: the nearest distribution with given means, the nearest of a family.

The I-projection of p on the linear family ``{q : sum_x q(x) f(x) = c}`` minimises ``KL(q || p)``. It is
``q(x) = p(x) exp(l' f(x)) / Z(l)``, where l minimises the convex dual ``log Z(l) - l' c``; its gradient is the error of
the means and its Hessian their covariance, so Newton's method takes a handful of steps. For every q of the family
``KL(q || p) = KL(q || q*) + KL(q* || p)`` (the Pythagorean theorem). The M-projection of p on the exponential
family of a reference r and features f minimises ``KL(p || q)``; it matches the means of p, and so is the I-projection
of r.

References
----------
Csiszar (1975), I-divergence geometry of probability distributions and minimization problems, Annals of Probability 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import rel_entr

from pluri.metrics.entropies import as_probabilities
from pluri.optimize.fixed_point import iterate

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Projection:
    """A projected distribution.

    Attributes
    ----------
    distribution : (n_outcomes,)
    multipliers : (n_features,): l of ``q(x) = p(x) exp(l' f(x)) / Z``
    divergence : the divergence that was minimised, in nats
    n_iter : number of Newton steps
    """

    distribution: Array
    multipliers: Array
    divergence: float
    n_iter: int


def _features(features: ArrayLike, n_outcomes: int) -> Array:
    table = np.asarray(features, dtype=np.float64)
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2 or len(table) != n_outcomes:
        raise ValueError(f"features must have shape ({n_outcomes}, n_features), got {np.shape(features)}")
    if not np.isfinite(table).all():
        raise ValueError("features must be finite, got other values")
    return table


class _Tilted(NamedTuple):
    """Distribution q tilted by multipliers, its log normaliser, and the means of the centred features."""

    multipliers: Array
    q: Array
    dual: float
    error: Array

    @property
    def distance(self) -> float:
        return float(np.abs(self.error).max(initial=0.0))


def _tilt(log_p: Array, centred: Array, multipliers: Array) -> _Tilted:
    logs = log_p + centred @ multipliers
    largest = logs.max()
    weights = np.exp(logs - largest)
    total = weights.sum()
    q = weights / total
    return _Tilted(multipliers, q, float(largest + np.log(total)), q @ centred)


def i_projection(
    p: ArrayLike, features: ArrayLike, targets: ArrayLike, *, tol: float = 1e-11, max_iter: int = 500
) -> Projection:
    """Distribution nearest to `p` whose features have given means: minimise ``KL(q || p)``.

    Parameters
    ----------
    p : array-like of shape (n_outcomes,)
        Where to start from; outcomes of probability zero stay so.
    features : array-like of shape (n_outcomes, n_features)
        Value of each feature for each outcome. Features may be redundant.
    targets : array-like of shape (n_features,)
        Means that the features must have.
    tol : float, default=1e-11
        Largest error of a mean that is allowed, relative to the spread of its feature.
    max_iter : int, default=500
        Largest number of Newton steps.

    Returns
    -------
    Projection

    Raises
    ------
    ValueError
        If no distribution on the outcomes that `p` allows has these means.

    Examples
    --------
    A die whose mean is 4.5.

    >>> import numpy as np
    >>> from pluri.metrics import i_projection
    >>> die = i_projection(np.full(6, 1 / 6), np.arange(1, 7), 4.5)
    >>> die.distribution.round(4)
    array([0.0544, 0.0788, 0.1142, 0.1654, 0.2398, 0.3475])
    """
    start = as_probabilities(p, "p", n_axes=1)
    table = _features(features, len(start))
    wanted = np.atleast_1d(np.asarray(targets, dtype=np.float64))
    if wanted.shape != table.shape[1:] or not np.isfinite(wanted).all():
        raise ValueError(f"targets must hold {table.shape[1]} finite numbers, one per feature, got {targets!r}")
    support = start > 0
    centred = table[support] - wanted
    spread = np.ptp(table[support], axis=0)
    scale = np.where(spread > 0, spread, np.maximum(np.abs(wanted), 1.0))
    centred = centred / scale
    log_p = np.log(start[support])
    # KL(q || p) is at most -log min p on a finite set; a dual below that certifies that there is no such q.
    least = float(log_p.min()) - 1e-6

    def newton(here: _Tilted) -> tuple[_Tilted, float]:
        if here.dual < least:
            return here, -1.0
        around = centred - here.error
        direction = -np.linalg.lstsq(around.T @ (here.q[:, None] * around), here.error, rcond=1e-13)[0]
        slope = float(here.error @ direction)
        if not slope < 0:
            return here, -1.0
        step = 1.0
        while step > 1e-12:
            there = _tilt(log_p, centred, here.multipliers + step * direction)
            if there.dual <= here.dual + 1e-4 * step * slope + 1e-15 * (1 - least):  # rounding of the dual
                break
            step /= 2
        return there, there.distance

    first = _tilt(log_p, centred, np.zeros(table.shape[1]))
    found = iterate(newton, first, max_iter=max_iter if first.distance > tol else 0, tol=tol)
    last = found.state
    if last.distance > tol:
        raise ValueError(
            f"targets must be means of the features under some distribution on the outcomes that p allows, got "
            f"{wanted.tolist()}; the nearest means have an error of {np.abs(last.error * scale).max():.3g}"
        )
    full = np.zeros_like(start)
    full[support] = last.q
    return Projection(full, last.multipliers / scale, float(max(rel_entr(full, start).sum(), 0.0)), found.n_iter)


def m_projection(p: ArrayLike, features: ArrayLike, *, reference: ArrayLike | None = None) -> Projection:
    """Member of an exponential family that is nearest to `p`: minimise ``KL(p || q)``, which is maximum likelihood.

    The family is ``q(x) = r(x) exp(l' f(x)) / Z(l)``.

    Parameters
    ----------
    p : array-like of shape (n_outcomes,)
        What to come near to.
    features : array-like of shape (n_outcomes, n_features)
        f.
    reference : array-like of shape (n_outcomes,), optional
        r; uniform if not given.

    Returns
    -------
    Projection

    Examples
    --------
    Two bits, and the family in which they are independent:

    >>> import numpy as np
    >>> from pluri.metrics import m_projection
    >>> bits = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> nearest = m_projection([0.5, 0.0, 0.25, 0.25], bits)
    >>> nearest.distribution
    array([0.375, 0.125, 0.375, 0.125])
    """
    target = as_probabilities(p, "p", n_axes=1)
    table = _features(features, len(target))
    base = np.full(len(target), 1 / len(target)) if reference is None else as_probabilities(reference, "reference")
    if base.shape != target.shape:
        raise ValueError(f"reference must have the shape of p, {target.shape}, got {base.shape}")
    if (target[base == 0] > 0).any():
        raise ValueError("reference must allow every outcome that p allows, got a zero where p is positive")
    found = i_projection(base, table, target @ table)
    divergence = float(max(rel_entr(target, found.distribution).sum(), 0.0))
    return Projection(found.distribution, found.multipliers, divergence, found.n_iter)
