"""What comes after a sequence: against all paths, against missing rows, and against what does come."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from pluri.sequences import (
    GMMHMM,
    BernoulliHMM,
    CategoricalHMM,
    GaussianHMM,
    MultinomialHMM,
    PoissonHMM,
    VariationalGaussianHMM,
)

START = np.array([0.6, 0.3, 0.1])
TRANSITION = np.array([[0.8, 0.15, 0.05], [0.0, 0.7, 0.3], [0.25, 0.0, 0.75]])


def with_chain(model, **attributes):
    model.startprob_, model.transmat_ = START, TRANSITION
    for name, value in attributes.items():
        setattr(model, name, np.asarray(value))
    return model


def gaussian(kind="diag"):
    covars = {
        "diag": np.array([[1.0, 2.0], [0.5, 0.3], [2.0, 1.0]]),
        "spherical": np.array([1.0, 0.5, 2.0]),
        "tied": np.array([[1.0, 0.3], [0.3, 2.0]]),
        "full": np.array([[[1.0, 0.3], [0.3, 2.0]]] * 3) * np.array([1.0, 2.0, 0.5])[:, None, None],
    }
    means = [[0.0, 5.0], [2.0, -1.0], [-4.0, 1.0]]
    return with_chain(GaussianHMM(3, covariance_type=kind), means_=means, covars_=covars[kind])


MODELS = {
    "diag": gaussian(),
    "spherical": gaussian("spherical"),
    "tied": gaussian("tied"),
    "full": gaussian("full"),
    "mixture": with_chain(
        GMMHMM(3, n_mix=2),
        weights_=[[0.5, 0.5], [0.9, 0.1], [0.2, 0.8]],
        means_=np.arange(12.0).reshape(3, 2, 2),
        covars_=np.full((3, 2, 2), 0.7),
    ),
    "poisson": with_chain(PoissonHMM(3), lambdas_=[[1.0, 9.0], [4.0, 0.5], [30.0, 2.0]]),
    "bernoulli": with_chain(BernoulliHMM(3), probs_=[[0.1, 0.9], [0.5, 0.5], [0.8, 0.02]]),
}


def observed(model, n_rows=5, seed=0):
    return model.sample(n_rows, random_state=seed)[0]


@pytest.mark.parametrize("name", MODELS)
def test_states_are_those_of_rows_that_are_missing(name):
    """Rows of NaN at the end are steps that nothing is known of: an answer of other code."""
    model = MODELS[name]
    X = observed(model).astype(float)
    X[2, 1] = np.nan
    longer = np.vstack([X, np.full((4, 2), np.nan)])
    assert_allclose(model.forecast(X, 4).states[0], model.predict_proba(longer)[-4:], atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_moments_and_bounds_are_those_of_draws(name):
    """Two hundred thousand futures of one sequence: bounds with one false alarm in a million for each comparison."""
    model = MODELS[name]
    coming = model.forecast(observed(model), 2, level=0.8)
    rng = np.random.default_rng(1)
    n = 200_000
    for step in range(2):
        states = rng.choice(3, size=n, p=coming.states[0, step])
        emission, parameters = model._model()
        drawn = np.asarray(emission.sample(parameters.emission, states, rng), dtype=float)
        std = drawn.std(0)
        assert_allclose(coming.mean[0, step], drawn.mean(0), atol=5 * (std / np.sqrt(n)).max())
        kurtosis = ((drawn - drawn.mean(0)) ** 4).mean(0) / std**4
        assert_allclose(coming.std[0, step] ** 2, std**2, rtol=0, atol=5 * (std**2 * np.sqrt(kurtosis / n)).max())
        for bound, q in ((coming.lower, 0.1), (coming.upper, 0.9)):
            below, up_to = (drawn < bound[0, step]).mean(0), (drawn <= bound[0, step]).mean(0)
            assert (below <= q + 5 * np.sqrt(q * (1 - q) / n)).all()
            assert (up_to >= q - 5 * np.sqrt(q * (1 - q) / n)).all()


def test_a_bound_is_where_the_distribution_function_reaches_its_level():
    model = MODELS["diag"]
    coming = model.forecast(observed(model), 3, level=0.95)
    for bound, q in ((coming.lower, 0.025), (coming.upper, 0.975)):
        reached = stats.norm.cdf(bound[0][:, None], model.means_, np.sqrt(np.diagonal(model.covars_, axis1=1, axis2=2)))
        assert_allclose(np.einsum("hk,hkd->hd", coming.states[0], reached), q, atol=1e-12)


def test_symbols_have_probabilities():
    table = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.3, 0.4, 0.3]])
    model = with_chain(CategoricalHMM(3), emissionprob_=table)
    coming = model.forecast(np.array([[0], [2], [1]]), 2)
    assert coming.mean is None
    assert_allclose(coming.probabilities, coming.states @ table)
    assert_allclose(coming.probabilities.sum(-1), 1.0)
    counts = with_chain(MultinomialHMM(3), emissionprob_=table)
    assert_allclose(counts.forecast(np.array([[3, 1, 0]])).probabilities.sum(-1), 1.0)


def test_several_columns_of_symbols_have_a_table_each():
    rng = np.random.default_rng(0)
    X = np.stack([rng.integers(2, size=40), rng.integers(3, size=40)], axis=1)
    model = CategoricalHMM(2, random_state=0).fit(X)
    first, second = model.forecast(X).probabilities
    assert_allclose(first, model.forecast(X).states @ model.emissionprob_[0])
    assert second.shape == (1, 1, 3)


def test_words_are_taken_as_in_fit():
    model = CategoricalHMM(2, random_state=0).fit([["a", "b", "a", "b", "a"], ["b", "a", "b"]])
    assert model.forecast([["a", "b"], ["b", "a", "b"]]).probabilities.shape == (2, 1, 2)


def test_sequences_are_forecast_one_by_one():
    model = MODELS["poisson"]
    sequences = [observed(model, n, n) for n in (1, 4, 9)]
    together = model.forecast(sequences, 3)
    glued = model.forecast(np.concatenate(sequences), 3, lengths=[1, 4, 9])
    by_groups = model.forecast(np.concatenate(sequences), 3, groups=np.repeat([0, 1, 2], [1, 4, 9]))
    for name in ("states", "mean", "std", "lower", "upper"):
        one_by_one = np.concatenate([getattr(model.forecast(X, 3), name) for X in sequences])
        for found in (together, glued, by_groups):
            assert_allclose(getattr(found, name), one_by_one, atol=1e-12)


def test_far_ahead_the_past_is_forgotten():
    model = MODELS["diag"]
    stationary = np.linalg.matrix_power(TRANSITION, 5000)[0]
    assert_allclose(model.forecast(observed(model), 2000).states[0, -1], stationary, atol=1e-10)


def test_bounds_of_means_that_are_far_apart_and_of_huge_ones():
    model = with_chain(GaussianHMM(3), means_=[[1e9], [1e9 + 1], [-1e9]], covars_=[[1e-4], [1e-4], [1e-4]])
    coming = model.forecast([[1e9], [1e9]], 1)
    weights, means = coming.states[0, 0], model.means_[:, 0]
    center = weights @ (means - 1e9)
    assert_allclose(coming.std[0, 0, 0] ** 2, weights @ ((means - 1e9 - center) ** 2 + 1e-4), rtol=1e-6)
    assert coming.lower[0, 0, 0] <= coming.upper[0, 0, 0]


def test_fitted_bayesian_models_forecast_too():
    X = observed(MODELS["diag"], 200, 3)
    assert VariationalGaussianHMM(2, random_state=0).fit(X).forecast(X, 2).mean.shape == (1, 2, 2)


def test_what_cannot_be_is_refused():
    model = MODELS["poisson"]
    with pytest.raises(ValueError, match="horizon must be"):
        model.forecast([[1, 2]], 0)
    with pytest.raises(ValueError, match="level must be"):
        model.forecast([[1, 2]], level=1.0)
    impossible = with_chain(CategoricalHMM(3), emissionprob_=[[0.5, 0.5, 0.0]] * 3)
    with pytest.raises(ValueError, match="sequence 0 has probability zero"):
        impossible.forecast([[0], [2]])
