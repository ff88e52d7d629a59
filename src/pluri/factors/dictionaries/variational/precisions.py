"""Beliefs about precisions: a gamma distribution each, or a number that is fixed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from pluri.metrics.distribution_information import gamma_kl
from pluri.priors.hyperpriors import Gamma, Hyperparameter

Array = NDArray[np.float64]

#: Prior of the precision of noise or weights, which says next to nothing.
PRECISION_PRIOR = Gamma(1e-6, 1e-6)
#: Variances are kept above this share of the data's: without noise the precision would go to infinity.
SMALLEST_VARIANCE = 1e-12


def first_beliefs(precision: Hyperparameter, start: float, size: int = 1) -> Array:
    """(size, 2) shapes and rates with mean `start`; the number and zero if it is fixed."""
    one = [precision.value, 0.0] if precision.prior is None else [1.0, 1.0 / start]
    return np.tile(np.asarray(one), (size, 1))


def updated(precision: Hyperparameter, beliefs: Array, counts: Any, squares: Any, floor: float = 0.0) -> Array:
    """Posterior given `counts` of values and their expected sums of squares; `floor` is the smallest variance."""
    if precision.prior is None:
        return beliefs
    shape = precision.prior.shape + 0.5 * np.asarray(counts, dtype=np.float64)
    rate = np.maximum(precision.prior.rate + 0.5 * np.asarray(squares, dtype=np.float64), shape * floor)
    return np.stack(np.broadcast_arrays(shape, rate), axis=-1).reshape(beliefs.shape)


def mean(beliefs: Array) -> Array:
    """Expected precisions."""
    fixed = beliefs[:, 1] == 0
    return np.where(fixed, beliefs[:, 0], beliefs[:, 0] / np.where(fixed, 1.0, beliefs[:, 1]))


def mean_log(beliefs: Array) -> Array:
    """Expected logarithms of the precisions."""
    fixed = beliefs[:, 1] == 0
    return np.where(fixed, np.log(beliefs[:, 0]), digamma(beliefs[:, 0]) - np.log(np.where(fixed, 1.0, beliefs[:, 1])))


def divergence(precision: Hyperparameter, beliefs: Array) -> float:
    """KL of q from the prior, summed; nothing if the precision is fixed."""
    if precision.prior is None:
        return 0.0
    return float(np.sum(gamma_kl(beliefs[:, 0], beliefs[:, 1], precision.prior.shape, precision.prior.rate)))
