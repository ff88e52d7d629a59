"""How good answers are, and where to stop suggesting.

Files with a score above a threshold t are suggested. With n of them, h hits among these, and r files to be found, a
query has the precision h/n, the recall h/r and the f-measure 2h/(n+r). *Macro* averages over queries (an empty answer
counts as zero), *micro* adds up h, n and r first. The correct prediction ratio (CPR, or R-precision) is the share of
hits among the r best, whatever the threshold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.cochange.queries import Answers
from pluri.validation import Only, check_value

Array = NDArray[np.float64]
AVERAGES = ("macro", "micro")


@dataclass(frozen=True, eq=False)
class QueryScores:
    """Figures of each query: ``n_suggested``, ``n_hits``, ``precision``, ``recall``, ``f``, ``cpr``."""

    n_suggested: NDArray[np.int64]
    n_hits: NDArray[np.int64]
    precision: Array
    recall: Array
    f: Array
    cpr: Array


class Threshold(NamedTuple):
    """A threshold and the f-measure that it reaches on the queries it was chosen by."""

    value: float
    f: float


def score_queries(answers: Answers, threshold: float) -> QueryScores:
    """Figures of each query at a threshold.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.cochange.queries import Answers
    >>> from pluri.cochange.scoring import score_queries
    >>> answers = Answers(np.array([[0.9, 0.5, 0.1]]), np.array([[True, False, True]]), np.array([2]))
    >>> scores = score_queries(answers, 0.3)
    >>> scores.precision, scores.recall, scores.f, scores.cpr
    (array([0.5]), array([0.5]), array([0.5]), array([0.5]))
    """
    suggested = answers.scores > threshold
    n_suggested = suggested.sum(axis=1)
    n_hits = (suggested & answers.hits).sum(axis=1)
    places = np.arange(answers.scores.shape[1])
    first = places[None, :] < answers.n_labels[:, None]
    return QueryScores(
        n_suggested,
        n_hits,
        n_hits / np.maximum(n_suggested, 1),
        n_hits / answers.n_labels,
        2 * n_hits / (n_suggested + answers.n_labels),
        (answers.hits & first).sum(axis=1) / answers.n_labels,
    )


def recall_at(answers: Answers, n: int) -> Array:
    """Share of the files to be found that are among the first `n`, for each query.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.cochange.queries import Answers
    >>> from pluri.cochange.scoring import recall_at
    >>> recall_at(Answers(np.array([[0.9, 0.5, 0.1]]), np.array([[True, False, True]]), np.array([2])), 2)
    array([0.5])
    """
    shares: Array = answers.hits[:, :n].sum(axis=1) / answers.n_labels
    return shares


def best_threshold(answers: Answers, average: str = "macro") -> Threshold:
    """The threshold with the largest f-measure, of all there are.

    The f-measure changes only where the score of some file is passed: with all scores of all queries in falling order,
    a running sum of the changes gives it everywhere.

    Parameters
    ----------
    answers : Answers
    average : {"macro", "micro"}, default="macro"

    Returns
    -------
    Threshold
        Half-way between two scores, so that equal scores are never divided.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.cochange.queries import Answers
    >>> from pluri.cochange.scoring import best_threshold
    >>> answers = Answers(np.array([[0.9, 0.5, 0.1]]), np.array([[True, True, False]]), np.array([2]))
    >>> best_threshold(answers)
    Threshold(value=0.3, f=1.0)
    """
    check_value(average, "average", Only(*AVERAGES))
    if len(answers) == 0:
        raise ValueError("answers must hold at least one query, got none")
    hits = answers.hits.cumsum(axis=1)
    places = np.arange(1, answers.scores.shape[1] + 1)
    real = np.isfinite(answers.scores)
    if average == "macro":
        f = 2 * hits / (places[None, :] + answers.n_labels[:, None])
        steps = np.diff(f, axis=1, prepend=0.0)[real] / len(answers)
    else:
        steps = answers.hits[real].astype(np.float64)
    scores = answers.scores[real]
    if scores.size == 0:
        return Threshold(0.0, 0.0)
    order = np.argsort(-scores, kind="stable")
    scores, total = scores[order], np.cumsum(steps[order])
    if average == "micro":
        total = 2 * total / (np.arange(1, len(total) + 1) + answers.n_labels.sum())
    last = np.append(scores[:-1] > scores[1:], True)  # only after the last of equal scores
    best = int(np.flatnonzero(last)[np.argmax(total[last])])
    upper = float(scores[best])
    lower = float(scores[best + 1]) if best + 1 < len(scores) else 0.0 if upper > 0 else upper - 1.0
    return Threshold(_between(lower, upper), float(total[best]))


def _between(lower: float, upper: float) -> float:
    """A number below `upper`, and not below `lower`."""
    middle = 0.5 * (lower + upper)
    return middle if middle < upper else lower
