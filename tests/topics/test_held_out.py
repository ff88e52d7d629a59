"""Held-out scores against sums over all assignments, against each other, and at the borders."""

from __future__ import annotations

from itertools import product
from math import lgamma

import numpy as np
import pytest
import scipy.sparse
from scipy.special import digamma

from pluri.datasets import make_topic_documents
from pluri.topics.held_out import (
    HeldOut,
    annealed_importance,
    completion,
    empirical_likelihood,
    exact_likelihood,
    importance_sampling,
    left_to_right,
    mean_over_draws,
    proportions,
    split_documents,
)

ALPHA = np.array([0.3, 1.1, 0.6])
TOPICS = np.array([[0.5, 0.2, 0.2, 0.1, 0.0], [0.05, 0.05, 0.3, 0.2, 0.4], [0.1, 0.6, 0.1, 0.1, 0.1]])
SHORT = np.array([[1, 0, 0, 0, 0], [1, 1, 0, 1, 0], [0, 2, 0, 0, 3], [2, 0, 1, 0, 1], [0, 0, 0, 0, 0]])
ESTIMATES = {
    "left_to_right": left_to_right,
    "left_to_right without resampling": lambda *a, **k: left_to_right(*a, resample=False, **k),
    "importance_sampling": importance_sampling,
    "importance_sampling from the prior": lambda *a, **k: importance_sampling(*a, proposal="prior", **k),
    "annealed_importance": annealed_importance,
}


def enumerated(topics: np.ndarray, alpha: np.ndarray, words: list[int]) -> float:
    """Sum over every assignment of topics to words, one by one."""
    total = 0.0
    for z in product(range(len(alpha)), repeat=len(words)):
        counts = np.bincount(np.array(z, dtype=int), minlength=len(alpha))
        log_prior = lgamma(alpha.sum()) - lgamma(alpha.sum() + len(words))
        log_prior += sum(lgamma(a + n) - lgamma(a) for a, n in zip(alpha, counts))
        total += np.exp(log_prior) * np.prod([topics[k, w] for k, w in zip(z, words)])
    return total


def words_of(row: np.ndarray) -> list[int]:
    return np.repeat(np.arange(row.size), row).tolist()


def test_exact_equals_the_sum_over_every_assignment():
    score = exact_likelihood(TOPICS, ALPHA, SHORT)
    expected = [np.log(enumerated(TOPICS, ALPHA, words_of(row))) for row in SHORT]
    np.testing.assert_allclose(score.log_likelihood, expected, rtol=1e-12, atol=1e-14)
    assert score.n_tokens.tolist() == [1, 3, 5, 4, 0]


def test_probabilities_of_all_texts_of_four_words_sum_to_one():
    texts = np.array([np.bincount(text, minlength=5) for text in product(range(5), repeat=4)])
    assert np.exp(exact_likelihood(TOPICS, ALPHA, texts).log_likelihood).sum() == pytest.approx(1.0, abs=1e-12)


def test_exact_with_one_topic_is_a_unigram():
    topic = np.array([[0.5, 0.3, 0.2]])
    score = exact_likelihood(topic, 0.7, [[3, 0, 2]])
    assert score.total == pytest.approx(3 * np.log(0.5) + 2 * np.log(0.2), abs=1e-12)
    for estimate in (left_to_right, importance_sampling, annealed_importance):
        assert estimate(topic, 0.7, [[3, 0, 2]], 0).total == pytest.approx(score.total, abs=1e-9)


@pytest.mark.parametrize("name", ESTIMATES)
def test_estimates_agree_with_enumeration_for_short_documents(name):
    # Standard errors of the logs at these sizes are below 0.008: six of them.
    sizes = {"annealed_importance": {"n_chains": 4000, "n_steps": 20}}
    default = {"n_particles": 20000} if "left" in name else {"n_samples": 20000}
    score = ESTIMATES[name](TOPICS, ALPHA, SHORT, 3, **sizes.get(name, default))
    np.testing.assert_allclose(score.log_likelihood, exact_likelihood(TOPICS, ALPHA, SHORT).log_likelihood, atol=0.048)
    assert score.log_likelihood[-1] == 0.0


