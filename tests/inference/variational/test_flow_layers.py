"""Layers of normalizing flows against finite differences, their own inverses and numerical integrals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pluri.inference.variational.flows import (
    AffineCoupling,
    ElementwiseAffine,
    Flow,
    Permutation,
    Planar,
    Radial,
    SplineCoupling,
    build_flow,
)
from pluri.inference.variational.flows.flow import log_standard_normal
from pluri.inference.variational.flows.planar import solve_increasing


def halves(dim):
    return tuple(range(dim // 2)), tuple(range(dim // 2, dim))


LAYERS = {
    "planar": Planar,
    "radial": Radial,
    "elementwise": ElementwiseAffine,
    "permutation": lambda dim: Permutation(tuple(np.roll(range(dim), 1).tolist())),
    "coupling": lambda dim: AffineCoupling(*halves(dim), hidden=(5, 4)),
    "relu coupling": lambda dim: AffineCoupling(*halves(dim), hidden=(6,), activation="relu"),
    "coupling without a hidden layer": lambda dim: AffineCoupling(*halves(dim), hidden=()),
    "spline": lambda dim: SplineCoupling(*halves(dim), hidden=(5,), n_bins=4, bound=2.0),
    "one-bin spline": lambda dim: SplineCoupling(*halves(dim), hidden=(5,), n_bins=1, bound=2.0),
    "mixed flow": lambda dim: build_flow("mixed", dim, 4, np.random.default_rng(0), base="learned"),
    "spline flow": lambda dim: build_flow("spline", dim, 3, np.random.default_rng(0), hidden=(4,), n_bins=3),
    "coupling flow": lambda dim: build_flow("coupling", dim, 3, np.random.default_rng(0), hidden=(4,)),
}


@pytest.fixture(params=LAYERS)
def kind(request):
    return LAYERS[request.param]


@pytest.fixture(params=[1, 2, 5])
def dim(request):
    return request.param


@pytest.fixture
def case(kind, dim):
    """A layer, parameters far from the identity, and points in and out of the box of the splines."""
    rng = np.random.default_rng(dim)
    layer = kind(dim)
    parameters = layer.initialize(rng, 1.0) + 0.5 * rng.standard_normal(layer.n_parameters)
    return layer, parameters, 1.5 * rng.standard_normal((7, dim))


def differences(function, x, step=1e-6):
    """Central differences of a number with respect to every entry of x."""
    gradient = np.zeros_like(x)
    for index in np.ndindex(*x.shape):
        moved = x.copy()
        moved[index] += step
        above = function(moved)
        moved[index] -= 2 * step
        gradient[index] = (above - function(moved)) / (2 * step)
    return gradient


def test_log_determinant_equals_that_of_the_numerical_jacobian(case):
    layer, parameters, z = case
    _, log_det, _ = layer.forward(parameters, z)
    for row, expected in zip(z, log_det):
        jacobian = np.stack(
            [differences(lambda x, j=j: layer.forward(parameters, x[None])[0][0, j], row) for j in range(layer.dim)]
        )
        assert np.linalg.slogdet(jacobian)[1] == pytest.approx(expected, abs=5e-5)


def test_inverse_undoes_forward(case):
    layer, parameters, z = case
    y, log_det, _ = layer.forward(parameters, z)
    back, log_det_back = layer.inverse(parameters, y)
    np.testing.assert_allclose(back, z, atol=1e-8)
    np.testing.assert_allclose(log_det_back, -log_det, atol=1e-8)


def test_forward_undoes_inverse(case):
    layer, parameters, z = case
    np.testing.assert_allclose(layer.forward(parameters, layer.inverse(parameters, z)[0])[0], z, atol=1e-8)


def test_gradients_equal_finite_differences(case):
    layer, parameters, z = case
    rng = np.random.default_rng(1)
    grad_y, grad_log_det = rng.normal(size=z.shape), rng.normal(size=len(z))

    def loss(parameters, z):
        y, log_det, _ = layer.forward(parameters, z)
        return (grad_y * y).sum() + grad_log_det @ log_det

    grad_z, grad_parameters = layer.backward(parameters, layer.forward(parameters, z)[2], grad_y, grad_log_det)
    np.testing.assert_allclose(grad_z, differences(lambda x: loss(parameters, x), z), atol=2e-6)
    np.testing.assert_allclose(grad_parameters, differences(lambda p: loss(p, z), parameters), atol=2e-6)


def test_scale_zero_is_the_identity(kind, dim):
    layer = kind(dim)
    z = np.random.default_rng(0).normal(size=(6, dim))
    y, log_det, _ = layer.forward(layer.initialize(np.random.default_rng(0), 0.0), z)
    if isinstance(layer, Permutation):  # it has no scale: the coordinates only change places
        y, z = np.sort(y, axis=1), np.sort(z, axis=1)
    np.testing.assert_allclose(y, z, atol=1e-12)
    np.testing.assert_allclose(log_det, 0.0, atol=1e-12)


def test_rows_do_not_see_each_other(case):
    layer, parameters, z = case
    order = np.random.default_rng(0).permutation(len(z))
    y, log_det, _ = layer.forward(parameters, z)
    shuffled, log_det_shuffled, _ = layer.forward(parameters, z[order])
    np.testing.assert_allclose(shuffled, y[order], rtol=1e-12)
    np.testing.assert_allclose(log_det_shuffled, log_det[order], rtol=1e-12, atol=1e-14)


def test_inputs_are_left_alone(case):
    layer, parameters, z = case
    kept, kept_parameters = z.copy(), parameters.copy()
    y, _, cache = layer.forward(parameters, z)
    layer.inverse(parameters, y)
    layer.backward(parameters, cache, np.ones_like(z), np.ones(len(z)))
    np.testing.assert_array_equal(z, kept)
    np.testing.assert_array_equal(parameters, kept_parameters)


@pytest.mark.parametrize("kind", ["planar", "radial", "mixed", "coupling", "spline"])
def test_density_integrates_to_one(kind):
    rng = np.random.default_rng(3)
    flow = build_flow(kind, 2, 4, rng, hidden=(8,), base="learned")
    parameters = flow.initialize(rng, 0.3) + 0.1 * rng.standard_normal(flow.n_parameters)
    line = np.linspace(-14, 14, 401)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    mass = np.exp(flow.log_prob(parameters, grid)).sum() * (line[1] - line[0]) ** 2
    assert mass == pytest.approx(1.0, abs=1e-3)


def test_density_of_samples_is_the_same_forwards_and_backwards():
    rng = np.random.default_rng(4)
    flow = build_flow("mixed", 3, 6, rng)
    parameters, z = flow.initialize(rng, 1.0), rng.normal(size=(50, 3))
    y, log_det, _ = flow.forward(parameters, z)
    np.testing.assert_allclose(flow.log_prob(parameters, y), log_standard_normal(z) - log_det, atol=1e-8)


def test_a_flow_without_layers_is_its_base():
    flow, z = Flow(3, ()), np.random.default_rng(0).normal(size=(4, 3))
    expected = (-0.5 * z**2 - 0.5 * np.log(2 * np.pi)).sum(axis=1)
    np.testing.assert_allclose(flow.log_prob(np.zeros(0), z), expected)


def test_planar_layer_is_invertible_for_any_parameters():
    # The worst case: u points against w, so that without the constraint the determinant would be negative.
    layer, parameters = Planar(2), np.array([3.0, 0.0, -50.0, 1.0, 0.2])
    z = np.random.default_rng(0).normal(size=(200, 2))
    y, log_det, _ = layer.forward(parameters, z)
    assert np.isfinite(log_det).all()
    assert (np.diff(y[np.argsort(z[:, 0]), 0]) >= 0).all()
    np.testing.assert_allclose(layer.forward(parameters, layer.inverse(parameters, y)[0])[0], y, atol=1e-8)


def test_planar_layer_with_w_zero_is_finite():
    layer = Planar(2)
    for w in (0.0, 1e-9, 1e-5):
        parameters = np.array([w, 0.0, 1.0, 1.0, 0.5])
        y, log_det, cache = layer.forward(parameters, np.ones((1, 2)))
        gradients = layer.backward(parameters, cache, np.ones((1, 2)), np.ones(1))
        assert np.abs(y).max() < 10
        assert all(np.isfinite(values).all() for values in (y, log_det, *gradients))


def test_radial_layer_at_its_centre():
    parameters = np.array([0.5, -0.5, 0.3, 2.0])
    y, log_det, cache = Radial(2).forward(parameters, np.array([[0.5, -0.5]]))
    np.testing.assert_allclose(y, [[0.5, -0.5]])
    np.testing.assert_allclose(Radial(2).inverse(parameters, y)[1], -log_det)
    gradients = Radial(2).backward(parameters, cache, np.ones((1, 2)), np.ones(1))
    assert all(np.isfinite(values).all() for values in gradients)


@given(st.floats(-0.999999, 20.0), st.floats(-1e4, 1e4))
def test_the_scalar_equation_of_the_planar_inverse_is_solved(product, target):
    s = solve_increasing(np.array([target]), product)
    assert s + product * np.tanh(s) == pytest.approx(target, abs=1e-9 * max(1, abs(target)))


def test_splines_are_monotone():
    layer = SplineCoupling((), (0,), hidden=(), n_bins=6, bound=3.0)
    parameters = 3.0 * np.random.default_rng(0).standard_normal(layer.n_parameters)
    x = np.linspace(-4, 4, 2001)[:, None]
    y, log_det, _ = layer.forward(parameters, x)
    assert (np.diff(y[:, 0]) > 0).all()
    assert np.diff(y[:, 0]).max() < 8.0 / 2000 * np.exp(log_det.max() + 0.5)
    np.testing.assert_array_equal(y[np.abs(x) > 3], x[np.abs(x) > 3])


def test_wrong_shapes_are_refused():
    with pytest.raises(ValueError, match="layers must all have dim 2, got one with dim 3"):
        Flow(2, (Planar(2), Radial(3)))
    with pytest.raises(ValueError, match="permutation"):
        Permutation((0, 2))
    with pytest.raises(ValueError, match="flow must be one of"):
        build_flow("circular", 2, 2, np.random.default_rng(0))
    with pytest.raises(ValueError, match="base must be"):
        build_flow("planar", 2, 2, np.random.default_rng(0), base="wide")
