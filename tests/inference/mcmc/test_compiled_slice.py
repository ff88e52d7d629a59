"""Slice sampling of compiled densities against the plain one, which makes the same steps, and against known laws."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from pluri.inference import mcmc
from pluri.inference.mcmc.slice_sampling import Slice

COVARIANCE = np.array([[2.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.5]])
PRECISION = np.linalg.inv(COVARIANCE)


def compiled_normal(x, precision):
    value = 0.0
    for i in range(len(x)):
        for j in range(len(x)):
            value -= 0.5 * x[i] * precision[i, j] * x[j]
    return value


def plain_normal(x):
    return -0.5 * float(x @ PRECISION @ x)


def exponential(x):
    return -x[0] if x[0] >= 0 else -math.inf


def run(kernel, **options):
    options = {"n_draws": 15, "n_warmup": 40, "n_chains": 2, "random_state": 3, "warn": False} | options
    return mcmc.sample(kernel, np.zeros(3), **options)


SETTINGS = [
    {}, {"max_steps": 2}, {"width": 0.2, "expansion": "double"}, {"expansion": "double", "max_steps": 3},
    {"bounds": (-1.5, np.inf)}, {"adapt": False, "width": [0.5, 2.0, 1.0]}, {"mode": "direction"},
    {"mode": "direction", "bounds": (-1.5, 4.0), "expansion": "double"}, {"mode": "box", "width": 4.0},
    {"mode": "box", "bounds": (-1.5, 4.0)},
]  # fmt: skip


@pytest.mark.parametrize("thin", [1, 3])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_compiled_chains_make_the_same_steps_as_plain_ones(settings, thin):
    plain = run(Slice(plain_normal, **settings), thin=thin)
    compiled = run(Slice(compiled_normal, compiled=True, data=PRECISION, **settings), thin=thin)
    assert_allclose(compiled["x"], plain["x"], atol=1e-6)
    assert set(compiled.stats) == set(plain.stats)
    for statistic, values in plain.stats.items():
        assert_allclose(compiled.stats[statistic], values, atol=1e-5)
        assert compiled.stats[statistic].dtype == values.dtype


@pytest.mark.parametrize("settings", [{}, {"mode": "direction"}, {"mode": "box"}], ids=str)
def test_moments_are_those_of_the_target(settings):
    # Five and a half standard errors, six times for each of three: a false alarm in a million.
    trace = run(Slice(compiled_normal, compiled=True, data=PRECISION, **settings), n_draws=20_000, n_warmup=500)
    for k in range(3):
        draws = trace["x"][..., k]
        assert draws.mean() == pytest.approx(0.0, abs=5.5 * mcmc.mcse_mean(draws))
        assert draws.std() == pytest.approx(math.sqrt(COVARIANCE[k, k]), abs=5.5 * mcmc.mcse_sd(draws))


@pytest.mark.parametrize(
    "settings",
    [
        {}, {"bounds": (0.0, np.inf)}, {"width": 20.0}, {"width": 0.2, "max_steps": 5},
        {"expansion": "double", "width": 0.2}, {"mode": "direction", "bounds": (0.0, np.inf)},
        {"mode": "box", "width": 4.0},
    ],
    ids=str,
)  # fmt: skip
def test_exact_draws_stay_exact(settings):
    # Two steps from each of 1600 independent draws: Kolmogorov-Smirnov at level 1e-8.
    kernel = Slice(exponential, compiled=True, adapt=False, **settings)
    rng = np.random.default_rng(0)
    ends = []
    for value in stats.expon.rvs(size=1600, random_state=1):
        state = kernel.init(rng, np.array([value]))
        for _ in range(2):
            state, _ = kernel.step(rng, state)
        ends.append(state.position[0])
    assert stats.kstest(ends, stats.expon.cdf).pvalue > 1e-8


@pytest.mark.parametrize("mode", ["coordinate", "direction"])
def test_where_chains_run_and_when_they_rest_changes_no_draw(mode, tmp_path):
    kernel = Slice(compiled_normal, compiled=True, data=PRECISION, mode=mode)
    whole = run(kernel, n_draws=50)
    assert_array_equal(run(kernel, n_draws=50, n_jobs=2)["x"], whole["x"])
    first = run(kernel, n_draws=20, checkpoint=tmp_path / "trace.npz")
    assert_array_equal(mcmc.resume(first, 30, warn=False)["x"], whole["x"])
    loaded = mcmc.Trace.load(tmp_path / "trace.npz")
    assert_array_equal(mcmc.resume(loaded, 30, kernel=kernel, warn=False)["x"], whole["x"])


@pytest.mark.parametrize("mode", ["coordinate", "direction"])
def test_a_warm_up_that_was_interrupted_goes_on_bit_for_bit(mode, tmp_path, monkeypatch):
    from pluri.inference.mcmc import rounds

    asked = iter([False, False, True])

    def look(self, seconds):
        if next(asked, False):
            raise KeyboardInterrupt
        return False

    monkeypatch.setattr(rounds._Rounds, "look", look)
    kernel = Slice(compiled_normal, compiled=True, data=PRECISION, mode=mode)
    with pytest.raises(KeyboardInterrupt):
        run(kernel, n_warmup=400, checkpoint=tmp_path / "trace.npz")
    stopped = mcmc.Trace.load(tmp_path / "trace.npz")
    assert 0 < stopped.warmup_left < 400
    resumed = mcmc.resume(stopped, 15, kernel=kernel, warn=False)
    assert_array_equal(resumed["x"], run(kernel, n_warmup=400)["x"])


def test_points_without_a_density_are_outside_and_counted():
    def half(x):
        if x[0] < -1.0:
            raise ValueError("too far")
        return math.nan if x[0] > 1.0 else -0.5 * x[0] * x[0]

    trace = mcmc.sample(Slice(half, compiled=True), np.zeros(1), n_draws=200, random_state=0, warn=False)
    assert np.abs(trace["x"]).max() <= 1.0
    assert trace.stats["undefined"].sum() > 100


def flat_step(x):
    return 0.0 if x[0] > -1 else -math.inf


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"log_density": lambda x: math.inf if x[0] > 1 else -x[0] * x[0]}, r"\+inf at a point of the slice"),
        ({"log_density": flat_step, "adapt": False}, "the slice never ends"),
        ({"log_density": flat_step, "adapt": False, "expansion": "double"}, "the slice never ends"),
        ({"log_density": lambda x: -x[0] * x[0], "width": 1e-8, "adapt": False}, "wider than 1000000 steps"),
        ({"log_density": lambda x: 0.0 if x[0] == 0.0 else -1e9, "bounds": (-1, 1)}, "shrank 200 times"),
        ({"log_density": lambda x: 0.0 if x[0] == 0.0 else -1e9, "mode": "box"}, "shrank 200 times"),
        ({"log_density": 3}, "must be a function"),
        ({"log_density": exponential, "data": [1.0]}, "data must be arrays and numbers"),
        ({"log_density": exponential, "data": (1.0,), "compiled": False}, "data is for compiled=True"),
    ],
)
def test_mistakes_are_told_in_one_sentence(settings, message):
    settings = {"compiled": True} | settings
    with pytest.raises(ValueError, match=message):
        mcmc.sample(Slice(**settings), np.zeros(1), n_draws=100, random_state=0, warn=False)
