"""Supervised topic models against enumeration, quadrature, finite differences and documents with known topics."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.integrate import quad
from scipy.special import gammaln, log_softmax
from scipy.stats import norm
from sklearn.linear_model import Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from pluri import io
from pluri.inference.variational import coordinate_ascent
from pluri.priors import Gamma
from pluri.testing import SamplerProblem
from pluri.topics import SupervisedLDA, SupervisedLDAClassifier
from pluri.topics.documents import tokens_of
from pluri.topics.supervised.chain_state import topic_shares
from pluri.topics.supervised.distinct_words import distinct_words_of
from pluri.topics.supervised.gibbs import ClassesGibbs, RatingsGibbs, maximal_coefficients
from pluri.topics.supervised.predictive import class_entropy, mixture_entropy, normal_entropy
from pluri.topics.supervised.variational import ClassesVariational, RatingsVariational

TINY = sparse.csr_matrix([[2, 1, 0], [0, 1, 2], [1, 0, 0]])

#: Short chains are not meant to have settled.
pytestmark = pytest.mark.filterwarnings("ignore:the chains have not settled:sklearn.exceptions.ConvergenceWarning")


def rated_corpus(seed=0, n_documents=200, length=40, n_words=60):
    """Four topics whose ratings are -2, -0.7, 0.7 and 2, with noise of standard deviation 0.3."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_words, 0.1), size=4)
    effect = np.array([-2.0, -0.7, 0.7, 2.0])
    counts, zbar = np.zeros((n_documents, n_words), dtype=int), np.zeros((n_documents, 4))
    for row, theta in enumerate(rng.dirichlet(np.full(4, 0.3), size=n_documents)):
        z = rng.choice(4, size=length, p=theta)
        zbar[row] = np.bincount(z, minlength=4) / length
        for k in z:
            counts[row, rng.choice(n_words, p=topics[k])] += 1
    return sparse.csr_matrix(counts), zbar @ effect + 0.3 * rng.standard_normal(n_documents), zbar


def ratings_problem():
    """Three short documents, one of them without a rating."""
    kernel = RatingsGibbs(
        tokens_of(TINY), np.array([0.5, -1.0, np.nan]), np.array([0.7, 1.2]), 0.6, 1.5, Gamma(2.0, 1.5)
    )

    def data(rng, position):
        tokens, response = kernel.sample_data(rng, position)
        return tokens, np.where(np.isnan(response), np.inf, response)  # NaN is not equal to itself

    return SamplerProblem(
        "RatingsGibbs", prior=kernel.sample_prior, data=data, transition=kernel.sweep,
        statistics=rating_statistics, log_likelihood=kernel.log_joint,
    )  # fmt: skip


def rating_statistics(position, data):
    tokens, response = data
    topics = position["topics"]
    return {
        "together": float(topics[0] == topics[1]),
        "across": float(topics[0] == topics[-1]),
        "coefficients": np.sort(position["coefficients"]),
        "log precision": float(np.log(position["precision"])),
        "first word": float((tokens.words == 0).sum()),
        "ratings": response[:2],
        "fit": float(response[0] * position["coefficients"][topics[0]]),
    }


def classes_problem():
    """Three short documents, one of them without a class, coefficients drawn."""
    kernel = ClassesGibbs(tokens_of(TINY), np.array([0, 2, -1]), np.array([0.7, 1.2]), 0.6, 2.0, 3, "draw")
    return SamplerProblem(
        "ClassesGibbs", prior=kernel.sample_prior, data=kernel.sample_data, transition=kernel.sweep,
        statistics=class_statistics, log_likelihood=kernel.log_joint,
    )  # fmt: skip


def class_statistics(position, data):
    tokens, label = data
    topics, coefficients = position["topics"], position["coefficients"]
    return {
        "together": float(topics[0] == topics[1]),
        "across": float(topics[0] == topics[-1]),
        "spread": float((coefficients**2).sum()),
        "first word": float((tokens.words == 0).sum()),
        "classes": np.bincount(label[:2], minlength=3).astype(float),
        "fit": float(coefficients[label[0], topics[0]]),
    }


def log_words(tokens, topics, alpha, eta, n_topics):
    """Log p(words, topics) term by term."""
    value = 0.0
    for row in range(tokens.n_documents):
        here = np.bincount(topics[tokens.offsets[row] : tokens.offsets[row + 1]], minlength=n_topics)
        value += gammaln(alpha.sum()) - gammaln(alpha.sum() + here.sum())
        value += (gammaln(alpha + here) - gammaln(alpha)).sum()
    for k in range(n_topics):
        words = np.bincount(tokens.words[topics == k], minlength=tokens.n_words)
        value += gammaln(tokens.n_words * eta) - gammaln(tokens.n_words * eta + words.sum())
        value += (gammaln(eta + words) - gammaln(eta)).sum()
    return value


