"""Annealed importance sampling given bad densities, bad samplers, bad moves, or Ctrl-C."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from pluri import on_interrupt
from pluri.inference.ais.annealed_importance import AnnealedImportanceSampler, log_evidence
from pluri.inference.ais.pilot import AnnealingPlan
from pluri.inference.ais.transitions import RandomWalkMoves


def log_prior(x):
    return -0.5 * np.square(x).sum(axis=1)


def log_target(x):
    return -2.0 * np.square(x - 1.0).sum(axis=1)


def draw(rng, n):
    return rng.normal(size=(n, 2))


def sampler(**changes):
    settings = {
        "log_target": log_target, "log_prior": log_prior, "sample_prior": draw, "n_runs": 60, "n_temperatures": 10,
        "random_state": 0, "warn": False,
    } | changes  # fmt: skip
    return AnnealedImportanceSampler(**settings)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"log_target": lambda x: np.full(len(x), np.nan)}, "log_target must be a number below infinity, got nan"),
        ({"log_target": lambda x: np.full(len(x), np.inf)}, "log_target must be a number below infinity, got inf"),
        ({"log_target": lambda x: np.full(len(x), -np.inf)}, "log_target is -inf at all .* draws of sample_prior"),
        ({"log_target": lambda x: np.zeros(len(x))}, "log_target is the same everywhere"),
        ({"log_target": lambda x: x}, "log_target must give one number for each"),
        ({"log_target": lambda x: 0.0}, "vectorized=False"),
        ({"log_target": None}, "either log_target or log_likelihood"),
        ({"log_likelihood": log_target}, "either log_target or log_likelihood"),
        ({"log_prior": lambda x: np.where(x[:, 0] > 0, 0.0, -np.inf)}, "log_prior must be finite at the draws"),
        ({"log_prior": None}, "log_prior must be a function, got NoneType"),
        ({"sample_prior": 1}, "sample_prior must be a function, got int"),
        ({"sample_prior": lambda rng, n: rng.normal(size=n)}, "for one dimension give"),
        ({"sample_prior": lambda rng, n: rng.normal(size=(3, 2))}, r"got shape \(3, 2\)"),
        ({"sample_prior": lambda rng, n: np.zeros((n, 2))}, "same value in coordinate 0 of all .* draws"),
        ({"sample_prior": lambda rng, n: rng.normal(size=(n, 2)) * [1, 0]}, "same value in coordinate 1"),
        ({"sample_prior": lambda rng, n: np.full((n, 2), np.inf)}, "sample_prior must give finite numbers"),
        ({"sample_prior": lambda rng, n: rng.normal(size=(n, 2, 2))}, "sample_prior must give vectors"),
        ({"n_temperatures": 0}, "n_temperatures must be an integer of at least 1, got 0"),
        ({"n_runs": 2.5}, "n_runs must be an integer of at least 1, got 2.5"),
        ({"n_steps_per_temperature": 0}, "n_steps_per_temperature must be"),
        ({"n_pilot": 1}, "n_pilot must be"),
        ({"schedule": "cubic"}, "schedule must be one of linear, geometric, sigmoid, mixed, adaptive"),
        ({"schedule": [0.0, 0.5, 0.5, 1.0]}, "schedule must rise from 0 to 1"),
        ({"schedule": [0.1, 1.0]}, "schedule must rise from 0 to 1"),
        ({"conditional_ess": 1.0}, "conditional_ess must be a number above 0 and below 1, got 1.0"),
        ({"transition": lambda rng, x, beta: x[:, :1]}, "transition must give points of the same shape"),
        ({"random_state": "x"}, "random_state must be"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(changes, message):
    with pytest.raises(ValueError, match=message):
        sampler(**changes).run()


def test_a_transition_that_leaves_the_support_is_refused():
    path = {
        "log_target": lambda x: np.where(x[:, 0] < 1, x[:, 0], -np.inf),
        "log_prior": lambda x: np.zeros(len(x)),
        "sample_prior": lambda rng, n: rng.uniform(0, 1, (n, 2)),
    }
    with pytest.raises(ValueError, match="transition moved 60 of 60 points to where the density"):
        sampler(**path, transition=lambda rng, x, beta: x + 1.0).run()


def test_a_target_out_of_reach_ends_an_adaptive_schedule(monkeypatch):
    monkeypatch.setattr("pluri.inference.ais.pilot.MOST_TEMPERATURES", 20)
    with pytest.raises(ValueError, match="adaptive schedule reached only beta"):
        sampler(log_target=lambda x: -1e6 * np.square(x - 5).sum(axis=1), schedule="adaptive").run()


def test_runs_of_target_zero_have_weight_zero_and_the_rest_is_right():
    # The target is half of the prior: half of all runs begin where it is zero.
    run = sampler(
        log_target=lambda x: np.where(x[:, 0] > 0, log_prior(x), -np.inf), n_runs=4000, transition="mh"
    ).run()  # fmt: skip
    assert np.exp(run.log_z) == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(4000))  # a false alarm in 2 million
    assert (run.log_weights == -np.inf).mean() == pytest.approx(0.5, abs=0.05)


def test_undefined_and_uncovered_proposals_are_told():
    def partly(x):
        return np.where(x[:, 0] > 2.5, np.nan, log_target(x))

    rng = np.random.default_rng(0)
    starts = rng.normal(size=(20_000, 2))
    starts = starts[(starts[:, 0] < 1.0)]
    run = sampler(log_target=partly, sample_prior=lambda rng, n: rng.choice(starts, n)).run()
    assert any("NaN or +inf" in problem for problem in run.diagnose())
    run = sampler(
        log_prior=lambda x: np.where((np.abs(x) < 1).all(axis=1), 0.0, -np.inf),
        sample_prior=lambda rng, n: rng.uniform(-1, 1, (n, 2)),
    ).run()
    assert any("prior must be positive wherever the target is" in problem for problem in run.diagnose())


def test_moves_that_are_never_accepted_are_told():
    run = sampler(transition=RandomWalkMoves((1e4,))).run()
    assert any("fewer than 1% of the moves were accepted" in problem for problem in run.diagnose())


def test_problems_are_given_as_warnings():
    with pytest.warns(ConvergenceWarning) as caught:
        sampler(log_target=lambda x: -50.0 * np.square(x - 4).sum(1), n_temperatures=2, warn=True).run()
    assert any("effective" in str(warning.message) for warning in caught)
    assert all(warning.filename == __file__ for warning in caught)


@pytest.mark.parametrize(
    ("draws", "message"),
    [
        (np.zeros(3), "draws must be numbers of shape"),
        (np.zeros((0, 2)), "draws must be numbers of shape"),
        ([[0.0, 5.0]], "log_prior is -inf at 1 of 1 draws of the target"),
        ([[0.0, np.nan]], "must be finite at the draws of the target"),
    ],
)
def test_bad_draws_of_the_target_are_refused(draws, message):
    box = {
        "log_prior": lambda x: np.where((np.abs(x) > 3).any(axis=1), -np.inf, 0.0),
        "sample_prior": lambda rng, n: rng.uniform(-3, 3, (n, 2)),
    }
    with pytest.raises(ValueError, match=message):
        sampler(**box).run_reverse(draws)


def test_a_plan_needs_moves_for_each_temperature():
    with pytest.raises(ValueError, match="moves for each of 2 betas"):
        AnnealingPlan(np.array([0.0, 1.0]), ())


def interrupting(n_calls):
    calls = []

    def move(rng, x, beta):
        calls.append(beta)
        if len(calls) == n_calls:
            raise KeyboardInterrupt
        return rng.normal(4 * beta / (1 + 3 * beta), 1 / np.sqrt(1 + 3 * beta), x.shape)

    return move


def test_ctrl_c_keeps_the_temperatures_that_are_done_and_says_what_they_are():
    one = sampler(transition=interrupting(6), n_runs=2000)
    with on_interrupt("keep"), pytest.warns(UserWarning, match="not an estimate for the end of the path"):
        run = one.run()
    assert run.interrupted
    assert "interrupted" in repr(run)
    beta = run.betas[-1]
    assert beta == pytest.approx(0.6)
    assert len(run.betas) == len(run.acceptance) == len(run.mean_gain) == run.log_weight_paths.shape[1] == 7
    # What is kept is right for the temperature reached: log Z(b) in closed form, two dimensions.
    precise = 1 + 3 * beta
    exact = 2 * (-0.5 * np.log(precise) + 0.5 * (4 * beta) ** 2 / precise - 2 * beta)
    assert run.log_z == pytest.approx(exact, abs=5 * run.log_z_se)
    assert run.expect().value == pytest.approx(4 * beta / precise, abs=0.2)


def test_ctrl_c_before_anything_is_done_goes_through():
    def never(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sampler(log_target=never).run()


def test_ctrl_c_in_the_reverse_run_keeps_what_is_done():
    draws = np.random.default_rng(0).normal(1, 0.5, (500, 2))
    with on_interrupt("keep"), pytest.warns(UserWarning, match="Interrupted at beta = 0.7"):
        run = sampler(transition=interrupting(3)).run_reverse(draws)
    assert run.betas.tolist() == pytest.approx([1.0, 0.9, 0.8, 0.7])


def test_a_constant_likelihood_is_its_own_evidence():
    found = log_evidence(lambda x: log_prior(x) - np.log(2 * np.pi), lambda x: np.full(len(x), -3.0), draw, n_runs=50)
    assert found.value == pytest.approx(-3.0, abs=1e-9)
    assert found.standard_error == pytest.approx(0.0, abs=1e-6)


def test_progress_is_shown_when_asked_for(capsys):
    sampler(verbose=2, n_temperatures=3).run()
    assert capsys.readouterr().err.count("\n") >= 3


def test_results_repeat_for_a_random_state_and_inputs_are_not_changed():
    first, second = sampler(schedule="adaptive").run(), sampler(schedule="adaptive").run()
    np.testing.assert_array_equal(first.x, second.x)
    np.testing.assert_array_equal(first.betas, second.betas)
    schedule = np.array([0.0, 0.3, 1.0])
    sampler(schedule=schedule).run().betas[0] = 5.0
    np.testing.assert_array_equal(schedule, [0.0, 0.3, 1.0])
