import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.mixture import GaussianMixture

from pluri import on_interrupt
from pluri.engine import ArraySource, resolve_engine
from pluri.inference import AscentWarning, expectation_maximization


def textbook_em(x, weights, means, variances, n_iter):
    """EM for a mixture of normals on the whole sample, in plain probabilities."""
    objectives = []
    for _ in range(n_iter):
        joint = weights * norm.pdf(x[:, None], means, np.sqrt(variances))
        objectives.append(np.log(joint.sum(axis=1)).sum())
        share = joint / joint.sum(axis=1, keepdims=True)
        counts = share.sum(axis=0)
        weights, means = counts / len(x), share.T @ x / counts
        variances = np.array([np.average((x - mean) ** 2, weights=s) for mean, s in zip(means, share.T)])
    return weights, means, variances, np.array(objectives)


class Counting:
    """Counts the calls that reach a problem, and lets one of them do something else."""

    def __init__(self, problem, **instead):
        self.problem, self.instead = problem, instead
        self.calls = dict.fromkeys(("initialize", "expect", "maximize"), 0)

    def log_prior(self, params):
        return self.problem.log_prior(params)

    def __getattr__(self, name):
        def call(*arguments):
            self.calls[name] += 1
            original = getattr(self.problem, name)
            return (
                self.instead[name](self.calls[name], original, *arguments)
                if name in self.instead
                else original(*arguments)
            )

        return call if name in ("initialize", "expect", "maximize") else getattr(self.problem, name)


def after(n_calls, error):
    """Raise on the call that follows ``n_calls`` good ones."""

    def call(count, original, *arguments):
        if count == n_calls + 1:
            raise error
        return original(*arguments)

    return call


@pytest.fixture
def x(toys):
    return toys.two_groups()


@pytest.fixture
def start(toys):
    return toys.MixtureParameters(np.array([0.5, 0.5]), np.array([-0.5, 1.5]), np.array([1.0, 2.0]))


def fit(toys, problem, x, **options):
    options.setdefault("rng", np.random.default_rng(0))
    return expectation_maximization(problem, toys.source(x), **options)


def test_iterations_equal_textbook_em(toys, x, start):
    result = fit(toys, toys.Mixture(), x, start=start, max_iter=9, tol=-np.inf)
    weights, means, variances, objectives = textbook_em(x[:, 0], start.weights, start.means, start.variances, 9)
    np.testing.assert_allclose(result.params.weights, weights, rtol=1e-10)
    np.testing.assert_allclose(result.params.means, means, rtol=1e-10)
    np.testing.assert_allclose(result.params.variances, variances, rtol=1e-9)
    np.testing.assert_allclose(result.history.objective, objectives, rtol=1e-12)
    assert (result.reason, result.n_iter, result.converged) == ("max_iter", 9, False)


def test_fit_equals_scikit_learn(toys, start):
    x = toys.two_groups(distance=4.0)
    result = fit(toys, toys.Mixture(), x, start=start, max_iter=500, tol=1e-9)
    peer = GaussianMixture(
        2,
        weights_init=start.weights,
        means_init=start.means[:, None],
        precisions_init=1 / start.variances[:, None, None],
        reg_covar=0.0,
        tol=1e-12,
        max_iter=500,
    ).fit(x)
    assert result.converged
    np.testing.assert_allclose(result.params.means, peer.means_[:, 0], atol=1e-3)
    np.testing.assert_allclose(result.objective, peer.score_samples(x).sum(), atol=1e-5)


def test_run_stops_after_the_first_gain_below_tol(toys, x, start):
    *_, objectives = textbook_em(x[:, 0], start.weights, start.means, start.variances, 200)
    expected = 2 + int(np.argmax(np.diff(objectives) < 1e-2))
    problem = Counting(toys.Mixture())
    result = fit(toys, problem, x, start=start, max_iter=200, tol=1e-2)
    assert result.converged
    assert result.n_iter == len(result.history) == problem.calls["maximize"] == expected


