"""Topics pushed apart, against the general solver, numerical maximisation and documents of overlapping topics."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import polygamma

from pluri.datasets import make_topic_documents
from pluri.metrics import topic_overlap
from pluri.priors import Diversity, log_determinant, maximize_rows, rows_objective
from pluri.topics import LatentDirichletAllocation
from pluri.topics.lda._diverse_kernels import diverse_root, trigamma
from pluri.topics.lda.diverse_topics import (
    TopicKernel,
    log_diversity,
    posterior_pushed_apart,
    pushed_apart,
    row_bound,
)
from pluri.topics.lda.topic_priors import TopicPriors
from pluri.topics.lda.variational.factors import Topics, topics_bound


def overlapping_counts(rng, n_topics, n_words, n_tokens):
    """Counts of topics that share half of their words."""
    common, own = rng.dirichlet(np.full(n_words, 0.3)), rng.dirichlet(np.full(n_words, 0.1), size=n_topics)
    return rng.poisson(n_tokens * (0.5 * common + 0.5 * own)).astype(float)


def normalized(rows):
    return rows / rows.sum(axis=1, keepdims=True)


def posterior_value(target, rows, diversity):
    """Bound of q(topics) with expected counts plus prior `target`, by the function that the fit reports."""
    topics = Topics.of(np.ascontiguousarray(rows.T))
    priors = TopicPriors(np.ones(len(rows)), np.ascontiguousarray(target.T), rows.shape[1])
    return topics_bound(topics, priors) + diversity.strength * log_determinant(normalized(rows))


@pytest.mark.parametrize(("strength", "least"), [(0.01, 0.0), (5.0, 0.02), (300.0, 0.0), (1e6, 0.02)])
def test_an_update_of_the_most_probable_topics_never_lowers_their_objective(strength, least):
    rng = np.random.default_rng(0)
    diversity = Diversity(strength)
    counts = overlapping_counts(rng, 6, 40, 300) + least
    counts[2] = least  # a topic without tokens
    topics = rng.dirichlet(np.ones(40), size=6)
    value = rows_objective(counts, topics, diversity=diversity)
    for _ in range(20):
        topics = pushed_apart(counts, topics, diversity)
        new = rows_objective(counts, topics, diversity=diversity)
        assert new >= value - 1e-9 * abs(value)
        value = new
    np.testing.assert_allclose(topics.sum(axis=1), 1.0, rtol=1e-12)


def test_updates_come_to_rest_where_the_general_solver_finds_nothing_better():
    rng = np.random.default_rng(1)
    diversity = Diversity(40.0, max_iter=500)
    counts = overlapping_counts(rng, 5, 25, 300) + 0.1
    topics = normalized(counts)
    for _ in range(2000):
        topics = pushed_apart(counts, topics, diversity)
    mine = rows_objective(counts, topics, diversity=diversity)
    theirs = rows_objective(counts, maximize_rows(counts, topics, diversity=diversity), diversity=diversity)
    assert theirs - mine < 1e-3
    assert mine > rows_objective(counts, normalized(counts), diversity=diversity) + 1.0


def test_a_topic_is_the_maximum_of_its_lower_bound():
    rng = np.random.default_rng(2)
    counts, dual, strength = rng.gamma(0.5, 10.0, size=12), rng.normal(size=12), 7.0
    root = np.empty(12)
    diverse_root(counts, dual, strength, root)

    def lower_bound(u):
        return float(counts @ np.log(u * u) + 2 * strength * np.log(dual @ u))

    def negative(logits):
        u = np.exp(logits) / np.linalg.norm(np.exp(logits))
        return -lower_bound(u) if dual @ u > 0 else np.inf

    found = min(
        (minimize(negative, np.log(root) + 0.1 * rng.normal(size=12), method="BFGS") for _ in range(3)),
        key=lambda run: run.fun,
    )
    assert np.linalg.norm(root) == pytest.approx(1.0)
    assert lower_bound(root) == pytest.approx(-found.fun, abs=1e-5)
    u = np.exp(found.x) / np.linalg.norm(np.exp(found.x))
    np.testing.assert_allclose(root, u, atol=1e-3)


def test_without_strength_and_with_orthogonal_topics_counts_alone_decide():
    counts = np.array([[3.0, 1.0, 0.0, 0.0], [0.0, 0.0, 2.0, 2.0]])
    np.testing.assert_allclose(pushed_apart(counts, normalized(counts), Diversity(50.0)), normalized(counts), atol=1e-9)
    apart = np.array([[3.0, 1.0, 1.0], [1.0, 1.0, 2.0]])
    np.testing.assert_allclose(
        pushed_apart(apart, np.array([[0.4, 0.3, 0.3], [0.3, 0.3, 0.4]]), Diversity(1e-9)), normalized(apart)
    )


def test_the_inverse_kernel_follows_replaced_topics():
    rng = np.random.default_rng(3)
    kernel = TopicKernel.of(rng.dirichlet(np.ones(20), size=6), Diversity(1.0))
    for k in (4, 0, 4):
        before = np.linalg.slogdet(kernel.roots @ kernel.roots.T)[1]
        new = np.sqrt(rng.dirichlet(np.ones(20)))
        gain = kernel.log_distance(k, new) - kernel.log_distance(k, kernel.roots[k])
        kernel.replace(k, new)
        gram = kernel.roots @ kernel.roots.T
        np.testing.assert_allclose(kernel.inverse @ gram, np.eye(6), atol=1e-9)
        assert np.linalg.slogdet(gram)[1] - before == pytest.approx(gain)
    assert log_diversity(kernel.roots**2, Diversity(3.0)) == pytest.approx(3.0 * log_determinant(kernel.roots**2))


@pytest.mark.parametrize("rho", [0.5, 1.0])
def test_topics_that_coincide_and_other_kernels_are_taken(rho):
    counts = np.array([[4.0, 3.0, 1.0], [4.0, 3.0, 1.0]])
    diversity = Diversity(2.0, rho=rho)
    topics = pushed_apart(counts, normalized(counts), diversity)
    assert log_diversity(topics, diversity) > -np.inf
    rows = posterior_pushed_apart(counts, counts, diversity)
    assert log_diversity(normalized(rows), diversity) > -np.inf


def test_an_update_of_the_posterior_never_lowers_the_bound():
    rng = np.random.default_rng(4)
    for strength in (0.1, 20.0, 1e4):
        diversity = Diversity(strength)
        target = overlapping_counts(rng, 5, 40, 100) + 0.05
        rows = rng.gamma(100.0, 0.01, size=target.shape)
        value = posterior_value(target, rows, diversity)
        for _ in range(15):
            rows = posterior_pushed_apart(target, rows, diversity)
            new = posterior_value(target, rows, diversity)
            assert new >= value - 1e-9 * abs(value)
            value = new


def test_updates_of_the_posterior_come_to_rest_at_a_maximum_of_the_bound():
    rng = np.random.default_rng(5)
    diversity = Diversity(20.0)
    target = overlapping_counts(rng, 4, 30, 20) + 0.1
    rows = target
    for _ in range(300):
        rows = posterior_pushed_apart(target, rows, diversity)

    def negative(logs):
        return -posterior_value(target, np.exp(logs).reshape(target.shape), diversity)

    reached = posterior_value(target, rows, diversity)
    best = -minimize(negative, np.log(rows).ravel(), method="L-BFGS-B").fun
    assert best - reached < 1e-3
    assert reached > posterior_value(target, target, diversity) + 1.0


def test_the_bound_of_a_row_is_that_of_all_topics():
    rng = np.random.default_rng(6)
    target, rows = rng.gamma(1.0, 5.0, size=(2, 3, 9))
    change = sum(row_bound(*pair) for pair in zip(target, rows)) - sum(row_bound(row, row) for row in target)
    whole = [posterior_value(target, values, Diversity(0.0)) for values in (rows, target)]
    assert whole[0] - whole[1] == pytest.approx(change)


def test_trigamma():
    for x in np.logspace(-8, 8, 50):
        assert trigamma(x) == pytest.approx(float(polygamma(1, x)), rel=1e-8)


@pytest.mark.parametrize("inference", ["em", "vb"])
def test_a_prior_of_a_tenth_of_the_tokens_of_a_topic_lowers_the_overlap_and_a_tiny_one_changes_nothing(inference):
    made = make_topic_documents(300, 60, 80, 4, 0.3, 0.3, random_state=0)

    def fitted(share):
        return LatentDirichletAllocation(6, inference=inference, max_iter=60, diversity=share, random_state=0).fit(
            made.counts
        )

    plain, tiny, moderate = fitted(0.0), fitted(1e-6), fitted(0.1)
    overlaps = [topic_overlap(model.topic_word_).mean for model in (plain, tiny, moderate)]
    assert overlaps[1] == pytest.approx(overlaps[0], abs=0.02)
    assert overlaps[2] < 0.75 * overlaps[0]
    assert (np.diff(moderate.elbo_) >= -1e-9 * abs(moderate.elbo_[-1])).all()
    few = moderate.held_out(made.counts, random_state=0).perplexity
    assert few < 1.1 * plain.held_out(made.counts, random_state=0).perplexity
