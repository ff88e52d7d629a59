r"""Topics in the plane: near each other where they share words.

The distance of two distributions over words is that of Hellinger, :math:`d^2 = 1 - \sum_w \sqrt{p_w q_w}`, a matter of
one matrix product however many words there are; classical scaling [1]_ finds the plane that keeps the distances best.

References
----------
.. [1] Torgerson, W. S. (1952). Multidimensional scaling: I. Theory and method. Psychometrika 17, 401-419.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

N_PUSHES = 200
#: Points of which all eigenvectors are found as fast as two.
FEW = 40

Array = NDArray[np.float64]


def hellinger_distances(topic_word: ArrayLike) -> Array:
    """Distances between the rows, each a distribution; between 0 and 1.

    Examples
    --------
    >>> from pluri.plotting.topics.topic_map import hellinger_distances
    >>> hellinger_distances([[1.0, 0.0], [0.0, 1.0]])
    array([[0., 1.],
           [1., 0.]])
    """
    roots = np.sqrt(np.asarray(topic_word, dtype=np.float64))
    distances = np.sqrt(np.clip(1.0 - roots @ roots.T, 0.0, 1.0))
    np.fill_diagonal(distances, 0.0)
    return distances


def classical_scaling(distances: ArrayLike) -> Array:
    """Points in the plane whose distances are as near as possible to those given; centred, and with fixed signs.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.plotting.topics.topic_map import classical_scaling
    >>> points = classical_scaling([[0.0, 3.0, 4.0], [3.0, 0.0, 5.0], [4.0, 5.0, 0.0]])
    >>> float(np.hypot(*(points[1] - points[2])))
    5.0
    """
    from scipy.linalg import eigh
    from scipy.sparse.linalg import eigsh

    squares = np.asarray(distances, dtype=np.float64) ** 2
    n_points = len(squares)
    centred = squares - squares.mean(axis=0) - squares.mean(axis=1)[:, None] + squares.mean()
    n_axes = min(2, n_points)
    if n_points < FEW:
        values, vectors = eigh(-centred / 2, subset_by_index=(n_points - n_axes, n_points - 1))
    else:  # two of many: a few products with the matrix; begun somewhere fixed, and not at the centre
        values, vectors = eigsh(-centred / 2, k=2, which="LA", v0=np.cos(np.arange(n_points)))
    points = np.zeros((n_points, 2))
    for axis in range(n_axes):
        vector = vectors[:, -1 - axis]
        # The sign of an eigenvector is arbitrary: the largest coordinate is positive.
        vector = vector * (1.0 if vector[np.argmax(np.abs(vector))] >= 0 else -1.0)
        points[:, axis] = vector * np.sqrt(max(float(values[-1 - axis]), 0.0))
    return points


def bubble_map(points: ArrayLike, share: ArrayLike, *, width: float, height: float) -> tuple[Array, Array]:
    """Circles in a box, with areas in proportion to the shares and pushed apart where they overlap.

    Parameters
    ----------
    points : array-like of shape (n_topics, 2)
        From `classical_scaling`.
    share : array-like of shape (n_topics,)
    width, height : float
        Of the box.

    Returns
    -------
    centres : ndarray of shape (n_topics, 2)
    radii : ndarray of shape (n_topics,)
    """
    places = np.asarray(points, dtype=np.float64)
    weights = np.clip(np.asarray(share, dtype=np.float64), 0.0, None)
    n_topics = len(places)
    # Together the circles cover a quarter of the box, less if one would be too large; none is too small to be hit.
    total, largest = weights.sum() or 1.0, weights.max() or 1.0
    scale = min(0.24 * width * height / np.pi / total, (0.18 * min(width, height)) ** 2 / largest)
    radii = np.maximum(np.sqrt(scale * weights), 0.006 * width)
    low, high = places.min(axis=0), places.max(axis=0)
    extent = np.where(high - low > 1e-9, high - low, 1.0)
    margin = float(radii.max()) + 0.02 * width
    box = np.array([width, height]) - 2 * margin
    # Ranks are mixed in: a few topics far from all others would squeeze the rest into a corner.
    ranks = np.argsort(np.argsort(places, axis=0, kind="stable"), axis=0, kind="stable") / max(n_topics - 1, 1)
    unit = 0.5 * (places - low) / extent + 0.5 * ranks
    unit[:, high - low <= 1e-9] = 0.5
    return _pushed_apart(margin + unit * box, radii, np.array([width, height])), radii


def _pushed_apart(centres: Array, radii: Array, box: Array) -> Array:
    """Move overlapping circles away from each other, little by little, and keep them in the box."""
    places = centres.copy()
    n_circles = len(places)
    gap = 0.004 * box[0]
    first, second = np.triu_indices(n_circles, 1)
    least = radii[first] + radii[second] + gap
    for _ in range(N_PUSHES):
        across, along = (places[first, axis] - places[second, axis] for axis in (0, 1))
        close = np.flatnonzero(across**2 + along**2 < (least - 0.05 * gap) ** 2)
        if len(close) == 0:
            break
        one, other = first[close], second[close]
        distance = np.hypot(across[close], along[close])
        # Circles on one spot part along a direction of their own.
        angle = 2.399963 * (one + other)
        same = distance < 1e-9
        unit = np.stack(
            [
                np.where(same, np.cos(angle), across[close] / np.maximum(distance, 1e-9)),
                np.where(same, np.sin(angle), along[close] / np.maximum(distance, 1e-9)),
            ]
        )
        push = 0.45 * (least[close] - distance) * unit
        for axis in (0, 1):
            places[:, axis] += np.bincount(one, push[axis], n_circles) - np.bincount(other, push[axis], n_circles)
        places = np.clip(places, radii[:, None], box - radii[:, None])
    return places