@pytest.mark.parametrize("name", [name for name in ESTIMATES if "prior" not in name])
def test_estimates_of_the_probability_have_no_bias(name):
    """Few particles, many copies of a document: the mean of the estimates, not of their logs, is the probability.

    Five and a half standard errors: a false alarm in a million runs, as the estimates are skewed.
    """
    document = np.array([[2, 1, 1, 0, 2]])
    size = (
        {"n_chains": 1, "n_steps": 3}
        if "annealed" in name
        else {"n_particles": 3}
        if "left" in name
        else {"n_samples": 3}
    )
    score = ESTIMATES[name](TOPICS, ALPHA, np.repeat(document, 6000, axis=0), 0, **size)
    ratio = np.exp(score.log_likelihood - exact_likelihood(TOPICS, ALPHA, document).log_likelihood)
    assert abs(ratio.mean() - 1) < 5.5 * ratio.std() / np.sqrt(ratio.size)
    assert ratio.std() > 0.01


@pytest.mark.parametrize("name", [name for name in ESTIMATES if "prior" not in name])
def test_estimates_agree_with_the_exact_sum_for_documents_of_a_hundred_words(name):
    data = make_topic_documents(12, np.arange(50, 110, 5), 40, 3, 0.5, 0.2, random_state=1)
    exact = exact_likelihood(data.topic_word, 0.5, data.counts)
    score = ESTIMATES[name](data.topic_word, 0.5, data.counts, 2)
    np.testing.assert_allclose(score.log_likelihood / score.n_tokens, exact.log_likelihood / score.n_tokens, atol=0.02)


def test_left_to_right_agrees_with_annealing_for_many_topics():
    data = make_topic_documents(20, 60, 400, 20, 0.1, 0.05, random_state=np.random.default_rng(3))
    topics = 0.99 * data.topic_word + 0.01 / 400
    by_words = left_to_right(topics, 0.1, data.counts, 0)
    by_steps = annealed_importance(topics, 0.1, data.counts, 0, n_steps=2000, n_chains=10)
    by_weights = importance_sampling(topics, 0.1, data.counts, 0, n_samples=5000)
    # Over six seeds each has a standard deviation of .004 or less; logarithms of estimates lie a little too low.
    assert by_words.per_word == pytest.approx(by_steps.per_word, abs=0.03)
    assert by_words.per_word == pytest.approx(by_weights.per_word, abs=0.03)


def test_completion_is_the_probability_of_the_next_word():
    """log p(observed, w) - log p(observed), exactly, against the Gibbs mean: 20000 sweeps, six errors of 0.003."""
    observed = SHORT[[1, 2, 3, 4]]
    for word in range(5):
        scored = np.zeros_like(observed)
        scored[:, word] = 1
        exact = (
            exact_likelihood(TOPICS, ALPHA, observed + scored).log_likelihood
            - exact_likelihood(TOPICS, ALPHA, observed).log_likelihood
        )
        score = completion(TOPICS, ALPHA, scored, 1, observed=observed, n_sweeps=20000)
        np.testing.assert_allclose(score.log_likelihood, exact, atol=0.018)
        assert score.n_tokens.tolist() == [1, 1, 1, 1]


def test_completion_without_observed_words_scores_by_the_prior_mean():
    score = completion(TOPICS, ALPHA, SHORT, 0, share=0.0)
    expected = SHORT @ np.log(ALPHA / ALPHA.sum() @ TOPICS)
    np.testing.assert_allclose(score.log_likelihood, expected, atol=1e-12)


def test_ways_of_completion_agree_on_long_documents():
    data = make_topic_documents(50, 400, 60, 4, 0.5, 0.1, random_state=5)
    observed, scored = split_documents(data.counts, 0)
    by = {
        way: completion(data.topic_word, 0.5, scored, 0, observed=observed, inference=way).per_word
        for way in ("gibbs", "pseudo_counts", "vb")
    }
    assert by["pseudo_counts"] == pytest.approx(by["gibbs"], abs=0.002)
    assert by["vb"] == pytest.approx(by["gibbs"], abs=0.005)
    truth = scored.multiply(np.log(data.doc_topic @ data.topic_word)).sum() / scored.sum()
    assert truth - 0.03 < by["gibbs"] < truth + 0.01


def test_variational_proportions_solve_their_equation():
    X = np.random.default_rng(0).poisson(2.0, size=(6, 5))
    gamma = proportions(TOPICS, ALPHA, X, inference="vb", max_iter=5000) * (ALPHA.sum() + X.sum(axis=1, keepdims=True))
    weight = np.exp(digamma(gamma))
    again = ALPHA + weight * ((X / (weight @ TOPICS)) @ TOPICS.T)
    np.testing.assert_allclose(gamma, again, atol=1e-4)


