"""Where variational Bayes starts: topics that are nearly alike, or documents that stand for topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pluri.engine import Source
from pluri.topics.lda.topic_priors import TopicPriors
from pluri.validation import RandomState, is_source

if TYPE_CHECKING:
    from pluri.topics.lda.estimator import LatentDirichletAllocation as Model

Array = NDArray[np.float64]
Draws = np.random.RandomState | np.random.Generator
TopicStart = Literal["random", "documents"]

#: Shape and scale of the gamma distribution of a random start.
SHAPE, SCALE = 100.0, 0.01
#: Share of each given topic that any word may have, so that no word is impossible.
ANY_WORD = 0.01


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


def given_topics(model: Model) -> Array | None:
    """Topics that a model is told to start from, as distributions (n_topics, n_words); None if it is told none."""
    if isinstance(model.init, str):
        return None
    given = np.asarray(model.init, dtype=np.float64)
    shape = (model.n_components, model.n_features_in_)
    if given.shape != shape:
        raise ValueError(f"init must be 'random', 'documents' or an array of shape {shape}, got shape {given.shape}")
    if not (np.isfinite(given).all() and (given >= 0).all() and (given.sum(axis=1) > 0).all()):
        raise ValueError("init must hold numbers that are not negative, and some above zero for each topic")
    shares: Array = given / given.sum(axis=1, keepdims=True)
    return (1.0 - ANY_WORD) * shares + ANY_WORD / shape[1]


def topic_start(model: Model, eta: Any, data: Any) -> Any:
    """Where variational Bayes and EM start: a way, or counts of words by topic; seed words are part of a random start.

    Given topics count as if each had as many tokens as the others.
    """
    given = given_topics(model)
    if given is not None:
        return given * (n_tokens_of(data) / model.n_components) + np.broadcast_to(eta, given.shape)
    if model.seed_words is None or model.init == "documents":
        return model.init
    return legacy_stream(model.random_state).gamma(SHAPE, SCALE, eta.shape) + eta


def n_tokens_of(data: Any) -> float:
    """Tokens of documents, or of a source of them; one at least."""
    parts = (batch.load().X for batch in data.batches()) if is_source(data) else (data,)
    return max(sum(float(part.sum()) for part in parts), 1.0)
