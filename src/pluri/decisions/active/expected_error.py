r"""Expected error reduction: the row whose label, averaged over what it may be, leaves least error among the others.

For a candidate x and each class y a model is fitted with (x, y) added, and asked about all other rows [1]_:

.. math:: -\sum_y P(y \mid x) \; \frac{1}{n} \sum_u \ell\bigl(P_{+(x, y)}(\cdot \mid u)\bigr)

where the loss is the entropy, or one minus the largest probability. It needs a fit for each candidate and class: for
small pools and quick models.

References
----------
.. [1] Roy, N. & McCallum, A. (2001). Toward optimal active learning through sampling estimation of error reduction.
   ICML.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr
from sklearn.base import clone

from pluri.decisions.active.rows import count_rows, indexable, join, take
from pluri.validation import Only, RandomState, Whole, as_generator, check_value

Array = NDArray[np.float64]


def expected_error_scores(
    estimator: Any,
    X: Any,
    *,
    X_labelled: Any,
    y_labelled: ArrayLike,
    loss: str = "log",
    n_candidates: int | None = None,
    n_reference: int | None = None,
    random_state: RandomState = None,
) -> Array:
    """Minus the error that is expected to be left when a row has got its label.

    Parameters
    ----------
    estimator : classifier
        With ``predict_proba``; copies of it are fitted, one for each candidate and class.
    X : rows of the pool
    X_labelled, y_labelled : rows with labels
    loss : {"log", "zero_one"}, default="log"
        Entropy of the probabilities of a row, or one minus the largest of them.
    n_candidates : int, optional
        Candidates to try, drawn at random; all rows by default. Others get minus infinity.
    n_reference : int, optional
        Rows of the pool, drawn at random, over which the error is averaged; all by default.
    random_state : int, Generator, RandomState or None

    Returns
    -------
    ndarray of shape (n_samples,)
        The larger, the sooner the row is to be labelled.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from pluri.decisions import expected_error_scores
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 5.0], [1.0, 5.0]])
    >>> scores = expected_error_scores(
    ...     LogisticRegression(), X, X_labelled=[[0.0, 0.0], [1.0, 0.0]], y_labelled=["low", "high"]
    ... )
    >>> bool(scores[2:].min() > scores[:2].max())  # of the second column nothing is known yet
    True
    """
    check_value(loss, "loss", Only("log", "zero_one"))
    for name, value in (("n_candidates", n_candidates), ("n_reference", n_reference)):
        check_value(value, name, Whole(1) | Only(None))
    rng = as_generator(random_state)
    X, labels = indexable(X), np.asarray(y_labelled)
    n_rows = count_rows(X, "X")
    tried = _some(n_rows, n_candidates, rng)
    reference = take(X, _some(n_rows, n_reference, rng))
    model = clone(estimator).fit(X_labelled, labels)
    scores = np.full(n_rows, -np.inf)
    for row, P in zip(tried, model.predict_proba(take(X, tried))):
        longer = join(indexable(X_labelled), take(X, [row]))
        scores[row] = -sum(
            weight * _risk(clone(estimator).fit(longer, np.append(labels, label)).predict_proba(reference), loss)
            for weight, label in zip(P, model.classes_)
            if weight > 0
        )
    return scores


def _some(n_rows: int, wanted: int | None, rng: np.random.Generator) -> NDArray[np.int64]:
    if wanted is None or wanted >= n_rows:
        return np.arange(n_rows)
    return np.sort(rng.choice(n_rows, wanted, replace=False))


def _risk(P: Array, loss: str) -> float:
    return float(entr(P).sum(axis=1).mean() if loss == "log" else (1.0 - P.max(axis=1)).mean())
