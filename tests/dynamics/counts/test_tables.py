"""Counts that the fit did not see: no limit unless one is given, whatever the weights and the start of a fit."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import gammaln, logsumexp
from sklearn.model_selection import GridSearchCV
from small_count_systems import count_system, draw

from pluri.dynamics import CountDynamicalSystem, GeneralizedCount, GeneralizedCountRegression, PoissonDynamicalSystem
from pluri.dynamics.counts.tables import continued

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
LENGTHS = [12, 9, 15, 10]


@pytest.fixture(scope="module")
def counts():
    return draw(count_system(n_neurons=5)[0], LENGTHS, missing=0.1)[0]


def log_likelihood(model, y):
    """Of two steps of one neuron with one hidden dimension: both states on a fine grid, sums of many counts."""
    k = np.arange(400.0)
    beyond = max(y) >= model.g_.shape[1]
    g = continued(model.g_, 399)[0] if beyond else np.append(model.g_[0], np.full(400 - model.g_.shape[1], -np.inf))
    table = g - gammaln(k + 1.0)
    c = model.observation_matrix_[0, 0]
    m, P = model.initial_mean_[0], model.initial_covariance_[0, 0]
    A, Q = model.transition_matrix_[0, 0], model.transition_covariance_[0, 0]
    x = np.linspace(-1.0, 1.0, 2001) * (9.0 * np.sqrt(max(P, A**2 * P + Q)) + abs(m))
    normalizer = logsumexp(k * c * x[:, None] + table, axis=1)
    first, second = (count * c * x + table[int(count)] - normalizer for count in y)
    start = stats.norm.logpdf(x, m, np.sqrt(P)) + first
    chain = stats.norm.logpdf(x, A * x[:, None], np.sqrt(Q)) + second
    return logsumexp(start[:, None] + chain) + 2.0 * np.log(x[1] - x[0])


@pytest.mark.parametrize("observation", ["full", "simple", "linear"])
def test_a_count_larger_than_those_of_the_fit_is_scored_by_the_shape_as_it_goes_on(observation):
    X = draw(count_system(n_neurons=1, p=1)[0], [8] * 6)[0]
    model = CountDynamicalSystem(1, observation=observation, max_iter=4, random_state=0).fit(X, lengths=[8] * 6)
    for y in ([1.0, 0.0], [1.0, X.max() + 2.0], [model.g_.shape[1] + 3.0, 1.0]):
        exact = log_likelihood(model, y)
        bound = model.score(np.array(y)[:, None])
        assert exact - 0.25 < bound < exact + 1e-3  # a lower bound, up to the error of its quadrature


def test_a_neuron_of_few_counts_goes_on_beside_one_of_many():
    """Without loadings a count has the probability of its shape alone, which goes on as a line beyond the data."""
    rng = np.random.default_rng(0)
    counts = np.column_stack([rng.poisson(9.0, 60), np.minimum(rng.poisson(1.0, 60), 3)]).astype(float)
    model = CountDynamicalSystem(1, max_iter=2, tol=1e9, random_state=0).fit(counts)
    assert model.g_.shape[1] > 10
    model.observation_matrix_ = np.zeros((2, 1))
    counts[5, 1] = 4.0
    found = model.leave_one_neuron_out(counts).log_probability[5, 1]
    g, k = model.g_[1, :4], np.arange(60.0)
    line = np.append(g, g[3] + min(g[3] - g[2], g[3] / 3) * (k[4:] - 3.0)) - gammaln(k + 1.0)
    assert_allclose(found, line[4] - logsumexp(line), rtol=1e-6)


def test_a_search_over_folds_with_larger_counts_has_finite_scores(counts):
    sequences = np.split(counts, np.cumsum(LENGTHS)[:-1])
    sequences[0][2, 1] = np.nanmax(counts) + 9.0
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings("ignore", message="EM did not converge")
        search = GridSearchCV(CountDynamicalSystem(max_iter=2, random_state=0), {"n_components": [1, 2]}, cv=4)
        search.fit(sequences)
    assert np.isfinite([search.cv_results_[f"split{fold}_test_score"] for fold in range(4)]).all()
    assert np.isfinite(search.best_estimator_.leave_one_neuron_out(sequences).nll)


def test_neurons_without_a_larger_count_are_scored_as_ever(counts):
    model = CountDynamicalSystem(2, max_iter=2, random_state=0).fit(counts, lengths=LENGTHS)
    strange = counts.copy()
    strange[3, 1] = 60.0
    where = model.leave_one_neuron_out(strange, LENGTHS).log_probability
    assert np.isfinite(where[3, 1])
    assert where[3, 1] < -10.0
    change = model.score_sequences(strange, LENGTHS) - model.score_sequences(counts, LENGTHS)
    assert change[0] < -5.0
    assert_allclose(change[1:], 0.0, atol=1e-6)
    assert_allclose(model.score_sequences(strange[:12])[0], model.score_sequences(strange, LENGTHS)[0], rtol=1e-9)


@pytest.mark.parametrize(
    "settings",
    [{}, {"shape": "concave"}, *({"distribution": name} for name in ("poisson", "com_poisson", "negative_binomial"))],
    ids=str,
)
def test_a_regression_scores_larger_counts_by_the_shape_as_it_goes_on(settings):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = rng.poisson(np.exp(X @ [0.4, -0.2]))
    model = GeneralizedCountRegression(**settings).fit(X, y)
    far = 3 * y.max() + 25
    found = model.log_likelihood(X[:20], np.full(20, far))
    assert np.isfinite(found).all()
    assert np.isfinite(model.score(X[:20], np.full(20, far)))
    # The same formula, cut off as far out: the probabilities of what was in the table are nearly the same.
    wide = GeneralizedCount(X[:20] @ model.coef_, model._shape_to(4 * far))
    assert_allclose(found, wide.logpmf(np.full(20, far)), rtol=1e-6)
    if "distribution" in settings:  # the tail beyond its table has no weight to speak of
        assert_allclose(wide.logpmf(y[:20]), model.log_likelihood(X[:20], y[:20]), atol=1e-6)
    assert_allclose(wide.g[: len(model.g_)], model.g_, atol=1e-8)


def test_what_is_said_to_be_the_largest_count_is_kept():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 1)), rng.binomial(4, 0.5, 100)
    assert np.isneginf(GeneralizedCountRegression(max_count=4).fit(X, y).log_likelihood(X[:1], [5])).all()
    assert np.isneginf(GeneralizedCountRegression("bernoulli").fit(X, y > 2).log_likelihood(X[:1], [2])).all()


@pytest.mark.parametrize("settings", [{}, {"inference": "laplace"}, {"elbo": "jensen"}], ids=str)
@pytest.mark.parametrize("limit", [None, "largest"])
def test_a_sequence_of_weight_zero_may_hold_larger_counts(counts, settings, limit):
    sequences = np.split(counts, np.cumsum(LENGTHS)[:-1])
    rest = sequences[1:]
    strange = sequences[0].copy()
    strange[2, 1] = np.nanmax(counts) + 30.0
    settings = settings | {"max_count": limit and int(np.nanmax(np.concatenate(rest)))}
    one = CountDynamicalSystem(2, max_iter=2, random_state=0, **settings)
    one.fit([strange, *rest], sequence_weight=[0, 1, 1, 1])
    other = CountDynamicalSystem(2, max_iter=2, random_state=0, **settings).fit(rest)
    assert_allclose(one.score(rest), other.score(rest), rtol=1e-9)


def test_a_warm_start_goes_on_with_larger_and_smaller_counts(counts):
    larger = counts.copy()
    larger[3, 1] = np.nanmax(counts) + 9.0
    model = CountDynamicalSystem(2, warm_start=True, max_iter=2, random_state=0).fit(counts, lengths=LENGTHS)
    assert np.isfinite(model.fit(larger, lengths=LENGTHS).score(larger, LENGTHS))
    assert np.isfinite(model.fit(counts, lengths=LENGTHS).score(counts, LENGTHS))
    before = model.objective_
    after = model.fit(counts, lengths=LENGTHS).history_.objective  # of the same data: it goes on from where it was
    assert after[0] > before - 1e-8 * abs(before)


@pytest.mark.parametrize("kind", [PoissonDynamicalSystem, CountDynamicalSystem])
def test_a_warm_start_of_another_size_is_refused(kind, counts):
    model = kind(2, warm_start=True, max_iter=2, random_state=0).fit(counts, lengths=LENGTHS)
    with pytest.raises(ValueError, match="number of columns"):
        model.fit(counts[:, :3], lengths=LENGTHS)
    with pytest.raises(ValueError, match="number of components"):
        model.set_params(n_components=3).fit(counts, lengths=LENGTHS)
    assert model.transition_matrix_.shape == (2, 2)
