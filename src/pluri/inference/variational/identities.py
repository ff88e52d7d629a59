r"""The identity behind every variational bound, on finite sets where all of it can be summed.

log p(x) = ELBO(q) + KL(q || p(. | x)),    ELBO(q) = E_q[log p(x, z) - log q(z)].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def discrete_divergence(q: ArrayLike, p: ArrayLike) -> float:
    """KL(q || p) of two distributions on the same finite set; inf where q has mass and p has none.

    Examples
    --------
    >>> from pluri.inference.variational import discrete_divergence
    >>> round(discrete_divergence([0.5, 0.5], [0.25, 0.75]), 4), discrete_divergence([1.0, 0.0], [0.0, 1.0])
    (0.1438, inf)
    """
    q, p = np.asarray(q, dtype=np.float64), np.asarray(p, dtype=np.float64)
    if q.shape != p.shape:
        raise ValueError(f"q and p must have the same shape, got {q.shape} and {p.shape}")
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(q > 0, q * (np.log(q) - np.log(p)), 0.0)
    return float(terms.sum())


def discrete_elbo(log_joint: ArrayLike, q: ArrayLike) -> float:
    """E_q[log p(x, z) - log q(z)] for a table of log p(x, z) over z; minus it is the free energy.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.variational import discrete_elbo
    >>> log_joint = np.log([0.1, 0.3])  # log p(x) = log 0.4
    >>> bool(np.isclose(discrete_elbo(log_joint, [0.25, 0.75]), np.log(0.4)))
    True
    """
    log_joint, q = np.asarray(log_joint, dtype=np.float64), np.asarray(q, dtype=np.float64)
    if q.shape != log_joint.shape:
        raise ValueError(f"q must have the shape of log_joint {log_joint.shape}, got {q.shape}")
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(q > 0, q * (log_joint - np.log(q)), 0.0)
    return float(terms.sum())
