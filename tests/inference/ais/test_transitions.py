"""Moves of clouds: each leaves every density of a path invariant, whatever its settings; foreign kernels; tuning."""

import math

import numpy as np
import pytest
from scipy import stats

from pluri.inference import mcmc
from pluri.inference.ais.annealed_importance import AnnealedImportanceSampler
from pluri.inference.ais.crank_nicolson_moves import CrankNicolsonMoves
from pluri.inference.ais.hamiltonian_moves import HamiltonianMoves
from pluri.inference.ais.kernel_moves import FunctionMoves, KernelMoves
from pluri.inference.ais.slice_moves import SliceMoves
from pluri.inference.ais.tempered_path import Cloud, TemperedPath
from pluri.inference.ais.transitions import IdentityMoves, RandomWalkMoves, as_moves, covariance_root

#: From N(0, 1) to N(3, 1/4): at b the density is normal of mean 12 b / (1 + 3 b), variance 1 / (1 + 3 b).
PATH = TemperedPath(
    lambda x: -0.5 * np.square(x).sum(axis=1),
    lambda x: -2.0 * np.square(x - 3.0).sum(axis=1),
    grad_log_prior=lambda x: -x,
    grad_log_end=lambda x: -4.0 * (x - 3.0),
)


def kernel(beta):
    def value_and_grad(x):
        value = -0.5 * (1 - beta) * float(x @ x) - 2.0 * beta * float(np.square(x - 3.0).sum())
        return value, -(1 - beta) * x - 4.0 * beta * (x - 3.0)

    return mcmc.HMC(value_and_grad, step_size=0.7, n_leapfrog=3, check_gradient=False)


def exact_cloud(rng, n, beta, dim=2):
    x = rng.normal(12 * beta / (1 + 3 * beta), 1 / math.sqrt(1 + 3 * beta), (n, dim))
    seen = PATH.evaluate(x)
    return Cloud(x, seen.base, seen.gain)


SKEWED = np.array([[1.0, 0.0], [0.8, 0.3]])
MOVES = {
    "walk": RandomWalkMoves((0.3, 1.5)),
    "crank-nicolson": CrankNicolsonMoves(0.7, mean=np.array([0.5, 1.0]), root=SKEWED, adapts=False),
    "skewed walk": RandomWalkMoves((0.8,), root=SKEWED),
    "slice": SliceMoves(width=1.0, max_steps=4),
    "skewed slice": SliceMoves(width=0.2, max_steps=2, root=SKEWED),
    "wide slice": SliceMoves(width=50.0),
    "hamiltonian": HamiltonianMoves(step_size=0.8, n_leapfrog=3, root=SKEWED),
    "short hamiltonian": HamiltonianMoves(step_size=0.6, n_leapfrog=1),
    "kernel": KernelMoves(kernel),
    "function": FunctionMoves(lambda rng, x, beta: 24 * beta / (1 + 3 * beta) - x),  # mirror at the mean
    "identity": IdentityMoves(),
}


@pytest.mark.parametrize("beta", [0.2, 1.0])
@pytest.mark.parametrize("name", MOVES)
def test_moves_leave_exact_draws_exact(name, beta):
    rng = np.random.default_rng(1)
    n = 300 if name == "kernel" else 4000
    cloud = exact_cloud(rng, n, beta)
    with np.errstate(all="ignore"):
        moved = MOVES[name].move(rng, PATH, beta, cloud, 3)
    law = stats.norm(12 * beta / (1 + 3 * beta), 1 / math.sqrt(1 + 3 * beta)).cdf
    # 20 cases x 3 numbers at 1e-8 each: a false alarm in a million.
    for values in (*moved.cloud.x.T, moved.cloud.x @ [0.6, 0.8] - 0.4 * 12 * beta / (1 + 3 * beta)):
        assert stats.kstest(values, law).pvalue > 1e-8
    assert abs(np.corrcoef(moved.cloud.x.T)[0, 1]) < 5.5 / math.sqrt(n)
    # The parts kept of the density are those of the points.
    seen = PATH.evaluate(moved.cloud.x)
    np.testing.assert_allclose(moved.cloud.base, seen.base)
    np.testing.assert_allclose(moved.cloud.gain, seen.gain)
    if name != "identity":
        assert (moved.cloud.x != cloud.x).any(axis=1).mean() > 0.5


