"""Forecasts of driven chains: all paths, plain models where inputs do nothing, and questions that are refused."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pluri.sequences import AutoregressiveHMM, CategoricalHMM, DrivenHMM, GaussianHMM, RegressionHMM

START, ROWS = np.array([0.6, 0.3, 0.1]), np.array([[0.8, 0.15, 0.05], [0.1, 0.6, 0.3], [0.25, 0.05, 0.7]])
COEF = np.random.default_rng(0).normal(size=(3, 3, 2)) * (1 - np.eye(3))[:, :, None]


def driven(hmm, coef=COEF, **attributes):
    hmm.startprob_, hmm.transmat_ = START[: len(coef)], ROWS[: len(coef), : len(coef)]
    hmm.transmat_ = hmm.transmat_ / hmm.transmat_.sum(axis=1, keepdims=True)
    hmm.startprob_ = hmm.startprob_ / hmm.startprob_.sum()
    for name, value in attributes.items():
        setattr(hmm, name, value)
    model = DrivenHMM(hmm, transition_inputs=[1, 2])
    model.hmm_, model.transition_coef_ = hmm, coef
    return model


TABLE = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.3, 0.4, 0.3]])


def test_symbols_to_come_are_a_sum_over_all_paths():
    rng = np.random.default_rng(1)
    symbols, inputs = np.array([0, 2, 2, 1]), rng.normal(size=(6, 2))
    moves = ROWS * np.exp(np.einsum("ijd,td->tij", COEF, inputs))
    moves /= moves.sum(axis=2, keepdims=True)
    expected = np.zeros((2, 3))
    for path in product(range(3), repeat=6):
        chance = START[path[0]] * np.prod([moves[t, path[t - 1], path[t]] for t in range(1, 6)])
        expected += chance * np.prod([TABLE[z, x] for z, x in zip(path, symbols)]) * TABLE[list(path[4:])]
    expected /= expected.sum(axis=1, keepdims=True)
    model = driven(CategoricalHMM(3), emissionprob_=TABLE)
    X = np.column_stack([symbols, inputs[:4]])
    assert_allclose(model.forecast(X, 2, future_transition_inputs=inputs[4:]).probabilities[0], expected)
    listed = model.forecast([X, X[:0]], 2, future_transition_inputs=np.stack([inputs[4:], inputs[2:4]]))
    assert_allclose(listed.probabilities[0], expected)
    # Of a sequence without steps the first is still to come: no input drives it.
    assert_allclose(listed.states[1], [START, START @ moves[3]])


def test_inputs_without_effects_leave_the_forecast_of_the_plain_model():
    model = driven(GaussianHMM(3), np.zeros((3, 3, 2)), means_=np.array([[0.0], [5.0], [9.0]]), covars_=np.ones((3, 1)))
    X = np.random.default_rng(0).normal(size=(20, 3))
    coming = model.forecast(X, 4, future_transition_inputs=np.ones((4, 2)), level=0.8)
    plain = model.hmm_.forecast(X[:, :1], 4, level=0.8)
    for name in ("states", "mean", "std", "lower", "upper"):
        assert_allclose(getattr(coming, name), getattr(plain, name))


def test_regressions_are_simulated_with_the_driven_states():
    """Without effects the draws are those of the plain model; a push into one state has its mean in the end."""
    hmm = AutoregressiveHMM(2, 1, random_state=0)
    hmm.n_features_in_ = 1
    model = driven(hmm, np.zeros((2, 2, 2)), coef_=np.array([[[0.5]], [[-0.5]]]), intercept_=np.array([[0.0], [30.0]]),
                   covars_=np.ones((2, 1)))  # fmt: skip
    X = np.random.default_rng(0).normal(size=(20, 3))
    asked = {"horizon": 3, "random_state": 3, "n_predictive": 500}
    coming = model.forecast(X, **asked, future_transition_inputs=np.zeros((3, 2)))
    assert_array_equal(coming.mean, model.hmm_.forecast(X[:, :1], **asked).mean)
    model.transition_coef_ = np.array([[[0.0, 0.0], [9.0, 0.0]], [[-9.0, 0.0], [0.0, 0.0]]])
    pushed = model.forecast(X, 12, future_transition_inputs=np.tile([5.0, 0.0], (12, 1)), random_state=0)
    assert abs(pushed.mean[0, -1, 0] - 30.0 / 1.5) < 6 * np.sqrt(1 / 0.75 / 5000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "future_transition_inputs must be given, 2 rows of 2"),
        ({"future_transition_inputs": np.zeros((3, 2))}, "future_transition_inputs must have shape"),
        ({"future_transition_inputs": np.full((2, 2), np.nan)}, "future_transition_inputs must be finite"),
        (
            {"future_transition_inputs": np.zeros((2, 2)), "future_inputs": np.zeros((2, 1))},
            "future_inputs must be None",
        ),
        ({"future_transition_inputs": np.zeros((2, 2)), "level": 0.0}, "level must be"),
    ],
)
def test_bad_questions_are_named(arguments, message):
    model = driven(CategoricalHMM(3), emissionprob_=TABLE)
    with pytest.raises(ValueError, match=message):
        model.forecast(np.zeros((4, 3)), 2, **arguments)


def test_both_kinds_of_inputs_are_asked_for():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    model = DrivenHMM(RegressionHMM(2, inputs=[1], random_state=0), transition_inputs=[2]).fit(X)
    given = {"future_transition_inputs": np.zeros((2, 1)), "future_inputs": np.ones((2, 1))}
    assert model.forecast(X, 2, **given).mean.shape == (1, 2, 1)
    with pytest.raises(ValueError, match="future_inputs must be given"):
        model.forecast(X, 2, future_transition_inputs=np.zeros((2, 1)))
