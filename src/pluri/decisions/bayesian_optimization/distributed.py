"""A dimension of a search space that is searched by the quantiles of a distribution, as scikit-learn's searches are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.validation import Number, check_value

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Distributed:
    """A parameter with a distribution of `scipy.stats`, whose quantiles are searched evenly.

    Parameters
    ----------
    distribution : frozen distribution
        With methods ``ppf`` and ``cdf``.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from pluri.decisions import Distributed
    >>> round(Distributed(loguniform(1e-4, 1.0)).value(0.5), 6)
    0.01
    """

    distribution: Any

    def __post_init__(self) -> None:
        if not all(callable(getattr(self.distribution, name, None)) for name in ("ppf", "cdf")):
            raise ValueError(f"distribution must have methods ppf and cdf, got {self.distribution!r}")

    @property
    def n_levels(self) -> float:
        """Infinite, or the number of integers of a discrete distribution."""
        low, high = (float(end) for end in self.distribution.support())
        return high - low + 1.0 if self._discrete else math.inf

    categorical = False

    @property
    def _discrete(self) -> bool:
        return hasattr(getattr(self.distribution, "dist", None), "pmf")

    def spread(self, share: Array) -> Array:
        """The shares themselves, or those in the middle of the steps of a discrete distribution."""
        return self.snap(share)

    def snap(self, code: Array) -> Array:
        """Codes of values."""
        inside = np.clip(code, 1e-6, 1.0 - 1e-6)
        if not self._discrete:
            return np.asarray(inside)
        values = self.distribution.ppf(inside)
        return np.asarray(0.5 * (self.distribution.cdf(values) + self.distribution.cdf(values - 1)))

    def levels(self) -> list[float]:
        """Codes of the integers of a discrete distribution."""
        low, high = (int(end) for end in self.distribution.support())
        return [self.code(value) for value in range(low, high + 1)]

    def value(self, code: float) -> Any:
        """The quantile."""
        found = float(self.distribution.ppf(code))
        return int(found) if self._discrete else found

    def code(self, value: Any) -> float:
        """Value of the distribution function."""
        low, high = (float(end) for end in self.distribution.support())
        check_value(value, "it", Number(least=low, most=high, finite=False))
        return float(self.snap(np.array([float(self.distribution.cdf(value))]))[0])
