"""Compiled densities against plain ones, which make the same steps, and against closed forms."""

import math
import os
import signal
import threading
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pluri import on_interrupt
from pluri.inference import mcmc
from pluri.inference.mcmc.adaptation import RunningVariance
from pluri.inference.mcmc.compiled_targets.compiled_density import CompiledDensity

COVARIANCE = np.array([[2.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.5]])
MEAN = np.array([1.0, -2.0, 0.5])


class Normal(NamedTuple):
    mean: np.ndarray
    precision: np.ndarray
    factor: float
    power: int


DATA = Normal(MEAN, np.linalg.inv(COVARIANCE), 1.0, 1)


def compiled_normal(x, gradient, data):
    mean, precision = data.mean, data.precision
    value = 0.0
    for i in range(len(x)):
        gradient[i] = 0.0
        for j in range(len(x)):
            gradient[i] -= data.factor**data.power * precision[i, j] * (x[j] - mean[j])
        value += 0.5 * gradient[i] * (x[i] - mean[i])
    return value


def plain_normal(x):
    gradient = -DATA.precision @ (x - MEAN)
    return 0.5 * float(gradient @ (x - MEAN)), gradient


def line(x, gradient):
    gradient[0] = -x[0]
    return -0.5 * x[0] * x[0]


def run(kernel, **options):
    options = {"n_draws": 30, "n_warmup": 60, "n_chains": 2, "random_state": 3, "warn": False} | options
    return mcmc.sample(kernel, np.zeros(3), **options)


KINDS = {
    "nuts": (mcmc.NUTS, {}),
    "dense nuts": (mcmc.NUTS, {"metric": "dense"}),
    "unit nuts": (mcmc.NUTS, {"metric": "unit", "max_tree_depth": 3}),
    "hmc": (mcmc.HMC, {"n_leapfrog": 5}),
    "dense hmc": (mcmc.HMC, {"metric": "dense", "n_leapfrog": 4}),
}


@pytest.mark.parametrize("thin", [1, 3])
@pytest.mark.parametrize("name", KINDS)
def test_compiled_chains_make_the_same_steps_as_plain_ones(name, thin):
    # Rounding is magnified at each step, tenfold in ten or so: the first forty steps agree to six digits or more.
    kind, settings = KINDS[name]
    options = {"n_draws": 10, "n_warmup": 25, "thin": thin}
    plain = run(kind(plain_normal, **settings), **options)
    compiled = run(kind(compiled_normal, compiled=True, data=DATA, **settings), **options)
    assert_allclose(compiled["x"], plain["x"], atol=1e-5)
    assert set(compiled.stats) == set(plain.stats)
    for statistic, values in plain.stats.items():
        assert_allclose(compiled.stats[statistic], values, atol=1e-4)
        assert compiled.stats[statistic].dtype == values.dtype


@pytest.mark.parametrize("name", KINDS)
def test_moments_are_those_of_the_target(name):
    # Five and a half standard errors, six times for each of five: a false alarm in a hundred thousand.
    kind, settings = KINDS[name]
    kernel = kind(compiled_normal, compiled=True, data=DATA, **settings)
    trace = run(kernel, n_draws=4000, n_warmup=500)
    for k in range(3):
        draws = trace["x"][..., k]
        assert draws.mean() == pytest.approx(MEAN[k], abs=5.5 * mcmc.mcse_mean(draws))
        assert draws.std() == pytest.approx(math.sqrt(COVARIANCE[k, k]), abs=5.5 * mcmc.mcse_sd(draws))
    if kind is mcmc.NUTS and settings.get("metric") != "unit":
        assert trace.diagnose() == []


def test_exact_draws_stay_exact():
    # One step from each of 2000 independent draws: Kolmogorov-Smirnov at level 1e-8.
    from scipy import stats

    kernel = mcmc.NUTS(line, compiled=True, step_size=0.9, check_gradient=False)
    rng = np.random.default_rng(0)
    ends = [kernel.step(rng, kernel.init(rng, np.array([x])))[0].position[0] for x in rng.normal(size=2000)]
    assert stats.kstest(ends, "norm").pvalue > 1e-8


