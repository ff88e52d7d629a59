r"""Coherence of topics: do the words that lead a topic occur together in documents?

From the shares p of documents, or of windows that slide over texts, in which words occur alone and together:

- UMass [1]_: mean over pairs of ``log (p(w_i, w_j) + e) / p(w_j)``, w_j the earlier of the two in the topic;
- UCI [2]_: mean over pairs of the pointwise mutual information ``log (p(w_i, w_j) + e) / (p(w_i) p(w_j))``;
- NPMI [3]_: the same divided by ``-log (p(w_i, w_j) + e)``, from -1 to 1;
- C_v [4]_: mean over words of the cosine between the word's NPMI with every top word and the sum of these vectors.

References
----------
.. [1] Mimno, D., Wallach, H., Talley, E., Leenders, M. and McCallum, A. (2011). Optimizing semantic coherence in topic
   models. EMNLP.
.. [2] Newman, D., Lau, J. H., Grieser, K. and Baldwin, T. (2010). Automatic evaluation of topic coherence. NAACL.
.. [3] Bouma, G. (2009). Normalized (pointwise) mutual information in collocation extraction. GSCL.
.. [4] Roeder, M., Both, A. and Hinneburg, A. (2015). Exploring the space of topic coherence measures. WSDM.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pluri.validation import Only, check_count, check_value

Measure = Literal["npmi", "umass", "uci", "c_v"]
#: Windows of Roeder et al., in words; UMass is a measure of documents.
WINDOWS = {"npmi": 10, "uci": 10, "c_v": 110, "umass": None}


Indices = NDArray[np.int64]
#: Entries of the table of windows and words that is held at a time.
BLOCK = 10**7


def occurrence(counts: Any) -> Any:
    """Whether each word is in each document."""
    import scipy.sparse

    table = scipy.sparse.csc_matrix(counts, dtype=np.float64, copy=True)
    table.sum_duplicates()
    table.data = (table.data > 0).astype(np.float64)
    return table


def word_columns(texts: list[list[Any]], numbers: dict[str, int] | None) -> list[Indices]:
    """Texts as columns; -1 for words that are not in the vocabulary."""
    if numbers is None:
        return [np.asarray(text, dtype=np.int64) for text in texts]
    return [np.array([numbers.get(str(token), -1) for token in text], dtype=np.int64) for text in texts]


def windows(texts: list[Indices], chosen: list[Indices], length: int | None) -> Iterator[Any]:
    """Whether each word is in each window, a block of texts at a time.

    A word at position p is in the windows that start at ``p - length + 1, ..., p``. Of two occurrences the later one
    adds only the windows that the earlier is not in.
    """
    import scipy.sparse

    relevant = np.unique(np.concatenate(chosen))
    n_columns = int(max(relevant.max(), max((int(text.max(initial=-1)) for text in texts), default=-1))) + 1
    sizes = np.array([text.size for text in texts], dtype=np.int64)
    width = sizes if length is None else np.minimum(sizes, length)
    n_starts = np.maximum(sizes - width + 1, 1)
    work = np.cumsum(sizes * np.maximum(1, np.minimum(width, n_starts)))
    first = 0
    while first < len(texts):
        done = work[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(work, done + BLOCK, side="right")))
        part = slice(first, last)
        document = np.repeat(np.arange(first, last), sizes[part])
        position = np.concatenate([np.arange(size) for size in sizes[part]])
        column = np.concatenate(texts[part])
        keep = np.isin(column, relevant)
        document, position, column = document[keep], position[keep], column[keep]
        order = np.lexsort((position, document, column))
        document, position, column = document[order], position[order], column[order]
        start = np.maximum(position - width[document] + 1, 0)
        stop = np.minimum(position, n_starts[document] - 1) + 1
        follows = np.zeros(start.size, dtype=bool)
        follows[1:] = (column[1:] == column[:-1]) & (document[1:] == document[:-1])
        start[1:] = np.where(follows[1:], np.maximum(start[1:], stop[:-1]), start[1:])
        n_new = np.maximum(stop - start, 0)
        offset = np.cumsum(n_starts[part]) - n_starts[part]
        begin = offset[document - first] + start
        rows = np.repeat(begin - (np.cumsum(n_new) - n_new), n_new) + np.arange(n_new.sum())
        where = rows, np.repeat(column, n_new)
        shape = int(n_starts[part].sum()), n_columns
        yield scipy.sparse.csc_matrix((np.ones(rows.size), where), shape=shape)
        first = last


def _npmi(shares: NDArray[np.float64], epsilon: float, normalised: bool = True) -> NDArray[np.float64]:
    """(Normalised) pointwise mutual information of all pairs; the diagonal of `shares` has the words alone."""
    alone = np.diag(shares)
    product = np.outer(alone, alone)
    known = product > 0
    value = np.zeros(shares.shape)
    value[known] = np.log((shares[known] + epsilon) / product[known])
    if normalised:
        always = shares >= 1
        np.divide(value, -np.log(shares + epsilon), out=value, where=known & ~always)
        value[always] = 1.0
    return value


def _pairs(value: NDArray[np.float64]) -> NDArray[np.float64]:
    return value[np.tril_indices(len(value), -1)]


def npmi_score(shares: NDArray[np.float64], epsilon: float) -> float:
    return float(_pairs(_npmi(shares, epsilon)).mean())


def uci_score(shares: NDArray[np.float64], epsilon: float) -> float:
    return float(_pairs(_npmi(shares, epsilon, normalised=False)).mean())


def umass_score(shares: NDArray[np.float64], epsilon: float) -> float:
    """Rows are the later words, columns the earlier ones that they are conditioned on."""
    earlier = np.broadcast_to(np.diag(shares), shares.shape)
    ratio = np.ones(shares.shape)
    np.divide(shares + epsilon, earlier, out=ratio, where=earlier > 0)
    return float(_pairs(np.log(ratio)).mean())


def cv_score(shares: NDArray[np.float64], epsilon: float) -> float:
    vectors = _npmi(shares, epsilon)
    whole = vectors.sum(axis=0)
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(whole)
    cosine = np.zeros(len(vectors))
    np.divide(vectors @ whole, lengths, out=cosine, where=lengths > 0)
    return float(cosine.mean())


@dataclass(frozen=True, eq=False)
class TopicCoherence:
    """Coherence of each topic.

    Attributes
    ----------
    per_topic : ndarray of shape (n_topics,)
    measure : str
    """

    per_topic: NDArray[np.float64]
    measure: str

    @property
    def mean(self) -> float:
        """Mean over the topics."""
        return float(self.per_topic.mean())


def topic_coherence(
    topics: Any,
    documents: Any,
    measure: Measure = "npmi",
    *,
    n_words: int = 10,
    window: int | Literal["document"] | None = None,
    vocabulary: Sequence[str] | NDArray[Any] | Mapping[str, int] | None = None,
    epsilon: float = 1e-12,
) -> TopicCoherence:
    """Measure how often the top words of topics occur together.

    Parameters
    ----------
    topics : array-like or fitted topic model
        A model with `topic_word_`, whose words are known if it has a `vocabulary_` or `feature_names_in_`. Or
        probabilities, of shape (n_topics, vocabulary size): the `n_words` most probable words of each topic are taken.
        Or top words, the best first: whole numbers (columns of the counts) or strings, of which the first `n_words`
        are taken.
    documents : sparse matrix, array or data frame of shape (n_documents, vocabulary size), or list of lists of tokens
        Counts of words, where words count as together if they are in one document; or texts as lists of strings (or
        of column numbers), in the order in which they stand. Best from a large collection of the same language,
        which need not be the one the topics were learned from.
    measure : {"npmi", "umass", "uci", "c_v"}, default="npmi"
    n_words : int, default=10
        Number of top words of each topic.
    window : int or "document", optional
        Length of the window that slides over texts, in words. The default is 10 for NPMI and UCI, 110 for C_v and the
        document for UMass. Counts have no order: for them it is always the document.
    vocabulary : sequence of str or dict from words to columns, optional
        Words of the columns; needed if topics are given by column and texts by words, or the other way round.
    epsilon : float, default=1e-12
        What is added to the shares of pairs, so that a pair that never occurs has a logarithm. Mimno et al. add one
        document: ``1 / n_documents``.

    Returns
    -------
    TopicCoherence
        A pair of which one word never occurs in the documents counts as 0, for UMass if that is the earlier one. A pair
        in all windows has NPMI 1.

    Notes
    -----
    The values are those of gensim's ``CoherenceModel``, with two exceptions. There a word that occurs twice in a window
    is lost when its first occurrence leaves the window, though the second is still in it; here it is counted. And a
    pair that is in all windows has NPMI -1 there.

    Examples
    --------
    >>> from pluri.metrics import topic_coherence
    >>> texts = [["cat", "dog"], ["cat", "dog", "fish"], ["car", "road"], ["car", "fish"]]
    >>> result = topic_coherence([["cat", "dog"], ["cat", "fish"], ["dog", "car"]], texts)
    >>> result.per_topic.round(3)
    array([ 1.  ,  0.  , -0.95])
    """
    check_value(measure, "measure", Only(*WINDOWS))
    check_count(n_words, "n_words", 2)
    if not epsilon > 0:
        raise ValueError(f"epsilon must be positive, got {epsilon}")
    if hasattr(topics, "topic_word_") or hasattr(topics, "fit"):
        topics, vocabulary = _topics_of_model(topics, vocabulary)
    if hasattr(documents, "to_numpy") and np.ndim(documents) == 2:
        documents = documents.to_numpy()
    is_matrix = hasattr(documents, "tocsc") or (isinstance(documents, np.ndarray) and documents.ndim == 2)
    if not is_matrix:
        documents = list(documents)
        _refuse_strings(documents, "documents", "tokens")
    _refuse_strings(topics, "topics", "words")
    texts = None if is_matrix else [list(text) for text in documents]
    numbers = None if vocabulary is None else _numbers(vocabulary)
    if texts is not None and any(isinstance(token, str) for text in texts for token in text[:1]) and numbers is None:
        if not _strings(topics):
            raise ValueError("vocabulary must be given where topics are columns and documents are words")
        numbers = {}
        for row in topics:
            for word in row:
                numbers.setdefault(str(word), len(numbers))
    chosen = top_columns(topics, int(n_words), numbers)
    blocks: Iterator[Any]
    if texts is None:
        if window not in (None, "document"):
            raise ValueError(f"window must be None or 'document' for counts, which have no order, got {window!r}")
        blocks = iter([occurrence(documents)])
    else:
        length = WINDOWS[measure] if window is None else None if window == "document" else window
        if length is not None and (not isinstance(length, int | np.integer) or length < 1):
            raise ValueError(f"window must be a whole number of at least 1 or 'document', got {window!r}")
        blocks = windows(word_columns(texts, numbers), chosen, length)
    together = [np.zeros((row.size, row.size)) for row in chosen]
    n_windows = 0
    for block in blocks:
        n_windows += block.shape[0]
        for row, counts in zip(chosen, together):
            if row.size and row.max() >= block.shape[1]:
                raise ValueError(f"topics must name columns below {block.shape[1]}, got {row.max()}")
            occurs = block[:, row]
            counts += (occurs.T @ occurs).toarray()
    if not n_windows:
        raise ValueError("documents must hold at least one document, got none")
    score = {"npmi": npmi_score, "uci": uci_score, "umass": umass_score, "c_v": cv_score}[measure]
    return TopicCoherence(np.array([score(counts / n_windows, epsilon) for counts in together]), measure)


def _topics_of_model(model: Any, vocabulary: Any) -> tuple[NDArray[np.float64], Any]:
    """Topics of a fitted model, and the words of their columns if they are not given but known."""
    if not hasattr(model, "topic_word_"):
        raise ValueError(f"topics must be a fitted model with topic_word_, got {type(model).__name__} without it")
    if vocabulary is None:
        vocabulary = getattr(model, "vocabulary_", getattr(model, "feature_names_in_", None))
    return np.asarray(model.topic_word_, dtype=np.float64), vocabulary


def _numbers(vocabulary: Any) -> dict[str, int]:
    if isinstance(vocabulary, Mapping):
        return {str(word): int(column) for word, column in vocabulary.items()}
    return {str(word): column for column, word in enumerate(vocabulary)}


def top_columns(topics: Any, n_words: int, numbers: dict[str, int] | None = None, least: int = 2) -> list[Indices]:
    """Columns of the best words of each topic, from probabilities, columns or words."""
    _refuse_strings(topics, "topics", "words")
    if _strings(topics):
        if numbers is None:
            raise ValueError("vocabulary must be given where topics are words and documents are counts")
        unknown = [str(word) for row in topics for word in row[:n_words] if str(word) not in numbers]
        if unknown:
            raise ValueError(f"topics must have words of the vocabulary, got {unknown[0]!r}")
        rows = [np.array([numbers[str(word)] for word in row[:n_words]], dtype=np.int64) for row in topics]
    else:
        rows = [np.asarray(row) for row in topics]
        if rows and rows[0].dtype.kind == "f":
            table = np.asarray(topics, dtype=np.float64)
            if table.ndim != 2 or not np.isfinite(table).all():
                raise ValueError(f"topics must be a finite matrix of topics and words, got shape {table.shape}")
            rows = list(np.argsort(-table, axis=1, kind="stable"))
        if any(row.ndim != 1 or (row.size and row.dtype.kind not in "iu") for row in rows):
            raise ValueError("topics must have a list of words, of columns or of probabilities for each topic")
        rows = [row[:n_words].astype(np.int64) for row in rows]
    if not rows:
        raise ValueError("topics must hold at least one topic, got none")
    for row in rows:
        if row.size < least or np.unique(row).size < row.size or row.min() < 0:
            raise ValueError(f"topics must have {least} or more different words each, got {row.tolist()}")
    return rows


def _refuse_strings(lists: Any, name: str, of: str) -> None:
    """Refuse a string where a list of strings is meant: its characters would be taken for them."""
    for entry in lists:
        if isinstance(entry, str):
            raise ValueError(f"{name} must be lists of {of}, got the string {entry[:40]!r}; split it first")


def _strings(topics: Any) -> bool:
    return any(isinstance(word, str) for row in topics for word in row[:1])
