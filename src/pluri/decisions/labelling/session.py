"""A session of labelling: the next item at once, every answer kept at once, and a model that learns meanwhile.

What is shown next comes from the last model that is ready; the next one is fitted in a thread of its own, and nobody
waits for it. Before there is a model, items that differ from each other are shown. The learning curve is the accuracy
by cross-validation within the labelled items: these were chosen to be difficult, so that other items are mostly easier.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections import Counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score

from pluri.decisions.active.learner import ActiveLearner
from pluri.decisions.active.rows import take
from pluri.decisions.labelling.journal import LabelJournal
from pluri.decisions.labelling.pool import LabelPool
from pluri.validation import RandomState, as_generator

#: Items that a model chooses at a time, diverse ones: enough until the next model is ready.
AHEAD = 10
#: A point of the curve for so many more labels, or this share more.
LEAST_STEP, STEP_SHARE = 5, 0.1
FOLDS = 5


class LabelSession:
    """What is asked and answered, by one person, of one pool.

    Parameters
    ----------
    pool : LabelPool
    classes : list of str
    journal : LabelJournal
    known : dict of int to str, optional
        Labels of rows that are there already.
    strategy : str or callable, default="margin"
        As of `ActiveLearner`.
    estimator : classifier, optional
        By default a logistic regression.
    random_state : int, Generator, RandomState or None

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from pluri.decisions.labelling.journal import LabelJournal
    >>> from pluri.decisions.labelling.pool import LabelPool
    >>> from pluri.decisions.labelling.session import LabelSession
    >>> pool = LabelPool.of_texts(["red apple", "green apple", "red car", "blue car"])
    >>> journal = LabelJournal(pathlib.Path(tempfile.mkdtemp(), "labels.jsonl"), pool.digest, ["fruit", "thing"])
    >>> with LabelSession(pool, ["fruit", "thing"], journal, random_state=0) as session:
    ...     first = session.state()["item"]["row"]
    ...     second = session.answer(first, "fruit")["item"]["row"]
    ...     back = session.take_back()["item"]["row"]
    >>> first != second, first == back
    (True, True)
    """

    def __init__(
        self,
        pool: LabelPool,
        classes: list[str],
        journal: LabelJournal,
        *,
        known: dict[int, str] | None = None,
        strategy: Any = "margin",
        estimator: Any = None,
        random_state: RandomState = None,
    ) -> None:
        self.pool, self.classes, self.journal = pool, list(classes), journal
        self.known = dict(known or {})
        self._check_answers()
        self._rng = as_generator(random_state)
        model = LogisticRegression(max_iter=1000) if estimator is None else estimator
        seed = int(self._rng.integers(2**31))
        self._learner = ActiveLearner(model, strategy, batches="diverse", random_state=seed)
        self._learner._strategy()
        self._changed = threading.Condition()
        self._version, self._closed, self._trouble = 0, False, ""
        self._n_fitted = 0
        self._ranked: list[int] = self._first_rows()
        self._current = self._next()
        self._worker = threading.Thread(target=self._work, name="pluri label", daemon=True)

    def __enter__(self) -> LabelSession:
        self._worker.start()
        with self._changed:
            if self._all_labels():
                self._touch()
        return self

    def __exit__(self, *error: object) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            self.journal.close()

    def state(self) -> dict[str, Any]:
        """What a page shows: the item, counts, and the curve."""
        with self._changed:
            return self._state()

    def answer(self, row: int, label: str | None) -> dict[str, Any]:
        """Label a row, or skip it with None; gives the state after it."""
        with self._changed:
            if self._closed:
                raise ValueError("the session is closed")
            if label is not None and label not in self.classes:
                raise ValueError(f"label must be among {', '.join(self.classes)}, got {label!r}")
            if row != self._current:
                raise LookupError(f"row {row} is not the one that is asked for now")
            self.journal.add(row, label)
            self._current = self._next()
            if label is not None:
                self._touch()
            return self._state()

    def take_back(self) -> dict[str, Any]:
        """Take back the last answer, and ask for that row again; gives the state after it."""
        with self._changed:
            if self._closed:
                raise ValueError("the session is closed")
            last = self.journal.take_back()
            if last is not None:
                if self._current is not None:
                    self._ranked.insert(0, self._current)
                self._current = last.row
                self._touch()
            return self._state()

    def _state(self) -> dict[str, Any]:
        item = None if self._current is None else {"row": self._current, **self.pool.shown[self._current]}
        labels = self._all_labels()
        counts = Counter(labels.values())
        last = self.journal.answers[-1] if self.journal.answers else None
        return {
            "item": item,
            "n_items": len(self.pool),
            "n_labels": len(labels),
            "n_skipped": sum(answer.label is None for answer in self.journal.answers),
            "counts": [counts.get(name, 0) for name in self.classes],
            "last": None if last is None else {"row": last.row, "label": last.label},
            "curve": self.journal.curve,
            "n_fitted": self._n_fitted,
            "trouble": self._trouble,
        }

    def _check_answers(self) -> None:
        for row in [*self.known, *(answer.row for answer in self.journal.answers)]:
            if not 0 <= row < len(self.pool):
                raise ValueError(f"labels must be of rows from 0 to {len(self.pool) - 1}, got row {row}")
        wrong = set(self._all_labels().values()) - set(self.classes)
        if wrong:
            raise ValueError(f"labels must be among {', '.join(self.classes)}, got {', '.join(sorted(wrong))}")

    def _all_labels(self) -> dict[int, str]:
        return self.known | self.journal.labels()

    def _free_rows(self) -> Any:
        free = np.ones(len(self.pool), dtype=bool)
        free[[*self.known, *(answer.row for answer in self.journal.answers)]] = False
        return np.flatnonzero(free)

    def _first_rows(self) -> list[int]:
        """Items that differ from each other."""
        free = self._free_rows()
        if not len(free):
            return []
        chosen = clone(self._learner).query(take(self.pool.features, free), min(AHEAD, len(free)))
        return [int(row) for row in free[chosen]]

    def _next(self) -> int | None:
        """The best item that is still free; a random one if the model is behind."""
        free = self._free_rows()
        known = set(free.tolist())
        while self._ranked:
            row = self._ranked.pop(0)
            if row in known:
                return row
        return int(self._rng.choice(free)) if len(free) else None

    def _touch(self) -> None:
        """Have the worker look at the labels."""
        self._version += 1
        self._changed.notify_all()

    def _work(self) -> None:
        """Fit a model to the labels whenever there are others, until the session is closed."""
        done = 0
        while True:
            with self._changed:
                self._changed.wait_for(lambda seen=done: self._closed or self._version != seen)  # type: ignore[misc]
                if self._closed:
                    return
                done, labels, free = self._version, self._all_labels(), self._free_rows()
                points = list(self.journal.curve)
            try:
                ranked, point, trouble = self._learn(labels, free, points), self._judge(labels, points), ""
            except Exception as error:  # a model that fails must not end the labelling
                ranked, point, trouble = None, None, f"the model could not learn: {error}"
            with self._changed:
                if self._closed:
                    return
                self._trouble = trouble
                if ranked is not None:
                    self._ranked, self._n_fitted = ranked, len(labels)
                if point is not None:
                    self.journal.add_point(*point)

    def _learn(self, labels: dict[int, str], free: Any, points: Any) -> list[int] | None:
        """Rows to ask for next by a model of the labels; None as long as they are of one class."""
        if len(set(labels.values())) < 2 or not len(free):
            return None
        learner = clone(self._learner)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            learner.fit(take(self.pool.features, list(labels)), np.array(list(labels.values())))
            chosen = learner.query(take(self.pool.features, free), min(AHEAD, len(free)))
        return [int(row) for row in free[chosen]]

    def _judge(self, labels: dict[int, str], points: Any) -> tuple[int, float, float] | None:
        """A point of the curve, if there are enough labels more than at the last one."""
        last = max((n for n, _, _ in points), default=0)
        least = min(Counter(labels.values()).values(), default=0)
        if least < 2 or len(set(labels.values())) < 2 or len(labels) - last < max(LEAST_STEP, STEP_SHARE * last):
            return None
        y = np.array(list(labels.values()))
        folds = StratifiedKFold(min(FOLDS, least), shuffle=True, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores = cross_val_score(
                clone(self._learner.estimator), take(self.pool.features, list(labels)), y, cv=folds
            )
        mean = float(np.mean(scores))
        # Of a share of right answers among so many: that of the few folds says little.
        return len(y), mean, math.sqrt(max(mean * (1 - mean), 0.25 / len(y)) / len(y))
