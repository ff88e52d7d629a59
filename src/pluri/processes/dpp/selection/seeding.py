r"""First centres for clustering, drawn so that they lie apart.

A determinantal point process of fixed size draws rows that are not alike, so that each group of rows is likely to have
one of them. With a number of groups that is not known, the kernel

.. math:: L = o \, D^{-1/2} S D^{-1/2}, \qquad D_{ii} = \sum_j S_{ij}

has the eigenvalue o once for each group that does not resemble the others, however many rows it has: the group is hit
with probability :math:`o / (1 + o)`, and the number of rows drawn estimates the number of groups.

References
----------
.. [1] B. Kang, "Fast determinantal point process sampling with application to clustering", NeurIPS 2013.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from pluri.processes.dpp.kernel_forms import Array, FeatureKernel, KernelForm
from pluri.processes.dpp.selection.row_choice import choose_rows, distribution_of_rows, kernel_of_rows, number_of_rows
from pluri.validation import RandomState, as_generator

#: Rows whose similarities are summed together.
CHUNK = 1024


def diverse_seeds(
    X: Any,
    n_clusters: int | None = None,
    random_state: RandomState = None,
    *,
    kernel: str | Callable[..., Any] = "rbf",
    kernel_params: dict[str, Any] | None = None,
    method: str = "exact",
    odds: float = 10.0,
) -> NDArray[Any]:
    """Rows that lie apart, as first centres of clusters: ``KMeans(n_clusters, init=diverse_seeds, n_init=1)``.

    Parameters
    ----------
    X : array_like or sparse matrix (n_rows, n_features)
        The rows.
    n_clusters : int, optional
        Number of centres. Without it the number is random, and estimates how many groups of rows there are; the length
        scale of "rbf" must then be given: about ten times the spread (standard deviation) of a group, and well below
        the distance between groups.
    random_state : int, Generator, RandomState or None
        Source of randomness.
    kernel : {"rbf", "cosine", "linear", "exponential_cosine"} or callable, default="rbf"
        Similarity of rows; all but "rbf" take sparse rows.
    kernel_params : dict, optional
        Parameters of the kernel, such as ``{"length_scale": 2.0}``; the median distance of rows is the default length
        scale of "rbf". (`functools.partial` gives them to a function that scikit-learn calls.)
    method : {"exact", "map", "mcmc"}, default="exact"
        A random draw, the greedy choice (the same every time), or a draw by a Markov chain.
    odds : float, default=10
        Odds that a group is hit, where the number is random; higher ones also hit wide groups twice.

    Returns
    -------
    ndarray (n_clusters, n_features)
        Rows of X.

    Notes
    -----
    Groups of few rows are missed less often than by rows drawn at random. For plain k-means of dense rows
    scikit-learn's own "k-means++", which tries several rows for each centre and keeps the best, mostly ends
    lower still.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp import diverse_seeds
    >>> X = np.array([[0.0], [0.1], [0.2], [8.0], [8.1], [16.0]])
    >>> diverse_seeds(X, 3, random_state=0).ravel()
    array([ 0. ,  8.1, 16. ])
    >>> diverse_seeds(X, kernel_params={"length_scale": 1.0}, random_state=2).ravel()
    array([ 0. ,  8.1, 16. ])
    """
    rows = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    if n_clusters is not None and (isinstance(n_clusters, bool) or int(n_clusters) != n_clusters):
        raise ValueError(f"n_clusters must be a whole number or None, got {n_clusters!r}")
    size = number_of_rows(n_clusters if n_clusters is None else int(n_clusters), rows.shape[0], "n_clusters")
    quality = None
    if size is None:
        if kernel == "rbf" and "length_scale" not in (kernel_params or {}):
            raise ValueError(
                "kernel_params must give the length_scale of 'rbf' where n_clusters is None: about ten times the "
                "spread of a group"
            )
        if not (np.isfinite(odds) and odds > 0):
            raise ValueError(f"odds must be a positive number, got {odds!r}")
        quality = np.sqrt(odds / _crowd(kernel_of_rows(rows, kernel, kernel_params)))
    distribution = distribution_of_rows(kernel_of_rows(rows, kernel, kernel_params, quality), size)
    chosen = choose_rows(distribution, size, method, as_generator(random_state), name="n_clusters")
    centres = rows[chosen]
    return np.asarray(centres.toarray() if hasattr(centres, "toarray") else centres)


def _crowd(form: KernelForm) -> Array:
    """Sum of the similarities of each row with all rows."""
    if isinstance(form, FeatureKernel):
        total = np.asarray(form.features @ np.asarray(form.features.sum(axis=0)).ravel(), dtype=np.float64)
    else:
        parts = [np.arange(begin, min(begin + CHUNK, form.n_items)) for begin in range(0, form.n_items, CHUNK)]
        total = np.concatenate([form.rows(part).sum(axis=1) for part in parts])
    if not (np.isfinite(total).all() and (total > 0).all()):
        worst = int(np.argmin(total))
        raise ValueError(
            f"kernel must give non-negative similarities where n_clusters is None, got rows whose similarities sum to "
            f"{total[worst]:.3g}, such as row {worst}"
        )
    return total
