"""Weights of experts that depend on the input: sticks broken at normal probabilities.

``v_k(x) = Phi(a_k + b_k' x)``, ``w_k(x) = v_k(x) prod_{j<k} (1 - v_j(x))``; the last of K experts takes what is left.

References
----------
.. [1] Rodriguez, A. and Dunson, D. B. (2011). Nonparametric Bayesian models through probit stick-breaking processes.
   Bayesian Analysis 6, 145-178.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr, ndtri_exp

Array = NDArray[np.float64]


def with_intercept(X: Array) -> Array:
    """The rows with a one in front: (n_samples, n_features + 1)."""
    return np.column_stack([np.ones(len(X)), X])


def probit_stick_weights(predictors: Array) -> Array:
    """Weights of K experts from the predictors of K - 1 sticks, on the last axis.

    Parameters
    ----------
    predictors : array of shape (..., K - 1)

    Returns
    -------
    array of shape (..., K)

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.mixtures.experts import probit_stick_weights
    >>> probit_stick_weights(np.zeros(3))
    array([0.5  , 0.25 , 0.125, 0.125])
    """
    shape = (*predictors.shape[:-1], 1)
    taken = np.concatenate([ndtr(predictors), np.ones(shape)], axis=-1)
    left = np.concatenate([np.ones(shape), np.cumprod(ndtr(-predictors), axis=-1)], axis=-1)
    return np.asarray(taken * left)


def draw_truncated(rng: np.random.Generator, means: Array, positive: NDArray[np.bool_]) -> Array:
    """Draw normals of given means and variance 1, positive or negative as told; exact however unlikely that is."""
    sign = np.where(positive, 1.0, -1.0)
    # One minus a number below 1 is never 0, whose logarithm would be infinite.
    log_share = np.log1p(-rng.random(means.shape)) + log_ndtr(sign * means)
    return np.asarray(means - sign * ndtri_exp(log_share))
