"""Probability product kernels against sums, quadrature and the forms of the literature."""

import numpy as np
import pytest
from scipy import integrate, sparse, stats

from pluri.priors.kernels import ProbabilityProductKernel
from pluri.priors.kernels.discrete_families import log_poisson_powers

POWERS = (0.25, 0.5, 0.8, 1.0, 2.0)


def random_covariances(rng, n_parts, n_features):
    roots = rng.normal(size=(n_parts, n_features, n_features))
    return roots @ np.swapaxes(roots, 1, 2) / n_features + 0.3 * np.eye(n_features)


def unit_diagonal(matrix):
    roots = np.sqrt(np.diagonal(matrix))
    return matrix / np.outer(roots, roots)


@pytest.mark.parametrize("rho", POWERS)
def test_categorical_kernel_is_the_sum_over_categories(rho):
    rows = np.random.default_rng(0).dirichlet(np.full(5, 0.7), size=4)
    expected = np.array([[np.sum(p**rho * q**rho) for q in rows] for p in rows])
    raw = ProbabilityProductKernel(rho=rho, normalized=False)
    np.testing.assert_allclose(raw(rows), expected, rtol=1e-12)
    np.testing.assert_allclose(np.exp(raw.log_matrix(rows)), expected, rtol=1e-12)
    np.testing.assert_allclose(raw.diagonal(rows), np.diagonal(expected), rtol=1e-12)
    kernel = ProbabilityProductKernel(rho=rho)
    np.testing.assert_allclose(kernel(rows), unit_diagonal(expected), rtol=1e-12)
    np.testing.assert_allclose(np.exp(kernel.log_matrix(rows)), unit_diagonal(expected), rtol=1e-12)
    np.testing.assert_allclose(kernel(rows[:1], rows[1:]), unit_diagonal(expected)[:1, 1:], rtol=1e-12)


@pytest.mark.parametrize("rho", POWERS)
def test_bernoulli_kernel_is_the_sum_over_all_outcomes(rho):
    rows = np.random.default_rng(1).random((3, 4))
    outcomes = np.array(np.meshgrid(*[[0, 1]] * 4)).reshape(4, -1).T
    masses = np.prod(np.where(outcomes, rows[:, None], 1 - rows[:, None]), axis=2)
    expected = masses**rho @ (masses**rho).T
    np.testing.assert_allclose(ProbabilityProductKernel("bernoulli", rho, False)(rows), expected, rtol=1e-12)
    np.testing.assert_allclose(ProbabilityProductKernel("bernoulli", rho)(rows), unit_diagonal(expected), rtol=1e-12)
    diagonal = ProbabilityProductKernel("bernoulli", rho, False).diagonal(rows)
    np.testing.assert_allclose(diagonal, np.diagonal(expected), rtol=1e-12)


@pytest.mark.parametrize("rho", [0.05, *POWERS, 5.0])
def test_poisson_kernel_is_the_sum_over_counts(rho):
    rates = np.array([0.0, 1e-4, 0.3, 2.0, 17.0, 60.0])
    counts = np.arange(4000)
    masses = stats.poisson.logpmf(counts, rates[:, None])
    expected = np.array([[np.sum(np.exp(rho * (p + q))) for q in masses] for p in masses])
    np.testing.assert_allclose(ProbabilityProductKernel("poisson", rho, False)(rates), expected, rtol=1e-10)
    np.testing.assert_allclose(ProbabilityProductKernel("poisson", rho)(rates), unit_diagonal(expected), rtol=1e-10)


def test_poisson_kernel_of_rows_is_the_product_over_features():
    rates = np.random.default_rng(2).gamma(2.0, size=(3, 2))
    for rho in (0.5, 0.7):
        kernel = ProbabilityProductKernel("poisson", rho, normalized=False)
        np.testing.assert_allclose(kernel(rates), kernel(rates[:, 0]) * kernel(rates[:, 1]), rtol=1e-12)
    rates = rates[:, 0]
    halves = np.exp(-0.5 * (np.sqrt(rates)[:, None] - np.sqrt(rates)) ** 2)
    np.testing.assert_allclose(ProbabilityProductKernel("poisson")(rates), halves, rtol=1e-14)


