"""The kernels of subspaces: invariances, known values and the gradient on the manifold."""

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from pluri.priors.kernels import SubspaceKernel, canonical_signs


def random_frames(rng, n_parts, n_features, width):
    return np.linalg.qr(rng.normal(size=(n_parts, n_features, width)))[0]


def random_rotation(rng, width):
    return np.linalg.qr(rng.normal(size=(width, width)))[0]


def test_projection_kernel_follows_from_the_angles_and_from_the_projections():
    frames = random_frames(np.random.default_rng(0), 4, 6, 2)
    matrix = SubspaceKernel(0.7)(frames)
    for i in range(4):
        for j in range(4):
            angles = subspace_angles(frames[i], frames[j])
            assert matrix[i, j] == pytest.approx(np.exp(-0.7 * np.sum(np.sin(angles) ** 2)), rel=1e-10)
            change = frames[i] @ frames[i].T - frames[j] @ frames[j].T
            assert matrix[i, j] == pytest.approx(np.exp(-0.35 * np.sum(change**2)), rel=1e-10)


def test_projection_kernel_does_not_see_signs_order_or_rotations():
    rng = np.random.default_rng(1)
    frames = random_frames(rng, 4, 7, 3)
    kernel = SubspaceKernel(1.2)
    turned = np.stack([frame @ random_rotation(rng, 3) for frame in frames])
    for same in (frames * [-1, 1, -1], frames[:, :, [2, 0, 1]], turned):
        np.testing.assert_allclose(kernel(same), kernel(frames), rtol=1e-12)
        np.testing.assert_allclose(kernel(frames, same), kernel(frames), rtol=1e-12)
    np.testing.assert_allclose(kernel(random_rotation(rng, 7) @ frames), kernel(frames), rtol=1e-12)


def test_determinant_is_zero_for_one_subspace_and_largest_for_orthogonal_ones():
    rng = np.random.default_rng(2)
    kernel = SubspaceKernel(0.5)
    frame = random_frames(rng, 1, 6, 2)[0]
    assert kernel.log_determinant(np.stack([frame, frame @ random_rotation(rng, 2)])) == -np.inf
    orthogonal = np.eye(6).reshape(6, 3, 2).transpose(1, 0, 2)
    similarity = np.exp(-0.5 * 2)
    np.testing.assert_allclose(kernel(orthogonal), np.where(np.eye(3), 1, similarity), rtol=1e-14)
    highest = np.log(1 - 3 * similarity**2 + 2 * similarity**3)
    assert kernel.log_determinant(orthogonal) == pytest.approx(highest)
    assert all(kernel.log_determinant(random_frames(rng, 3, 6, 2)) < highest for _ in range(20))
    assert kernel.log_determinant(frame[None]) == 0.0


def test_sum_cosine_kernel_is_the_exponential_of_all_pairs_of_columns():
    frames = random_frames(np.random.default_rng(3), 3, 5, 2)
    kernel = SubspaceKernel(0.4, "sum_cosine")
    for i in range(3):
        for j in range(3):
            pairs = sum(np.sum((u - v) ** 2) for u in frames[i].T for v in frames[j].T)
            raw = np.exp(-0.2 * pairs)
            own = np.exp(-0.2 * sum(np.sum((u - v) ** 2) for u in frames[i].T for v in frames[i].T))
            assert kernel(frames)[i, j] == pytest.approx(raw / own, rel=1e-12)


def test_sum_cosine_of_turned_frames_has_the_known_values_and_calls_one_plane_different():
    rho = 0.3
    angles = np.radians([0, 45, 90, 135, 180])
    frames = np.array([[[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]] for a in angles])
    values = SubspaceKernel(rho, "sum_cosine")(frames)[0]
    known = np.exp(rho * np.array([2, np.sqrt(2), 0, -np.sqrt(2), -2]))
    np.testing.assert_allclose(values * np.exp(2 * rho), known, rtol=1e-12)
    np.testing.assert_allclose(SubspaceKernel(rho)(frames), 1.0, rtol=1e-12)
    two = np.stack([frames[0], frames[4]])
    assert SubspaceKernel(rho, "sum_cosine").log_determinant(two) == pytest.approx(np.log(1 - np.exp(-8 * rho)))


def test_canonical_signs_take_the_choice_of_signs_away():
    rng = np.random.default_rng(4)
    frames = random_frames(rng, 5, 6, 3)
    flipped = frames * rng.choice([-1.0, 1.0], size=(5, 1, 3))
    np.testing.assert_array_equal(canonical_signs(frames), canonical_signs(flipped))
    np.testing.assert_array_equal(np.abs(canonical_signs(frames)), np.abs(frames))


