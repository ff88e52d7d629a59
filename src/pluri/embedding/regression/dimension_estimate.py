"""The dimension of data by spectral regression, as one function."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.embedding.regression.estimator import SpectralRegression
from pluri.validation import Only, check_value

Array = NDArray[np.float64]

#: Sampling that a dimension asks for: predictions may do with small clusters and many short chains.
LONG: Mapping[str, Any] = {"n_chains": 1, "n_warmup": 200, "n_draws": 100, "rows_per_cluster": 50}


class DimensionEstimate(NamedTuple):
    """Dimension of data.

    Attributes
    ----------
    dimension : posterior mean over draws and rows
    interval : quantiles over draws of the mean over rows
    local : (n,): posterior mean of each row
    """

    dimension: float
    interval: tuple[float, float]
    local: Array


def nsr_dimension(
    X: Any,
    *,
    n_coordinates: int = 20,
    n_components: int = 20,
    estimate: str = "support",
    level: float = 0.95,
    **settings: Any,
) -> DimensionEstimate:
    """Estimate the dimension of the surface that rows lie near, by nonlinear spectral regression.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    n_coordinates : int, default=20
        Spectral coordinates: more than the dimension can be.
    n_components : int, default=20
        Largest number of clusters; with fewer than about fifty rows for each the estimate is too high.
    estimate : {"support", "effective_rank"}, default="support"
        Count the coordinates that a cluster uses, or its directions that matter (more than 5 % of the variance of the
        largest). The second is better where there are few features, or so little noise that the distortions of the
        spectral embedding count.
    level : float, default=0.95
        Of the interval.
    **settings
        Further parameters of `SpectralRegression`, such as `spectral`, `n_draws` and `random_state`. Here one chain of
        100 draws after 200 sweeps is the default, and clusters of fifty rows each.

    Returns
    -------
    DimensionEstimate
        Dimension, interval and local dimensions. Whether chains have settled is not looked at here. A warning says if
        the dimension is above the number of columns.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.embedding import nsr_dimension
    >>> rng = np.random.default_rng(0)
    >>> plane = rng.random((300, 2)) @ rng.normal(size=(2, 20)) + 0.1 * rng.normal(size=(300, 20))
    >>> found = nsr_dimension(plane, n_coordinates=6, n_components=5, n_warmup=50, n_draws=50, random_state=0)
    >>> round(found.dimension), found.local.shape
    (2, (300,))
    """
    check_value(estimate, "estimate", Only("support", "effective_rank"))
    model = SpectralRegression(n_coordinates, n_components, **{**LONG, **settings})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that two estimates differ is the reason for asking for one of them
        model.fit(X)
    by_support = estimate == "support"
    draws = model.trace_.flat("dimension" if by_support else "effective_rank")
    low, high = np.quantile(draws, [0.5 - level / 2, 0.5 + level / 2])
    local = model.local_dimension_ if by_support else model.local_effective_rank_
    if draws.mean() > model.n_features_in_:
        warnings.warn(
            f"{draws.mean():.1f} coordinates are in use, more than the {model.n_features_in_} columns of X can have "
            'dimensions: estimate="effective_rank" counts the directions that matter',
            UserWarning,
            stacklevel=2,
        )
    return DimensionEstimate(float(draws.mean()), (float(low), float(high)), local)
