"""Processes in space of low rank, Gibbs sampling with any kernel, and rows on the simplex."""

import math
import signal

import numpy as np
import pytest
from scipy.stats import kstest, norm

from pluri import on_interrupt
from pluri.inference import mcmc
from pluri.priors import expected_determinant, sample_diverse_rows
from pluri.processes.dpp.continuous import process as process_module
from pluri.processes.dpp.continuous.diverse_simplex import DirichletDPP
from pluri.processes.dpp.continuous.domains import Box, NormalBase, spread_points
from pluri.processes.dpp.continuous.features import GaussianSimilarity, by_quadrature, fourier, nystrom
from pluri.processes.dpp.continuous.point_gibbs import PointGibbs
from pluri.processes.dpp.continuous.process import ContinuousDPP
from pluri.testing import compare_samples

#: False-alarm rate of each statistical test below.
ALPHA = 1e-6
DOMAINS = {"box": Box([-1.0, 0.5], [0.5, 2.0]), "normal": NormalBase([0.3, -0.2], [0.5, 1.0])}


# Closed forms --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DOMAINS)
def test_second_moments_in_closed_form_equal_quadrature(name):
    domain, rng = DOMAINS[name], np.random.default_rng(0)
    similarity = GaussianSimilarity(np.array([0.6, 0.9]))
    landmarks = domain.draw(rng, 12)
    found = nystrom(similarity, landmarks, domain, 1.3)
    np.testing.assert_allclose(found.moment, by_quadrature(found.features, domain, 1.3), atol=1e-8)
    waves = fourier(rng.normal(size=(10, 2)) / [0.6, 0.9], domain, 1.3)
    np.testing.assert_allclose(waves.moment, by_quadrature(waves.features, domain, 1.3), atol=1e-8)


def test_eigenvalues_on_an_interval_are_those_of_the_integral_operator():
    process = ContinuousDPP(Box([0.0], [2.0]), length_scale=0.3, quality=1.5)
    x, w = np.polynomial.legendre.leggauss(200)
    points, root = (x + 1.0)[:, None], np.sqrt(w)
    found = np.linalg.eigvalsh(process.kernel(points, points) * root * root[:, None])[::-1]
    np.testing.assert_allclose(process.eigenvalues[:12], found[:12], rtol=1e-4)
    assert process.eigenvalues.sum() == pytest.approx(2.0 * 1.5**2, rel=1e-6)


def test_landmarks_reach_the_exact_spectrum_under_a_normal_base():
    base = NormalBase([0.0], [1.0])
    exact = ContinuousDPP(base, length_scale=0.7)
    assert exact.method_ == "exact"
    approximate = ContinuousDPP(base, length_scale=0.7, method="nystrom", n_features=100)
    np.testing.assert_allclose(approximate.eigenvalues[:8], exact.eigenvalues[:8], rtol=5e-3)
    assert approximate.log_normalizer == pytest.approx(exact.log_normalizer, rel=1e-3)
    points = np.linspace(-1.5, 1.5, 7)
    np.testing.assert_allclose(approximate.intensity(points), exact.intensity(points), rtol=1e-2)
    assert approximate.log_prob(points[:3]) == pytest.approx(exact.log_prob(points[:3]), abs=1e-2)


def test_many_random_frequencies_come_near():
    process = ContinuousDPP(Box([0, 0], [1, 1]), length_scale=0.4, method="fourier", n_features=1000, random_state=0)
    exact = ContinuousDPP(Box([0, 0], [1, 1]), length_scale=0.4)
    np.testing.assert_allclose(process.eigenvalues[:4], exact.eigenvalues[:4], rtol=0.15)


def test_a_callable_kernel_and_quality_give_the_same_as_the_closed_form():
    box = Box([0.0], [1.0])
    by_name = ContinuousDPP(box, length_scale=0.2, quality=2.0)
    by_hand = ContinuousDPP(
        box, lambda a, b: np.exp(-((a - b.T) ** 2) / 0.08), quality=lambda X: np.full(len(X), 2.0), quality_bound=2.0
    )
    np.testing.assert_allclose(by_hand.eigenvalues[:6], by_name.eigenvalues[:6], rtol=1e-6)


