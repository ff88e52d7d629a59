r"""Entropy and information of mixtures in one dimension, by quadrature.

.. math:: I(z; x) = h\Bigl(\sum_k p_k N(m_k, v_k)\Bigr) - \sum_k p_k h(N(m_k, v_k))
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, logsumexp

Array = NDArray[np.float64]

#: Points of the quadrature between eight standard deviations below and above each component.
POINTS, WIDTH = 81, 8.0
#: Numbers that are held at a time.
CHUNK = 2_000_000


def label_information(shares: Array, table: Array) -> Array:
    """I(z; x) of a discrete x with ``table[z]`` its distribution, for each row of probabilities of z: (n,)."""
    return np.maximum(entr(shares @ table).sum(axis=1) - shares @ entr(table).sum(axis=1), 0.0)


def normal_information(shares: Array, means: Array, variances: Array) -> Array:
    """I(z; x) of a normal x given z, for each row of probabilities of z: (n,).

    Parameters
    ----------
    shares, means : (n, k)
    variances : (k,)

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.decisions.planning.mixture_information import normal_information
    >>> far = normal_information(np.array([[0.5, 0.5]]), np.array([[0.0, 100.0]]), np.ones(2))
    >>> far.round(6)  # log 2
    array([0.693147])
    """
    n_rows, n_parts = shares.shape
    nodes = np.linspace(-WIDTH, WIDTH, POINTS)
    weights = np.exp(-0.5 * nodes**2)
    weights /= weights.sum()  # the trapezoid rule, which converges faster than any power for normal densities
    spread = np.sqrt(variances)
    found = np.empty(n_rows)
    step = max(1, CHUNK // (n_parts * n_parts * POINTS))
    with np.errstate(divide="ignore"):
        log_shares = np.log(shares)
    for begin in range(0, n_rows, step):
        rows = slice(begin, begin + step)
        points = means[rows, :, None] + spread[:, None] * nodes  # (n, k, q): from each component
        gaps = points[:, :, None, :] - means[rows, None, :, None]
        logs = -0.5 * gaps**2 / variances[:, None] - 0.5 * np.log(variances)[:, None]
        mixed = logsumexp(logs + log_shares[rows, None, :, None], axis=2)
        own = -0.5 * nodes**2 - 0.5 * np.log(variances)[:, None]
        found[rows] = np.einsum("nk,nkq,q->n", shares[rows], own - mixed, weights)
    return np.maximum(found, 0.0)


def normal_mixture_entropy(shares: Array, means: Array, variances: Array) -> Array:
    """Entropy of a mixture of normals in one dimension, for each row of shares and means: (n,).

    Parameters
    ----------
    shares, means : (n, k)
    variances : (k,)

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.decisions.planning.mixture_information import normal_mixture_entropy
    >>> normal_mixture_entropy(np.ones((1, 1)), np.zeros((1, 1)), np.ones(1)).round(4)  # 1/2 log(2 pi e)
    array([1.4189])
    """
    apart = 0.5 * np.log(2.0 * np.pi * np.e * variances)
    return np.asarray(normal_information(shares, means, variances) + shares @ apart)
