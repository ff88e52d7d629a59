"""Collections of documents as counts of words: from texts, and in two parts."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields, replace
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from pluri.datasets.news import Documents
from pluri.validation import RandomState, as_generator, check_count

#: A word: two letters or more, without digits.
WORD = re.compile(r"(?u)\b[^\W\d_]{2,}\b")


@dataclass(frozen=True, eq=False, repr=False)
class WordCounts:
    """How often each word occurs in each document, and what else is known about the documents.

    Attributes
    ----------
    counts : csr_matrix of int64, shape (n_documents, n_words)
    vocabulary : ndarray of str, shape (n_words,)
        Words of the columns.
    titles : tuple of str
        One for each document; empty if there are none.
    texts : tuple of str
        One for each document; empty if there are none.
    is_test : ndarray of bool, shape (n_documents,), or None
        Whether the document is in the test part of the collection's own split.
    target : ndarray of shape (n_documents,) or (n_documents, n_targets), or None
        Ratings or classes.
    target_names : tuple of str
        Names of the classes, or of the columns of `target`.
    authors : tuple of tuple of str
        Authors of each document; empty if they are not known.
    links : ndarray of int64, shape (n_links, 2), or None
        Documents that cite, and that they cite.

    Examples
    --------
    >>> from pluri.datasets import count_words
    >>> data = count_words(["The cat sat.", "A cat, a hat!"], min_documents=1, max_share=1.0)
    >>> data
    WordCounts(2 documents, 3 words, 4 tokens)
    >>> data.vocabulary.tolist(), data.counts.toarray().tolist()
    (['cat', 'hat', 'sat'], [[1, 0, 1], [1, 1, 0]])
    """

    counts: scipy.sparse.csr_matrix
    vocabulary: NDArray[np.str_]
    titles: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    is_test: NDArray[np.bool_] | None = None
    target: NDArray[Any] | None = None
    target_names: tuple[str, ...] = ()
    authors: tuple[tuple[str, ...], ...] = ()
    links: NDArray[np.int64] | None = None

    @property
    def X(self) -> scipy.sparse.csr_matrix:
        """The counts, under the name that estimators use."""
        return self.counts

    @property
    def y(self) -> NDArray[Any] | None:
        """The target, under the name that estimators use."""
        return self.target

    def __len__(self) -> int:
        """Number of documents."""
        return int(self.counts.shape[0])

    def keys(self) -> list[str]:
        """Names of the fields."""
        return [field.name for field in fields(self)]

    def __getitem__(self, name: str) -> Any:
        """Return a field by its name."""
        if name not in self.keys():
            raise KeyError(name)
        return getattr(self, name)

    def __repr__(self) -> str:
        """Sizes instead of values."""
        n_documents, n_words = self.counts.shape
        return f"WordCounts({n_documents} documents, {n_words} words, {int(self.counts.sum())} tokens)"

    def documents(self, rows: ArrayLike) -> WordCounts:
        """Some of the documents, by number or by a mask, with the same words.

        Parameters
        ----------
        rows : array-like of int or bool

        Returns
        -------
        WordCounts
            Links between documents that are both there are kept.
        """
        chosen = np.arange(len(self))[np.asarray(rows)]
        links = self.links
        if links is not None:
            place = np.full(len(self), -1)
            place[chosen] = np.arange(chosen.size)
            links = place[links]
            links = links[(links >= 0).all(axis=1)]
        return replace(
            self,
            counts=self.counts[chosen],
            titles=tuple(self.titles[row] for row in chosen) if self.titles else (),
            texts=tuple(self.texts[row] for row in chosen) if self.texts else (),
            is_test=None if self.is_test is None else self.is_test[chosen],
            target=None if self.target is None else self.target[chosen],
            authors=tuple(self.authors[row] for row in chosen) if self.authors else (),
            links=links,
        )

    def common_words(
        self, *, min_documents: int = 5, max_share: float = 1.0, max_words: int | None = None
    ) -> WordCounts:
        """The same documents without rare and without very common words.

        Parameters
        ----------
        min_documents : int, default=5
            Words in fewer documents are left out.
        max_share : float, default=1
            Words in a larger share of the documents are left out.
        max_words : int, optional
            Of the rest, those that occur most often are kept.

        Returns
        -------
        WordCounts
            Documents without a word that is left are still there, as empty rows.
        """
        _check_limits(min_documents, max_share, max_words)
        in_documents = np.bincount(self.counts.indices, minlength=self.counts.shape[1])
        kept = np.flatnonzero((in_documents >= min_documents) & (in_documents <= max_share * len(self)))
        if max_words is not None and kept.size > max_words:
            total = np.asarray(self.counts.sum(axis=0)).ravel()[kept]
            kept = np.sort(kept[np.argsort(-total, kind="stable")[:max_words]])
        if not kept.size:
            raise ValueError(
                "min_documents and max_share must leave at least one word, "
                f"got min_documents={min_documents}, max_share={max_share}"
            )
        return replace(self, counts=self.counts[:, kept].tocsr(), vocabulary=self.vocabulary[kept])


def count_words(
    documents: Documents | Sequence[str],
    *,
    min_documents: int = 5,
    max_share: float = 0.5,
    max_words: int | None = None,
    stop_words: str | Collection[str] | None = "english",
    stem: bool = False,
) -> WordCounts:
    """Count the words of texts.

    A word is two or more letters in a row, in lower case; what has a digit in it is none.

    Parameters
    ----------
    documents : Documents or sequence of str
        What :func:`load_newsgroups` and :func:`load_reuters` return, or texts.
    min_documents : int, default=5
        Words in fewer documents are left out.
    max_share : float, default=0.5
        Words in a larger share of the documents are left out.
    max_words : int, optional
        Of the rest, those that occur most often are kept.
    stop_words : "english", collection of str, or None, default="english"
        Words to leave out: scikit-learn's list of English ones, your own, or none.
    stem : bool, default=False
        Cut words down to their stems by Porter's rules, after stop words are left out. Needs the package
        snowballstemmer.

    Returns
    -------
    WordCounts
        With titles, test part and labels (as `target`) where the documents have them. Documents without a word that
        is left are still there, as empty rows.

    Examples
    --------
    >>> from pluri.datasets import count_words
    >>> data = count_words(["Dogs and cats", "dogs", "a bird"], min_documents=1, max_share=1.0)
    >>> data.vocabulary.tolist()
    ['bird', 'cats', 'dogs']
    """
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

    _check_limits(min_documents, max_share, max_words)
    texts = documents.texts if isinstance(documents, Documents) else tuple(documents)
    if isinstance(documents, str) or not all(isinstance(text, str) for text in texts):
        raise ValueError("documents must be a sequence of strings")
    if isinstance(stop_words, str) and stop_words != "english":
        raise ValueError(f"stop_words must be 'english', a collection of words or None, got {stop_words!r}")
    stops = frozenset(ENGLISH_STOP_WORDS if stop_words == "english" else stop_words or ())
    vectorizer = CountVectorizer(analyzer=_analyzer(stops, _stemmer() if stem else None), dtype=np.int64)
    try:
        counts = scipy.sparse.csr_matrix(vectorizer.fit_transform(texts))
    except ValueError as failure:
        raise ValueError(f"documents must hold at least one word that is no stop word, got none ({failure})") from None
    counts.sort_indices()
    whole = WordCounts(counts, np.asarray(vectorizer.get_feature_names_out(), dtype=np.str_), texts=texts)
    if isinstance(documents, Documents):
        names, classes = np.unique(documents.labels, return_inverse=True)
        whole = replace(
            whole,
            titles=documents.titles,
            is_test=documents.is_test,
            target=classes,
            target_names=tuple(map(str, names)),
        )
    return whole.common_words(min_documents=min_documents, max_share=max_share, max_words=max_words)


def train_test(
    data: WordCounts, share: float | None = 0.2, random_state: RandomState = None
) -> tuple[WordCounts, WordCounts]:
    """Divide documents into a part to learn from and a part to test on.

    Parameters
    ----------
    data : WordCounts
    share : float or None, default=0.2
        Part of the documents that are drawn for the test, between 0 and 1; None for the collection's own split.
    random_state : int, Generator or None
        Randomness.

    Returns
    -------
    train, test : WordCounts
        Both in the order of `data`, with the same words.

    Examples
    --------
    >>> from pluri.datasets import count_words, train_test
    >>> data = count_words(["one fish", "two fish", "red fish", "blue fish"], min_documents=1, max_share=1.0)
    >>> [len(part) for part in train_test(data, 0.25, random_state=0)]
    [3, 1]
    """
    if share is None:
        if data.is_test is None:
            raise ValueError("share must be a number for a collection without a split of its own, got None")
        test = data.is_test
    else:
        if not 0 < share < 1:
            raise ValueError(f"share must lie between 0 and 1, got {share}")
        n_test = round(share * len(data))
        if not 0 < n_test < len(data):
            raise ValueError(f"share must leave documents on both sides, got {share} of {len(data)}")
        test = np.zeros(len(data), dtype=bool)
        test[as_generator(random_state).permutation(len(data))[:n_test]] = True
    return data.documents(~test), data.documents(test)


def _check_limits(min_documents: int, max_share: float, max_words: int | None) -> None:
    check_count(min_documents, "min_documents", 0)
    if not 0 < max_share <= 1:
        raise ValueError(f"max_share must be above 0 and at most 1, got {max_share}")
    if max_words is not None and (not isinstance(max_words, int | np.integer) or max_words < 1):
        raise ValueError(f"max_words must be a whole number of at least 1 or None, got {max_words!r}")


def _analyzer(stops: frozenset[str], stemmer: Callable[[str], str] | None) -> Callable[[str], list[str]]:
    """Words of a text that are no stop words, each cut down once."""
    stems: dict[str, str] = {}

    def words(text: str) -> list[str]:
        found = [word for word in WORD.findall(text.lower()) if word not in stops]
        if stemmer is None:
            return found
        for word in found:
            if word not in stems:
                stems[word] = stemmer(word)
        return [stems[word] for word in found]

    return words


def _stemmer() -> Callable[[str], str]:
    try:
        snowballstemmer = import_module("snowballstemmer")
    except ImportError as missing:
        raise ImportError("stem=True needs snowballstemmer: pip install 'pluri[text]'") from missing
    cut: Callable[[str], str] = snowballstemmer.stemmer("porter").stemWord
    return cut