@pytest.mark.parametrize("name", ["walk", "slice", "hamiltonian", "crank-nicolson"])
def test_moves_from_the_wrong_place_find_the_density(name):
    rng = np.random.default_rng(2)
    x = rng.normal(0, 0.1, (3000, 2))
    seen = PATH.evaluate(x)
    with np.errstate(all="ignore"):
        moved = MOVES[name].move(rng, PATH, 0.5, Cloud(x, seen.base, seen.gain), 60)
    assert moved.cloud.x.mean() == pytest.approx(2.4, abs=0.05)
    assert moved.cloud.x.var() == pytest.approx(0.4, abs=0.04)


@pytest.mark.parametrize("transition", ["pcn", "mh", "slice", "hmc", kernel])
def test_every_transition_estimates_the_same_constant(transition):
    kernelwise = callable(transition)
    run = AnnealedImportanceSampler(
        PATH.log_end, PATH.log_prior, lambda rng, n: rng.normal(size=(n, 2)), transition=transition,
        n_temperatures=60, n_runs=250 if kernelwise else 1000, n_pilot=50,
        grad_log_prior=PATH.grad_log_prior, grad_log_target=PATH.grad_log_end, random_state=3, warn=False,
    ).run()  # fmt: skip
    # Five and a half standard errors: a false alarm in a million, as the error is estimated too. The mean has an
    # effective hundred runs at least: a standard error of 0.05.
    assert run.log_z == pytest.approx(np.log(0.25), abs=5.5 * run.log_z_se)
    assert run.expect().value == pytest.approx([3, 3], abs=0.3)


def test_the_pilot_tunes_the_acceptance_at_every_temperature():
    run = AnnealedImportanceSampler(
        PATH.log_end, PATH.log_prior, lambda rng, n: rng.normal(size=(n, 3)), n_temperatures=150, transition="mh",
        grad_log_prior=PATH.grad_log_prior, grad_log_target=PATH.grad_log_end, random_state=0, warn=False,
    ).run()  # fmt: skip
    assert run.acceptance[1:-1] == pytest.approx(0.234 + 0.206 / 3, abs=0.1)


def test_slice_moves_cost_more_steps_but_keep_the_law_whatever_the_width():
    rng = np.random.default_rng(4)
    counts = []
    for width in (0.05, 2.0):
        moved = SliceMoves(width=width, max_steps=200).move(rng, PATH, 1.0, exact_cloud(rng, 2000, 1.0), 1)
        counts.append(moved.n_evaluations)
        assert stats.kstest(moved.cloud.x[:, 0], stats.norm(3, 0.5).cdf).pvalue > 1e-7
    assert counts[0] > 3 * counts[1]


def test_proposals_that_are_undefined_or_outside_are_refused_and_counted():
    path = TemperedPath(
        lambda x: np.where(np.abs(x[:, 0]) < 2, 0.0, -np.inf),
        lambda x: np.where(x[:, 0] > 1.0, np.nan, -(x[:, 0] ** 2)),
    )
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 1, (500, 1))
    seen = path.evaluate(x)
    for moves in (RandomWalkMoves((1.0,)), SliceMoves(), CrankNicolsonMoves()):
        with np.errstate(all="ignore"):
            moved = moves.move(rng, path, 0.5, Cloud(x, seen.base, seen.gain), 20)
        assert moved.undefined > 0
        assert moved.uncovered > 0
        assert (moved.cloud.x <= 1.0).all()
        assert (moved.cloud.x > -2.0).all()


