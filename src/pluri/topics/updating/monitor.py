r"""An alarm when new documents do not fit a model: words that it does not know, and words that it predicts badly.

Each week, before anything is learned of them, the new documents give three numbers. Two are the share of words that
the model does not know, and the mean log likelihood of a word that it knows (one half of each document, given the other
half). These are ratios of sums over documents, with a variance from the documents,

.. math::

   r = \frac{\sum_d a_d}{\sum_d b_d}, \qquad v = \frac{\sum_d (a_d - r b_d)^2}{(\sum_d b_d)^2} .

At first they are compared with held-out documents. From the eighth week on they are compared with the weeks before:
:math:`t = (r - \bar r) / \sqrt{v + \tau^2 + s^2 / h}`, where :math:`\tau^2` is what the h weeks differ by more than
their documents say, with h - 1 degrees of freedom unless that is nothing.

A few documents about something else move the mean little. So those are counted that are as surprising as the most
surprising fiftieth of the held-out ones, by :math:`(\mu n_d - \log p_d) / \sqrt{n_d}`. If n new documents are like N
held-out ones, k or more of them exceed the m-th largest of these with the chance that, of the m + k - 1 largest of all,
k or more are new: a hypergeometric distribution, whatever the surprise looks like. Weeks whose counts differ by
:math:`\varphi > 1` times more than chance count as :math:`1 / \varphi` of their documents.

Alarms are one-sided, at the rate ``false_alarm_rate / n_looks`` for all numbers together (Bonferroni).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from pluri.validation import RandomState, check_count

Array = NDArray[np.float64]

#: Weeks from which on the weeks themselves say how much they differ.
LEAST_HISTORY = 8
#: Share of the held-out documents that count as surprising.
STRANGE = 0.02
#: Weeks that are remembered.
MOST_HISTORY = 104


@dataclass(frozen=True)
class Ratio:
    """A ratio of sums over documents, its variance, and the number of documents."""

    value: float
    variance: float
    n_documents: int

    @classmethod
    def of(cls, above: ArrayLike, below: ArrayLike) -> Ratio:
        """From what each document adds to the two sums."""
        a, b = np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)
        kept = b > 0
        a, b = a[kept], b[kept]
        if not len(b):
            return cls(float("nan"), float("nan"), 0)
        ratio = a.sum() / b.sum()
        n = len(b)
        variance = ((a - ratio * b) ** 2).sum() / b.sum() ** 2 * n / max(n - 1, 1)
        return cls(float(ratio), float(variance), n)


@dataclass(frozen=True)
class DocumentCheck:
    """How well some new documents fit.

    Attributes
    ----------
    n_documents : int
    per_word : log likelihood of a known word; `perplexity` is the exponential of minus that
    unknown : share of words that the model does not know; NaN if that was not told
    strange : share of documents as surprising as the most surprising fiftieth of the held-out ones
    p_per_word, p_unknown, p_strange : chance of a value as bad, if the documents are like those before
    alarm : whether one of them is too small
    reason : a sentence
    """

    n_documents: int
    per_word: float
    unknown: float
    p_per_word: float
    p_unknown: float
    alarm: bool
    reason: str
    strange: float = float("nan")
    p_strange: float = 1.0

    @property
    def perplexity(self) -> float:
        """Of the known words."""
        return float(np.exp(-self.per_word))


@dataclass
class TopicMonitor:
    """Watches whether new documents fit a topic model; a stated rate of false alarms over a year of looks.

    Parameters
    ----------
    model : TopicModel
        Fitted; it may go on learning between the looks.
    false_alarm_rate : float, default=0.05
        Chance of any alarm in `n_looks` looks, if the documents stay as they are.
    n_looks : int, default=52
    history : dict of lists of Ratio
        Of looks before; `to_dict` and `from_dict` keep it in files.
    usual : (float, float), optional
        Log likelihood of a word of the held-out documents, and the surprise from which on documents are counted.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.topics import LatentDirichletAllocation, TopicMonitor
    >>> rng = np.random.default_rng(0)
    >>> topics = np.kron(np.eye(3), np.full(4, 0.25))
    >>> draw = lambda kinds, n: rng.multinomial(12, topics[rng.choice(kinds, n)] * 0.99 + 0.01 / 12)
    >>> model = LatentDirichletAllocation(2, inference="gibbs", random_state=0).fit(draw([0, 1], 300))
    >>> monitor = TopicMonitor(model).start(draw([0, 1], 200), random_state=0)
    >>> monitor.check(draw([0, 1], 100), random_state=1).alarm, monitor.check(draw([2], 100), random_state=2).alarm
    (False, True)
    """

    model: Any
    false_alarm_rate: float = 0.05
    n_looks: int = 52
    history: dict[str, list[Ratio]] = field(default_factory=dict)
    usual: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        check_count(self.n_looks, "n_looks")
        if not 0 < self.false_alarm_rate < 1:
            raise ValueError(f"false_alarm_rate must lie between 0 and 1, got {self.false_alarm_rate!r}")

    def start(
        self, X: Any, n_unknown: ArrayLike | None = None, n_words: ArrayLike | None = None,
        *, random_state: RandomState = None,
    ) -> Self:  # fmt: skip
        """Take documents that the model has not learned from as what others are compared with.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
        n_unknown, n_words : array-like of shape (n_documents,), optional
            Words of each document that the model does not know, and all its words.
        random_state : int, Generator or None
            Of the halves of the documents; by default that of the model.
        """
        self.usual, self.history = None, {}
        self.history = {name: [ratio] for name, ratio in self._ratios(X, n_unknown, n_words, random_state).items()}
        return self

    def check(
        self, X: Any, n_unknown: ArrayLike | None = None, n_words: ArrayLike | None = None,
        *, random_state: RandomState = None,
    ) -> DocumentCheck:  # fmt: skip
        """Look at new documents before they are learned; what does not fit is not remembered.

        Parameters
        ----------
        X, n_unknown, n_words, random_state
            As in :meth:`start`.

        Returns
        -------
        DocumentCheck
        """
        found = self._ratios(X, n_unknown, n_words, random_state)
        bar = self.false_alarm_rate / self.n_looks / len(found)
        p_values = {name: self._p_value(name, ratio) for name, ratio in found.items()}
        reasons = []
        if p_values["per_word"] <= bar:
            before, now = (np.exp(-value) for value in (self._usual("per_word"), found["per_word"].value))
            reasons.append(f"words are harder to predict (perplexity {now:.0f}, before {before:.0f})")
        if p_values.get("unknown", 1.0) <= bar:
            before, now = self._usual("unknown"), found["unknown"].value
            reasons.append(f"more words are unknown ({now:.1%}, before {before:.1%})")
        if p_values.get("strange", 1.0) <= bar:
            reasons.append(f"more documents are surprising ({found['strange'].value:.1%}, before {STRANGE:.0%})")
        if not reasons:
            for name, ratio in found.items():
                if ratio.n_documents:
                    past = self.history.setdefault(name, [])
                    past.append(ratio)
                    del past[1:-MOST_HISTORY]  # the first is that of the held-out documents
        unknown = found["unknown"].value if "unknown" in found else float("nan")
        told = " and ".join(reasons) or "the documents are like those before"
        if not reasons and min(len(past) for past in self.history.values()) < 2:
            told = "there is nothing yet to compare the documents with"
        return DocumentCheck(
            found["per_word"].n_documents, found["per_word"].value, unknown, p_values["per_word"],
            p_values.get("unknown", 1.0), bool(reasons), told,
            found["strange"].value if "strange" in found else float("nan"), p_values.get("strange", 1.0),
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Numbers and lists only, without the model: ready for JSON."""
        history = {name: [asdict(ratio) for ratio in past] for name, past in self.history.items()}
        told = {"false_alarm_rate": self.false_alarm_rate, "n_looks": self.n_looks, "history": history}
        return told if self.usual is None else {**told, "usual": list(self.usual)}

    @classmethod
    def from_dict(cls, model: Any, kept: dict[str, Any]) -> TopicMonitor:
        """A monitor with the history that `to_dict` gave."""
        history = {
            str(name): [Ratio(float(r["value"]), float(r["variance"]), int(r["n_documents"])) for r in past]
            for name, past in kept["history"].items()
        }
        usual = tuple(map(float, kept["usual"])) if "usual" in kept else None
        return cls(model, float(kept["false_alarm_rate"]), int(kept["n_looks"]), history, usual)  # type: ignore[arg-type]

    def _ratios(self, X: Any, n_unknown: Any, n_words: Any, random_state: RandomState) -> dict[str, Ratio]:
        score = self.model.held_out(X, random_state=random_state)
        found = {"per_word": Ratio.of(score.log_likelihood, score.n_tokens)}
        filled = score.n_tokens > 0
        lengths, sums = score.n_tokens[filled].astype(np.float64), score.log_likelihood[filled]
        if self.usual is None and not self.history and len(lengths):
            mean = float(found["per_word"].value)
            surprise = (mean * lengths - sums) / np.sqrt(lengths)
            self.usual = mean, float(np.sort(surprise)[-max(1, int(STRANGE * len(surprise)))])
        if self.usual is not None:
            surprise = (self.usual[0] * lengths - sums) / np.sqrt(lengths)
            found["strange"] = Ratio.of(surprise >= self.usual[1], np.ones(len(lengths)))
        if (n_unknown is None) != (n_words is None):
            raise ValueError("n_unknown and n_words must be given together, got one of them")
        if n_unknown is not None:
            if len(n_unknown) != len(score.n_tokens) or len(n_words) != len(score.n_tokens):
                raise ValueError(
                    f"n_unknown and n_words must have one number for each of {len(score.n_tokens)} documents"
                )
            found["unknown"] = Ratio.of(n_unknown, n_words)
        return found

    def _weeks(self, name: str) -> tuple[list[Ratio], list[Ratio]]:
        """Held-out documents, if any, and the weeks since."""
        past = self.history.get(name, [])
        return past[:1], past[1:]

    def _usual(self, name: str) -> float:
        first, weeks = self._weeks(name)
        return float(np.mean([ratio.value for ratio in (weeks if len(weeks) >= LEAST_HISTORY else first)]))

    def _p_strange(self, new: Ratio) -> float:
        """Chance of so many surprising documents."""
        first, weeks = self._weeks("strange")
        n_held_out, excess = first[0].n_documents, 1.0
        if len(weeks) >= LEAST_HISTORY:
            sizes, shares = (np.array([getattr(week, name) for week in weeks]) for name in ("n_documents", "value"))
            share = np.clip(sizes @ shares / sizes.sum(), 1e-6, 0.5)
            excess = max(1.0, float((sizes * (shares - share) ** 2).sum() / (share * (1 - share)) / (len(weeks) - 1)))
        n_new, n_strange = (round(number / excess) for number in (new.n_documents, new.value * new.n_documents))
        if not n_strange:
            return 1.0
        largest = max(1, int(STRANGE * n_held_out)) + n_strange - 1
        return float(stats.hypergeom.sf(n_strange - 1, n_held_out + n_new, n_new, largest))

    def _p_value(self, name: str, new: Ratio) -> float:
        first, weeks = self._weeks(name)
        if name == "strange" and first and new.n_documents:
            return self._p_strange(new)
        sign = -1.0 if name == "per_word" else 1.0
        if not new.n_documents or not first:
            return 1.0
        if len(weeks) < LEAST_HISTORY:
            scale = np.sqrt(new.variance + first[0].variance)
            degrees = max(min(new.n_documents, first[0].n_documents) - 1, 1)
            difference = new.value - first[0].value
        else:
            values = np.array([week.value for week in weeks])
            within = float(np.mean([week.variance for week in weeks]))
            extra = max(float(values.var(ddof=1)) - within, 0.0)
            scale = np.sqrt(new.variance + extra + values.var(ddof=1) / len(values))
            degrees = len(values) - 1 if extra > 0 else max(new.n_documents - 1, 1)
            difference = new.value - float(values.mean())
        if scale <= 0:
            return 1.0 if sign * difference <= 0 else 0.0
        return float(stats.t.sf(sign * difference / scale, degrees))
