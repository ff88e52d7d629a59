"""More documents than memory: they are read three times, and nothing is kept of them but what is bounded.

The first reading counts in how many documents each word occurs; the second writes counts of the words that are kept
into a folder, which is gone afterwards; the third asks the model for the shares of each document. In between the model
is learnt by minibatches, each from eight places of the corpus, as documents that stand together are often alike.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pluri.cli.cochange.options import number_of
from pluri.cli.console import note
from pluri.cli.topics.learning import Job, Learned, coherence_of_topics, fit, held_out_of
from pluri.cli.topics.reading import COLUMNS, Corpus, documents_of, title_of
from pluri.cli.topics.scattered import ScatteredCounts
from pluri.cli.topics.shares import share_block, share_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Documents that are read, counted and asked about at a time.
BATCH = 4096
#: Different words that are counted at a time; when there are more, those seen once are dropped.
MOST_WORDS = 2_000_000
#: Documents that are kept to tell coherence, and to be held out.
MOST_KEPT = 20_000
#: Documents that are learned from, over all passes, and passes at least and at most.
LOOKS, LEAST_PASSES, MOST_PASSES = 4_000_000, 2, 20
#: Documents that stand for a topic.
N_EXAMPLES = 5


def learn_stream(job: Job) -> Learned:
    """Read, count and learn in memory that does not grow with the number of documents."""
    from pluri.cli.topics.models import guide
    from pluri.cli.topics.words import counting_notes, cutter_of, vectorizer_of

    counting = counting_notes(job.choice)
    with tempfile.TemporaryDirectory(prefix="pluri-topics-") as place:
        job = _again(job, Path(place))
        first = list(islice((document.text for document in _documents(job)), BATCH * 4)) if job.choice.phrases else None
        cutter = cutter_of(job.choice, first)
        words, n_documents = _vocabulary(job, cutter)
        vectorizer = vectorizer_of(cutter, words)
        estimator = job.build(None)
        if job.seeds:
            guide(estimator, job.seeds, words)
        kept = _write_counts(job, vectorizer, Path(place) / "counts", n_documents)
        note(f"{kept.n_documents} documents, {len(words)} words, {kept.n_tokens} tokens")
        if "max_iter" in estimator.get_params() and not _was_set(job, estimator):
            passes = min(max(LOOKS // max(kept.n_documents, 1), LEAST_PASSES), MOST_PASSES)
            estimator.set_params(max_iter=passes)
        began = time.perf_counter()
        interrupted = fit(estimator, ScatteredCounts(Path(place) / "counts", job.seed), job.quiet)
        seconds = time.perf_counter() - began
        estimator.keep_vectorizer(vectorizer)
        score = monitor = None
        if kept.held_out is not None and kept.held_out.shape[0] and not interrupted:
            score, monitor = held_out_of(estimator, kept.held_out, kept.held_out_texts)
        table = Path(place) / "shares.csv"
        seen = _look(job, estimator, vectorizer, table)
        trends = None if seen.trends is None else seen.trends.trends(job.false_alarm_rate)
        coherence = coherence_of_topics(estimator, kept.sample)
        # The table is written while the documents are looked at: it must outlive the folder.
        written = None
        if job.outputs.shares is not None:
            written = tempfile.NamedTemporaryFile(prefix="pluri-shares-", suffix=".csv")  # noqa: SIM115
            shutil.copyfile(table, written.name)
    facts = {"documents": kept.n_documents, "tokens": kept.n_tokens, "seconds": round(seconds, 1)}
    return Learned(
        estimator, facts, coherence, score, interrupted, trends, seen.index, counting,
        lambda path: _copy(written, path), monitor,
    )  # fmt: skip


def _was_set(job: Job, estimator: Any) -> bool:
    """Whether somebody said how many passes there shall be."""
    from pluri.cli.topics.models import PASSES

    return bool(estimator.max_iter != PASSES["svi"])


def _copy(written: Any, path: Path) -> None:
    from pluri.validation import replacing

    with replacing(path, "--shares") as file, open(written.name, "rb") as table:
        shutil.copyfileobj(table, file)
    written.close()


def _again(job: Job, place: Path) -> Job:
    """Standard input can be read only once: it is put into a file."""
    if job.corpus != "-":
        return job
    spool = place / "standard_input.jsonl"
    with open(spool, "wb") as file:
        stdin = getattr(sys.stdin, "buffer", None)
        if stdin is not None:
            shutil.copyfileobj(stdin, file)
        else:
            file.write(sys.stdin.read().encode())
    return replace(job, corpus=str(spool))


def _documents(job: Job) -> Iterator[Any]:
    """Documents that have text."""
    return (found for found in documents_of(job.corpus, job.fields, job.pattern) if found.text.strip())


def _batches(job: Job) -> Iterator[Corpus]:
    """Some documents at a time."""
    found: dict[str, list[str]] = {name: [] for name in COLUMNS}
    number = 0
    for number, document in enumerate(documents_of(job.corpus, job.fields, job.pattern), 1):
        if not document.text.strip():
            continue
        row = (document.text, title_of(document), document.name or str(number), document.date, document.rating)
        for name, value in zip(COLUMNS, row):
            found[name].append(value)
        if len(found["texts"]) == BATCH:
            yield _corpus(found, job)
            found = {name: [] for name in COLUMNS}
    if found["texts"]:
        yield _corpus(found, job)


def _corpus(found: dict[str, list[str]], job: Job) -> Corpus:
    dates = found["dates"] if job.fields.date else None
    return Corpus(found["texts"], found["titles"], found["names"], dates=dates)


def _vocabulary(job: Job, cutter: Any) -> tuple[list[str], int]:
    """Words that are kept, in alphabetical order, and the number of documents."""
    from pluri.cli.topics.words import no_words, tell_of_common

    spread: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    n_documents = 0
    for document in _documents(job):
        words = cutter(document.text)
        spread.update(set(words))
        whole.update(words)
        n_documents += 1
        if len(spread) > MOST_WORDS:
            spread = Counter({word: count for word, count in spread.items() if count > 1})
            whole = Counter({word: whole[word] for word in spread})
    if not n_documents:
        raise ValueError(f"CORPUS must hold documents with text, got none in {job.corpus!r}")
    choice = job.choice
    common = [word for word, count in spread.items() if count > choice.max_share * n_documents]
    if common:
        most = sorted(common, key=lambda word: -spread[word])
        tell_of_common(most[:5], len(common), choice)
    left_out = set(common)
    kept = [word for word, count in spread.items() if count >= choice.min_documents and word not in left_out]
    kept = sorted(sorted(kept, key=lambda word: (-whole[word], word))[: choice.max_words])
    if not kept:
        raise ValueError(no_words(choice, n_documents))
    return kept, n_documents


@dataclass
class Kept:
    """What is kept of the counts besides the folder."""

    n_documents: int
    n_tokens: int
    sample: Any
    held_out: Any
    held_out_texts: list[str]


def _write_counts(job: Job, vectorizer: Any, place: Path, n_documents: int) -> Kept:
    """Write the counts of documents that have words, and keep some in memory."""
    import numpy as np
    from scipy import sparse

    from pluri.topics import write_counts

    rng = np.random.default_rng(job.seed)
    kept = Kept(0, 0, None, None, [])
    sample, back = [], []
    share = min(1.0, MOST_KEPT / max(n_documents, 1))
    held = min(job.held_out, MOST_KEPT / max(n_documents, 1))
    n_bare = 0

    def batches() -> Iterator[Any]:
        nonlocal n_bare
        for found in _batches(job):
            counts = vectorizer.transform(found.texts)
            rows = np.flatnonzero(np.diff(counts.indptr))
            n_bare += counts.shape[0] - len(rows)
            out = rng.random(len(rows)) < held
            back.append(counts[rows[out]])
            kept.held_out_texts.extend(found.texts[row] for row in rows[out])
            counts = counts[rows[~out]]
            kept.n_documents += counts.shape[0]
            kept.n_tokens += int(counts.sum())
            sample.append(counts[np.flatnonzero(rng.random(counts.shape[0]) < share)])
            if counts.shape[0]:
                yield counts

    write_counts(place, batches())
    if n_bare:
        note(f"{number_of(n_bare, 'document')} left out, without any word that is kept")
    kept.sample = sparse.vstack(sample, format="csr")
    kept.held_out = sparse.vstack(back, format="csr") if held else None
    return kept


@dataclass
class Seen:
    """What was gathered of all documents."""

    trends: Any
    index: Any


def _look(job: Job, estimator: Any, vectorizer: Any, table: Path) -> Seen:
    """Ask for the shares of all documents, and gather what is shown of them."""
    import csv

    import numpy as np

    from pluri.report import DocumentIndex
    from pluri.topics.over_time.periods import as_days
    from pluri.topics.over_time.trends import TrendSums

    trends = TrendSums(estimator, job.period) if job.fields.date else None  # type: ignore[arg-type]
    seen = Seen(trends, DocumentIndex(random_state=job.seed) if job.outputs.report is not None else None)
    best: dict[int, list[tuple[float, int, str, str, Any]]] = {topic: [] for topic in range(len(estimator.topic_word_))}
    number = 0
    with open(table, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(share_columns(len(best), bool(job.fields.date)))
        for found in _batches(job):
            counts = vectorizer.transform(found.texts)
            rows = np.flatnonzero(np.diff(counts.indptr))
            if not len(rows):
                continue
            found, counts = found.only(rows), counts[rows]
            shares = np.asarray(estimator.transform(counts))
            days: Any = None if found.dates is None else as_days(found.dates, "--date")
            if trends is not None:
                trends.add(counts, shares, days)
            if seen.index is not None:
                seen.index.add(found.titles, found.texts, shares, days)
            _keep_best(best, found, counts, shares, number)
            number += len(rows)
            if job.outputs.shares is not None:
                columns = share_block(found, shares)
                parts = [column for part in columns for column in (part.T if part.ndim == 2 else [part])]
                writer.writerows(zip(*(column.tolist() for column in parts)))
    _keep_examples(estimator, best)
    return seen


def _keep_best(best: dict[int, list[Any]], found: Corpus, counts: Any, shares: NDArray[Any], number: int) -> None:
    """Remember the documents that have most of each topic."""
    import numpy as np

    for topic, kept in best.items():
        column = shares[:, topic]
        bar = kept[-1][0] if len(kept) == N_EXAMPLES else 0.0
        for row in np.argsort(-column, kind="stable")[:N_EXAMPLES]:
            if column[row] > bar:
                kept.append(
                    (float(column[row]), number + int(row), found.titles[row], found.texts[row][:1000], counts[row])
                )
        kept.sort(key=lambda one: (-one[0], one[1]))
        del kept[N_EXAMPLES:]


def _keep_examples(estimator: Any, best: dict[int, list[Any]]) -> None:
    from scipy import sparse

    chosen = {one[1]: one for kept in best.values() for one in kept}
    if not chosen:
        return
    listed = [chosen[number] for number in sorted(chosen)]
    counts = sparse.vstack([one[4] for one in listed], format="csr")
    estimator.keep_examples(counts, [one[2] for one in listed], [one[3] for one in listed], n_documents=N_EXAMPLES)
