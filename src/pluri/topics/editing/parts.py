"""The parts of a topic: topics found among the tokens that documents have of it, and of no other."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pluri.topics.documents import tokens_of

#: Sweeps over a document before its tokens are taken to be of the topic that is split.
FOLD_IN_SWEEPS = 20
#: Chains, of which the likeliest is taken.
N_CHAINS = 2
#: Prior parameters where those of the model are smaller.
LEAST_ALPHA, USUAL_ETA = 1e-3, 0.01


def parts_of_topic(model: Any, topic: int, documents: Any, into: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Counts of words in parts of a topic, the largest part first.

    Topics of tokens are drawn given the words of all topics; those that the topic has are documents of their own, whose
    topics, with a share of its alpha each, are sampled from a new start.

    Parameters
    ----------
    model : fitted flat topic model
    topic : int
    documents : csr matrix of shape (n_documents, n_words)
    into : int
        Number of parts.
    rng : Generator

    Returns
    -------
    array of shape (into, n_words)
    """
    from pluri.topics.lda.estimator import LatentDirichletAllocation
    from pluri.topics.lda.sampling.fold_in import sampled_topics

    tokens = tokens_of(documents)
    alpha = np.maximum(model._prior_vector(), 1e-8)
    labels = sampled_topics(model.topic_word_, alpha, tokens, rng, FOLD_IN_SWEEPS, 1, 1)[1]
    own = labels == topic
    n_distinct = len(np.unique(tokens.words[own]))
    if n_distinct < into:
        raise ValueError(
            f"into must be at most the number of different words that X has of topic {topic} ({n_distinct}), got {into}"
        )
    table = sparse.csr_matrix(
        (np.ones(int(own.sum())), (tokens.documents[own], tokens.words[own])),
        shape=(tokens.n_documents, tokens.n_words),
    )
    inner = LatentDirichletAllocation(
        into, inference="gibbs", doc_topic_prior=max(float(alpha[topic]) / into, LEAST_ALPHA),
        topic_word_prior=float(np.mean(model.topic_word_prior_)) or USUAL_ETA, n_chains=N_CHAINS, random_state=rng,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of chains that disagree: the better one is taken
        inner.fit(table[np.diff(table.indptr) > 0])
    parts = inner._word_counts()
    parts = parts[np.argsort(-parts.sum(axis=1), kind="stable")]
    if not (parts.sum(axis=1) > 0).all():
        raise ValueError(f"topic {topic} must have tokens for each of {into} parts in X, got none for some")
    return np.asarray(parts)
