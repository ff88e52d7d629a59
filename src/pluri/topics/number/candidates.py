"""One number of topics, judged by models of separate documents: what is learned twice, and what it predicts.

The documents are dealt into parts; a model is fitted without each part and predicts half of the words of its documents
given the other half. A topic is *found again* if the model of other documents has one like it: by the cosine of what
both have above the words of the whole corpus, one partner for each topic (Hungarian algorithm). Of topics that are like
each other in the same model one counts. With two parts the two models have no document in common.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone

from pluri.metrics.coherence import topic_coherence
from pluri.metrics.topic_overlap import match_topics, topic_overlap
from pluri.topics.held_out.splitting import split_documents

Array = NDArray[np.float64]
#: Words by which the coherence of a topic is judged.
COHERENT_WORDS = 10


@dataclass(frozen=True, eq=False)
class Judged:
    """What is known of a number of topics.

    Attributes
    ----------
    n_components : int
    log_likelihood : ndarray of shape (n_documents,)
        Of the held-out words of each document, by the model that has not seen it.
    n_tokens : int
        Held-out words.
    found_again : float
        Topics that models of other documents have too: mean over pairs of models.
    coherence : float
        Mean NPMI of the top words of all topics; NaN if no topic has two words.
    redundancy : float
        Share of the topics that are like another of the same model.
    smallest, largest : float
        Share of the tokens of the smallest and the largest topic, in the mean over models.
    topics : ndarray of shape (n_components, n_words), optional
        Those found again by the second model, the mean of both and the largest first; then the others of the first.
    """

    n_components: int
    log_likelihood: Array
    n_tokens: int
    found_again: float
    coherence: float
    redundancy: float
    smallest: float
    largest: float
    topics: NDArray[np.float32] | None = None

    @property
    def per_word(self) -> float:
        """Held-out log likelihood per word."""
        return float(self.log_likelihood.sum() / max(self.n_tokens, 1))

    @property
    def surplus(self) -> float:
        """Topics that are found again, minus those that are not: what the recommendation makes largest."""
        return 2.0 * self.found_again - self.n_components

    def gain_over(self, other: Judged) -> tuple[float, float]:
        """Held-out log likelihood per document and per topic more than `other` has, and its standard error."""
        per_document = (self.log_likelihood - other.log_likelihood) / (self.n_components - other.n_components)
        return float(per_document.mean()), float(per_document.std() / np.sqrt(len(per_document)))


def distinctive(topic_word: Array, weight: Array) -> Array:
    """What each topic has of each word above the mean of all topics: common words make no topics alike."""
    mean = weight @ topic_word / weight.sum()
    own = np.maximum(topic_word - mean, 0.0)
    # A topic that has no word above the others is like none.
    return np.where(own.sum(axis=1, keepdims=True) > 0, own, 0.0)


def n_found_again(first: Any, second: Any, likeness: float) -> int:
    """Topics of one fitted model that another has too."""
    if len(first.topic_word_) == 1:  # nothing is above the mean of one topic
        return match_topics(first.topic_word_, second.topic_word_).n_above(likeness)
    own, other = (distinctive(model.topic_word_, model.topic_weight_) for model in (first, second))
    return match_topics(own[_different(first, likeness)], other[_different(second, likeness)]).n_above(likeness)


def lasting_topics(first: Any, second: Any, likeness: float) -> NDArray[np.float32]:
    """Topics of a fitted model, with those first that another has too: these are the mean of both."""
    topics = np.array(first.topic_word_, dtype=np.float32)
    if len(topics) == 1:
        return topics
    rows, others = _different(first, likeness), _different(second, likeness)
    own, other = (distinctive(model.topic_word_, model.topic_weight_) for model in (first, second))
    found = match_topics(own[rows], other[others])
    again = found.pairs[found.similarity > likeness]
    for row, partner in again:
        topics[rows[row]] = (topics[rows[row]] + second.topic_word_[others[partner]]) / 2
    lasting = np.zeros(len(topics), dtype=bool)
    lasting[[rows[row] for row, _ in again]] = True
    order = np.lexsort((-first.topic_weight_, ~lasting))
    return topics[order]


def _different(model: Any, likeness: float) -> list[int]:
    """Topics without those that are like a larger one: a topic counts once."""
    own = distinctive(model.topic_word_, model.topic_weight_)
    matrix = topic_overlap(own).matrix
    kept: list[int] = []
    for topic in np.argsort(-model.topic_weight_, kind="stable"):
        if not (matrix[topic, kept] > likeness).any():
            kept.append(int(topic))
    return kept


def redundant_share(model: Any, likeness: float) -> float:
    """Share of the topics of a fitted model that are like another of its own."""
    if len(model.topic_word_) == 1:
        return 0.0
    matrix = topic_overlap(distinctive(model.topic_word_, model.topic_weight_)).matrix
    np.fill_diagonal(matrix, 0.0)
    return float((matrix.max(axis=1) > likeness).mean())


def judge(
    estimator: Any,
    n_components: int,
    X: Any,
    folds: list[tuple[NDArray[np.int_], NDArray[np.int_]]],
    *,
    likeness: float,
    seed: int,
    n_jobs: int | None,
) -> Judged:
    """Fit a number of topics without each part of the documents, and judge it.

    Parameters
    ----------
    estimator : LatentDirichletAllocation
        Whose settings are used.
    n_components : int
    X : csr matrix of shape (n_documents, n_words)
    folds : list of (train, test)
        Rows.
    likeness : float
        Cosine above which topics are like each other.
    seed : int
    n_jobs : int, optional
        Fits at a time, in threads.
    """
    found = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(_fit_and_score)(estimator, n_components, X[train], X[test], [seed, n_components, number])
        for number, (train, test) in enumerate(folds)
    )
    models = [model for model, _ in found]
    scores = np.empty(X.shape[0])
    for (_, test), (_, score) in zip(folds, found):
        scores[test] = score.log_likelihood
    pairs = [n_found_again(a, b, likeness) for a, b in combinations(models, 2)]
    sizes = np.array([[model.topic_weight_.min(), model.topic_weight_.max()] for model in models]).mean(axis=0)
    return Judged(
        n_components,
        scores,
        int(sum(score.n_tokens.sum() for _, score in found)),
        float(np.mean(pairs)),
        float(np.nanmean([_coherence(model, X) for model in models])),
        float(np.mean([redundant_share(model, likeness) for model in models])),
        float(sizes[0]),
        float(sizes[1]),
        lasting_topics(models[0], models[1], likeness),
    )


def _fit_and_score(estimator: Any, n_components: int, train: Any, test: Any, seed: list[int]) -> tuple[Any, Any]:
    own = int(np.random.default_rng(seed).integers(2**31))
    model = clone(estimator).set_params(n_components=n_components, random_state=own)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits that have not settled, and of empty documents
        model.fit(train)
        # The same halves for every number of topics: differences are then of the topics alone.
        observed, scored = split_documents(test, seed[0])
        score = model.held_out(scored, observed=observed, inference="pseudo_counts")
    return model, score


def _coherence(model: Any, X: Any) -> float:
    columns = [str(column) for column in range(X.shape[1])]
    listed = [[int(word) for word in row] for row in model.top_words(COHERENT_WORDS, feature_names=columns)]
    listed = [row for row in listed if len(row) > 1]
    return float(topic_coherence(listed, X).per_topic.mean()) if listed else float("nan")