def test_topics_of_tokens_have_their_exact_probabilities_given_the_coefficients():
    # 20,000 sweeps; a frequency is off by more than 0.025 with probability below 1e-4 even if neighbours are alike.
    tokens, prior = tokens_of(TINY), np.array([0.7, 1.2])
    label = np.array([0, 1, -1])
    kernel = ClassesGibbs(tokens, label, prior, 0.6, 2.0, 2, "fixed")
    coefficients = np.array([[2.0, -1.0], [-1.5, 1.0]])
    states = list(product(range(2), repeat=tokens.n_tokens))
    log_weights = []
    for state in states:
        topics = np.array(state)
        shares = topic_shares(tokens, topics, 2)
        scores = log_softmax(shares @ coefficients.T, axis=1)
        log_weights.append(log_words(tokens, topics, prior, 0.6, 2) + scores[0, 0] + scores[1, 1])
    weights = np.exp(log_weights - np.max(log_weights))
    exact = dict(zip(states, weights / weights.sum()))
    rng = np.random.default_rng(0)
    start = {"topics": np.zeros(tokens.n_tokens, dtype=np.int32), "coefficients": coefficients}
    state = kernel.init(rng, start)
    seen = np.zeros(tokens.n_tokens)
    pairs, n_sweeps = 0.0, 20_000
    for _ in range(n_sweeps):
        state.swept()
        kernel._sweep(rng, state)
        seen += state.words.topics
        pairs += state.words.topics[0] == state.words.topics[3]
    np.testing.assert_allclose(seen / n_sweeps, sum(p * np.array(s) for s, p in exact.items()), atol=0.025)
    assert pairs / n_sweeps == pytest.approx(sum(p for s, p in exact.items() if s[0] == s[3]), abs=0.025)


def test_the_log_joint_is_the_sum_of_its_parts():
    tokens, prior = tokens_of(TINY), np.array([0.7, 1.2])
    kernel = RatingsGibbs(tokens, np.array([0.5, -1.0, np.nan]), prior, 0.6, 1.5, Gamma(2.0, 1.5))
    rng = np.random.default_rng(0)
    state = kernel.init(rng, kernel.sample_prior(rng))
    for _ in range(5):
        state, _ = kernel.step(rng, state)
        topics, w, tau = (state.position[name] for name in ("topics", "coefficients", "precision"))
        shares = topic_shares(tokens, topics, 2)
        value = log_words(tokens, topics, prior, 0.6, 2)
        value += norm.logpdf([0.5, -1.0], shares[:2] @ w, tau**-0.5).sum()
        value += norm.logpdf(w, 0, 1.5**0.5).sum()
        value += 2 * np.log(1.5) - gammaln(2) + np.log(tau) - 1.5 * tau
        assert state.log_density == pytest.approx(value)


def test_without_ratings_the_sampler_is_that_of_latent_dirichlet_allocation():
    # Documents (0, 0, 1) and (2, 2, 1); 40,000 sweeps bring frequencies within 0.02.
    tokens = tokens_of(sparse.csr_matrix([[2, 1, 0], [0, 1, 2]]))
    kernel = RatingsGibbs(tokens, np.full(2, np.nan), np.full(2, 0.5), 0.5)
    rng = np.random.default_rng(1)
    state, n_sweeps = kernel.init(rng, kernel.start(rng)), 40_000
    together = np.zeros(3)
    for _ in range(n_sweeps):
        state.swept()
        kernel._sweep(rng, state)
        z = state.words.topics
        together += [z[0] == z[1], z[0] == z[2], z[0] == z[4]]
    np.testing.assert_allclose(together / n_sweeps, [0.8736, 0.6960, 0.2669], atol=0.02)


@pytest.mark.parametrize("kind", ["ratings", "classes"])
def test_the_bound_never_falls(kind):
    X, y, _ = rated_corpus(n_documents=40)
    words, prior = distinct_words_of(X), np.full(3, 0.4)
    if kind == "ratings":
        model, response = RatingsVariational(3, prior, 0.1, 10.0), np.where(np.arange(40) < 35, y, np.nan)
    else:
        model, response = ClassesVariational(3, prior, 0.1, 10.0, 3), np.digitize(y, [-0.5, 0.5])
        response[35:] = -1
    result = coordinate_ascent(
        model, (words, response), rng=np.random.default_rng(0), max_iter=60, tol=1e-9, strict=True
    )
    assert len(result.trace) > 10
    assert (np.diff(result.trace) > -1e-7 * np.abs(result.trace[:-1])).all()


