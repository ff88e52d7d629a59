"""Defaults of Gaussian emissions in the units of the data.

hmmlearn's ``covars_prior=1e-2`` and ``min_covar=1e-3`` are in the squared unit of the data, whatever that is: 200 daily
returns with a standard deviation of 0.006 have a sum of squares of 0.0072, less than the prior adds to it. "auto" is a
share of each feature's variance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.components.first_rows import weighted_initial_rows
from pluri.components.gaussian import check_magnitude
from pluri.engine import Source
from pluri.validation import check_broadcast

Array = NDArray[np.float64]

#: Scale of the prior, and what is added to the starting variances, as a share of each feature's variance.
SHARE = 1e-3


def feature_variance(source: Source) -> Array:
    """Variance of each feature in the first rows of the data (D,); 1 for a feature that is constant or never seen."""
    rows, weight = weighted_initial_rows(source, lambda X: check_magnitude(np.asarray(X, dtype=np.float64)))
    seen = ~np.isnan(rows)
    shares = seen * (1.0 if weight is None else weight[:, None] / weight.sum())
    total = shares.sum(axis=0)
    shares = shares / np.where(total > 0, total, 1.0)
    mean = (shares * np.where(seen, rows, 0.0)).sum(axis=0)
    variance = (shares * np.where(seen, rows - mean, 0.0) ** 2).sum(axis=0)
    # What rounding leaves of a constant is no scale to go by.
    return np.where(variance > (1e-12 * np.abs(mean)) ** 2, variance, 1.0)


def is_auto(value: Any) -> bool:
    """Whether a setting is left to the data."""
    return isinstance(value, str) and value == "auto"


class InUnitsOfTheData:
    """For models with Gaussian emissions: learns the variances of the features before the fit."""

    min_covar: Any
    feature_variance_: Array

    def _source(self, X: Any, lengths: Any, sequence_weight: Any, labels: Any = None) -> Any:
        source, n_samples = super()._source(X, lengths, sequence_weight, labels)  # type: ignore[misc]
        self.feature_variance_ = feature_variance(source)
        return source, n_samples

    def _feature_variance(self) -> Array | float:
        """The variances; 1 if the parameters were set by hand, when nothing depends on it."""
        return getattr(self, "feature_variance_", 1.0)

    def _starting_addition(self) -> Array:
        """What is added to the starting variances: a number, or one for each feature."""
        if is_auto(self.min_covar):
            return np.asarray(SHARE * self._feature_variance())
        return check_broadcast("min_covar", self.min_covar, (), least=0.0)
