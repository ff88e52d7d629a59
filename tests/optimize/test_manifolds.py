"""Geometry of positive definite matrices, flat spaces and their products."""

import numpy as np
import pytest
from scipy.linalg import expm, logm, sqrtm

from pluri.optimize.manifolds import SPD, Euclidean, Manifold, Product

MANIFOLDS = [SPD(4), SPD(3, 2), Euclidean((2, 3)), Product(SPD(3), Euclidean(2)),
             Product(Euclidean(1), Product(SPD(2, 3), Euclidean((2, 2))))]  # fmt: skip


@pytest.fixture(params=MANIFOLDS, ids=repr)
def manifold(request):
    return request.param


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def flat(value):
    return np.concatenate([flat(part) for part in value]) if isinstance(value, tuple) else np.ravel(value)


def test_all_keep_the_protocol(manifold):
    assert isinstance(manifold, Manifold)


def test_exp_undoes_log_and_log_undoes_exp(manifold, rng):
    first, second = manifold.random_point(rng), manifold.random_point(rng)
    tangent = manifold.random_tangent(first, rng)
    np.testing.assert_allclose(flat(manifold.exp(first, manifold.log(first, second))), flat(second), atol=1e-10)
    np.testing.assert_allclose(flat(manifold.log(first, manifold.exp(first, tangent))), flat(tangent), atol=1e-9)


def test_distance_is_the_length_of_the_log_and_symmetric(manifold, rng):
    first, second = manifold.random_point(rng), manifold.random_point(rng)
    there = manifold.distance(first, second)
    assert there == pytest.approx(manifold.norm(first, manifold.log(first, second)), rel=1e-10)
    assert there == pytest.approx(manifold.distance(second, first), rel=1e-9)


def test_geodesic_has_constant_speed_between_its_ends(manifold, rng):
    first, second = manifold.random_point(rng), manifold.random_point(rng)
    np.testing.assert_allclose(flat(manifold.geodesic(first, second, 0.0)), flat(first), atol=1e-10)
    np.testing.assert_allclose(flat(manifold.geodesic(first, second, 1.0)), flat(second), atol=1e-10)
    middle = manifold.geodesic(first, second, 0.3)
    assert manifold.distance(first, middle) == pytest.approx(0.3 * manifold.distance(first, second), rel=1e-9)


def test_transport_is_an_isometry(manifold, rng):
    first, second = manifold.random_point(rng), manifold.random_point(rng)
    one, two = manifold.random_tangent(first, rng), manifold.random_tangent(first, rng)
    carried = manifold.transport(first, second, one), manifold.transport(first, second, two)
    assert manifold.inner(second, *carried) == pytest.approx(manifold.inner(first, one, two), rel=1e-9, abs=1e-12)


def test_coordinates_have_the_inner_product_of_tangent_vectors(manifold, rng):
    point = manifold.random_point(rng)
    frame = manifold.frame(point)
    one, two = manifold.random_tangent(point, rng), manifold.random_tangent(point, rng)
    assert manifold.coordinates(frame, one) @ manifold.coordinates(frame, two) == pytest.approx(
        manifold.inner(point, one, two), rel=1e-9
    )
    np.testing.assert_allclose(flat(manifold.tangent(frame, manifold.coordinates(frame, one))), flat(one), atol=1e-10)
    np.testing.assert_allclose(flat(manifold.point(frame)), flat(point), atol=1e-12)


def test_moved_frames_keep_the_coordinates_of_transported_vectors(manifold, rng):
    point = manifold.random_point(rng)
    frame = manifold.frame(point)
    along, other = manifold.random_tangent(point, rng), manifold.random_tangent(point, rng)
    moved = manifold.move(frame, manifold.coordinates(frame, along))
    target = manifold.exp(point, along)
    np.testing.assert_allclose(flat(manifold.point(moved)), flat(target), atol=1e-10)
    carried = manifold.transport(point, target, other)
    np.testing.assert_allclose(manifold.coordinates(moved, carried), manifold.coordinates(frame, other), atol=1e-9)


def test_gradient_gives_directional_derivatives(manifold, rng):
    point = manifold.random_point(rng)
    weights = rng.standard_normal(flat(point).shape)

    def value(at):
        return float(np.sin(flat(at) @ weights))

    def shaped(like, entries):
        if not isinstance(like, tuple):
            return entries.reshape(np.shape(like))
        ends = np.cumsum([flat(part).size for part in like])[:-1]
        return tuple(shaped(part, piece) for part, piece in zip(like, np.split(entries, ends), strict=True))

    partials = shaped(point, np.cos(flat(point) @ weights) * weights)
    tangent = manifold.random_tangent(point, rng)

    def scaled(step):
        return shaped(tangent, step * flat(tangent))

    h = 1e-5
    slope = (value(manifold.exp(point, scaled(h))) - value(manifold.exp(point, scaled(-h)))) / (2 * h)
    gradient = manifold.gradient(point, partials)
    assert manifold.inner(point, gradient, tangent) == pytest.approx(slope, rel=1e-5, abs=1e-7)
    frame = manifold.frame(point)
    np.testing.assert_allclose(
        manifold.slopes(frame, partials), manifold.coordinates(frame, gradient), rtol=1e-8, atol=1e-9
    )


