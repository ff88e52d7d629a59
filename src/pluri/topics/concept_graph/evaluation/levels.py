r"""How the words of a document spread over the nodes of its path.

Level 0 is the last node of the path, level S - 1 the root. Geometric: ``p(l | tau) = (1 - tau)^l / sum_{j<S} (1 -
tau)^j`` with tau ~ Beta(a, b), which is the geometric distribution truncated at the length S of the path. Dirichlet: a
distribution of its own for each document, with concentration a for the last node and b for each above it.

A document's likelihood given its path is an integral over tau, here a sum over :class:`LevelGrid`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from pluri.priors.hyperpriors import Beta

Array = NDArray[np.float64]
#: Nodes of the quadrature in tau; draws from the Dirichlet distribution; and how many of them a first look takes.
N_TAU, N_DRAWS, N_LOOK = 64, 256, 8


def level_distribution(tau: float | Array, length: int) -> Array:
    """Probability of each level of a path: array of shape (..., length).

    Examples
    --------
    >>> from pluri.topics.concept_graph.evaluation.levels import level_distribution
    >>> level_distribution(0.5, 3).round(4)
    array([0.5714, 0.2857, 0.1429])
    """
    weights = (1.0 - np.asarray(tau, dtype=np.float64))[..., None] ** np.arange(length)
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


class LevelGrid(NamedTuple):
    """Distributions of levels that stand for all: an integral over them is a weighted sum.

    Attributes
    ----------
    share : (n_levels, n_points, n_levels)
        ``share[S - 1, q]`` is the distribution of the levels of a path of S nodes at point q.
    log_weight : (n_points,)
    look : int array
        Points that a first, coarse look takes.
    """

    share: Array
    log_weight: Array
    look: NDArray[np.int64]

    @classmethod
    def of(cls, n_levels: int, level_prior: str, tau_prior: Beta) -> LevelGrid:
        """Gauss-Legendre nodes in the quantiles of tau; draws, always the same, from a Dirichlet prior."""
        a, b = tau_prior.a, tau_prior.b
        if level_prior == "dirichlet":
            rng = np.random.default_rng(0)
            share = np.zeros((n_levels, N_DRAWS, n_levels))
            for length in range(1, n_levels + 1):
                concentration = np.where(np.arange(length) == 0, a, b)
                share[length - 1, :, :length] = rng.dirichlet(concentration, size=N_DRAWS)
            return cls(share, np.full(N_DRAWS, -np.log(N_DRAWS)), np.arange(0, N_DRAWS, N_DRAWS // (4 * N_LOOK)))
        place, weight = np.polynomial.legendre.leggauss(N_TAU)
        tau = np.clip(betaincinv(a, b, 0.5 * (place + 1.0)), 1e-12, 1 - 1e-12)
        share = np.zeros((n_levels, N_TAU, n_levels))
        for length in range(1, n_levels + 1):
            share[length - 1, :, :length] = level_distribution(tau, length)
        return cls(share, np.log(0.5 * weight), np.arange(N_TAU // (2 * N_LOOK), N_TAU, N_TAU // N_LOOK))