@pytest.mark.parametrize("options", [{"n_jobs": 2}, {"thin": 2}, {"record": lambda x: {"first": x[0], "twice": 2 * x}}])
def test_where_chains_run_and_what_is_kept_changes_no_draw(options):
    kernel = mcmc.NUTS(compiled_normal, compiled=True, data=DATA)
    whole, trace = run(kernel, n_draws=60), run(kernel, **options)
    if "record" in options:
        assert_array_equal(trace["twice"], 2 * whole["x"][:, :30])
        assert_array_equal(trace["first"], whole["x"][:, :30, 0])
    else:
        step = options.get("thin", 1)
        assert_array_equal(trace["x"], whole["x"][:, step - 1 :: step][:, :30])


@pytest.mark.parametrize("thin", [1, 3])
def test_resume_is_bit_for_bit_from_memory_and_file(thin, tmp_path):
    kernel = mcmc.NUTS(compiled_normal, compiled=True, data=DATA)
    whole = run(kernel, n_draws=50, thin=thin)
    first = run(kernel, n_draws=20, thin=thin, checkpoint=tmp_path / "trace.npz")
    assert_array_equal(mcmc.resume(first, 30, warn=False)["x"], whole["x"])
    loaded = mcmc.Trace.load(tmp_path / "trace.npz")
    again = mcmc.resume(loaded, 30, kernel=mcmc.NUTS(compiled_normal, compiled=True, data=DATA), warn=False)
    assert_array_equal(again["x"], whole["x"])


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("thin", [1, 2])
def test_ctrl_c_leaves_a_trace_that_resumes_bit_for_bit(n_jobs, thin):
    def callback(trace):
        if not timer.ident:
            timer.start()

    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    kernel = mcmc.NUTS(compiled_normal, compiled=True, data=DATA)
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted"):
        trace = run(kernel, n_draws=10**7, callback=callback, n_jobs=n_jobs, thin=thin)
    timer.join()
    assert trace.interrupted
    resumed = mcmc.resume(trace, 5, warn=False)
    rest = run(kernel, n_draws=trace.n_draws + 5, thin=thin)
    assert_array_equal(resumed["x"], rest["x"])


def test_a_warm_up_that_was_interrupted_goes_on_bit_for_bit(tmp_path, monkeypatch):
    from pluri.inference.mcmc import rounds

    asked = iter([False, False, True])

    def look(self, seconds):
        if next(asked, False):
            raise KeyboardInterrupt
        return False

    monkeypatch.setattr(rounds._Rounds, "look", look)
    kernel = mcmc.NUTS(compiled_normal, compiled=True, data=DATA)
    with pytest.raises(KeyboardInterrupt):
        run(kernel, n_warmup=400, checkpoint=tmp_path / "trace.npz")
    stopped = mcmc.Trace.load(tmp_path / "trace.npz")
    assert 0 < stopped.warmup_left < 400
    assert_array_equal(mcmc.resume(stopped, 30, kernel=kernel, warn=False)["x"], run(kernel, n_warmup=400)["x"])


def test_divergences_and_infinities_are_told():
    def cliff(x, gradient):
        gradient[0] = -x[0]
        return -0.5 * x[0] * x[0] - (1e6 if x[0] > 0.5 else 0.0)

    def peak(x, gradient):
        gradient[0] = -x[0]
        return math.inf if x[0] > 1.0 else -0.5 * x[0] * x[0]

    trace = mcmc.sample(
        mcmc.NUTS(cliff, compiled=True, step_size=0.5), np.zeros(1), n_draws=500, n_warmup=0, random_state=0, warn=False
    )
    assert trace["x"].max() <= 0.5
    assert trace.stats["divergent"].sum() > 100
    with pytest.raises(ValueError, match=r"\+inf at a point of the trajectory"):
        mcmc.sample(mcmc.NUTS(peak, compiled=True, step_size=0.5), np.zeros(1), n_warmup=0, random_state=0, warn=False)


