r"""How large a mixture of PCAs is: free parameters, criteria that weigh them, and which directions count.

Component k with :math:`d_k` active directions has :math:`P_k = D d_k - d_k(d_k - 1)/2 + D` free parameters. Since only
about :math:`N\pi_k` rows speak about them, the hierarchical criterion penalises each component by its own size:

.. math:: HBIC = -2 \log L + \sum_k P_k \log(N \pi_k) + (K - 1) \log N

References
----------
.. [1] J. Zhao, "Efficient model selection for mixtures of probabilistic PCA via hierarchical BIC", IEEE Transactions on
   Cybernetics 44, 2014.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pluri.factors.exponential_family.relevance import active_columns

Array = NDArray[np.float64]


def active_directions(scales: Array, n_features: int, threshold: float = 1e-2) -> NDArray[np.int64]:
    """Number of directions of each component whose scale is at least ``threshold`` times its largest."""
    return np.array([int(active_columns(row, n_features, threshold).sum()) for row in scales], dtype=np.int64)


def free_parameters(active: NDArray[np.int64], n_features: int, intercept: bool) -> NDArray[np.int64]:
    """Free parameters of each component, (n_components,).

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.mixtures.exponential_family_pca.criteria import free_parameters
    >>> free_parameters(np.array([0, 2]), n_features=10, intercept=True)
    array([10, 29])
    """
    return n_features * active - active * (active - 1) // 2 + (n_features if intercept else 0)


def bayesian_criterion(log_likelihood: float, parameters: NDArray[np.int64], n_samples: float) -> float:
    """The usual criterion: every parameter is weighed by all rows."""
    total = int(parameters.sum()) + len(parameters) - 1
    return float(-2.0 * log_likelihood + total * np.log(n_samples))


def hierarchical_criterion(
    log_likelihood: float, parameters: NDArray[np.int64], weights: Array, n_samples: float
) -> float:
    """Parameters of a component are weighed by the rows that it explains.

    Examples
    --------
    One component: the same as the usual criterion.

    >>> import numpy as np
    >>> from pluri.mixtures.exponential_family_pca.criteria import bayesian_criterion, hierarchical_criterion
    >>> hierarchical_criterion(-50.0, np.array([3]), np.ones(1), 20.0), bayesian_criterion(-50.0, np.array([3]), 20.0)
    (108.987197, 108.987197)
    """
    rows = np.maximum(n_samples * weights, 1.0)  # a component without rows is not rewarded
    return float(-2.0 * log_likelihood + parameters @ np.log(rows) + (len(parameters) - 1) * np.log(n_samples))


def most_likely(joint: Array) -> NDArray[np.int64]:
    """The component of the highest log density of each row; of equal ones the first, whatever the rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.mixtures.exponential_family_pca.criteria import most_likely
    >>> most_likely(np.array([[-2.0, -2.0 + 1e-15], [-2.0, -1.0]]))
    array([0, 1])
    """
    best = joint.max(axis=1, keepdims=True)
    return np.asarray((joint >= best - 1e-12 * np.maximum(np.abs(best), 1.0)).argmax(axis=1), dtype=np.int64)
