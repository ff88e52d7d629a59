"""Slice sampling against known distributions."""

import math

import numpy as np
import pytest
from scipy import stats

from pluri.inference import mcmc
from pluri.inference.mcmc.slice_intervals import Slicing, slice_line
from pluri.inference.mcmc.slice_sampling import Slice

MODES = ("coordinate", "direction", "box")


def normal(x):
    return -0.5 * float(x @ x)


def exponential(x):
    return -float(x[0]) if x[0] >= 0 else -math.inf


def arcsine(x):
    return -0.5 * math.log(x[0] * (1 - x[0])) if 0 < x[0] < 1 else -math.inf


def one_to_three(x):
    return normal(x) if 1 <= x[0] <= 3 else -math.inf


def bimodal(x):
    return float(np.logaddexp(math.log(0.3) - 0.5 * (x[0] - 3) ** 2, math.log(0.7) - 0.5 * (x[0] + 3) ** 2))


# Each with its law and its bounds.
TARGETS = {
    "exponential": (exponential, stats.expon(), (0, np.inf)),
    "arcsine": (arcsine, stats.beta(0.5, 0.5), (0, 1)),
    "truncated normal": (one_to_three, stats.truncnorm(1, 3), (1, 3)),
    "normal": (normal, stats.norm(), None),
}


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize(
    "options",
    [
        {}, {"bounds": True}, {"width": 20.0}, {"width": 0.2, "max_steps": 5}, {"expansion": "double", "width": 0.2},
        {"mode": "direction", "bounds": True}, {"mode": "box", "width": 4.0},
    ],
    ids=str,
)  # fmt: skip
def test_draws_follow_the_target(name, options):
    # Exact draws must stay exact: Kolmogorov-Smirnov at level 1e-8 for each of 28 cases.
    target, law, bounds = TARGETS[name]
    options = {**options, "bounds": bounds if options.get("bounds") else None}
    kernel = Slice(target, adapt=False, **options)
    rng = np.random.default_rng(0)
    draws = []
    for value in law.rvs(1600, random_state=1):
        state = kernel.init(rng, np.array([value]))
        for _ in range(2):
            state, _ = kernel.step(rng, state)
        draws.append(state.position[0])
    assert stats.kstest(draws, law.cdf).pvalue > 1e-8


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("expansion", ["step", "double"])
def test_correlated_vectors_keep_their_law(mode, expansion):
    covariance = np.array([[1.0, 1.2], [1.2, 4.0]])
    precision = np.linalg.inv(covariance)
    kernel = Slice(lambda x: -0.5 * float(x @ precision @ x), width=3.0, mode=mode, expansion=expansion)
    rng = np.random.default_rng(2)
    starts = rng.multivariate_normal(np.zeros(2), covariance, size=1200)
    ends = np.array([kernel.step(rng, kernel.init(rng, start))[0].position for start in starts])
    assert not np.array_equal(starts, ends)
    white = ends @ np.linalg.cholesky(precision)
    for direction in (white[:, 0], white[:, 1], white.sum(axis=1) / math.sqrt(2)):
        assert stats.kstest(direction, "norm").pvalue > 1e-7  # 18 of them


def test_the_width_changes_the_cost_and_not_the_law():
    costs, quantiles = [], []
    for width in (0.3, 2.5, 60.0):
        kernel = Slice(normal, width=width, adapt=False)
        trace = mcmc.sample(kernel, np.zeros(1), n_draws=2000, n_warmup=0, n_chains=2, random_state=0)
        costs.append(trace.stats["n_evaluations"].mean())
        quantiles.append(np.quantile(trace["x"], [0.1, 0.5, 0.9]))
    assert costs[1] < min(costs[0], costs[2])
    np.testing.assert_allclose(quantiles, [stats.norm.ppf([0.1, 0.5, 0.9])] * 3, atol=0.2)  # six standard errors


def test_the_warm_up_finds_widths_that_need_few_evaluations():
    scales = np.array([1e-4, 1.0, 1e4])
    kernel = Slice(lambda x: -0.5 * float(((x / scales) ** 2).sum()), width=1.0, expansion="double")
    trace = mcmc.sample(kernel, np.zeros(3), n_draws=300, n_warmup=400, n_chains=2, random_state=0, warn=False)
    assert trace.stats["n_evaluations"].mean() / 3 < 9
    widths = trace.ends[0].kernel.width / scales
    assert (widths > 1).all()
    assert (widths < 50).all()


@pytest.mark.parametrize("mode", ["direction", "box"])
def test_the_warm_up_of_the_other_modes_follows_the_spread(mode):
    scales = np.array([0.01, 10.0])
    kernel = Slice(lambda x: -0.5 * float(((x / scales) ** 2).sum()), width=1.0, mode=mode)
    trace = mcmc.sample(kernel, np.zeros(2), n_draws=100, n_warmup=600, n_chains=1, random_state=0, warn=False)
    widths = trace.ends[0].kernel.width / scales
    assert 0.3 < widths[0] / widths[1] < 3


def test_a_bounded_uniform_target_is_accepted_at_once():
    kernel = Slice(lambda x: 0.0, width=100.0, bounds=(0.0, 1.0), adapt=False)
    trace = mcmc.sample(kernel, np.array([0.5]), n_draws=500, n_warmup=0, n_chains=1, random_state=0)
    # An end of the first interval falls between the bounds, and is asked for, once in a hundred steps.
    assert (trace.stats["n_evaluations"] == 1).mean() > 0.95
    assert stats.kstest(trace.flat("x")[:, 0], "uniform").pvalue > 1e-6


