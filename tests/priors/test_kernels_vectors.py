"""Kernels of vectors against loops and scikit-learn."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist
from sklearn.metrics import pairwise

from pluri.priors.kernels import CosineKernel, ExponentialCosineKernel, LinearKernel, RBFKernel

KERNELS = [LinearKernel(), CosineKernel(), ExponentialCosineKernel(1.7), RBFKernel(1.3), RBFKernel((0.5, 1.0, 2.0))]
SPARSE = KERNELS[:3]


def test_kernels_equal_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(6, 3)), rng.normal(size=(4, 3))
    np.testing.assert_allclose(LinearKernel()(X, Y), pairwise.linear_kernel(X, Y), rtol=1e-12)
    np.testing.assert_allclose(CosineKernel()(X, Y), pairwise.cosine_similarity(X, Y), rtol=1e-12)
    np.testing.assert_allclose(RBFKernel(1.3)(X, Y), pairwise.rbf_kernel(X, Y, gamma=0.5 / 1.3**2), rtol=1e-12)
    scales = np.array([0.5, 1.0, 2.0])
    expected = pairwise.rbf_kernel(X / scales, Y / scales, gamma=0.5)
    np.testing.assert_allclose(RBFKernel(tuple(scales))(X, Y), expected, rtol=1e-12)
    expected = np.exp(-1.7 * (1 - pairwise.cosine_similarity(X, Y)))
    np.testing.assert_allclose(ExponentialCosineKernel(1.7)(X, Y), expected, rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_one_set_is_the_set_with_itself_and_the_matrix_is_positive_semi_definite(kernel):
    rng = np.random.default_rng(1)
    for _ in range(10):
        X = rng.normal(size=(12, 3))
        matrix = kernel(X)
        np.testing.assert_allclose(matrix, kernel(X, X), atol=1e-14)
        np.testing.assert_array_equal(matrix, matrix.T)
        np.testing.assert_allclose(kernel.diagonal(X), np.diagonal(matrix), rtol=1e-14)
        assert np.linalg.eigvalsh(matrix)[0] > -1e-12
        if not isinstance(kernel, LinearKernel):
            np.testing.assert_array_equal(np.diagonal(matrix), 1.0)


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array])
@pytest.mark.parametrize("kernel", SPARSE, ids=repr)
def test_sparse_rows_give_the_dense_kernel(kernel, make):
    rng = np.random.default_rng(2)
    X = rng.random((9, 20)) * (rng.random((9, 20)) < 0.2)
    X[3] = 0.0
    rows = make(X)
    np.testing.assert_allclose(kernel(rows), kernel(X), atol=1e-14)
    np.testing.assert_allclose(kernel(rows, rows[:4]), kernel(X, X[:4]), atol=1e-14)
    np.testing.assert_allclose(kernel.diagonal(rows), kernel.diagonal(X), atol=1e-14)
    if hasattr(kernel, "features"):
        np.testing.assert_allclose(kernel.features(rows).toarray(), kernel.features(X), atol=1e-14)
    np.testing.assert_array_equal(rows.toarray(), X)


@pytest.mark.parametrize("kernel", [LinearKernel(), CosineKernel()], ids=repr)
def test_the_kernel_is_the_product_of_its_features(kernel):
    X = np.random.default_rng(3).normal(size=(10, 3))
    X[2] = 0.0
    features = kernel.features(X)
    np.testing.assert_allclose(features @ features.T, kernel(X), atol=1e-14)
    assert not hasattr(RBFKernel(), "features")
    assert not hasattr(ExponentialCosineKernel(), "features")


def test_rows_of_zeros_are_like_nothing_and_tiny_or_huge_rows_are_no_trouble():
    X = np.array([[0.0, 0.0], [3e200, 4e200], [4e-200, 3e-200]])
    np.testing.assert_allclose(CosineKernel()(X), [[0, 0, 0], [0, 1, 0.96], [0, 0.96, 1]], rtol=1e-14)
    wanted = np.exp(-2.0 * (1 - np.array([[0, 0, 0], [0, 1, 0.96], [0, 0.96, 1]])))
    np.testing.assert_allclose(ExponentialCosineKernel(2.0)(X), wanted, rtol=1e-12)
    np.testing.assert_array_equal(CosineKernel().diagonal(X), [0, 1, 1])
    assert CosineKernel().log_determinant(X[:1]) == -np.inf


def test_the_printed_exponential_of_the_cosine_is_no_kernel_but_ours_is():
    X = np.abs(np.random.default_rng(4).normal(size=(10, 5)))
    cosines = CosineKernel()(X)
    assert np.linalg.eigvalsh(np.exp(-cosines))[0] < -0.1
    assert np.linalg.eigvalsh(ExponentialCosineKernel()(X))[0] > 0


def test_the_median_length_scale_is_the_median_distance():
    X = np.random.default_rng(5).normal(size=(30, 3))
    kernel = RBFKernel("median").fixed(X)
    assert kernel.length_scale == pytest.approx(np.median(pdist(X)))
    np.testing.assert_array_equal(RBFKernel("median")(X), kernel(X))
    assert kernel.fixed(X[:3]) is kernel
    many = np.random.default_rng(6).normal(size=(5000, 2))
    assert RBFKernel("median").fixed(many).length_scale == pytest.approx(np.sqrt(4 * np.log(2)), rel=0.03)


def test_the_median_length_scale_does_not_hide_in_calls_with_other_points():
    X = np.random.default_rng(7).normal(size=(5, 2))
    for call in (lambda: RBFKernel("median")(X, X), lambda: RBFKernel("median").pullback(X, np.eye(5))):
        with pytest.raises(ValueError, match=r"use kernel.fixed\(points\)"):
            call()
    with pytest.raises(ValueError, match="two different points"):
        RBFKernel("median")(np.ones((3, 2)))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_bad_points_are_refused_in_one_sentence(kernel):
    with pytest.raises(ValueError, match="parameters must be finite, got NaN or infinity"):
        kernel([[0.0, np.nan, 1.0]])
    with pytest.raises(ValueError, match=r"row for each part, got shape \(3,\)"):
        kernel([0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match="others must have 3 columns like the parameters, got 2"):
        kernel(np.ones((2, 3)), np.ones((2, 2)))
    with pytest.raises(ValueError, match="must be a dense array here, got a sparse matrix"):
        kernel.pullback(sparse.csr_array(np.ones((2, 3))), np.eye(2))


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, (1.0, 0.0), (), "mean", [[1.0]]])
def test_bad_length_scales_are_refused_in_one_sentence(bad):
    with pytest.raises(ValueError, match="length_scale must be a positive number"):
        RBFKernel(bad)


def test_other_bad_settings_are_refused_in_one_sentence():
    with pytest.raises(ValueError, match="alpha must be a positive number, got 0"):
        ExponentialCosineKernel(0)
    with pytest.raises(ValueError, match="one entry for each of the 3 features, got 2"):
        RBFKernel((1.0, 2.0))(np.ones((2, 3)))


def test_kernels_are_values():
    assert RBFKernel([1, 2]) == RBFKernel((1.0, 2.0))
    assert len({RBFKernel(1.0), RBFKernel(1), CosineKernel(), CosineKernel()}) == 2
