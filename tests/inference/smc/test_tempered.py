"""Tempered sequential Monte Carlo: evidence and posterior against closed forms; hard likelihoods; abuse; Ctrl-C."""

from dataclasses import fields

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from pluri import on_interrupt
from pluri.inference import mcmc
from pluri.inference.smc.tempered import Cooling, tempered_smc

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
Y = X @ np.array([1.0, -0.5, 2.0]) + 0.5 * RNG.normal(size=30)
PRECISION = X.T @ X / 0.25 + np.eye(3) / 4
MEAN = np.linalg.solve(PRECISION, X.T @ Y / 0.25)
MARGINAL = 0.25 * np.eye(30) + 4.0 * X @ X.T
EXACT = -0.5 * (30 * np.log(2 * np.pi) + np.linalg.slogdet(MARGINAL)[1] + Y @ np.linalg.solve(MARGINAL, Y))


def log_prior(b):
    return -np.square(b).sum(axis=1) / 8 - 1.5 * np.log(8 * np.pi)


def log_likelihood(b):
    return -2 * np.square(Y - b @ X.T).sum(axis=1) - 15 * np.log(0.5 * np.pi)


def draw(rng, n):
    return rng.normal(0, 2, (n, 3))


COOLING = [field.name for field in fields(Cooling)]
GRADIENTS = {"grad_log_prior": lambda b: -b / 4, "grad_log_likelihood": lambda b: 4 * (Y - b @ X.T) @ X}


def run(**changes):
    cooling = {name: changes.pop(name) for name in COOLING if name in changes}
    settings = {
        "log_prior": log_prior, "log_likelihood": log_likelihood, "sample_prior": draw, "n_particles": 400,
        "random_state": 0, "warn": False, "cooling": Cooling(**cooling),
    } | (GRADIENTS if changes.get("transition") == "hmc" else {}) | changes  # fmt: skip
    return tempered_smc(**settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"n_steps": 10},
        {"transition": "hmc", "n_steps": 2, "resampling": "residual"},
        {"transition": "slice", "n_steps": 1, "resampling": "stratified"},
        {"transition": "hmc", "waste_free": True, "n_steps": 8, "resampling": "multinomial"},
    ],
)
def test_the_evidence_is_right_over_repeats(settings):
    results = [run(random_state=seed, **settings) for seed in range(20)]
    ratios = np.exp([result.log_z - EXACT for result in results])
    # Student with 19 degrees of freedom goes beyond 7.5 once in 2 million; the estimate is skewed besides.
    assert abs(ratios.mean() - 1.0) < 7.5 * ratios.std(ddof=1) / np.sqrt(20)
    assert ratios.std() < 0.5
    assert np.std([result.log_z for result in results]) < 4 * results[0].log_z_se


@pytest.mark.parametrize("waste_free", [False, True])
def test_the_particles_follow_the_posterior(waste_free):
    result = run(n_particles=4000, n_steps=20, waste_free=waste_free, ess_target=0.7)
    assert result.x.shape == (4000, 3)
    covariance = np.linalg.inv(PRECISION)
    scale = np.sqrt(np.diagonal(covariance))
    # Correlated particles: an effective few hundred of 4000, so that 0.25 sd is about four standard errors.
    assert np.abs(result.x.mean(axis=0) - MEAN).max() < 0.25 * scale.max()
    np.testing.assert_allclose(
        np.cov(result.x.T) / np.outer(scale, scale), covariance / np.outer(scale, scale), atol=0.25
    )
    np.testing.assert_allclose(result.log_prior, log_prior(result.x))
    np.testing.assert_allclose(result.log_likelihood, log_likelihood(result.x))
    trace = result.to_trace()
    assert trace["x"].shape == (1, 4000, 3)
    np.testing.assert_allclose(trace.stats["log_density"][0], log_prior(result.x) + log_likelihood(result.x))


def test_each_step_leaves_the_wanted_share_effective():
    result = run(ess_target=0.8, transition="mh")
    assert result.betas[0] == 0
    assert result.betas[-1] == 1
    assert (np.diff(result.betas) > 0).all()
    assert result.ess[1:-1] == pytest.approx(0.8 * 400, rel=1e-3)
    assert result.ess[-1] >= 0.8 * 400
    assert result.acceptance[1:] == pytest.approx(0.3, abs=0.12)
    assert len(run(ess_target=0.3).betas) < len(result.betas)
    area = np.diff(result.betas) @ (result.mean_log_likelihood[1:] + result.mean_log_likelihood[:-1]) / 2
    assert np.isfinite(area)
    assert result.log_z_by_temperature[-1] == result.log_z


def test_a_constant_likelihood_takes_one_step():
    result = run(log_likelihood=lambda b: np.full(len(b), 7.0))
    assert result.betas.tolist() == [0.0, 1.0]
    assert result.log_z == pytest.approx(7.0)
    assert result.log_z_se == pytest.approx(0.0, abs=1e-6)


def test_a_likelihood_that_is_zero_almost_everywhere_is_counted():
    # A tenth of the prior survives; the constant is that tenth.
    result = run(
        log_prior=lambda x: np.where((x > 0) & (x < 1), 0.0, -np.inf)[:, 0],
        log_likelihood=lambda x: np.where(x[:, 0] < 0.1, 0.0, -np.inf),
        sample_prior=lambda rng, n: rng.random((n, 1)),
        n_particles=5000,
    )
    assert np.exp(result.log_z) == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / 5000))
    assert result.x.max() < 0.1
    assert result.x.mean() == pytest.approx(0.05, abs=0.005)


