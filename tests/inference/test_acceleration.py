import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pluri.inference import Anderson, Squarem, expectation_maximization

METHODS = ["squarem", "anderson"]


def fit(toys, problem, x, **options):
    options.setdefault("rng", np.random.default_rng(0))
    return expectation_maximization(problem, toys.source(x), **options)


@pytest.mark.parametrize("method", METHODS)
def test_slow_mixture_reaches_the_same_objective_in_fewer_e_steps(toys, method):
    x = toys.two_groups(distance=2.0)
    start = toys.MixtureParameters(np.array([0.5, 0.5]), np.array([-0.5, 1.5]), np.array([1.0, 2.0]))
    plain = fit(toys, toys.Mixture(floor=0.1), x, start=start, max_iter=5000, tol=1e-7)
    fast = fit(toys, toys.Mixture(floor=0.1), x, start=start, max_iter=5000, tol=1e-7, acceleration=method)
    assert plain.converged
    assert fast.converged
    assert fast.objective > plain.objective - 1e-6
    assert fast.n_iter < plain.n_iter / 4
    np.testing.assert_allclose(fast.params.means, plain.params.means, atol=0.02)


@pytest.mark.parametrize("method", METHODS)
def test_lost_tosses_are_solved_to_the_closed_form(toys, method):
    x, problem = toys.lost_tosses(12, 5, 500), toys.LostTosses()
    plain = fit(toys, problem, x, max_iter=2000, tol=1e-10)
    fast = fit(toys, problem, x, max_iter=2000, tol=1e-10, acceleration=method)
    assert fast.params == pytest.approx(problem.mode(x), abs=1e-4)
    assert abs(fast.params - problem.mode(x)) <= abs(plain.params - problem.mode(x))
    assert fast.n_iter < plain.n_iter / 5


@pytest.mark.parametrize("method", METHODS)
@given(seed=st.integers(0, 10**6), n_components=st.integers(2, 4))
@settings(max_examples=20, deadline=None)
def test_objective_never_falls(toys, method, seed, n_components):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(60, 1)) * rng.choice([0.1, 1.0, 5.0], size=(60, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        problem = toys.Mixture(n_components, floor=0.5)
        result = fit(toys, problem, x, rng=rng, max_iter=50, tol=-np.inf, acceleration=method)
    assert np.diff(result.history.objective).min() > -1e-7 * abs(result.objective)
    # What is returned is at least as good as what the last E-step saw.
    batch = next(iter(toys.source(x).batches()))
    final = problem.expect(result.params, batch).log_likelihood + problem.log_prior(result.params)
    assert final > result.objective - 1e-7 * abs(result.objective)


class Wild:
    """A problem whose unpacking spoils every guess in the given way."""

    def __init__(self, problem, spoil):
        self.problem, self.spoil = problem, spoil
        self.n_maximize = 0

    def unpack(self, vector, like):
        return self.spoil(self.problem.unpack(vector, like))

    def maximize(self, stats, params):
        self.n_maximize += 1
        return self.problem.maximize(stats, params)

    def __getattr__(self, name):
        return getattr(self.problem, name)


@pytest.mark.parametrize("method", METHODS)
def test_refused_guess_costs_one_e_step_and_leads_back_to_plain_em(toys, method):
    x, start = toys.lost_tosses(12, 5, 50), 0.9
    wild = Wild(toys.LostTosses(), spoil=lambda share: 0.999)
    result = fit(toys, wild, x, start=start, max_iter=40, tol=-np.inf, acceleration=method)
    accepted = result.history.accepted
    assert 0 < (~accepted).sum() < 20
    assert wild.n_maximize == accepted.sum()
    plain = fit(toys, toys.LostTosses(), x, start=start, max_iter=int(accepted.sum()), tol=-np.inf)
    assert result.params == plain.params
    np.testing.assert_array_equal(result.history.objective[accepted], plain.history.objective)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("error", [ValueError, FloatingPointError, np.linalg.LinAlgError])
def test_guess_that_cannot_be_unpacked_costs_nothing(toys, method, error):
    def fail(share):
        raise error("outside")

    x, start = toys.lost_tosses(12, 5, 50), 0.9
    result = fit(toys, Wild(toys.LostTosses(), fail), x, start=start, max_iter=20, tol=-np.inf, acceleration=method)
    plain = fit(toys, toys.LostTosses(), x, start=start, max_iter=20, tol=-np.inf)
    assert result.history.accepted.all()
    assert result.params == plain.params


def test_guess_outside_the_support_of_the_prior_costs_nothing(toys):
    x, start = toys.lost_tosses(12, 5, 50), 0.9
    wild = Wild(toys.LostTosses(), lambda share: 1.0)
    result = fit(toys, wild, x, start=start, max_iter=20, tol=-np.inf, acceleration="squarem")
    assert result.history.accepted.all()


@pytest.mark.parametrize("accelerator", [Squarem(), Anderson()])
def test_coordinates_that_are_not_finite_keep_the_value_of_the_image(accelerator):
    # One coordinate is the logarithm of a probability that is zero, the other halves its distance to 3.
    x = np.array([-np.inf, 11.0])
    memory, guess = accelerator.start(), None
    while guess is None:
        image = np.array([-np.inf, 3.0 + 0.5 * (x[1] - 3.0)])
        memory, guess = accelerator.propose(memory, x, image)
        x = image
    np.testing.assert_allclose(guess, [-np.inf, 3.0])


def test_anderson_solves_a_linear_map_in_as_many_steps_as_it_has_dimensions():
    rng = np.random.default_rng(1)
    rotation = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    slow = rotation @ np.diag([0.99, 0.9, 0.5, -0.3]) @ rotation.T
    solution = rng.normal(size=4)
    anderson, x = Anderson(), np.zeros(4)
    memory = anderson.start()
    for _ in range(6):
        image = solution + slow @ (x - solution)
        memory, guess = anderson.propose(memory, x, image)
        x = image if guess is None else guess
    np.testing.assert_allclose(x, solution, atol=1e-6)


def test_squarem_shortens_its_steps_after_refusals_and_lengthens_them_after_successes():
    squarem = Squarem()
    memory = squarem.start()
    assert squarem.judge(memory, False).longest < memory.longest
    memory, _ = squarem.propose(memory, np.array([10.0]), np.array([9.9]))
    memory, guess = squarem.propose(memory, np.array([9.9]), np.array([9.801]))
    np.testing.assert_allclose(guess, 10.0 + 2 * 4.0 * -0.1 + 16.0 * 0.001)  # the wanted step of 100 is cut to 4
    assert squarem.judge(memory, True).longest == 16.0


def test_problem_without_pack_is_refused(toys):
    class Plain:
        def initialize(self, source, rng):
            return 0.0

    with pytest.raises(ValueError, match="acceleration must be None for a problem without pack and unpack"):
        fit(toys, Plain(), toys.lost_tosses(1, 1, 1), acceleration="squarem")
