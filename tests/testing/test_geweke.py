"""Tests of the joint distribution test itself; a correct transition fails with probability 1e-6."""

import numpy as np
import pytest

from pluri import on_interrupt
from pluri.inference import mcmc
from pluri.testing import LongChains, Ranks, geweke_test, invariance_test, kernel_transition


def prior(rng):
    return {"mean": rng.normal(), "log_scale": 0.5 * rng.normal()}


def data(rng, theta):
    return rng.normal(theta["mean"], np.exp(theta["log_scale"]), size=4)


def log_likelihood(theta, y):
    z = (y - theta["mean"]) * np.exp(-theta["log_scale"])
    return float(-0.5 * z @ z - len(y) * theta["log_scale"])


def metropolis(rng, theta, y, *, step=0.8, prior_scale=0.5):
    new = {name: value + step * rng.normal() for name, value in theta.items()}

    def value(t):
        return log_likelihood(t, y) - 0.5 * t["mean"] ** 2 - 0.5 * (t["log_scale"] / prior_scale) ** 2

    return new if np.log(rng.random()) < value(new) - value(theta) else theta


def forgetful(rng, theta, y):
    """Believes in another prior of the scale."""
    return metropolis(rng, theta, y, prior_scale=1.5)


MODES = {
    "replicated": {"n_marginal": 500, "n_successive": 500, "n_steps": 8},
    "ranks": {"n_successive": 400, "n_steps": 19, "mode": Ranks(metropolis)},
    "chain": {"n_marginal": 2000, "n_successive": 8000, "mode": LongChains(thin=3)},
}


@pytest.mark.parametrize("mode", MODES)
def test_a_correct_transition_passes(mode):
    """False-alarm rate 1e-6."""
    result = geweke_test(
        prior, data, metropolis, log_likelihood=log_likelihood, alpha=1e-6, random_state=0, **MODES[mode]
    )
    assert result.passed, result
    assert result.mode == mode
    names = {comparison.quantity for comparison in result.comparisons}
    assert {"mean", "log_scale", "log_likelihood"} | ({"y[0]"} if mode != "ranks" else set()) <= names


@pytest.mark.parametrize("mode", MODES)
def test_a_wrong_belief_is_found(mode):
    settings = MODES[mode] | ({"mode": Ranks(forgetful)} if mode == "ranks" else {})
    result = geweke_test(prior, data, forgetful, log_likelihood=log_likelihood, random_state=0, **settings)
    assert not result.passed
    assert "log_scale" in result.worst.quantity or "log_likelihood" in result.worst.quantity


def test_ranks_need_the_reversed_transition():
    """A Gibbs sweep is not reversible: backwards it visits its blocks in the opposite order."""

    def block(rng, x, i):
        new = x.copy()
        new[i] = rng.normal(0.9 * x[1 - i], np.sqrt(1 - 0.81))
        return new

    def draw(rng):
        a = rng.normal()
        return np.array([a, rng.normal(0.9 * a, np.sqrt(1 - 0.81))])

    def sweep(order):
        def move(rng, x, y):
            for i in order:
                x = block(rng, x, i)
            return x

        return move

    def flow(x, y):  # sees the direction of time
        return {"sum": x[0] + x[1], "gap": x[1] - 0.9 * x[0]}

    settings = {"n_successive": 600, "n_steps": 9, "alpha": 1e-6, "random_state": 0}
    none = lambda rng, x: 0.0  # noqa: E731
    assert geweke_test(draw, none, sweep((0, 1)), flow, mode=Ranks(sweep((1, 0))), **settings).passed
    with pytest.raises(ValueError, match=r"mode must be .* Ranks\(reverse\)"):
        geweke_test(draw, none, sweep((0, 1)), mode="ranks")


def test_results_repeat_and_inputs_stay():
    one, two = (geweke_test(prior, data, metropolis, n_successive=100, n_marginal=100, random_state=7) for _ in "ab")
    assert one.comparisons == two.comparisons


def test_kernels_of_the_library_become_transitions():
    def posterior(y):
        return mcmc.HMC(lambda x: (-0.5 * x @ x - 0.5 * (y - x) @ (y - x), y - 2 * x), step_size=0.5, n_leapfrog=3)

    result = geweke_test(
        lambda rng: rng.normal(size=2), lambda rng, x: rng.normal(x), kernel_transition(posterior, n_steps=2),
        n_steps=2, n_successive=300, n_marginal=300, alpha=1e-6, random_state=0,
    )  # fmt: skip
    assert result.passed


def test_ctrl_c_keeps_the_replications_made():
    calls = []

    def interrupted(rng, theta, y):
        calls.append(0)
        if len(calls) == 500:
            raise KeyboardInterrupt
        return metropolis(rng, theta, y)

    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted after 99 of 1000"):
        result = geweke_test(prior, data, interrupted, n_steps=5, random_state=0)
    assert result.interrupted
    calls.clear()
    calls.extend([0] * 490)
    with pytest.raises(KeyboardInterrupt):
        geweke_test(prior, data, interrupted, n_steps=5, random_state=0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mode": "magic"}, "mode must be"),
        ({"n_steps": 0}, "n_steps must be an integer of at least 1, got 0"),
        ({"n_successive": 3}, "n_successive must be an integer of at least 20"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        geweke_test(prior, data, metropolis, **settings)


def test_shapes_that_vary_need_statistics():
    with pytest.raises(ValueError, match="change their shape need `statistics`"):
        geweke_test(
            lambda rng: rng.normal(size=rng.integers(1, 4)), lambda rng, x: x.sum(), lambda rng, x, y: x, n_steps=1
        )


# Invariance ---------------------------------------------------------------------------------------------------------


def autoregression(rng, x, *, rho=0.95, scale=1.0):
    return rho * x + scale * np.sqrt(1 - rho**2) * rng.normal(size=2)


def test_invariance_passes_and_fails_as_it_should():
    """False-alarm rate 1e-6; the second kernel's variance is wrong by a fifth of what five slow steps can do."""
    exact = lambda rng: rng.normal(size=2)  # noqa: E731
    assert invariance_test(autoregression, exact, 5, alpha=1e-6, random_state=0).passed
    assert invariance_test(autoregression, exact, 5, reversible=True, alpha=1e-6, random_state=0).passed
    wrong = lambda rng, x: autoregression(rng, x, scale=1.3)  # noqa: E731
    results = [invariance_test(wrong, exact, 5, reversible=True, random_state=seed) for seed in range(10)]
    assert not any(result.passed for result in results)
    # Pairs tell the most in four seeds of five: in none of ten once in ten million.
    assert any(result.worst.test.startswith("paired") for result in results)


def test_invariance_of_given_draws():
    draws = np.random.default_rng(0).normal(size=(2000, 2))
    result = invariance_test(autoregression, draws, 3, alpha=1e-6, random_state=0)
    assert result.passed
    assert len(result.stages) == 1
    assert not invariance_test(lambda rng, x: 0.8 * x, draws, 1, random_state=0).passed
    with pytest.raises(ValueError, match="at least 40 draws, got 5"):
        invariance_test(autoregression, draws[:5])


def test_bad_kernels_are_refused():
    with pytest.raises(ValueError, match="kernel must have init and step"):
        invariance_test(3, lambda rng: rng.normal())
    with pytest.raises(ValueError, match="n_steps"):
        invariance_test(autoregression, lambda rng: rng.normal(size=2), 0)