@pytest.mark.parametrize("rho", [0.1, 0.4999999, 0.75, 3.0])
def test_the_series_of_poisson_powers_with_long_steps_equals_the_full_sum(rho):
    # Rates on both sides of the place where the sum begins to skip counts.
    rates = np.array([55.0, 70.0, 130.0, 700.0, 5000.0, 40000.0])
    logs, slopes = log_poisson_powers(rates, rho)
    for rate, value, slope in zip(rates, logs, slopes):
        counts = np.arange(int(rate + 60 * np.sqrt(rate / rho) + 400 / rho))
        terms = 2 * rho * stats.poisson.logpmf(counts, rate)
        assert value == pytest.approx(np.logaddexp.reduce(terms), abs=1e-9)
        mean = np.sum(counts * np.exp(terms - np.logaddexp.reduce(terms)))
        assert slope == pytest.approx(2 * rho * (mean / rate - 1), abs=1e-10)


def test_the_series_of_poisson_powers_agrees_with_the_closed_forms_beside_them():
    rates = np.geomspace(1e-6, 1e5, 30)
    for rho, nearby in ((0.5, 0.5 + 1e-11), (1.0, 1.0 + 1e-11)):
        for exact, series in zip(log_poisson_powers(rates, rho), log_poisson_powers(rates, nearby)):
            np.testing.assert_allclose(series, exact, atol=1e-9)


@pytest.mark.parametrize("rho", POWERS)
def test_gaussian_kernel_equals_quadrature_in_one_and_two_dimensions(rho):
    rng = np.random.default_rng(3)
    for n_features in (1, 2):
        means, covariances = rng.normal(size=(3, n_features)), random_covariances(rng, 3, n_features)
        kernel = ProbabilityProductKernel("gaussian", rho, normalized=False)
        # The trapezoid rule on the whole space converges faster than any power of the step.
        axis = np.linspace(-40, 40, 2001) if n_features == 1 else np.linspace(-25, 25, 501)
        grid = np.stack(np.meshgrid(*[axis] * n_features), axis=-1).reshape(-1, n_features)
        powers = np.array([stats.multivariate_normal(m, c).pdf(grid) ** rho for m, c in zip(means, covariances)])
        expected = powers @ powers.T * (axis[1] - axis[0]) ** n_features
        np.testing.assert_allclose(kernel((means, covariances)), expected, rtol=1e-8)
        normal = ProbabilityProductKernel("gaussian", rho)
        np.testing.assert_allclose(normal((means, covariances)), unit_diagonal(expected), rtol=1e-8)


def test_gaussian_kernel_equals_adaptive_quadrature():
    kernel = ProbabilityProductKernel("gaussian", 1.7, normalized=False)
    one, other = stats.norm(0.3, 0.5), stats.norm(1.1, 1.4)
    expected = integrate.quad(lambda x: (one.pdf(x) * other.pdf(x)) ** 1.7, -20, 20, points=[0.3, 1.1])[0]
    assert kernel(([[0.3], [1.1]], [0.25, 1.96]))[0, 1] == pytest.approx(expected, rel=1e-9)


def test_gaussian_kernel_of_power_one_half_is_the_bhattacharyya_coefficient():
    rng = np.random.default_rng(4)
    means, covariances = rng.normal(size=(4, 3)), random_covariances(rng, 4, 3)
    logs = ProbabilityProductKernel("gaussian", normalized=False).log_matrix((means, covariances))
    for i in range(4):
        for j in range(4):
            middle = 0.5 * (covariances[i] + covariances[j])
            change = means[i] - means[j]
            distance = change @ np.linalg.solve(middle, change) / 8
            volumes = np.sqrt(np.linalg.det(covariances[i]) * np.linalg.det(covariances[j]))
            distance += 0.5 * np.log(np.linalg.det(middle) / volumes)
            assert -logs[i, j] == pytest.approx(distance, abs=1e-12)


