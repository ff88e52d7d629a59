"""Entropy from samples: of labels by counting, of points by a Gaussian, a kernel density or nearest neighbours.

Counting (`plug_in`) is too low by about ``(m - 1) / 2n`` for m labels seen among n: Miller and Madow add that, the
jackknife takes it out by leaving one sample out, and `dirichlet` is the posterior mean under a Dirichlet prior.
Kozachenko and Leonenko use the distance ``e_i`` from each point to its k-th neighbour:
``H = psi(n) - psi(k) + log V_d + (d / n) sum_i log e_i``, with ``V_d`` the volume of the unit ball.

References
----------
Kozachenko and Leonenko (1987), Sample estimate of the entropy of a random vector, Problems Inform. Transmission 23.
Miller (1955), Note on the bias of information estimates. Wolpert and Wolf (1995), Physical Review E 52, 6841.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, entr, gammaln, logsumexp, xlogy

from pluri.metrics.entropies import log_base
from pluri.metrics.gaussian_information import gaussian_entropy
from pluri.metrics.ties import TIES, treat_ties, warn_of_ties
from pluri.validation import Only, RandomState, as_generator, check_value

Array = NDArray[np.float64]

COUNTING = ("plug_in", "miller_madow", "dirichlet", "jackknife")
CONTINUOUS = ("nearest_neighbours", "gaussian", "kde", "kde_leave_one_out", "histogram")


def as_points(X: ArrayLike, name: str, *, least: int = 2) -> Array:
    """Check a sample of points: (n_samples,) or (n_samples, n_features), finite, at least `least` of them."""
    try:
        points = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers ({error}); for labels there is method='plug_in'") from None
    points = points[:, None] if points.ndim == 1 else points
    if points.ndim != 2 or points.shape[1] == 0:
        raise ValueError(f"{name} must have shape (n_samples,) or (n_samples, n_features), got {np.shape(X)}")
    if len(points) < least:
        raise ValueError(f"{name} must hold at least {least} samples, got {len(points)}")
    if not np.isfinite(points).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    return points


def label_codes(X: ArrayLike, name: str) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Number the distinct labels (or rows of labels) of a sample, and count them."""
    labels = np.asarray(X)
    if labels.ndim not in (1, 2) or not len(labels):
        raise ValueError(f"{name} must hold labels, shape (n_samples,) or (n_samples, n_columns), got {labels.shape}")
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise ValueError(f"{name} must hold labels, got NaN")
    labels = labels.astype(np.str_) if labels.dtype.kind == "O" else labels
    _, codes, counts = np.unique(labels, axis=0, return_inverse=True, return_counts=True)
    return codes.reshape(-1), counts


def check_neighbours(k: int, n_samples: int, name: str) -> int:
    """Check the number of neighbours against the size of a sample."""
    if not isinstance(k, int | np.integer) or isinstance(k, bool) or not 1 <= k < n_samples:
        raise ValueError(f"k must be an integer from 1 to {n_samples - 1}, below the size of {name}, got {k!r}")
    return int(k)


def _plug_in(counts: Array) -> float:
    return float(entr(counts / counts.sum()).sum())


def _miller_madow(counts: Array) -> float:
    return _plug_in(counts) + (np.count_nonzero(counts) - 1) / (2 * counts.sum())


def _jackknife(counts: Array) -> float:
    n = counts.sum()
    if n < 2:
        return 0.0
    # H without one sample of bin b, for every b at once: log n' - sum_c c log c / n'.
    terms = xlogy(counts, counts)
    without = np.log(n - 1) - (terms.sum() - terms + xlogy(counts - 1, np.maximum(counts - 1, 1))) / (n - 1)
    return float(n * _plug_in(counts) - (n - 1) * (counts / n) @ without)


def _dirichlet(counts: Array, concentration: float) -> float:
    weight = counts + concentration
    total = weight.sum()
    return float(digamma(total + 1) - (weight / total) @ digamma(weight + 1))


def _nearest_neighbours(points: Array, k: int) -> float:
    from scipy.spatial import cKDTree

    n, d = points.shape
    distance = cKDTree(points).query(points, k=k + 1)[0][:, -1]
    log_ball = d / 2 * math.log(math.pi) - gammaln(d / 2 + 1)
    return float(digamma(n) - digamma(k) + log_ball + d * np.log(distance).mean())


