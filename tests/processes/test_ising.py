"""Ising and Potts denoising: mean field, Gibbs and exact sums against enumeration and each other."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from pluri import on_interrupt
from pluri.inference import mcmc
from pluri.inference.variational import ApproximationWarning
from pluri.processes.ising import IsingDenoiser
from pluri.processes.ising.exact import exact_marginals
from pluri.processes.ising.gibbs import LabelGibbs
from pluri.processes.ising.grid import GridMeanField, LabelField, as_grids, n_edges, neighbour_sum, observed_field
from pluri.processes.ising.noise import gaussian_noise


def edges(shape):
    """Pairs of neighbouring pixels of one grid, by a plain loop."""
    for here in itertools.product(*map(range, shape)):
        for axis in range(len(shape)):
            there = tuple(v + (a == axis) for a, v in enumerate(here))
            if there[axis] < shape[axis]:
                yield here, there


def enumerate_labels(log_likelihood, agreement):
    """Log sum and marginals over all labellings of one grid; `log_likelihood` (..., K)."""
    shape, k = log_likelihood.shape[:-1], log_likelihood.shape[-1]
    pixels = list(np.ndindex(shape))
    number = {pixel: index for index, pixel in enumerate(pixels)}
    x = np.array(list(itertools.product(range(k), repeat=len(pixels))))
    log_p = sum(log_likelihood[pixel][x[:, index]] for pixel, index in number.items())
    log_p = log_p + agreement * sum(x[:, number[s]] == x[:, number[t]] for s, t in edges(shape))
    total = np.logaddexp.reduce(log_p)
    weights = np.exp(log_p - total)
    marginals = [[weights[x[:, index] == label].sum() for label in range(k)] for index in range(len(pixels))]
    return total, np.reshape(marginals, log_likelihood.shape)


def quiet(model, Y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", ApproximationWarning)
        return model.fit(Y)


def gaussian_log_likelihood(y, sigma):
    levels = np.array([-1.0, 1.0])
    return -0.5 * ((y[..., None] - levels) / sigma) ** 2 - np.log(sigma) - 0.5 * np.log(2 * np.pi)


NINE = np.random.default_rng(0).standard_normal((3, 3))


# Exact --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "k"), [((3, 4), 2), ((4, 3), 2), ((2, 2), 3), ((1, 5), 3), ((2, 3, 2), 2), ((7,), 2)]
)
@pytest.mark.parametrize("agreement", [-0.7, 0.0, 1.3])
def test_transfer_matrices_equal_enumeration(shape, k, agreement):
    rng = np.random.default_rng(k)
    log_likelihood = rng.normal(size=(*shape, k))
    log_sum, marginals = enumerate_labels(log_likelihood, agreement)
    grid = log_likelihood.reshape(1, *(1,) * (3 - len(shape)), *shape, k)
    proba, total = exact_marginals(LabelField(grid, agreement))
    assert np.isclose(total, log_sum, rtol=1e-12)
    np.testing.assert_allclose(proba.reshape(marginals.shape), marginals, atol=1e-12)


def test_the_partition_function_equals_dense_transfer_matrices():
    # 10 x 10 spins at the critical coupling, with matrices of all pairs of rows: 1024 x 1024.
    coupling = 0.5 * np.log1p(np.sqrt(2))
    rows = np.array(list(itertools.product([-1, 1], repeat=10)))
    inside = np.exp(coupling * (rows[:, 1:] * rows[:, :-1]).sum(axis=1))
    between = np.exp(coupling * rows @ rows.T)
    vector, log_z = inside.copy(), 0.0
    for _ in range(9):
        vector = inside * (between @ vector)
        log_z += np.log(vector.sum())
        vector /= vector.sum()
    field = LabelField(np.zeros((1, 1, 10, 10, 2)), 2 * coupling, -coupling * n_edges((1, 1, 10, 10)))
    assert np.isclose(exact_marginals(field)[1], log_z, rtol=1e-12)


@pytest.mark.parametrize("coupling", [0.0, 0.2, 1.0])
def test_known_sums_of_nine_spins(coupling):
    known = {0.0: -6.793337, 0.2: -6.654465, 1.0: -0.497755}
    model = IsingDenoiser(coupling, sigma=1.0, inference="exact").fit(NINE)
    assert np.isclose(model.elbo_[0], known[coupling], atol=5e-7)


def test_wide_grids_are_refused_by_exact_sums():
    with pytest.raises(ValueError, match="at most 16 pixels across their longest axis with 2 labels, got 20"):
        IsingDenoiser(inference="exact").fit(np.zeros((20, 20)))
    with pytest.raises(ValueError, match="at most 10 pixels"):
        IsingDenoiser(inference="exact", n_labels=3).fit(np.zeros((200, 200)))


# Mean field ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("coupling", "elbo", "error"), [(0.2, -6.805504, 0.0331), (1.0, -0.539112, 0.0627)])
def test_known_bounds_of_nine_spins(coupling, elbo, error):
    options = {"sigma": 1.0, "tol": 1e-13, "max_iter": 2000}
    model = IsingDenoiser(coupling, damping=1.0, **options).fit(NINE)
    exact = IsingDenoiser(coupling, sigma=1.0, inference="exact").fit(NINE)
    assert np.isclose(model.elbo_[-1], elbo, atol=5e-7)
    assert np.isclose(np.abs(model.mean_ - exact.mean_).max(), error, atol=6e-5)
    damped = IsingDenoiser(coupling, damping=0.5, **options).fit(NINE)
    assert np.isclose(damped.elbo_[-1], elbo, atol=5e-7)


def test_without_coupling_every_pixel_stands_alone():
    model = IsingDenoiser(0.0, sigma=1.3).fit(NINE)
    np.testing.assert_allclose(model.mean_, np.tanh(NINE / 1.3**2), atol=1e-14)
    log_sum = np.logaddexp.reduce(gaussian_log_likelihood(NINE, 1.3), axis=-1).sum()
    assert np.isclose(model.elbo_[-1], log_sum, rtol=1e-12)


@given(st.integers(0, 10_000), st.floats(-1.5, 1.5), st.floats(0.05, 1.0), st.integers(2, 4))
@settings(max_examples=30)
def test_the_bound_rises_and_stays_below_the_exact_sum(seed, coupling, damping, n_labels):
    Y = np.random.default_rng(seed).normal(size=(3, 4)) * n_labels
    settings = {"coupling": coupling, "n_labels": n_labels, "sigma": 1.0}
    model = quiet(IsingDenoiser(damping=damping, **settings), Y)
    exact = IsingDenoiser(inference="exact", **settings).fit(Y)
    assert (np.diff(model.elbo_) >= -1e-9).all()
    assert model.elbo_[-1] <= exact.elbo_[0] + 1e-9
    assert len(model.elbo_) == len(model.entropy_) == model.n_iter_ + 1
    np.testing.assert_allclose(model.proba_.sum(axis=-1), 1.0)


def test_one_sweep_equals_the_formula_in_loops():
    J, sigma = 0.7, 1.0
    model = quiet(IsingDenoiser(J, sigma=sigma, damping=0.6, max_iter=1), NINE)
    mu = np.tanh(NINE / sigma**2)
    for color in (0, 1):
        for i, j in np.ndindex(3, 3):
            if (i + j) % 2 == color:
                near = [(i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)]
                m = J * sum(mu[a, b] for a, b in near if 0 <= a < 3 and 0 <= b < 3)
                mu[i, j] = 0.4 * mu[i, j] + 0.6 * np.tanh(m + NINE[i, j] / sigma**2)
    np.testing.assert_allclose(model.mean_, mu, atol=1e-13)


def test_flipping_and_turning_the_image_flips_and_turns_the_answer():
    Y = np.random.default_rng(1).normal(size=(6, 9))
    mean = quiet(IsingDenoiser(0.4, sigma=1.0), Y).mean_
    np.testing.assert_allclose(quiet(IsingDenoiser(0.4, sigma=1.0), -Y).mean_, -mean, atol=1e-12)
    np.testing.assert_allclose(quiet(IsingDenoiser(0.4, sigma=1.0), Y.T).mean_, mean.T, atol=1e-12)


def test_two_potts_labels_with_twice_the_coupling_are_ising():
    grids, _ = as_grids(NINE, 4)
    log_likelihood = gaussian_log_likelihood(grids, 1.0)
    potts = GridMeanField(LabelField(log_likelihood, 2 * 0.3), damping=1.0)
    q = potts.initialize(None, np.random.default_rng(0))
    for _ in range(200):
        q = potts.update(q)
    ising = IsingDenoiser(0.3, sigma=1.0, damping=1.0, tol=1e-14, max_iter=500).fit(NINE)
    np.testing.assert_allclose(q[0, 0], ising.proba_, atol=1e-8)
    assert np.isclose(potts.elbo(q) - 0.3 * 12, ising.elbo_[-1])


def test_parallel_updates_are_not_monotone_and_checkerboard_ones_are():
    rng = np.random.default_rng(0)
    Y = np.where(rng.random((20, 20)) < 0.5, -1.0, 1.0) + rng.normal(size=(20, 20))
    options = {"sigma": 1.0, "damping": 1.0, "max_iter": 30, "tol": -1.0}
    falls = [
        np.diff(quiet(IsingDenoiser(1.0, schedule=s, **options), Y).elbo_).min() for s in ("parallel", "checkerboard")
    ]
    assert falls[0] < -1e-3
    assert falls[1] >= -1e-9


def test_a_negative_coupling_makes_a_checkerboard():
    Y = np.full((8, 8), np.nan)
    Y[3, 4] = 1.0
    mean = quiet(IsingDenoiser(-1.0, sigma=0.5, max_iter=200), Y).mean_
    signs = np.where(np.indices((8, 8)).sum(axis=0) % 2 == 1, 1.0, -1.0)
    assert (np.sign(mean) == signs).all()


def test_missing_pixels_are_painted_from_their_neighbours():
    Y = np.ones((9, 9))
    Y[3:6, 3:6] = np.nan
    assert (quiet(IsingDenoiser(0.6, sigma=0.7), Y).mean_ > 0.8).all()
    np.testing.assert_allclose(IsingDenoiser(0.6).fit(np.full((3, 3), np.nan)).mean_, 0.0, atol=1e-15)
    # Missing is the same as a pixel that says nothing.
    exact = IsingDenoiser(0.6, sigma=0.7, inference="exact", noise_model=lambda y: np.zeros((*y.shape, 2))).fit(
        np.ones((3, 3))
    )
    np.testing.assert_allclose(exact.proba_, 0.5, atol=1e-12)


def test_neighbour_sums_equal_a_loop_in_three_dimensions():
    values = np.random.default_rng(0).normal(size=(2, 3, 4, 5))
    expected = np.zeros_like(values)
    for image in range(2):
        for s, t in edges((3, 4, 5)):
            expected[image][s] += values[image][t]
            expected[image][t] += values[image][s]
    np.testing.assert_allclose(neighbour_sum(values), expected, atol=1e-14)
    assert n_edges((2, 3, 4, 5)) == 2 * len(list(edges((3, 4, 5))))


@pytest.mark.parametrize("inference", ["vb", "exact"])
def test_images_of_a_stack_do_not_touch_and_slices_of_a_volume_do(inference):
    Y = np.random.default_rng(2).normal(size=(2, 3, 3))
    options = {"coupling": 0.5, "sigma": 1.0, "inference": inference, "max_iter": 30, "tol": -1.0}
    stack = quiet(IsingDenoiser(**options), Y)
    for image, proba in zip(Y, stack.proba_):
        np.testing.assert_allclose(quiet(IsingDenoiser(**options), image).proba_, proba, atol=1e-12)
    volume = quiet(IsingDenoiser(neighbors=6, **options), Y)
    assert np.abs(volume.proba_ - stack.proba_).max() > 0.01
    stacked = quiet(IsingDenoiser(neighbors=6, **options), Y[None])
    np.testing.assert_allclose(stacked.proba_[0], volume.proba_, atol=1e-12)


def test_the_image_of_the_reference_experiment_is_restored():
    # Reference: 1.9 % of the pixels wrong (standard deviation 0.3 %); accepted up to 4 %, which is seven of them.
    i, j = np.indices((128, 128))
    white = (i - 40) ** 2 + (j - 40) ** 2 <= 28**2
    for rows, columns in (((75, 109), (60, 114)), ((8, 13), (80, 119)), ((84, 119), (20, 25))):
        white[rows[0] : rows[1] + 1, columns[0] : columns[1] + 1] = True
    white[92:96, 66:108] = False
    assert round(white.mean(), 3) == 0.285
    truth = np.where(white, 1.0, -1.0)
    noisy = truth + 2 * np.random.default_rng(0).normal(size=truth.shape)
    model = quiet(IsingDenoiser(1.0, sigma=2.0, max_iter=15), noisy)
    assert (model.labels_ != truth).mean() <= 0.04
    assert (np.sign(noisy) != truth).mean() > 0.3


# Gibbs --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_labels", "shape"), [(2, (4, 4)), (3, (2, 4))])
def test_gibbs_marginals_equal_enumeration(n_labels, shape):
    # Standard errors are about 0.003 with these numbers of sweeps: 0.02 is six of them.
    rng = np.random.default_rng(5)
    Y = rng.normal(size=shape) + (n_labels == 3)
    options = {"coupling": 0.4, "sigma": 1.0, "n_labels": n_labels}
    gibbs = IsingDenoiser(inference="gibbs", n_draws=4000, n_warmup=100, random_state=0, **options).fit(Y)
    exact = IsingDenoiser(inference="exact", **options).fit(Y)
    levels = np.array([-1.0, 1.0]) if n_labels == 2 else np.arange(3.0)
    field = observed_field(Y, 4, gaussian_noise(levels, 1.0), n_labels, 0.4)
    log_sum, marginals = enumerate_labels(field.log_likelihood[0, 0], 0.8 if n_labels == 2 else 0.4)
    np.testing.assert_allclose(exact.proba_, marginals, atol=1e-12)
    np.testing.assert_allclose(gibbs.proba_, marginals, atol=0.02)
    constant = 0.4 * len(list(edges(shape))) if n_labels == 2 else 0.0
    assert np.isclose(exact.elbo_[0], log_sum - constant)
    assert gibbs.converged_
    assert gibbs.trace_["share"].shape == (2, 4000, n_labels)


def test_the_kernel_runs_in_the_chain_driver_and_keeps_its_log_density_in_step():
    grids, _ = as_grids(np.random.default_rng(0).normal(size=(5, 6)), 4)
    field = LabelField(gaussian_log_likelihood(grids, 1.0), 0.6)
    start = {"labels": np.zeros(field.shape, dtype=np.int8)}
    trace = mcmc.sample(LabelGibbs(field), start, n_draws=200, n_warmup=10, n_chains=2, random_state=0, warn=False)
    assert trace["labels"].shape == (2, 200, *field.shape)
    for chain in range(2):
        for draw in (0, 99, 199):
            expected = field.log_density(trace["labels"][chain, draw])
            assert np.isclose(trace.stats["log_density"][chain, draw], expected, atol=1e-9)


def test_one_gibbs_sweep_has_the_posterior_as_its_fixed_point():
    # All 2^4 labellings, weighted by their probability, after one sweep: the exact transition matrix of the sampler.
    grids, _ = as_grids(np.array([[0.3, -0.5], [0.9, 0.1]]), 4)
    field = LabelField(gaussian_log_likelihood(grids, 1.0), 0.9)
    states = [np.array(s).reshape(1, 1, 2, 2) for s in itertools.product(range(2), repeat=4)]
    weights = np.exp([field.log_density(s) for s in states])
    weights /= weights.sum()
    order = [(0, 0), (1, 1), (0, 1), (1, 0)]  # black, then white
    after = np.zeros(16)
    for weight, state in zip(weights, states):
        paths = {state.tobytes(): (weight, state)}
        for i, j in order:
            moved = {}
            for mass, x in paths.values():
                both = []
                for label in range(2):
                    y = x.copy()
                    y[0, 0, i, j] = label
                    both.append(y)
                p = np.exp([field.log_density(y) for y in both])
                for share, y in zip(p / p.sum(), both):
                    old = moved.get(y.tobytes(), (0.0, y))[0]
                    moved[y.tobytes()] = (old + mass * share, y)
            paths = moved
        for index, s in enumerate(states):
            after[index] += paths.get(s.tobytes(), (0.0, None))[0]
    np.testing.assert_allclose(after, weights, atol=1e-14)
    # And the compiled sweep draws from it: frequencies of 20000 sweeps from one labelling, 5 standard errors.
    rng, kernel = np.random.default_rng(0), LabelGibbs(field)
    state = kernel.init(rng, {"labels": states[0]})
    counts = np.zeros(16)
    for _ in range(20_000):
        state, _ = kernel.step(rng, state)
        counts[int("".join(map(str, state.labels.ravel())), 2)] += 1
    # Successive sweeps are correlated; the error of a frequency is at most about 0.007: six of them.
    np.testing.assert_allclose(counts / 20_000, weights, atol=0.042)
    np.testing.assert_allclose(
        state.conditional[0, 0, ..., 1] / state.n_sweeps, exact_marginals(field)[0][0, 0, ..., 1], atol=0.03
    )


def test_chains_do_not_depend_on_where_they_run():
    Y = np.random.default_rng(0).normal(size=(6, 6))
    options = {"inference": "gibbs", "n_draws": 20, "n_warmup": 5, "random_state": 3}
    one = quiet(IsingDenoiser(**options), Y)
    two = quiet(IsingDenoiser(n_jobs=2, **options), Y)
    np.testing.assert_array_equal(one.proba_, two.proba_)


def test_ctrl_c_keeps_the_sweeps_done(monkeypatch):
    step, calls = LabelGibbs.step, []

    def interrupted(self, rng, state):
        calls.append(1)
        if len(calls) == 60:
            raise KeyboardInterrupt
        return step(self, rng, state)

    monkeypatch.setattr(LabelGibbs, "step", interrupted)
    model = IsingDenoiser(0.3, inference="gibbs", n_warmup=10, n_draws=10_000, n_chains=2, random_state=0)
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted after"):
        model.fit(np.random.default_rng(0).normal(size=(4, 4)))
    assert 0 < model.trace_.n_draws < 60
    np.testing.assert_allclose(model.proba_.sum(axis=-1), 1.0)


def test_chains_that_disagree_warn():
    # Ordered phase without data: a chain stays white or black for ever.
    with pytest.warns(ConvergenceWarning, match="the chains have not settled: R-hat of log_density"):
        IsingDenoiser(0.9, inference="gibbs", n_draws=30, n_warmup=0, n_chains=4, random_state=0).fit(
            np.full((40, 40), np.nan)
        )


# Noise, settings, life of the estimator ------------------------------------------------------------------------------


def test_flip_noise_equals_its_log_odds():
    Y = np.where(np.random.default_rng(0).random((3, 3)) < 0.5, -1.0, 1.0)
    half_odds = 0.5 * Y * np.log(0.8 / 0.2)
    np.testing.assert_allclose(IsingDenoiser(0.0, noise_model="flip", flip_prob=0.2).fit(Y).mean_, np.tanh(half_odds))

    def noise(y):
        return np.stack([-half_odds, half_odds], axis=-1)[None, None]

    one = quiet(IsingDenoiser(0.4, noise_model="flip", flip_prob=0.2, tol=-1.0), Y).mean_
    np.testing.assert_allclose(one, quiet(IsingDenoiser(0.4, noise_model=noise, tol=-1.0), Y).mean_, atol=1e-12)


def test_several_levels_are_restored():
    truth = np.repeat([[0.0, 10.0, 20.0]], 30, axis=0).repeat(10, axis=1)
    noisy = truth + 6 * np.random.default_rng(0).normal(size=truth.shape)
    model = quiet(IsingDenoiser(2.0, sigma=6.0, n_labels=3, levels=[0.0, 10.0, 20.0]), noisy)
    nearest = np.clip(np.round(noisy / 10) * 10, 0, 20)
    assert (model.labels_ != truth).mean() < 0.02 < 0.25 < (nearest != truth).mean()
    assert set(np.unique(model.labels_)) <= {0.0, 10.0, 20.0}


def test_new_images_are_denoised_with_the_same_settings_and_nothing_is_forgotten():
    rng = np.random.default_rng(0)
    Y, other = rng.normal(size=(5, 5)), rng.normal(size=(4, 6))
    model = quiet(IsingDenoiser(0.3, sigma=1.0, max_iter=200), Y)
    before = model.proba_.copy()
    np.testing.assert_array_equal(model.transform(other), quiet(clone(model), other).labels_)
    np.testing.assert_array_equal(model.predict_proba(other), quiet(clone(model), other).proba_)
    np.testing.assert_array_equal(model.predict_proba(), before)
    np.testing.assert_array_equal(clone(model).fit_transform(Y), model.labels_)


def test_input_is_left_alone():
    Y = np.random.default_rng(0).normal(size=(4, 4))
    Y[0, 0] = np.nan
    copy = Y.copy()
    for inference in ("vb", "gibbs", "exact"):
        quiet(IsingDenoiser(inference=inference, n_draws=5, n_warmup=0, random_state=0), Y)
        np.testing.assert_array_equal(Y, copy)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coupling": np.nan}, "coupling must be a finite number"),
        ({"sigma": 0.0}, "sigma must be a positive number, got 0.0"),
        ({"noise_model": "salt"}, "noise_model must be"),
        ({"noise_model": "flip"}, "flip_prob must be a number above 0 and below 1, got None"),
        ({"noise_model": "flip", "flip_prob": 0.1}, "levels"),
        ({"noise_model": lambda y: np.zeros(3)}, "noise_model must give 2 log-likelihoods for each pixel"),
        ({"noise_model": lambda y: np.full((*y.shape, 2), -np.inf)}, "a possible label"),
        ({"n_labels": 1}, "n_labels must be an integer of at least 2"),
        ({"levels": [1.0, 1.0]}, "levels must be 2 different numbers"),
        ({"inference": "guess"}, "inference must be one of"),
        ({"schedule": "random"}, "schedule must be one of"),
        ({"damping": 1.5}, "damping must be a number above 0 and at most 1, got 1.5"),
        ({"max_iter": 0}, "max_iter"),
        ({"neighbors": 8}, "neighbors must be 2"),
    ],
)
def test_bad_settings_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        IsingDenoiser(**options).fit(np.full((3, 3), 0.5))


@pytest.mark.parametrize(
    ("Y", "message"),
    [
        (np.zeros(5), "2 axes, or 3 for a stack"),
        (np.zeros((0, 4)), "at least one pixel"),
        (np.full((2, 2), np.inf), "got infinity"),
    ],
)
def test_bad_images_are_refused(Y, message):
    with pytest.raises(ValueError, match=message):
        IsingDenoiser().fit(Y)


def test_a_label_that_the_noise_rules_out_gets_no_probability():
    def noise(y):
        impossible = np.zeros((*y.shape, 2))
        impossible[..., 0, 0, 0] = -np.inf
        return impossible

    for inference in ("vb", "gibbs", "exact"):
        model = quiet(
            IsingDenoiser(0.3, noise_model=noise, inference=inference, n_draws=50, random_state=0), np.zeros((3, 3))
        )
        assert model.proba_[0, 0, 0] == 0.0
        assert np.isfinite(model.proba_).all()
