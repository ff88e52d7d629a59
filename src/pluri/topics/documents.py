"""Documents as counts of words, checked once for all topic models, and the same documents as a list of tokens."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_non_negative, validate_data

#: What a person changed of the topics (`pluri.topics.editing`): a new fit forgets it.
EDITED = ("topic_names_", "edits_", "_undo_steps")
#: Largest count that is still told apart from its neighbours when it is added up.
LARGEST_COUNT = 2**31 - 1
#: Tokens are numbered by 32-bit numbers, and so are their counts.
MOST_TOKENS = 2**31 - 1
#: How many rows a sentence names, and how many characters of a text it shows.
NAMED_ROWS, SHOWN = 5, 40


class TokenArrays(NamedTuple):
    """The arrays of :class:`Tokens`, as compiled functions take them."""

    words: NDArray[np.int32]
    documents: NDArray[np.int32]
    offsets: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Tokens:
    """Every occurrence of a word, document after document.

    Attributes
    ----------
    words : int32 array of shape (n_tokens,)
        Column of each token; within a document in the order of the columns.
    documents : int32 array of shape (n_tokens,)
        Row of each token.
    offsets : int64 array of shape (n_documents + 1,)
        Document d is ``words[offsets[d] : offsets[d + 1]]``.
    n_words : int
        Size of the vocabulary.
    """

    words: NDArray[np.int32]
    documents: NDArray[np.int32]
    offsets: NDArray[np.int64]
    n_words: int

    @property
    def n_tokens(self) -> int:
        """Number of tokens."""
        return int(self.words.size)

    @property
    def n_documents(self) -> int:
        """Number of documents, empty ones included."""
        return int(self.offsets.size - 1)

    @property
    def arrays(self) -> TokenArrays:
        """For compiled functions."""
        return TokenArrays(self.words, self.documents, self.offsets)


def tokens_of(X: Any) -> Tokens:
    """Write out counts as tokens.

    Parameters
    ----------
    X : csr matrix of shape (n_documents, n_words)
        Whole counts, as :func:`check_documents` returns them.

    Returns
    -------
    Tokens

    Examples
    --------
    >>> from scipy import sparse
    >>> from pluri.topics.documents import tokens_of
    >>> tokens_of(sparse.csr_matrix([[2, 0, 1], [0, 1, 0]])).words
    array([0, 0, 2, 1], dtype=int32)
    """
    counts = X.data.astype(np.int64)
    if counts.sum() > MOST_TOKENS:
        raise ValueError(f"X must have at most {MOST_TOKENS} words in all to be written out, got {counts.sum()}")
    words = np.repeat(X.indices.astype(np.int32), counts)
    ends = np.concatenate([[0], np.cumsum(counts)])
    offsets = ends[X.indptr].astype(np.int64)
    documents = np.repeat(np.arange(X.shape[0], dtype=np.int32), np.diff(offsets))
    return Tokens(words, documents, offsets, int(X.shape[1]))


def check_documents(
    estimator: Any,
    X: Any,
    *,
    whole: bool = True,
    reset: bool = True,
    whom: str = "fit",
    empty: Literal["warn", "ignore", "error"] = "warn",
) -> Any:
    """Check counts of words in documents.

    Parameters
    ----------
    estimator : estimator
        Whose input it is: it learns, or is asked for, the number and the names of the columns.
    X : array-like or sparse matrix of shape (n_documents, n_words)
    whole : bool, default=True
        Refuse counts that are not whole numbers.
    reset : bool, default=True
        Whether the estimator learns the columns, instead of comparing with those it knows.
    whom : str, default="fit"
        Method that sentences name.
    empty : {"warn", "ignore", "error"}, default="warn"
        What to do about documents without words. If there are no others, a fit is refused unless they are ignored.

    Returns
    -------
    csr_matrix of float64
        Sorted, without stored zeros or repeated entries. The input is never changed.
    """
    name = f"{type(estimator).__name__}.{whom}"
    _refuse_texts(X)
    checked = validate_data(
        estimator, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=1
    )
    check_non_negative(checked, name)
    if sparse.issparse(checked) and checked.nnz:
        # Neither SciPy nor scikit-learn looks, and compiled loops would go there.
        low, high = int(checked.indices.min()), int(checked.indices.max())
        if low < 0 or high >= checked.shape[1]:
            wrong = low if low < 0 else high
            raise ValueError(f"X must have columns 0 to {checked.shape[1] - 1}, got an entry in column {wrong}")
    if reset:
        forget_words(estimator, int(checked.shape[1]))
    counts = sparse.csr_matrix(checked, dtype=np.float64, copy=sparse.issparse(checked) and checked is X)
    if not counts.has_canonical_format or (counts.data == 0).any():
        counts = counts.copy()
        counts.sum_duplicates()
        counts.eliminate_zeros()
    if whole:
        _refuse_fractions(counts, name)
    if empty != "ignore":
        if reset:
            refuse_no_words(counts, name)
        _tell_of_empty(counts, name, empty)
    return counts


def refuse_no_words(counts: Any, name: str) -> None:
    """Refuse documents none of which has a word; `name` is that of the method."""
    if not counts.nnz:
        raise ValueError(f"{name} needs at least one word, got empty documents only")


def words_of_columns(names: Any, n_words: int, argument: str = "feature_names") -> NDArray[Any]:
    """Word of each column, however the words are given.

    Parameters
    ----------
    names : array-like of str, dict from words to columns, or fitted vectorizer
        As ``CountVectorizer`` gives them by ``get_feature_names_out()`` and in ``vocabulary_``, or itself.
    n_words : int
        Number of columns.
    argument : str, default="feature_names"
        What sentences call it.

    Returns
    -------
    array of str of shape (n_words,)

    Examples
    --------
    >>> from pluri.topics.documents import words_of_columns
    >>> words_of_columns({"vote": 1, "ice": 0}, 2).tolist()
    ['ice', 'vote']
    """
    if hasattr(names, "get_feature_names_out"):
        names = names.get_feature_names_out()
    if isinstance(names, Mapping):
        columns = list(names.values())
        if not all(isinstance(column, int | np.integer) for column in columns) or sorted(columns) != [*range(n_words)]:
            raise ValueError(
                f"{argument} must have one word for each of {n_words} columns, got a dict of {len(names)} words that "
                f"does not lead to each of the columns 0 to {n_words - 1} once"
            )
        names = sorted(names, key=names.__getitem__)
    words: NDArray[Any] = np.asarray(names).astype(str)
    if words.shape != (n_words,):
        raise ValueError(f"{argument} must have one word for each of {n_words} columns, got {words.shape}")
    return words


def forget_words(estimator: Any, n_words: int) -> None:
    """Drop what was told of the topics of an earlier fit: documents, names, and words if they are not of X."""
    known = vars(estimator)
    for name in ("examples_", *EDITED):
        known.pop(name, None)
    words = known.get("vocabulary_")
    if words is not None and (len(words) != n_words or "feature_names_in_" in known):
        del known["vocabulary_"]
        known.pop("vectorizer_", None)


def _refuse_texts(X: Any) -> None:
    """Say what to do with texts, or with lists of their words."""
    first = X
    while isinstance(first, list | tuple) or getattr(first, "ndim", 0) == 1:
        if len(first) == 0:
            return
        first = first.iloc[0] if hasattr(first, "iloc") else first[0]
    if isinstance(first, str):
        shown = repr(first[:SHOWN] + ("..." if len(first) > SHOWN else ""))
        raise ValueError(
            f"X must be counts of words, got texts ({shown}): use sklearn.feature_extraction.text.CountVectorizer"
        )


def _refuse_fractions(counts: Any, name: str) -> None:
    wrong = np.flatnonzero(counts.data != np.floor(counts.data))
    if wrong.size:
        raise ValueError(
            f"{name} needs whole counts of words, got {counts.data[wrong[0]]:.6g}. Weights such as tf-idf are no "
            "counts: give those of CountVectorizer, or use a model with inference='vb'."
        )
    if counts.data.size and counts.data.max() > LARGEST_COUNT:
        raise ValueError(f"{name} needs counts of at most {LARGEST_COUNT}, got {counts.data.max():.6g}")


def _tell_of_empty(counts: Any, name: str, empty: str) -> None:
    rows = np.flatnonzero(np.diff(counts.indptr) == 0)
    if not rows.size:
        return
    listed = ", ".join(str(row) for row in rows[:NAMED_ROWS]) + (", ..." if rows.size > NAMED_ROWS else "")
    sentence = f"{rows.size} of {counts.shape[0]} documents have no words (rows {listed})"
    if empty == "error":
        raise ValueError(f"{name}: {sentence}; leave them out")
    warnings.warn(f"{name}: {sentence}: nothing is learned of them", UserWarning, stacklevel=4)