def test_the_gradient_of_the_class_bound_is_that_of_finite_differences():
    X, y, _ = rated_corpus(n_documents=12)
    words, label = distinct_words_of(X), np.digitize(y, [-0.5, 0.5])
    label[3] = -1
    model = ClassesVariational(3, np.full(3, 0.4), 0.1, 10.0, 3)
    rng = np.random.default_rng(0)
    q = model.initialize((words, label), rng)
    shares, point = model.shares(words, q.phi), rng.normal(size=(3, 3))
    gradient = model._class_value(point, q.phi, shares, words, label)[1]
    for c, k in product(range(3), repeat=2):
        step = np.zeros((3, 3))
        step[c, k] = 1e-5
        values = [model._class_value(point + s * step, q.phi, shares, words, label)[0] for s in (1, -1)]
        assert gradient[c, k] == pytest.approx((values[0] - values[1]) / 2e-5, abs=1e-5)


def test_one_topic_has_the_mean_rating_shrunk():
    X, y, _ = rated_corpus(n_documents=30)
    model = SupervisedLDA(1, inference="vb", random_state=0).fit(X, y)
    assert model.coef_[0] == pytest.approx(y.mean(), abs=1e-8)
    assert model.predict(X[:3]) == pytest.approx(np.full(3, y.mean()))
    drawn = SupervisedLDA(1, n_draws=400, thin=1, random_state=0).fit(X, y)
    assert drawn.coef_[0] == pytest.approx(y.mean(), abs=5 * y.std() / np.sqrt(30 * 400) + 0.02)


@pytest.mark.parametrize("inference", ["gibbs", "vb"])
def test_ratings_are_predicted_almost_as_well_as_the_noise_allows(inference):
    X, y, _ = rated_corpus(seed=3)
    model = SupervisedLDA(
        4, doc_topic_prior=0.3, topic_word_prior=0.1, inference=inference, n_warmup=150, random_state=0
    ).fit(X[:150], y[:150])
    error = np.mean((model.predict(X[150:]) - y[150:]) ** 2)
    assert error < 0.25  # noise of variance 0.09, known to 0.02 from 50; ratings of variance above 1
    np.testing.assert_allclose(np.sort(model.coef_), [-2.0, -0.7, 0.7, 2.0], atol=0.6)
    assert model.noise_ == pytest.approx(0.09, abs=0.07)
    mean, std = model.predict(X[150:], return_std=True)
    inside = np.abs(y[150:] - mean) < 1.96 * std
    assert inside.mean() > 0.7  # of 50, each about 0.93


def test_shift_and_scale_of_ratings_go_through():
    X, y, _ = rated_corpus(n_documents=60)
    plain = SupervisedLDA(3, n_warmup=30, n_draws=5, random_state=0).fit(X, y)
    moved = SupervisedLDA(3, n_warmup=30, n_draws=5, random_state=0).fit(X, 50 + 10 * y)
    np.testing.assert_allclose(moved.predict(X), 50 + 10 * plain.predict(X), rtol=1e-6)
    np.testing.assert_allclose(moved.predict_entropy(X[:4]), plain.predict_entropy(X[:4]) + np.log(10), rtol=1e-6)


@pytest.mark.parametrize(("inference", "coefficients"), [("gibbs", "maximize"), ("gibbs", "draw"), ("vb", "maximize")])
def test_classes_are_predicted_as_well_as_from_the_true_topics(inference, coefficients):
    X, y, zbar = rated_corpus(seed=4)
    label = np.array(["low", "middle", "high"])[np.digitize(y, [-0.7, 0.7])]
    model = SupervisedLDAClassifier(
        4, doc_topic_prior=0.3, inference=inference, coefficients=coefficients, random_state=0
    ).fit(X[:150], label[:150])
    by_rating = Ridge(1e-3).fit(zbar[:150], y[:150]).predict(zbar[150:])
    oracle = np.mean(np.array(["low", "middle", "high"])[np.digitize(by_rating, [-0.7, 0.7])] == label[150:])
    assert model.score(X[150:], label[150:]) > oracle - 0.35  # five standard errors of a share of 50
    probabilities = model.predict_proba(X[150:])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert (model.mutual_information(X[150:]) >= -1e-12).all()
    assert (model.predict_entropy(X[150:]) <= np.log(3) + 1e-12).all()


def test_the_mode_of_coefficients_is_that_of_logistic_regression():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    shares, label = rng.dirichlet(np.ones(4), size=80), rng.integers(3, size=80)
    ours = maximal_coefficients(np.zeros((3, 4)), shares, label, 5.0, max_iter=500)
    theirs = LogisticRegression(C=5.0, fit_intercept=False, tol=1e-10, max_iter=5000).fit(shares, label).coef_
    np.testing.assert_allclose(ours, theirs, atol=2e-3)


