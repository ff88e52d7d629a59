"""The loop of active learning: score the pool, ask for labels, learn from them, and again.

.. code-block:: text

    fit on the labelled rows -> score the pool -> ask the oracle for the best rows -> move them over -> repeat

until `n_queries` labels are there, the pool is empty, or no row is uncertain enough. Labels are kept, and written to
the checkpoint, before a model learns from them: Ctrl-C, an oracle that fails and a fit that fails lose none.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier

from pluri.decisions.active.oracle import CountingOracle, Oracle, check_known, joined_labels
from pluri.decisions.active.rows import check_disjoint, count_rows, fingerprint, indexable, join, take
from pluri.decisions.active.run_file import labels_like, plain_labels, read_run, write_run
from pluri.progress import Step, open_progress
from pluri.validation import check_parameters
from pluri.validation.interrupt_pauses import whole_pieces

Indices = NDArray[np.int64]


class PoolRun:
    """The loop, for a learner that can choose rows and be taught."""

    estimator: Any
    batch_size: int
    batches: str
    n_queries: int | None
    min_score: float | None
    checkpoint: str | os.PathLike[str] | None
    classes: Any
    verbose: int
    seed_: int
    X_: Any
    y_: NDArray[Any]
    queried_: Indices
    history_: dict[str, list[float]]
    pool_: str
    n_start_: int
    #: What the learner does: fit to all labels, choose rows, keep rows, give its model, strategy and generator.
    _check_estimator: Callable[[], None]
    _learn: Callable[[], None]
    _inner: Callable[[], Any]
    _strategy: Callable[[], Any]
    _generator: Callable[[], np.random.Generator]
    _keep: Callable[[Any, NDArray[Any]], None]
    _choose: Callable[[Any, int, np.random.Generator], tuple[Indices, NDArray[np.float64]]]

    def run(
        self,
        X_pool: Any,
        oracle: Oracle | ArrayLike,
        X_eval: Any = None,
        y_eval: Any = None,
        *,
        check_rows: bool = True,
    ) -> Self:
        """Ask for labels of the pool and learn from them, until all are there or nothing is uncertain enough.

        Called again with the same pool it goes on: nothing is asked for twice, and `n_queries` counts all calls.

        Parameters
        ----------
        X_pool : rows without labels
        oracle : callable or array-like of shape (n_pool,)
            Function of the numbers of rows (an integer array) that gives their labels; or the labels of all rows, of
            which only those asked for are looked at.
        X_eval, y_eval : rows with labels, optional
            To judge the model by after every batch; none of them may be in the pool.
        check_rows : bool, default=True
            Whether it is an error if a row of `X_eval` is equal to one of the pool.

        Returns
        -------
        self : object
            With `history_` and `queried_`.
        """
        check_parameters(self)
        self._check_estimator()
        X_pool, asked = indexable(X_pool), CountingOracle(oracle)
        n_rows = count_rows(X_pool)
        if n_rows == 0:
            raise ValueError("X_pool must have at least one row, got none")
        if asked.n_known is not None and asked.n_known != n_rows:
            raise ValueError(f"oracle must have a label for each of the {n_rows} rows of X_pool, got {asked.n_known}")
        if (X_eval is None) != (y_eval is None):
            raise ValueError("X_eval and y_eval must be given together, got one of them")
        if X_eval is not None and check_rows:
            check_disjoint(X_pool, X_eval)
        with whole_pieces():
            about = self._begin(X_pool)
        most = n_rows if self.n_queries is None else min(self.n_queries, n_rows)
        with open_progress(self.verbose) as report:
            self._learn()
            while True:
                score = self._evaluate(X_eval, y_eval)
                entry = {"n_labels": len(self.queried_) + self.n_start_, "n_queries": len(self.queried_)}
                with whole_pieces():
                    self._record(entry | {"score": score, "max_score": math.nan})
                batch = self._next_batch(X_pool, most)
                reason = None if batch.size else "nothing left to ask"
                report(Step(len(self.queried_), most, score, reason=reason))
                if not batch.size:
                    return self
                labels = asked(batch)
                if is_classifier(self._inner()):
                    check_known(labels, self.classes, "what oracle returns")
                with whole_pieces():
                    self._take_in(X_pool, batch, labels, about)
                self._learn()

    def _begin(self, X_pool: Any) -> dict[str, Any]:
        """Take up a run of the same pool, from memory or from its file, or begin a new one; gives what it is about."""
        pool = fingerprint(X_pool)
        if getattr(self, "pool_", None) != pool:
            self.pool_, self.queried_ = pool, np.empty(0, dtype=np.int64)
            self.history_ = {"n_labels": [], "n_queries": [], "score": [], "max_score": []}
            self.n_start_ = len(getattr(self, "y_", ()))
        self._generator()  # settles the seed
        strategy = self._strategy()
        start = ""
        if self.n_start_:
            first = np.arange(self.n_start_)
            start = fingerprint(take(self.X_, first)) + fingerprint(self.y_[first].astype(str))
        named = strategy if isinstance(strategy, str) else "callable"
        about: dict[str, Any] = {"pool": pool, "start": start, "strategy": named}
        about |= {"batch_size": self.batch_size, "batches": self.batches, "estimator": repr(self.estimator)}
        if self.checkpoint is not None and not len(self.queried_):
            stored = read_run(self.checkpoint, about)
            if stored is not None:
                self._restore(X_pool, stored)
        return about

    def _restore(self, X_pool: Any, stored: dict[str, Any]) -> None:
        self.seed_, self.history_ = int(stored["seed"]), stored["history"]
        rows = np.asarray(stored["queried"], dtype=np.int64)
        if rows.size and not (rows.min() >= 0 and rows.max() < count_rows(X_pool)):
            raise ValueError(f"checkpoint must name rows of X_pool, got row {int(rows.max())}")
        if rows.size:
            known = getattr(self, "y_", None)
            self._append(take(X_pool, rows), labels_like(stored["labels"], known))
        self.queried_ = rows

    def _append(self, X: Any, y: NDArray[Any]) -> None:
        if hasattr(self, "y_"):
            X, y = join(self.X_, X), joined_labels(self.y_, y, "what oracle returns")
        self._keep(X, y)

    def _next_batch(self, X_pool: Any, most: int) -> Indices:
        """Rows to ask for; none if there are enough labels or the best score is too low."""
        size = min(self.batch_size, most - len(self.queried_))
        if size <= 0:
            return np.empty(0, dtype=np.int64)
        free = np.ones(count_rows(X_pool), dtype=bool)
        free[self.queried_] = False
        rows = np.flatnonzero(free)
        chosen, scores = self._choose(take(X_pool, rows), size, self._generator())
        if hasattr(self, "estimator_"):
            best = float(scores.max())
            self.history_["max_score"][-1] = best
            if self.min_score is not None and best < self.min_score:
                return np.empty(0, dtype=np.int64)
        return np.asarray(rows[chosen], dtype=np.int64)

    def _take_in(self, X_pool: Any, batch: Indices, labels: NDArray[Any], about: dict[str, Any]) -> None:
        """Keep labels, here and in the file, before anything is learned from them."""
        self._append(take(X_pool, batch), labels)
        self.queried_ = np.concatenate([self.queried_, batch])
        if self.checkpoint is not None:
            answered = self.y_[-len(self.queried_) :]
            state = {"seed": self.seed_, "queried": self.queried_.tolist(), "labels": plain_labels(answered)}
            write_run(self.checkpoint, about, state | {"history": self.history_})

    def _evaluate(self, X_eval: Any, y_eval: Any) -> float:
        if X_eval is None or not hasattr(self, "estimator_"):
            return math.nan
        return float(self.estimator_.score(X_eval, y_eval))

    def _record(self, entry: dict[str, float]) -> None:
        """A line of the history; it takes the place of one with as many labels, from a run that ended there."""
        lines = self.history_
        if lines["n_labels"] and lines["n_labels"][-1] == entry["n_labels"]:
            for values in lines.values():
                values.pop()
        for name, values in lines.items():
            values.append(entry[name])
