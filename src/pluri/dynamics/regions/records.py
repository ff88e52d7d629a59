"""What a flow by regions is made of: priors, transitions, their sums by region, the state of a chain.

    y = M_c t + noise,   t = (x, 1) or x,   c = c_lz,   noise ~ N(0, I/g_l),   x ~ N(m_lz, Q_lz^-1),   z ~ pi_l;
    pi_l by sticks V_lh ~ Beta(1, alpha), V_lH = 1;   c_lh ~ om, by sticks U_j ~ Beta(1, alpha');
    column k of M_j ~ N(0, I/lm_k);   Q_lh ~ Wishart(B0, v0), m_lh | Q_lh ~ N(m0, (u0 Q_lh)^-1);
    alpha, alpha', lm_k, g_l ~ Gamma.

A transition leads from a row x in R^K to the next, y; it is of task l and lies in a region z of that task. Each region
points to one of the matrices M_j, which all tasks share. With a single layer there is one task and region h has the
matrix h of its own. Transitions are modelled as pairs, each by itself: a row is the end of one and the start of
another, and counts for both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.priors import Gamma

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Position = Mapping[str, NDArray[Any]]


class RegionPriors(NamedTuple):
    """Priors of a flow by regions, for rows that are centred and of order one.

    Attributes
    ----------
    concentration, regime_concentration : of alpha and alpha', or their values if they are fixed
    relevance, noise : of lm and g
    strength : u0, how many rows the prior mean of the centre of a region is worth
    extra_freedom : v0 - K; with 2 the prior mean of the covariance of a region is the inverse of B0
    """

    concentration: Gamma | float = Gamma(1.0, 1.0)
    regime_concentration: Gamma | float = Gamma(1.0, 1.0)
    relevance: Gamma = Gamma(1.0, 1.0)
    noise: Gamma = Gamma(1.0, 1e-6)
    strength: float = 0.1
    extra_freedom: float = 2.0


DEFAULT_PRIORS = RegionPriors()


class Moments(NamedTuple):
    """Sums over the transitions of each region, with t = (x, 1).

    Attributes
    ----------
    counts : (L, H): number of transitions
    gram : (L, H, K + 1, K + 1): sums of t t'
    cross : (L, H, K, K + 1): sums of y t'
    squares : (L, H): sums of ||y||^2
    """

    counts: Array
    gram: Array
    cross: Array
    squares: Array


@dataclass(frozen=True, eq=False)
class RegionState:
    """State of a chain.

    Attributes
    ----------
    position : where it is
    log_density : log-likelihood of the transitions there, regions summed out
    edges : (n, H): shares of the regions of each transition, summed up from region to region
    best, best_log_density : the position of highest likelihood after the warm-up, and that likelihood
    kept : positions kept for predictions, after the warm-up
    n_counted : steps after the warm-up
    """

    position: Position
    log_density: float
    edges: Array
    best: Position
    best_log_density: float
    kept: tuple[Position, ...] = ()
    n_counted: int = 0
