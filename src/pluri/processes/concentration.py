"""Concentrations of Dirichlet processes: how they are learned, and the Stirling numbers behind the number of clusters.

Given n customers at K tables and a Gamma(a, b) prior (shape, rate), Escobar and West draw ``eta ~ Beta(alpha + 1, n)``
and then alpha from a mixture of two gammas with rate ``b - log eta``. In a hierarchy the concentration of the groups
sees each group's customers and the total number of tables; that of the top level sees tables as customers and dishes as
tables. The number of tables that n customers of one dish sit at, when a new one has weight w, is a sum of independent
coins ``Bernoulli(w / (w + r))``, r = 0, ..., n - 1.

References
----------
Escobar and West (1995), Bayesian density estimation and inference using mixtures, JASA 90.
Teh, Jordan, Beal and Blei (2006), Hierarchical Dirichlet processes, JASA 101.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.priors.hyperpriors import Gamma
from pluri.validation import check_count

Array = NDArray[np.float64]
#: What a concentration is learned under unless something else is said.
CONCENTRATION_PRIOR = Gamma(1.0, 1.0)


def log_stirling(n: int, discount: float = 0.0) -> Array:
    """Logarithms of the (generalised) Stirling numbers ``S(n, k)`` of the first kind, k = 0, ..., n.

    ``S(n + 1, k) = S(n, k - 1) + (n - discount * k) S(n, k)``. With discount 0 they are the unsigned Stirling numbers:
    how many permutations of n have k cycles.

    Parameters
    ----------
    n : int
    discount : float, default=0.0
        At least 0, below 1.

    Returns
    -------
    array of shape (n + 1,)

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes import log_stirling
    >>> np.exp(log_stirling(4)).round()
    array([ 0.,  6., 11.,  6.,  1.])
    """
    check_count(n, "n", 0)
    if not 0 <= discount < 1:
        raise ValueError(f"discount must be at least 0 and below 1, got {discount!r}")
    row = np.full(n + 1, -np.inf)
    row[0] = 0.0
    k = np.arange(n + 1)
    for size in range(n):
        factor = size - discount * k[: size + 2]
        stay = np.full(size + 2, -np.inf)
        np.log(factor, out=stay, where=factor > 0)
        grown = row[: size + 2] + stay
        row[1 : size + 2] = np.logaddexp(row[: size + 1], grown[1:])
        row[0] = -np.inf
    return row


def draw_concentration(
    rng: np.random.Generator, alpha: float, n_customers: int, n_tables: int, prior: Gamma = CONCENTRATION_PRIOR
) -> float:
    """One Gibbs step for the concentration of a Dirichlet process (Escobar and West).

    Parameters
    ----------
    rng : numpy.random.Generator
    alpha : float
        Present concentration.
    n_customers, n_tables : int
        Number of draws and of distinct values among them.
    prior : Gamma, default=Gamma(1.0, 1.0)

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes import draw_concentration
    >>> draw_concentration(np.random.default_rng(0), 1.0, n_customers=100, n_tables=5) > 0
    True
    """
    shape, rate = prior.shape, prior.rate
    if n_customers < 1:
        return float(rng.gamma(shape) / rate)
    eta = rng.beta(alpha + 1, n_customers)
    rate = rate - np.log(eta)
    odds = (shape + n_tables - 1) / (n_customers * rate)
    extra = 0 if rng.random() * (1 + odds) < odds else 1
    return float(rng.gamma(shape + n_tables - extra) / rate)


def draw_group_concentration(
    rng: np.random.Generator,
    alpha: float,
    group_sizes: ArrayLike,
    n_tables: int,
    prior: Gamma = CONCENTRATION_PRIOR,
) -> float:
    """One Gibbs step for the concentration that the groups of a hierarchical Dirichlet process share.

    Parameters
    ----------
    rng : numpy.random.Generator
    alpha : float
        Present concentration.
    group_sizes : array-like of shape (n_groups,)
        Number of customers of each group.
    n_tables : int
        Number of tables in all groups together.
    prior : Gamma, default=Gamma(1.0, 1.0)

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes import draw_group_concentration
    >>> draw_group_concentration(np.random.default_rng(0), 1.0, [50, 70], n_tables=9) > 0
    True
    """
    sizes = np.asarray(group_sizes, dtype=np.float64)
    sizes = sizes[sizes > 0]
    shape, rate = prior.shape, prior.rate
    log_weights = np.log(rng.beta(alpha + 1, sizes))
    successes = rng.random(len(sizes)) * (sizes + alpha) < sizes
    return float(rng.gamma(shape + n_tables - successes.sum()) / (rate - log_weights.sum()))


def draw_table_counts(rng: np.random.Generator, n_customers: ArrayLike, weights: ArrayLike) -> NDArray[np.int64]:
    """Draw at how many tables the customers of each dish sit (the Chinese restaurant table distribution).

    Parameters
    ----------
    rng : numpy.random.Generator
    n_customers : array-like of ints
        Number of customers of each dish.
    weights : array-like that broadcasts with it
        Weight of a new table, concentration times share of the dish.

    Returns
    -------
    array of ints with the shape of `n_customers`
        Zero where there is no customer, otherwise at least one.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes import draw_table_counts
    >>> draw_table_counts(np.random.default_rng(0), [0, 1, 50], 2.0)
    array([0, 1, ...])
    """
    counts = np.asarray(n_customers)
    weight = np.broadcast_to(np.asarray(weights, dtype=np.float64), counts.shape)
    flat = counts.ravel()
    owner = np.repeat(np.arange(flat.size), flat)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(flat) - flat, flat)
    w = weight.ravel()[owner]
    # The first customer always opens a table, even if the weight has underflowed to zero.
    opened = (place == 0) | (rng.random(len(owner)) * (w + place) < w)
    return np.bincount(owner, weights=opened, minlength=flat.size).astype(np.int64).reshape(counts.shape)
