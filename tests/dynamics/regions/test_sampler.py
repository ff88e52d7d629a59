"""The Gibbs sampler of flows by regions draws from its posterior; the table of samplers has the joint tests."""

import numpy as np
import pytest
from scipy.stats import invgamma, kstest, multivariate_normal, wishart

from pluri.dynamics.regions import RegionGibbs, RegionPriors
from pluri.dynamics.regions.conditionals import (
    draw_places,
    log_evidence,
    log_joint_rows,
    multiplied_out,
    region_moments,
    squared_residuals,
)
from pluri.dynamics.regions.pointers import pointers_given_others
from pluri.dynamics.regions.records import Moments
from pluri.dynamics.regions.sticks import drawn_concentration, used_sticks
from pluri.inference import mcmc
from pluri.priors import Gamma
from pluri.processes.stick_draws import draw_sticks
from pluri.testing import SamplerProblem, simulation_based_calibration

PRIORS = RegionPriors(Gamma(2.0, 2.0), Gamma(2.0, 1.0), Gamma(3.0, 2.0), Gamma(3.0, 2.0), 0.7, 3.0)
SCATTER = np.array([[1.0, 0.3], [0.3, 0.6]])


def small_kernel(shared=True, intercept=True, data=None):
    data = np.zeros((7, 4)) if data is None else data
    offsets = [0, 4, 7] if shared else [0, 7]
    n_regions = 2 if shared else None
    return RegionGibbs(data[:, :2], data[:, 2:], offsets, 3, n_regions, SCATTER, intercept, PRIORS)


def region_problem(shared, intercept):
    """Entry for the table of samplers."""
    kernel = small_kernel(shared, intercept)

    def quantities(theta, y):
        told = {name: np.log(value).sum() for name, value in theta.items() if name in POSITIVE}
        tasks = np.repeat(np.arange(len(kernel.offsets) - 1), np.diff(kernel.offsets))
        where = tasks, theta["labels"]
        M = theta["matrices"][theta["pointers"][where]]
        return told | {
            "labels": float((theta["labels"] == theta["labels"][0]).sum()),
            "matrices in use": float((np.abs(M)).sum()),
            "all matrices": float(np.abs(theta["matrices"]).sum()),
            "different matrices": float(len(set(theta["pointers"][where].tolist()))),
            "first pointers": float((theta["pointers"] == 0).sum()),
            "centers": float((theta["centers"][where] ** 2).sum()),
            "all centers": float(np.log1p(theta["centers"] ** 2).sum()),
            "precisions": float(np.linalg.slogdet(theta["precisions"])[1].sum()),
            "first weight": float(theta["log_weights"][0, 0]),
            "steps": float(np.log1p(np.abs(y[:, 2:] - y[:, :2])).sum()),
        }

    return SamplerProblem(
        "RegionGibbs", prior=kernel.sample_prior, data=kernel.sample_data, transition=kernel.sweep,
        statistics=quantities, n_steps=3,
    )  # fmt: skip


POSITIVE = ("relevance", "noise_precision", "concentration", "regime_concentration")


# A second opinion: `test_every_sampler` tries the same kernels.
@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("shared", [True, False])
def test_the_sampler_is_calibrated(shared):
    """Two independent runs that both fail at 1e-3 are a false alarm in a million."""
    kernel = small_kernel(shared)
    quantities = region_problem(shared, True).statistics

    def draws(rng, y, n_draws):
        position, found = kernel.sample_prior(rng), []
        for i in range(40 + n_draws):
            position = kernel.sweep(rng, position, y)
            if i >= 40:
                found.append(position)
        return found

    def calibration(random_state):
        return simulation_based_calibration(
            kernel.sample_prior, kernel.sample_data, draws, quantities=quantities, n_simulations=80, n_draws=19,
            thin=2, alpha=1e-3, random_state=random_state,
        )  # fmt: skip

    result = calibration(0)
    result = result if result.passed else calibration(1)
    assert result.passed, result.summary()


