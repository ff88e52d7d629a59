"""Shares of fixed topics in new documents, against the exact posterior; and topics told of their words."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.special import gammaln

from pluri.topics.expected_shares import expected_shares
from pluri.topics.lda.guided import guided_word_prior


def exact_mean(topics, prior, words):
    """Posterior mean of the shares by summing over every assignment of topics to words."""
    n_topics = len(topics)
    total, mean = 0.0, np.zeros(n_topics)
    for z in product(range(n_topics), repeat=len(words)):
        counts = np.bincount(z, minlength=n_topics)
        log_weight = np.log([topics[k, w] for k, w in zip(z, words)]).sum() + gammaln(prior + counts).sum()
        weight = np.exp(log_weight)
        total += weight
        mean += weight * (prior + counts) / (prior.sum() + len(words))
    return mean / total


@pytest.mark.parametrize("rows", range(4))
def test_shares_are_close_to_the_exact_posterior_mean(rows):
    rng = np.random.default_rng(rows)
    topics = rng.dirichlet(np.full(5, 0.3), size=3)
    prior = np.array([0.4, 0.8, 1.5])
    words = rng.choice(5, size=7, p=topics.mean(axis=0))
    X = sparse.csr_matrix(np.bincount(words, minlength=5)[None])
    np.testing.assert_allclose(expected_shares(topics, prior, X)[0], exact_mean(topics, prior, words), atol=0.05)


def test_one_word_is_exact():
    topics = np.array([[0.2, 0.8], [0.7, 0.3]])
    prior = np.array([0.3, 1.1])
    for word in (0, 1):
        X = sparse.csr_matrix(np.eye(2)[[word]])
        np.testing.assert_allclose(expected_shares(topics, prior, X)[0], exact_mean(topics, prior, [word]), rtol=1e-10)


def test_documents_do_not_depend_on_each_other_and_empty_ones_have_the_prior_mean():
    rng = np.random.default_rng(1)
    topics = rng.dirichlet(np.full(30, 0.1), size=6)
    prior = rng.gamma(1.0, size=6) + 0.05
    counts = rng.poisson(0.5, size=(20, 30))
    counts[3] = 0
    X = sparse.csr_matrix(counts)
    together = expected_shares(topics, prior, X)
    alone = np.vstack([expected_shares(topics, prior, X[[row]]) for row in range(20)])
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_allclose(together.sum(axis=1), 1)
    np.testing.assert_allclose(together[3], prior / prior.sum())


def test_a_word_of_no_topic_says_nothing():
    topics = np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    prior = np.ones(2)
    with_it = expected_shares(topics, prior, sparse.csr_matrix([[0, 3, 7]]))
    without = expected_shares(topics, prior, sparse.csr_matrix([[0, 3, 0]]))
    np.testing.assert_allclose(with_it, without)


def test_named_words_and_columns_are_the_same_guide():
    words = np.array(["ball", "game", "ice"])
    by_name = guided_word_prior(0.1, [["ice"], ["game", "ball"]], 7.0, 3, 3, words)
    by_column = guided_word_prior(0.1, {0: [2], 1: [1, 0]}, 7.0, 3, 3, None)
    np.testing.assert_array_equal(by_name, by_column)
    np.testing.assert_allclose(by_name, [[0.1, 0.1, 7.1], [7.1, 7.1, 0.1], [0.1, 0.1, 0.1]])


@pytest.mark.parametrize(
    ("seed_words", "sentence"),
    [
        ([["puck"]], "'puck', which is not in the vocabulary"),
        ({5: ["ice"]}, "topic 5, but topics are 0 to 1"),
        ([[9]], "column 9, but columns are 0 to 2"),
        (["ice"], "got the string 'ice'"),
    ],
)
def test_wrong_guides_are_named(seed_words, sentence):
    with pytest.raises(ValueError, match=sentence):
        guided_word_prior(0.1, seed_words, 1.0, 2, 3, np.array(["ball", "game", "ice"]))
    with pytest.raises(ValueError, match="the words of the columns are not known"):
        guided_word_prior(0.1, [["ice"]], 1.0, 2, 3, None)
