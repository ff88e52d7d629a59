"""Likeness of topics by hand, and recovery of a permutation."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from pluri.metrics import match_topics, topic_overlap, topic_uniqueness

TOPICS = np.array([[0.6, 0.3, 0.1, 0.0], [0.1, 0.6, 0.3, 0.0], [0.0, 0.0, 0.2, 0.8]])


def test_overlaps_by_hand():
    cosine = (0.06 + 0.18 + 0.03) / 0.46
    assert topic_overlap(TOPICS).matrix[0, 1] == pytest.approx(cosine, abs=1e-12)
    bhattacharyya = np.sqrt(0.06) + np.sqrt(0.18) + np.sqrt(0.03)
    assert topic_overlap(TOPICS, "bhattacharyya").matrix[1, 0] == pytest.approx(bhattacharyya, abs=1e-12)
    jaccard = topic_overlap(TOPICS, "jaccard", n_words=2)
    np.testing.assert_allclose(jaccard.matrix, [[1, 1 / 3, 0], [1 / 3, 1, 1 / 3], [0, 1 / 3, 1]])
    assert jaccard.mean == pytest.approx(2 / 9)
    assert np.isnan(topic_overlap(TOPICS[:1]).mean)


def test_uniqueness_counts_distinct_words():
    assert topic_uniqueness(TOPICS, n_words=2) == pytest.approx(4 / 6)
    assert topic_uniqueness(TOPICS, n_words=1) == pytest.approx(1.0)
    assert topic_uniqueness([["x", "y"], ["x", "y"]]) == pytest.approx(0.5)
    assert topic_uniqueness([[3, 1], [2, 0]]) == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["cosine", "jaccard", "bhattacharyya"])
def test_a_permutation_is_found(kind):
    topics = np.random.default_rng(0).dirichlet(np.full(60, 0.1), size=8)
    order = np.random.default_rng(1).permutation(8)
    match = match_topics(topics, topics[order], kind)
    np.testing.assert_array_equal(order[match.pairs[:, 1]], np.arange(8))
    np.testing.assert_allclose(match.similarity, 1.0)
    assert match.n_above(0.9) == 8


def test_matching_is_the_best_of_all_pairings_with_unequal_numbers():
    rng = np.random.default_rng(2)
    a, b = rng.dirichlet(np.ones(6), size=3), rng.dirichlet(np.ones(6), size=5)
    cosine = a @ b.T / np.outer(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1))
    best = max(cosine[range(3), list(chosen)].sum() for chosen in permutations(range(5), 3))
    assert match_topics(a, b).similarity.sum() == pytest.approx(best)
    assert match_topics(b, a).similarity.sum() == pytest.approx(best)
    assert match_topics(b, a).pairs.shape == (3, 2)


def test_wrong_arguments_get_a_sentence():
    with pytest.raises(ValueError, match="kind must be"):
        topic_overlap(TOPICS, "euclid")
    with pytest.raises(ValueError, match="finite and non-negative"):
        topic_overlap(-TOPICS)
    with pytest.raises(ValueError, match="sum to 1"):
        topic_overlap(2 * TOPICS, "bhattacharyya")
    with pytest.raises(ValueError, match="n_words"):
        topic_overlap(TOPICS, "jaccard", n_words=0)
    with pytest.raises(ValueError, match="n_words"):
        topic_uniqueness(TOPICS, n_words=0)
    with pytest.raises(ValueError, match="two axes"):
        match_topics(TOPICS[0], TOPICS)
    with pytest.raises(ValueError, match="equally many words, got 4 and 2"):
        match_topics(TOPICS, TOPICS[:, :2])