def test_pseudo_counts_solve_their_equation():
    X = np.array([[3, 0, 1, 0, 2]])
    words = words_of(X[0])
    total = ALPHA.sum() + len(words)
    expected = proportions(TOPICS, ALPHA, X, inference="pseudo_counts", max_iter=5000)[0] * total - ALPHA
    share = np.full((len(words), 3), 1 / 3)
    for _ in range(5000):
        share = np.array([(ALPHA + share.sum(axis=0) - share[i]) * TOPICS[:, w] for i, w in enumerate(words)])
        share /= share.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(expected, share.sum(axis=0), atol=1e-3)


def test_empty_documents_score_zero():
    empty = scipy.sparse.csr_matrix((3, 5))
    for estimate in (completion, *ESTIMATES.values()):
        score = estimate(TOPICS, ALPHA, empty, 0)
        assert score.log_likelihood.tolist() == [0.0, 0.0, 0.0]
        assert score.n_tokens.tolist() == [0, 0, 0]
    assert np.isnan(score.per_word)
    np.testing.assert_allclose(proportions(TOPICS, ALPHA, empty, 0), np.tile(ALPHA / ALPHA.sum(), (3, 1)))


@pytest.mark.parametrize("name", [*ESTIMATES, "completion"])
def test_a_word_of_probability_zero_gives_minus_infinity_and_a_warning(name):
    topics = np.hstack([TOPICS[:, :4] / TOPICS[:, :4].sum(axis=1, keepdims=True), np.zeros((3, 1))])
    X = np.array([[1, 2, 0, 0, 0], [1, 0, 0, 0, 1]])
    estimate = ESTIMATES.get(name, lambda *a: completion(*a, share=0.0))
    with pytest.warns(RuntimeWarning, match=r"1 documents \(1\) hold a word of probability zero"):
        score = estimate(topics, ALPHA, X, 0)
    assert np.isfinite(score.log_likelihood[0])
    assert score.log_likelihood[1] == -np.inf
    assert score.n_tokens.tolist() == [3, 2]
    assert score.perplexity == np.inf


def test_observed_words_of_probability_zero_are_left_out():
    topics = np.hstack([TOPICS[:, :4] / TOPICS[:, :4].sum(axis=1, keepdims=True), np.zeros((3, 1))])
    with pytest.warns(RuntimeWarning, match="observed words of probability zero"):
        score = completion(topics, ALPHA, [[1, 0, 0, 0, 0]], 0, observed=[[0, 0, 0, 0, 2]])
    assert score.total == pytest.approx(np.log(ALPHA / ALPHA.sum() @ topics[:, 0]))


def test_scores_repeat_for_a_seed_and_leave_the_input_alone():
    X = scipy.sparse.csr_matrix(SHORT)
    before = X.copy()
    for estimate in (completion, *ESTIMATES.values()):
        first, second = estimate(TOPICS, ALPHA, X, 5), estimate(TOPICS, ALPHA, X.toarray().tolist(), 5)
        np.testing.assert_array_equal(first.log_likelihood, second.log_likelihood)
    assert (before != X).nnz == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": [[0.5, 1, 1, 1, 1]]}, "whole counts, got 0.5"),
        ({"X": [[-1, 1, 1, 1, 1]]}, "negative value -1"),
        ({"X": [[np.nan, 1, 1, 1, 1]]}, "NaN"),
        ({"X": [[1, 1]]}, "X must have 5 columns"),
        ({"X": [1, 1]}, "two axes"),
        ({"doc_topic_prior": 0.0}, "doc_topic_prior must be a positive number or 3"),
        ({"doc_topic_prior": [1.0, 1.0]}, "doc_topic_prior must be a positive number or 3"),
        ({"topic_word": TOPICS * 2}, "topic_word rows must sum to 1"),
        ({"topic_word": TOPICS[0]}, "topic_word must have two axes"),
    ],
)
def test_wrong_input_is_refused_in_one_sentence(change, message):
    arguments = {"topic_word": TOPICS, "doc_topic_prior": ALPHA, "X": SHORT} | change
    for estimate in (completion, left_to_right, importance_sampling, annealed_importance, exact_likelihood):
        with pytest.raises(ValueError, match=message):
            estimate(**arguments)


