"""Documents as counts of words: which words are kept, and which documents have none of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pluri.cli.cochange.options import number_of
from pluri.cli.console import note
from pluri.cli.registry import UsageError

#: A word begins with a letter and has at least two characters: no numbers.
TOKEN = r"(?u)\b[^\W\d_]\w+\b"


@dataclass(frozen=True)
class WordChoice:
    """Which words count.

    Attributes
    ----------
    min_documents : words in fewer documents are left out
    max_share : and those in a larger share of the documents
    max_words : and all but the most frequent
    stop_words : "english", "none", or a file with a word in each line
    n_grams : phrases of up to so many words are words too
    """

    min_documents: int = 5
    max_share: float = 0.5
    max_words: int = 20_000
    stop_words: str = "english"
    n_grams: int = 1


def count_words(texts: Sequence[str], choice: WordChoice) -> tuple[Any, Any]:
    """Counts (documents x words, sparse) and the words; says which words are left out because they are everywhere."""
    import numpy as np
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(
        token_pattern=TOKEN,
        min_df=choice.min_documents,
        stop_words=_stop_words(choice.stop_words),
        ngram_range=(1, choice.n_grams),
    )
    nothing = (
        f"CORPUS must have words in at least {choice.min_documents} and at most {choice.max_share:.0%} of its "
        f"{len(texts)} documents, got none: lower --min-documents, raise --max-share, or see --stop-words"
    )
    try:
        counts = vectorizer.fit_transform(texts).tocsc()
    except ValueError as error:  # scikit-learn says which words are left: none
        raise ValueError(nothing) from error
    words, n_documents = vectorizer.get_feature_names_out(), np.diff(counts.indptr)
    everywhere = n_documents > choice.max_share * len(texts)
    if everywhere.all():
        raise ValueError(nothing)
    if everywhere.any():
        number = int(everywhere.sum())
        most = words[np.argsort(-n_documents, kind="stable")[: min(5, number)]]
        note(
            f"{number_of(number, 'word')} left out, in more than {choice.max_share:.0%} of documents (--max-share): "
            f"{', '.join(most)}{', ...' if number > 5 else ''}"
        )
    kept = np.flatnonzero(~everywhere)
    if len(kept) > choice.max_words:
        frequency = np.asarray(counts[:, kept].sum(axis=0)).ravel()
        kept = np.sort(kept[np.argsort(-frequency, kind="stable")[: choice.max_words]])
    return counts[:, kept].tocsr(), words[kept]


def counting_notes(choice: WordChoice) -> dict[str, Any]:
    """How documents were cut into words: what a saved model must know to be applied to others."""
    stop = _stop_words(choice.stop_words)
    return {"stop words": "none" if stop is None else stop, "n-grams": choice.n_grams, "lowercase": True}


def count_known_words(texts: Sequence[str], words: Sequence[str], counting: Mapping[str, Any]) -> Any:
    """Counts (documents x words, sparse) of given words, in texts cut as :func:`counting_notes` says.

    Examples
    --------
    >>> from pluri.cli.topics.words import WordChoice, count_known_words, counting_notes
    >>> counting = counting_notes(WordChoice(n_grams=2))
    >>> count_known_words(["The red moon, the moon"], ["moon", "red moon", "sun"], counting).toarray()
    array([[2, 1, 0]])
    """
    from sklearn.feature_extraction.text import CountVectorizer

    stop = counting.get("stop words", "none")
    vectorizer = CountVectorizer(
        token_pattern=TOKEN,
        vocabulary={word: column for column, word in enumerate(words)},
        stop_words=None if stop == "none" else stop,
        ngram_range=(1, int(counting.get("n-grams", 1))),
        lowercase=bool(counting.get("lowercase", True)),
    )
    return vectorizer.transform(texts)


def count_unknown_words(texts: Sequence[str], words: Sequence[str], counting: Mapping[str, Any]) -> tuple[int, int]:
    """How many words of texts are none of the given ones, and how many there are; stop words and phrases do not count.

    Examples
    --------
    >>> from pluri.cli.topics.words import count_unknown_words
    >>> count_unknown_words(["The red moon, the moon"], ["moon", "red moon", "sun"], {"stop words": "english"})
    (1, 3)
    """
    from sklearn.feature_extraction.text import CountVectorizer

    stop = counting.get("stop words", "none")
    cut = CountVectorizer(
        token_pattern=TOKEN,
        stop_words=None if stop == "none" else stop,
        lowercase=bool(counting.get("lowercase", True)),
    ).build_analyzer()
    known, n_unknown, n_words = set(words), 0, 0
    for text in texts:
        tokens = cut(text)
        n_words += len(tokens)
        n_unknown += sum(token not in known for token in tokens)
    return n_unknown, n_words


def _stop_words(name: str) -> str | list[str] | None:
    if name in ("english", "none"):
        return None if name == "none" else "english"
    path = Path(name)
    if not path.is_file():
        raise UsageError(f"--stop-words must be english, none or a file, got {name!r}")
    import re

    # As the documents are cut into words, so are the lines: "don't" leaves out "don".
    return sorted(set(re.findall(TOKEN, path.read_text(encoding="utf-8", errors="replace").lower())))
