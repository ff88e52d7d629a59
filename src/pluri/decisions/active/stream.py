r"""Items that come one by one: each is labelled or let go, and a given share of them is labelled.

An item is asked about if its score exceeds the (1 - q) quantile of the last W scores. With ties broken at random this
is the test that its rank among them, from above, is less than q: if scores are exchangeable the rank is uniform, so
that exactly the share q is asked about on average, from the first item on and whatever the scores are (also if many are
equal). As the model learns and scores fall, the threshold falls with them.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.decisions.active.oracle import CountingOracle, Oracle
from pluri.decisions.active.rows import count_rows, indexable, take
from pluri.validation import Number, Only, RandomState, Whole, as_generator, check_value

Array = NDArray[np.float64]


class StreamQuery:
    """Decide for each item of a stream whether to have it labelled.

    Parameters
    ----------
    share : float, default=0.1
        Of the items that are to be labelled, on average.
    window : int, default=200
        Number of scores that an item is compared with.
    n_queries : int, default=None
        Labels at most; by default no limit.
    random_state : int, numpy Generator, RandomState or None, default=None
        Decides between equal scores.

    Attributes
    ----------
    n_seen_, n_queries_ : int
        Items so far, and those that were to be labelled.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.decisions import StreamQuery
    >>> scores = np.random.default_rng(0).random(2000)
    >>> stream = StreamQuery(share=0.2, random_state=0)
    >>> asked = np.array([stream.decide(score) for score in scores])
    >>> bool(0.17 < asked.mean() < 0.23), bool(scores[asked].mean() > 0.85)
    (True, True)
    """

    def __init__(
        self, share: float = 0.1, window: int = 200, *, n_queries: int | None = None, random_state: RandomState = None
    ) -> None:
        check_value(share, "share", Number(above=0, most=1))
        check_value(window, "window", Whole(1))
        check_value(n_queries, "n_queries", Whole(0) | Only(None))
        self.share, self.window, self.n_queries = float(share), int(window), n_queries
        self._rng = as_generator(random_state)
        self._scores: deque[float] = deque(maxlen=self.window)
        self.n_seen_ = self.n_queries_ = 0

    @property
    def threshold_(self) -> float:
        """The score that an item has to exceed now; minus infinity before the first one."""
        return float(np.quantile(list(self._scores), 1.0 - self.share)) if self._scores else -np.inf

    def decide(self, score: float) -> bool:
        """Whether the next item is to be labelled.

        Parameters
        ----------
        score : float
            By any strategy; the larger, the more useful is the label.
        """
        check_value(score, "score", Number(finite=False))
        known = np.fromiter(self._scores, dtype=np.float64)
        ahead = int((known > score).sum()) + self._rng.random() * (1 + int((known == score).sum()))
        wanted = ahead < self.share * (len(known) + 1)
        self._scores.append(float(score))
        self.n_seen_ += 1
        if not wanted or (self.n_queries is not None and self.n_queries_ >= self.n_queries):
            return False
        self.n_queries_ += 1
        return True

    def run(self, learner: Any, X: Any, oracle: Oracle | ArrayLike) -> NDArray[np.int64]:
        """Offer rows one by one to a learner, which is taught those that are asked about.

        Parameters
        ----------
        learner : ActiveLearner or QueryByCommittee
            With a model: fitted to some labelled rows before.
        X : rows, in the order in which they come
        oracle : callable or array-like
            As in `ActiveLearner.run`.

        Returns
        -------
        ndarray of int
            Rows that were labelled.
        """
        X, asked, found = indexable(X), CountingOracle(oracle), []
        for row in range(count_rows(X, "X")):
            item = take(X, [row])
            if self.decide(float(learner.scores(item)[0])):
                learner.teach(item, asked(np.array([row])))
                found.append(row)
        return np.array(found, dtype=np.int64)
