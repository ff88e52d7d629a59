"""Counts that were not seen: forecasts, imputation, and the intervals of both."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, stats
from scipy.special import gammaln
from small_count_systems import count_system, draw, poisson_system

from pluri.dynamics import CountDynamicalSystem, PoissonDynamicalSystem
from pluri.dynamics.counts.forecasts import count_quantiles
from pluri.dynamics.counts.prediction import ThetaDistribution
from pluri.dynamics.counts.records import CountObservation, PoissonObservation
from pluri.dynamics.counts.system import SilentNeuronWarning

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
LENGTHS = [9, 12]


def known(params, kind, **settings):
    """A fitted estimator whose parameters are replaced."""
    counts, _ = draw(params, LENGTHS, seed=1)
    model = kind(params.states.n_states, max_iter=1, random_state=0, **settings).fit(counts + 1.0)
    states = params.states
    model.transition_matrix_, model.transition_covariance_ = states.transition, states.noise
    model.initial_mean_, model.initial_covariance_ = states.initial_mean, states.initial_covariance
    model.observation_matrix_ = params.observation.loadings
    if kind is PoissonDynamicalSystem:
        model.observation_offset_ = params.observation.intercept
    else:
        model.g_ = params.observation.g
    return model


@pytest.fixture(params=["poisson", "counts", "jensen", "laplace"])
def system(request):
    if request.param in ("poisson", "laplace"):
        inference = "laplace" if request.param == "laplace" else "vb"
        return known(poisson_system()[0], PoissonDynamicalSystem, inference=inference), poisson_system()[0]
    elbo = "jensen" if request.param == "jensen" else "quadrature"
    return known(count_system()[0], CountDynamicalSystem, elbo=elbo), count_system()[0]


def test_a_forecast_is_the_imputation_of_rows_never_seen(system):
    model, params = system
    counts, _ = draw(params, LENGTHS, seed=2, missing=0.2)
    sequences = [counts[:9], counts[9:]]
    found = model.forecast(sequences, 4, level=0.8)
    assert found.mean.shape == (2, 4, 4)
    for i, sequence in enumerate(sequences):
        longer = np.vstack([sequence, np.full((4, 4), np.nan)])
        filled, std = model.impute(longer, return_std=True)
        assert_allclose(found.mean[i], filled[-4:], rtol=1e-4)
        assert_allclose(found.std[i], std[-4:], rtol=1e-4)
        assert_allclose(found.states[i], model.transform(longer)[-4:], atol=1e-4)
        interval = model.predict_interval(longer, coverage=0.8)[-4:]
        # A quantile jumps by 1 where rounding decides.
        assert np.abs(interval - np.stack([found.lower[i], found.upper[i]], axis=-1)).max() <= 1
        seen = ~np.isnan(sequence)
        assert_array_equal(filled[: 9 if i == 0 else 12][seen], sequence[seen])
        assert not std[: len(sequence)][seen].any()
        assert_allclose(filled[: len(sequence)][~seen], model.predict(longer)[: len(sequence)][~seen])


def distribution_function(observation, mean, deviation, count):
    """P(k <= count) where theta is normal, by adaptive integration."""

    def chance(u):
        theta = mean + deviation * u
        if isinstance(observation, PoissonObservation):
            return stats.poisson.cdf(count, np.exp(theta + observation.intercept[0])) * stats.norm.pdf(u)
        k = np.arange(observation.g.shape[1])
        scores = theta * k + observation.g[0] - gammaln(k + 1)
        P = np.exp(scores - scores.max())
        return P[: int(count) + 1].sum() / P.sum() * stats.norm.pdf(u)

    return integrate.quad(chance, -8, 8, limit=400, epsabs=1e-10)[0] if count >= 0 else 0.0


K = np.arange(31)
SHAPES = {
    "Poisson": PoissonObservation(np.ones((1, 1)), np.array([0.3])),
    "narrow": CountObservation(np.ones((1, 1)), (0.4 * K - 0.1 * K * (K - 1) / 2)[None]),
    "without 2": CountObservation(np.ones((1, 1)), np.where(K == 2, -np.inf, 0.2 * K)[None]),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(("mean", "deviation"), [(0.2, 0.5), (2.5, 0.05), (1.0, 1.5), (-3.0, 0.3), (5.0, 0.8)])
@pytest.mark.parametrize("probability", [0.05, 0.5, 0.95])
def test_quantiles_are_those_of_the_distribution_integrated_over_theta(name, mean, deviation, probability):
    """Smallest count that is reached; large counts are found to a hundredth of a standard deviation of theta."""
    observation = SHAPES[name]
    theta = ThetaDistribution(np.array([[mean]]), np.array([[deviation**2]]))
    found = float(count_quantiles(observation, theta, probability)[0, 0])
    margin = 1e-6 + 0.01 * probability * (1 - probability) * (found > 30)
    assert distribution_function(observation, mean, deviation, found) >= probability - margin
    assert distribution_function(observation, mean, deviation, found - 1) < probability + margin


def test_an_enormous_rate_has_a_quantile():
    theta = ThetaDistribution(np.array([[70.0, 0.0]]), np.array([[4.0, 0.0]]))
    observation = PoissonObservation(np.ones((2, 1)), np.zeros(2))
    found = count_quantiles(observation, theta, 0.5)
    assert np.log(found[0, 0]) == pytest.approx(70.0, abs=0.2)
    assert found[0, 1] == 1


@pytest.mark.parametrize("kind", ["poisson", "counts"])
def test_intervals_hold_what_they_promise(kind):
    """Counts of 300 sequences of a known system, two steps later; a cell each, so that they are independent.

    The intervals have a probability of 0.8 or more. Fewer than the 1e-6 quantile of Binomial(300, 0.77) inside is a
    false alarm of 1e-6 if the variational approximation costs no more than three points.
    """
    params = poisson_system()[0] if kind == "poisson" else count_system()[0]
    model = known(params, PoissonDynamicalSystem if kind == "poisson" else CountDynamicalSystem)
    counts, _ = draw(params, [10] * 300, seed=5)
    sequences = counts.reshape(300, 10, 4)
    found = model.forecast(list(sequences[:, :8]), 2, level=0.8)
    column = np.arange(300) % 4
    truth, lower, upper = (a[np.arange(300), -1, column] for a in (sequences, found.lower, found.upper))
    assert ((lower <= truth) & (truth <= upper)).sum() >= stats.binom(300, 0.77).ppf(1e-6)
    holes = sequences.copy()
    holes[np.arange(300), 4, column] = np.nan
    interval = model.predict_interval(list(holes), coverage=0.8).reshape(300, 10, 4, 2)[np.arange(300), 4, column]
    truth = sequences[np.arange(300), 4, column]
    assert ((interval[:, 0] <= truth) & (truth <= interval[:, 1])).sum() >= stats.binom(300, 0.77).ppf(1e-6)


def test_a_mean_that_varies_in_time_is_forecast_as_far_as_it_is_known():
    rng = np.random.default_rng(0)
    rate = np.exp(np.sin(np.arange(12) / 2)[:, None] * [1.0, -1.0, 0.5])
    trials = list(rng.poisson(rate, size=(30, 12, 3)).astype(float))
    model = PoissonDynamicalSystem(1, time_varying_mean=True, max_iter=5, random_state=0).fit(trials)
    begun = [trial[:7] for trial in trials[:2]]
    found = model.forecast(begun, 5)
    longer = np.vstack([begun[0], np.full((5, 3), np.nan)])
    assert_allclose(found.mean[0], model.predict(longer)[-5:], rtol=1e-4)
    with pytest.raises(ValueError, match="horizon must not lead beyond the 12 steps"):
        model.forecast(begun, 6)


def test_silent_neurons_stay_silent():
    counts, _ = draw(poisson_system()[0], LENGTHS, seed=2)
    counts[:, 1] = 0.0
    with pytest.warns(SilentNeuronWarning):
        model = PoissonDynamicalSystem(1, max_iter=2, random_state=0).fit(counts, lengths=LENGTHS)
    found = model.forecast(counts, 2, LENGTHS)
    for values in (found.mean, found.std, found.lower, found.upper):
        assert not values[:, :, 1].any()


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (lambda model, X: model.forecast(X, 0), "horizon"),
        (lambda model, X: model.forecast(X, 2, level=1.0), "level"),
        (lambda model, X: model.predict_interval(X, coverage=0.0), "coverage"),
        (lambda model, X: model.forecast(X[:, :2], 2), "features"),
        (lambda model, X: model.impute(X - 1.5), "Negative|counts"),
    ],
)
def test_questions_that_cannot_be_answered_are_refused(question, message):
    params = poisson_system()[0]
    with pytest.raises(ValueError, match=message):
        question(known(params, PoissonDynamicalSystem), draw(params, [8])[0])
