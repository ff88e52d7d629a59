r"""Priors of the loadings: which columns the data ask for (automatic relevance determination), or a ridge.

Column i of the weights has the prior :math:`N(0, \alpha_i^{-1} I)`. With the curvatures :math:`P_j` of the rows and
their inverses :math:`C_j`, the precision that maximises the evidence satisfies

.. math:: \alpha_i = \gamma_i / |w_i|^2, \qquad \gamma_i = D - \alpha_i \sum_j [C_j]_{ii}

(MacKay's update, fast), or :math:`\alpha_i = D / \sum_j (w_{ji}^2 + [C_j]_{ii})` (that of EM, slow and safe). Columns
that the data do not need get ever larger precisions and vanish. The log evidence of the loadings themselves,
:math:`\frac12 \sum_i (D \log\alpha_i - \alpha_i |w_i|^2) + \frac12 \sum_j \log\det C_j`, belongs to the objective:
without the determinants each vanished column would count as a gain without bound.

References
----------
.. [1] D. J. C. MacKay, "Bayesian interpolation", Neural Computation 4, 1992.
.. [2] J. Li and D. Tao, "Simple exponential family PCA", IEEE Transactions on Neural Networks and Learning Systems 24,
   2013.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.factors.exponential_family.loadings import FLOOR
from pluri.validation import Only, check_positive, check_value

Array = NDArray[np.float64]

PRIORS = ("ard", "ridge", None)
ALPHA_UPDATES = ("mackay", "em")
#: A column with this precision is off.
LARGEST_ALPHA = 1e10
#: Gamma(a0, b0) hyperprior of the precisions: next to none.
SHAPE = RATE = 1e-6


@dataclass(frozen=True)
class WeightPrior:
    """Prior of the weights.

    Attributes
    ----------
    kind : "ard", "ridge" or None
    precision : float
        Of a ridge; where precisions are learned, where they start.
    update : "mackay" or "em"
    """

    kind: str | None = "ard"
    precision: float = 1.0
    update: str = "mackay"

    def start(self, width: int) -> Array:
        """Precisions to begin with, (width,)."""
        return np.full(width, 0.0 if self.kind is None else self.precision)

    def learned(self, alpha: Array, weights: Array, curvature: Array) -> Array:
        """New precisions from weights (n_features, width) and the curvature of their rows without the prior."""
        if self.kind != "ard" or alpha.size == 0:
            return alpha
        n_features = len(weights)
        variances = _weight_covariances(curvature, alpha).diagonal(axis1=1, axis2=2).sum(axis=0)
        squares = np.einsum("ji,ji->i", weights, weights)
        if self.update == "em":
            new = (n_features + 2 * SHAPE) / (squares + variances + 2 * RATE)
        else:
            determined = np.maximum(n_features - alpha * variances, 0.0)
            new = (determined + 2 * SHAPE) / (squares + 2 * RATE / LARGEST_ALPHA)
        return np.clip(new, FLOOR, LARGEST_ALPHA)

    def log_density(self, alpha: Array, weights: Array, curvature: Array) -> float:
        """What the prior adds to the objective: the log evidence of the weights for ARD, a log density for a ridge."""
        squares = np.einsum("ji,ji->i", weights, weights)
        penalty = -0.5 * float(alpha @ squares)
        if self.kind != "ard" or alpha.size == 0:
            return penalty
        covariances = _weight_covariances(curvature, alpha)
        log_det = float(np.linalg.slogdet(covariances)[1].sum())
        return penalty + 0.5 * len(weights) * float(np.log(alpha).sum()) + 0.5 * log_det


def check_prior(prior: Any, precision: Any, update: Any) -> WeightPrior:
    """Read the settings of an estimator.

    Examples
    --------
    >>> from pluri.factors.exponential_family.relevance import check_prior
    >>> check_prior("ridge", 2.0, "mackay").start(3)
    array([2., 2., 2.])
    """
    check_value(prior, "loading_prior", Only(*PRIORS))
    check_value(update, "precision_update", Only(*ALPHA_UPDATES))
    return WeightPrior(prior, check_positive(precision, "loading_precision"), update)


def active_columns(scales: Array, n_features: int, threshold: float = 1e-2) -> NDArray[np.bool_]:
    """Which columns count: a size of at least ``threshold`` times the largest, and not next to nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors.exponential_family.relevance import active_columns
    >>> active_columns(np.array([4.0, 2.0, 1e-4]), n_features=10)
    array([ True,  True, False])
    """
    sizes = np.abs(scales)
    return (sizes > threshold * sizes.max(initial=0.0)) & (sizes > 1e-3 * math.sqrt(n_features))


def _weight_covariances(curvature: Array, alpha: Array) -> Array:
    """Posterior covariances of the rows of weights, intercepts integrated out: (n_features, width, width)."""
    width = len(alpha)
    precision = curvature[:, :width, :width] + np.diag(np.maximum(alpha, FLOOR))
    cross, own = curvature[:, :width, -1], curvature[:, -1, -1]
    schur = precision - np.einsum("ja,jb->jab", cross, cross / np.maximum(own, FLOOR)[:, None])
    return np.asarray(np.linalg.inv(schur))