def test_positive_definite_maps_equal_textbook_formulas(rng):
    manifold = SPD(4)
    S, T = manifold.random_point(rng), manifold.random_point(rng)
    U, V = manifold.random_tangent(S, rng), manifold.random_tangent(S, rng)
    inverse = np.linalg.inv(S)
    assert manifold.inner(S, U, V) == pytest.approx(np.trace(inverse @ U @ inverse @ V))
    np.testing.assert_allclose(manifold.exp(S, U), S @ expm(inverse @ U), rtol=1e-10, atol=1e-10)
    root = np.real(sqrtm(S))
    whitened = np.linalg.solve(root, T) @ np.linalg.inv(root)
    np.testing.assert_allclose(manifold.log(S, T), root @ np.real(logm(whitened)) @ root, atol=1e-10)
    assert manifold.distance(S, T) == pytest.approx(np.linalg.norm(np.real(logm(whitened))))
    E = np.real(sqrtm(T @ inverse))
    np.testing.assert_allclose(manifold.transport(S, T, U), E @ U @ E.T, atol=1e-10)
    egrad = rng.standard_normal((4, 4))
    np.testing.assert_allclose(manifold.gradient(S, egrad), 0.5 * S @ (egrad + egrad.T) @ S, atol=1e-10)


def test_distance_does_not_change_under_congruence_and_inversion(rng):
    manifold = SPD(3)
    S, T = manifold.random_point(rng), manifold.random_point(rng)
    A = rng.standard_normal((3, 3))
    there = manifold.distance(S, T)
    assert manifold.distance(A @ S @ A.T, A @ T @ A.T) == pytest.approx(there, rel=1e-8)
    assert manifold.distance(np.linalg.inv(S), np.linalg.inv(T)) == pytest.approx(there, rel=1e-8)


def test_random_tangent_has_standard_normal_coordinates():
    # Mean squared length is the dimension, 6; its standard error over 4000 draws is sqrt(12 / 4000) = 0.055.
    manifold = SPD(3)
    rng = np.random.default_rng(0)
    point = manifold.random_point(rng)
    lengths = [manifold.norm(point, manifold.random_tangent(point, rng)) ** 2 for _ in range(4000)]
    assert abs(np.mean(lengths) - 6) < 5 * 0.055


def test_wild_steps_stay_finite_and_positive():
    manifold = SPD(2)
    moved = manifold.move(np.eye(2), 1e6 * np.array([1.0, 0.3, 0.3, -1.0]))
    singular = np.linalg.svd(moved, compute_uv=False)
    np.testing.assert_allclose(singular, np.exp([15.0, -15.0]), rtol=1e-2)


def test_dimensions_and_checks():
    assert (SPD(3).dimension, SPD(3, 4).dimension, Euclidean(5).dimension, Euclidean(()).dimension) == (6, 24, 5, 1)
    assert Product(SPD(2), Euclidean(3)) == Product(SPD(2), Euclidean(3))
    for bad, words in [([[1.0, 2.0], [2.0, 1.0]], "positive definite"), ([[1.0, 0.5], [0.0, 1.0]], "symmetric"),
                       (np.eye(3), "shape"), ([[np.nan, 0.0], [0.0, 1.0]], "finite")]:  # fmt: skip
        with pytest.raises(ValueError, match=words):
            SPD(2).check(bad)
    with pytest.raises(ValueError, match="size"):
        SPD(0)
    with pytest.raises(ValueError, match="count"):
        SPD(2, 0)
    with pytest.raises(ValueError, match="shape"):
        Euclidean(-1)
    with pytest.raises(ValueError, match="shape"):
        Euclidean(2).check([1.0])
    with pytest.raises(ValueError, match="at least one"):
        Product()
    with pytest.raises(TypeError, match="manifolds"):
        Product(3)
    with pytest.raises(ValueError, match="tuple of 2"):
        Product(SPD(2), Euclidean(1)).check((np.eye(2),))


def test_check_copies():
    point = np.eye(2)
    SPD(2).check(point)[0, 0] = 5.0
    assert point[0, 0] == 1.0
