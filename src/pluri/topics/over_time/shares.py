r"""Shares of topics in each period, with error bars, from documents that come in batches.

The share of a topic in a period is the mean of its shares in the documents of the period: a long document counts as
much as a short one. Its error is :math:`s / \sqrt n`, where the variance of a single document is that of the period,
drawn towards the variance over all periods as if five further documents had it: a week of two documents has an error
too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.engine.extras import import_pandas
from pluri.topics.over_time.periods import (
    Days,
    Integers,
    Period,
    as_days,
    check_period,
    period_names,
    period_numbers,
    period_starts,
)
from pluri.validation import is_source

Array = NDArray[np.float64]

#: Documents, or groups of them, that are kept for tests; when there are more, groups of twice the size replace them.
MOST_GROUPS = 20_000
#: Documents as many as these stand for the variance over all periods.
BORROWED = 5
#: Documents that are looked at together.
BATCH = 4096


@dataclass(frozen=True, eq=False, repr=False)
class SharesOverTime:
    """Shares of topics in periods.

    Attributes
    ----------
    period : "day", "week", "month", "quarter" or "year"
    starts : datetime64 array of shape (n_periods,)
        First day of each period; those without documents are there too.
    n_documents : int array of shape (n_periods,)
    shares, errors : arrays of shape (n_periods, n_topics)
        Mean over the documents, and its standard error; NaN where there are none.
    n_undated : documents whose date is not known
    """

    period: Period
    starts: Days
    n_documents: Integers
    shares: Array
    errors: Array
    n_undated: int = 0

    def __repr__(self) -> str:
        (n_periods, n_topics), names = self.shares.shape, self.names
        span = self.period + (f"s, {names[0]} to {names[-1]}" if n_periods > 1 else f", {names[0]}")
        return f"<shares of {n_topics} topics in {n_periods} {span}>"

    @property
    def names(self) -> list[str]:
        """Periods as text."""
        return period_names(self.starts, self.period)

    def to_frame(self) -> Any:
        """A pandas data frame: a row for each period and topic, with share, error and number of documents."""
        pd = import_pandas()
        n_periods, n_topics = self.shares.shape
        return pd.DataFrame(
            {
                "start": np.repeat(self.starts, n_topics),
                "topic": np.tile(np.arange(n_topics), n_periods),
                "share": self.shares.ravel(),
                "error": self.errors.ravel(),
                "documents": np.repeat(self.n_documents, n_topics),
            }
        )


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of equally many documents of the same period, which may change places if nothing changes over time.

    Attributes
    ----------
    values : array of shape (n_groups, n_topics)
        Mean shares of their documents.
    periods : int array of shape (n_groups,)
        In ascending order, from 0.
    size : documents of each group
    n_periods : int
    """

    values: Array
    periods: Integers
    size: int
    n_periods: int


class ShareSums:
    """Collects shares of documents, batch by batch, in memory that does not grow with their number.

    Parameters
    ----------
    n_topics : int
    """

    def __init__(self, n_topics: int) -> None:
        self._n_topics = n_topics
        self._sums: dict[int, tuple[int, Array, Array]] = {}
        self._size = 1
        self._values: list[Array] = []
        self._periods: list[Integers] = []
        self._n_groups = 0
        self._waiting: dict[int, list[Array]] = {}

    def add(self, shares: Array, numbers: Integers) -> None:
        """Take the shares (documents x topics) of documents in periods of these numbers."""
        for number in np.unique(numbers):
            own = shares[numbers == number]
            count, total, squares = self._sums.get(int(number), (0, 0.0, 0.0))
            self._sums[int(number)] = count + len(own), total + own.sum(axis=0), squares + (own**2).sum(axis=0)
            self._group(int(number), own)
        while self._n_groups > MOST_GROUPS:
            self._double()

    def _group(self, number: int, rows: Array) -> None:
        """Put documents into groups; those that are too few for another one wait for more."""
        rows = np.concatenate([*self._waiting.pop(number, []), rows])
        n_whole = len(rows) // self._size
        if n_whole:
            whole = rows[: n_whole * self._size].reshape(n_whole, self._size, -1).mean(axis=1)
            self._values.append(whole)
            self._periods.append(np.full(n_whole, number))
            self._n_groups += n_whole
        if len(rows) > n_whole * self._size:
            self._waiting[number] = [rows[n_whole * self._size :]]

    def _double(self) -> None:
        """Join pairs of groups of the same period; one that is alone becomes documents that wait."""
        values, periods = np.concatenate(self._values), np.concatenate(self._periods)
        self._values, self._periods, self._n_groups = [], [], 0
        for number in np.unique(periods):
            own = values[periods == number]
            pairs = len(own) // 2
            if pairs:
                self._values.append(own[: 2 * pairs].reshape(pairs, 2, -1).mean(axis=1))
                self._periods.append(np.full(pairs, number))
                self._n_groups += pairs
            if len(own) % 2:
                alone = np.repeat(own[-1:], self._size, axis=0)
                self._waiting.setdefault(int(number), []).append(alone)
        self._size *= 2

    def _numbers(self) -> Integers:
        if not self._sums:
            raise ValueError("dates must have at least one that is known, got none")
        return np.arange(min(self._sums), max(self._sums) + 1)

    def groups(self) -> Groups:
        """Groups of documents, by period."""
        first, n_periods = self._numbers()[0], len(self._numbers())
        periods = np.concatenate([*self._periods, np.zeros(0, dtype=np.int64)]).astype(np.int64) - first
        values = np.concatenate([*self._values, np.zeros((0, self._n_topics))])
        order = np.argsort(periods, kind="stable")
        return Groups(values[order], periods[order], self._size, n_periods)

    def shares(self, period: Period, n_undated: int = 0) -> SharesOverTime:
        """Shares of each period from the first to the last."""
        numbers = self._numbers()
        nothing = (0, np.zeros(self._n_topics), np.zeros(self._n_topics))
        parts = [self._sums.get(int(number), nothing) for number in numbers]
        count = np.array([part[0] for part in parts], dtype=np.int64)
        total, squares = (np.array([part[place] for part in parts]) for place in (1, 2))
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = total / count[:, None]
            within = squares - np.nan_to_num(mean) * total
            overall = (squares.sum(axis=0) - total.sum(axis=0) ** 2 / count.sum()) / max(count.sum() - 1, 1)
            degrees = np.maximum(count - 1, 0)[:, None]
            variance = (np.maximum(within, 0.0) + BORROWED * np.maximum(overall, 0.0)) / (degrees + BORROWED)
            errors = np.sqrt(variance / count[:, None])
        errors[count == 0] = np.nan
        return SharesOverTime(period, period_starts(numbers, period), count, mean, errors, n_undated)


