"""``pluri topics``: what a pile of documents is about, as a model, a page and a table."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from pluri.cli import options
from pluri.cli.console import INTERRUPTED, note, print_json, reporting, show
from pluri.cli.outputs import check_output
from pluri.cli.registry import UsageError
from pluri.cli.topics import options as shared
from pluri.cli.topics.shares import apply_model, with_words, write_shares
from pluri.cli.topics.sizing import settle_number
from pluri.cli.topics.telling import figures, topic_lines, topics_as_json

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pluri.cli.topics.reading import Corpus, Fields
    from pluri.cli.topics.words import WordChoice

#: Documents among which the examples are looked for.
MOST_EXAMPLES = 20_000


def topics(
    corpus: shared.Documents,
    output: shared.Output = None,
    report: shared.Report = None,
    model: shared.Model = "lda",
    shares: shared.Shares = None,
    apply: shared.Apply = None,
    n_topics: shared.Topics = None,
    inference: shared.Inference = None,
    sweeps: shared.Sweeps = None,
    settings: shared.Settings = None,
    text_field: shared.TextField = "text",
    title_field: shared.TitleField = None,
    id_field: shared.IdField = None,
    pattern: shared.Pattern = "*.txt",
    min_documents: shared.MinDocuments = 5,
    max_share: shared.MaxShare = 0.5,
    max_words: shared.MaxWords = 20_000,
    stop_words: shared.StopWords = "english",
    n_grams: shared.Phrases = 1,
    held_out: shared.HeldOut = 0.0,
    title: shared.Title = None,
    seed: shared.Seed = 0,
    force: options.Force = False,
    quiet: shared.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Find the topics of documents; print them, save the model, and write a page about it.

    [bold]pluri topics letters/ -k 30 -o letters.skops -r letters.html[/] reads all text files of a folder.

    [bold]zcat talks.jsonl.gz | pluri topics - --model hlda -r talks.html[/] finds a tree of topics.

    [bold]pluri topics new/ --apply letters.skops --shares new.csv[/] tells what other documents are about.

    Ctrl-C keeps the topics so far: everything is written, and the exit code is 130.
    """
    with reporting():
        check_output(output, force, (".skops",))
        check_output(report, force, (".html", ".htm"), "--report")
        check_output(shares, force, (".csv",), "--shares")
        if not 0 <= held_out <= 0.9:
            raise UsageError(f"--held-out must lie between 0 and 0.9, got {held_out:g}")
        if not 0 < max_share <= 1:
            raise UsageError(f"--max-share must lie above 0 and be at most 1, got {max_share:g}")
        from pluri.cli.topics.models import build_topic_model
        from pluri.cli.topics.reading import Fields
        from pluri.cli.topics.words import WordChoice

        fields = Fields(text_field, title_field, id_field)
        if apply is not None:
            refused = {"--output": output, "--report": report, "--topics": n_topics, "--inference": inference,
                       "--sweeps": sweeps, "--set": settings, "--held-out": held_out or None}  # fmt: skip
            apply_model(apply, corpus, fields, pattern, shares, refused, as_json)
            return
        estimator = build_topic_model(
            model, n_topics=n_topics, inference=inference, n_sweeps=sweeps, seed=seed, settings=settings
        )
        choice = WordChoice(min_documents, max_share, max_words, stop_words, n_grams)
        learned = _learn(estimator, _read(corpus, fields, pattern, choice), held_out, seed, quiet)
        outputs = Outputs(output, report, shares)
        _tell(learned, outputs, as_json)
        _write(learned, outputs, "standard input" if corpus == "-" else Path(corpus).absolute().name, title)
        if learned.interrupted:
            note("interrupted: these are the topics so far")
            raise typer.Exit(INTERRUPTED)


@dataclass(frozen=True)
class Read:
    """Documents that have words left, their counts, the words, and how they were counted."""

    corpus: Corpus
    counts: Any
    words: Any
    counting: Any


@dataclass(frozen=True)
class Learned:
    """What was found in the documents: the model, its coherence, and how well it predicts."""

    estimator: Any
    read: Read
    coherence: NDArray[Any] | None
    score: Any
    interrupted: bool
    seconds: float

    @property
    def facts(self) -> dict[str, Any]:
        """Numbers about the documents and the fit."""
        counts = self.read.counts
        return {"documents": counts.shape[0], "tokens": int(counts.sum()), "seconds": round(self.seconds, 1)}


