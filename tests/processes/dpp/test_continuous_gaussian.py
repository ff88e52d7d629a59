"""The Gaussian process in space against quadrature: spectrum, densities, and the laws of exact draws."""

import numpy as np
import pytest
from numpy.polynomial.hermite import hermgauss
from scipy.integrate import quad
from scipy.stats import chisquare, kstest, norm

from pluri.processes.dpp.continuous._kernels import draw_squared_hermite, fill_hermite, hermite_cdf
from pluri.processes.dpp.continuous.gaussian import GaussianContinuousDPP, gaussian_eigenvalues

#: False-alarm rate of each statistical test below.
ALPHA = 1e-6
#: The base density a / sqrt(pi) exp(-a^2 x^2) with a = 1, and exp(-eps^2 (x - y)^2) with eps = 1.3.
SCALE, LENGTH = np.sqrt(0.5), np.sqrt(0.5) / 1.3


def hermite(order, t):
    values = np.empty(order + 1)
    fill_hermite(float(t), order, 0.0, values)
    return values


def test_known_eigenvalues():
    np.testing.assert_allclose(gaussian_eigenvalues(1.0, 1.3, 4), [0.528307, 0.249199, 0.117545, 0.055445], atol=5e-7)
    process = GaussianContinuousDPP(LENGTH, SCALE)
    np.testing.assert_allclose(process.eigenvalues[:4], gaussian_eigenvalues(1.0, 1.3, 4))
    assert process.eigenvalues.sum() == pytest.approx(1.0, abs=1e-8)


@pytest.mark.parametrize("dim", [1, 2])
def test_eigenvalues_are_those_of_the_integral_operator(dim):
    process = GaussianContinuousDPP([0.7, 1.1][:dim], [1.0, 0.8][:dim], amplitude=2.5, mean=[0.5, -1.0][:dim])
    x, w = hermgauss(120 if dim == 1 else 40)
    axes = [process.mean[d] + np.sqrt(2) * process.scale[d] * x for d in range(dim)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, dim)
    weights = (w / np.sqrt(np.pi)) if dim == 1 else np.outer(w, w).ravel() / np.pi
    root = np.sqrt(weights)
    found = np.linalg.eigvalsh(process.kernel(points, points) * root * root[:, None])[::-1]
    n = 20 if dim == 1 else 12
    np.testing.assert_allclose(process.eigenvalues[:n], found[:n], atol=2e-6)


def test_eigenfunctions_are_orthonormal_and_make_up_the_kernel():
    process = GaussianContinuousDPP(LENGTH, SCALE, amplitude=3.0)
    x, w = hermgauss(120)
    functions = process.eigenfunctions(x)
    gram = (functions * w[:, None] / np.sqrt(np.pi)).T @ functions
    np.testing.assert_allclose(gram[:15, :15], np.eye(15), atol=1e-12)
    points = np.linspace(-2, 2, 9)
    values = process.eigenfunctions(points)
    np.testing.assert_allclose((values * process.eigenvalues) @ values.T, process.kernel(points, points), atol=1e-8)
    np.testing.assert_allclose(
        process.intensity(points), process.marginal_kernel(points, points).diagonal() * process.base_density(points)
    )


@pytest.mark.parametrize("order", [0, 1, 7, 40])
def test_the_distribution_function_of_squared_hermite_functions(order):
    for t in (-2.0, 0.3, 1.7, 6.0):
        expected = quad(lambda s: hermite(order, s)[-1] ** 2, -15, t, limit=400)[0]
        assert hermite_cdf(t, order, np.empty(order + 1)) == pytest.approx(expected, abs=1e-9)


def test_hermite_functions_of_high_order_far_out_neither_underflow_nor_overflow():
    # Near the turning point sqrt(2n + 1) the function is of the size n^(-1/12), although exp(-t^2 / 2) is zero there.
    values = hermite(3000, np.sqrt(6001.0) - 0.5)
    assert 0.1 < abs(values[3000]) < 1.0
    assert values[0] == 0.0
    assert np.isfinite(hermite(3000, 200.0)).all()


def test_draws_from_a_squared_hermite_function():
    """False-alarm rate 1e-6."""
    rng, values = np.random.default_rng(0), np.empty(8)
    draws = [draw_squared_hermite(rng, 7, values) for _ in range(3000)]
    assert kstest(draws, np.vectorize(lambda t: hermite_cdf(t, 7, values))).pvalue > ALPHA


def test_a_single_point_has_the_law_of_the_base_measure():
    """Since L(x, x) is constant; false-alarm rate 1e-6 for each coordinate."""
    process = GaussianContinuousDPP([0.5, 0.3], [1.0, 2.0], mean=[3.0, -1.0])
    points = np.concatenate(process.sample(3000, size=1, random_state=0))
    assert kstest(points[:, 0], norm(3.0, 1.0).cdf).pvalue > ALPHA
    assert kstest(points[:, 1], norm(-1.0, 2.0).cdf).pvalue > ALPHA


