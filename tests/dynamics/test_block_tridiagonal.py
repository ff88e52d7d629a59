"""Distributions of state paths against the dense precision matrix."""

import numpy as np
import pytest

from pluri.dynamics.block_tridiagonal import PathDistribution
from pluri.validation import as_generator


def random_precision(lengths, p, rng):
    """Blocks of precisions of independent sequences, and the dense matrices."""
    n = sum(lengths)
    diagonal, below = np.zeros((n, p, p)), np.full((n, p, p), np.nan)
    dense, begin = [], 0
    for length in lengths:
        # A sum of squares of neighbouring pairs is block tridiagonal, and positive definite with a ridge.
        matrix = 0.1 * np.eye(length * p)
        for t in range(length - 1):
            pair = rng.standard_normal((2 * p, 2 * p))
            matrix[t * p : (t + 2) * p, t * p : (t + 2) * p] += pair @ pair.T
        for t in range(length):
            diagonal[begin + t] = matrix[t * p : (t + 1) * p, t * p : (t + 1) * p]
            if t + 1 < length:
                below[begin + t] = matrix[(t + 1) * p : (t + 2) * p, t * p : (t + 1) * p]
        dense.append(matrix)
        begin += length
    return diagonal, below, dense


@pytest.mark.parametrize("p", [1, 2, 5])
def test_path_distribution_equals_the_dense_inverse(p):
    rng = as_generator(p)
    lengths = [1, 4, 7]
    diagonal, below, dense = random_precision(lengths, p, rng)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    linear = rng.standard_normal((sum(lengths), p))
    before = diagonal.copy()
    paths = PathDistribution.from_precision(diagonal, below, offsets)
    mean, (marginal, lagged) = paths.solve(linear), paths.covariances()
    np.testing.assert_array_equal(diagonal, before)
    for s, matrix in enumerate(dense):
        rows = slice(offsets[s], offsets[s + 1])
        inverse = np.linalg.inv(matrix)
        scale = np.abs(inverse).max()
        np.testing.assert_allclose(mean[rows].ravel(), inverse @ linear[rows].ravel(), atol=1e-9 * scale)
        np.testing.assert_allclose(paths.log_determinants()[s], np.linalg.slogdet(matrix)[1], atol=1e-9)
        for t in range(lengths[s]):
            here = slice(t * p, (t + 1) * p)
            after = slice((t + 1) * p, (t + 2) * p)
            np.testing.assert_allclose(marginal[offsets[s] + t], inverse[here, here], atol=1e-9 * scale)
            expected = inverse[after, here] if t + 1 < lengths[s] else np.zeros((p, p))
            np.testing.assert_allclose(lagged[offsets[s] + t], expected, atol=1e-9 * scale)


def test_draws_of_paths_have_the_covariance_of_the_inverse():
    rng = as_generator(0)
    diagonal, below, (dense,) = random_precision([3], 2, rng)
    paths = PathDistribution.from_precision(diagonal, below, np.array([0, 3]))
    # The draw is a linear map M of standard normal numbers; M M^T is the covariance, with no sampling error.
    columns = []
    for unit in np.eye(6):

        class Fixed:
            def standard_normal(self, shape, unit=unit):
                return unit.reshape(shape).copy()

        columns.append(paths.sample(Fixed()).ravel())
    M = np.column_stack(columns)
    inverse = np.linalg.inv(dense)
    np.testing.assert_allclose(M @ M.T, inverse, atol=1e-9 * np.abs(inverse).max())


def test_a_precision_that_is_not_positive_is_refused():
    diagonal = np.tile(np.eye(2), (3, 1, 1))
    below = np.zeros((3, 2, 2))
    below[1, 0, 0] = 1.5
    with pytest.raises(FloatingPointError, match="at step 2"):
        PathDistribution.from_precision(diagonal, below, np.array([0, 3]))
