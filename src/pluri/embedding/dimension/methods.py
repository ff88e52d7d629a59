"""The ways of estimating a dimension, by name: a method is a function of rows, settings and a random generator.

One more is one more entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from pluri.embedding.dimension.neighborhoods import correlation, eigenvalues, maximum_likelihood
from pluri.embedding.dimension.records import Array, DimensionSettings, Estimate
from pluri.embedding.dimension.spanning_tree import spanning_trees


class Method(NamedTuple):
    """A way of estimating.

    Attributes
    ----------
    estimate : function of rows, settings and a generator
    distinct : whether rows that occur more than once must be counted once
    most_resamples : resamples at most; few where an estimate takes seconds
    share : part of the rows of a resample
    """

    estimate: Callable[[Array, DimensionSettings, np.random.Generator], Estimate]
    distinct: bool
    most_resamples: int = 1_000_000
    share: float = 0.5


def by_regression(X: Array, settings: DimensionSettings, rng: np.random.Generator) -> Estimate:
    """Directions that matter in a spectral regression."""
    from pluri.embedding.regression.dimension_estimate import nsr_dimension

    found = nsr_dimension(X, estimate="effective_rank", n_neighbors=settings.n_neighbors, random_state=rng)
    return Estimate(found.dimension, found.local)


METHODS: Mapping[str, Method] = {
    "mle": Method(maximum_likelihood, distinct=True),
    "eigenvalue": Method(eigenvalues, distinct=False),
    "correlation": Method(correlation, distinct=True),
    "gmst": Method(spanning_trees, distinct=True),
    "nsr": Method(by_regression, distinct=False, most_resamples=6, share=0.8),
}