class Outputs(NamedTuple):
    """Files to write, if any."""

    output: Path | None
    report: Path | None
    shares: Path | None


def _learn(estimator: Any, read: Read, held_out: float, seed: int, quiet: bool) -> Learned:
    settle_number(estimator, read.counts, seed, quiet)
    began = time.perf_counter()
    interrupted, score = _fit(estimator, read.counts, held_out, seed, quiet)
    seconds = time.perf_counter() - began
    estimator.name_words(read.words)
    _keep_examples(estimator, read.corpus, read.counts)
    return Learned(estimator, read, _coherence(estimator, read.counts), score, interrupted, seconds)


def _tell(learned: Learned, outputs: Outputs, as_json: bool) -> None:
    """Print the topics first: whatever happens to the files, they have been seen."""
    if as_json:
        told = topics_as_json(
            learned.estimator, learned.facts, learned.coherence, learned.score, outputs._asdict(), learned.interrupted
        )
        print_json(told)
    else:
        show(topic_lines(learned.estimator, learned.coherence))
        if learned.score is not None:
            print(f"\nheld-out perplexity {learned.score.perplexity:.1f}")
    sys.stdout.flush()


def _write(learned: Learned, outputs: Outputs, name: str, title: str | None) -> None:
    estimator, coherence = learned.estimator, learned.coherence
    facts = learned.facts | figures(learned.score)
    if outputs.output is not None:
        from pluri.io import save

        kept = {} if coherence is None else {"coherence": [round(float(value), 4) for value in coherence]}
        save(estimator, outputs.output, notes={"corpus": name, **facts, **kept, "counting": learned.read.counting})
        note(f"model written to {outputs.output}")
    if outputs.report is not None:
        from pluri.report import topic_report

        scores = None if coherence is None else {"coherence": coherence}
        topic_report(estimator, outputs.report, title=title or f"Topics of {name}", facts=facts, scores=scores)
        note(f"page written to {outputs.report}")
    if outputs.shares is not None:
        write_shares(outputs.shares, learned.read.corpus, estimator.transform(learned.read.counts))
        note(f"shares written to {outputs.shares}")
    if not any(outputs):
        note("nothing was written: -o keeps the model, -r writes a page about it, --shares a table of documents")


def _read(corpus: str, fields: Fields, pattern: str, choice: WordChoice) -> Read:
    from pluri.cli.topics.reading import read_corpus
    from pluri.cli.topics.words import count_words, counting_notes

    counting = counting_notes(choice)
    found = read_corpus(corpus, fields, pattern)
    counts, words = count_words(found.texts, choice)
    left, kept = with_words(found, counts)
    note(f"{len(kept)} documents, {len(words)} words, {int(counts.sum())} tokens")
    return Read(left, counts[kept], words, counting)


def _fit(estimator: Any, counts: Any, share: float, seed: int, quiet: bool) -> tuple[bool, Any]:
    """Learn, and tell whether Ctrl-C came, and how well the held-out documents are predicted."""
    import numpy as np

    from pluri.cli.fitting import fit_or_keep
    from pluri.engine.compile_status import silenced

    n_documents = counts.shape[0]
    order = np.random.default_rng(seed).permutation(n_documents)
    n_back = int(share * n_documents)
    train, back = np.sort(order[n_back:]), np.sort(order[:n_back])
    asked = estimator.get_params(deep=False).get("verbose", 0)
    shown = not quiet and sys.stderr is not None and sys.stderr.isatty()
    if shown and "verbose" in estimator.get_params(deep=False):
        estimator.set_params(verbose=1)
    try:
        with silenced(quiet):
            interrupted = fit_or_keep(estimator, counts[train], nothing="nothing was written")
    finally:
        if shown and "verbose" in estimator.get_params(deep=False):
            estimator.set_params(verbose=asked)
    score = estimator.held_out(counts[back]) if n_back and not interrupted else None
    return interrupted, score


def _keep_examples(estimator: Any, found: Corpus, counts: Any) -> None:
    import numpy as np

    n_documents = len(found.texts)
    rows = np.unique(np.linspace(0, n_documents - 1, min(n_documents, MOST_EXAMPLES)).astype(int))
    estimator.keep_examples(counts[rows], [found.titles[row] for row in rows], [found.texts[row] for row in rows])


def _coherence(estimator: Any, counts: Any) -> NDArray[Any] | None:
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
