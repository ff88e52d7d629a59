"""R-hat, effective sizes and errors against ArviZ and against laws that they must obey."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from pluri.inference import mcmc


def autoregressive(rho, shape, rng):
    noise = rng.normal(size=shape)
    values = np.empty(shape)
    values[:, 0] = noise[:, 0]
    for step in range(1, shape[1]):
        values[:, step] = rho * values[:, step - 1] + np.sqrt(1 - rho**2) * noise[:, step]
    return values


def examples():
    rng = np.random.default_rng(0)
    yield "independent", rng.normal(size=(4, 500))
    yield "correlated", autoregressive(0.9, (4, 1000), rng)
    yield "antithetic", autoregressive(-0.6, (4, 1000), rng)
    yield "heavy tails", rng.standard_cauchy(size=(4, 400))
    yield "chains apart", rng.normal(size=(4, 300)) + np.arange(4)[:, None]
    yield "different spread", rng.normal(size=(4, 300)) * np.array([1, 1, 1, 5.0])[:, None]
    yield "ties", rng.integers(0, 3, size=(3, 401)).astype(float)
    yield "one chain", rng.normal(size=(1, 101))


@pytest.mark.parametrize(("name", "draws"), list(examples()), ids=lambda value: value if isinstance(value, str) else "")
def test_diagnostics_equal_those_of_arviz(name, draws):
    arviz = pytest.importorskip("arviz")
    if len(draws) > 1:
        assert_allclose(mcmc.r_hat(draws), arviz.rhat(draws), rtol=1e-10)
    assert_allclose(mcmc.ess_bulk(draws), arviz.ess(draws, method="bulk"), rtol=1e-6)
    assert_allclose(mcmc.ess_mean(draws), arviz.ess(draws, method="mean"), rtol=1e-6)
    assert_allclose(mcmc.mcse_mean(draws), arviz.mcse(draws, method="mean"), rtol=1e-6)
    assert_allclose(mcmc.ess_tail(draws), arviz.ess(draws, method="tail", prob=(0.05, 0.95)), rtol=1e-6)
    if name != "heavy tails":
        # The probability is the second argument, called hdi_prob up to ArviZ 0.23 and prob from 1.0 on.
        assert_allclose(mcmc.highest_density_interval(draws, 0.9), arviz.hdi(draws.ravel(), 0.9), rtol=0.02)


def test_effective_size_of_an_autoregression_is_known():
    # n (1 - rho) / (1 + rho); an estimate is off by some 10 %, the mean of 40 by 2 %, and biased a little.
    rng = np.random.default_rng(1)
    for rho in (0.5, 0.9, -0.5):
        found = [mcmc.ess_mean(autoregressive(rho, (4, 1000), rng)) for _ in range(40)]
        assert_allclose(np.mean(found), 4000 * (1 - rho) / (1 + rho), rtol=0.12)


def test_error_of_the_standard_deviation_is_the_one_seen_over_repetitions():
    rng = np.random.default_rng(2)
    repetitions = [autoregressive(0.5, (2, 500), rng) for _ in range(800)]
    seen = np.std([draws.std(ddof=1) for draws in repetitions])
    stated = np.mean([mcmc.mcse_sd(draws) for draws in repetitions])
    assert_allclose(stated, seen, rtol=0.14)  # relative error of `seen` is 1/sqrt(1600); the bound is 5.6 of those


@given(st.integers(1, 4), st.integers(0, 3))
def test_too_few_draws_have_no_diagnostics(n_chains, n_draws):
    assert np.isnan(mcmc.r_hat(np.zeros((n_chains, n_draws))))


@pytest.mark.parametrize("draws", [np.zeros((4, 100)), np.full((4, 100), np.nan), np.full((2, 50), np.inf)])
def test_draws_that_never_move_or_are_not_finite_have_no_diagnostics(draws):
    assert np.isnan(mcmc.r_hat(draws))
    assert np.isnan(mcmc.ess_bulk(draws))
    assert np.isnan(mcmc.ess_tail(draws))


def test_chains_stuck_at_different_values_have_infinite_r_hat():
    assert mcmc.r_hat(np.repeat([[0.0], [1.0]], 100, axis=1)) == np.inf


def test_diagnostics_do_not_depend_on_a_monotone_change_of_scale():
    draws = autoregressive(0.5, (4, 200), np.random.default_rng(3))
    assert_allclose(mcmc.ess_bulk(np.exp(draws)), mcmc.ess_bulk(draws))
    assert_allclose(mcmc.ess_tail(np.exp(draws)), mcmc.ess_tail(draws))


def test_wrong_shape_is_refused():
    with pytest.raises(ValueError, match=r"\(n_chains, n_draws\)"):
        mcmc.r_hat(np.zeros(10))
    with pytest.raises(ValueError, match="mass"):
        mcmc.highest_density_interval(np.zeros(10), 1.5)


def test_autocorrelation_equals_its_definition():
    draws = np.random.default_rng(4).normal(size=(2, 50))
    centred = draws - draws.mean(axis=1, keepdims=True)
    direct = np.array([[row[: 50 - lag] @ row[lag:] / (row @ row) for lag in range(10)] for row in centred])
    assert_allclose(mcmc.autocorrelation(draws, max_lag=9), direct, atol=1e-12)


def test_diagnose_says_what_the_verdict_says():
    from pluri.inference import mcmc

    rng = np.random.default_rng(0)
    apart = rng.normal(size=(2, 200, 3)) + np.array([[[0.0, 0.0, 0.0]], [[0.0, 5.0, 9.0]]])
    trace = mcmc.Trace({"x": apart, "still": np.zeros((2, 200))})
    verdict = trace.verdict()
    assert (verdict.n_apart, verdict.name, verdict.settled) == (2, "x[2]", False)
    assert trace.diagnose()[0].startswith(
        f"The chains disagree about 2 numbers: R-hat of x[2] is {verdict.r_hat:.3f}, above 1.01."
    )


def test_few_independent_draws_are_seldom_said_to_disagree():
    # 1 % by their centre and 1 % by their spread, for each shape: of 1000, more than 45 with a chance below 1e-6.
    rng = np.random.default_rng(0)
    for shape in ((1, 10), (2, 10), (4, 20)):
        assert sum(not mcmc.judge({"x": rng.normal(size=shape)}, limit=1.01) for _ in range(1000)) <= 45
    for shape in ((1, 10), (2, 10)):
        rising = np.arange(shape[1]) + 0.1 * rng.normal(size=shape)
        assert not mcmc.judge({"x": rising}, limit=1.1)


def test_differences_that_do_not_matter_are_not_told():
    rng = np.random.default_rng(0)
    draws = {name: rng.normal([[0.0], [shift]], size=(2, 50)) for name, shift in (("x", 5.0), ("y", 2.0))}
    assert (mcmc.judge(draws).name, mcmc.judge(draws).settled) == ("x", False)
    assert mcmc.judge(draws, negligible={"x": 6.0}).name == "y"
    assert mcmc.judge(draws, negligible={"x": 6.0, "y": 3.0})
    assert not mcmc.judge(draws, negligible={"x": 4.0, "y": 3.0})
