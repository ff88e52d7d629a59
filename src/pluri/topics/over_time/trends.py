"""What changes over time: topics that emerge and fade, with a stated rate of false alarms, and words that drift."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from pluri.topics.over_time.changes import Scan, scan
from pluri.topics.over_time.misfits import LEVELS, Misfits, log_likelihoods
from pluri.topics.over_time.periods import Period, as_days, check_period, period_numbers
from pluri.topics.over_time.records import Misfit, TopicTrends
from pluri.topics.over_time.shares import SharesOverTime, ShareSums, dated_batches
from pluri.topics.over_time.subjects import MOST_SUBJECTS, Subjects
from pluri.topics.over_time.words import WordSums
from pluri.validation import RandomState, as_generator, check_count, is_source

Array = NDArray[np.float64]


def topic_trends(
    model: Any,
    X: Any,
    dates: Any,
    *,
    period: Period = "week",
    false_alarm_rate: float = 0.05,
    n_looks: int | None = None,
    n_reference: int = 8,
    n_permutations: int | None = None,
    shares: Any = None,
    feature_names: ArrayLike | None = None,
    random_state: RandomState = 0,
) -> TopicTrends:
    """Find topics that emerge or fade, and words that drift within their topic.

    For each topic and each period, the share in the last one, two, four and eight periods is compared with that in all
    periods before them. The rate of false alarms is that of all topics, periods and windows together, found by
    permutation of the documents: in a year in which nothing changes, the chance of any alarm at all is at most
    `false_alarm_rate`.

    Parameters
    ----------
    model : TopicModel
        Fitted without the dates.
    X : array-like, sparse matrix of shape (n_documents, n_words), or Source
    dates : array-like of shape (n_documents,)
        See :func:`topic_shares_over_time`.
    period : {"day", "week", "month", "quarter", "year"}, default="week"
    false_alarm_rate : float, default=0.05
    n_looks : int, optional
        Test the last period only, at the rate ``false_alarm_rate / n_looks``. Who looks every week, with all documents
        so far, gives 52: then the rate is that of a year. By default all periods are tested, and the rate is that of
        this call.
    n_reference : int, default=8
        Periods before the first that is tested.
    n_permutations : int, optional
        By default 999, or as many as `n_looks` needs.
    shares : array-like of shape (n_documents, n_topics), optional
        What ``model.transform(X)`` gives, if that is known already.
    feature_names : array-like of str, optional
        Words of the columns, if the model does not know them.
    random_state : int, Generator or None, default=0
        Of the permutations.

    Returns
    -------
    TopicTrends

    Notes
    -----
    The rate is exact if documents are independent of each other and their topics of the time. Weeks that differ from
    each other anyway (ten tickets of one outage) are allowed for by the spread of the weeks before, which is an
    approximation: ``python benchmarks/accuracy/topic_alarms.py`` prints the rate for such weeks too. Seasons are
    changes, and are found as such.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.topics import LatentDirichletAllocation, topic_trends
    >>> rng = np.random.default_rng(0)
    >>> dates = np.datetime64("2024-01-01") + np.repeat(np.arange(0, 140, 7), 30)
    >>> late = dates >= np.datetime64("2024-04-15")
    >>> about = np.where(late & (rng.random(600) < 0.3), 2, rng.integers(0, 2, 600))
    >>> X = rng.multinomial(20, np.kron(np.eye(3), np.full(3, 1 / 3))[about])
    >>> model = LatentDirichletAllocation(3, inference="gibbs", random_state=0).fit(X)
    >>> trends = topic_trends(model, X, dates)
    >>> [(change.since, change.share > 0.2) for change in trends.emerging()]
    [('2024-04-15', True)]
    """
    check_period(period)
    for name, value in (("n_reference", n_reference), ("n_looks", n_looks), ("n_permutations", n_permutations)):
        if value is not None:
            check_count(value, name)
    if not 0 < false_alarm_rate < 1:
        raise ValueError(f"false_alarm_rate must lie between 0 and 1, got {false_alarm_rate!r}")
    collected = TrendSums(model, period)
    days = as_days(dates)
    if not is_source(X):
        collected.calibrate(list(dated_batches(model, X, days, shares)))
    for counts, found, rows in dated_batches(model, X, days, shares):
        collected.add(counts, found, days[rows])
    return collected.trends(
        false_alarm_rate, n_looks=n_looks, n_reference=n_reference, n_permutations=n_permutations,
        feature_names=feature_names, rng=as_generator(random_state),
    )  # fmt: skip


class TrendSums:
    """What :func:`topic_trends` needs of documents, collected batch by batch.

    Parameters
    ----------
    model : TopicModel
    period : str
    """

    def __init__(self, model: Any, period: Period) -> None:
        self._model, self._period = model, period
        self._shares = ShareSums(len(model.topic_word_) + len(LEVELS) + MOST_SUBJECTS)
        self._words, self._misfits = WordSums(model.topic_word_), Misfits(model.topic_word_)
        self._subjects = Subjects(model.topic_word_)
        self._n_undated = 0

    def calibrate(self, batches: list[Any]) -> None:
        """Learn what is usual from documents that are all in memory, and look for subjects without a topic.

        Where documents come in batches the first one says what is usual, and no subjects are looked for.
        """
        parts = [log_likelihoods(counts, shares, self._model.topic_word_) for counts, shares, _ in batches]
        if not parts:
            return
        sums, squares, lengths = (np.concatenate(column) for column in zip(*parts, strict=True))
        self._misfits.calibrate(sums, squares, lengths)
        counts = sparse.vstack([counts for counts, _, _ in batches], format="csr")
        shares = np.concatenate([shares for _, shares, _ in batches])
        self._subjects.find(counts, shares, self._misfits.surprise(sums, lengths))

    def add(self, counts: Any, shares: Array, days: NDArray[np.datetime64]) -> None:
        """Take counts, shares and days of some documents."""
        known = ~np.isnat(days)
        self._n_undated += int((~known).sum())
        numbers = period_numbers(days[known], self._period)
        counts, shares = counts[np.flatnonzero(known)], shares[known]
        beside = self._misfits.columns(counts, shares, numbers), self._subjects.columns(counts, shares)
        self._shares.add(np.column_stack([shares, *beside]), numbers)
        self._words.add(counts, shares, numbers)

    def trends(
        self,
        false_alarm_rate: float = 0.05,
        *,
        n_looks: int | None = None,
        n_reference: int = 8,
        n_permutations: int | None = None,
        feature_names: ArrayLike | None = None,
        rng: np.random.Generator | None = None,
    ) -> TopicTrends:
        """What they show together."""
        if n_permutations is None:
            n_permutations = max(999, int(np.ceil(2 * (n_looks or 1) / false_alarm_rate)) - 1)
        found = scan(
            self._shares.groups(), n_reference=n_reference, n_permutations=n_permutations,
            last_only=n_looks is not None, rng=np.random.default_rng(0) if rng is None else rng,
        )  # fmt: skip
        graph, words = self._model.topic_graph(4, feature_names=feature_names), self._model._words(feature_names)
        labels = tuple(node.label or " ".join(node.words) for node in graph.nodes)
        whole = self._shares.shares(self._period, self._n_undated)
        n_topics = len(labels)
        over_time = replace(whole, shares=whole.shares[:, :n_topics], errors=whole.errors[:, :n_topics])
        of_topics = Scan(found.z[:, :n_topics], found.window[:, :n_topics], found.p_value[:, :n_topics])
        return TopicTrends(
            over_time, of_topics, float(false_alarm_rate), n_looks, labels, words, self._words.trends(),
            self._misfit(whole, found, n_topics, false_alarm_rate / (n_looks or 1), words),
        )  # fmt: skip

    def _misfit(
        self, whole: SharesOverTime, found: Scan, n_topics: int, bar: float, words: NDArray[Any]
    ) -> Misfit | None:
        """The first alarm about documents that no topic explains."""
        alarms = (found.p_value <= bar) & (found.z > 0)
        alarms[:, :n_topics] = False
        if not alarms.any():
            return None
        period = int(np.argmax(alarms.any(axis=1)))
        own = alarms[period].copy()
        if own[n_topics + len(LEVELS) :].any():  # a subject has its own words
            own[: n_topics + len(LEVELS)] = False
        level = int(np.argmax(np.where(own, found.z[period], -np.inf)))
        begin = period + 1 - int(found.window[period, level])
        count, share = whole.n_documents.astype(np.float64), np.nan_to_num(whole.shares[:, level])
        first = int(period_numbers(whole.starts[:1], self._period)[0])
        now, then = slice(begin, period + 1), slice(0, begin)
        subject = level - n_topics - len(LEVELS)
        columns = self._misfits.words(first + begin, first + period) if subject < 0 else self._subjects.words(subject)
        return Misfit(
            whole.names[begin], whole.names[period], float(count[now] @ share[now] / max(count[now].sum(), 1.0)),
            float(count[then] @ share[then] / max(count[then].sum(), 1.0)),
            tuple(str(words[column]) for column in columns),
            float(found.p_value[period, level]),
        )  # fmt: skip
