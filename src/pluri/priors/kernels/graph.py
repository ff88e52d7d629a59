r"""Kernels of the nodes of a graph: by shortest paths, by diffusion of heat, and by the regularised Laplacian.

.. math:: L_{ij} = q_i \, e^{-\lambda \, \mathrm{dist}(i, j)} \, q_j, \qquad e^{-\tau \Delta}, \qquad
   (I + \sigma \Delta)^{-1},

where :math:`\Delta = D - A` is the Laplacian. The first is **not positive semi-definite** in general, although it is
used as if it were: the complete bipartite graph of three and three nodes has the eigenvalue -0.125 at :math:`\lambda =
0.3`. `repair_kernel` mends it; the other two need no repair.

References
----------
.. [1] R. I. Kondor and J. Lafferty, "Diffusion kernels on graphs and other discrete structures", ICML 2002.
.. [2] A. J. Smola and R. Kondor, "Kernels and regularization on graphs", COLT 2003.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pluri.priors.protocol import FloatArray
from pluri.validation import check_positive


def shortest_path_kernel(
    adjacency: Any, decay: float = 1.0, quality: ArrayLike | str | None = None, *, weighted: bool = False
) -> FloatArray:
    """Kernel that falls exponentially with the length of the shortest path; may need `repair_kernel`.

    Parameters
    ----------
    adjacency : array_like or sparse matrix (n_nodes, n_nodes)
        Symmetric and non-negative; positive entries are edges. Loops are ignored.
    decay : float, default=1.0
        Positive; the similarity falls by ``exp(-decay)`` with each step. Nodes without a path have similarity 0.
    quality : array_like (n_nodes,) or "degree", optional
        Non-negative weights of the nodes, 1 by default. ``"degree"`` is the degree over the largest degree, so that
        isolated nodes have quality 0.
    weighted : bool, default=False
        Whether the entries are lengths of edges; otherwise each edge is one step.

    Returns
    -------
    ndarray (n_nodes, n_nodes)

    Examples
    --------
    >>> from pluri.priors.kernels import shortest_path_kernel
    >>> path = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    >>> shortest_path_kernel(path, decay=1.0, quality="degree").round(4)
    array([[0.25  , 0.1839, 0.0338],
           [0.1839, 1.    , 0.1839],
           [0.0338, 0.1839, 0.25  ]])
    """
    from scipy.sparse.csgraph import shortest_path

    edges = check_adjacency(adjacency)
    decay = check_positive(decay, "decay")
    distances = shortest_path(edges, directed=False, unweighted=not weighted)
    similarity = np.exp(-decay * distances)  # exp(-inf) = 0 without a path
    return _with_quality(0.5 * (similarity + similarity.T), edges, quality)


def heat_kernel(adjacency: Any, time: float = 1.0, quality: ArrayLike | str | None = None) -> FloatArray:
    """Share of the heat at one node that reaches another within a time; positive definite.

    Parameters
    ----------
    adjacency : array_like or sparse matrix (n_nodes, n_nodes)
        Symmetric, non-negative conductances of edges. Loops are ignored.
    time : float, default=1.0
        Positive; the longer, the more alike connected nodes are.
    quality : array_like (n_nodes,) or "degree", optional
        If given, the kernel is scaled to unit diagonal and then multiplied by the qualities of both nodes. Without, the
        rows of the kernel sum to 1.

    Returns
    -------
    ndarray (n_nodes, n_nodes)

    Examples
    --------
    >>> from pluri.priors.kernels import heat_kernel
    >>> heat_kernel([[0, 1], [1, 0]], time=1.0).round(4)
    array([[0.5677, 0.4323],
           [0.4323, 0.5677]])
    """
    time = check_positive(time, "time")
    return _spectral_kernel(adjacency, lambda spectrum: np.exp(-time * spectrum), quality)


def regularized_laplacian_kernel(
    adjacency: Any, strength: float = 1.0, quality: ArrayLike | str | None = None
) -> FloatArray:
    """Inverse of ``I + strength * Laplacian``; positive definite, with a longer reach than `heat_kernel`.

    Parameters
    ----------
    adjacency : array_like or sparse matrix (n_nodes, n_nodes)
        Symmetric, non-negative weights of edges. Loops are ignored.
    strength : float, default=1.0
        Positive; the larger, the more alike connected nodes are.
    quality : array_like (n_nodes,) or "degree", optional
        As in `heat_kernel`.

    Returns
    -------
    ndarray (n_nodes, n_nodes)

    Examples
    --------
    >>> from pluri.priors.kernels import regularized_laplacian_kernel
    >>> regularized_laplacian_kernel([[0, 1], [1, 0]], strength=1.0).round(4)
    array([[0.6667, 0.3333],
           [0.3333, 0.6667]])
    """
    strength = check_positive(strength, "strength")
    return _spectral_kernel(adjacency, lambda spectrum: 1.0 / (1.0 + strength * spectrum), quality)


def check_adjacency(adjacency: Any) -> FloatArray:
    """A symmetric, non-negative matrix without loops, or one sentence about what is wrong."""
    edges = np.array(adjacency.toarray() if hasattr(adjacency, "toarray") else adjacency, dtype=np.float64)
    if edges.ndim != 2 or edges.shape[0] != edges.shape[1] or edges.size == 0:
        raise ValueError(f"adjacency must be a square matrix over the nodes, got shape {edges.shape}")
    if not np.isfinite(edges).all():
        raise ValueError("adjacency must be finite (0 where there is no edge), got NaN or infinity")
    if (edges < 0).any():
        raise ValueError(f"adjacency must be non-negative, got {edges.min():.6g}")
    if not np.allclose(edges, edges.T, rtol=1e-8, atol=0.0):
        raise ValueError("adjacency must be symmetric (an undirected graph), got an edge without its mirror")
    np.fill_diagonal(edges, 0.0)
    return edges


def _spectral_kernel(adjacency: Any, transform: Any, quality: ArrayLike | str | None) -> FloatArray:
    edges = check_adjacency(adjacency)
    spectrum, vectors = np.linalg.eigh(np.diag(edges.sum(axis=1)) - edges)
    kernel = (vectors * transform(np.maximum(spectrum, 0.0))) @ vectors.T
    kernel = 0.5 * (kernel + kernel.T)
    if quality is None:
        return kernel
    roots = np.sqrt(np.diagonal(kernel))
    return _with_quality(kernel / np.outer(roots, roots), edges, quality)


def _with_quality(similarity: FloatArray, edges: FloatArray, quality: ArrayLike | str | None) -> FloatArray:
    if quality is None:
        return similarity
    n_nodes = len(similarity)
    if isinstance(quality, str):
        if quality != "degree":
            raise ValueError(f"quality must be None, 'degree' or a number for each node, got {quality!r}")
        degrees = np.count_nonzero(edges, axis=1).astype(np.float64)
        factors = degrees / max(float(degrees.max()), 1.0)
    else:
        factors = np.asarray(quality, dtype=np.float64)
        if factors.shape != (n_nodes,) or not (np.isfinite(factors).all() and (factors >= 0).all()):
            raise ValueError(
                f"quality must be {n_nodes} finite, non-negative numbers, one for each node, got shape {factors.shape}"
            )
    return similarity * np.outer(factors, factors)
