"""Parameters of kernel functions: gradients, recovery, and the posterior against numerical integration."""

import itertools

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from pluri import on_interrupt
from pluri.processes.dpp.learning import (
    count_subsets,
    fit_kernel_parameters,
    sample_kernel_parameters,
    subset_log_probabilities,
)
from pluri.processes.dpp.learning.kernel_posterior import KernelFamily

N = 6
EVERY = [list(one) for size in range(N + 1) for one in itertools.combinations(range(N), size)]
SQUARES = np.subtract.outer(np.linspace(0, 1, N), np.linspace(0, 1, N)) ** 2
TRUTH = np.array([0.25, 2.0])


def kernel(theta):
    return theta[1] * np.exp(-SQUARES / (2 * theta[0] ** 2))


def kernel_gradient(theta):
    L = kernel(theta)
    return np.stack([L * SQUARES / theta[0] ** 3, L / theta[1]])


def diagonal(theta):
    return theta[0] * np.eye(2)


@pytest.fixture(scope="module")
def law():
    return np.exp(subset_log_probabilities(kernel(TRUTH), EVERY))


@pytest.fixture(scope="module")
def draws(law):
    chosen = np.random.default_rng(0).choice(len(EVERY), size=2000, p=law / law.sum())
    return [EVERY[index] for index in chosen]


@pytest.mark.parametrize("positive", [True, False])
@pytest.mark.parametrize("gradient", [kernel_gradient, None])
def test_gradients_equal_differences_of_the_likelihood(draws, positive, gradient):
    family = KernelFamily(kernel, count_subsets(draws, N), np.full(2, positive), gradient)
    free = family.free(np.array([0.3, 1.5]))
    slope = family(free)[1]
    for index in range(2):
        step = np.zeros(2)
        step[index] = 1e-5
        difference = (family.value(free + step) - family.value(free - step)) / 2e-5
        assert slope[index] == pytest.approx(difference, rel=1e-5)


@pytest.mark.parametrize("gradient", [kernel_gradient, None])
def test_the_law_itself_as_weights_gives_the_parameters_back(law, gradient):
    fit = fit_kernel_parameters(
        kernel, [0.5, 0.5], EVERY, sample_weight=law, gradient=gradient, positive=True, tol=1e-14
    )
    np.testing.assert_allclose(fit.parameters, TRUTH, rtol=1e-3)
    np.testing.assert_allclose(fit.L, kernel(fit.parameters))
    assert fit.converged
    assert fit.log_likelihood == pytest.approx(float(law @ np.log(law)), abs=1e-6)
    assert (np.diff(fit.history.objective) >= 0).all()


def test_draws_give_the_parameters_back_within_their_errors(draws):
    fit = fit_kernel_parameters(kernel, [0.5, 0.5], draws, positive=True)
    family = KernelFamily(kernel, count_subsets(draws, N), np.ones(2, dtype=bool), kernel_gradient)
    free = family.free(fit.parameters)
    hessian = np.array([(family(free + s)[1] - family(free - s)[1]) / 2e-4 for s in 1e-4 * np.eye(2)])
    offset = free - np.log(TRUTH)
    # Chi-square with 2 degrees of freedom: above 27.6 once in a million samples.
    assert -len(draws) * offset @ hessian @ offset < 27.6


def test_several_starts_are_at_least_as_good_as_one(draws):
    one = fit_kernel_parameters(kernel, [0.1, 0.1], draws, positive=True)
    several = fit_kernel_parameters(kernel, [0.1, 0.1], draws, positive=True, n_init=4, random_state=1)
    assert several.log_likelihood >= one.log_likelihood - 1e-9
    assert set(several.history.restart) == {0, 1, 2, 3}