def test_gaussian_kernel_equals_the_formula_with_three_inverses():
    rng = np.random.default_rng(5)
    means, covariances = rng.normal(size=(2, 4)), random_covariances(rng, 2, 4)
    for rho in POWERS:
        first, second = np.linalg.inv(covariances)
        both, pull = np.linalg.inv(first + second), first @ means[0] + second @ means[1]
        exponent = means[0] @ first @ means[0] + means[1] @ second @ means[1] - pull @ both @ pull
        expected = 2 * (1 - 2 * rho) * np.log(2 * np.pi) - 2 * np.log(rho) + 0.5 * np.linalg.slogdet(both)[1]
        expected -= 0.5 * rho * (np.linalg.slogdet(covariances)[1].sum() + exponent)
        value = ProbabilityProductKernel("gaussian", rho, normalized=False).log_matrix((means, covariances))[0, 1]
        assert value == pytest.approx(expected, abs=1e-11)


def test_all_forms_of_covariances_agree_with_full_matrices():
    rng = np.random.default_rng(6)
    means = rng.normal(size=(4, 3))
    tied, variances, radii = random_covariances(rng, 1, 3)[0], rng.gamma(2.0, size=(4, 3)), rng.gamma(2.0, size=4)
    full = {
        "tied": (tied, np.stack([tied] * 4)),
        "diag": (variances, variances[:, :, None] * np.eye(3)),
        "spherical": (radii, radii[:, None, None] * np.eye(3)),
    }
    for normalized in (True, False):
        for kind, (short, long) in full.items():
            kernel = ProbabilityProductKernel("gaussian", 0.8, normalized)
            expected = kernel((means, long))
            np.testing.assert_allclose(kernel((means, short)), expected, rtol=1e-12)
            stated = ProbabilityProductKernel("gaussian", 0.8, normalized, covariance_type=kind)
            np.testing.assert_allclose(stated((means, short)), expected, rtol=1e-12)
            np.testing.assert_allclose(kernel((means, short), (means, short)), expected, rtol=1e-12)
            np.testing.assert_allclose(kernel((means, short), (means, long)), expected, rtol=1e-12)
            np.testing.assert_allclose(kernel.diagonal((means, short)), np.diagonal(expected), rtol=1e-12)


def test_as_many_parts_as_features_needs_the_form_of_the_covariances():
    means, covariances = np.zeros((2, 2)), np.array([[2.0, 1.0], [1.0, 2.0]])
    with pytest.raises(ValueError, match="covariance_type='tied' or covariance_type='diag'"):
        ProbabilityProductKernel("gaussian")((means, covariances))
    diagonal = ProbabilityProductKernel("gaussian", covariance_type="diag")((means, covariances))
    expected = np.sqrt(np.sqrt(2.0 * 1.0) / 1.5 * np.sqrt(1.0 * 2.0) / 1.5)
    assert diagonal[0, 1] == pytest.approx(expected, rel=1e-14)
    assert ProbabilityProductKernel("gaussian", covariance_type="tied")((means, covariances))[0, 1] == 1.0
    assert ProbabilityProductKernel("gaussian")(([[0.0]], [[1.0]])) == 1.0


@pytest.mark.parametrize("rho", POWERS)
@pytest.mark.parametrize("family", ["categorical", "bernoulli", "poisson", "gaussian"])
def test_kernels_of_random_parts_are_positive_semi_definite_with_unit_diagonal(family, rho):
    rng = np.random.default_rng(7)
    draw = {
        "categorical": lambda: rng.dirichlet(np.full(6, 0.3), size=8),
        "bernoulli": lambda: rng.random((8, 5)),
        "poisson": lambda: rng.gamma(1.0, 3.0, size=(8, 2)),
        "gaussian": lambda: (rng.normal(size=(8, 3)), random_covariances(rng, 8, 3)),
    }[family]
    for _ in range(10):
        matrix = ProbabilityProductKernel(family, rho)(draw())
        np.testing.assert_array_equal(matrix, matrix.T)
        np.testing.assert_array_equal(np.diagonal(matrix), 1.0)
        assert matrix.max() <= 1.0 + 1e-12
        assert matrix.min() >= 0.0
        assert np.linalg.eigvalsh(matrix)[0] > -1e-12


