"""What changes over time, as records: topics that emerge and fade, documents that fit no topic, words that drift."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pluri.topics.over_time.changes import Scan
from pluri.topics.over_time.shares import SharesOverTime
from pluri.topics.over_time.words import WordTrends


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
class Misfit:
    """Documents that no topic explains have become more: perhaps a subject that the model has no topic for.

    Attributes
    ----------
    since, found : str
        First period of the window that gave it away, and the period at whose end it was known.
    share, before : float
        Share of such documents in that window, and before it.
    words : tuple of str
        That these documents have more of than others.
    p_value : float
        As of :class:`TopicChange`.
    """

    since: str
    found: str
    share: float
    before: float
    words: tuple[str, ...]
    p_value: float


@dataclass(frozen=True)
class WordDrift:
    """A word that becomes a larger or smaller part of a topic: its probability early and late, and a z score."""

    topic: int
    word: str
    early: float
    late: float
    z: float


@dataclass(frozen=True, eq=False, repr=False)
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
    misfit : Misfit or None
        Documents that no topic explains, if they have become more.
    """

    over_time: SharesOverTime
    scan: Scan
    false_alarm_rate: float
    n_looks: int | None
    labels: tuple[str, ...]
    words: NDArray[Any]
    word_trends: WordTrends | None
    misfit: Misfit | None = None

    def __repr__(self) -> str:
        told = self.summary().splitlines()[:-1]
        return f"<TopicTrends in {self.over_time!r}: {told[0] if len(told) == 1 else f'{len(told)} changes'}>"

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
        if self.misfit is not None:
            lines.append(
                f"new: documents that no topic explains ({' '.join(self.misfit.words[:6])}), {self.misfit.before:.1%} "
                f"before {self.misfit.since}, {self.misfit.share:.1%} since, found by {self.misfit.found}, "
                f"p = {self.misfit.p_value:.2g}"
            )
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
