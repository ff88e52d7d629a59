"""Share of each topic in each document, of the documents of a fit or of others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pluri.cli.cochange.options import number_of
from pluri.cli.console import note, print_json
from pluri.cli.outputs import write_table
from pluri.cli.registry import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pluri.cli.topics.reading import Corpus, Fields

#: Digits of a share after the point.
DIGITS = 6


def with_words(found: Corpus, counts: Any) -> tuple[Corpus, NDArray[Any]]:
    """Documents that have words, and which of all they are; the others are told."""
    import numpy as np

    kept = np.flatnonzero(np.asarray(counts.sum(axis=1)).ravel())
    n_bare = len(found.texts) - len(kept)
    if found.n_empty or n_bare:
        left_out = number_of(found.n_empty + n_bare, "document")
        note(f"{left_out} left out: {found.n_empty} without text, {n_bare} without any word that is kept")
    if found.n_recoded:
        note(f"not UTF-8, and read as Windows-1252: {number_of(found.n_recoded, 'text')}")
    return found.only(kept), kept


def write_shares(path: Path | None, found: Corpus, shares: NDArray[Any]) -> None:
    """Name, title, date and shares of each document, as a table; on stdout if there is no path."""
    write_table(path, share_columns(shares.shape[1], found.dates is not None), [share_block(found, shares)])


def share_columns(n_topics: int, dated: bool) -> list[str]:
    """Names of the columns of a table of shares."""
    return ["document", "title", *(["date"] if dated else []), *(f"topic {topic}" for topic in range(n_topics))]


def share_block(found: Corpus, shares: NDArray[Any]) -> list[NDArray[Any]]:
    """Columns of a table of shares."""
    import numpy as np

    texts = [
        np.array(column, dtype=object) for column in (found.names, found.titles, found.dates) if column is not None
    ]
    return [*texts, np.round(np.asarray(shares, dtype=np.float64), DIGITS)]


def load_topics(model: Path, option: str) -> tuple[Any, dict[str, Any]]:
    """A saved topic model with a vectorizer, and the notes of its file."""
    from pluri.cli.topics.words import vectorizer_from_notes
    from pluri.io import load, read_info

    notes = read_info(model).notes
    estimator = load(model)
    if not hasattr(estimator, "topic_graph"):
        raise UsageError(f"{option} must name a topic model, got {type(estimator).__name__}")
    counting, words = notes.get("counting"), getattr(estimator, "vocabulary_", None)
    if words is None:
        raise UsageError(f"{option} must name a model that knows its words, as those of pluri topics do, got {model}")
    if not hasattr(estimator, "vectorizer_"):  # a file of an earlier version
        if not isinstance(counting, dict):
            note("the file does not tell how its documents were cut into words: single words, lower case")
            counting = {}
        estimator.keep_vectorizer(vectorizer_from_notes([str(word) for word in words], counting))
    return estimator, dict(notes)


def apply_model(
    model: Path,
    corpus: str,
    fields: Fields,
    pattern: str,
    output: Path | None,
    refused: Mapping[str, Any],
    as_json: bool,
) -> None:
    """Tell the shares of the topics of a saved model in documents, by the words that it knows."""
    import numpy as np

    for option, given in refused.items():
        if given is not None and given != []:
            raise UsageError(f"{option} must not be given together with --apply, which learns nothing")
    from pluri.cli.topics.reading import read_corpus

    estimator, _ = load_topics(model, "--apply")
    found = read_corpus(corpus, fields, pattern)
    counts = estimator.count_texts(found.texts)
    n_unknown, n_words = (int(number.sum()) for number in estimator.count_unknown_words(found.texts))
    found, kept = with_words(found, counts)
    if not len(kept):
        raise ValueError(f"CORPUS must have words that the model knows, got none in {corpus!r}")
    note(
        f"{len(kept)} documents, {int(counts.sum())} tokens that the model knows; "
        f"{number_of(n_unknown, 'word')} of {n_words} ({n_unknown / max(n_words, 1):.1%}) it does not know"
    )
    shares = np.asarray(estimator.transform(counts[kept]))
    if output is not None or not as_json:
        write_shares(output, found, shares)
    if as_json:
        rows = zip(found.names, found.titles, shares)
        listed = [{"document": name, "title": title, "shares": row} for name, title, row in rows]
        told = {"rows": listed} if output is None else {"shares": str(output)}
        numbers = {"tokens": int(counts.sum()), "words": n_words, "unknown_words": n_unknown}
        print_json({"model": type(estimator).__name__, "documents": len(kept), **numbers, **told})
    if output is not None:
        note(f"shares written to {output}")