def test_the_density_of_sets_integrates_to_one():
    process = GaussianContinuousDPP(1.0, 1.0, amplitude=0.6)
    x, w = hermgauss(24)
    points, weights = np.sqrt(2) * x, w / np.sqrt(np.pi)
    total = np.exp(process.log_prob([]))
    total += sum(weight * np.exp(process.log_prob([p])) for p, weight in zip(points, weights))
    pairs = np.array([[np.exp(process.log_prob([p, q])) for q in points] for p in points])
    total += weights @ pairs @ weights / 2
    # Three points and more: e_k of the eigenvalues, which a test of symmetric polynomials covers.
    coefficients = np.poly(-process.eigenvalues[:40])[: 8 + 1]
    rest = sum(coefficients[3:]) / np.prod(1 + process.eigenvalues)
    assert total + rest == pytest.approx(1.0, abs=1e-6)
    fixed = np.array([[np.exp(process.log_prob([p, q], size=2)) for q in points] for p in points])
    assert weights @ fixed @ weights / 2 == pytest.approx(1.0, abs=1e-8)
    assert process.log_prob([0.1, 0.2, 0.3], size=2) == -np.inf
    assert process.log_prob([0.1, 0.1]) == -np.inf


@pytest.fixture(scope="module")
def line():
    process = GaussianContinuousDPP(0.4, 1.0).with_expected_size(4)
    return process, process.sample(6000, random_state=1)


def test_the_number_of_points_is_a_sum_of_coins(line):
    """False-alarm rate 1e-6."""
    process, draws = line
    pmf = np.ones(1)
    for p in process.eigenvalues / (1 + process.eigenvalues):
        pmf = np.convolve(pmf, [1 - p, p])
    counts = np.bincount([len(draw) for draw in draws], minlength=12)[:12]
    expected = np.append(pmf[:11], pmf[11:].sum()) * len(draws)
    keep = expected > 5
    counts, expected = np.append(counts[keep], counts[~keep].sum()), np.append(expected[keep], expected[~keep].sum())
    assert chisquare(counts, expected).pvalue > ALPHA
    assert process.expected_size == pytest.approx(4.0)


def test_draws_have_the_intensity_and_the_pairs_of_the_formula(line):
    """Counts in two intervals, and pairs between and within them; false-alarm rate 1e-6 by Bonferroni."""
    process, draws = line
    intervals = [(-0.6, 0.0), (0.0, 0.5), (1.0, 3.0)]
    grids = []
    for low, high in intervals:
        x, w = np.polynomial.legendre.leggauss(40)
        grids.append((0.5 * (low + high) + 0.5 * (high - low) * x, 0.5 * (high - low) * w))
    counts = np.array([[((d > low) & (d < high)).sum() for low, high in intervals] for d in draws], dtype=float)
    scores = []
    for a in range(3):
        expected = process.intensity(grids[a][0]) @ grids[a][1]
        scores.append((counts[:, a] - expected, "mean"))
        for b in range(a, 3):
            (x, wx), (y, wy) = grids[a], grids[b]
            rate = np.outer(process.intensity(x) * wx, process.intensity(y) * wy)
            pairs = (rate * process.pair_correlation(x, y)).sum()
            found = counts[:, a] * counts[:, b] - (counts[:, a] if a == b else 0.0)
            scores.append((found - pairs, "pairs"))
    z = [np.sqrt(len(draws)) * gap.mean() / gap.std() for gap, _ in scores]
    assert np.abs(z).max() < norm.isf(ALPHA / 2 / len(z))


def test_draws_of_fixed_size_in_the_plane_have_the_right_mean_kernel_entry():
    """Pairs of two points weigh the base measure by det; false-alarm rate 1e-6."""
    process = GaussianContinuousDPP(1.0, 1.0, n_dimensions=2)
    draws = np.array(process.sample(4000, size=2, random_state=0))
    gap = ((draws[:, 0] - draws[:, 1]) ** 2).sum(axis=1)
    # Squared distance r of two normal points is 4 times a unit exponential; weight 1 - exp(-r).
    density = lambda r: np.exp(-r / 4) / 4 * (1 - np.exp(-r))  # noqa: E731
    total = quad(density, 0, np.inf)[0]
    cdf = np.vectorize(lambda r: quad(density, 0, r)[0] / total)
    assert kstest(gap, cdf).pvalue > ALPHA


def test_draws_repeat_and_have_the_shape_asked_for():
    process = GaussianContinuousDPP(0.5, n_dimensions=2).with_expected_size(5)
    for one, other in zip(process.sample(3, random_state=7), process.sample(3, random_state=7), strict=True):
        np.testing.assert_array_equal(one, other)
    assert process.sample(size=0, random_state=0).shape == (0, 2)
    assert process.sample(size=6, random_state=0).shape == (6, 2)
    assert process.sample(0) == []


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: GaussianContinuousDPP(-1.0), "length_scale must be positive and finite"),
        (lambda: GaussianContinuousDPP(1.0, [1.0, np.inf]), "scale must be positive and finite"),
        (lambda: GaussianContinuousDPP([1.0, 1.0], [1.0] * 3), "vectors of n_dimensions"),
        (lambda: GaussianContinuousDPP(amplitude=0.0), "amplitude must be positive"),
        (lambda: GaussianContinuousDPP(mean=np.nan), "mean must be finite"),
        (lambda: GaussianContinuousDPP(0.001, n_dimensions=2), "more than 20000 eigenfunctions"),
        (lambda: GaussianContinuousDPP().log_prob([[0.0, 1.0]]), "X must be points with 1 coordinates"),
        (lambda: GaussianContinuousDPP().log_prob([np.nan]), "X must be finite"),
        (lambda: GaussianContinuousDPP().sample(size=10**6), "size must be a whole number from 0 to the rank"),
        (lambda: GaussianContinuousDPP().with_expected_size(0), "expected_size must lie between 0 and the rank"),
    ],
)
def test_bad_input_is_told_in_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
