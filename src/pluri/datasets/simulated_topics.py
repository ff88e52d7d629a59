"""Documents drawn from topic models, with the truth they were drawn from.

:func:`make_topic_documents` draws from latent Dirichlet allocation [1]_, :func:`make_bars` from its picture book: the
words are the cells of a grid and the topics its rows and columns [2]_. :func:`make_rated_documents` adds a rating to
each document [3]_.

References
----------
.. [1] Blei, D., Ng, A. and Jordan, M. (2003). Latent Dirichlet allocation. JMLR 3.
.. [2] Griffiths, T. and Steyvers, M. (2004). Finding scientific topics. PNAS 101.
.. [3] Blei, D. and McAuliffe, J. (2007). Supervised topic models. NIPS.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from pluri.datasets.records import _describe
from pluri.validation import RandomState, as_generator, check_count


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedDocuments:
    """What all simulated documents have: counts of words, and where each word came from.

    Attributes
    ----------
    counts : csr_matrix of int64, shape (n_documents, n_words)
        How often each word occurs in each document.
    topic_word : ndarray of shape (n_topics, n_words)
        Distribution over words of each topic.
    topic_counts : ndarray of int64, shape (n_documents, n_topics)
        How many words of each document came from each topic.
    """

    counts: scipy.sparse.csr_matrix
    topic_word: NDArray[np.float64]
    topic_counts: NDArray[np.int64]

    @property
    def X(self) -> scipy.sparse.csr_matrix:
        """The counts, under the name that estimators use."""
        return self.counts

    def keys(self) -> list[str]:
        """Names of the fields."""
        return [field.name for field in fields(self)]

    def __getitem__(self, name: str) -> Any:
        """Return a field by its name."""
        if name not in self.keys():
            raise KeyError(name)
        return getattr(self, name)

    def __repr__(self) -> str:
        """Kind and shape of each field instead of its values."""
        shown = {name: self[name] for name in self.keys()}
        described = [f"{name}={_describe(value)}" for name, value in shown.items() if not scipy.sparse.issparse(value)]
        described.insert(0, f"counts={self.counts.dtype}{list(self.counts.shape)}")
        return f"{type(self).__name__}({', '.join(described)})"


@dataclass(frozen=True, eq=False, repr=False)
class TopicDocuments(SimulatedDocuments):
    """Documents as mixtures of topics.

    Attributes
    ----------
    counts, topic_word, topic_counts
        See :class:`SimulatedDocuments`.
    doc_topic : ndarray of shape (n_documents, n_topics)
        Proportions of the topics that the words of each document were drawn with.
    """

    doc_topic: NDArray[np.float64]

    @property
    def true_perplexity(self) -> float:
        """Perplexity of the words under the topics and proportions they were drawn from."""
        entries = self.counts.tocoo()
        total = 0.0
        for start in range(0, entries.nnz, 2**16):
            block = slice(start, start + 2**16)
            probability = np.einsum(
                "nk,kn->n", self.doc_topic[entries.row[block]], self.topic_word[:, entries.col[block]]
            )
            total += float(entries.data[block] @ np.log(probability))
        return float(np.exp(-total / self.counts.sum()))


def make_topic_documents(
    n_documents: int = 1000,
    n_words_per_document: int | ArrayLike = 100,
    n_words: int = 500,
    n_topics: int = 10,
    doc_topic_prior: float | ArrayLike = 0.1,
    topic_word_prior: float | ArrayLike = 0.05,
    random_state: RandomState = None,
) -> TopicDocuments:
    """Draw documents from latent Dirichlet allocation.

    Parameters
    ----------
    n_documents : int, default=1000
    n_words_per_document : int or array-like of shape (n_documents,), default=100
        Length of the documents.
    n_words : int, default=500
        Size of the vocabulary.
    n_topics : int, default=10
    doc_topic_prior : float or array-like of shape (n_topics,), default=0.1
        Parameters of the Dirichlet distribution of the proportions of a document.
    topic_word_prior : float or array-like of shape (n_words,), default=0.05
        Parameters of the Dirichlet distribution of the words of a topic.
    random_state : int, Generator or None
        Randomness.

    Returns
    -------
    TopicDocuments

    Examples
    --------
    >>> from pluri.datasets import make_topic_documents
    >>> make_topic_documents(n_documents=20, n_words=30, n_topics=3, random_state=0)
    TopicDocuments(counts=int64[20, 30], topic_word=float64[3, 30], topic_counts=int64[20, 3], doc_topic=float64[20, 3])
    """
    rng = as_generator(random_state)
    for name, value in (("n_documents", n_documents), ("n_words", n_words), ("n_topics", n_topics)):
        check_count(value, name)
    topic_word = rng.dirichlet(concentration("topic_word_prior", topic_word_prior, n_words), size=n_topics)
    doc_topic = rng.dirichlet(concentration("doc_topic_prior", doc_topic_prior, n_topics), size=n_documents)
    return mixtures(rng, doc_topic, topic_word, lengths(n_words_per_document, n_documents))


def make_bars(
    size: int = 5,
    n_documents: int = 1000,
    length: int | ArrayLike = 100,
    doc_topic_prior: float | ArrayLike = 0.1,
    random_state: RandomState = None,
) -> TopicDocuments:
    """Draw pictures as documents: words are cells of a grid, topics its rows and then its columns.

    Parameters
    ----------
    size : int, default=5
        Side of the grid: ``size**2`` words, ``2 * size`` topics, each uniform on ``size`` words.
    n_documents : int, default=1000
    length : int or array-like of shape (n_documents,), default=100
        Number of words of the documents.
    doc_topic_prior : float or array-like of shape (2 * size,), default=0.1
        Parameters of the Dirichlet distribution of the proportions of a document.
    random_state : int, Generator or None
        Randomness.

    Returns
    -------
    TopicDocuments

    Examples
    --------
    >>> from pluri.datasets import make_bars
    >>> data = make_bars(size=3, n_documents=10, random_state=0)
    >>> data.topic_word[4].reshape(3, 3).round(2)
    array([[0.  , 0.33, 0.  ],
           [0.  , 0.33, 0.  ],
           [0.  , 0.33, 0.  ]])
    """
    rng = as_generator(random_state)
    check_count(size, "size")
    check_count(n_documents, "n_documents")
    rows = np.repeat(np.eye(size), size, axis=1) / size
    columns = np.tile(np.eye(size), size) / size
    doc_topic = rng.dirichlet(concentration("doc_topic_prior", doc_topic_prior, 2 * size), size=n_documents)
    return mixtures(rng, doc_topic, np.vstack([rows, columns]), lengths(length, n_documents, "length"))


def mixtures(
    rng: np.random.Generator,
    doc_topic: NDArray[np.float64],
    topic_word: NDArray[np.float64],
    sizes: NDArray[np.int64],
) -> TopicDocuments:
    """Documents of the given lengths, proportions and topics."""
    topic_counts = rng.multinomial(sizes, doc_topic).astype(np.int64)
    return TopicDocuments(words_of_topics(rng, topic_counts, topic_word), topic_word, topic_counts, doc_topic)


def words_of_topics(
    rng: np.random.Generator, topic_counts: NDArray[np.int64], topic_word: NDArray[np.float64]
) -> scipy.sparse.csr_matrix:
    """Draw the words of all documents, topic after topic: never an array of documents x words."""
    n_documents, n_words = topic_counts.shape[0], topic_word.shape[1]
    rows, columns = [], []
    for topic, words in enumerate(topic_word):
        owners = np.repeat(np.arange(n_documents), topic_counts[:, topic])
        rows.append(owners)
        columns.append(rng.choice(n_words, size=owners.size, p=words))
    where = np.concatenate(rows), np.concatenate(columns)
    counts = scipy.sparse.csr_matrix((np.ones(where[0].size, dtype=np.int64), where), shape=(n_documents, n_words))
    counts.sum_duplicates()
    return counts


def concentration(name: str, value: float | ArrayLike, size: int) -> NDArray[np.float64]:
    """Parameters of a Dirichlet distribution, one for each of its `size` places."""
    given = np.asarray(value, dtype=np.float64)
    if given.ndim > 1 or (given.ndim == 1 and given.size != size) or not (np.isfinite(given) & (given > 0)).all():
        raise ValueError(f"{name} must be a positive number or {size} of them, got {value!r}")
    return np.broadcast_to(given, (size,))


def lengths(value: int | ArrayLike, n_documents: int, name: str = "n_words_per_document") -> NDArray[np.int64]:
    """Length of each document."""
    given = np.asarray(value)
    if given.ndim > 1 or (given.ndim == 1 and given.size != n_documents) or given.dtype.kind not in "iu":
        raise ValueError(f"{name} must be a whole number or {n_documents} of them, got {value!r}")
    if (given < 0).any():
        raise ValueError(f"{name} must not be negative, got {given.min()}")
    return np.broadcast_to(given.astype(np.int64), (n_documents,))
