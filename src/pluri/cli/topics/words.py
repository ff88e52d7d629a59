"""Documents as counts of words: which words are kept, and which documents have none of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pluri.cli.cochange.options import number_of
from pluri.cli.console import note
from pluri.cli.registry import UsageError


@dataclass(frozen=True)
class WordChoice:
    """Which words count.

    Attributes
    ----------
    min_documents : words in fewer documents are left out
    max_share : and those in a larger share of the documents
    max_words : and all but the most frequent
    stop_words : names of languages, "none", or a file with a word in each line
    n_grams : phrases of up to so many words are words too
    pattern : regular expression of a word; by default two letters or more
    segmenter : how text without spaces is cut into words
    phrases : whether words that stand together more often than by chance are joined
    """

    min_documents: int = 5
    max_share: float = 0.5
    max_words: int = 20_000
    stop_words: str = "english"
    n_grams: int = 1
    pattern: str | None = None
    segmenter: str = "auto"
    phrases: bool = False


#: Documents in which phrases are looked for.
MOST_FOR_PHRASES = 100_000


def cutter_of(choice: WordChoice, texts: Sequence[str] | None = None) -> Any:
    """How texts are cut into words; phrases are those of the texts."""
    from dataclasses import replace

    from pluri.topics import WordCutter, find_phrases

    pattern: dict[str, Any] = {} if choice.pattern is None else {"pattern": choice.pattern}
    stopped = _stop_words(choice.stop_words)
    try:
        cutter = WordCutter(**pattern, stop_words=tuple(stopped), n_grams=choice.n_grams, segmenter=choice.segmenter)
    except ValueError as error:
        raise UsageError(f"--{str(error).replace('pattern', 'token-pattern', 1)}") from error
    if not choice.phrases or texts is None:
        return cutter
    found = find_phrases(texts[:MOST_FOR_PHRASES], cutter, min_documents=max(2 * choice.min_documents, 2))
    best = ": " + ", ".join(list(found)[:5]) if found else ""
    note(f"{number_of(len(found), 'phrase')} found (--phrases){best}{', ...' if len(found) > 5 else ''}")
    return replace(cutter, phrases=tuple(found))


def vectorizer_of(cutter: Any, words: Sequence[str]) -> Any:
    """A vectorizer of given words, in their order, which can be kept in a file."""
    from sklearn.feature_extraction.text import CountVectorizer

    vocabulary = {str(word): column for column, word in enumerate(words)}
    return CountVectorizer(analyzer=cutter, vocabulary=vocabulary).fit([""])


def tell_of_unspaced(texts: Sequence[str], choice: WordChoice) -> None:
    """Say how text without spaces between words was cut, if there is much of it."""
    from pluri.topics.text.cutting import RUN

    some = texts[:: max(1, len(texts) // 200)]
    if choice.segmenter == "auto" and sum(RUN.search(text) is not None for text in some) > len(some) / 4:
        note(
            "text without spaces between words was cut into pairs of characters; --segmenter jieba (Chinese), janome "
            "(Japanese) or pythainlp (Thai) cuts it into words"
        )


def no_words(choice: WordChoice, n_documents: int) -> str:
    """What to say if no word is left."""
    return (
        f"CORPUS must have words in at least {choice.min_documents} and at most {choice.max_share:.0%} of its "
        f"{n_documents} documents, got none: lower --min-documents, raise --max-share, or see --stop-words"
    )


def tell_of_common(words: Sequence[str], number: int, choice: WordChoice) -> None:
    """Say which words were left out because they are everywhere: the first of them, and how many there are."""
    note(
        f"{number_of(number, 'word')} left out, in more than {choice.max_share:.0%} of documents (--max-share): "
        f"{', '.join(words[:5])}{', ...' if number > 5 else ''}"
    )


def count_words(texts: Sequence[str], choice: WordChoice, cutter: Any = None) -> tuple[Any, Any]:
    """Counts (documents x words, sparse) and the words; says which words are left out because they are everywhere."""
    import numpy as np
    from sklearn.feature_extraction.text import CountVectorizer

    cutter = cutter_of(choice, texts) if cutter is None else cutter
    vectorizer = CountVectorizer(analyzer=cutter, min_df=choice.min_documents)
    nothing = no_words(choice, len(texts))
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
        tell_of_common(list(words[np.argsort(-n_documents, kind="stable")[: min(5, number)]]), number, choice)
    kept = np.flatnonzero(~everywhere)
    if len(kept) > choice.max_words:
        frequency = np.asarray(counts[:, kept].sum(axis=0)).ravel()
        kept = np.sort(kept[np.argsort(-frequency, kind="stable")[: choice.max_words]])
    return counts[:, kept].tocsr(), words[kept]


def counting_notes(choice: WordChoice) -> dict[str, Any]:
    """How documents were cut into words, for people; the vectorizer itself is kept with the model."""
    told = {"stop words": choice.stop_words if not Path(choice.stop_words).is_file() else Path(choice.stop_words).name}
    told |= {"n-grams": choice.n_grams, "lowercase": True}  # type: ignore[dict-item]
    if choice.pattern is not None:
        told["pattern"] = choice.pattern
    return told | ({"segmenter": choice.segmenter} if choice.segmenter != "auto" else {})


def vectorizer_from_notes(words: Sequence[str], counting: Mapping[str, Any]) -> Any:
    """The vectorizer of a file of an earlier version, which has its settings only.

    Examples
    --------
    >>> from pluri.cli.topics.words import vectorizer_from_notes
    >>> vectorizer = vectorizer_from_notes(["moon", "red moon", "sun"], {"stop words": "english", "n-grams": 2})
    >>> vectorizer.transform(["The red moon, the moon"]).toarray()
    array([[2, 1, 0]])
    """
    from pluri.topics import WordCutter, stop_words

    stop = counting.get("stop words", "none")
    stopped = [] if stop == "none" else stop_words("english") if stop == "english" else list(stop)
    cutter = WordCutter(
        stop_words=tuple(stopped), n_grams=int(counting.get("n-grams", 1)),
        lowercase=bool(counting.get("lowercase", True)), segmenter="none",
    )  # fmt: skip
    return vectorizer_of(cutter, words)


def _stop_words(names: str) -> list[str]:
    """Stop words of a file, or of languages that are named with commas between them."""
    import re

    from pluri.topics import stop_words
    from pluri.topics.text.cutting import TOKEN
    from pluri.topics.text.stop_words import language_code

    if names == "none":
        return []
    if all(language_code(name) for name in names.split(",")):
        return sorted({word for name in names.split(",") for word in stop_words(name)})
    path = Path(names)
    if not path.is_file():
        raise UsageError(f"--stop-words must be english, none or a file, or name other languages, got {names!r}")
    # As the documents are cut into words, so are the lines: "don't" leaves out "don".
    return sorted(set(re.findall(TOKEN, path.read_text(encoding="utf-8", errors="replace").lower())))
