"""``pluri topics``: what a pile of documents is about, as a model, a page and a table."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pluri.cli import options
from pluri.cli.console import INTERRUPTED, note, print_json, reporting, show
from pluri.cli.outputs import check_output
from pluri.cli.registry import UsageError
from pluri.cli.topics_models import MODELS
from pluri.cli.topics_shares import apply_model, with_words, write_shares
from pluri.cli.topics_telling import figures, topic_lines, topics_as_json

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pluri.cli.topics_reading import Corpus

#: Documents among which the examples are looked for.
MOST_EXAMPLES = 20_000


def topics(
    corpus: Annotated[
        str,
        typer.Argument(
            metavar="CORPUS",
            help="A folder of text files; a .jsonl, .csv or .tsv file with a field of text, or a .txt file with a "
            "document in each line (all may end in .gz); or - for JSON Lines on standard input.",
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File for the model, such as topics.skops.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", "-r", help="File for a page to read in a browser, such as topics.html.")
    ] = None,
    model: Annotated[
        str,
        typer.Option(help="; ".join(f"[bold]{name}[/]: {told}" for name, (_, told) in MODELS.items()) + "."),
    ] = "lda",
    shares: Annotated[
        Path | None, typer.Option("--shares", help="File of type .csv for the share of each topic in each document.")
    ] = None,
    apply: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL.skops",
            help="Find no new topics, but give the shares of the topics of a saved model in these documents; on the "
            "terminal unless there is --shares.",
        ),
    ] = None,
    n_topics: Annotated[
        int | None, typer.Option("--topics", "-k", min=1, help="Number of topics of lda; 20 by default.")
    ] = None,
    inference: Annotated[
        str | None,
        typer.Option(
            help="How the model is learnt. lda: gibbs (by default, with learnt priors), vb, svi or em; hdp: gibbs (by "
            "default), vb or svi; tree: truncated (of given size, by default), or retrospective or slice, which let "
            "it grow."
        ),
    ] = None,
    sweeps: Annotated[
        int | None, typer.Option(min=1, help="Passes over the documents; by default what the model thinks right.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the model; may be given many times."),
    ] = None,
    text_field: Annotated[str, typer.Option(help="Field or column with the text.")] = "text",
    title_field: Annotated[
        str | None, typer.Option(help="Field with the title; [bold]title[/] if there is one, else the text begins.")
    ] = None,
    id_field: Annotated[str | None, typer.Option(help="Field that names documents without a title.")] = None,
    pattern: Annotated[str, typer.Option(help="Files of a folder, and of the folders in it.")] = "*.txt",
    min_documents: Annotated[int, typer.Option(min=1, help="Leave out words of fewer documents.")] = 5,
    max_share: Annotated[float, typer.Option(help="Leave out words of a larger share of the documents.")] = 0.5,
    max_words: Annotated[int, typer.Option(min=2, help="Keep the most frequent words only.")] = 20_000,
    stop_words: Annotated[
        str, typer.Option(help="Words to leave out: english, none, or a file with a word in each line.")
    ] = "english",
    n_grams: Annotated[int, typer.Option("--ngrams", min=1, help="Phrases of up to so many words are words.")] = 1,
    held_out: Annotated[
        float, typer.Option(help="Share of the documents to hold out, to tell how well they are predicted.")
    ] = 0.0,
    title: Annotated[str | None, typer.Option(help="Heading of the page; the name of the corpus by default.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed.")] = 0,
    force: options.Force = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
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
        from pluri.cli.topics_models import build_topic_model
        from pluri.cli.topics_reading import Fields
        from pluri.cli.topics_words import WordChoice, counting_notes

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
        counting = counting_notes(choice)
        found, counts, words = _read(corpus, fields, pattern, choice)
        began = time.perf_counter()
        interrupted, score = _fit(estimator, counts, held_out, seed, quiet)
        seconds = time.perf_counter() - began
        estimator.name_words(words)
        _keep_examples(estimator, found, counts)
        coherence = _coherence(estimator, counts)
        name = "standard input" if corpus == "-" else Path(corpus).absolute().name
        facts = {"documents": counts.shape[0], "tokens": int(counts.sum()), "seconds": round(seconds, 1)}
        outputs = {"output": output, "report": report, "shares": shares}
        # Whatever happens to the files, the topics have been seen.
        if as_json:
            print_json(topics_as_json(estimator, facts, coherence, score, outputs, interrupted))
        else:
            show(topic_lines(estimator, coherence))
            if score is not None:
                print(f"\nheld-out perplexity {score.perplexity:.1f}")
        sys.stdout.flush()
        facts |= figures(score)
        if output is not None:
            from pluri.io import save

            kept = {} if coherence is None else {"coherence": [round(float(value), 4) for value in coherence]}
            save(estimator, output, notes={"corpus": name, **facts, **kept, "counting": counting})
            note(f"model written to {output}")
        if report is not None:
            from pluri.report import topic_report

            scores = None if coherence is None else {"coherence": coherence}
            topic_report(estimator, report, title=title or f"Topics of {name}", facts=facts, scores=scores)
            note(f"page written to {report}")
        if shares is not None:
            write_shares(shares, found, estimator.transform(counts))
            note(f"shares written to {shares}")
        if not any(outputs.values()):
            note("nothing was written: -o keeps the model, -r writes a page about it, --shares a table of documents")
        if interrupted:
            note("interrupted: these are the topics so far")
            raise typer.Exit(INTERRUPTED)


def _read(corpus: str, fields: Any, pattern: str, choice: Any) -> tuple[Corpus, Any, Any]:
    """Documents that have words left, their counts, and the words."""
    from pluri.cli.topics_reading import read_corpus
    from pluri.cli.topics_words import count_words

    found = read_corpus(corpus, fields, pattern)
    counts, words = count_words(found.texts, choice)
    left, kept = with_words(found, counts)
    note(f"{len(kept)} documents, {len(words)} words, {int(counts.sum())} tokens")
    return left, counts[kept], words


def _fit(estimator: Any, counts: Any, share: float, seed: int, quiet: bool) -> tuple[bool, Any]:
    """Learn, and tell whether Ctrl-C came, and how well the held-out documents are predicted."""
    import numpy as np

    from pluri.cli.fitting import fit_or_keep

    n_documents = counts.shape[0]
    order = np.random.default_rng(seed).permutation(n_documents)
    n_back = int(share * n_documents)
    train, back = np.sort(order[n_back:]), np.sort(order[:n_back])
    asked = estimator.get_params(deep=False).get("verbose", 0)
    shown = not quiet and sys.stderr is not None and sys.stderr.isatty()
    if shown and "verbose" in estimator.get_params(deep=False):
        estimator.set_params(verbose=1)
    try:
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
