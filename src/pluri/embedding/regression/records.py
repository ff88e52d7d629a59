"""What a regression of rows on coordinates by clusters is made of: priors, moments of the rows, the state of a chain.

    y_i = sum_k b_jk lam_k a_jk (x_ik - mh_jk) + m_j + noise,   j = z(i) ~ sum_j w_j,   noise ~ N(0, I/a0_j),
    x_ik ~ N(mh_jk, 1/sg_jk);   w by sticks V_j ~ Beta(1, alpha), V_J = 1;   P(b_jk = 1) = a / (a + b (K - 1));
    a_jk ~ N(0, I/zt);   m_j ~ N(0, I/g);   mh_j ~ N(0, I);   lam_k fixed, or ~ N(0, 1);
    alpha, a0_j, sg_jk, zt, g ~ Gamma.

Rows y are in R^D, coordinates x in R^K.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.priors import BetaProcess, Gamma

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Position = Mapping[str, NDArray[Any]]


class RegressionPriors(NamedTuple):
    """Priors of a regression of rows on coordinates, for rows and coordinates of order one.

    Attributes
    ----------
    support : which coordinates a cluster uses: their expected number is ``a K / (a + b (K - 1))``
    concentration : of alpha, or its value if that is fixed
    noise, coordinate, loading, mean : of a0, sg, zt and g
    """

    support: BetaProcess = BetaProcess(0.02, 1.0)
    concentration: Gamma | float = Gamma(1.0, 1.0)
    noise: Gamma = Gamma(1.0, 1e-3)
    coordinate: Gamma = Gamma(1.0, 1e-3)
    loading: Gamma = Gamma(1.0, 1.0)
    mean: Gamma = Gamma(1.0, 1.0)


DEFAULT_PRIORS = RegressionPriors()


class Moments(NamedTuple):
    """What the draws need of the rows of each cluster, with t = (x, 1).

    Attributes
    ----------
    counts : (J,): number of rows
    gram : (J, K + 1, K + 1): sums of t t'
    cross : (J, K + 1, D): sums of t y'
    squares : (J,): sums of ||y||^2
    first, second : (J, K): sums of the places of rows in the space of coordinates, and of their squares
    """

    counts: Array
    gram: Array
    cross: Array
    squares: Array
    first: Array
    second: Array


@dataclass(frozen=True, eq=False)
class RegressionState:
    """State of a chain.

    Attributes
    ----------
    position : where it is
    log_density : log density of data and parameters there, labels summed out
    log_joint : (n, J): log weight plus log density of each row under each cluster
    best, best_log_density : the position of highest density after the warm-up, and that density
    kept : positions kept for predictions, after the warm-up
    n_counted : steps after the warm-up
    ranks : (2, n): sums over these of the number of coordinates that the cluster of each row uses, and of its effective
        rank
    """

    position: Position
    log_density: float
    log_joint: Array
    best: Position
    best_log_density: float
    kept: tuple[Position, ...]
    n_counted: int
    ranks: Array