def test_the_density_of_the_process_in_use_integrates_to_one():
    process = ContinuousDPP(Box([0.0], [1.0]), length_scale=0.5, n_features=3, quality=lambda X: 1.0 + X[:, 0])
    x, w = np.polynomial.legendre.leggauss(30)
    points, weights = 0.5 * (x + 1), 0.5 * w
    total = np.exp(process.log_prob([])) + weights @ [np.exp(process.log_prob([p])) for p in points]
    total += weights @ [[np.exp(process.log_prob([p, q])) for q in points] for p in points] @ weights / 2
    cubes = sum(
        math.prod(weights[list(i)]) * np.exp(process.log_prob(points[list(i)]))
        for i in ((a, b, c) for a in range(30) for b in range(a) for c in range(b))
    )
    assert process.rank == 3
    assert total + cubes == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("lower", [[0.0], [0.0, -1.0], [0.0, -1.0, 2.0]], ids=["line", "plane", "space"])
def test_products_over_a_box_are_orthonormal_eigenfunctions(lower):
    box = Box(lower, np.array(lower) + [1.0, 2.0, 0.5][: len(lower)])
    process = ContinuousDPP(box, length_scale=0.6, quality=1.5)
    assert process.method_ == "exact"
    nodes, weights = box.nodes()
    functions = process._functions(nodes, np.arange(5))
    np.testing.assert_allclose(functions.T * weights @ functions, np.eye(5), atol=1e-8)
    some = nodes[:: len(nodes) // 7]
    np.testing.assert_allclose(
        process.kernel(some, nodes) * weights @ functions, process._functions(some, np.arange(5)) * process._values[:5],
        atol=1e-8,
    )  # fmt: skip
    assert process.eigenvalues.sum() == pytest.approx(box.mass * 1.5**2, rel=1e-6)


def test_a_short_length_scale_keeps_the_whole_trace_and_an_even_intensity():
    # 200 landmarks would keep a quarter of the trace, with intensities from 0.4 to 349 where 100 is right.
    process = ContinuousDPP(Box([0, 0], [1, 1]), length_scale=0.02)
    assert process.kept_share_ > 0.99
    many = process.with_expected_size(100)
    points = np.random.default_rng(0).random((1000, 2))
    inside = points[((points > 0.1) & (points < 0.9)).all(axis=1)]
    # Far from the borders the process is stationary, and a little thinner than at the borders.
    np.testing.assert_allclose(many.intensity(inside), many.intensity([[0.5, 0.5]])[0], rtol=1e-3)
    assert 97 < many.intensity([[0.5, 0.5]])[0] < 100


def test_landmarks_grow_until_they_keep_the_trace():
    settings = {"length_scale": 0.06, "quality": lambda X: 1.0 + X[:, 0]}
    square = Box([0, 0], [1, 1])
    grown = ContinuousDPP(square, **settings)
    assert grown.method_ == "nystrom"
    assert grown.kept_share_ > 0.99
    with pytest.warns(UserWarning, match=r"n_features=100 landmarks keep only 0\.\d+ of the trace .* raise n_features"):
        few = ContinuousDPP(square, n_features=100, **settings)
    points = np.random.default_rng(0).random((500, 2))
    diagonal = np.diagonal(grown.kernel(points, points))
    known = [(p._features(points) ** 2).sum(axis=1) / diagonal for p in (grown, few)]
    assert known[0].mean() == pytest.approx(1.0, abs=0.02)
    assert known[1].mean() == pytest.approx(few.kept_share_, abs=0.05)


def test_landmarks_grow_for_a_process_that_is_scaled_up(monkeypatch):
    interval = Box([0.0], [1.0])
    monkeypatch.setattr(process_module, "FEWEST_LANDMARKS", 8)
    process = ContinuousDPP(interval, lambda a, b: np.exp(-((a - b.T) ** 2) / 0.02))
    assert process.rank < 20
    scaled = process.with_expected_size(12.0)
    exact = ContinuousDPP(interval, length_scale=0.1).with_expected_size(12.0)
    assert scaled.rank > process.rank
    assert scaled.expected_size == pytest.approx(12.0)
    np.testing.assert_allclose(scaled.eigenvalues[:8], exact.eigenvalues[:8], rtol=0.01)
    points = np.linspace(0.05, 0.95, 9)
    np.testing.assert_allclose(scaled.intensity(points), exact.intensity(points), rtol=0.01)
    np.testing.assert_allclose(scaled.kernel(points, points), exact.kernel(points, points), rtol=0.01)
    monkeypatch.setattr(process_module, "MOST_LANDMARKS", process._n_landmarks)
    with pytest.warns(UserWarning, match=r"keep only 0\.\d+ of the expected points"):
        process.with_expected_size(14.5)


def test_too_short_a_length_scale_is_told():
    with pytest.warns(
        UserWarning, match=r"3000 largest eigenvalues keep only 0\.\d+ of the trace .* larger length_scale"
    ):
        ContinuousDPP(Box([0, 0], [1, 1]), length_scale=0.01)


# Draws ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["nystrom", "fourier"])
@pytest.mark.parametrize("domain", [Box([0.0], [1.0]), NormalBase([0.5], [0.4])], ids=["box", "normal"])
def test_draws_have_the_intensity_and_the_pairs_of_the_formula(method, domain):
    """Counts and pairs in two intervals, with a quality that varies; false-alarm rate 1e-6 by Bonferroni."""
    process = ContinuousDPP(
        domain, length_scale=0.25, quality=lambda X: 1.0 + 0.5 * np.sin(4 * X[:, 0]), method=method, n_features=40,
        random_state=0,
    ).with_expected_size(3)  # fmt: skip
    draws = process.sample(750, random_state=2)
    intervals = [(0.1, 0.4), (0.4, 0.9)]
    grids = []
    for low, high in intervals:
        x, w = np.polynomial.legendre.leggauss(40)
        grids.append((0.5 * (low + high) + 0.5 * (high - low) * x, 0.5 * (high - low) * w))
    counts = np.array([[((d > low) & (d < high)).sum() for low, high in intervals] for d in draws], dtype=float)
    gaps = [np.array([len(d) for d in draws]) - process.expected_size]
    for a in range(2):
        gaps.append(counts[:, a] - process.intensity(grids[a][0]) @ grids[a][1])
        for b in range(a, 2):
            (x, wx), (y, wy) = grids[a], grids[b]
            rate = np.outer(process.intensity(x) * wx, process.intensity(y) * wy)
            found = counts[:, a] * counts[:, b] - (counts[:, a] if a == b else 0.0)
            gaps.append(found - (rate * process.pair_correlation(x, y)).sum())
    z = [np.sqrt(len(draws)) * gap.mean() / gap.std() for gap in gaps]
    assert np.abs(z).max() < norm.isf(ALPHA / 2 / len(z))


def test_points_in_a_box_stay_in_it_and_repeat():
    process = ContinuousDPP(Box([0, 0, 0], [1, 2, 3]), length_scale=0.5, n_features=60)
    one, other = (process.sample(size=4, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(one, other)
    assert one.shape == (4, 3)
    assert ((one >= 0) & (one <= [1, 2, 3])).all()
    assert process.sample(size=0, random_state=0).shape == (0, 3)
    assert process.sample(0) == []


def test_the_bound_from_a_grid_holds_between_its_nodes_and_is_far_below_the_safe_one():
    process = ContinuousDPP(Box([0, 0], [1, 1]), length_scale=0.15).with_expected_size(15)
    points = np.random.default_rng(0).random((20000, 2))
    values = process._functions(points) ** 2
    for chosen in (np.arange(15), np.arange(5, 40), np.array([0, 60])):
        bound = process._grid.largest(chosen)
        assert values[:, chosen].sum(axis=1).max() < bound < 2.0 * values[:, chosen].sum(axis=1).max()
    safe = process._bound / process._factor / process._values[60]
    assert bound < 0.1 * safe


def test_a_quality_that_rises_above_its_bound_is_told():
    def spiked(X):
        return 1.0 + 5.0 * (np.abs(X[:, 0] - 0.123456) < 2e-5)

    process = ContinuousDPP(Box([0.0], [1.0]), length_scale=0.3, quality=spiked)
    process.domain = Box([0.12344], [0.12347])
    with pytest.raises(ValueError, match="quality_bound must be at least"):
        process.sample(20, size=1, random_state=0)


# Gibbs ---------------------------------------------------------------------------------------------------------------


def test_gibbs_runs_in_the_driver_and_in_the_process():
    process = ContinuousDPP(Box([0.0], [1.0]), lambda a, b: np.exp(-np.abs(a - b.T) / 0.2), method="gibbs")
    kernel = process.gibbs_kernel()
    settings = {"n_draws": 300, "n_warmup": 10, "n_chains": 2, "n_jobs": 1, "warn": False}
    trace = mcmc.sample(kernel, lambda rng: kernel.draw_start(rng, 4), random_state=0, **settings)
    assert trace["points"].shape == (2, 300, 4, 1)
    draws = process.sample(300, size=4, n_warmup=2, random_state=1)
    # Nearest points of both are further apart than those of independent points, and alike: false-alarm rate 1e-6.
    spacing = [np.diff(np.sort(d[:, 0])).min() for d in draws]
    chain = np.diff(np.sort(trace["points"][:, ::3, :, 0].reshape(-1, 4), axis=1), axis=1).min(axis=1)
    free = np.diff(np.sort(np.random.default_rng(0).random((2000, 4)), axis=1), axis=1).min(axis=1)
    assert min(np.mean(spacing), chain.mean()) > 1.2 * free.mean()
    smallest = min(c.p_value for c in compare_samples({"gap": np.array(spacing)}, {"gap": chain}))
    assert smallest > ALPHA / 3


def test_ctrl_c_keeps_the_sets_so_far(monkeypatch):
    process = ContinuousDPP(Box([0.0], [1.0]), length_scale=0.1, method="gibbs")
    original, calls = PointGibbs.step, []

    def step(self, rng, state):
        calls.append(1)
        if len(calls) == 7:
            signal.raise_signal(signal.SIGINT)
        return original(self, rng, state)

    monkeypatch.setattr(PointGibbs, "step", step)
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted after 3 draws"):
        assert len(process.sample(10, size=2, n_warmup=2, random_state=0)) == 3


def test_more_points_than_the_rank_leave_no_room():
    chain = PointGibbs(lambda a, b: 1.0 + a @ b.T, Box([0.0], [1.0]), bound=2.0, max_proposals=2000)
    with pytest.raises(RuntimeError, match="no room for 3 points"):
        chain.draw_start(np.random.default_rng(0), 3)


# Rows on the simplex -------------------------------------------------------------------------------------------------


def test_the_normaliser_is_that_of_independent_rows():
    """Against simulation where there are fewer rows than columns; false-alarm rate 1e-6."""
    for k in (1, 2, 3, 5):
        assert DirichletDPP(1.0, k).expected_determinant(k) == pytest.approx(expected_determinant(k))
    process = DirichletDPP([0.5, 1.0, 2.0, 1.5])
    rows = np.random.default_rng(0).dirichlet(process.concentration, size=(20000, 2))
    overlap = (np.sqrt(rows[:, 0]) * np.sqrt(rows[:, 1])).sum(axis=1)
    values = 1.0 - overlap**2
    z = (values.mean() - process.expected_determinant(2)) / (values.std() / np.sqrt(20000))
    assert abs(z) < norm.isf(ALPHA / 2)


def test_three_rows_in_three_columns_have_the_known_means():
    """Mean determinant 0.103768 (E det^2 / E det of independent rows) and overlap 0.758; false-alarm rate 1e-6."""
    draws = np.array(DirichletDPP(1.0, 3).sample(3000, size=3, random_state=0))
    kernels = np.sqrt(draws) @ np.sqrt(draws).transpose(0, 2, 1)
    determinants = np.linalg.det(kernels)
    overlaps = kernels[:, [0, 0, 1], [1, 2, 2]].mean(axis=1)
    for values, known, rounding in ((determinants, 0.103768, 5e-7), (overlaps, 0.758, 5e-4)):
        error = values.std() / np.sqrt(len(values))
        assert abs(values.mean() - known) < norm.isf(ALPHA / 4) * error + rounding


def test_as_many_rows_as_columns_agree_with_the_other_sampler():
    """False-alarm rate 1e-6 by Bonferroni."""
    rng = np.random.default_rng(0)
    one = np.array(DirichletDPP(0.8, 3).sample(800, size=3, random_state=1))
    other = np.array([sample_diverse_rows(3, 0.8, rng) for _ in range(800)])
    quantities = {
        "first": lambda d: d[:, 0, 0],
        "second": lambda d: d[:, 1, 2],
        "largest": lambda d: d.max(axis=(1, 2)),
        "determinant": lambda d: np.linalg.det(np.sqrt(d) @ np.sqrt(d).transpose(0, 2, 1)),
    }
    found = compare_samples({k: f(one) for k, f in quantities.items()}, {k: f(other) for k, f in quantities.items()})
    assert min(c.p_value for c in found) > ALPHA / len(found)


def test_fewer_rows_than_columns_have_the_law_by_weighting():
    """Overlap of two rows in four columns against weighted independent rows; false-alarm rate about 1e-6."""
    process = DirichletDPP([0.5, 1.0, 2.0, 1.5])
    draws = np.array(process.sample(3000, size=2, random_state=0))
    overlap = np.sqrt(draws).prod(axis=1).sum(axis=1)
    rows = np.random.default_rng(1).dirichlet(process.concentration, size=(200000, 2))
    free = np.sort(np.sqrt(rows).prod(axis=1).sum(axis=1))
    cumulative = np.cumsum(1.0 - free**2)
    cumulative /= cumulative[-1]
    assert kstest(overlap, lambda x: np.interp(x, free, cumulative)).pvalue > ALPHA


def test_the_number_of_rows_may_be_random():
    """False-alarm rate 1e-6."""
    process = DirichletDPP(1.0, 5, amplitude=10.0)
    sizes = np.array([len(rows) for rows in process.sample(1500, random_state=0)])
    chance = np.exp(process.log_odds) / (1 + np.exp(process.log_odds))
    z = (sizes.mean() - process.expected_size) / np.sqrt((chance * (1 - chance)).sum() / len(sizes))
    assert abs(z) < norm.isf(ALPHA / 2)
    rows = process.sample(size=2, random_state=0)
    kernel = process.kernel(rows, rows)
    assert process.log_prob(rows) == pytest.approx(np.linalg.slogdet(kernel)[1] - process.log_normalizer)
    assert process.log_prob(rows, size=2) == pytest.approx(
        np.log(np.linalg.det(kernel) * 2 / process.expected_determinant(2))
    )


BOX = Box([0.0], [1.0])
GIBBS = PointGibbs(lambda a, b: np.exp(-((a - b.T) ** 2)), BOX, bound=1.0)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: Box([0.0], [np.inf]), "infinite trace"),
        (lambda: Box([1.0], [0.0]), "lower must be below upper"),
        (lambda: Box([0.0], [1.0, 2.0]), "vectors of one length"),
        (lambda: NormalBase(0.0, -1.0), "mean must be finite and scale positive"),
        (lambda: ContinuousDPP(BOX, lambda a, b: np.abs(a - b.T)), "must be positive semi-definite, got"),
        (lambda: ContinuousDPP(BOX, lambda a, b: a - b.T), "kernel must be symmetric"),
        (lambda: ContinuousDPP(BOX, lambda a, b: a @ b.T * np.nan), "kernel must be finite"),
        (lambda: ContinuousDPP(BOX, lambda a, b: np.ones(3)), "kernel must give all pairs"),
        (lambda: ContinuousDPP(BOX, "laplace"), "kernel must be 'gaussian' or a callable"),
        (lambda: ContinuousDPP(BOX, length_scale=0.0), "length_scale must be positive"),
        (lambda: ContinuousDPP(BOX, method="best"), "method must be one of 'auto'"),
        (lambda: ContinuousDPP(BOX, quality=lambda X: X[:, 0], method="exact"), "method 'exact' needs the Gaussian"),
        (lambda: ContinuousDPP(BOX, lambda a, b: a @ b.T, method="fourier"), "method 'fourier' needs the Gaussian"),
        (lambda: ContinuousDPP("box"), "domain must be a Box or a NormalBase"),
        (lambda: ContinuousDPP(BOX, n_features=0), "n_features must be an integer of at least 1 or None"),
        (lambda: ContinuousDPP(BOX, quality=-1.0), "quality must be positive and finite"),
        (lambda: ContinuousDPP(BOX, quality=lambda X: np.zeros(len(X))), "quality must be positive somewhere"),
        (lambda: ContinuousDPP(BOX, quality=lambda X: -np.ones(len(X))), "quality must give one finite, non-negative"),
        (lambda: ContinuousDPP(BOX, quality=lambda X: np.ones(3)), "quality must give one number for each"),
        (lambda: ContinuousDPP(BOX, quality=2.0, quality_bound=1.0), "quality_bound must be finite and at least 2"),
        (
            lambda: ContinuousDPP(NormalBase(0.0, 1.0), quality=lambda X: np.exp(0.25 * X[:, 0] ** 2)),
            "infinite trace",
        ),
        (
            lambda: ContinuousDPP(BOX, method="gibbs").sample(),
            "size with method 'gibbs' must be an integer of at least 1, got None",
        ),
        (
            lambda: ContinuousDPP(BOX, method="gibbs").sample(size=2, n_warmup=0),
            "n_warmup must be an integer of at least 1, got 0",
        ),
        (lambda: ContinuousDPP(BOX, method="gibbs").expected_size, "method 'gibbs' knows no eigenvalues"),
        (lambda: ContinuousDPP(BOX, method="gibbs").log_odds, "method 'gibbs' knows no eigenvalues"),
        (lambda: GIBBS.init(np.random.default_rng(0), np.zeros((2, 1))), "must be a dict with 'points'"),
        (lambda: GIBBS.init(np.random.default_rng(0), {"points": [[0.1], [0.1]]}), "some coincide"),
        (lambda: GIBBS.init(np.random.default_rng(0), {"points": [[2.0]]}), "points must lie in the domain"),
        (lambda: PointGibbs(lambda a, b: a, BOX, bound=0.0), "bound must be positive"),
        (
            lambda: PointGibbs(GIBBS.kernel, BOX, 0.5).draw_start(np.random.default_rng(0), 1),
            "bound must be at least",
        ),
        (lambda: DirichletDPP(1.0), "n_columns must be given"),
        (lambda: DirichletDPP([1.0, 0.0]), "concentration must be positive"),
        (lambda: DirichletDPP([1.0, 2.0], 3), "concentration must be a vector of n_columns"),
        (lambda: DirichletDPP(1.0, 3).sample(size=4), r"from 0 to the rank \(3\), got 4"),
        (lambda: DirichletDPP(1.0, 3).log_prob([[0.5, 0.5, 0.5]]), "rows must be probability vectors"),
    ],
)  # fmt: skip
def test_bad_input_is_told_in_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_points_are_spread_evenly():
    points = spread_points(2, 100)
    assert points.shape == (100, 2)
    counts = np.histogram2d(*points.T, bins=4, range=[[0, 1]] * 2)[0]
    assert counts.min() >= 5