@pytest.mark.filterwarnings("ignore:The chains disagree")  # a random walk is slow: R-hat is 1.011 now and then
@pytest.mark.parametrize("inference", ["slice", "random_walk"])
def test_posterior_equals_numerical_integration(inference):
    # Two independent items of odds theta; seen 7 times out of 20. The prior is normal on log theta.
    subsets = [[0], [1], [0, 1], [0], [1], [], [], [], [], [0]]
    trace = sample_kernel_parameters(
        diagonal, [1.0], subsets, prior_scale=1.0, inference=inference, n_draws=600, n_warmup=200, random_state=0
    )
    grid = np.linspace(-6, 4, 4001)
    log = 7 * grid - 20 * np.log1p(np.exp(grid)) - grid**2 / 2
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    mean = weight @ grid
    spread = np.sqrt(weight @ (grid - mean) ** 2)
    found = np.log(trace["theta"])
    assert trace["theta"].shape == (4, 600, 1)
    # Effective sizes exceed 400: 0.3 standard deviations are six standard errors.
    assert abs(found.mean() - mean) < 0.3 * spread
    assert found.std() == pytest.approx(spread, rel=0.25)


def test_a_prior_of_ones_own_is_of_the_parameter_itself():
    # Exponential prior on the odds: density theta^7 (1 + theta)^-20 exp(-theta).
    subsets = [[0], [1], [0, 1], [0], [1], [], [], [], [], [0]]
    trace = sample_kernel_parameters(
        diagonal, [1.0], subsets, log_prior=lambda theta: -theta[0], n_draws=600, n_warmup=200, random_state=0
    )
    grid = np.linspace(1e-4, 20, 200001)
    weight = grid**7 * (1 + grid) ** -20.0 * np.exp(-grid)
    weight /= weight.sum()
    mean = weight @ grid
    spread = np.sqrt(weight @ (grid - mean) ** 2)
    assert abs(trace["theta"].mean() - mean) < 0.3 * spread


def test_bad_input_gets_a_sentence(draws):
    cases = [
        ({"theta0": [0.5, -1.0], "positive": True}, "theta0 must be positive"),
        ({"theta0": [np.nan, 1.0]}, "theta0 must be a vector of finite parameters"),
        ({"theta0": [0.5, 1.0], "positive": [True]}, "positive must be a boolean or one for each"),
        ({"theta0": [0.5, 1.0], "n_init": 0}, "n_init must be an integer"),
        ({"theta0": [1e9, 1.0]}, "theta0 must make all subsets possible, but subset"),
        ({"theta0": [0.5, 1.0], "gradient": lambda theta: kernel(theta)}, "gradient must give shape"),
    ]
    for settings, sentence in cases:
        with pytest.raises(ValueError, match=sentence):
            fit_kernel_parameters(kernel, subsets=draws, **settings)
    with pytest.raises(ValueError, match="must give a finite square matrix"):
        fit_kernel_parameters(lambda theta: theta, [1.0, 2.0], draws)
    with pytest.raises(ValueError, match="kernel_function must be a function"):
        fit_kernel_parameters(np.eye(3), [1.0], draws)
    with pytest.raises(ValueError, match="inference must be"):
        sample_kernel_parameters(diagonal, [1.0], [[0]], inference="nuts")
    with pytest.raises(ValueError, match="prior_scale must be positive"):
        sample_kernel_parameters(diagonal, [1.0], [[0]], prior_scale=0.0)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        fit_kernel_parameters(kernel, [3.0, 0.01], draws, positive=True, max_iter=1)


def test_an_interrupted_fit_keeps_the_best_so_far(draws):
    calls = 0

    def interrupting(theta):
        nonlocal calls
        calls += 1
        if calls == 20:
            raise KeyboardInterrupt
        return kernel(theta)

    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted"):
        fit = fit_kernel_parameters(interrupting, [0.5, 0.5], draws, positive=True)
    assert fit.interrupted
    assert not fit.converged
    start = np.mean(subset_log_probabilities(kernel([0.5, 0.5]), draws))
    assert fit.log_likelihood > start
