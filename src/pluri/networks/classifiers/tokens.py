"""Texts, lists of tokens and arrays of token numbers, as numbers of a vocabulary.

Row 0 of a table of embeddings is for unknown tokens, row ``1 + k`` for the token number k of the vocabulary.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

from pluri.networks.examples import UnknownTokenWarning

Integers = NDArray[np.int64]

#: A word, with what follows an apostrophe; or a sign of punctuation.
WORD = re.compile(r"\w+(?:'\w+)?|[^\w\s]")
#: What stands behind the end of a sequence in an array of token numbers.
PADDING = -1


class TokenLists(NamedTuple):
    """Sequences of tokens.

    Attributes
    ----------
    sequences : a list of strings, or an array of numbers, for each
    kind : whether they are words or numbers
    """

    sequences: list[Any]
    kind: Literal["words", "numbers"]


def read_tokens(owner: Any, X: Any, vectorizer: Any = None, *, reset: bool = False) -> TokenLists:
    """Sequences of tokens from whatever a user has.

    Parameters
    ----------
    owner : estimator
        Of which ``n_features_in_`` and ``feature_names_in_`` are set (`reset`) or held against X, if X is a table.
    X : list of str, list of lists of str or int, or array of shape (n_sequences, length) of str or int
        Texts, sequences of tokens, or a table whose rows are sequences; -1 in a table of numbers is padding.
    vectorizer : object with ``build_analyzer``, optional
        Splits texts; by default into lower-case words and signs of punctuation.
    reset : bool
    """
    if isinstance(X, str | bytes):
        raise ValueError("X must be a list of texts or of sequences of tokens, got one string")
    if issparse(X):
        raise ValueError("X must be texts, sequences of tokens, or token numbers, got a sparse matrix")
    if getattr(X, "ndim", None) == 0 or not hasattr(X, "__len__"):
        raise ValueError(f"X must be a list of texts or of sequences of tokens, got {X!r}")
    if getattr(X, "ndim", 1) > 1:
        return _table(owner, X, reset)
    if not len(X):
        raise ValueError("X must have at least one sequence, got 0 samples")
    items = list(X)
    if all(isinstance(item, str) for item in items):
        split = splitter(vectorizer)
        return TokenLists([split(item) for item in items], "words")
    return _lists(items)


def splitter(vectorizer: Any = None) -> Callable[[str], list[str]]:
    """The function that splits a text."""
    if vectorizer is None:
        return lambda text: WORD.findall(text.lower())
    if tuple(getattr(vectorizer, "ngram_range", (1, 1))) != (1, 1):
        raise ValueError(
            f"vectorizer must have ngram_range (1, 1), got {vectorizer.ngram_range}: longer ones lose the order"
        )
    return vectorizer.build_analyzer()


def _table(owner: Any, X: Any, reset: bool) -> TokenLists:
    table = validate_data(owner, X, reset=reset, dtype=None, ensure_all_finite=False, ensure_2d=True)
    if table.dtype.kind in "biuf":
        numbers = _whole(table)
        if (numbers < PADDING).any():
            raise ValueError(f"X must hold token numbers of at least 0, or {PADDING} for padding, got {numbers.min()}")
        return TokenLists([row[row != PADDING] for row in numbers], "numbers")
    if table.shape[1] == 1:
        raise ValueError(
            "X must be a list of texts or of sequences of tokens, got a table of one column: give the column"
        )
    return _lists(list(table))


def _lists(items: list[Any]) -> TokenLists:
    """Sequences of tokens of one kind: the first token decides which."""
    if 2 * sum(isinstance(item, str) for item in items) > len(items):
        number = next(number for number, item in enumerate(items) if not isinstance(item, str))
        raise ValueError(f"X must be all texts, or all sequences of tokens, got {items[number]!r} at {number}")
    for number, item in enumerate(items):
        if isinstance(item, str | bytes) or not hasattr(item, "__len__") or np.ndim(item[0] if len(item) else 0) > 0:
            raise ValueError(f"X must be all texts, or all sequences of tokens, got {item!r} at {number}")
    first = next((item[0] for item in items if len(item)), None)
    if isinstance(first, str):
        wrong = next((token for item in items for token in item if not isinstance(token, str)), None)
        if wrong is not None:
            raise ValueError(f"X must hold tokens of one kind, got {first!r} and {wrong!r}")
        return TokenLists([list(item) for item in items], "words")
    numbers = [_whole(np.asarray(list(item))) for item in items]
    lowest = min((int(one.min()) for one in numbers if one.size), default=0)
    if lowest < 0:
        raise ValueError(f"X must hold token numbers of at least 0, got {lowest}")
    return TokenLists(numbers, "numbers")


def _whole(values: NDArray[Any]) -> Integers:
    """Whole numbers as integers; whatever else is refused."""
    if values.size and values.dtype.kind not in "biuf":
        raise ValueError(f"X must hold tokens (str) or token numbers, got {values.reshape(-1)[0]!r}")
    if values.dtype.kind == "f":
        wrong = values[~(np.isfinite(values) & (values == np.floor(values)))]
        if wrong.size:
            raise ValueError(f"X must hold whole token numbers, got {wrong[0]}")
        if np.abs(values).max(initial=0) > 2**53:
            raise ValueError("X must hold token numbers below 2**53")
    return values.astype(np.int64)


def check_not_empty(sequences: Sequence[Any]) -> None:
    """Refuse sequences without tokens: a network has nothing to say of them."""
    empty = [number for number, sequence in enumerate(sequences) if not len(sequence)]
    if empty:
        more = f" and {len(empty) - 1} more" if len(empty) > 1 else ""
        raise ValueError(f"X must have at least one token in each sequence, got none in sequence {empty[0]}{more}")


def learn_vocabulary(tokens: TokenLists, min_count: int) -> tuple[NDArray[Any], Integers]:
    """Tokens that occur at least so often, sorted, and how often each does."""
    if tokens.kind == "numbers":
        found, counts = np.unique(np.concatenate(tokens.sequences), return_counts=True)
    else:
        counted = Counter(token for sequence in tokens.sequences for token in sequence)
        words = sorted(counted)
        found, counts = np.array(words), np.array([counted[word] for word in words])
    often = counts >= min_count
    if not often.any():
        raise ValueError(
            f"min_count must leave some tokens, got {min_count}; the commonest occurs {counts.max()} times"
        )
    return found[often], counts[often]


def encode(tokens: TokenLists, vocabulary: NDArray[Any]) -> list[Integers]:
    """Rows of the table of embeddings: 1 + place in the vocabulary, 0 for what is not there."""
    kind = "numbers" if vocabulary.dtype.kind in "iu" else "words"
    if tokens.kind != kind:
        raise ValueError(f"X must hold {kind}, as the data of fit did, got {tokens.kind}")
    if kind == "words":
        place = {word: number for number, word in enumerate(vocabulary.tolist(), 1)}
        return [np.array([place.get(word, 0) for word in sequence], dtype=np.int64) for sequence in tokens.sequences]
    return [_places(np.asarray(sequence), vocabulary) for sequence in tokens.sequences]


def _places(numbers: Integers, vocabulary: NDArray[Any]) -> Integers:
    place = np.minimum(np.searchsorted(vocabulary, numbers), len(vocabulary) - 1)
    return np.where(vocabulary[place] == numbers, place + 1, 0)


def count_unknown(rows: list[Integers]) -> tuple[int, int]:
    """Tokens that are not in the vocabulary, and all tokens."""
    return sum(int((row == 0).sum()) for row in rows), sum(map(len, rows))


def warn_of_unknown(rows: list[Integers]) -> int:
    """Say how many tokens are not in the vocabulary, if any; and return their number."""
    unknown, total = count_unknown(rows)
    if unknown:
        warnings.warn(
            f"{unknown} of {total} tokens of X are unknown to the vocabulary; they are read as one unknown token",
            UnknownTokenWarning,
            stacklevel=4,
        )
    return unknown


def warn_of_few_vectors(rows: list[Integers]) -> None:
    """Say so if embeddings know less than half of the tokens that are learned from."""
    unknown, total = count_unknown(rows)
    if 2 * unknown > total:
        warnings.warn(
            f"embeddings have no vector for {unknown} of {total} tokens of X; they are read as one unknown token",
            UnknownTokenWarning,
            stacklevel=4,
        )


def given_embeddings(embeddings: Any) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """Tokens and their vectors, sorted by token, from what a user gives; see `BiLSTMClassifier`."""
    if isinstance(embeddings, tuple) and len(embeddings) == 2:
        words, vectors = np.asarray(embeddings[0]), _vectors(embeddings[1])
        if words.ndim != 1 or words.dtype.kind not in "USiu" or len(words) != len(vectors):
            raise ValueError(
                f"embeddings must be words and a vector for each, got {words.shape} words and {vectors.shape} vectors"
            )
    else:
        vectors = _vectors(embeddings)
        words = np.arange(len(vectors))
    found, first = np.unique(words, return_index=True)
    if len(found) < len(words):
        raise ValueError(f"embeddings must have one vector for each word, got {len(words) - len(found)} repeated")
    return found, vectors[first]


def _vectors(values: ArrayLike) -> NDArray[np.float32]:
    vectors = np.asarray(values, dtype=np.float32)
    if vectors.ndim != 2 or 0 in vectors.shape or not np.isfinite(vectors).all():
        raise ValueError(
            "embeddings must be finite vectors of shape (n_tokens, size), alone or after their words in a pair, got "
            f"shape {vectors.shape}"
        )
    return vectors