def test_wrong_options_are_refused():
    with pytest.raises(ValueError, match="n_particles must be a whole number of at least 1, got 0"):
        left_to_right(TOPICS, ALPHA, SHORT, n_particles=0)
    with pytest.raises(ValueError, match="n_sweeps"):
        completion(TOPICS, ALPHA, SHORT, n_sweeps=0)
    with pytest.raises(ValueError, match="inference must be"):
        completion(TOPICS, ALPHA, SHORT, inference="em")
    with pytest.raises(ValueError, match="proposal must be"):
        importance_sampling(TOPICS, ALPHA, SHORT, proposal="posterior")
    with pytest.raises(ValueError, match="equally many documents, got 2 and 5"):
        completion(TOPICS, ALPHA, SHORT, observed=SHORT[:2])
    with pytest.raises(ValueError, match="fewer words for an exact sum over 10 topics"):
        exact_likelihood(np.full((10, 5), 0.2), 1.0, [[9, 9, 9, 0, 0]])


def test_halves_add_up_and_are_drawn_without_replacement():
    X = np.array([[40, 0, 20, 4], [1, 0, 0, 0], [0, 0, 0, 0], [0, 3, 0, 0]])
    observed, scored = split_documents(X, 0)
    np.testing.assert_array_equal((observed + scored).toarray(), X)
    assert observed.sum(axis=1).A1.tolist() == [32, 0, 0, 1]
    firsts = np.array([split_documents(X[:1], i)[0].toarray()[0] for i in range(400)])
    # Hypergeometric: 64 words of which 32 are taken; five standard errors.
    sd = np.sqrt(32 * 40 / 64 * 24 / 64 * 32 / 63)
    assert abs(firsts[:, 0].mean() - 20) < 5 * sd / 20
    assert firsts[:, 0].std() == pytest.approx(sd, rel=0.2)
    for share, kept in ((0.0, 0), (1.0, 64), (0.25, 16)):
        assert split_documents(X, 1, share)[0][0].sum() == kept
    with pytest.raises(ValueError, match="share must lie between 0 and 1"):
        split_documents(X, 0, 1.5)


def test_empirical_likelihood_is_the_mean_of_the_products():
    rng = np.random.default_rng(0)
    draws = rng.dirichlet(np.ones(5), size=7)
    expected = [np.log(np.mean([np.prod(q**row) for q in draws])) for row in SHORT]
    score = empirical_likelihood(draws, SHORT)
    np.testing.assert_allclose(score.log_likelihood, expected, rtol=1e-12, atol=1e-14)
    assert score.n_tokens.tolist() == SHORT.sum(axis=1).tolist()
    with pytest.warns(RuntimeWarning, match="every draw of word_distributions"):
        assert empirical_likelihood([[1.0, 0.0]], [[0, 1]]).total == -np.inf
    with pytest.raises(ValueError, match="word_distributions rows must sum to 1"):
        empirical_likelihood([[1.0, 0.5]], [[0, 1]])


def test_empirical_likelihood_of_prior_draws_agrees_with_enumeration():
    """100000 draws; the logs have a standard error below 0.006, six of them."""
    theta = np.random.default_rng(1).dirichlet(ALPHA, size=100000)
    score = empirical_likelihood(theta @ TOPICS, SHORT)
    np.testing.assert_allclose(score.log_likelihood, exact_likelihood(TOPICS, ALPHA, SHORT).log_likelihood, atol=0.036)


def test_mean_over_draws_averages_probabilities_of_documents():
    draws = [HeldOut(np.log([0.2, 0.01]), np.array([1, 2]), "m"), HeldOut(np.log([0.4, 0.03]), np.array([1, 2]), "m")]
    together = mean_over_draws(draws)
    np.testing.assert_allclose(np.exp(together.log_likelihood), [0.3, 0.02])
    assert together.total == pytest.approx(np.log(0.3) + np.log(0.02))
    assert together.perplexity == pytest.approx((0.3 * 0.02) ** (-1 / 3))
    with pytest.raises(ValueError, match="at least one"):
        mean_over_draws([])
    with pytest.raises(ValueError, match="same documents"):
        mean_over_draws([draws[0], HeldOut(np.zeros(2), np.array([1, 3]), "m")])
    assert mean_over_draws([HeldOut(np.array([-np.inf]), np.array([1]), "m")] * 2).total == -np.inf
