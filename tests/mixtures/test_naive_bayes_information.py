"""Scores of information of naive Bayes: against integrals, enumeration, other functions, and their bounds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse, stats
from scipy.integrate import quad
from scipy.special import entr
from sklearn.metrics import mutual_info_score
from sklearn.naive_bayes import BernoulliNB

from pluri.metrics import beta_kl, dirichlet_kl
from pluri.mixtures import NaiveBayes
from pluri.priors import Beta

RNG = np.random.default_rng(0)
Y = np.arange(60) % 3
X = (RNG.random((60, 8)) < np.where(np.arange(8) % 3 == Y[:, None], 0.7, 0.2)).astype(float)
KINDS = ["entropy", "bald", "word_mi", "eig"]


def bayes(**settings):
    return NaiveBayes(inference="bayes", probabilities_prior=Beta(1.0, 1.0), **settings)


def test_predictions_are_those_of_scikit_learn_but_for_the_class_prior():
    # With a flat Beta prior, the exact predictive has the smoothing that BernoulliNB(alpha=1) has.
    model, theirs = bayes().fit(X, Y), BernoulliNB(alpha=1.0).fit(X, Y)
    assert_allclose(model.theta_, np.exp(theirs.feature_log_prob_))
    assert_allclose(model.class_prior_, (np.bincount(Y) + 1.0) / (len(Y) + 3.0))


def test_one_document_more_is_a_fit_to_all():
    begun = bayes().fit(X[:-1], Y[:-1]).partial_fit(X[-1:], Y[-1:])
    whole = bayes().fit(X, Y)
    for kind in KINDS:
        found = begun.planning_scores(X, kind, random_state=1)
        assert_allclose(found, whole.planning_scores(X, kind, random_state=1), rtol=1e-9)


def test_every_score_keeps_to_its_bounds():
    model = bayes().fit(X[:12], Y[:12])
    scores = {kind: model.planning_scores(X, kind, random_state=0) for kind in KINDS}
    assert all((value >= 0).all() for value in scores.values())
    assert (scores["entropy"] <= np.log(3) + 1e-12).all()
    drawn = np.array([model.planning_scores(X, "bald", n_samples=1, random_state=s) for s in range(2)])
    assert (np.abs(drawn) < 1e-12).all()  # one draw cannot disagree with itself
    # BALD of 400 draws is below the entropy of the mean of the same draws, which is near that of the predictive.
    many = model.planning_scores(X, "bald", n_samples=400, random_state=0)
    assert (many <= scores["entropy"] + 0.1).all()


def test_bald_is_the_information_of_the_label_about_the_parameters():
    # One word and two classes: the integral over both coins and the class probability, on a grid of quantiles.
    model = bayes().fit([[1], [1], [0], [0], [0]], [1, 1, 1, 0, 0])
    grid = (np.arange(40) + 0.5) / 40
    pi = stats.beta(1 + 3, 1 + 2).ppf(grid)
    first, second = stats.beta(1 + 2, 1 + 1).ppf(grid), stats.beta(1 + 0, 1 + 2).ppf(grid)
    joint_one = pi[:, None, None] * first[None, :, None] * np.ones((1, 1, 40))
    joint_zero = (1 - pi)[:, None, None] * np.ones((1, 40, 1)) * second[None, None, :]
    share = joint_one / (joint_one + joint_zero)
    expected = entr(share.mean()) + entr(1 - share.mean()) - (entr(share) + entr(1 - share)).mean()
    # Standard error of 4000 draws below 0.004: a deviation of 0.02 is five of them.
    assert_allclose(model.planning_scores([[1]], "bald", n_samples=4000, random_state=0)[0], expected, atol=0.02)


def test_words_tell_nothing_of_a_class_that_is_certain():
    model = bayes().fit(X, Y)
    cold = model.planning_scores(X, "word_mi", temperature=1e-6)
    assert_allclose(cold, 0.0, atol=1e-9)
    warm = model.planning_scores(X, "word_mi", temperature=1e6)
    by_hand = sum(entr(m) + entr(1 - m) - np.mean(entr(t) + entr(1 - t)) for t in model.theta_.T for m in [t.mean()])
    assert_allclose(warm, by_hand, rtol=1e-4)


def test_the_expected_gain_is_an_integral():
    model = bayes().fit([[1], [1], [0], [0]], [1, 1, 1, 0])
    share = model.predict_proba([[1]])[0]
    expected = 0.0
    for c, p in enumerate(share):
        count, ones = [(1, 0), (3, 2)][c]
        before, after = stats.beta(1 + ones, 1 + count - ones), stats.beta(2 + ones, 1 + count - ones)
        word = quad(lambda t, a=after, b=before: a.pdf(t) * (a.logpdf(t) - b.logpdf(t)), 0, 1)[0]
        counts = np.array([1.0 + 1.0, 1.0 + 3.0])
        expected += p * (word + dirichlet_kl(counts + np.eye(2)[c], counts))
        assert_allclose(word, beta_kl(*after.args, *before.args), rtol=1e-6)
    assert_allclose(model.planning_scores([[1]], "eig")[0], expected, rtol=1e-6)


def test_words_are_as_informative_as_their_tables_say():
    model = NaiveBayes(inference="ml").fit(X, Y)
    expected = [mutual_info_score(X[:, j], Y) for j in range(8)]
    assert_allclose(model.feature_information(), expected, atol=1e-12)
    assert (bayes().fit(X, Y).feature_information() <= np.log(2)).all()


def test_the_published_score_rewards_certainty_and_says_so():
    model = bayes().fit(X, Y)
    with pytest.warns(UserWarning, match="no mutual information"):
        scores = model.planning_scores(X, "published_mi")
    mean = model.class_prior_ @ model.theta_
    by_class = (model.theta_ * np.log(model.theta_ / mean)).sum(axis=1)
    assert_allclose(scores, model.predict_proba(X) @ by_class)
    assert scores.max() <= by_class.max() + 1e-12  # reached at a vertex only


def test_draws_have_the_mean_of_their_posterior():
    model = bayes().fit(X, Y)
    pi, theta = model.sample_posterior(4000, random_state=0)
    # Standard errors are below 0.5 / sqrt(4000) = 0.008; 27 means beyond five of them: below 2e-5.
    assert np.abs(pi.mean(axis=0) - model.class_prior_).max() < 0.04
    assert np.abs(theta.mean(axis=0) - model.theta_).max() < 0.04


@pytest.mark.parametrize("kind", KINDS)
def test_sparse_rows_have_the_scores_of_dense_ones(kind):
    model = bayes().fit(X, Y)
    found = model.planning_scores(sparse.csr_matrix(X), kind, random_state=3)
    assert_allclose(found, model.planning_scores(X, kind, random_state=3), rtol=1e-9)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda m: m.planning_scores(X, "mi"), "kind must be one of"),
        (lambda m: m.planning_scores(X, temperature=0.0), "temperature must be a positive number"),
        (lambda m: m.planning_scores(X, n_samples=0), "n_samples"),
        (lambda m: m.planning_scores(np.where(X > 2, X, np.nan)), "NaN"),
        (lambda m: NaiveBayes("gaussian").fit(X, Y).feature_information(), "family must be 'bernoulli'"),
    ],
)
def test_mistakes_get_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call(bayes().fit(X, Y))