def test_logs_stay_exact_where_similarities_underflow():
    rng = np.random.default_rng(8)
    rows = rng.random((2, 20000))
    each = ProbabilityProductKernel("bernoulli").log_matrix(rows)[0, 1]
    p, q = rows
    assert each == pytest.approx(np.log(np.sqrt(p * q) + np.sqrt((1 - p) * (1 - q))).sum(), rel=1e-12)
    assert each < -1000
    powers = ProbabilityProductKernel("bernoulli", 20.0, normalized=False).log_matrix([[1e-20, 0.5], [1 - 1e-15, 0.5]])
    assert powers[0, 1] == pytest.approx(20 * np.log(1e-15) - 39 * np.log(2), rel=1e-3)  # 1 - 1e-15 is rounded
    assert ProbabilityProductKernel("bernoulli").log_matrix([[0.0], [1.0]])[0, 1] == -np.inf
    far = ProbabilityProductKernel("gaussian").log_matrix(([[0.0], [100.0]], [1.0, 1.0]))
    assert far[0, 1] == pytest.approx(-1250.0)
    thin = np.array([[1.0, 1e-200, 0.0], [0.0, 1e-200, 1.0], [0.0, 0.0, 1.0]])
    logs = ProbabilityProductKernel(rho=2.0).log_matrix(thin)
    assert logs[0, 1] == pytest.approx(-800 * np.log(10))
    assert logs[0, 2] == -np.inf
    assert ProbabilityProductKernel(rho=2.0)(thin)[0, 1] == 0.0


def test_sparse_rows_give_the_dense_kernel():
    rows = np.random.default_rng(9).dirichlet(np.full(30, 0.05), size=12)
    rows[rows < 0.01] = 0.0
    rows /= rows.sum(axis=1, keepdims=True)
    for make in (sparse.csr_array, sparse.csr_matrix, sparse.coo_array):
        for normalized in (True, False):
            kernel = ProbabilityProductKernel(rho=0.7, normalized=normalized)
            np.testing.assert_allclose(kernel(make(rows)), kernel(rows), atol=1e-14)
            np.testing.assert_allclose(kernel.log_matrix(make(rows)), kernel.log_matrix(rows), rtol=1e-12)
            np.testing.assert_allclose(kernel.features(make(rows)).toarray(), kernel.features(rows), atol=1e-14)
    assert ProbabilityProductKernel().log_determinant(make(rows)) == ProbabilityProductKernel().log_determinant(rows)


def test_the_kernel_is_the_product_of_its_features_for_more_rows_than_columns():
    rows = np.random.default_rng(10).dirichlet(np.ones(3), size=20)
    for normalized in (True, False):
        kernel = ProbabilityProductKernel(rho=0.6, normalized=normalized)
        features = kernel.features(rows)
        np.testing.assert_allclose(features @ features.T, kernel(rows), rtol=1e-12)
    assert not hasattr(ProbabilityProductKernel("gaussian"), "features")
    assert hasattr(ProbabilityProductKernel(), "features")


