"""Documents as counts of words: which words are kept, and which documents have none of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    """Counts (documents x words, sparse) and the words."""
    from sklearn.feature_extraction.text import CountVectorizer

    stop = _stop_words(choice.stop_words)
    vectorizer = CountVectorizer(
        token_pattern=TOKEN,
        min_df=choice.min_documents,
        max_df=choice.max_share,
        max_features=choice.max_words,
        stop_words=stop,
        ngram_range=(1, choice.n_grams),
    )
    try:
        counts = vectorizer.fit_transform(texts)
    except ValueError as error:  # scikit-learn says which words are left: none
        raise ValueError(
            f"CORPUS must have words in at least {choice.min_documents} and at most {choice.max_share:.0%} of its "
            f"{len(texts)} documents, got none: lower --min-documents, raise --max-share, or see --stop-words"
        ) from error
    return counts, vectorizer.get_feature_names_out()


def _stop_words(name: str) -> str | list[str] | None:
    if name in ("english", "none"):
        return None if name == "none" else "english"
    path = Path(name)
    if not path.is_file():
        raise UsageError(f"--stop-words must be english, none or a file, got {name!r}")
    import re

    # As the documents are cut into words, so are the lines: "don't" leaves out "don".
    return sorted(set(re.findall(TOKEN, path.read_text(encoding="utf-8", errors="replace").lower())))
