"""The corners where a chain is something simpler: a mixture, one state, sequences of one sample."""

import contextlib

import numpy as np
import pytest
from scipy.special import softmax

from pluri.priors import Diversity, DiversityWarning, maximize_rows
from pluri.sequences import BernoulliHMM, CategoricalHMM, GaussianHMM, MultinomialHMM, PoissonHMM

FAMILIES = ("gaussian-full", "gmm-diag", "categorical-columns", "bernoulli", "poisson", "multinomial")


@pytest.mark.parametrize("family", FAMILIES)
def test_equal_rows_give_the_posterior_of_a_mixture_after_the_first_step(enumeration, family):
    case = enumeration.make_case(family, n_samples=30)
    row = np.array([0.2, 0.5, 0.3])
    case.model.transmat_ = np.tile(row, (3, 1))
    density = case.log_density(case.X)
    np.testing.assert_allclose(
        case.model.predict_proba(case.X)[1:], softmax(np.log(row) + density[1:], axis=1), atol=1e-12
    )
    first = softmax(np.log(case.model.startprob_) + density[0])
    np.testing.assert_allclose(case.model.predict_proba(case.X)[0], first, atol=1e-12)
    np.testing.assert_allclose(case.model.filter_proba(case.X), case.model.predict_proba(case.X), atol=1e-12)
    np.testing.assert_array_equal(case.model.predict(case.X)[1:], (np.log(row) + density[1:]).argmax(axis=1))


@pytest.mark.parametrize("implementation", ["scaling", "log"])
@pytest.mark.parametrize("family", FAMILIES)
def test_one_state_scores_the_sum_of_the_densities(enumeration, family, implementation):
    case = enumeration.make_case(family, k=1, n_samples=12, implementation=implementation)
    np.testing.assert_allclose(case.model.score(case.X, lengths=[5, 7]), case.log_density(case.X).sum(), rtol=1e-12)
    np.testing.assert_allclose(case.model.predict_proba(case.X), np.ones((12, 1)), atol=1e-12)
    assert not case.model.predict(case.X).any()
    np.testing.assert_array_equal(case.model.sample_paths(case.X, n_paths=3, random_state=0), np.zeros((3, 12)))
    scores, paths = case.model.best_paths(case.X, 4)
    assert len(scores) == len(paths) == 1


def test_one_state_is_fitted_in_closed_form():
    rng = np.random.default_rng(0)
    X = rng.poisson(3.0, size=(50, 2)).astype(float) + 1.0
    options = {"n_iter": 5, "tol": -np.inf, "random_state": 0}
    normal = GaussianHMM(1, "full", covars_prior=0.0, covars_weight=0.0, **options).fit(X, lengths=[20, 30])
    np.testing.assert_allclose(normal.means_[0], X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(normal.covars_[0], np.cov(X.T, bias=True), rtol=1e-10)
    np.testing.assert_allclose(PoissonHMM(1, **options).fit(X).lambdas_[0], X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(BernoulliHMM(1, binarize=3.0, **options).fit(X).probs_[0], (X > 3).mean(axis=0))
    shares = X.sum(axis=0) / X.sum()
    np.testing.assert_allclose(MultinomialHMM(1, **options).fit(X).emissionprob_[0], shares, rtol=1e-12)
    table = CategoricalHMM(1, **options).fit(X[:, :1].astype(int)).emissionprob_[0]
    np.testing.assert_allclose(table, np.bincount(X[:, 0].astype(int)) / 50, atol=1e-15)
    assert normal.log_det_ == 0.0
    # A diversity prior has nothing to keep apart.
    diverse = GaussianHMM(1, "full", covars_prior=0.0, covars_weight=0.0, diversity=5.0, **options).fit(X)
    np.testing.assert_allclose(diverse.means_, normal.means_, rtol=1e-12)


@pytest.mark.parametrize("diversity", [None, 1.0])
@pytest.mark.parametrize("acceleration", [None, "squarem"])
def test_sequences_of_one_sample_fit_a_mixture_and_leave_the_transitions_alone(diversity, acceleration):
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(size=(30, 1)), rng.normal(size=(60, 1)) + 7.0])
    model = GaussianHMM(2, covars_prior=0.0, n_iter=30, tol=-np.inf, init_params="mc", random_state=0)
    model.set_params(diversity=diversity, acceleration=acceleration)
    model.startprob_, model.transmat_ = np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.4, 0.6]])
    with contextlib.nullcontext() if diversity is None else pytest.warns(DiversityWarning, match="permutation"):
        model.fit(X, lengths=np.ones(90, dtype=int))
    order = np.argsort(model.means_[:, 0])
    np.testing.assert_allclose(model.startprob_[order], [1 / 3, 2 / 3], atol=1e-6)
    np.testing.assert_allclose(model.means_[order, 0], [X[:30].mean(), X[30:].mean()], atol=1e-4)
    if diversity is None:
        np.testing.assert_allclose(model.transmat_, [[0.9, 0.1], [0.4, 0.6]], atol=1e-12)
    else:  # no transition was seen: the prior alone drives the rows apart, and a warning says so
        assert model.log_det_ > -1e-3


def test_a_sequence_of_no_samples_among_others_changes_nothing(enumeration, e_step):
    case = enumeration.make_case("gaussian-diag", n_samples=9)
    with_empty = e_step(case.model, case.X, [0, 4, 0, 5, 0], weight=[9.0, 1.0, 9.0, 2.0, 9.0])
    without = e_step(case.model, case.X, [4, 5], weight=[1.0, 2.0])
    assert with_empty.log_likelihood == without.log_likelihood
    np.testing.assert_array_equal(with_empty.start, without.start)
    np.testing.assert_array_equal(with_empty.transition, without.transition)


def test_as_many_states_as_samples():
    X = np.arange(4.0)[:, None] * 10.0
    model = GaussianHMM(4, random_state=0, n_iter=20, tol=-np.inf).fit(X)
    assert len(set(model.predict(X).tolist())) == 4
    with pytest.raises(ValueError, match=r"n_components must be at most the number of samples \(4\), got 5"):
        GaussianHMM(5).fit(X)


def test_more_rows_than_columns_under_a_row_prior_are_refused():
    with pytest.raises(ValueError, match="rows"):
        maximize_rows(np.ones((3, 2)), np.full((3, 2), 0.5), diversity=Diversity(1.0))


@pytest.mark.parametrize("X", [[], np.empty((0, 2)), [np.empty((0, 2))]])
def test_nothing_to_fit_is_an_error(X):
    with pytest.raises(ValueError):
        GaussianHMM(1).fit(X)