def test_max_iter_is_the_number_of_both_steps(toys, x):
    problem = Counting(toys.Mixture())
    result = expectation_maximization(problem, ArraySource(x), rng=np.random.default_rng(0), max_iter=1)
    assert problem.calls == {"initialize": 1, "expect": 1, "maximize": 1}
    assert result.n_iter == 1


def test_map_estimate_of_a_coin_is_the_posterior_mode(toys):
    x, problem = toys.lost_tosses(30, 10, 25), toys.LostTosses(a=4.0, b=2.5)
    result = fit(toys, problem, x, tol=1e-14, max_iter=1000)
    assert result.params == pytest.approx(problem.mode(x), abs=1e-6)
    # The objective after an E-step at p is the log posterior density of the tosses seen, up to a constant.
    np.testing.assert_allclose(result.objective, 33 * np.log(problem.mode(x)) + 11.5 * np.log(1 - problem.mode(x)))


@given(seed=st.integers(0, 10**6), n_components=st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_objective_never_falls(toys, seed, n_components):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(60, 1)) * rng.choice([0.1, 1.0, 5.0], size=(60, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = fit(toys, toys.Mixture(n_components, floor=0.5), x, rng=rng, max_iter=40, tol=-np.inf)
    assert np.diff(result.history.objective).min() > -1e-7 * abs(result.objective)


def test_threads_give_the_same_bits(toys, x, start):
    one = fit(toys, toys.Mixture(), x, start=start, max_iter=5)
    two = fit(toys, toys.Mixture(), x, start=start, max_iter=5, engine=resolve_engine(n_jobs=2))
    np.testing.assert_array_equal(one.params.means, two.params.means)
    np.testing.assert_array_equal(one.history.objective, two.history.objective)


# Restarts


def test_run_is_the_same_whatever_the_number_of_runs(toys, x):
    few = fit(toys, toys.Mixture(3, 0.1), x, n_init=2, max_iter=15, tol=-np.inf)
    many = fit(toys, toys.Mixture(3, 0.1), x, n_init=4, max_iter=15, tol=-np.inf)
    for run in range(2):
        np.testing.assert_array_equal(few.history.run(run).objective, many.history.run(run).objective)
    last = [many.history.run(run).objective[-1] for run in range(4)]
    assert len(set(last)) > 1
    assert (many.objective, many.restart) == (max(last), int(np.argmax(last)))


def test_parameters_come_from_the_best_run(toys, x):
    result = fit(toys, toys.Mixture(3, 0.1), x, n_init=4, max_iter=15, tol=-np.inf)
    stream = np.random.default_rng(0).spawn(4)[result.restart]
    source = toys.source(x)
    alone = fit(
        toys, toys.Mixture(3, 0.1), x, start=toys.Mixture(3).initialize(source, stream), max_iter=15, tol=-np.inf
    )
    np.testing.assert_array_equal(result.params.means, alone.params.means)


def test_starts_are_used_first_and_random_ones_after(toys, x, start):
    problem = Counting(toys.Mixture())
    result = fit(toys, problem, x, start=[start, start], n_init=3, max_iter=4, tol=-np.inf)
    assert problem.calls["initialize"] == 1
    objectives = [result.history.run(run).objective.tolist() for run in range(3)]
    assert objectives[0] == objectives[1] != objectives[2]


@pytest.mark.parametrize(
    "error", [FloatingPointError("tiny"), np.linalg.LinAlgError("singular"), ValueError("negative")]
)
@pytest.mark.parametrize("failing_run", [0, 1])
def test_failing_run_is_dropped_with_a_warning(toys, x, error, failing_run):
    problem = Counting(toys.Mixture(), maximize=after(5 * failing_run + 2, error))
    with pytest.warns(RuntimeWarning, match=f"1 of 3 runs failed numerically.*{type(error).__name__}: {error}"):
        result = fit(toys, problem, x, n_init=3, max_iter=5, tol=-np.inf)
    assert result.restart != failing_run
    assert result.n_iter == 5


def test_first_error_is_raised_when_all_runs_fail(toys, x):
    def fail(count, original, *arguments):
        raise np.linalg.LinAlgError(f"failure {count}")

    with pytest.raises(np.linalg.LinAlgError, match="failure 1"):
        fit(toys, Counting(toys.Mixture(), maximize=fail), x, n_init=3)


def test_other_errors_end_the_fit(toys, x):
    with pytest.raises(TypeError, match="a bug"):
        fit(toys, Counting(toys.Mixture(), maximize=after(7, TypeError("a bug"))), x, n_init=3, max_iter=5, tol=-np.inf)


# Ascent and non-finite objectives


def stumble(at):
    """An M-step that does the right thing except at the given calls, where it throws the means away."""

    def maximize(count, original, stats, params):
        result = original(stats, params)
        return type(result)(result.weights, result.means + 1.0, result.variances) if count in at else result

    return maximize


def test_falling_objective_is_reported_and_the_best_parameters_are_kept(toys, x, start):
    with pytest.warns(AscentWarning, match="the objective fell from .* to .* at iteration 4 of run 1"):
        result = fit(toys, Counting(toys.Mixture(), maximize=stumble({3})), x, start=start)
    *_, objectives = textbook_em(x[:, 0], start.weights, start.means, start.variances, 3)
    _, best, _, _ = textbook_em(x[:, 0], start.weights, start.means, start.variances, 2)
    assert (result.reason, result.converged, result.n_iter) == ("descent", False, 4)
    np.testing.assert_allclose(result.params.means, best, rtol=1e-10)  # the last point whose objective is known
    assert result.objective == pytest.approx(objectives[-1])


def test_falls_are_reported_once_per_run(toys, start):
    x = toys.two_groups(distance=4.0)
    problem = Counting(toys.Mixture(), maximize=stumble({2, 5}))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = fit(toys, problem, x, start=start, max_iter=40, tol=-np.inf)
    assert [warning.category for warning in caught] == [AscentWarning]
    assert result.n_iter == 40
    # It recovers from both falls and ends above all it has seen, so the last M-step counts again.
    assert result.objective == result.history.objective[-1] == result.history.objective.max()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_objective_that_is_not_a_number_is_an_error(toys, x, bad):
    problem = toys.Mixture()
    problem.log_prior = lambda params: bad
    with pytest.raises(FloatingPointError, match=f"the objective became {bad}") as caught:
        fit(toys, problem, x)
    assert caught.value.__notes__ == ["at iteration 1 of run 1"]


def test_impossible_start_is_allowed(toys):
    x = toys.lost_tosses(3, 5, 0)
    with np.errstate(divide="ignore"):
        result = fit(toys, toys.LostTosses(a=1.5, b=1.0), x, start=0.0)
    assert result.history.objective[0] == -np.inf
    assert result.converged
    assert result.params == pytest.approx(3.5 / 8.5)


# Interruption


@pytest.mark.parametrize("where", ["expect", "maximize"])
def test_interruption_keeps_the_last_complete_iteration(toys, x, start, where):
    n_batches = len(list(toys.source(x).batches()))
    good = 6 * (n_batches if where == "expect" else 1)
    problem = Counting(toys.Mixture(), **{where: after(good, KeyboardInterrupt())})
    with on_interrupt("keep"), pytest.warns(UserWarning, match="fit interrupted after 6 iterations of run 1 of 1"):
        result = fit(toys, problem, x, start=start, max_iter=50, tol=-np.inf)
    expected = fit(toys, toys.Mixture(), x, start=start, max_iter=6, tol=-np.inf)
    np.testing.assert_array_equal(result.params.means, expected.params.means)
    assert (result.interrupted, result.reason, result.n_iter) == (True, "interrupted", 6)


def test_interruption_in_a_later_run_keeps_the_best_run(toys, x):
    problem = Counting(toys.Mixture(3, 0.1), initialize=after(2, KeyboardInterrupt()))
    with on_interrupt("keep"), pytest.warns(UserWarning, match="fit interrupted after 0 iterations of run 3 of 5"):
        result = fit(toys, problem, x, n_init=5, max_iter=8, tol=-np.inf)
    expected = fit(toys, toys.Mixture(3, 0.1), x, n_init=2, max_iter=8, tol=-np.inf)
    np.testing.assert_array_equal(result.params.means, expected.params.means)
    assert result.interrupted
    assert result.reason == "max_iter"


def test_interruption_in_the_hook_or_between_runs_is_caught(toys, x):
    def interrupt(state):
        if state.restart == 1 and state.iteration == 3:
            raise KeyboardInterrupt

    with on_interrupt("keep"), pytest.warns(UserWarning, match="after 3 iterations of run 2 of 2"):
        result = fit(toys, toys.Mixture(), x, n_init=2, max_iter=8, tol=-np.inf, on_iteration=interrupt)
    assert len(result.history) == 11


@pytest.mark.parametrize("where", ["initialize", "expect", "maximize"])
def test_interruption_before_the_first_iteration_goes_through(toys, x, where):
    with pytest.raises(KeyboardInterrupt):
        fit(toys, Counting(toys.Mixture(), **{where: after(0, KeyboardInterrupt())}), x)


# The hook


def test_hook_sees_what_the_history_records(toys, x, start):
    seen = []
    result = fit(toys, toys.Mixture(), x, start=start, max_iter=300, tol=1e-4, on_iteration=seen.append)
    assert [state.objective for state in seen] == result.history.objective.tolist()
    np.testing.assert_array_equal([state.gain for state in seen[1:]], np.diff(result.history.objective))
    assert np.isnan(seen[0].gain)
    assert [state.reason for state in seen] == [None] * (len(seen) - 1) + ["converged"]
    np.testing.assert_array_equal(seen[-1].params.means, result.params.means)


def test_hook_ends_a_run_by_returning_true(toys, x):
    result = fit(toys, toys.Mixture(), x, n_init=3, on_iteration=lambda state: state.iteration == 2, tol=-np.inf)
    assert (result.reason, result.converged) == ("stopped", False)
    assert result.history.restart.tolist() == [0, 0, 1, 1, 2, 2]


def test_hook_ends_the_fit_by_raising_stop_iteration(toys, x):
    def stop(state):
        if state.restart == 1:
            raise StopIteration

    result = fit(toys, toys.Mixture(), x, n_init=3, on_iteration=stop, tol=-np.inf, max_iter=4)
    assert result.history.restart.tolist() == [0, 0, 0, 0, 1]


def test_errors_of_the_hook_are_not_taken_for_failed_runs(toys, x):
    def fail(state):
        raise ValueError("in the hook")

    with pytest.raises(ValueError, match="in the hook"):
        fit(toys, toys.Mixture(), x, n_init=3, on_iteration=fail)


# Arguments


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_iter": 0}, "max_iter must be an integer of at least 1, got 0"),
        ({"max_iter": 2.5}, "max_iter must be an integer of at least 1, got 2.5"),
        ({"n_init": 0}, "n_init must be an integer of at least 1, got 0"),
        ({"tol": float("nan")}, "tol must be a number, got nan"),
        ({"tol": "small"}, "tol must be a number, got 'small'"),
        ({"acceleration": "turbo"}, "acceleration must be one of None, 'anderson', 'squarem', got 'turbo'"),
    ],
)
def test_bad_arguments_are_named(toys, x, options, message):
    with pytest.raises(ValueError, match=message):
        fit(toys, toys.Mixture(), x, **options)
