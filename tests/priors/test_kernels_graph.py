"""Kernels of graphs, and the repair of matrices that are no kernels."""

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import expm

from pluri.priors.kernels import heat_kernel, regularized_laplacian_kernel, repair_kernel, shortest_path_kernel

BIPARTITE = np.kron([[0, 1], [1, 0]], np.ones((3, 3)))


def random_graph(rng, n_nodes=12, density=0.25):
    edges = np.triu(rng.random((n_nodes, n_nodes)) < density, k=1).astype(float)
    return edges + edges.T


def test_shortest_paths_equal_those_of_floyd_and_warshall():
    rng = np.random.default_rng(0)
    edges = random_graph(rng)
    edges[3] = edges[:, 3] = 0.0
    for weighted in (False, True):
        lengths = edges * rng.random(edges.shape)
        lengths = lengths + lengths.T
        distance = np.where(edges > 0, lengths if weighted else 1.0, np.inf)
        np.fill_diagonal(distance, 0.0)
        for middle in range(12):
            distance = np.minimum(distance, distance[:, [middle]] + distance[[middle]])
        kernel = shortest_path_kernel(lengths, 0.7, weighted=weighted)
        np.testing.assert_allclose(kernel, np.exp(-0.7 * distance), rtol=1e-12)
        np.testing.assert_array_equal(kernel[3], np.eye(12)[3])
        np.testing.assert_array_equal(shortest_path_kernel(sparse.csr_array(lengths), 0.7, weighted=weighted), kernel)


def test_shortest_path_kernel_of_the_complete_bipartite_graph_has_the_known_negative_eigenvalue():
    kernel = shortest_path_kernel(BIPARTITE, 0.3)
    smallest = 1 + 2 * np.exp(-0.6) - 3 * np.exp(-0.3)
    assert np.linalg.eigvalsh(kernel)[0] == pytest.approx(smallest)
    assert smallest == pytest.approx(-0.125, abs=5e-4)
    assert np.linalg.eigvalsh(shortest_path_kernel(BIPARTITE, 2.0))[0] > 0


def test_quality_by_degree_leaves_isolated_nodes_out():
    star = np.zeros((5, 5))
    star[0, 1:4] = star[1:4, 0] = 1.0
    kernel = shortest_path_kernel(star, 1.0, "degree")
    np.testing.assert_allclose(np.diagonal(kernel), [1, 1 / 9, 1 / 9, 1 / 9, 0])
    assert not kernel[4].any()
    quality = np.arange(5.0)
    expected = np.outer(quality, quality) * shortest_path_kernel(star)
    np.testing.assert_allclose(shortest_path_kernel(star, 1.0, quality), expected)


def test_heat_and_regularized_laplacian_equal_matrix_functions():
    edges = random_graph(np.random.default_rng(1)) * 1.5
    laplacian = np.diag(edges.sum(axis=1)) - edges
    heat, inverse = heat_kernel(edges, 0.4), regularized_laplacian_kernel(edges, 0.4)
    np.testing.assert_allclose(heat, expm(-0.4 * laplacian), atol=1e-13)
    np.testing.assert_allclose(inverse, np.linalg.inv(np.eye(12) + 0.4 * laplacian), atol=1e-13)
    for kernel in (heat, inverse):
        np.testing.assert_allclose(kernel.sum(axis=1), 1.0)
        assert np.linalg.eigvalsh(kernel)[0] > 0
    scaled = heat_kernel(edges, 0.4, quality=np.arange(12.0))
    np.testing.assert_allclose(np.diagonal(scaled), np.arange(12.0) ** 2)
    assert scaled[1, 2] == pytest.approx(2 * heat[1, 2] / np.sqrt(heat[1, 1] * heat[2, 2]))


def test_loops_are_ignored():
    edges = random_graph(np.random.default_rng(2))
    loops = edges + 3 * np.eye(12)
    for kernel in (shortest_path_kernel, heat_kernel, regularized_laplacian_kernel):
        np.testing.assert_array_equal(kernel(loops, 0.5, "degree"), kernel(edges, 0.5, "degree"))


