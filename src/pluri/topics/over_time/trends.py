"""What changes over time: topics that emerge and fade, with a stated rate of false alarms, and words that drift."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.topics.over_time.changes import Scan, scan
from pluri.topics.over_time.periods import Period, as_days, check_period, period_numbers
from pluri.topics.over_time.shares import SharesOverTime, ShareSums, dated_batches
from pluri.topics.over_time.words import WordSums, WordTrends
from pluri.validation import RandomState, as_generator, check_count

Array = NDArray[np.float64]


@dataclass(frozen=True)
class TopicChange:
    """A topic that emerges or fades.

    Attributes
    ----------
    topic : int
    kind : "emerging" or "fading"
    since, found : str
        First period of the window that gave it away, and the period at whose end it was known.
    share, error, before : float
        Share in that window with its standard error, and share in all periods before it.
    p_value : float
        Chance that anything at all is as unusual, in any topic and any period tested, if nothing changes.
    """

    topic: int
    kind: Literal["emerging", "fading"]
    since: str
    found: str
    share: float
    error: float
    before: float
    p_value: float


@dataclass(frozen=True)
class WordDrift:
    """A word that becomes a larger or smaller part of a topic: its probability early and late, and a z score."""

    topic: int
    word: str
    early: float
    late: float
    z: float


@dataclass(frozen=True, eq=False)
class TopicTrends:
    """What changes over time; see :func:`topic_trends`.

    Attributes
    ----------
    over_time : SharesOverTime
        Shares of all topics in all periods, with errors.
    scan : Scan
        How unusual each topic is in each period: `z`, `window` and `p_value`.
    false_alarm_rate : float
        Chance of any alarm at all if nothing changes: in all topics and periods of this call, or, with `n_looks`, in so
        many calls together.
    n_looks : int or None
    labels : tuple of str
        Most probable words of each topic, or its name.
    words : array of str
    word_trends : WordTrends or None
    """

    over_time: SharesOverTime
    scan: Scan
    false_alarm_rate: float
    n_looks: int | None
    labels: tuple[str, ...]
    words: NDArray[Any]
    word_trends: WordTrends | None

    def emerging(self) -> list[TopicChange]:
        """Topics whose share rose, when that was first seen, the earliest first."""
        return self._changes("emerging")

    def fading(self) -> list[TopicChange]:
        """Topics whose share fell, when that was first seen, the earliest first."""
        return self._changes("fading")

    def drifting_words(
        self, topic: int | None = None, *, n_words: int = 10, false_alarm_rate: float | None = None
    ) -> list[WordDrift]:
        """Words that gain or lose within their topic, the surest first.

        The bar is that of all words in all topics together (Bonferroni), for words of at least 20 documents; it rests
        on a normal approximation.

        Parameters
        ----------
        topic : int, optional
            One topic only.
        n_words : int, default=10
            Of each topic, at most.
        false_alarm_rate : float, optional
            That of the record by default.
        """
        if self.word_trends is None:
            return []
        rate = self.false_alarm_rate if false_alarm_rate is None else false_alarm_rate
        z, bar = self.word_trends.z, self.word_trends.bar(rate)
        found = []
        for row in range(len(z)) if topic is None else [topic]:
            order = np.argsort(-np.abs(z[row]), kind="stable")[:n_words]
            found += [
                WordDrift(
                    row, str(self.words[column]), float(self.word_trends.early[row, column]),
                    float(self.word_trends.late[row, column]), float(z[row, column]),
                )
                for column in order
                if abs(z[row, column]) > bar
            ]  # fmt: skip
        return sorted(found, key=lambda drift: -abs(drift.z))

    def summary(self) -> str:
        """A few lines for people."""
        lines = []
        for kind, changes in (("emerging", self.emerging()), ("fading", self.fading())):
            lines += [
                f"{kind}: topic {change.topic} ({self.labels[change.topic]}), {change.before:.1%} before "
                f"{change.since}, {change.share:.1%} ± {change.error:.1%} since, found by {change.found}, "
                f"p = {change.p_value:.2g}"
                for change in changes
            ]
        lines += [
            f"drifting: topic {drift.topic} ({self.labels[drift.topic]}), {drift.word}: {drift.early:.2%} to "
            f"{drift.late:.2%}"
            for drift in self.drifting_words(n_words=3)[:10]
        ]
        rate = f"{self.false_alarm_rate:.0%}" + (f" in {self.n_looks} looks" if self.n_looks else "")
        return "\n".join(lines or ["nothing changes"]) + f"\n(chance of a false alarm, all topics together: {rate})"

    def _changes(self, kind: Literal["emerging", "fading"]) -> list[TopicChange]:
        bar = self.false_alarm_rate / (self.n_looks or 1)
        sign = 1 if kind == "emerging" else -1
        alarms = (self.scan.p_value <= bar) & (sign * self.scan.z > 0)
        first = [(int(np.argmax(column)), topic) for topic, column in enumerate(alarms.T) if column.any()]
        return [self._change(kind, period, topic) for period, topic in sorted(first)]

    def _change(self, kind: Literal["emerging", "fading"], period: int, topic: int) -> TopicChange:
        names, begin = self.over_time.names, period + 1 - int(self.scan.window[period, topic])
        count = self.over_time.n_documents.astype(np.float64)
        shares = np.nan_to_num(self.over_time.shares[:, topic])
        errors = np.nan_to_num(self.over_time.errors[:, topic])
        now, then = slice(begin, period + 1), slice(0, begin)
        n_now, n_then = max(count[now].sum(), 1.0), max(count[then].sum(), 1.0)
        return TopicChange(
            topic, kind, names[begin], names[period], float(count[now] @ shares[now] / n_now),
            float(np.sqrt(((count[now] * errors[now]) ** 2).sum()) / n_now), float(count[then] @ shares[then] / n_then),
            float(self.scan.p_value[period, topic]),
        )  # fmt: skip


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
        self._shares, self._words = ShareSums(len(model.topic_word_)), WordSums(model.topic_word_)
        self._n_undated = 0

    def add(self, counts: Any, shares: Array, days: NDArray[np.datetime64]) -> None:
        """Take counts, shares and days of some documents."""
        known = ~np.isnat(days)
        self._n_undated += int((~known).sum())
        numbers = period_numbers(days[known], self._period)
        self._shares.add(shares[known], numbers)
        self._words.add(counts[np.flatnonzero(known)], shares[known], numbers)

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
        graph = self._model.topic_graph(4, feature_names=feature_names)
        labels = tuple(node.label or " ".join(node.words) for node in graph.nodes)
        return TopicTrends(
            self._shares.shares(self._period, self._n_undated), found, float(false_alarm_rate), n_looks, labels,
            self._model._words(feature_names), self._words.trends(),
        )  # fmt: skip
