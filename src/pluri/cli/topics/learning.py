"""Documents in memory: they are read, counted and learned, and everything that is shown of them is gathered."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pluri.cli.cochange.options import number_of
from pluri.cli.console import note
from pluri.cli.registry import UsageError
from pluri.cli.topics.shares import with_words, write_shares
from pluri.cli.topics.sizing import settle_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pluri.cli.topics.reading import Corpus, Fields
    from pluri.cli.topics.words import WordChoice

#: Documents among which the examples are looked for.
MOST_EXAMPLES = 20_000


class Outputs(NamedTuple):
    """Files to write, if any."""

    output: Path | None
    report: Path | None
    shares: Path | None


@dataclass(frozen=True)
class Job:
    """What is asked for: where the documents are, how they are read and learned, and what is wanted of them."""

    corpus: str
    fields: Fields
    pattern: str
    choice: WordChoice
    build: Callable[[str | None], Any]
    outputs: Outputs
    period: str = "week"
    false_alarm_rate: float = 0.05
    seeds: list[str] = field(default_factory=list)
    held_out: float = 0.0
    seed: int = 0
    quiet: bool = False

    @property
    def name(self) -> str:
        """What the documents are called."""
        return "standard input" if self.corpus == "-" else Path(self.corpus).absolute().name


@dataclass(frozen=True)
class Learned:
    """What was found in the documents.

    Attributes
    ----------
    estimator : the model
    facts : numbers about the documents and the fit
    coherence : of each topic
    score : how well held-out documents are predicted
    interrupted : whether Ctrl-C came
    trends : what changes over time
    index : documents for the page
    counting : how words were counted
    write_shares : writes the table of shares into a file
    monitor : what later documents are compared with
    """

    estimator: Any
    facts: dict[str, Any]
    coherence: NDArray[Any] | None
    score: Any
    interrupted: bool
    trends: Any
    index: Any
    counting: dict[str, Any]
    write_shares: Callable[[Path], None]
    monitor: dict[str, Any] | None = None


def learn(job: Job) -> Learned:
    """Read, count and learn."""
    from pluri.cli.topics.models import guide
    from pluri.cli.topics.reading import read_corpus
    from pluri.cli.topics.words import count_words, counting_notes, cutter_of, tell_of_unspaced, vectorizer_of
    from pluri.topics.number.settings import starting_from

    counting = counting_notes(job.choice)
    cutter_of(job.choice)  # what cannot be meant is refused before the documents are read
    whole = read_corpus(job.corpus, job.fields, job.pattern)
    cutter = cutter_of(job.choice, whole.texts)
    counts, words = count_words(whole.texts, job.choice, cutter)
    tell_of_unspaced(whole.texts, job.choice)
    found, kept = with_words(whole, counts)
    counts = counts[kept]
    note(f"{len(kept)} documents, {len(words)} words, {int(counts.sum())} tokens")
    days = dates_of(found)
    found, counts, days, kind, response = rated(found, counts, days)
    estimator = job.build(kind)
    first = settle_number(estimator, counts, job.seed, job.quiet)
    if job.seeds:
        guide(estimator, job.seeds, words)
    began = time.perf_counter()
    train, back = halves(counts.shape[0], job.held_out, job.seed)
    with starting_from(estimator, first):
        interrupted = fit(estimator, counts[train], job.quiet, None if response is None else response[train])
    seconds = time.perf_counter() - began
    estimator.keep_vectorizer(vectorizer_of(cutter, words))
    _keep_examples(estimator, found, counts)
    score = monitor = None
    extra: dict[str, Any] = {}
    if len(back) and not interrupted:
        score, monitor = held_out_of(estimator, counts[back], [found.texts[row] for row in back])
        extra = rating_facts(estimator, counts[back], None if response is None else response[back])
    shares, trends, index = _seen(job, estimator, found, counts, days)
    facts = {"documents": counts.shape[0], "tokens": int(counts.sum()), "seconds": round(seconds, 1), **extra}
    return Learned(
        estimator, facts, coherence_of_topics(estimator, counts), score, interrupted, trends, index, counting,
        lambda path: write_shares(path, found, shares), monitor,
    )  # fmt: skip


def dates_of(found: Corpus) -> Any:
    """Days of the documents; None if there is no field for dates."""
    if found.dates is None:
        return None
    import numpy as np

    from pluri.topics.over_time.periods import as_days

    days = as_days(found.dates, "--date")
    unknown = int(np.isnat(days).sum())
    if unknown == len(days):
        raise UsageError("--date must name a field with dates, got none in any document")
    if unknown:
        note(f"{number_of(unknown, 'document')} without a date: not part of what is told over time")
    return days


def rated(found: Corpus, counts: Any, days: Any) -> tuple[Corpus, Any, Any, str | None, Any]:
    """Documents with a response, and whether it is a number or a class; all documents if nobody asked for one."""
    if found.ratings is None:
        return found, counts, days, None, None
    import numpy as np

    texts = [text.strip().strip('"') for text in found.ratings]
    try:
        return found, counts, days, "number", np.array([float(text) if text else np.nan for text in texts])
    except ValueError:
        kept = np.flatnonzero([bool(text) for text in texts])
        if len(kept) < len(texts):
            note(f"{number_of(len(texts) - len(kept), 'document')} left out: no class (--rating)")
        days = None if days is None else days[kept]
        return found.only(kept), counts[kept], days, "class", np.array([texts[row] for row in kept])


def halves(n_documents: int, share: float, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Documents to learn from, and those held out."""
    import numpy as np

    order = np.random.default_rng(seed).permutation(n_documents)
    n_back = int(share * n_documents)
    return np.sort(order[n_back:]), np.sort(order[:n_back])