@pytest.mark.parametrize("shared", [True, False])
def test_a_step_of_the_driver_is_a_sweep(shared):
    rng = np.random.default_rng(0)
    position = small_kernel(shared).sample_prior(rng)
    data = small_kernel(shared).sample_data(rng, position)
    kernel = small_kernel(shared, data=data)
    state, info = kernel.step(np.random.default_rng(1), kernel.init(rng, position))
    expected = kernel.sweep(np.random.default_rng(1), position, data)
    for name, value in expected.items():
        np.testing.assert_array_equal(state.position[name], value, err_msg=name)
    assert info["n_regions"] == len(set(zip([0] * 4 + [int(shared)] * 3, expected["labels"].tolist())))


def test_positions_are_kept_after_the_warm_up_only_and_at_equal_distances():
    data = np.random.default_rng(2).normal(size=(7, 4))
    kernel = small_kernel(data=data)
    kernel = type(kernel)(**{**vars(kernel), "keep_every": 4})
    trace = mcmc.sample(kernel, kernel.sample_prior, record=kernel.record, n_draws=10, n_warmup=7, n_chains=1,
                        random_state=0, warn=False)  # fmt: skip
    state = trace.ends[0].state
    assert (len(state.kept), state.n_counted) == (2, 10)


@pytest.mark.parametrize("intercept", [True, False])
def test_densities_of_all_regions_are_those_of_scipy(intercept):
    rng = np.random.default_rng(3)
    kernel = small_kernel(intercept=intercept)
    position = kernel.sample_prior(rng)
    data = kernel.sample_data(rng, position)
    found = log_joint_rows(position, multiplied_out(data[:, :2], data[:, 2:]), kernel.offsets)
    for n, row in enumerate(data):
        task = int(n >= 4)
        for h in range(2):
            M = position["matrices"][position["pointers"][task, h]]
            place = multivariate_normal(position["centers"][task, h], np.linalg.inv(position["precisions"][task, h]))
            step = multivariate_normal(M @ [*row[:2], 1.0], np.eye(2) / position["noise_precision"][task])
            expected = position["log_weights"][task, h] + place.logpdf(row[:2]) + step.logpdf(row[2:])
            assert found[n, h] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_sums_by_region_are_those_of_a_loop():
    rng = np.random.default_rng(4)
    x, y, labels = rng.normal(size=(20, 3)), rng.normal(size=(20, 3)), rng.integers(3, size=20)
    moments = region_moments(multiplied_out(x, y), labels, np.array([0, 12, 20]), 4, 3)
    M = rng.normal(size=(2, 4, 3, 4))
    residuals = squared_residuals(moments, M)
    for task, (a, b) in enumerate(((0, 12), (12, 20))):
        for h in range(4):
            chosen = np.flatnonzero(labels[a:b] == h) + a
            t = np.column_stack([x[chosen], np.ones(len(chosen))])
            assert moments.counts[task, h] == len(chosen)
            np.testing.assert_allclose(moments.gram[task, h], t.T @ t, atol=1e-12)
            np.testing.assert_allclose(moments.cross[task, h], y[chosen].T @ t, atol=1e-12)
            expected = ((y[chosen] - t @ M[task, h].T) ** 2).sum()
            assert residuals[task, h] == pytest.approx(expected, abs=1e-9)


def moments_of_places(x, n_copies):
    t = np.column_stack([x, np.ones(len(x))])
    K = x.shape[1]
    gram = np.broadcast_to(t.T @ t, (1, n_copies, K + 1, K + 1))
    return Moments(np.full((1, n_copies), float(len(x))), gram, np.zeros((1, n_copies, K, K + 1)), np.zeros((1, 1)))


