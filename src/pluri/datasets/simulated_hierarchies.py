"""Documents drawn from topics that lie above and below each other, with the truth they were drawn from.

:func:`make_concept_graph_documents` sends each document down a path of a small graph of ten concepts in four levels
[1]_; :func:`make_tree_documents` gives each word to one level of a tree whose children may have two parents.

References
----------
.. [1] Chambers, A., Smyth, P. and Steyvers, M. (2010). Learning concept graphs from text with stick-breaking priors.
   NIPS.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.datasets.simulated_topics import SimulatedDocuments, concentration, lengths, words_of_topics
from pluri.validation import RandomState, as_generator, check_count

#: Depth of the ten concepts, from the root.
CONCEPT_DEPTH = (0, 1, 1, 1, 2, 2, 2, 2, 3, 3)
#: Where a path goes from each concept, and how often; what is missing to one is the share of paths that end there.
CONCEPT_EDGES = (
    (0, 1, 0.2675),
    (0, 2, 0.2425),
    (0, 3, 0.24),
    (1, 4, 0.45),
    (1, 5, 0.31),
    (2, 5, 0.50),
    (2, 6, 0.40),
    (3, 6, 0.35),
    (3, 7, 0.55),
    (4, 8, 0.55),
    (5, 8, 0.35),
    (5, 9, 0.45),
    (6, 9, 0.60),
    (7, 9, 0.05),
)
#: Words of the three levels of the tree.
TREE_WORDS = (10, 20, 30)
#: Share of each child among the children of each node in the middle of the tree.
TREE_CHILDREN = ((0.5, 0.25, 0.25, 0.0, 0.0, 0.0), (0.0, 0.25, 0.0, 0.5, 0.25, 0.0), (0.0, 0.0, 0.25, 0.0, 0.25, 0.5))
#: Share of a node's words that come from its own block of words.
TREE_BLOCK_SHARE = 0.98


@dataclass(frozen=True, eq=False, repr=False)
class ConceptGraphDocuments(SimulatedDocuments):
    """Documents whose words come from the concepts on one path of a graph.

    Attributes
    ----------
    counts, topic_word, topic_counts
        See :class:`pluri.datasets.SimulatedDocuments`; the topics are the concepts, the root first.
    paths : ndarray of int64, shape (n_documents, n_levels)
        Concepts on the path of each document, from the root; -1 after its end.
    labels : ndarray of int64, shape (n_documents,)
        Last concept of each path.
    level_decay : ndarray of shape (n_documents,)
        tau of each document: a word comes from the l-th concept from the end of the path with a probability that is
        proportional to ``(1 - tau)**l``.
    depth : ndarray of int64, shape (n_topics,)
        Level of each concept; 0 is the root.
    edges : ndarray of int64, shape (n_edges, 2)
        Upper and lower concept of each edge.
    edge_probability : ndarray of shape (n_edges,)
        Probability that a path at the upper concept takes the edge.
    edge_counts : ndarray of int64, shape (n_edges,)
        Number of documents whose path takes the edge.
    """

    paths: NDArray[np.int64]
    labels: NDArray[np.int64]
    level_decay: NDArray[np.float64]
    depth: NDArray[np.int64]
    edges: NDArray[np.int64]
    edge_probability: NDArray[np.float64]
    edge_counts: NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class TreeDocuments(SimulatedDocuments):
    """Documents from a tree of one root, three nodes and six leaves, three of which have two parents.

    Attributes
    ----------
    counts, topic_word, topic_counts
        See :class:`pluri.datasets.SimulatedDocuments`; the topics are the nodes, level after level.
    depth : ndarray of int64, shape (n_topics,)
        Level of each node; 0 is the root.
    word_depth : ndarray of int64, shape (n_words,)
        The one level at which each word occurs.
    edges : ndarray of int64, shape (n_edges, 2)
        Parent and child of each edge.
    transition : ndarray of shape (3, 6)
        Distribution of the leaves below each node in the middle; rows sum to one.
    doc_topic : ndarray of shape (n_documents, 3)
        Proportions of the nodes in the middle in each document.
    doc_level : ndarray of shape (n_documents, 3)
        Proportions of the levels in each document.
    """

    depth: NDArray[np.int64]
    word_depth: NDArray[np.int64]
    edges: NDArray[np.int64]
    transition: NDArray[np.float64]
    doc_topic: NDArray[np.float64]
    doc_level: NDArray[np.float64]


def make_concept_graph_documents(
    n_documents: int = 4000,
    n_words_per_document: int | ArrayLike = 250,
    n_words: int = 1000,
    topic_word_prior: float | ArrayLike = 0.025,
    level_prior: tuple[float, float] = (2.0, 5.0),
    random_state: RandomState = None,
) -> ConceptGraphDocuments:
    """Draw documents from a fixed graph of ten concepts in four levels.

    The root has three concepts below it, those have four, and those two; one edge, from concept 7 to concept 9, is
    taken by less than one document in a hundred. A path starts at the root, and at each concept goes on along an edge
    or ends. For a quick test take ``n_documents=600, n_words_per_document=80, n_words=200``.

    Parameters
    ----------
    n_documents : int, default=4000
    n_words_per_document : int or array-like of shape (n_documents,), default=250
        Length of the documents.
    n_words : int, default=1000
        Size of the vocabulary.
    topic_word_prior : float or array-like of shape (n_words,), default=0.025
        Parameters of the Dirichlet distribution of the words of a concept.
    level_prior : tuple of two floats, default=(2, 5)
        Parameters of the beta distribution of tau, the share of the last concept in a long path.
    random_state : int, Generator or None
        Randomness.

    Returns
    -------
    ConceptGraphDocuments

    Examples
    --------
    >>> from pluri.datasets import make_concept_graph_documents
    >>> data = make_concept_graph_documents(n_documents=600, n_words_per_document=80, n_words=200, random_state=0)
    >>> data.counts.shape, data.paths.shape, data.edges.shape
    ((600, 200), (600, 4), (14, 2))
    """
    rng = as_generator(random_state)
    check_count(n_documents, "n_documents")
    check_count(n_words, "n_words")
    if len(level_prior) != 2 or not min(level_prior) > 0:
        raise ValueError(f"level_prior must be two positive numbers, got {level_prior!r}")
    sizes = lengths(n_words_per_document, n_documents)
    depth = np.array(CONCEPT_DEPTH, dtype=np.int64)
    topic_word = rng.dirichlet(concentration("topic_word_prior", topic_word_prior, n_words), size=depth.size)
    step = np.zeros((depth.size, depth.size + 1))
    edges = np.array([edge[:2] for edge in CONCEPT_EDGES], dtype=np.int64)
    edge_probability = np.array([edge[2] for edge in CONCEPT_EDGES])
    step[edges[:, 0], edges[:, 1]] = edge_probability
    step[:, -1] = 1 - step.sum(axis=1)

    paths = np.full((n_documents, depth.max() + 1), -1, dtype=np.int64)
    paths[:, 0] = 0
    for level in range(1, paths.shape[1]):
        going = np.flatnonzero(paths[:, level - 1] >= 0)
        reached = step[paths[going, level - 1]].cumsum(axis=1)
        following = np.minimum((rng.random(going.size)[:, None] >= reached).sum(axis=1), depth.size)
        paths[going, level] = np.where(following < depth.size, following, -1)
    n_concepts = (paths >= 0).sum(axis=1)
    tau = rng.beta(*level_prior, size=n_documents)
    from_end = n_concepts[:, None] - 1 - np.arange(paths.shape[1])
    share = np.where(from_end >= 0, (1 - tau[:, None]) ** np.maximum(from_end, 0), 0.0)
    on_path = rng.multinomial(sizes, share / share.sum(axis=1, keepdims=True))
    topic_counts = np.zeros((n_documents, depth.size), dtype=np.int64)
    document, level_used = np.nonzero(paths >= 0)
    topic_counts[document, paths[document, level_used]] = on_path[document, level_used]
    return ConceptGraphDocuments(
        counts=words_of_topics(rng, topic_counts, topic_word),
        topic_word=topic_word,
        topic_counts=topic_counts,
        paths=paths,
        labels=paths[np.arange(n_documents), n_concepts - 1],
        level_decay=tau,
        depth=depth,
        edges=edges,
        edge_probability=edge_probability,
        edge_counts=np.array(
            [((paths[:, :-1] == upper) & (paths[:, 1:] == lower)).sum() for upper, lower in edges], dtype=np.int64
        ),
    )


def make_tree_documents(
    n_documents: int = 150,
    n_words_per_document: int | ArrayLike = 80,
    doc_topic_prior: float = 0.3,
    level_prior: tuple[float, float, float] = (6.0, 7.0, 7.0),
    random_state: RandomState = None,
) -> TreeDocuments:
    """Draw documents from a fixed tree over 60 words in which each word belongs to one level.

    The root is uniform on the first 10 words. Each of three nodes below it has eight of the next 20 words, two of
    them shared with its neighbour, each of six leaves five of the last 30; other words of the level have two percent
    together.

    Parameters
    ----------
    n_documents : int, default=150
    n_words_per_document : int or array-like of shape (n_documents,), default=80
        Length of the documents.
    doc_topic_prior : float, default=0.3
        Parameter of the Dirichlet distribution of a document's proportions of the nodes in the middle.
    level_prior : tuple of three floats, default=(6, 7, 7)
        Parameters of the Dirichlet distribution of a document's proportions of the levels.
    random_state : int, Generator or None
        Randomness.

    Returns
    -------
    TreeDocuments

    Examples
    --------
    >>> from pluri.datasets import make_tree_documents
    >>> data = make_tree_documents(random_state=0)
    >>> data.counts.shape, data.topic_word.shape, data.depth.tolist()
    ((150, 60), (10, 60), [0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
    """
    rng = as_generator(random_state)
    check_count(n_documents, "n_documents")
    sizes = lengths(n_words_per_document, n_documents)
    transition = np.array(TREE_CHILDREN)
    topic_word, depth, word_depth = _tree_topics()
    doc_topic = rng.dirichlet(concentration("doc_topic_prior", doc_topic_prior, 3), size=n_documents)
    doc_level = rng.dirichlet(concentration("level_prior", level_prior, 3), size=n_documents)
    share = np.hstack([doc_level[:, :1], doc_level[:, 1:2] * doc_topic, doc_level[:, 2:] * (doc_topic @ transition)])
    topic_counts = rng.multinomial(sizes, share / share.sum(axis=1, keepdims=True)).astype(np.int64)
    below = [(1 + parent, 4 + child) for parent, child in zip(*np.nonzero(transition))]
    return TreeDocuments(
        counts=words_of_topics(rng, topic_counts, topic_word),
        topic_word=topic_word,
        topic_counts=topic_counts,
        depth=depth,
        word_depth=word_depth,
        edges=np.array([(0, 1), (0, 2), (0, 3), *below], dtype=np.int64),
        transition=transition,
        doc_topic=doc_topic,
        doc_level=doc_level,
    )


def _tree_topics() -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Words of the ten nodes, level of each node, level of each word."""
    word_depth = np.repeat(np.arange(3, dtype=np.int64), TREE_WORDS)
    blocks = [
        range(10),
        *(range(10 + 6 * t, 18 + 6 * t) for t in range(3)),
        *(range(30 + 5 * t, 35 + 5 * t) for t in range(6)),
    ]
    depth = np.repeat(np.arange(3, dtype=np.int64), (1, 3, 6))
    topic_word = np.zeros((len(blocks), word_depth.size))
    for topic, (block, level) in enumerate(zip(blocks, depth)):
        others = np.setdiff1d(np.flatnonzero(word_depth == level), block)
        topic_word[topic, others] = (1 - TREE_BLOCK_SHARE) / max(others.size, 1)
        topic_word[topic, block] = (TREE_BLOCK_SHARE if others.size else 1.0) / len(block)
    return topic_word, depth, word_depth
