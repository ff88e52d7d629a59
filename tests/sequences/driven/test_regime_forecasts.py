"""Forecasts of regimes: closed forms of one regime, all paths of two, and rows that are missing."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from pluri.sequences import AutoregressiveHMM, DrivenHMM, GaussianHMM, RegressionHMM

N = 100_000


def two_regimes(order=1, **settings):
    """An autoregression of one output whose regimes were set by hand."""
    model = AutoregressiveHMM(2, order, random_state=0, **settings)
    model.n_features_in_ = 1
    model.startprob_, model.transmat_ = np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.4, 0.6]])
    model.coef_ = np.array([[[0.9, -0.2][:order]], [[-0.5, 0.3][:order]]])
    model.intercept_, model.covars_ = np.array([[1.0], [-2.0]]), np.array([[0.5], [2.0]])
    return model


def moments_of_all_paths(model, first, lags, horizon):
    """Mean and variance of the last step, as a mixture over all paths of the states."""
    k, order = model.n_components, len(lags)
    weights, means, variances = [], [], []
    for path in itertools.product(range(k), repeat=horizon):
        weight, mean, covariance = first[path[0]], np.array(lags), np.zeros((order, order))
        for step, state in enumerate(path):
            weight *= 1.0 if step == 0 else model.transmat_[path[step - 1], state]
            move = np.vstack([model.coef_[state, 0], np.eye(order)[:-1]])
            mean = move @ mean + np.r_[model.intercept_[state], np.zeros(order - 1)]
            covariance = move @ covariance @ move.T
            covariance[0, 0] += np.ravel(model.covars_[state])[0]
        weights.append(weight)
        means.append(mean[0])
        variances.append(covariance[0, 0])
    weights, means, variances = map(np.array, (weights, means, variances))
    mean = weights @ means
    return mean, weights @ (variances + (means - mean) ** 2)


@pytest.mark.parametrize("order", [1, 2])
def test_moments_are_those_of_all_paths(order):
    """Six standard errors: one false alarm in some hundred million comparisons."""
    model = two_regimes(order)
    X = np.array([[0.3], [1.2], [-0.7], [2.0]])
    coming = model.forecast(X, 4, n_predictive=N)
    assert_allclose(coming.states[0, 0], model.filter_proba(X)[-1] @ model.transmat_)
    for step in range(4):
        mean, variance = moments_of_all_paths(model, coming.states[0, 0], X[::-1][:order, 0], step + 1)
        assert_allclose(coming.mean[0, step, 0], mean, atol=6 * np.sqrt(variance / N))
        # The kurtosis of these mixtures is below 10, so that the variance of a squared deviation is below 9 variance^2.
        assert_allclose(coming.std[0, step, 0] ** 2, variance, atol=6 * 3 * variance / np.sqrt(N))


def test_one_regime_has_gaussian_bounds():
    model = AutoregressiveHMM(1, 1, random_state=0)
    model.n_features_in_ = 1
    model.startprob_, model.transmat_ = np.ones(1), np.ones((1, 1))
    model.coef_, model.intercept_, model.covars_ = np.array([[[0.5]]]), np.array([[1.0]]), np.array([[1.0]])
    coming = model.forecast([[4.0]], 3, level=0.8, n_predictive=N)
    variances = np.cumsum(0.25 ** np.arange(3))
    means = [3.0, 2.5, 2.25]
    half = 1.2815515655446004 * np.sqrt(variances)
    # A quantile of N draws has standard error sqrt(q (1 - q) / N) / density, here 1.71 deviations / sqrt(N).
    error = 6 * 1.72 * np.sqrt(variances / N)
    for found, expected in ((coming.lower, means - half), (coming.upper, means + half)):
        assert (np.abs(found[0, :, 0] - expected) < error).all()


def test_a_regression_needs_its_inputs_and_agrees_with_a_missing_row():
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=200)
    outputs = np.where(np.arange(200) % 100 < 50, 3.0, -3.0) * inputs + rng.normal(size=200)
    X = np.column_stack([outputs, inputs])
    model = RegressionHMM(2, inputs=[1], n_init=3, random_state=0).fit(X)
    coming = model.forecast(X, future_inputs=[[1.5]], n_predictive=N)
    expected = model.one_step_means(np.vstack([X, [[np.nan, 1.5]]]))[-1]
    assert_allclose(coming.mean[0, 0], expected, atol=6 * coming.std.max() / np.sqrt(N))
    with pytest.raises(ValueError, match="future_inputs must be given, 1 rows of 1"):
        model.forecast(X)
    with pytest.raises(ValueError, match="future_inputs must have shape"):
        model.forecast(X, 2, future_inputs=[[1.5]])


def test_several_sequences_have_inputs_of_their_own_and_the_same_seed_gives_the_same_draws():
    model = two_regimes()
    sequences = [np.array([[0.0], [1.0]]), np.array([[5.0]])]
    first, second = (model.forecast(sequences, 2, random_state=3) for _ in range(2))
    assert_allclose(first.mean, second.mean, rtol=0, atol=0)
    assert first.mean.shape == (2, 2, 1)
    assert first.mean[1, 0, 0] > first.mean[0, 0, 0]


def test_a_missing_end_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match="the last 1 rows of sequence 0 must be complete"):
        two_regimes().forecast([[0.0], [np.nan]])


def test_a_driven_model_of_plain_states_has_no_means_of_steps():
    assert not hasattr(DrivenHMM(GaussianHMM(2), transition_inputs=[1]), "one_step_means")