def dated_batches(model: Any, X: Any, days: Days, shares: Any = None) -> Iterator[tuple[Any, Array, slice]]:
    """Counts, shares and rows of some documents at a time, of a matrix or of a source larger than memory."""
    if is_source(X):
        begin = 0
        for item in X.batches():
            counts = item.load().X
            rows = slice(begin, begin + counts.shape[0])
            begin = rows.stop
            found = model.transform(counts) if shares is None else shares[rows]
            yield counts, np.asarray(found, dtype=np.float64), rows
        n_documents = begin
    else:
        from pluri.topics.documents import check_documents

        counts = check_documents(model, X, whole=False, reset=False, whom="transform", empty="ignore")
        n_documents = counts.shape[0]
        if n_documents != len(days):
            raise ValueError(f"dates must have one for each of {n_documents} documents, got {len(days)}")
        found = np.asarray(model.transform(X) if shares is None else shares, dtype=np.float64)
        if found.shape != (n_documents, len(model.topic_word_)):
            raise ValueError(
                f"shares must have a row for each of {n_documents} documents and a column for each of "
                f"{len(model.topic_word_)} topics, got {found.shape}"
            )
        for begin in range(0, n_documents, BATCH):
            rows = slice(begin, min(begin + BATCH, n_documents))
            yield counts[rows], found[rows], rows
    if n_documents != len(days):
        raise ValueError(f"dates must have one for each of {n_documents} documents, got {len(days)}")


def topic_shares_over_time(
    model: Any, X: Any, dates: Any, *, period: Period = "week", shares: Any = None
) -> SharesOverTime:
    """Share of each topic in each day, week, month, quarter or year, with its standard error.

    Parameters
    ----------
    model : TopicModel
        Fitted.
    X : array-like, sparse matrix of shape (n_documents, n_words), or Source
        Counts of words.
    dates : array-like of shape (n_documents,)
        As NumPy, pandas, polars or Python have them, or texts that begin like 2024-03-31. Documents without a date are
        left out, and counted.
    period : {"day", "week", "month", "quarter", "year"}, default="week"
        Weeks begin on Monday.
    shares : array-like of shape (n_documents, n_topics), optional
        What ``model.transform(X)`` gives, if that is known already.

    Returns
    -------
    SharesOverTime

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.topics import LatentDirichletAllocation, topic_shares_over_time
    >>> X = np.repeat([[4, 4, 0, 0], [0, 0, 4, 4]], [15, 15], axis=0)
    >>> dates = np.repeat(["2024-01-01", "2024-01-09"], 15)
    >>> model = LatentDirichletAllocation(2, inference="gibbs", random_state=0).fit(X)
    >>> found = topic_shares_over_time(model, X, dates)
    >>> found.names, bool(np.ptp(found.shares, axis=0).min() > 0.8)
    (['2024-01-01', '2024-01-08'], True)
    """
    check_period(period)
    days = as_days(dates)
    sums = ShareSums(len(model.topic_word_))
    for _, found, rows in dated_batches(model, X, days, shares):
        known = ~np.isnat(days[rows])
        sums.add(found[known], period_numbers(days[rows][known], period))
    return sums.shares(period, int(np.isnat(days).sum()))
