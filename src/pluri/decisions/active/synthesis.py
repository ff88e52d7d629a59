"""Membership queries: an item that is in no pool, made up where the model would learn most from its label."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

from pluri.validation import RandomState, as_generator, check_count

Array = NDArray[np.float64]

#: Points from which the search goes on along the gradient.
N_STARTS = 3


def synthesize(
    score: Callable[[Array], Any] | Any,
    bounds: ArrayLike,
    *,
    n_candidates: int = 1000,
    random_state: RandomState = None,
) -> Array:
    """The point of a box with the highest score.

    The best of random points, and what L-BFGS-B makes of the best three of them. Scores that are constant in places
    (votes, trees) have no gradient there: of these it is the best random point.

    Parameters
    ----------
    score : callable, or ActiveLearner
        Function of points (n_points, n_features) that gives a score for each; or a fitted learner, whose strategy is
        then the score: one that draws at random ("random", draws of a network) has no highest point.
    bounds : array-like of shape (n_features, 2)
        Least and greatest value of each feature.
    n_candidates : int, default=1000
        Random points.
    random_state : int, numpy Generator, RandomState or None

    Returns
    -------
    ndarray of shape (n_features,)

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.decisions import ActiveLearner, synthesize
    >>> learner = ActiveLearner(strategy="entropy").fit([[0.0, 0.0], [2.0, 2.0]], ["a", "b"])
    >>> point = synthesize(learner, [(0, 2), (0, 2)], random_state=0)
    >>> bool(abs(learner.predict_proba([point])[0, 0] - 0.5) < 1e-3)
    True
    """
    box = np.asarray(bounds, dtype=np.float64)
    if box.ndim != 2 or box.shape[1] != 2 or not box.size or not np.isfinite(box).all():
        raise ValueError(f"bounds must be finite, of shape (n_features, 2), got shape {box.shape}")
    if (box[:, 0] > box[:, 1]).any():
        raise ValueError(
            f"bounds must have the least value first, got {box[(box[:, 0] > box[:, 1]).argmax()].tolist()}"
        )
    check_count(n_candidates, "n_candidates")
    function = score.scores if hasattr(score, "scores") else score
    if not callable(function):
        raise ValueError(f"score must be callable or a learner, got {type(score).__name__}")

    def values(points: Array) -> Array:
        found = np.asarray(function(points), dtype=np.float64)
        if found.shape != (len(points),) or np.isnan(found).any():
            raise ValueError(f"score must give a number for each of {len(points)} points, got shape {found.shape}")
        return found

    points = as_generator(random_state).uniform(box[:, 0], box[:, 1], size=(n_candidates, len(box)))
    first = values(points)
    best, highest = points[first.argmax()], float(first.max())
    for start in points[np.argsort(-first)[:N_STARTS]]:
        found = minimize(lambda x: -float(values(x[None])[0]), start, method="L-BFGS-B", bounds=box)
        if -found.fun > highest:
            best, highest = np.clip(found.x, box[:, 0], box[:, 1]), float(-found.fun)
    return np.asarray(best)