def _kde(points: Array, leave_one_out: bool) -> float:
    """Minus the mean log density of a Gaussian kernel density estimate with Scott's bandwidth."""
    n, d = points.shape
    covariance = np.atleast_2d(np.cov(points, rowvar=False)) * n ** (-2 / (d + 4))
    try:
        factor = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        raise ValueError("X must vary in every direction for a kernel density, got a singular covariance") from None
    white = np.linalg.solve(factor, (points - points.mean(axis=0)).T).T
    log_constant = d / 2 * math.log(2 * math.pi) + float(np.log(np.diagonal(factor)).sum())
    square = (white**2).sum(axis=1)
    logs = np.empty(n)
    block = max(1, 4_000_000 // n)
    for start in range(0, n, block):
        rows = slice(start, min(start + block, n))
        exponent = -0.5 * np.maximum(square[rows, None] + square - 2 * white[rows] @ white.T, 0.0)
        if leave_one_out:
            exponent[np.arange(rows.stop - start), np.arange(start, rows.stop)] = -np.inf
        logs[rows] = logsumexp(exponent, axis=1)
    return float(-(logs.mean() - math.log(n - 1 if leave_one_out else n) - log_constant))


def _histogram(points: Array, bins: int | str) -> float:
    if points.shape[1] != 1:
        raise ValueError(f"X must have one column for method='histogram', got {points.shape[1]}")
    counts, edges = np.histogram(points[:, 0], bins=bins)
    share = counts / counts.sum()
    return float((entr(share) + xlogy(share, np.diff(edges))).sum())


def entropy_from_samples(
    X: ArrayLike,
    method: str = "nearest_neighbours",
    *,
    k: int = 3,
    base: float = math.e,
    n_outcomes: int | None = None,
    concentration: float = 0.5,
    bins: int | str = "auto",
    ties: str = "dither",
    random_state: RandomState = 0,
) -> float:
    """Estimate an entropy from samples.

    Parameters
    ----------
    X : array-like of shape (n_samples,) or (n_samples, n_features)
        Labels (a row of several is one label) or points.
    method : str, default="nearest_neighbours"
        For labels "plug_in", "miller_madow", "dirichlet" or "jackknife"; for points "nearest_neighbours"
        (Kozachenko-Leonenko), "gaussian", "kde", "kde_leave_one_out" or "histogram" (one column).
    k : int, default=3
        Number of neighbours.
    base : float, default=e
    n_outcomes : int, optional
        Number of possible labels, for "dirichlet"; those that occur, if not given.
    concentration : float, default=0.5
        Dirichlet pseudo-count of each label.
    bins : int or str, default="auto"
        Bins of the histogram, as in `numpy.histogram_bin_edges`.
    ties : {"dither", "error", "keep"}, default="dither"
        What to do about equal points, which have no density, with nearest neighbours. "dither" spreads values that were
        rounded evenly over the width of the rounding, which it finds in each column; "keep" parts equal points by noise
        of a ten-billionth, so that each pulls the estimate towards minus infinity.
    random_state : int, Generator or None, default=0
        Draws the noise that parts equal points.

    Returns
    -------
    float

    Warns
    -----
    UserWarning
        If less than 75 % of the points are distinct, with nearest neighbours.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.metrics import entropy_from_samples
    >>> entropy_from_samples(["a", "b", "a", "b"], "plug_in", base=2)
    1.0
    >>> points = np.random.default_rng(0).normal(size=5000)
    >>> bool(abs(entropy_from_samples(points) - 1.4189) < 0.05)
    True
    """
    unit = log_base(base)
    if method in COUNTING:
        counts = label_codes(X, "X")[1].astype(np.float64)
        if method == "dirichlet":
            if not (np.ndim(concentration) == 0 and concentration > 0 and math.isfinite(concentration)):
                raise ValueError(f"concentration must be a positive number, got {concentration!r}")
            if n_outcomes is not None and n_outcomes < len(counts):
                raise ValueError(
                    f"n_outcomes must be at least the number of labels seen, {len(counts)}, got {n_outcomes}"
                )
            counts = np.pad(counts, (0, (n_outcomes or len(counts)) - len(counts)))
            return _dirichlet(counts, concentration) / unit
        rule: dict[str, Callable[[Array], float]] = {
            "plug_in": _plug_in,
            "miller_madow": _miller_madow,
            "jackknife": _jackknife,
        }
        return rule[method](counts) / unit
    check_value(method, "method", Only(*CONTINUOUS))
    check_value(ties, "ties", Only(*TIES))
    points = as_points(X, "X")
    if method == "nearest_neighbours":
        k = check_neighbours(k, len(points), "X")
        warn_of_ties(points, "X", ties)
        return _nearest_neighbours(treat_ties(points, "X", ties, as_generator(random_state)), k) / unit
    if method == "gaussian":
        return gaussian_entropy(np.cov(points, rowvar=False), base=base)
    if method == "histogram":
        return _histogram(points, bins) / unit
    return _kde(points, leave_one_out=method == "kde_leave_one_out") / unit
