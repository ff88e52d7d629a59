"""Topics by EM against enumeration, closed forms and scikit-learn's non-negative factorisation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.decomposition import non_negative_factorization

from pluri.engine import SparseSource, resolve_engine
from pluri.priors import Diversity, log_determinant
from pluri.topics.lda.maximum.em import document_log_likelihood, fit_maximum, fold_in


def corpus(n_documents=60, n_words=30, n_topics=4, length=40, seed=0):
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_words, 0.1), n_topics)
    shares = rng.dirichlet(np.full(n_topics, 0.2), n_documents)
    X = np.array([rng.multinomial(length, share @ topics) for share in shares]).astype(float)
    return sparse.csr_matrix(X[:, X.sum(axis=0) > 0])


def objective(X, theta, beta, alpha=1.0, eta=1.0):
    value = (X.toarray() * np.log(np.where(X.toarray() > 0, theta @ beta, 1.0))).sum()
    value += 0.0 if alpha == 1 else (alpha - 1) * np.log(theta).sum()
    return value + (0.0 if eta == 1 else (eta - 1) * np.log(beta).sum())


@pytest.mark.parametrize(("alpha", "eta"), [(1.0, 1.0), (1.5, 1.1)])
@pytest.mark.parametrize("temper", [1.0, 0.7])
def test_the_objective_never_falls(alpha, eta, temper):
    fit = fit_maximum(
        corpus(), 5, doc_topic_prior=alpha, topic_word_prior=eta, temper=temper, tol=-1, max_iter=200, random_state=0
    )
    assert np.diff(fit.trace).min() >= -1e-9 * abs(fit.objective)
    assert fit.trace[-1] > fit.trace[0]


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(1, 8), st.integers(1, 4))
def test_inner_updates_keep_the_ascent(seed, n_topics, n_inner):
    fit = fit_maximum(corpus(20, seed=seed), n_topics, n_inner=n_inner, tol=-1, max_iter=15, random_state=seed)
    assert np.diff(fit.trace).min() >= -1e-9 * abs(fit.objective)
    np.testing.assert_allclose(fit.topic_word.sum(axis=1), 1.0)
    np.testing.assert_allclose(fit.doc_topic.sum(axis=1), 1.0)


@pytest.mark.parametrize(("alpha", "eta"), [(1.0, 1.0), (1.5, 1.1)])
def test_the_objective_is_the_formula(alpha, eta):
    X = corpus()
    options = {"doc_topic_prior": alpha, "topic_word_prior": eta, "tol": -1, "random_state": 0}
    before = fit_maximum(X, 3, max_iter=4, **options)
    after = fit_maximum(X, 3, max_iter=5, **options)
    assert after.trace[-1] == pytest.approx(objective(X, before.doc_topic, before.topic_word, alpha, eta), rel=1e-12)


def test_an_iteration_equals_the_multiplicative_updates_of_scikit_learn():
    # theta from the old beta and beta from the old theta: each is one multiplicative update with the other held.
    X = corpus().toarray()
    options = {"doc_topic_prior": 1.0, "topic_word_prior": 1.0, "tol": -1, "random_state": 1}
    old = fit_maximum(sparse.csr_matrix(X), 4, max_iter=2, **options)
    new = fit_maximum(sparse.csr_matrix(X), 4, max_iter=3, **options)
    W, H = X.sum(axis=1, keepdims=True) * old.doc_topic, old.topic_word
    theirs = {"init": "custom", "solver": "mu", "beta_loss": "kullback-leibler", "max_iter": 1, "tol": 0}
    shares, _, _ = non_negative_factorization(X, W=W.copy(), H=H.copy(), n_components=4, **theirs)
    columns, _, _ = non_negative_factorization(X.T, W=H.T.copy(), H=W.T.copy(), n_components=4, **theirs)
    np.testing.assert_allclose(new.doc_topic, shares / shares.sum(axis=1, keepdims=True), rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(new.topic_word, (columns / columns.sum(axis=0)).T, rtol=1e-6, atol=1e-10)


def test_one_topic_is_the_unigram():
    X = corpus()
    fit = fit_maximum(X, 1, doc_topic_prior=1.0, topic_word_prior=1.0, random_state=0)
    totals = np.asarray(X.sum(axis=0)).ravel()
    np.testing.assert_allclose(fit.topic_word[0], totals / totals.sum(), rtol=1e-12)
    assert fit.trace[-1] == pytest.approx(totals @ np.log(totals / totals.sum()), rel=1e-12)
    smoothed = fit_maximum(X, 1, doc_topic_prior=1.0, topic_word_prior=1.5, random_state=0)
    np.testing.assert_allclose(smoothed.topic_word[0], (totals + 0.5) / (totals + 0.5).sum(), rtol=1e-12)


def test_folding_in_training_documents_reproduces_their_shares():
    X = corpus(30)
    for alpha in (1.0, 1.3):
        options = {"doc_topic_prior": alpha, "topic_word_prior": 1.1, "n_inner": 5, "random_state": 0}
        fit = fit_maximum(X, 4, tol=-1, max_iter=500, **options)
        shares = fold_in(fit.topic_word, X, doc_topic_prior=alpha, max_iter=20_000, tol=1e-12)
        np.testing.assert_allclose(shares, fit.doc_topic, atol=2e-3)
        ours = document_log_likelihood(fit.topic_word, X, fit.doc_topic).sum()
        assert ours == pytest.approx(objective(X, fit.doc_topic, fit.topic_word), rel=1e-12)


def test_folding_in_finds_the_maximum():
    # Two topics: the share that a fine grid finds.
    X, rng = corpus(8), np.random.default_rng(0)
    topics = rng.dirichlet(np.full(X.shape[1], 0.5), 2)
    shares = fold_in(topics, X, doc_topic_prior=1.2)
    grid = np.linspace(1e-6, 1 - 1e-6, 20_001)
    mixed = np.log(grid[:, None] * topics[0] + (1 - grid[:, None]) * topics[1])
    values = mixed @ X.toarray().T + 0.2 * (np.log(grid) + np.log1p(-grid))[:, None]
    np.testing.assert_allclose(shares[:, 0], grid[values.argmax(axis=0)], atol=1e-4)


def test_an_empty_document_has_equal_shares_or_the_mode_of_the_prior():
    topics = np.array([[0.5, 0.5], [0.2, 0.8]])
    empty = sparse.csr_matrix((1, 2))
    np.testing.assert_allclose(fold_in(topics, empty), [[0.5, 0.5]])
    np.testing.assert_allclose(fold_in(topics, empty, doc_topic_prior=[1.3, 1.1]), [[0.75, 0.25]])


def test_order_of_topics_does_not_matter():
    X, rng = corpus(), np.random.default_rng(0)
    start, order = rng.dirichlet(np.ones(X.shape[1]), 4), rng.permutation(4)
    plain = fit_maximum(X, 4, start=start, max_iter=20, tol=-1)
    other = fit_maximum(X, 4, start=start[order], max_iter=20, tol=-1)
    np.testing.assert_allclose(other.topic_word, plain.topic_word[order], rtol=1e-9)
    np.testing.assert_allclose(other.doc_topic, plain.doc_topic[:, order], rtol=1e-9)


def test_a_weight_of_two_is_a_document_twice():
    X = corpus(20)
    start = np.random.default_rng(0).dirichlet(np.ones(X.shape[1]), 3)
    weighted = fit_maximum(X, 3, start=start, max_iter=10, tol=-1, sample_weight=np.where(np.arange(20) < 5, 2.0, 1.0))
    twice = fit_maximum(sparse.vstack([X, X[:5]], format="csr"), 3, start=start, max_iter=10, tol=-1)
    np.testing.assert_allclose(weighted.topic_word, twice.topic_word, rtol=1e-9)
    assert weighted.objective == pytest.approx(twice.objective, rel=1e-11)


def test_engines_agree():
    X = corpus(300)
    alone = fit_maximum(X, 4, random_state=0, max_iter=8, tol=-1)
    threads = fit_maximum(X, 4, random_state=0, max_iter=8, tol=-1, engine=resolve_engine(n_jobs=2))
    np.testing.assert_array_equal(threads.topic_word, alone.topic_word)
    import distributed

    with distributed.Client(n_workers=1, processes=False, dashboard_address=":0", set_as_default=False) as client:
        there = fit_maximum(X, 4, random_state=0, max_iter=8, tol=-1, engine=client)
    np.testing.assert_allclose(there.topic_word, alone.topic_word, rtol=1e-9)


def test_documents_of_a_source_are_folded_in_and_reach_as_high():
    X = corpus()
    start = np.random.default_rng(0).dirichlet(np.ones(X.shape[1]), 4)
    memory = fit_maximum(X, 4, start=start, max_iter=400, tol=-1)
    source = fit_maximum(SparseSource(X, batch_size=13), 4, start=start, max_iter=100, tol=-1)
    assert np.diff(source.trace).min() >= -1e-7 * abs(source.objective)
    assert source.objective > memory.objective - 1e-2 * abs(memory.objective)
    assert source.doc_topic is None


def test_diversity_is_the_exact_penalised_maximum():
    X = corpus()
    plain = fit_maximum(X, 3, random_state=0, max_iter=60, tol=-1)
    diverse = fit_maximum(X, 3, random_state=0, max_iter=60, tol=-1, diversity=Diversity(200.0))
    assert np.diff(diverse.trace).min() >= -1e-9 * abs(diverse.objective)
    assert log_determinant(diverse.topic_word, 0.5) > log_determinant(plain.topic_word, 0.5)


def test_restarts_keep_the_best_run_and_documents_can_stand_for_topics():
    X = corpus()
    several = fit_maximum(X, 4, random_state=0, max_iter=30, n_init=3, start="documents")
    single = fit_maximum(X, 4, random_state=0, max_iter=30, start="documents")
    assert several.objective >= single.objective


def test_words_that_no_topic_has_are_explained():
    X = corpus()
    fit = fit_maximum(X[:, 1:], 2, doc_topic_prior=1.0, topic_word_prior=1.0, random_state=0, max_iter=5)
    topics = np.hstack([np.zeros((2, 1)), fit.topic_word])
    document = sparse.csr_matrix(np.eye(1, X.shape[1]))
    with pytest.raises(ValueError, match="topic_word_prior above 1"):
        document_log_likelihood(topics, document, fold_in(topics, document))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"doc_topic_prior": 0.9}, "doc_topic_prior must be finite and at least 1"),
        ({"topic_word_prior": 0.5}, "topic_word_prior must be finite and at least 1"),
        ({"doc_topic_prior": [1.0, 1.0]}, "have 3 numbers"),
        ({"topic_word_prior": np.ones((2, 2))}, "topic_word_prior must be a number"),
        ({"temper": 1.5}, "temper must be a number above 0"),
        ({"n_inner": 0}, "n_inner must be"),
        ({"start": "nowhere"}, "start must be"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        fit_maximum(corpus(10), 3, **options)
