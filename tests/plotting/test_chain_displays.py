"""Traces, ranks, autocorrelations, bounds, paths and clouds: what is drawn are the numbers given."""

import warnings
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose

from pluri.inference import mcmc
from pluri.inference.variational import FlowDesign, fit_black_box, fit_flow
from pluri.plotting import (
    AnnealingPathDisplay,
    AutocorrelationDisplay,
    ElboDisplay,
    ParticleCloudDisplay,
    RankDisplay,
    TraceDisplay,
)


@pytest.fixture
def trace():
    rng = np.random.default_rng(0)
    return mcmc.Trace(
        {"mu": rng.normal(size=(3, 50)), "theta": rng.normal(size=(3, 50, 2))},
        {"divergent": rng.random((3, 50)) < 0.1},
    )


def test_paths_are_the_draws(trace):
    display = TraceDisplay.from_trace(trace, truth={"mu": 0.5})
    assert list(display.numbers) == ["mu", "theta[0]", "theta[1]"]
    path = display.axes_[1, 1].lines[2]
    assert_allclose(path.get_ydata(), trace["theta"][2, :, 0])
    ticks = display.axes_[0, 1].lines[-1]
    assert_allclose(ticks.get_xdata() - 1, np.flatnonzero(trace.stats["divergent"].any(axis=0)))


def test_names_choose_variables_or_single_numbers(trace):
    assert list(TraceDisplay.from_trace(trace, "theta").numbers) == ["theta[0]", "theta[1]"]
    assert list(RankDisplay.from_trace(trace, ["theta[1]"]).numbers) == ["theta[1]"]
    with pytest.raises(ValueError, match="no variable 'tau'"):
        TraceDisplay.from_trace(trace, ["tau"])


def test_axes_can_be_given_and_must_fit(trace):
    _, axes = plt.subplots(3, 2)
    assert TraceDisplay.from_trace(trace, axes=axes).axes_[0, 0] is axes[0, 0]
    with pytest.raises(ValueError, match="3 x 2"):
        TraceDisplay.from_trace(trace, axes=axes[:2])


def test_ranks_of_equal_chains_are_flat_and_of_shifted_ones_are_not():
    rng = np.random.default_rng(1)
    flat = RankDisplay.from_trace({"x": rng.normal(size=(4, 1000))}).counts_["x"]
    assert np.abs(flat - 50).max() < 40  # five standard deviations
    shifted = RankDisplay.from_trace({"x": rng.normal(size=(2, 1000)) + np.array([[0], [9]])}).counts_["x"]
    assert_allclose(shifted[0], np.repeat([100, 0], 10))


def test_autocorrelation_is_that_of_the_diagnostics(trace):
    display = AutocorrelationDisplay.from_trace(trace, "mu", max_lag=9)
    assert_allclose(display.axes_[0].lines[1].get_ydata(), mcmc.autocorrelation(trace["mu"], 9)[0])


def test_the_bound_is_smoothed_over_the_window():
    display = ElboDisplay.from_estimator(SimpleNamespace(elbo_=[1.0, 2.0, 3.0, 4.0]), window=2, evidence=5.0)
    assert_allclose(display.smooth_, [1.5, 2.5, 3.5])
    assert_allclose(ElboDisplay.from_estimator(SimpleNamespace(free_energy=[3.0, 1.0])).smooth_, [-3, -1])


def test_results_of_every_variational_engine_can_be_drawn():
    def normal(x):
        return -0.5 * (x**2).sum(axis=1), -x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # too short to converge
        boxed = fit_black_box(normal, 2, max_iter=50, random_state=0)
    assert len(ElboDisplay.from_estimator(boxed).elbo) == len(boxed.elbo_trace)
    flow = fit_flow(normal, 2, FlowDesign(n_layers=1), max_iter=30, random_state=0, check_modes=False)
    assert_allclose(ElboDisplay.from_estimator(flow).elbo, -np.asarray(flow.free_energy))
    with pytest.raises(ValueError, match="elbo_"):
        ElboDisplay.from_estimator(SimpleNamespace(elbo=3.0))


@pytest.mark.parametrize("options", [{"window": 5}, {"window": 0}, {"skip": 4}])
def test_impossible_windows_are_refused(options):
    with pytest.raises(ValueError, match="must be"):
        ElboDisplay([1.0, 2.0, 3.0]).plot(**options)


def test_the_effective_share_is_that_of_the_weights():
    betas = np.array([0.0, 0.5, 1.0])
    paths = np.log([[1.0, 1.0, 1.0], [1.0, 3.0, 0.0]], where=np.array([[1, 1, 1], [1, 1, 0]]) > 0,
                   out=np.full((2, 3), -np.inf))  # fmt: skip
    display = AnnealingPathDisplay(betas, paths, log_z=np.log([1.0, 2.0, 0.5])).plot(log_z=-0.7)
    assert_allclose(display.share_, [1.0, 16 / 10 / 2, 0.5])
    with pytest.raises(ValueError, match="one column for each temperature"):
        AnnealingPathDisplay(betas, paths[:, :2])
    with pytest.raises(ValueError, match="paths kept"):
        AnnealingPathDisplay.from_samples(SimpleNamespace(log_weight_paths=None))


def test_the_cloud_has_the_mean_and_effective_size_of_its_weights():
    rng = np.random.default_rng(2)
    particles, weights = rng.normal(size=(6, 10, 2)), rng.dirichlet(np.ones(10), size=6)
    result = SimpleNamespace(particles=particles, log_weights=np.log(weights), ess=1 / (weights**2).sum(axis=1))
    display = ParticleCloudDisplay.from_result(result, coordinate=1, observations=np.zeros(6), truth=np.ones(6))
    assert_allclose(display.mean_, (particles[:, :, 1] * weights).sum(axis=1))
    assert_allclose(display.axes_[1].lines[0].get_ydata(), result.ess)
    with pytest.raises(ValueError, match="coordinate"):
        ParticleCloudDisplay.from_result(result, coordinate=2)
    result.particles = particles[:1]
    with pytest.raises(ValueError, match="every step"):
        ParticleCloudDisplay.from_result(result)
