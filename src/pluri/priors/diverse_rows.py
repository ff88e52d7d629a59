r"""The determinantal prior over square stochastic matrices itself: its normaliser and an exact sampler.

For :math:`\rho = 1/2` and weight 1 the prior :math:`p(A) \propto \det(\tilde K_A) \prod_i \mathrm{Dir}(A_i; \eta)` is a
determinantal point process of rank :math:`k` on the simplex with features :math:`\phi(a) = \sqrt a`. Its second moment

.. math:: M = E[\phi \phi^\top], \quad M_{ii} = \frac{\eta_i}{\eta_0}, \quad
   M_{ij} = \frac{\Gamma(\eta_i + \frac12) \Gamma(\eta_j + \frac12)}{\Gamma(\eta_i) \Gamma(\eta_j) \, \eta_0}

gives the normaliser :math:`E[\det \tilde K] = k! \det M`, and after whitening the features by :math:`M^{-1/2}` the
:math:`k` rows are a projection process, drawn one at a time by rejection.

References
----------
.. [1] J. B. Hough, M. Krishnapur, Y. Peres and B. Virag, "Determinantal processes and independence", Probability
   Surveys 3, 2006.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pluri.priors.protocol import FloatArray


def expected_determinant(k: int, eta: ArrayLike = 1.0) -> float:
    r"""Mean of :math:`\det \tilde K` over ``k`` independent Dirichlet(``eta``) rows in ``k`` columns.

    For ``eta = 1`` it is :math:`k! \, k^{-k} (1 - \pi/4)^{k-1} (1 + (k-1) \pi/4)`.

    Examples
    --------
    >>> from pluri.priors import expected_determinant
    >>> expected_determinant(2), expected_determinant(3)
    (0.191575, 0.026310)
    """
    sign, log_value = np.linalg.slogdet(_feature_moment(k, eta))
    return float(sign * math.exp(math.lgamma(k + 1) + log_value))


def sample_diverse_rows(k: int, eta: ArrayLike, rng: np.random.Generator) -> FloatArray:
    r"""Draw a ``k`` by ``k`` stochastic matrix from :math:`\det(\tilde K_A) \prod_i \mathrm{Dir}(A_i; \eta)`, exactly.

    Parameters
    ----------
    k : int
        Number of rows and of columns.
    eta : array_like
        Dirichlet concentration of the base measure, one number or one per column, at most 1e4.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray, shape (k, k)
        The rows, in exchangeable order. For ``eta = 1`` row ``i`` (from 0) takes about ``4.7 k / (k - i)`` proposals.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.priors import sample_diverse_rows
    >>> rows = sample_diverse_rows(3, 1.0, np.random.default_rng(0))
    >>> rows.shape, bool(np.allclose(rows.sum(axis=1), 1.0))
    ((3, 3), True)
    """
    moment = _feature_moment(k, eta)
    concentration = np.broadcast_to(np.asarray(eta, dtype=np.float64), (k,))
    spectrum, vectors = np.linalg.eigh(moment)
    whiten = vectors / np.sqrt(spectrum)
    project = np.eye(k)  # on the complement of the whitened features drawn so far
    rows = np.empty((k, k))
    for drawn in range(k):
        # A whitened feature is no longer than 1 / sqrt(smallest eigenvalue), and the mean of its squared length in the
        # complement is k - drawn: the block is about what one acceptance takes.
        block = min(max(4, math.ceil(1.0 / (spectrum[0] * (k - drawn)))), 65536)
        while True:
            proposals = rng.dirichlet(concentration, size=block)
            features = np.sqrt(proposals) @ whiten
            inside = np.einsum("ni,ij,nj->n", features, project, features)
            accepted = np.flatnonzero(rng.random(block) < inside * spectrum[0])
            if accepted.size:
                break
        chosen = accepted[0]
        rows[drawn] = proposals[chosen]
        direction = project @ features[chosen]
        project = project - np.outer(direction, direction) / (features[chosen] @ direction)
    return rows


def _feature_moment(k: int, eta: ArrayLike) -> FloatArray:
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k!r}")
    concentration = np.asarray(eta, dtype=np.float64)
    if concentration.shape not in ((), (k,)) or not ((concentration > 0) & (concentration <= 1e4)).all():
        # Beyond 1e4 the rows are so alike that rounding spoils the smallest eigenvalue, and proposals pass too rarely.
        raise ValueError(f"eta must be a positive number up to 1e4, or {k} of them, got {eta!r}")
    concentration = np.broadcast_to(concentration, (k,))
    half = np.exp([math.lgamma(value + 0.5) - math.lgamma(value) for value in concentration])
    moment = np.outer(half, half) / concentration.sum()
    np.fill_diagonal(moment, concentration / concentration.sum())
    return moment
