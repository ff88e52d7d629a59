"""Intervals for any estimate from samples, by drawing the rows again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from pluri.validation import Number, RandomState, as_generator, check_value

Array = NDArray[np.float64]


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
