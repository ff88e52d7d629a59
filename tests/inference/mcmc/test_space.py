"""Transforms against finite differences, autodiff-free Jacobians and known volumes."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pluri.inference import mcmc
from pluri.inference.mcmc.transforms.space import (
    Correlation,
    CorrelationCholesky,
    Covariance,
    CovarianceCholesky,
    Interval,
    LowerBound,
    Ordered,
    Positive,
    PositiveOrdered,
    Real,
    Simplex,
    Space,
    UpperBound,
)

TRANSFORMS = {
    "real": Real((2, 2)),
    "scalar": Real(),
    "positive": Positive(3),
    "lower": LowerBound([1.0, -2.0]),
    "upper": UpperBound(3.0, shape=2),
    "interval": Interval(-1.0, [2.0, 5.0, 0.0]),
    "unit": Interval(),
    "simplex": Simplex(4),
    "long simplex": Simplex(15),
    "simplices": Simplex(3, shape=2),
    "ordered": Ordered(4),
    "ordered rows": Ordered(3, shape=(2,)),
    "positive ordered": PositiveOrdered(3),
    "covariance factor": CovarianceCholesky(3),
    "covariances": Covariance(2, shape=3),
    "covariance": Covariance(3),
    "correlation factor": CorrelationCholesky(4),
    "correlation": Correlation(4),
    "correlations": Correlation(3, shape=2),
}


def free_part(transform, value):
    """The entries that a density is one of: as many as there are free numbers."""
    if isinstance(transform, Simplex):
        return value[..., :-1].ravel()
    if isinstance(transform, CovarianceCholesky):
        return value[(..., *np.tril_indices(transform.k))].ravel()
    if isinstance(transform, CorrelationCholesky):
        return value[(..., *np.tril_indices(transform.k, -1))].ravel()
    return value.ravel()


def points(transform, n=5):
    rng = np.random.default_rng(0)
    return rng.normal(0, 1.2, size=(n, transform.size))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_there_and_back(name):
    transform = TRANSFORMS[name]
    for free in points(transform):
        value, _, _ = transform.forward(free)
        assert value.shape == transform.shape
        np.testing.assert_allclose(transform.inverse(value), free, atol=1e-8)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_log_jacobian_is_the_determinant_of_finite_differences(name):
    transform = TRANSFORMS[name]
    width = 1e-6
    for free in points(transform):
        columns = []
        for step in width * np.eye(transform.size):
            above, below = (free_part(transform, transform.forward(free + sign * step)[0]) for sign in (1, -1))
            columns.append((above - below) / (2 * width))
        sign, log_determinant = np.linalg.slogdet(np.array(columns).T)
        if name == "upper":
            assert abs(sign) == 1
        else:
            assert sign == 1
        assert transform.forward(free)[1] == pytest.approx(log_determinant, abs=1e-5)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_gradients_pass_through_with_that_of_the_jacobian(name):
    transform = TRANSFORMS[name]
    space = Space({"value": transform})
    rng = np.random.default_rng(1)
    slope = rng.normal(size=transform.shape)

    def function(values):
        value = values["value"]
        return float((slope * value + 0.3 * value**2).sum()), {"value": slope + 0.6 * value}

    target = space.value_and_grad(function)
    density = space.density(lambda values: function(values)[0])
    for free in points(transform):
        value, gradient = target(free)
        assert value == pytest.approx(density(free))
        assert value == pytest.approx(function(space.constrain(free))[0] + space.log_jacobian(free))
        width = 1e-6 * np.eye(transform.size)
        numeric = [(target(free + step)[0] - target(free - step)[0]) / 2e-6 for step in width]
        np.testing.assert_allclose(gradient, numeric, rtol=2e-5, atol=2e-5 * max(1, abs(value)))


@settings(max_examples=30)
@given(st.lists(st.floats(-30, 30), min_size=6, max_size=6))
def test_constraints_hold_however_far_out(values):
    free = np.array(values)
    shares = Simplex(7).forward(free)[0]
    assert (shares >= 0).all()
    assert shares.sum() == pytest.approx(1.0)
    assert (np.diff(Ordered(6).forward(free)[0]) >= 0).all()
    correlation = Correlation(4).forward(free)[0]
    np.testing.assert_allclose(np.diag(correlation), 1.0, atol=1e-12)
    assert np.linalg.eigvalsh(correlation).min() > -1e-9
    inside = Interval(-2, 3, shape=6).forward(free)
    assert ((inside[0] >= -2) & (inside[0] <= 3)).all()
    for transform in (Simplex(7), Ordered(6), Correlation(4), Covariance(3), Interval(shape=6)):
        _, log_jacobian, memory = transform.forward(free)
        assert math.isfinite(log_jacobian)
        assert np.isfinite(transform.backward(np.zeros(transform.shape), memory)).all()


def test_zero_means_equal_shares_and_no_correlation():
    np.testing.assert_allclose(Simplex(5).forward(np.zeros(4))[0], 0.2)
    np.testing.assert_array_equal(Correlation(3).forward(np.zeros(3))[0], np.eye(3))


def test_a_flat_density_becomes_uniform_under_the_transforms():
    # The uniform law on (2, 5), through NUTS on the logit: Kolmogorov-Smirnov at level 1e-7 on thinned draws.
    space = Space(x=Interval(2, 5), w=Simplex(3))
    target = space.value_and_grad(lambda v: (0.0, {"x": 0.0, "w": np.zeros(3)}))
    trace = mcmc.sample(
        mcmc.NUTS(target), np.zeros(3), n_draws=400, n_warmup=200, record=space.constrain, random_state=0, warn=False
    )
    assert stats.kstest(trace.flat("x")[::2], stats.uniform(2, 3).cdf).pvalue > 1e-7
    assert stats.kstest(trace.flat("w")[::2, 0], stats.beta(1, 2).cdf).pvalue > 1e-7
    assert stats.kstest(trace.flat("w")[::2, 2], stats.beta(1, 2).cdf).pvalue > 1e-7


def test_uniform_correlation_matrices_have_beta_marginals():
    # Uniform over 3 x 3 correlation matrices: each entry is 2 Beta(3/2, 3/2) - 1.
    space = Space(c=Correlation(3))
    target = space.value_and_grad(lambda v: (0.0, {"c": np.zeros((3, 3))}))
    trace = mcmc.sample(
        mcmc.NUTS(target), np.zeros(3), n_draws=200, n_warmup=150, record=space.constrain, random_state=0, warn=False
    )
    draws = trace.flat("c")[::2]
    for i, j in ((1, 0), (2, 0), (2, 1)):
        assert stats.kstest((draws[:, i, j] + 1) / 2, stats.beta(1.5, 1.5).cdf).pvalue > 1e-7


def test_an_inverse_wishart_has_its_mean():
    # E[S] = Psi / (nu - k - 1); five and a half standard errors.
    scale, nu = np.array([[2.0, 0.5], [0.5, 1.0]]), 9.0

    def inverse_wishart(values):
        inverse = np.linalg.inv(values["s"])
        value = -0.5 * (nu + 3) * np.linalg.slogdet(values["s"])[1] - 0.5 * np.trace(scale @ inverse)
        return value, {"s": -0.5 * (nu + 3) * inverse + 0.5 * inverse @ scale @ inverse}

    space = Space(s=Covariance(2))
    kernel = mcmc.NUTS(space.value_and_grad(inverse_wishart))
    trace = mcmc.sample(
        kernel, np.zeros(3), n_draws=200, n_warmup=150, record=space.constrain, random_state=0, warn=False
    )
    for i, j in ((0, 0), (1, 0), (1, 1)):
        draws = trace["s"][..., i, j]
        assert draws.mean() == pytest.approx(scale[i, j] / (nu - 3), abs=5.5 * mcmc.mcse_mean(draws))


def test_several_variables_share_one_vector():
    space = Space(mean=Real(2), scale=Positive(), weights=Simplex(3))
    assert (space.size, len(space), list(space)) == (5, 3, ["mean", "scale", "weights"])
    values = {"mean": [1.0, 2.0], "scale": 0.5, "weights": [0.2, 0.3, 0.5]}
    back = space.constrain(space.unconstrain(values))
    for name, value in values.items():
        np.testing.assert_allclose(back[name], value)
    assert "scale=Positive(shape=())" in repr(space)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Interval(1.0, 1.0), "has no width"),
        (lambda: Interval([0.0, 1.0], [1.0, 1.0]), "has no width"),
        (lambda: Interval(2.0, 1.0), "low must be below high"),
        (lambda: Interval(0.0, np.inf), "must be finite"),
        (lambda: Simplex(1), "at least 2"),
        (lambda: Real((2, 0)), "at least 1"),
        (lambda: Space(), "at least one variable"),
        (lambda: Space(x=3), "must be a transform"),
        (lambda: Space(x=Real()).unconstrain({}), "'x' is missing"),
        (lambda: Space(x=Real()).unconstrain({"x": 1.0, "y": 2.0}), "'y' is none of them"),
        (lambda: Space(x=Real(2)).unconstrain({"x": 1.0}), r"x must have shape \(2,\)"),
        (lambda: Space(x=Positive()).unconstrain({"x": 0.0}), "x is outside its support: it must be positive"),
        (lambda: Space(x=Interval()).unconstrain({"x": 1.0}), "strictly between"),
        (lambda: Space(x=Simplex(2)).unconstrain({"x": [0.5, 0.6]}), "sum to 1"),
        (lambda: Space(x=Ordered(2)).unconstrain({"x": [1.0, 1.0]}), "ascend"),
        (lambda: Space(x=PositiveOrdered(2)).unconstrain({"x": [-1.0, 1.0]}), "above 0"),
        (lambda: Space(x=Covariance(2)).unconstrain({"x": np.zeros((2, 2))}), "positive definite"),
        (lambda: Space(x=Correlation(2)).unconstrain({"x": 2 * np.eye(2)}), "ones on the diagonal"),
        (lambda: Space(x=UpperBound(1.0)).unconstrain({"x": 2.0}), "below 1.0"),
        (lambda: Space(x=Real()).unconstrain({"x": np.nan}), "must be finite"),
        (lambda: Space(x=Real()).constrain(np.zeros(2)), "must have 1 entries"),
        (lambda: Space(x=Real()).value_and_grad(lambda v: (0.0, {}))(np.zeros(1)), "no gradient for 'x'"),
        (lambda: Space(x=Real(2)).value_and_grad(lambda v: (0.0, {"x": np.zeros(3)}))(np.zeros(2)), "gradient of x"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_in_one_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()
