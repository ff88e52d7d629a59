r"""Counts of words in topics after topics were merged, dropped or split: functions of arrays.

A merger adds the tokens of topics, their shares and their alphas: if theta ~ Dirichlet(alpha), then theta_1 + theta_2
and the others are Dirichlet with alpha_1 + alpha_2. Of eta, which every topic has once, the larger of the two stays.

Tokens of a topic j that is dropped go to the others. From the words alone, a token of word w goes to topic k with
probability proportional to p_k beta_kw, where p_k is the share of topic k. With documents, a token of document d goes
there with probability proportional to theta_dk beta_kw, theta_d being the document's shares without j.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.float64]
#: Numbers of a table that is held at a time.
BLOCK = 4_000_000


def became_of_groups(groups: Sequence[Sequence[int]], n_topics: int) -> NDArray[np.int64]:
    """New number of each topic; a group takes the place of its first."""
    became = np.full(n_topics, -1, dtype=np.int64)
    for number, group in enumerate(sorted(groups, key=min)):
        became[list(group)] = number
    return became


def sums(rows: Array, became: NDArray[np.int64]) -> Array:
    """Rows (or numbers) of the same new number added."""
    total = np.zeros((int(became.max()) + 1, *rows.shape[1:]))
    np.add.at(total, became[became >= 0], rows[became >= 0])
    return total


def largest(rows: Array, became: NDArray[np.int64]) -> Array:
    """The largest of rows of the same new number, entry by entry."""
    most = np.zeros((int(became.max()) + 1, *rows.shape[1:]))
    np.maximum.at(most, became[became >= 0], rows[became >= 0])
    return most


def moved_by_words(counts: Array, topic_word: Array, weight: Array, topic: int) -> Array:
    """Tokens of a dropped topic among the others, by their words alone: (n_topics - 1, n_words)."""
    others = np.delete(np.arange(len(counts)), topic)
    chance = weight[others, None] * topic_word[others]
    total = chance.sum(axis=0)
    # A word that no other topic has goes where most tokens are.
    apart = weight[others] / weight[others].sum() if weight[others].sum() > 0 else np.full(len(others), 1 / len(others))
    chance = np.where(total > 0, chance / np.where(total > 0, total, 1.0), apart[:, None])
    return np.asarray(chance * counts[topic])


def moved_by_documents(
    counts: Array, topic_word: Array, weight: Array, topic: int, X: Any, shares: Array, shares_without: Array
) -> Array:
    """The same by the documents of the tokens; words of the topic that no document has go by :func:`moved_by_words`.

    Parameters
    ----------
    counts, topic_word : arrays of shape (n_topics, n_words)
    weight : array of shape (n_topics,)
    topic : int
    X : csr matrix of shape (n_documents, n_words)
    shares : array of shape (n_documents, n_topics)
        Of all topics.
    shares_without : array of shape (n_documents, n_topics - 1)
        Of the others, if the topic is not there.
    """
    others = np.delete(np.arange(len(counts)), topic)
    X = sparse.csr_matrix(X)
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    moved = np.zeros((len(others), counts.shape[1]))
    step = max(1, BLOCK // len(counts))
    for begin in range(0, X.nnz, step):
        part = slice(begin, begin + step)
        row, column = rows[part], X.indices[part]
        all_topics = shares[row] * topic_word[:, column].T
        own = X.data[part] * all_topics[:, topic] / np.maximum(all_topics.sum(axis=1), 1e-300)
        chance = shares_without[row] * topic_word[others][:, column].T
        chance *= (own / np.maximum(chance.sum(axis=1), 1e-300))[:, None]
        np.add.at(moved.T, column, chance)
    total = moved.sum(axis=0)
    by_words = moved_by_words(counts, topic_word, weight, topic)
    return np.where(total > 0, moved * (counts[topic] / np.where(total > 0, total, 1.0)), by_words)


def divided(row: Array, parts: Array) -> Array:
    """Tokens of a topic divided as the tokens of its parts are, word by word; they sum to the row.

    Words that no part has are divided as all tokens are.
    """
    total = parts.sum(axis=0)
    size = parts.sum(axis=1) / parts.sum()
    share = np.where(total > 0, parts / np.where(total > 0, total, 1.0), size[:, None])
    return np.asarray(share * row)
