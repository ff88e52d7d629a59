"""Mutual information and divergence from samples, and how sure one may be of them.

Kraskov, Stoegbauer and Grassberger (their first estimator), in the maximum norm: with ``n_x(i)`` the number of points
whose x is strictly nearer to x_i than the k-th neighbour of (x_i, y_i),
``I = psi(k) + psi(n) - mean(psi(n_x + 1) + psi(n_y + 1))``. Ross has the same for a label against a point. The
divergence by neighbours is ``(d / n) sum_i log(nu_i / rho_i) + log(m / (n - 1))``, ``rho_i`` and ``nu_i`` being the
distances from x_i to its k-th neighbour among the other x and among the y.

References
----------
Kraskov, Stoegbauer and Grassberger (2004), Estimating mutual information, Physical Review E 69, 066138.
Ross (2014), Mutual information between discrete and continuous data sets, PLoS ONE 9.
Wang, Kulkarni and Verdu (2009), Divergence estimation via k-nearest-neighbor distances, IEEE Trans. IT 55.
Barber and Agakov (2003), The IM algorithm, NIPS 16.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, ndtri

from pluri.metrics.entropies import log_base, mutual_information
from pluri.metrics.entropy_estimators import as_points, check_neighbours, label_codes
from pluri.metrics.gaussian_information import gaussian_mutual_information
from pluri.metrics.ties import TIES, treat_ties, warn_of_ties
from pluri.validation import Number, Only, RandomState, as_generator, check_value

Array = NDArray[np.float64]
METHODS = ("nearest_neighbours", "mixed", "gaussian_copula", "plug_in")


@dataclass(frozen=True)
class Interval:
    """An estimate between two bounds.

    Attributes
    ----------
    estimate, low, high : float
    standard_error : float
    """

    estimate: float
    low: float
    high: float
    standard_error: float


def bootstrap_interval(
    statistic: Callable[..., float],
    *samples: ArrayLike,
    paired: bool = True,
    with_replacement: bool = True,
    n_resamples: int = 999,
    level: float = 0.95,
    random_state: RandomState = None,
) -> Interval:
    """Confidence interval of an estimate by resampling.

    Parameters
    ----------
    statistic : callable
        Gives a number for samples, such as `mi_from_samples`.
    *samples : array-like
        The samples, one per row.
    paired : bool, default=True
        Whether row i of all samples belongs together. False resamples each by itself.
    with_replacement : bool, default=True
        Bootstrap, with the interval of the percentiles moved to the estimate ("basic"). False takes random halves
        instead, with a normal interval: estimates by nearest neighbours need that, since a repeated point has
        itself for a neighbour.
    n_resamples : int, default=999
    level : float, default=0.95
    random_state : int, Generator or None

    Returns
    -------
    Interval

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.metrics import bootstrap_interval, entropy_from_samples
    >>> tosses = np.random.default_rng(0).random(200) < 0.3
    >>> found = bootstrap_interval(lambda s: entropy_from_samples(s, "miller_madow"), tosses, random_state=0)
    >>> bool(found.low < 0.6109 < found.high)
    True
    """
    arrays = [np.asarray(sample) for sample in samples]
    if not arrays or any(array.ndim == 0 or len(array) < 2 for array in arrays):
        raise ValueError("samples must be one or more arrays of at least two rows, got none or a shorter one")
    if paired and len({len(array) for array in arrays}) > 1:
        raise ValueError(f"samples must have equal lengths if paired, got {[len(array) for array in arrays]}")
    check_value(level, "level", Number(above=0, below=1))
    if n_resamples < 2:
        raise ValueError(f"n_resamples must be at least 2, got {n_resamples!r}")
    rng = as_generator(random_state)

    def rows(n: int) -> NDArray[np.intp]:
        return rng.integers(n, size=n) if with_replacement else rng.permutation(n)[: n // 2]

    estimate = float(statistic(*arrays))
    values = np.empty(n_resamples)
    for index in range(n_resamples):
        drawn = [rows(len(arrays[0]))] * len(arrays) if paired else [rows(len(array)) for array in arrays]
        values[index] = statistic(*(array[chosen] for array, chosen in zip(arrays, drawn)))
    error = float(values.std(ddof=1))
    if with_replacement:
        low, high = np.quantile(values, [(1 + level) / 2, (1 - level) / 2])
        return Interval(estimate, float(2 * estimate - low), float(2 * estimate - high), error)
    # The spread over halves, drawn without replacement, is the standard error of the whole.
    reach = float(ndtri((1 + level) / 2)) * error
    return Interval(estimate, estimate - reach, estimate + reach, error)


def _count_nearer(points: Array, radius: Array) -> NDArray[np.intp]:
    """How many points, itself among them, lie strictly within `radius` of each point in the maximum norm."""
    from scipy.spatial import cKDTree

    # Not by sorting: x + radius is rounded, and would let the k-th neighbour itself in.
    inside = np.nextafter(radius, 0)
    return np.asarray(cKDTree(points).query_ball_point(points, inside, p=np.inf, return_length=True))


def _standardised(points: Array) -> Array:
    spread = points.std(axis=0)
    return np.asarray((points - points.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def _nearest_neighbours(x: Array, y: Array, k: int) -> float:
    from scipy.spatial import cKDTree

    together = np.hstack([x, y])
    radius = cKDTree(together).query(together, k=k + 1, p=np.inf)[0][:, -1]
    near = digamma(_count_nearer(x, radius)) + digamma(_count_nearer(y, radius))
    return float(digamma(k) + digamma(len(x)) - near.mean())


def _mixed(codes: NDArray[np.intp], counts: NDArray[np.intp], points: Array, k: int) -> float:
    from scipy.spatial import cKDTree

    # A label that occurs once has no neighbour of its kind and says nothing.
    keep = counts[codes] > 1
    codes, points = codes[keep], points[keep]
    if not len(points):
        raise ValueError("X must hold at least one label that occurs twice, got none")
    radius, used = np.empty(len(points)), np.empty(len(points))
    for label in np.unique(codes):
        own = np.flatnonzero(codes == label)
        used[own] = nearest = min(k, len(own) - 1)
        radius[own] = cKDTree(points[own]).query(points[own], k=nearest + 1, p=np.inf)[0][:, -1]
    near = digamma(_count_nearer(points, radius))
    return float(digamma(len(points)) + (digamma(used) - digamma(counts[codes]) - near).mean())


def _gaussian_scores(points: Array) -> Array:
    order = points.argsort(axis=0, kind="stable").argsort(axis=0)
    return np.asarray(ndtri((order + 1) / (len(points) + 1)))


def mi_from_samples(
    X: ArrayLike,
    Y: ArrayLike,
    method: str = "nearest_neighbours",
    *,
    k: int = 3,
    base: float = math.e,
    ties: str = "dither",
    random_state: RandomState = 0,
) -> float:
    """Estimate the mutual information of two variables from paired samples.

    Parameters
    ----------
    X, Y : array-like of shape (n_samples,) or (n_samples, n_features)
        Points; labels in both for "plug_in", labels in X for "mixed".
    method : str, default="nearest_neighbours"
        "nearest_neighbours" (Kraskov et al.), "mixed" (Ross), "gaussian_copula" (exact if some monotone maps of the
        columns make them jointly Gaussian) or "plug_in".
    k : int, default=3
        Number of neighbours.
    base : float, default=e
    ties : {"dither", "error", "keep"}, default="dither"
        What to do about equal points, as in `entropy_from_samples`.
    random_state : int, Generator or None, default=0
        Draws the noise that parts equal points.

    Returns
    -------
    float
        May fall a little below zero: the estimate is not cut off, so that its mean stays right.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.metrics import mi_from_samples
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], size=2000).T
    >>> bool(abs(mi_from_samples(x, y) - 0.8304) < 0.1)
    True
    """
    unit = log_base(base)
    check_value(method, "method", Only(*METHODS))
    check_value(ties, "ties", Only(*TIES))
    if len(np.atleast_1d(X)) != len(np.atleast_1d(Y)):
        raise ValueError(f"X and Y must have equal lengths, got {len(np.atleast_1d(X))} and {len(np.atleast_1d(Y))}")
    if method == "plug_in":
        (x, n_x), (y, n_y) = label_codes(X, "X"), label_codes(Y, "Y")
        table = np.bincount(x * len(n_y) + y, minlength=len(n_x) * len(n_y)).reshape(len(n_x), len(n_y))
        return mutual_information(table / len(x), base=base)
    points_y = as_points(Y, "Y")
    rng = as_generator(random_state)
    if method == "gaussian_copula":
        points_x = as_points(X, "X")
        scores = np.hstack([_gaussian_scores(points_x), _gaussian_scores(points_y)])
        return gaussian_mutual_information(np.corrcoef(scores, rowvar=False), points_x.shape[1], base=base)
    if method == "mixed":
        codes, counts = label_codes(X, "X")
        k = check_neighbours(k, len(codes), "X")
        points_y = treat_ties(points_y, "Y", ties, rng)
        return _mixed(codes, counts, _standardised(points_y), k) / unit
    points_x = as_points(X, "X")
    k = check_neighbours(k, len(points_x), "X")
    warn_of_ties(np.hstack([points_x, points_y]), "X and Y", ties)
    points_x, points_y = treat_ties(points_x, "X", ties, rng), treat_ties(points_y, "Y", ties, rng)
    return _nearest_neighbours(_standardised(points_x), _standardised(points_y), k) / unit


def kl_from_samples(
    X: ArrayLike, Y: ArrayLike, *, k: int = 3, base: float = math.e, ties: str = "dither", random_state: RandomState = 0
) -> float:
    """Estimate ``KL(p || q)`` from samples X of p and Y of q by nearest neighbours.

    Parameters
    ----------
    X : array-like of shape (n_samples,) or (n_samples, n_features)
    Y : array-like of shape (m_samples,) or (m_samples, n_features)
    k : int, default=3
        Number of neighbours.
    base : float, default=e
    ties : {"dither", "error", "keep"}, default="dither"
        What to do about equal points, as in `entropy_from_samples`.
    random_state : int, Generator or None, default=0
        Draws the noise that parts equal points.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.metrics import kl_from_samples
    >>> rng = np.random.default_rng(0)
    >>> bool(abs(kl_from_samples(rng.normal(1, 1, 3000), rng.normal(0, 1, 3000)) - 0.5) < 0.1)
    True
    """
    from scipy.spatial import cKDTree

    unit = log_base(base)
    x, y = as_points(X, "X"), as_points(Y, "Y", least=1)
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"X and Y must have equally many columns, got {x.shape[1]} and {y.shape[1]}")
    k = check_neighbours(k, len(x), "X")
    if k > len(y):
        raise ValueError(f"k must be at most the size of Y, {len(y)}, got {k}")
    check_value(ties, "ties", Only(*TIES))
    n, d = x.shape
    rng = as_generator(random_state)
    warn_of_ties(x, "X", ties, "kl_divergence of their shares")
    both = treat_ties(np.vstack([x, y]), "X and Y", ties, rng)
    x, y = both[:n], both[n:]
    among_x = cKDTree(x).query(x, k=k + 1)[0][:, -1]
    among_y = np.reshape(cKDTree(y).query(x, k=[k])[0], -1)
    return float(d * np.log(among_y / among_x).mean() + math.log(len(y) / (n - 1))) / unit


def variational_mutual_information(
    log_q_x_given_y: Callable[[Any, Any], ArrayLike],
    x: ArrayLike,
    y: ArrayLike,
    entropy_x: float,
    *,
    level: float = 0.95,
) -> Interval:
    """Lower bound of a mutual information by a guess at x given y: ``I(X; Y) >= H(X) + E log q(x | y)``.

    The bound is met when the guess is the true conditional distribution.

    Parameters
    ----------
    log_q_x_given_y : callable
        ``log q(x | y)`` in nats for each of the paired samples.
    x, y : array-like of shape (n_samples, ...)
        Samples of the joint distribution.
    entropy_x : float
        Entropy of X in nats.
    level : float, default=0.95
        Level of the interval, which covers the error of the average only.

    Returns
    -------
    Interval
        Of the bound, not of the mutual information.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.metrics import gaussian_entropy, variational_mutual_information
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=4000)
    >>> y = x + rng.normal(size=4000)
    >>> log_q = lambda x, y: -np.log(np.pi) / 2 - (x - y / 2) ** 2
    >>> bound = variational_mutual_information(log_q, x, y, gaussian_entropy(1.0))
    >>> bool(bound.low < np.log(2) / 2 < bound.high)
    True
    """
    check_value(level, "level", Number(above=0, below=1))
    logs = np.asarray(log_q_x_given_y(np.asarray(x), np.asarray(y)), dtype=np.float64)
    if logs.ndim != 1 or len(logs) < 2 or np.isnan(logs).any():
        raise ValueError(f"log_q_x_given_y must give one number for each of at least two samples, got {logs.shape}")
    with np.errstate(invalid="ignore"):
        estimate, error = float(entropy_x + logs.mean()), float(logs.std(ddof=1) / math.sqrt(len(logs)))
    reach = float(ndtri((1 + level) / 2)) * error
    return Interval(estimate, estimate - reach, estimate + reach, error)