def test_a_wide_interval_mixes_two_modes_and_a_narrow_one_gets_stuck():
    wide = Slice(bimodal, width=10.0, adapt=False)
    trace = mcmc.sample(wide, np.array([-3.0]), n_draws=4000, n_warmup=50, n_chains=2, random_state=0, warn=False)
    x = trace["x"][..., 0]
    assert x.mean() == pytest.approx(-1.2, abs=5.5 * mcmc.mcse_mean(x))  # 1e-7
    assert x.var() == pytest.approx(8.56, abs=5.5 * 2 * x.std() * mcmc.mcse_sd(x))
    # A step is at most 0.04 long: 500 of them wander by 0.3, and the valley is 3 away.
    narrow = Slice(bimodal, width=0.02, max_steps=2, adapt=False)
    trace = mcmc.sample(narrow, np.array([-3.0]), n_draws=500, n_warmup=0, n_chains=2, random_state=0, warn=False)
    assert (trace["x"] < 0).all()


def test_the_funnel_has_the_right_neck():
    # v ~ N(0, 9), x | v ~ N(0, exp(v)): the marginal of v is known; 7 errors, which slow chains estimate
    # roughly.
    def funnel(x):
        return -0.5 * x[0] ** 2 / 9 - 0.5 * x[1] ** 2 * math.exp(-x[0]) - 0.5 * x[0]

    kernel = Slice(funnel, width=[5.0, 3.0], adapt=False)
    trace = mcmc.sample(kernel, np.zeros(2), n_draws=3000, n_warmup=100, n_chains=2, random_state=1, warn=False)
    v = trace["x"][..., 0]
    assert v.mean() == pytest.approx(0.0, abs=7 * mcmc.mcse_mean(v))
    assert v.std() == pytest.approx(3.0, abs=7 * mcmc.mcse_sd(v))


def test_heavy_tails_are_no_flat_target():
    kernel = Slice(lambda x: -math.log1p(float(x[0]) ** 2), width=1.0)
    trace = mcmc.sample(kernel, np.zeros(1), n_draws=3000, n_warmup=200, n_chains=1, random_state=0, warn=False)
    assert stats.kstest(trace.flat("x")[::10, 0], "cauchy").pvalue > 1e-7


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("max_steps", [None, 3])
def test_a_flat_target_is_refused_in_words(mode, max_steps):
    kernel = Slice(lambda x: 1.0, mode=mode, max_steps=max_steps)
    with pytest.raises(ValueError, match="never ends"):
        mcmc.sample(kernel, np.zeros(2), n_draws=5, n_warmup=5, random_state=0)


@pytest.mark.parametrize("expansion", ["step", "double"])
def test_a_half_flat_target_is_refused_without_a_warm_up(expansion):
    kernel = Slice(lambda x: min(float(x[0]), 0.0), expansion=expansion)
    with pytest.raises(ValueError, match="never ends"):
        mcmc.sample(kernel, np.zeros(1), n_draws=50, n_warmup=0, random_state=0)


def test_a_density_that_changes_from_call_to_call_is_refused():
    values = iter([0.0])
    kernel = Slice(lambda x: next(values, -1e9), adapt=False)
    rng = np.random.default_rng(0)
    state = kernel.init(rng, np.zeros(1))
    with pytest.raises(ValueError, match="shrank 200 times"):
        kernel.step(rng, state)


def test_nan_is_outside_the_slice_and_counted():
    kernel = Slice(lambda x: math.nan if x[0] < 0 else -float(x[0]), width=2.0, adapt=False)
    trace = mcmc.sample(kernel, np.ones(1), n_draws=1000, n_warmup=0, n_chains=1, random_state=0, warn=False)
    assert trace["x"].min() >= 0
    assert trace.stats["undefined"].sum() > 0
    assert any("NaN" in sentence for sentence in trace.diagnose())


def test_plus_infinity_is_an_error():
    kernel = Slice(lambda x: math.inf if x[0] > 0.5 else normal(x), width=3.0, adapt=False)
    with pytest.raises(ValueError, match=r"\+inf"):
        mcmc.sample(kernel, np.zeros(1), n_draws=20, n_warmup=0, random_state=0)


def test_doubling_tests_its_new_point():
    # Two well separated modes and a width that makes the interval depend on the side: without the test of the new
    # point the law would be wrong; with it, one thousand exact draws stay exact.
    rng = np.random.default_rng(5)
    side = rng.random(1500) < 0.3
    starts = np.where(side, 3.0, -3.0) + rng.standard_normal(1500)
    slicing = Slicing(bimodal)
    ends = [
        slice_line(rng, slicing, lambda t: np.array([t]), s, bimodal([s]), 1.0, -np.inf, np.inf, None, "double")[0]
        for s in starts
    ]
    cdf = lambda t: 0.3 * stats.norm.cdf(t - 3) + 0.7 * stats.norm.cdf(t + 3)  # noqa: E731
    assert stats.kstest(ends, cdf).pvalue > 1e-6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 0.0}, "width must be positive"),
        ({"max_steps": 0}, "max_steps must be"),
        ({"mode": "diagonal"}, "mode must be one of"),
        ({"bounds": (1.0, 1.0)}, "bounds must leave room"),
        ({"bounds": (1.0, 2.0)}, "within the bounds"),
        ({"width": [1.0, 2.0, 3.0]}, "width must have 2 entries"),
    ],
)
def test_what_cannot_work_is_refused_in_one_sentence(options, message):
    with pytest.raises(ValueError, match=message):
        Slice(normal, **options).init(None, np.zeros(2))