@pytest.mark.parametrize("how", ["clip", "shift"])
def test_repair_gives_a_kernel_with_the_same_diagonal(how):
    rng = np.random.default_rng(3)
    for _ in range(20):
        raw = shortest_path_kernel(random_graph(rng, 20, 0.3), 0.1, quality=rng.random(20) * 3)
        mended = repair_kernel(raw, how)
        assert np.linalg.eigvalsh(raw)[0] < -1e-4
        assert np.linalg.eigvalsh(mended)[0] > -1e-12 * np.abs(mended).max()
        np.testing.assert_array_equal(np.diagonal(mended), np.diagonal(raw))
        np.testing.assert_array_equal(mended, mended.T)


def test_clipping_is_the_nearest_matrix_before_it_is_scaled_back():
    raw = shortest_path_kernel(BIPARTITE, 0.3)
    spectrum, vectors = np.linalg.eigh(raw)
    nearest = (vectors * np.maximum(spectrum, 0)) @ vectors.T
    np.testing.assert_allclose(repair_kernel(raw), nearest / nearest[0, 0], rtol=1e-12)  # every node has one place
    shifted = (raw - spectrum[0] * np.eye(6)) / (1 - spectrum[0])
    np.testing.assert_allclose(repair_kernel(raw, "shift"), shifted, rtol=1e-12)


def test_a_kernel_needs_no_repair_and_zero_rows_stay_zero():
    matrix = np.array([[2.0, 1.0], [1.0, 2.0]])
    for how in ("clip", "shift"):
        np.testing.assert_array_equal(repair_kernel(matrix, how), matrix)
        singular = np.ones((5, 5))
        np.testing.assert_array_equal(repair_kernel(singular, how), singular)
        broken = repair_kernel([[0.0, 1.0, 0.0], [1.0, 1.0, 2.0], [0.0, 2.0, 1.0]], how)
        np.testing.assert_array_equal(broken[0], 0.0)
        np.testing.assert_array_equal(np.diagonal(broken), [0, 1, 1])
    np.testing.assert_array_equal(repair_kernel(np.zeros((2, 2))), np.zeros((2, 2)))


@pytest.mark.parametrize(
    ("matrix", "sentence"),
    [
        (np.ones((2, 3)), r"kernel must be a square matrix, got shape \(2, 3\)"),
        ([[1.0, np.nan], [np.nan, 1.0]], "kernel must be finite"),
        ([[1.0, 0.5], [0.0, 1.0]], "symmetric, got entries that differ by 0.5"),
        ([[-1.0, 0.0], [0.0, 1.0]], "non-negative diagonal, got -1"),
    ],
)
def test_what_cannot_be_repaired_is_refused_in_one_sentence(matrix, sentence):
    with pytest.raises(ValueError, match=sentence):
        repair_kernel(matrix)


def test_bad_graphs_are_refused_in_one_sentence():
    with pytest.raises(ValueError, match=r"how must be one of .* got 'wish'"):
        repair_kernel(np.eye(2), "wish")
    with pytest.raises(ValueError, match="adjacency must be a square matrix"):
        heat_kernel(np.ones((2, 3)))
    with pytest.raises(ValueError, match="adjacency must be non-negative, got -1"):
        heat_kernel(-np.ones((2, 2)))
    with pytest.raises(ValueError, match="adjacency must be symmetric"):
        shortest_path_kernel([[0, 1], [0, 0]])
    with pytest.raises(ValueError, match="adjacency must be finite"):
        shortest_path_kernel([[0, np.inf], [np.inf, 0]])
    with pytest.raises(ValueError, match="decay must be a positive number, got 0"):
        shortest_path_kernel(BIPARTITE, 0)
    with pytest.raises(ValueError, match="time must be a positive number, got -1"):
        heat_kernel(BIPARTITE, -1)
    with pytest.raises(ValueError, match="strength must be a positive number, got nan"):
        regularized_laplacian_kernel(BIPARTITE, np.nan)
    with pytest.raises(ValueError, match="quality must be 6 finite, non-negative numbers"):
        shortest_path_kernel(BIPARTITE, 1.0, [1.0, 2.0])
    with pytest.raises(ValueError, match="quality must be None, 'degree'"):
        shortest_path_kernel(BIPARTITE, 1.0, "fame")
