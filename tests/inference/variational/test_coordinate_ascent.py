"""The loop of mean-field coordinate ascent: what it computes, and what it does when things go wrong."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pluri import on_interrupt
from pluri.engine import Batch
from pluri.inference import AscentWarning
from pluri.inference.variational import conjugate_coordinate_ascent, coordinate_ascent


class CorrelatedGaussian:
    """q(z) = prod_j N(m_j, 1 / precision_jj) for a Gaussian target: everything is known in closed form."""

    def __init__(self, precision, mean):
        self.precision, self.mean = precision, mean

    def initialize(self, data, rng):
        return rng.normal(size=len(self.mean)) * 10

    def update(self, q, data):
        q = q.copy()
        for j in range(len(q)):
            gap = q - self.mean
            gap[j] = 0.0
            q[j] = self.mean[j] - self.precision[j] @ gap / self.precision[j, j]
        return q

    def elbo(self, q, data):
        gap = q - self.mean
        shortfall = 0.5 * (np.linalg.slogdet(self.precision)[1] - np.log(np.diag(self.precision)).sum())
        return float(-0.5 * gap @ self.precision @ gap + shortfall)


class Faulty:
    """A bound that rises for three sweeps, falls once, and rises again."""

    path = (0.0, 1.0, 2.0, 3.0, 1.5, 4.0, 5.0)

    def initialize(self, data, rng):
        return 0

    def update(self, step, data):
        return step + 1

    def elbo(self, step, data):
        return self.path[min(step, 6)]


class Blocks:
    """Two blocks of the mixture, the second wrong if asked to be."""

    def __init__(self, model, wrong=False):
        self.model, self.wrong = model, wrong

    def initialize(self, X, rng):
        q = self.model.initialize(_Source(X), rng)
        return q, self.model.local_step(Batch(X), q)[0]

    def elbo(self, params, X):
        # The bound at any q(z) that came from an earlier q(beta) is at most the one at the best q(z).
        return self.model.local_step(Batch(X), params[0])[1] + self.model.global_elbo(params[0])

    @property
    def blocks(self):
        return {"local": self.local, "global": self.globals}

    def local(self, params, X):
        return params[0], self.model.local_step(Batch(X), params[0])[0]

    def globals(self, params, X):
        sign = -0.5 if self.wrong else 1.0
        prior = self.model.global_prior()
        return {name: prior[name] + (sign if name == "pull" else 1.0) * params[1][name] for name in prior}, params[1]


class _Source:
    def __init__(self, X):
        self.X = X

    def batches(self):
        yield Batch(self.X)


@given(st.integers(0, 10_000), st.integers(1, 6))
def test_it_finds_the_exact_means_and_the_known_gap_to_the_evidence(seed, size):
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(size, size)) / np.sqrt(size)
    precision = factor @ factor.T + np.eye(size)
    mean = rng.normal(size=size)
    result = coordinate_ascent(CorrelatedGaussian(precision, mean), rng=rng, tol=1e-14, max_iter=2000, strict=True)
    np.testing.assert_allclose(result.params, mean, atol=1e-5)
    assert result.elbo <= 1e-12  # log Z = 0
    np.testing.assert_allclose(
        result.elbo, 0.5 * (np.linalg.slogdet(precision)[1] - np.log(np.diag(precision)).sum()), atol=1e-9
    )


def test_the_trace_has_the_bound_before_each_sweep_and_after_the_last():
    target = CorrelatedGaussian(np.array([[2.0, 1.5], [1.5, 2.0]]), np.zeros(2))
    start = np.array([3.0, -4.0])
    result = coordinate_ascent(target, rng=np.random.default_rng(0), start=start, max_iter=4, tol=-1.0)
    expected, q = [target.elbo(start, None)], start
    for _ in range(4):
        q = target.update(q, None)
        expected.append(target.elbo(q, None))
    np.testing.assert_allclose(result.trace, expected, rtol=1e-14)
    np.testing.assert_array_equal(result.params, q)
    assert (result.n_iter, result.reason, result.elbo) == (4, "max_iter", expected[-1])
    np.testing.assert_array_equal(result.history.objective, expected[:-1])


@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_the_tolerance_is_relative_to_the_bound(scale):
    class Slow:
        def initialize(self, data, rng):
            return 0

        def update(self, step, data):
            return step + 1

        def elbo(self, step, data):
            return scale * (-10.0 - 0.5**step)

    result = coordinate_ascent(Slow(), rng=np.random.default_rng(0), tol=1e-3)
    # The gain 2^-t falls below 1e-3 of 10 at t = 7, which the eighth evaluation sees.
    assert (result.n_iter, result.converged) == (8, True)


def test_a_model_of_blocks_equals_the_conjugate_loop(mixture):
    X, model = mixture.three_groups(), mixture.UnitMixture(3, 2)
    start = model.initialize(_Source(X), np.random.default_rng(1))
    one = coordinate_ascent(
        Blocks(model), X, rng=np.random.default_rng(0), start=(start, None), max_iter=20, tol=-1.0, strict=True
    )
    other = conjugate_coordinate_ascent(model, X, rng=np.random.default_rng(0), start=start, max_iter=20, tol=-np.inf)
    for name, value in other.params.items():
        np.testing.assert_allclose(one.params[0][name], value, rtol=1e-12)
    np.testing.assert_allclose(one.trace[:-1], other.history.objective, rtol=1e-12)


def test_a_falling_bound_is_reported_and_the_best_is_kept():
    with pytest.warns(AscentWarning, match="fell from 3 to 1.5"):
        result = coordinate_ascent(Faulty(), rng=np.random.default_rng(0))
    assert (result.reason, result.elbo, result.params) == ("descent", 3.0, 3)


def test_strict_makes_a_falling_bound_an_error():
    with pytest.raises(AscentWarning, match=r"3 to 1\.5"):
        coordinate_ascent(Faulty(), rng=np.random.default_rng(0), strict=True)


def test_strict_names_the_block_at_fault(mixture):
    X, model = mixture.three_groups(), mixture.UnitMixture(3, 2)
    with pytest.raises(AscentWarning, match="block 'global' lowered the bound"):
        coordinate_ascent(Blocks(model, wrong=True), X, rng=np.random.default_rng(0), strict=True)


def test_expected_falls_are_not_reported_and_do_not_end_the_run():
    result = coordinate_ascent(Faulty(), rng=np.random.default_rng(0), may_fall=True)
    assert (result.converged, result.elbo) == (True, 5.0)


def test_restarts_keep_the_highest_bound_and_do_not_depend_on_each_other():
    class Lottery:
        def initialize(self, data, rng):
            return float(rng.random())

        def update(self, q, data):
            return q

        def elbo(self, q, data):
            return q

    several = coordinate_ascent(Lottery(), rng=np.random.default_rng(3), n_init=5)
    firsts = [float(stream.random()) for stream in np.random.default_rng(3).spawn(5)]
    assert several.elbo == max(firsts)
    assert several.restart == int(np.argmax(firsts))
    assert len(np.unique(several.history.restart)) == 5


def test_ctrl_c_keeps_the_best_so_far():
    def interrupt(state):
        if state.iteration == 3:
            raise KeyboardInterrupt

    target = CorrelatedGaussian(np.array([[2.0, 1.9], [1.9, 2.0]]), np.zeros(2))
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted after 3 iterations"):
        result = coordinate_ascent(target, rng=np.random.default_rng(0), tol=-1.0, on_iteration=interrupt)
    assert result.interrupted
    assert result.reason == "interrupted"
    assert len(result.trace) == 4
    assert result.elbo == target.elbo(result.params, None) >= result.trace[0]


def test_a_callback_ends_a_run_or_the_fit():
    target = CorrelatedGaussian(np.array([[2.0, 1.9], [1.9, 2.0]]), np.zeros(2))
    options = {"tol": -1.0, "n_init": 3, "max_iter": 5}
    run = coordinate_ascent(target, rng=np.random.default_rng(0), on_iteration=lambda s: s.iteration == 2, **options)
    assert np.bincount(run.history.restart).tolist() == [2, 2, 2]

    def stop(state):
        raise StopIteration

    assert len(coordinate_ascent(target, rng=np.random.default_rng(0), on_iteration=stop, **options).history) == 1


def test_a_bound_that_is_not_a_number_is_an_error():
    class Broken(Faulty):
        path = (0.0, np.nan)

        def elbo(self, step, data):
            return self.path[min(step, 1)]

    with pytest.raises(FloatingPointError, match="became nan"):
        coordinate_ascent(Broken(), rng=np.random.default_rng(0))


def test_progress_shows_why_a_run_ended(capsys):
    coordinate_ascent(Faulty(), rng=np.random.default_rng(0), may_fall=True, verbose=2)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 8
    assert lines[-1].endswith("converged")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tol": np.nan}, "tol must be a number"),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1, got 0"),
        ({"strict": True, "may_fall": True}, "exclude each other"),
    ],
)
def test_bad_settings_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        coordinate_ascent(Faulty(), rng=np.random.default_rng(0), **options)