def fit(estimator: Any, data: Any, quiet: bool, response: Any = None) -> bool:
    """Learn, and tell whether Ctrl-C came."""
    from pluri.cli.fitting import fit_or_keep
    from pluri.engine.compile_status import silenced

    asked = estimator.get_params(deep=False).get("verbose", 0)
    shown = not quiet and sys.stderr is not None and sys.stderr.isatty()
    told = {} if response is None else {"y": response}
    if shown and "verbose" in estimator.get_params(deep=False):
        estimator.set_params(verbose=1)
    try:
        with silenced(quiet):
            return fit_or_keep(estimator, data, nothing="nothing was written", **told)
    finally:
        if shown and "verbose" in estimator.get_params(deep=False):
            estimator.set_params(verbose=asked)


def held_out_of(estimator: Any, counts: Any, texts: list[str]) -> tuple[Any, dict[str, Any]]:
    """How well held-out documents are predicted, and what later ones are compared with."""
    from pluri.topics import TopicMonitor

    unknown, whole = estimator.count_unknown_words(texts)
    monitor = TopicMonitor(estimator).start(counts, unknown, whole)
    return estimator.held_out(counts), monitor.to_dict()


def rating_facts(estimator: Any, counts: Any, response: Any) -> dict[str, Any]:
    """How well the ratings of held-out documents are predicted."""
    if response is None:
        return {}
    import numpy as np

    if response.dtype.kind == "f":
        known = ~np.isnan(response)
        if known.sum() < 2:
            return {}
        error = float(np.sqrt(np.mean((estimator.predict(counts[known]) - response[known]) ** 2)))
        return {"held-out rating error": round(error, 3), "without topics": round(float(response[known].std()), 3)}
    return {"held-out accuracy": round(float(np.mean(estimator.predict(counts) == response)), 3)}


def _keep_examples(estimator: Any, found: Corpus, counts: Any) -> None:
    import numpy as np

    n_documents = len(found.texts)
    rows = np.unique(np.linspace(0, n_documents - 1, min(n_documents, MOST_EXAMPLES)).astype(int))
    estimator.keep_examples(counts[rows], [found.titles[row] for row in rows], [found.texts[row] for row in rows])


def _seen(job: Job, estimator: Any, found: Corpus, counts: Any, days: Any) -> tuple[Any, Any, Any]:
    """Shares of all documents, what changes over time, and documents for the page: what of that is wanted."""
    import numpy as np

    shares: Any = None
    trends = index = None
    if job.outputs.report is not None or job.outputs.shares is not None or days is not None:
        shares = np.asarray(estimator.transform(counts))
    if days is not None:
        from pluri.topics import topic_trends

        trends = topic_trends(
            estimator, counts, days, period=job.period, false_alarm_rate=job.false_alarm_rate,  # type: ignore[arg-type]
            shares=shares, random_state=job.seed,
        )  # fmt: skip
    if job.outputs.report is not None:
        from pluri.report import DocumentIndex

        index = DocumentIndex(random_state=job.seed).add(found.titles, found.texts, shares, days)
    return shares, trends, index


def coherence_of_topics(estimator: Any, counts: Any) -> NDArray[Any] | None:
    """How often the words of each topic occur together (normalised pointwise mutual information).

    Of the words that it has: words that a small topic does not list do not count against it. Zero if there is only one.
    """
    import numpy as np

    from pluri.metrics.coherence import topic_coherence

    listed = estimator.top_words(10, feature_names=[str(column) for column in range(counts.shape[1])])
    scores = np.zeros(len(listed))
    pairs = [topic for topic, words in enumerate(listed) if len(words) > 1]
    if not pairs:
        return None  # there are no pairs of words
    scores[pairs] = topic_coherence([[int(word) for word in listed[topic]] for topic in pairs], counts).per_topic
    return scores