def test_a_kernel_of_a_chain_serves_as_transition():
    def kernel(beta):
        def value_and_grad(b):
            residual = Y - X @ b
            return float(-b @ b / 8 - 2 * beta * residual @ residual), -b / 4 + 4 * beta * X.T @ residual

        return mcmc.HMC(value_and_grad, n_leapfrog=4, check_gradient=False)

    result = run(transition=kernel, n_particles=100, n_steps=1)
    assert result.log_z == pytest.approx(EXACT, abs=1.5)
    assert result.acceptance[1:].min() > 0.5


def test_discrete_states_are_moved_by_a_function():
    # Two coins: P(1) = 1/2 each; likelihood 3 if they agree, else 1. Evidence 2.
    def sweep(rng, z, beta):
        for i in (0, 1):
            agree = 3.0**beta
            chance = np.where(z[:, 1 - i] == 1, agree, 1.0) / (1.0 + agree)
            z[:, i] = rng.random(len(z)) < chance
        return z

    result = run(
        log_prior=lambda z: np.full(len(z), np.log(0.25)),
        log_likelihood=lambda z: np.where(z[:, 0] == z[:, 1], np.log(3.0), 0.0),
        sample_prior=lambda rng, n: rng.integers(0, 2, (n, 2)),
        transition=sweep, n_particles=4000, ess_target=0.95, warn=True,
    )  # fmt: skip
    assert result.log_z == pytest.approx(np.log(2.0), abs=0.04)
    assert (result.x[:, 0] == result.x[:, 1]).mean() == pytest.approx(0.75, abs=0.03)


def test_one_point_at_a_time_gives_the_same():
    together = run(n_particles=40)
    rows = run(
        n_particles=40, vectorized=False,
        log_prior=lambda b: float(log_prior(b[None])[0]), log_likelihood=lambda b: float(log_likelihood(b[None])[0]),
    )  # fmt: skip
    np.testing.assert_allclose(rows.x, together.x, rtol=1e-6)
    assert rows.log_z == pytest.approx(together.log_z)


def test_particles_that_hardly_move_are_warned_of():
    with pytest.warns(ConvergenceWarning) as caught:
        result = run(transition="identity", warn=True)
    assert any("particles are different" in str(warning.message) for warning in caught)
    assert "log Z" in result.summary()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_particles": 1}, "n_particles must be an integer of at least 2, got 1"),
        ({"ess_target": 1.0}, "ess_target must be a number above 0 and below 1, got 1.0"),
        ({"n_steps": 0}, "n_steps must be"),
        ({"resampling": "best"}, "resampling must be one of"),
        ({"waste_free": True, "n_steps": 7}, r"waste_free needs n_steps .* divides n_particles \(400\), got 7"),
        ({"transition": "gibbs"}, "transition must be"),
        ({"log_likelihood": lambda b: np.full(len(b), np.nan)}, "log_likelihood must be a number below infinity"),
        ({"log_likelihood": lambda b: np.full(len(b), -np.inf)}, "log_likelihood is -inf at all 400 draws"),
        ({"log_likelihood": lambda b: b}, "log_likelihood must give one number for each"),
        ({"log_prior": lambda b: np.full(len(b), -np.inf)}, "log_prior must be finite at the draws of sample_prior"),
        ({"sample_prior": lambda rng, n: np.zeros((n, 3))}, "same value in coordinate 0"),
        ({"sample_prior": lambda rng, n: np.zeros((n, 0))}, "at least one coordinate"),
        ({"max_temperatures": 2}, "was reached in max_temperatures = 2 steps"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(changes, message):
    with pytest.raises(ValueError, match=message):
        run(**changes)


def test_proposals_that_are_undefined_are_refused_and_counted():
    result = run(
        log_likelihood=lambda b: np.where(b[:, 0] < 0.9, np.nan, log_likelihood(b)),
        sample_prior=lambda rng, n: np.array([0.9, 0.0, 0.0]) + np.abs(rng.normal(0, 2, (n, 3))),
    )
    assert result.undefined > 0
    assert (result.x[:, 0] >= 0.9).all()
    assert any("NaN or +inf" in problem for problem in result.diagnose())


def test_ctrl_c_keeps_the_last_complete_temperature():
    whole = run()
    calls = []

    def interrupted(b):
        calls.append(len(b))
        if len(calls) > 12:
            raise KeyboardInterrupt
        return log_likelihood(b)

    with on_interrupt("keep"), pytest.warns(UserWarning, match="particles and log_z belong to that temperature"):
        part = run(log_likelihood=interrupted)
    assert part.interrupted
    assert part.betas[-1] < 1
    done = len(part.betas)
    np.testing.assert_array_equal(part.betas, whole.betas[:done])
    assert part.log_z == whole.log_z_by_temperature[done - 1]
    assert "interrupted" in repr(part)
    calls.clear()
    calls.extend([0] * 11)
    with pytest.raises(KeyboardInterrupt):
        run(log_likelihood=interrupted)


def test_progress_is_shown_when_asked_for(capsys):
    run(verbose=2, n_particles=50)
    assert capsys.readouterr().err
