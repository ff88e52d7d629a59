"""The ways of estimating a dimension, by name: a method is a function of rows, settings and a random generator.

One more is one more entry. A method that has an interval of its own returns it in its `Estimate`; for others the
estimator takes half-samples.
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
    """

    estimate: Callable[[Array, DimensionSettings, np.random.Generator], Estimate]
    distinct: bool


def by_regression(X: Array, settings: DimensionSettings, rng: np.random.Generator) -> Estimate:
    """Directions that matter in a spectral regression, with the interval of its posterior."""
    from pluri.embedding.regression.dimension_estimate import nsr_dimension

    found = nsr_dimension(
        X, estimate="effective_rank", level=settings.level, n_neighbors=settings.n_neighbors, random_state=rng
    )
    return Estimate(found.dimension, found.local, found.interval)


METHODS: Mapping[str, Method] = {
    "mle": Method(maximum_likelihood, distinct=True),
    "eigenvalue": Method(eigenvalues, distinct=False),
    "correlation": Method(correlation, distinct=True),
    "gmst": Method(spanning_trees, distinct=True),
    "nsr": Method(by_regression, distinct=False),
}
