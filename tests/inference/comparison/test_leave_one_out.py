"""Leave-one-out cross-validation against a closed form and against ArviZ; outliers; abuse."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

from pluri.inference.comparison import loo
from pluri.inference.mcmc.trace import Trace


def normal_mean(seed=0, n=40, shape=(4, 1000)):
    """Observations of known variance under a flat prior, draws of the mean, and their log densities."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    means = rng.normal(y.mean(), 1 / np.sqrt(n), size=shape)
    return y, means, norm.logpdf(y, means[:, :, None], 1.0)


def test_the_estimate_is_that_of_leaving_out():
    """Without one of n the mean is normal of variance 1 / (n - 1); the Monte Carlo error of the sum is about 0.02."""
    y, _, log_likelihood = normal_mean()
    n = len(y)
    others = (y.sum() - y) / (n - 1)
    exact = norm.logpdf(y, others, np.sqrt(1 + 1 / (n - 1)))
    found = loo(log_likelihood)
    assert found.elpd == pytest.approx(exact.sum(), abs=0.12)
    np.testing.assert_allclose(found.pointwise, exact, atol=0.05)
    assert found.se == pytest.approx(np.sqrt(n * exact.var()), rel=0.02)
    assert found.diagnose() == []
    assert found.pareto_limit == 0.7


def test_a_function_of_the_draws_gives_the_same():
    y, means, log_likelihood = normal_mean(shape=(2, 100))
    found = loo(lambda draw: norm.logpdf(y, draw["mean"], 1.0), Trace({"mean": means}))
    np.testing.assert_allclose(found.pointwise, loo(log_likelihood).pointwise)


@pytest.mark.filterwarnings("ignore")
def test_it_agrees_with_arviz():
    arviz = pytest.importorskip("arviz")
    rng = np.random.default_rng(3)
    # Heavy and light tails: observations up to five standard deviations out.
    y = np.concatenate([rng.normal(size=15), [3.0, -5.0]])
    # Tails of 3 sqrt(3600) weights: no rounding, which versions of ArviZ do one way or the other.
    means = rng.normal(y.mean(), 0.4, size=(4, 900))
    log_likelihood = norm.logpdf(y, means[:, :, None], 1.0)
    data = arviz.from_dict(posterior={"mean": means}, log_likelihood={"y": log_likelihood})
    theirs = arviz.loo(data, pointwise=True, reff=1.0)
    ours = loo(log_likelihood, efficiency=1.0)
    assert ours.elpd == pytest.approx(float(theirs.elpd_loo), rel=1e-6)
    assert ours.se == pytest.approx(float(theirs.se), rel=1e-6)
    assert ours.p_loo == pytest.approx(float(theirs.p_loo), rel=1e-6)
    np.testing.assert_allclose(ours.pareto_k, theirs.pareto_k.values, atol=1e-6)
    np.testing.assert_allclose(ours.pointwise, theirs.loo_i.values, rtol=1e-6)


def test_an_observation_that_the_fit_hangs_on_is_told():
    rng = np.random.default_rng(0)
    y = np.append(rng.normal(size=10), 12.0)
    means = rng.normal(y.mean(), 1.2, size=(4, 500))
    with pytest.warns(ConvergenceWarning, match=r"At \d+ of 11 observations .* at observation 10"):
        found = loo(norm.logpdf(y, means[:, :, None], 1.0))
    assert found.pareto_k[10] > 0.7


def test_two_models_are_compared_observation_by_observation():
    y, means, right = normal_mean()
    wrong = norm.logpdf(y, means[:, :, None] + 2.0, 1.0)
    difference, error = loo(right) - loo(wrong)
    assert difference > 4 * error
    with pytest.raises(ValueError, match="the same observations, got 40 and 39"):
        loo(right) - loo(wrong[:, :, 1:])


@pytest.mark.parametrize(
    ("log_likelihood", "message"),
    [
        (np.zeros((100, 5)), "log_likelihood must be of shape"),
        (np.zeros((2, 5, 5)), "with 25 draws at least"),
        (np.full((2, 50, 5), np.nan), "log_likelihood must be finite"),
        (lambda draw: np.zeros(3), "a function log_likelihood needs the trace"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(log_likelihood, message):
    with pytest.raises(ValueError, match=message):
        loo(log_likelihood)
    with pytest.raises(ValueError, match="efficiency must be a positive number"):
        loo(np.zeros((2, 50, 3)), efficiency=0.0)