def test_points_of_density_zero_do_not_stop_the_others():
    path = TemperedPath(lambda x: np.zeros(len(x)), lambda x: np.where(x[:, 0] > 0, -x[:, 0], -np.inf))
    x = np.array([[-1.0], [1.0], [2.0]])
    seen = path.evaluate(x)
    for moves in (RandomWalkMoves((0.5,)), SliceMoves(), CrankNicolsonMoves()):
        with np.errstate(all="ignore"):
            moved = moves.move(np.random.default_rng(0), path, 0.5, Cloud(x, seen.base, seen.gain), 10)
        assert (moved.cloud.x[1:] > 0).all()


def test_the_root_of_a_collapsed_cloud_stays_regular():
    root = covariance_root(np.ones((50, 3)), np.full(50, 1 / 50), before=np.eye(3))
    assert (np.diagonal(root) > 0.1).all()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5000, 3)) @ np.array([[2.0, 0, 0], [1, 1, 0], [0, 0, 3.0]]).T
    root = covariance_root(x, np.full(5000, 1 / 5000))
    np.testing.assert_allclose(root @ root.T, np.cov(x.T), atol=0.1)


def test_names_records_and_functions_become_moves():
    assert isinstance(as_moves("mh"), RandomWalkMoves)
    assert isinstance(as_moves("identity"), IdentityMoves)
    assert isinstance(as_moves(kernel), KernelMoves)
    assert isinstance(as_moves(lambda rng, x, beta: x), FunctionMoves)
    record = SliceMoves()
    assert as_moves(record) is record


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: as_moves("nuts"), "transition must be 'pcn', 'mh', 'slice', 'hmc'"),
        (lambda: as_moves(lambda a, b: a), "transition must be"),
        (lambda: RandomWalkMoves((0.0,)), "step_sizes must be positive"),
        (lambda: RandomWalkMoves(()), "step_sizes must be positive"),
        (lambda: CrankNicolsonMoves(1.1), "scale must be above 0 and at most 1, got 1.1"),
        (lambda: CrankNicolsonMoves(degrees_of_freedom=0.0), "degrees_of_freedom must be positive"),
        (lambda: SliceMoves(width=-1), "width must be positive"),
        (lambda: SliceMoves(max_steps=0), "max_steps must be at least 1"),
        (lambda: HamiltonianMoves(step_size=0), "step_size must be positive"),
        (lambda: HamiltonianMoves(n_leapfrog=0), "n_leapfrog must be at least 1"),
        (lambda: HamiltonianMoves(jitter=1.0), "jitter must be"),
    ],
)
def test_wrong_settings_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "needs gradients"),
        ({"grad_log_prior": lambda x: -x, "grad_log_target": lambda x: x[:, :1]}, "of the shape of the points"),
        ({"grad_log_prior": lambda x: -x, "grad_log_target": lambda x: 4 * (x - 3)}, "grad_log_target disagrees"),
        ({"grad_log_prior": lambda x: x, "grad_log_target": lambda x: -4 * (x - 3)}, "grad_log_prior disagrees"),
    ],
)
def test_wrong_gradients_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        AnnealedImportanceSampler(
            PATH.log_end, PATH.log_prior, lambda rng, n: rng.normal(size=(n, 2)), transition="hmc", **settings
        ).run()


def test_a_density_that_changes_from_call_to_call_ends_slice_sampling():
    state = {"level": 0.0}

    def falling(x):
        state["level"] -= 100.0
        return np.full(len(x), state["level"])

    path = TemperedPath(lambda x: np.zeros(len(x)), falling, is_likelihood=True)
    cloud = Cloud(np.zeros((3, 1)), np.zeros(3), np.zeros(3))
    with pytest.raises(ValueError, match="slice sampling did not find its way back to 3 points"):
        SliceMoves().move(np.random.default_rng(0), path, 1.0, cloud, 1)
