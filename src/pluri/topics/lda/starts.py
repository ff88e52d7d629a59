"""Where variational Bayes starts: topics that are nearly alike, or documents that stand for topics."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pluri.engine import Source
from pluri.topics.lda.topic_priors import TopicPriors
from pluri.validation import RandomState

Array = NDArray[np.float64]
Draws = np.random.RandomState | np.random.Generator
TopicStart = Literal["random", "documents"]

#: Shape and scale of the gamma distribution of a random start.
SHAPE, SCALE = 100.0, 0.01


def legacy_stream(random_state: RandomState) -> Draws:
    """The stream that scikit-learn would draw from; a Generator as it is."""
    if isinstance(random_state, np.random.Generator | np.random.RandomState):
        return random_state
    return np.random.RandomState(random_state)


def gamma_draws(draws: Draws | None, shape: tuple[Any, ...]) -> Array:
    """Independent draws near one."""
    if draws is None or None in shape:
        raise ValueError("document_start='random' needs documents in memory and a random_state")
    return draws.gamma(SHAPE, SCALE, shape)


def random_topics(draws: Draws, n_topics: int, n_words: int) -> Array:
    """Lambda near one, drawn topic after topic: (n_words, n_topics)."""
    return np.ascontiguousarray(gamma_draws(draws, (n_topics, n_words)).T)


def document_topics(priors: TopicPriors, source: Source, rng: np.random.Generator) -> Array:
    """Lambda = eta + the counts of one document for each topic, drawn without replacement among those with words.

    One pass over the source; if there are too few documents, random draws near one stand in for them.
    """
    n_topics = priors.doc_topic.size
    keys, chosen = np.empty(0), sparse.csr_matrix((0, priors.n_words))
    for item in source.batches():
        X = sparse.csr_matrix(item.load().X, dtype=np.float64)
        X = X[np.flatnonzero(np.diff(X.indptr))]
        # The smallest of independent keys: a sample without replacement, whatever the batches.
        keys = np.concatenate([keys, rng.random(X.shape[0])])
        chosen = sparse.vstack([chosen, X], format="csr")
        best = np.argsort(keys, kind="stable")[:n_topics]
        keys, chosen = keys[best], chosen[best]
    missing = n_topics - chosen.shape[0]
    counts = np.vstack([chosen.toarray(), gamma_draws(rng, (missing, priors.n_words))])
    return np.ascontiguousarray(priors.topic_word + counts.T)


def first_topics(start: TopicStart, priors: TopicPriors, source: Source, rng: np.random.Generator) -> Array:
    """Lambda to start from: (n_words, n_topics)."""
    if start == "random":
        return random_topics(rng, priors.doc_topic.size, priors.n_words)
    if start == "documents":
        return document_topics(priors, source, rng)
    raise ValueError(f"start must be 'random', 'documents' or an array, got {start!r}")