def test_weighted_kernel_equals_the_projection_kernel_for_orthonormal_columns():
    rng = np.random.default_rng(5)
    frames = random_frames(rng, 4, 6, 2)
    kernel, weighted = SubspaceKernel(0.8), SubspaceKernel(0.8, weighted=True)
    np.testing.assert_allclose(weighted(frames), kernel(frames), rtol=1e-12)
    np.testing.assert_allclose(weighted(frames * 7.0, frames), kernel(frames), rtol=1e-12)


def test_columns_that_are_switched_off_do_not_count_in_the_weighted_kernel():
    rng = np.random.default_rng(6)
    loadings = rng.normal(size=(3, 6, 2))
    loadings[:, :, 1] = 0.0
    thin = SubspaceKernel(1.6, weighted=True)(loadings[:, :, :1])
    np.testing.assert_allclose(SubspaceKernel(0.8, weighted=True)(loadings), thin, rtol=1e-12)
    full = rng.normal(size=(3, 6, 2))
    turned = full @ random_rotation(rng, 2)
    np.testing.assert_allclose(SubspaceKernel(weighted=True)(turned), SubspaceKernel(weighted=True)(full), rtol=1e-12)


@pytest.mark.parametrize("kernel", [SubspaceKernel(), SubspaceKernel(0.3, "sum_cosine"), SubspaceKernel(weighted=True)])
def test_matrices_of_random_sets_are_positive_semi_definite(kernel):
    rng = np.random.default_rng(7)
    for _ in range(100):
        matrix = kernel(random_frames(rng, 6, 5, 2))
        np.testing.assert_array_equal(np.diagonal(matrix), 1.0)
        assert np.linalg.eigvalsh(matrix)[0] > -1e-12


@pytest.mark.parametrize("name", ["projection", "sum_cosine"])
def test_gradient_along_tangent_directions_equals_differences_on_the_manifold(name):
    rng = np.random.default_rng(8)
    frames = random_frames(rng, 3, 6, 2)
    kernel = SubspaceKernel(0.6, name)
    gradient = kernel.log_determinant_gradient(frames)
    inverse, matrix = np.linalg.inv(kernel(frames)), kernel(frames)
    for part in range(3):  # the closed forms, written out
        others = [other for other in range(3) if other != part]
        if name == "projection":
            pulls = [4 * 0.6 * frames[o] @ frames[o].T @ frames[part] for o in others]
        else:
            pulls = [2 * 0.6 * np.outer(frames[o].sum(axis=1), np.ones(2)) for o in others]
        wanted = sum(inverse[part, o] * matrix[part, o] * pull for o, pull in zip(others, pulls))
        np.testing.assert_allclose(gradient[part], wanted, rtol=1e-10)
    for _ in range(5):
        skew = rng.normal(size=(3, 6, 6))
        tangent = (skew - np.swapaxes(skew, 1, 2)) @ frames
        step = 1e-5
        # Retraction by QR with positive diagonal: it agrees with the tangent to second order.
        ahead, behind = (retract(frames + sign * step * tangent) for sign in (1, -1))
        difference = (kernel.log_determinant(ahead) - kernel.log_determinant(behind)) / (2 * step)
        assert np.sum(gradient * tangent) == pytest.approx(difference, rel=1e-7)


def retract(frames):
    roots, triangles = np.linalg.qr(frames)
    return roots * np.sign(np.einsum("kii->ki", triangles))[:, None, :]


@pytest.mark.parametrize(
    ("frames", "sentence"),
    [
        (np.eye(3), r"shape \(n_parts, D, d\) with d at most D, got shape \(3, 3\)"),
        (np.zeros((2, 2, 3)), r"got shape \(2, 2, 3\)"),
        (np.full((1, 2, 1), np.nan), "must be finite"),
        (2 * np.eye(3)[None], "orthonormal columns, got inner products that are off by 3"),
    ],
)
def test_bad_frames_are_refused_in_one_sentence(frames, sentence):
    with pytest.raises(ValueError, match=sentence):
        SubspaceKernel()(frames)


def test_bad_settings_are_refused_in_one_sentence():
    with pytest.raises(ValueError, match="rho must be a positive number, got 0"):
        SubspaceKernel(0)
    with pytest.raises(ValueError, match=r"kernel must be one of .* got 'angle'"):
        SubspaceKernel(kernel="angle")
    with pytest.raises(ValueError, match="weighted must be False for the sum_cosine kernel"):
        SubspaceKernel(kernel="sum_cosine", weighted=True)
    with pytest.raises(ValueError, match="weighted must be True or False, got 'no'"):
        SubspaceKernel(weighted="no")
    with pytest.raises(ValueError, match="a column that is not zero in each part"):
        SubspaceKernel(weighted=True)(np.zeros((2, 3, 1)))
    with pytest.raises(ValueError, match=r"others must be frames of shape \(3, 3\), got \(4, 4\)"):
        SubspaceKernel()(np.eye(3)[None], np.eye(4)[None])
    with pytest.raises(ValueError, match="frames must have shape"):
        canonical_signs(np.eye(2))