def test_the_scale_of_rows_does_not_matter_when_normalized_and_is_refused_otherwise():
    rows = np.random.default_rng(11).dirichlet(np.ones(4), size=3)
    scaled = rows * np.array([[3.0], [1e-3], [50.0]])
    np.testing.assert_allclose(ProbabilityProductKernel()(scaled), ProbabilityProductKernel()(rows), rtol=1e-13)
    with pytest.raises(ValueError, match="rows that sum to 1, got a sum of 50 in row 2"):
        ProbabilityProductKernel(normalized=False)(scaled)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"rho": 0.0}, "rho must be a positive number, got 0.0"),
        ({"rho": np.nan}, "rho must be a positive number, got nan"),
        ({"rho": None}, "rho must be a positive number, got None"),
        ({"rho": -1}, "rho must be a positive number, got -1"),
        ({"rho": "half"}, "rho must be a positive number, got 'half'"),
        ({"family": "cauchy"}, "family must be one of .* got 'cauchy'"),
        ({"normalized": "yes"}, "normalized must be True or False, got 'yes'"),
        ({"covariance_type": "round"}, "covariance_type must be one of .* got 'round'"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        ProbabilityProductKernel(**arguments)


@pytest.mark.parametrize(
    ("family", "parameters", "sentence"),
    [
        ("categorical", [[0.5, -0.5]], "probabilities of categories, got the negative entry -0.5"),
        ("categorical", [[0.5, np.nan]], "must be finite, got NaN or infinity"),
        ("categorical", [0.5, 0.5], r"must be a matrix with a row for each part, got shape \(2,\)"),
        ("categorical", [[0.5, 0.5], [0.0, 0.0]], "zeros only in row 1"),
        ("categorical", np.empty((0, 3)), r"got shape \(0, 3\)"),
        ("bernoulli", [[0.5, 1.5]], "between 0 and 1, got 1.5"),
        ("bernoulli", [[-0.1, 0.5]], "between 0 and 1, got -0.1"),
        ("bernoulli", [[np.inf, 0.5]], "must be finite"),
        ("poisson", [1.0, -2.0], "non-negative rates, got -2"),
        ("poisson", [[[1.0]]], "must be rates"),
        ("gaussian", [[0.0, 1.0]], r"must be a tuple \(means, covariances\)"),
        ("gaussian", (np.zeros((3, 2)), np.array([1.0, 0.0, 1.0])), "must be positive variances, got 0"),
        ("gaussian", (np.zeros((3, 2)), np.ones((3, 4))), r"one of the shapes .* got \(3, 4\)"),
        (
            "gaussian",
            (np.zeros((3, 2)), np.array([[1.0, 2.0], [2.0, 1.0]])),
            "positive definite, got the eigenvalue -1",
        ),
        ("gaussian", (np.zeros((3, 2)), np.array([[1.0, 0.5], [0.0, 1.0]])), "must be symmetric"),
        ("gaussian", (np.zeros((3, 2)), np.full(3, np.nan)), "covariances must be finite"),
        ("gaussian", (np.full((3, 2), np.nan), np.ones(3)), "means must be finite"),
    ],
)
def test_bad_parameters_are_refused_in_one_sentence(family, parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        ProbabilityProductKernel(family)(parameters)


def test_other_bad_input_is_refused_in_one_sentence():
    with pytest.raises(ValueError, match="others must have 2 columns like the parameters, got 3"):
        ProbabilityProductKernel("bernoulli")(np.full((2, 2), 0.5), np.full((2, 3), 0.5))
    with pytest.raises(ValueError, match=r"shape \(2, 3\) for covariance_type='diag' and 2 means, got \(2,\)"):
        ProbabilityProductKernel("gaussian", covariance_type="diag")((np.zeros((2, 3)), np.ones(2)))
    with pytest.raises(ValueError, match=r"rho must be at least 0\.001 for Poisson"):
        ProbabilityProductKernel("poisson", 1e-4)([1.0, 2.0])
    with pytest.raises(ValueError, match="must be a dense array"):
        ProbabilityProductKernel("bernoulli")(sparse.csr_array(np.eye(2)))
    with pytest.raises(ValueError, match=r"sensitivity must be a matrix over the 2 parts, got shape \(3, 3\)"):
        ProbabilityProductKernel().pullback(np.eye(2), np.eye(3))