def test_the_entropy_of_a_mixture_is_that_of_quadrature_and_keeps_its_limits():
    rng = np.random.default_rng(0)
    means, variances = rng.normal(scale=2.0, size=(6, 3)), rng.gamma(2.0, size=6) + 0.1
    entropy = mixture_entropy(means, variances)
    for column in range(3):

        def integrand(y, center=means[:, column]):
            density = norm.pdf(y, center, np.sqrt(variances)).mean()
            return -density * np.log(density)

        assert entropy[column] == pytest.approx(quad(integrand, -25, 25, limit=400)[0], abs=2e-3)
    assert (entropy >= normal_entropy(variances).mean()).all()
    assert (entropy <= normal_entropy(variances.mean() + means.var(axis=0))).all()
    np.testing.assert_allclose(class_entropy(np.full((2, 5), 0.2)), np.log(5))


def test_documents_of_doubtful_topics_are_the_most_uncertain():
    X, y, _ = rated_corpus(seed=3)
    model = SupervisedLDA(4, doc_topic_prior=0.3, n_warmup=150, random_state=0).fit(X, y)
    # Of each topic its likeliest word, forty times and once; on the average, as an answer of one topic may be known.
    clear, vague = (often * np.eye(60)[model.topic_word_.argmax(axis=1)] for often in (40.0, 1.0))
    both = np.vstack([clear, vague])
    assert np.diff(model.predict_entropy(both).reshape(2, 4).mean(axis=1))[0] > 0
    assert np.diff(model.mutual_information(both).reshape(2, 4).mean(axis=1))[0] > 0
    assert (model.mutual_information(both) >= 0).all()


@pytest.mark.parametrize("model", [SupervisedLDA, SupervisedLDAClassifier])
def test_fitted_models_are_saved_whole(model, tmp_path):
    X, y, _ = rated_corpus(n_documents=30)
    fitted = model(3, n_warmup=10, n_draws=3, random_state=0).fit(X, y if model is SupervisedLDA else y > 0)
    io.save(fitted, tmp_path / "model.skops")
    again = io.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(again.predict_entropy(X), fitted.predict_entropy(X))


def test_unrated_and_empty_documents_take_part():
    X, y, _ = rated_corpus(n_documents=40)
    y[:10] = np.nan
    dense = X.toarray()
    dense[3] = 0
    with pytest.warns(UserWarning, match=r"1 of 40 documents have no words \(rows 3\)"):
        model = SupervisedLDA(3, n_warmup=20, n_draws=3, random_state=0).fit(dense, y)
    assert np.isfinite(model.predict(dense)).all()
    assert np.isfinite(model.predict_entropy(dense)).all()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"n_components": 0}, "n_components"),
        ({"doc_topic_prior": [1.0, 2.0]}, "one for each of 3 topics"),
        ({"topic_word_prior": 0.0}, "topic_word_prior"),
        ({"inference": "mh"}, "inference must be one of 'gibbs', 'vb'"),
        ({"noise_prior": (0.1, 1.0)}, r"noise_prior must be a prior \(Gamma\) or None, got \(0.1, 1.0\)"),
    ],
)
def test_wrong_settings_are_named(change, sentence):
    X, y, _ = rated_corpus(n_documents=10)
    with pytest.raises(ValueError, match=sentence):
        SupervisedLDA(**({"n_components": 3} | change)).fit(X, y)


def test_wrong_responses_are_named():
    X, y, _ = rated_corpus(n_documents=10)
    with pytest.raises(ValueError, match="y must be ratings, which are numbers"):
        SupervisedLDA().fit(X, ["good"] * 10)
    with pytest.raises(ValueError, match="NaN only"):
        SupervisedLDA().fit(X, np.full(10, np.nan))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SupervisedLDA().fit(X, y[:9])
    with pytest.raises(ValueError, match="only one class"):
        SupervisedLDAClassifier().fit(X, np.ones(10, dtype=int))


@pytest.mark.filterwarnings("ignore:.*have no words")
@parametrize_with_checks(
    [
        SupervisedLDA(3, n_warmup=5, n_draws=2, thin=1),
        SupervisedLDA(3, inference="vb", max_iter=5, n_init=1, tol=1.0),
        SupervisedLDAClassifier(3, n_warmup=5, n_draws=2, thin=1),
    ]
)
def test_scikit_learn_accepts_them(estimator, check):
    check(estimator)


@pytest.mark.parametrize("unknown", [None, float("nan")])
def test_a_document_without_a_class_is_named(unknown):
    y = np.array(["a", "b"] * 5, dtype=object)
    y[3] = unknown
    with pytest.raises(ValueError, match=r"y must have a class for each document, got (None|nan) in row 3"):
        SupervisedLDAClassifier(2).fit(np.ones((10, 4), dtype=int), y)
