"""JAX densities through BlackJAX against closed forms and the NumPy sampler."""

import sys

import numpy as np
import pytest

from pluri.inference import mcmc
from pluri.inference.mcmc.blackjax_adapter import sample_blackjax


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "blackjax", None)
    with pytest.raises(ImportError, match=r"sample_blackjax needs blackjax, .* pip install \"pluri\[jax\]\""):
        sample_blackjax(lambda x: 0.0, np.zeros(1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_draws": 0}, "n_draws must be"),
        ({"n_leapfrog": 0}, "n_leapfrog must be"),
        ({"metric": "unit"}, "metric must be"),
        ({"target_accept": 1.5}, "target_accept must"),
    ],
)
def test_what_cannot_work_is_refused_in_one_sentence(options, message):
    with pytest.raises(ValueError, match=message):
        sample_blackjax(lambda x: 0.0, np.zeros(1), **options)


@pytest.fixture(scope="module")
def jax():
    pytest.importorskip("blackjax")
    return pytest.importorskip("jax")


COVARIANCE = np.array([[2.0, 0.6], [0.6, 1.0]])


@pytest.fixture(scope="module")
def trace(jax):
    precision = np.linalg.inv(COVARIANCE)

    def log_density(position):
        centred = position["pair"] - 1.0
        return -0.5 * centred @ precision @ centred - 0.5 * ((position["deep"]["one"] - 3.0) / 2.0) ** 2

    start = {"pair": np.zeros(2), "deep": {"one": np.array(0.0)}}
    # Two steps are about a quarter of a period, after which draws hardly depend on each other. Near half a period the
    # squares hardly move, and standard errors of spreads, estimated from them, are too small.
    return sample_blackjax(
        log_density, start, n_leapfrog=2, n_draws=600, n_warmup=300, n_chains=2, random_state=0,
        warn=False,
    )  # fmt: skip


def test_moments_are_those_of_the_target(trace):
    # Five and a half standard errors, six times: a false alarm in a million.
    exact = [(trace["pair"][..., 0], 1, 2**0.5), (trace["pair"][..., 1], 1, 1), (trace["deep.one"], 3, 2)]
    for draws, mean, deviation in exact:
        assert draws.mean() == pytest.approx(mean, abs=5.5 * mcmc.mcse_mean(draws))
        assert draws.std() == pytest.approx(deviation, abs=5.5 * mcmc.mcse_sd(draws))


def test_draws_are_named_in_double_precision_and_come_with_statistics(trace, jax):
    assert trace["pair"].shape == (2, 600, 2)
    assert trace["deep.one"].shape == (2, 600)
    assert trace["pair"].dtype == np.float64
    assert not jax.config.jax_enable_x64
    assert {"acceptance", "divergent", "energy", "step_size", "log_density"} <= set(trace.stats)
    assert trace.stats["divergent"].sum() == 0
    last = trace["pair"][0, -1] - 1.0
    expected = -0.5 * last @ np.linalg.inv(COVARIANCE) @ last - 0.5 * ((trace["deep.one"][0, -1] - 3) / 2) ** 2
    assert trace.stats["log_density"][0, -1] == pytest.approx(expected)


@pytest.mark.slow
def test_a_cliff_diverges_under_nuts_and_says_so(jax):
    # Whatever step size was learned, trajectories of a normal law run into the wall at 1/2 unless they turn before it.
    def cliff(x):
        return -0.5 * (x**2).sum() - jax.numpy.where(x[0] > 0.5, 1e6, 0.0)

    trace = sample_blackjax(cliff, np.zeros(5), n_draws=50, n_warmup=100, x64=False, random_state=0, warn=False)
    assert trace["x"].dtype == np.float32
    assert trace["x"][..., 0].max() <= 0.5
    # About half of the 200: 50 are seven standard deviations below.
    assert trace.stats["divergent"].sum() > 50
    assert trace.stats["tree_depth"].max() <= 10
    assert any("diverged" in sentence for sentence in trace.diagnose())


@pytest.mark.parametrize(
    ("log_density", "message"), [(lambda x: x.sum() / 0.0, "must be finite"), (lambda x: x, "one number")]
)
def test_densities_that_cannot_be_sampled_are_refused(jax, log_density, message):
    with pytest.raises(ValueError, match=message):
        sample_blackjax(log_density, np.zeros(2), random_state=0)
