"""Heavy tails of a flow's columns: the map against quadrature and scipy, what is learned, and what is warned of."""

import warnings

import numpy as np
import pytest
from scipy import integrate, stats

from pluri.processes import FlowDensity
from pluri.processes.column_tails import ColumnTails, learn_tails

QUICK = {"n_layers": 2, "max_iter": 30, "n_iter_no_change": 5, "random_state": 0}


def fitted(X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FlowDensity(**{**QUICK, **options}).fit(X)


def test_a_student_variable_is_mapped_to_a_normal_one():
    # g(X) is standard normal if X has the tails' own t, so the density of X follows from that of g(X) by the slope.
    tails = ColumnTails(np.array([2.5]), np.array([1.0]), np.array([3.0]))
    x = np.concatenate([-np.logspace(-3, 12, 40), [1.0], np.logspace(-3, 12, 40)])[:, None]
    z, log_slope = tails.forward(x)
    np.testing.assert_allclose(
        stats.norm.logpdf(z[:, 0]) + log_slope, stats.t(2.5, 1.0, 3.0).logpdf(x[:, 0]), rtol=1e-9
    )
    np.testing.assert_allclose(tails.backward(z), x, rtol=1e-6, atol=1e-8)
    assert (np.diff(tails.forward(np.sort(x, axis=0))[0][:, 0]) > 0).all()


def test_learned_tails_are_heavy_where_the_data_are():
    # Normal data kept normal tails in 400 of 400 trials of 300 to 3000 rows, Student's t with v = 2 never: at most 2 of
    # 40 wrong has a false-alarm rate below 1e-3 for a chance of 1 in 200 each.
    mistakes = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.normal(size=1000), rng.standard_t(2, size=1000), rng.random(1000)])
        degrees = learn_tails(X, np.ones(1000)).degrees
        mistakes += np.isfinite(degrees[0]) + np.isfinite(degrees[2])
        assert 1.0 <= degrees[1] <= 4.0
    assert mistakes <= 2


def test_the_density_has_mass_one_and_no_cliff():
    X = np.random.default_rng(0).standard_t(2, size=(600, 1))
    model = fitted(X)
    assert np.isfinite(model.tail_degrees_[0])
    # Over the logarithm of the distance from the middle, as half of the mass of the tails is far out.
    mass = sum(
        integrate.trapezoid(np.exp(model.score_samples(sign * np.exp(grid)[:, None]) + grid), grid)
        for sign in (-1, 1)
        for grid in [np.linspace(-12, 16, 8001)]
    )
    assert mass == pytest.approx(1.0, abs=0.01)
    assert model.score_samples([[1000.0]])[0] > -40


@pytest.mark.parametrize("seed", range(2))
def test_heavy_tails_are_better_with_them_and_light_ones_unchanged(seed):
    rng = np.random.default_rng(seed)
    train, test = rng.standard_t(2, size=(2, 800, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learned, normal = fitted(train).score(test), fitted(train, tails="normal").score(test)
    # 0.36 nats apart on average (`python benchmarks/accuracy/flow_tails.py`); the truth loses nothing to either.
    assert learned > normal
    assert learned > stats.t(2).logpdf(test).mean() - 0.15
    light = rng.random((300, 2))
    np.testing.assert_array_equal(
        fitted(light, max_iter=3).score_samples(light), fitted(light, tails="normal", max_iter=3).score_samples(light)
    )


def test_rows_far_outside_the_range_of_training_are_warned_of():
    X = np.random.default_rng(0).normal(size=(400, 2))
    model = fitted(X, max_iter=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.score_samples(1.2 * X)
    with pytest.warns(UserWarning, match=r"1 of 401 rows lie far outside the range of training \(column 1"):
        score = model.score_samples(np.vstack([X, [[0.0, 30.0]]]))
    assert score[-1] < -100


def test_weights_count_as_rows():
    rng = np.random.default_rng(0)
    X, weights = rng.standard_t(2, size=(400, 1)), rng.integers(0, 4, size=400)
    kept = weights > 0
    weighted = learn_tails(X[kept], weights[kept].astype(float))
    repeated = learn_tails(np.repeat(X, weights, axis=0), np.ones(weights.sum()))
    np.testing.assert_allclose(
        [weighted.degrees, weighted.center, weighted.width], [repeated.degrees, repeated.center, repeated.width]
    )


def test_draws_follow_the_tails_and_go_back_to_noise():
    X = np.random.default_rng(0).standard_t(2, size=(800, 1))
    model = fitted(X)
    draws = model.sample(2000, random_state=1)
    # Share beyond 10, 0.00985 by the t distribution: 20 of 2000 are expected, with 4 or 60 at 1e-4.
    assert 2 <= (np.abs(draws) > 10).sum() <= 100
    np.testing.assert_allclose(model.inverse_transform(model.transform(draws)), draws, rtol=1e-4, atol=1e-4)
