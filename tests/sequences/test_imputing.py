"""Missing values of sequences: against all paths with conditional densities, against draws, and left as they were."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.sequences.enumeration import enumerate_paths
from tests.sequences.test_forecasts import MODELS, START, TRANSITION, with_chain

from pluri.io import load, save
from pluri.sequences import (
    GMMHMM,
    AutoregressiveHMM,
    BayesianCategoricalHMM,
    BernoulliHMM,
    CategoricalHMM,
    DrivenHMM,
    GaussianHMM,
    PoissonHMM,
    SymbolClassHMM,
    VariationalGaussianHMM,
)

NAMES = tuple(MODELS)


def holed(model, n_rows=5, seed=3):
    """A sequence with a row that lacks one value, a row that lacks all, and others that are whole."""
    X = model.sample(n_rows, random_state=seed)[0].astype(float)
    X[1, 0] = X[2, :] = X[4, 1] = np.nan
    return X


def parts_of(model):
    """Gaussian parts as (state, weight, mean, covariance): written out from the attributes."""
    found = []
    for state in range(3):
        if isinstance(model, GMMHMM):
            for weight, mean, covariance in zip(model.weights_[state], model.means_[state], model.covars_[state]):
                found.append((state, weight, mean, np.diag(covariance)))
        else:
            found.append((state, 1.0, model.means_[state], model.covars_[state]))
    return found


def conditional(row, mean, covariance):
    """Log density of what is seen, and mean and variance of what is not, by inverting the joint covariance."""
    seen = ~np.isnan(row)
    precision = np.linalg.inv(covariance)
    expected, variance, log_density = row.copy(), np.zeros(len(row)), 0.0
    if seen.any():
        own = covariance[np.ix_(seen, seen)]
        away = row[seen] - mean[seen]
        log_density = -0.5 * (away @ np.linalg.inv(own) @ away + np.log(np.linalg.det(2 * np.pi * own)))
    if not seen.all():
        left = np.linalg.inv(precision[np.ix_(~seen, ~seen)])
        pull = precision[np.ix_(~seen, seen)] @ (row[seen] - mean[seen]) if seen.any() else 0.0
        expected[~seen] = mean[~seen] - left @ np.broadcast_to(pull, (~seen).sum())
        variance[~seen] = np.diag(left)
    return log_density, expected, variance


def by_enumeration(model, X):
    """Means and variances of all values by summing over all paths (and components)."""
    parts = parts_of(model)
    told = [[conditional(row, mean, covariance) for _, _, mean, covariance in parts] for row in X]
    log_density = np.full((len(X), 3), -np.inf)
    for t, row in enumerate(told):
        for (state, weight, _, _), (density, _, _) in zip(parts, row):
            log_density[t, state] = np.logaddexp(log_density[t, state], np.log(weight) + density)
    posterior = enumerate_paths(START, TRANSITION, log_density).posterior
    mean, square = np.zeros(X.shape), np.zeros(X.shape)
    for t, row in enumerate(told):
        for (state, weight, _, _), (density, expected, variance) in zip(parts, row):
            share = posterior[t, state] * weight * np.exp(density - log_density[t, state])
            mean[t] += share * expected
            square[t] += share * (variance + expected**2)
    return mean, square - mean**2


@pytest.mark.parametrize("name", ["diag", "spherical", "tied", "full", "mixture"])
def test_gaussian_values_are_those_of_all_paths(name):
    model = MODELS[name]
    X = holed(model)
    filled, std = model.impute(X, return_std=True)
    mean, variance = by_enumeration(model, X)
    gone = np.isnan(X)
    assert_allclose(filled[gone], mean[gone], atol=1e-10)
    assert_allclose(std[gone] ** 2, variance[gone], atol=1e-9)
    assert_array_equal(filled[~gone], X[~gone])
    assert not std[~gone].any()
    assert_array_equal(model.impute(X), filled)


@pytest.mark.parametrize("name", ["poisson", "bernoulli"])
def test_counts_are_those_of_smoothed_states(name):
    """Features are independent given the state, so that the posterior of the states says all."""
    model = MODELS[name]
    X = holed(model)
    filled, std = model.impute(X, return_std=True)
    posterior = model.predict_proba(X)
    means = model.lambdas_ if name == "poisson" else model.probs_
    squares = means + means**2 if name == "poisson" else means
    gone = np.isnan(X)
    assert_allclose(filled[gone], (posterior @ means)[gone], atol=1e-12)
    assert_allclose(std[gone] ** 2, (posterior @ squares - (posterior @ means) ** 2)[gone], atol=1e-10)
    assert_array_equal(filled[~gone], X[~gone])


@pytest.mark.parametrize("name", NAMES)
def test_a_last_row_that_is_missing_is_the_forecast(name):
    """An answer of other code: moments of the step after the end."""
    model = MODELS[name]
    X = model.sample(6, random_state=1)[0].astype(float)
    filled, std = model.impute(np.vstack([X, np.full((1, 2), np.nan)]), return_std=True)
    coming = model.forecast(X)
    assert_allclose(filled[-1], coming.mean[0, 0], atol=1e-10)
    assert_allclose(std[-1], coming.std[0, 0], atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_the_distribution_of_what_was_hidden_is_the_one_told(name):
    """Standardised errors of 2,000 hidden values: mean 0 and mean square 1, one false alarm in a million each.

    Sequences of five steps are independent, so that errors are summed by sequence, and the bound is five of the
    standard errors of these sums.
    """
    model = MODELS[name]
    n = 1000
    whole = np.concatenate([model.sample(5, random_state=seed)[0] for seed in range(n)]).astype(float)
    X = whole.copy()
    X[1::5, 0] = X[3::5, 1] = np.nan
    filled, std = model.impute(X, lengths=[5] * n, return_std=True)
    gone = np.isnan(X)
    z = ((whole - filled)[gone] / std[gone]).reshape(n, 2)
    for sums in (z.sum(axis=1), (z**2 - 1).sum(axis=1)):
        assert abs(sums.mean()) < 5 * sums.std() / np.sqrt(n)


def test_sequences_do_not_see_each_other():
    model = MODELS["full"]
    first, second = holed(model, 5, 0), holed(model, 7, 1)
    apart = np.concatenate([model.impute(first), model.impute(second)])
    together = np.concatenate([first, second])
    assert_allclose(model.impute([first, second]), apart, atol=1e-12)
    assert_allclose(model.impute(together, lengths=[5, 7]), apart, atol=1e-12)
    assert_allclose(model.impute(together, groups=np.repeat(["a", "b"], [5, 7])), apart, atol=1e-12)
    assert np.abs(model.impute(together) - apart).max() > 1e-6


def test_symbols_are_filled_by_the_most_probable_one():
    table = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.3, 0.4, 0.3]])
    model = with_chain(CategoricalHMM(3), emissionprob_=table)
    X = np.array([[0.0], [np.nan], [2.0], [np.nan], [np.nan]])
    filled = model.impute(X)
    expected = (model.predict_proba(X) @ table).argmax(axis=1)
    gone = np.isnan(X[:, 0])
    assert_array_equal(filled[gone, 0], expected[gone])
    assert_array_equal(filled[~gone], X[~gone])
    with pytest.raises(ValueError, match="symbols have no standard deviation"):
        model.impute(X, return_std=True)


def test_words_come_back_as_words():
    model = CategoricalHMM(2, random_state=0).fit([["a", "b", "a", "b", "a", "b"], ["b", "a", "b"]])
    X = [["a", None, "a"], ["b", None]]
    expected = model.vocabulary_[0][(model.predict_proba(X) @ model.emissionprob_).argmax(axis=1)]
    assert model.impute(X).ravel().tolist() == ["a", expected[1], "a", "b", expected[4]]
    chain = BayesianCategoricalHMM(2, n_warmup=20, n_draws=20, random_state=0).fit([["a", "b"] * 5])
    assert set(chain.impute([["a", None, "a"]]).ravel().tolist()) <= {"a", "b"}


def test_a_model_whose_states_own_their_symbols_says_that_it_cannot():
    X = np.array([["a"], ["b"], ["a"], ["b"], ["c"], ["a"]], dtype=object)
    model = SymbolClassHMM(2, n_warmup=5, n_draws=5, random_state=0).fit(X)
    with pytest.raises(TypeError, match="CategoricalHMM"):
        model.impute(X)


def test_frames_variational_fits_and_files(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(np.repeat([[0.0, 5.0], [4.0, -5.0]], 60, axis=0))
    X[::7, 0] = np.nan
    model = VariationalGaussianHMM(2, random_state=0).fit(pd.DataFrame(X, columns=["x", "y"]))
    filled = model.impute(pd.DataFrame(X, columns=["x", "y"]))
    assert np.isfinite(filled).all()
    save(model, tmp_path / "model.skops")
    assert_array_equal(load(tmp_path / "model.skops").impute(pd.DataFrame(X, columns=["x", "y"])), filled)
    with pytest.raises(ValueError, match="feature names"):
        model.impute(pd.DataFrame(X, columns=["y", "x"]))


def test_nothing_missing_and_wrong_input():
    model = MODELS["poisson"]
    X = model.sample(4, random_state=0)[0]
    filled, std = model.impute(X, return_std=True)
    assert_array_equal(filled, X)
    assert not std.any()
    with pytest.raises(ValueError, match="features"):
        model.impute(np.zeros((3, 3)))
    impossible = with_chain(BernoulliHMM(3, binarize=None), probs_=[[0.1, 0.9], [0.5, 0.5], [0.8, 0.02]])
    with pytest.raises(ValueError, match="zeros and ones"):
        impossible.impute([[2.0, np.nan]])
    with pytest.raises(Exception, match="not fitted"):
        GaussianHMM(2).impute(X)
    assert_allclose(PoissonHMM.impute(model, X.tolist()), X)


def driven(hmm, coef):
    model = DrivenHMM(hmm, transition_inputs=[0])
    model.hmm_, model.transition_coef_ = hmm, np.asarray(coef)[:, :, None]
    return model


def test_inputs_that_drive_nothing_change_nothing_and_others_do():
    hmm = MODELS["full"]
    X = holed(hmm)
    inputs = np.array([[np.nan], [1.0], [-2.0], [0.5], [3.0]])
    both = np.hstack([inputs, X])
    filled, std = driven(hmm, np.zeros((3, 3))).impute(both, return_std=True)
    expected = hmm.impute(X, return_std=True)
    assert_allclose(filled[:, 1:], expected[0], atol=1e-10)
    assert_allclose(std[:, 1:], expected[1], atol=1e-10)
    assert_array_equal(filled[:, 0], inputs[:, 0])
    assert not std[:, 0].any()
    diagonal = MODELS["diag"]
    pushed = driven(diagonal, np.random.default_rng(0).normal(size=(3, 3)))
    gone = np.isnan(X)
    told = pushed.predict_proba(both) @ diagonal.means_
    assert_allclose(pushed.impute(both)[:, 1:][gone], told[gone], atol=1e-10)
    assert np.abs(told - diagonal.predict_proba(X) @ diagonal.means_)[gone].max() > 1e-3


def test_what_regresses_on_its_past_does_not_offer_to_fill_it():
    assert not hasattr(AutoregressiveHMM(2), "impute")
    assert not hasattr(DrivenHMM(AutoregressiveHMM(2)), "impute")