def test_an_error_in_the_density_counts_as_density_zero():
    def fails(x, gradient):
        if x[0] > 0.5:
            raise ValueError("too far")
        gradient[0] = -x[0]
        return -0.5 * x[0] * x[0]

    kernel = mcmc.NUTS(fails, compiled=True, step_size=0.5)
    trace = mcmc.sample(kernel, np.zeros(1), n_draws=200, n_warmup=0, random_state=0, warn=False)
    assert trace["x"].max() <= 0.5
    assert trace.stats["divergent"].any()
    with pytest.raises(ValueError, match="log density must be finite at the initial position"):
        mcmc.sample(kernel, np.ones(1), random_state=0)


def wrong(x, gradient):
    gradient[0] = x[0] + 1.0
    return -0.5 * x[0] * x[0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"value_and_grad": wrong, "compiled": True}, "gradient disagrees"),
        ({"value_and_grad": line, "compiled": True, "vectorized": True}, "either compiled or vectorized"),
        ({"value_and_grad": plain_normal, "data": (1.0,)}, "data is for compiled=True"),
        ({"value_and_grad": compiled_normal, "compiled": True, "data": [1.0]}, "data must be arrays and numbers"),
        ({"value_and_grad": 3, "compiled": True}, "must be a function"),
    ],
)
def test_mistakes_are_told_in_one_sentence(settings, message):
    with pytest.raises(ValueError, match=message):
        mcmc.sample(mcmc.NUTS(**settings), np.ones(1), random_state=0)


def test_data_of_all_kinds_reach_the_density():
    def density(x, gradient, data):
        (table, (numbers, count)), scale = data
        gradient[0] = table[0, 1] + numbers[2] + count + scale + table.shape[1]
        return gradient[0]

    table = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    strided = np.arange(10, dtype=np.int32)[::2]
    value, gradient = CompiledDensity(density, ((table, (strided, np.int64(7))), np.float64(0.5)))(np.ones(1))
    assert value == gradient[0] == 1 + 4 + 7 + 0.5 + 3


def test_other_data_need_no_other_code_and_kernels_can_be_blocks_of_gibbs():
    first, second = (CompiledDensity(compiled_normal, DATA._replace(factor=f)) for f in (1.0, 3.0))
    assert first.target.function == second.target.function
    assert second(np.zeros(3))[0] == pytest.approx(3 * first(np.zeros(3))[0])

    def block(rest):
        return mcmc.NUTS(compiled_normal, compiled=True, data=DATA._replace(mean=MEAN + rest["shift"]), step_size=0.5)

    gibbs = mcmc.Gibbs({"x": mcmc.Conditional(block), "shift": lambda rng, position: rng.normal(0, 1e-9)})
    trace = mcmc.sample(gibbs, {"x": MEAN, "shift": 0.0}, n_draws=300, n_warmup=50, random_state=0, warn=False)
    for k in range(3):
        draws = trace["x"][..., k]
        assert draws.mean() == pytest.approx(MEAN[k], abs=5.5 * mcmc.mcse_mean(draws))


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_variances_are_those_of_numpy_whatever_comes_in_one_piece(dense, offset):
    positions = np.random.default_rng(0).normal(size=(60, 3)) + offset
    positions[0] -= offset
    one_by_one, pieces = RunningVariance(3, dense=dense), RunningVariance(3, dense=dense)
    for row in positions:
        one_by_one.add(row)
    for begin, end in ((0, 1), (1, 25), (25, 60)):
        pieces.add_rows(positions[begin:end])
    assert_array_equal(pieces.covariance, one_by_one.covariance)
    assert_array_equal(pieces.mean, one_by_one.mean)
    expected = np.cov(positions.T)
    assert_allclose(pieces.covariance, expected if dense else np.diag(expected), rtol=1e-9)
    assert_allclose(pieces.mean, positions.mean(axis=0), rtol=1e-12, atol=1e-12)
