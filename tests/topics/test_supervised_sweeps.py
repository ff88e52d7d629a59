"""Sweeps of supervised topic models: exponentials, weights far from one another, many topics and many classes."""

from itertools import product

import numba
import numpy as np
import pytest
from scipy import sparse
from scipy.special import log_softmax

from pluri.topics.documents import tokens_of
from pluri.topics.lda._lanes import load, store
from pluri.topics.lda.sampling.topic_assignments import check_counts
from pluri.topics.supervised import gibbs
from pluri.topics.supervised._lane_functions import divide, exponential
from pluri.topics.supervised.chain_state import document_counts, topic_shares
from pluri.topics.supervised.gibbs import ClassesGibbs, RatingsGibbs


def corpus(n_documents=30, n_words=12, seed=0):
    return sparse.csr_matrix(np.random.default_rng(seed).poisson(1.0, size=(n_documents, n_words)))


@numba.njit
def over_lanes(numbers, exponentials, quotients):
    for block in range(numbers.size // 16):
        values = load(numbers, 16 * block)
        store(exponentials, 16 * block, exponential(values))
        store(quotients, 16 * block, divide(values, exponential(values)))


def test_exponentials_and_quotients_are_those_of_numpy():
    numbers = np.linspace(-86.0, 87.0, 16_000).astype(np.float32)
    exponentials, quotients = np.zeros((2, numbers.size), dtype=np.float32)
    over_lanes(numbers, exponentials, quotients)
    exact = np.exp(numbers.astype(np.float64))
    np.testing.assert_allclose(exponentials, exact, rtol=2e-7)
    finite = np.abs(numbers) < 80
    np.testing.assert_allclose(quotients[finite], (numbers / exact)[finite], rtol=4e-7)
    numbers[:16] = [0.0, -1e30, -90.0, -1e5, *np.zeros(12)]
    over_lanes(numbers[:16], exponentials[:16], quotients[:16])
    assert exponentials[0] == 1.0
    assert (exponentials[1:4] < 1e-37).all()


def exact_probabilities(kernel, coefficients):
    """Of all topics of the tokens, given coefficients."""
    states = np.array(list(product(range(kernel.n_topics), repeat=kernel.tokens.n_tokens)), dtype=np.int32)
    values = np.array([kernel.log_joint({"topics": state, **coefficients}) for state in states])
    weights = np.exp(values - values.max())
    return states, weights / weights.sum()


def frequencies(kernel, coefficients, n_sweeps):
    """How often each token had each topic, with coefficients that stay."""
    rng = np.random.default_rng(0)
    topics = np.zeros(kernel.tokens.n_tokens, dtype=np.int32)
    state = kernel.init(rng, {"topics": topics, **coefficients})
    seen = np.zeros((kernel.tokens.n_tokens, kernel.n_topics))
    for _ in range(n_sweeps):
        state.swept()
        kernel._sweep(rng, state)
        seen[np.arange(len(seen)), state.words.topics] += 1
    return seen / n_sweeps


# Frequencies of 10,000 sweeps whose draws are nearly independent: off by more than 0.03 with probability below 1e-6.
@pytest.mark.parametrize(("center", "precision"), [(0.0, 1.0), (1.0, 400.0), (30.0, 0.02), (300.0, 1e4), (1.0, 1e-8)])
def test_rated_tokens_have_their_exact_probabilities_however_large_the_numbers(center, precision):
    tokens = tokens_of(sparse.csr_matrix([[1, 0, 0], [0, 0, 1], [0, 1, 1]]))
    spread = precision**-0.5
    # Two topics are as near to a rating as the noise is wide, and the third is far.
    given = {"coefficients": center + spread * np.array([0.0, 1.5, 90.0]), "precision": np.array(precision)}
    kernel = RatingsGibbs(tokens, center + spread * np.array([0.5, 1.2, np.nan]), np.array([0.7, 1.2, 0.4]), 0.6)
    states, exact = exact_probabilities(kernel, given)
    expected = np.array([[exact[states[:, i] == k].sum() for k in range(3)] for i in range(4)])
    np.testing.assert_allclose(frequencies(kernel, given, 10_000), expected, atol=0.03)


def test_with_more_topics_than_lanes_probabilities_are_exact_too():
    rng, n_topics = np.random.default_rng(1), 17
    tokens = tokens_of(sparse.csr_matrix([[1, 0], [1, 1]]))
    prior = rng.gamma(2.0, size=n_topics)
    rated = RatingsGibbs(tokens, np.array([1.0, -2.0]), prior, 0.6)
    given = {"coefficients": rng.normal(size=n_topics) * 3, "precision": np.array(2.0)}
    classed = ClassesGibbs(tokens, np.array([1, 20]), prior, 0.6, n_classes=21)
    told = {"coefficients": rng.normal(size=(21, n_topics)) * 3}
    for kernel, coefficients in ((rated, given), (classed, told)):
        states, exact = exact_probabilities(kernel, coefficients)
        expected = np.array([[exact[states[:, i] == k].sum() for k in range(n_topics)] for i in range(3)])
        np.testing.assert_allclose(frequencies(kernel, coefficients, 10_000), expected, atol=0.03)


@pytest.mark.parametrize("n_classes", [3, 16, 20])
def test_logarithms_and_products_weigh_classes_alike(monkeypatch, n_classes):
    X = corpus()
    rng = np.random.default_rng(6)
    label = rng.integers(-1, n_classes, size=30)
    kernel = ClassesGibbs(tokens_of(X), label, np.ones(18), n_classes=n_classes, learning="fixed")
    coefficients = rng.normal(scale=3.0, size=(n_classes, 18))
    start = {**kernel.start(rng), "coefficients": coefficients}
    moved = []
    for largest in (20.0, 0.0):
        monkeypatch.setattr(gibbs, "LARGEST_PRODUCT", largest)
        moved.append(kernel.sweep(np.random.default_rng(9), start, (kernel.tokens, label))["topics"])
    np.testing.assert_array_equal(*moved)
    assert (moved[0] != start["topics"]).mean() > 0.5


def test_the_class_given_has_its_probability_with_huge_coefficients():
    # A single token: p(topic) is proportional to the prior times the probability of the class.
    tokens, prior = tokens_of(sparse.csr_matrix([[1]])), np.array([0.5, 1.0, 2.0])
    coefficients = np.array([[900.0, 900.0, 0.0], [900.3, 899.0, 5.0]])
    kernel = ClassesGibbs(tokens, np.array([1]), prior, learning="fixed")
    weights = prior * np.exp(log_softmax(coefficients, axis=0)[1])
    seen = frequencies(kernel, {"coefficients": coefficients}, 10_000)
    np.testing.assert_allclose(seen[0], weights / weights.sum(), atol=0.03)


@pytest.mark.parametrize("kind", ["ratings", "classes"])
def test_counts_are_those_of_the_topics_after_every_sweep_and_sweeps_repeat_themselves(kind):
    X, rng = corpus(), np.random.default_rng(0)
    tokens = tokens_of(X)
    if kind == "ratings":
        kernel = RatingsGibbs(tokens, np.where(np.arange(30) < 25, rng.normal(size=30), np.nan), np.full(20, 0.3))
    else:
        kernel = ClassesGibbs(tokens, rng.integers(-1, 4, size=30), np.full(20, 0.3), n_classes=4, learning="draw")
    ends = []
    for _ in range(2):
        rng = np.random.default_rng(1)
        state = kernel.init(rng, kernel.start(rng))
        for _ in range(5):
            state, _ = kernel.step(rng, state)
            check_counts(state.words)
            counted = document_counts(tokens, state.words.topics, 20)
            np.testing.assert_array_equal(state.in_document[:, :20], counted)
            np.testing.assert_allclose(state.shares(), topic_shares(tokens, state.words.topics, 20))
            assert state.log_density == pytest.approx(kernel.log_joint(state.position), rel=1e-12)
        ends.append(state.position)
    for name in ends[0]:
        np.testing.assert_array_equal(ends[0][name], ends[1][name])