@pytest.mark.parametrize("n", [0, 15])
def test_places_of_regions_have_the_conjugate_posterior(n):
    """Wishart precisions and centres given them, against SciPy; each of six checks fails by chance once in 1e5."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(n, 2)) @ [[1.0, 0.4], [0.0, 0.5]] + [1.0, -2.0]
    u0, v0, n_copies = 0.7, 4.5, 4000
    centers, precisions = (part[0] for part in draw_places(rng, moments_of_places(x, n_copies), SCATTER, u0, v0))
    u, v = u0 + n, v0 + n
    mean = x.sum(axis=0) / u
    inverse = SCATTER + x.T @ x - u * np.outer(mean, mean)
    posterior = wishart(v, np.linalg.inv(inverse))
    expected = posterior.rvs(20000, random_state=6)
    for quantity in (lambda Q: Q[:, 0, 0], lambda Q: Q[:, 0, 1], lambda Q: np.linalg.slogdet(Q)[1]):
        found, other = quantity(precisions), quantity(expected)
        spread = other.std() * np.sqrt(1 / n_copies + 1 / len(other))
        assert abs(found.mean() - other.mean()) < 4.5 * spread
    covariance = np.linalg.inv(precisions)
    entry = invgamma((v - 1) / 2, scale=inverse[0, 0] / 2)  # of an inverse Wishart matrix
    assert kstest(covariance[:, 0, 0], entry.cdf).pvalue > 1e-5
    root = np.linalg.cholesky(u * precisions)
    normal = ((centers - mean)[:, None] @ root)[:, 0]
    assert kstest(normal.ravel(), "norm").pvalue > 1e-5
    assert abs((normal[:, 0] * normal[:, 1]).mean()) < 4.5 / np.sqrt(n_copies)


def test_evidence_is_the_density_of_the_data_with_the_matrix_integrated_out():
    rng = np.random.default_rng(7)
    x, y, g, relevance = rng.normal(size=(6, 2)), rng.normal(size=(6, 2)), 2.5, np.array([0.5, 1.5, 3.0])
    t = np.column_stack([x, np.ones(6)])
    gram, cross, squares = g * (t.T @ t)[None], g * (y.T @ t)[None], g * np.array([(y**2).sum()])
    constant = 6 * np.log(g / (2 * np.pi))  # of 6 rows with two columns
    cover = t @ np.diag(1 / relevance) @ t.T + np.eye(6) / g
    expected = sum(multivariate_normal(np.zeros(6), cover).logpdf(column) for column in y.T)
    assert log_evidence(gram, cross, squares, relevance)[0] + constant == pytest.approx(expected)


def test_a_region_chooses_among_matrices_by_what_the_regions_that_have_them_say_of_its_steps():
    """One false alarm in 100,000: shares of the first of three regions, the others given, against the evidence."""
    rng = np.random.default_rng(11)
    x = rng.normal(size=(9, 2))
    y = x @ rng.normal(size=(2, 2)) + 0.5 * rng.normal(size=(9, 2))
    g, relevance, weights = np.array([2.0, 1.0, 3.0]), np.array([0.5, 1.5, 3.0]), np.array([0.3, 0.1, 0.4, 0.2])
    parts = [np.arange(3), np.arange(3, 6), np.arange(6, 9)]
    moments = region_moments(multiplied_out(x, y), np.zeros(9, dtype=np.int64), np.array([0, 3, 6, 9]), 1, 2)
    position = {
        "pointers": np.array([[2], [2], [1]]), "noise_precision": g, "relevance": relevance,
        "matrices": np.zeros((4, 2, 3)), "regime_log_weights": np.log(weights), "regime_concentration": np.asarray(1.0),
    }  # fmt: skip

    def log_density(tasks):
        """Of the steps of some tasks under one matrix, by the covariance of all of them."""
        rows = np.concatenate([parts[task] for task in tasks])
        t = np.column_stack([x[rows], np.ones(len(rows))])
        cover = t @ np.diag(1 / relevance) @ t.T + np.diag(1 / np.repeat(g[tasks], 3))
        return sum(multivariate_normal(np.zeros(len(rows)), cover).logpdf(column) for column in y[rows].T)

    scores = np.log(weights) + log_density([0])
    for regime, task in ((2, 1), (1, 2)):
        scores[regime] = np.log(weights[regime]) + log_density([0, task]) - log_density([task])
    expected = np.exp(scores - scores.max())
    expected /= expected.sum()
    filled, n = np.ones((3, 1), dtype=bool), 4000
    found = np.bincount([pointers_given_others(rng, position, moments, filled)[0] for _ in range(n)], minlength=4) / n
    assert (np.abs(found - expected) < 4.9 * np.sqrt(expected * (1 - expected) / n) + 1 / n).all()
    assert 0.05 < expected[2] < 0.95  # or nothing is tested


def test_sticks_that_are_used_tell_the_concentration():
    rng = np.random.default_rng(8)
    log_weights, log_rest = draw_sticks(rng, np.array([5, 0, 3, 0, 0]), 1.5)
    n_used, total = used_sticks(np.array([log_weights, log_weights]), np.array([[5, 0, 3, 0, 0], [0, 0, 0, 0, 0]]))
    assert n_used == 3
    assert total == pytest.approx(log_rest[:3].sum())
    assert used_sticks(log_weights[None], np.ones((1, 5)))[0] == 4  # the last takes what is left
    assert drawn_concentration(rng, 0.3, 0.3, 3, -5.0) == 0.3
    drawn = [drawn_concentration(rng, Gamma(2.0, 1.0), 1.0, 3, -1.5) for _ in range(2000)]
    assert kstest(np.array(drawn) * 2.5, "gamma", args=(5.0,)).pvalue > 1e-5


def test_one_task_that_keeps_its_matrices_is_the_single_layer():
    """With one task and pointers held at h -> h, a sweep draws what the single layer draws."""
    rng = np.random.default_rng(9)
    data = rng.normal(size=(12, 4))
    make = {"offsets": [0, 12], "n_regimes": 3, "scatter": SCATTER, "priors": PRIORS}
    single = RegionGibbs(data[:, :2], data[:, 2:], n_regions=None, **make)
    shared = RegionGibbs(data[:, :2], data[:, 2:], n_regions=3, **make)
    position = dict(single.sample_prior(rng))
    also = position | {"regime_log_weights": np.zeros(3), "regime_concentration": np.asarray(1.0)}
    labels = position["labels"]
    for a, b in ((single, position), (shared, also)):
        joint = log_joint_rows(b, a.products, a.offsets)
        np.testing.assert_array_equal(joint, log_joint_rows(position, single.products, single.offsets))
    moments = region_moments(single.products, labels, single.offsets, 3, 2)
    first = single.drawn_parameters(np.random.default_rng(1), position, moments)
    second = shared.drawn_parameters(np.random.default_rng(1), also, moments)
    for name, value in first.items():
        np.testing.assert_array_equal(second[name], value, err_msg=name)


def test_empty_regions_come_from_their_prior_without_overflow():
    """One transition, vague priors: everything that a chain draws stays finite."""
    kernel = RegionGibbs(np.zeros((1, 2)), np.ones((1, 2)), [0, 1], 20, 10, SCATTER)
    rng = np.random.default_rng(10)
    position = kernel.sample_prior(rng)
    for _ in range(300):
        position = kernel.sweep(rng, position, np.array([[0.0, 0.0, 1.0, 1.0]]))
        assert all(np.isfinite(value).all() for value in position.values())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"starts": np.full((7, 2), np.nan)}, "starts must be a finite matrix"),
        ({"ends": np.zeros((6, 2))}, "ends must have the shape of starts"),
        ({"offsets": [0, 3]}, "offsets must lead from 0 to 7"),
        ({"offsets": [0, 5, 4, 7]}, "offsets must rise"),
        ({"n_regions": None}, "be two without n_regions"),
        ({"n_regimes": 0}, "n_regimes must be"),
    ],
)
def test_bad_data_of_the_sampler_are_refused(change, message):
    given = {"starts": np.zeros((7, 2)), "ends": np.zeros((7, 2)), "offsets": [0, 4, 7]} | change
    with pytest.raises(ValueError, match=message):
        RegionGibbs(**given)
