"""`Space` for JAX densities: the same variables and Jacobians as in NumPy, and draws against closed forms."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from pluri.inference import mcmc
from pluri.inference.mcmc.transforms.traced import traced_variables

jax = pytest.importorskip("jax")

TRANSFORMS = {
    "real": mcmc.Real((2, 2)),
    "positive": mcmc.Positive(3),
    "above": mcmc.LowerBound([1.0, -2.0]),
    "below": mcmc.UpperBound(3.0, shape=2),
    "between": mcmc.Interval([-1.0, 0.0], [1.0, 5.0]),
    "shares": mcmc.Simplex(4),
    "many shares": mcmc.Simplex(15, shape=2),
    "ordered": mcmc.Ordered(3, shape=2),
    "positive ordered": mcmc.PositiveOrdered(3),
    "covariance": mcmc.Covariance(3, shape=2),
    "factor": mcmc.CovarianceCholesky(3),
    "correlation": mcmc.Correlation(4),
    "correlation factor": mcmc.CorrelationCholesky(3, shape=2),
}


@pytest.fixture(scope="module", autouse=True)
def double_precision():
    context = jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64()
    with context:
        yield


def test_variables_jacobians_and_gradients_are_those_of_numpy():
    # All transforms at once, as JAX takes a second to compile each: the Jacobians in NumPy are held against
    # determinants elsewhere. Far out as well: nothing may become NaN.
    space = mcmc.Space(TRANSFORMS)
    rng = np.random.default_rng(2)
    weights = {name: rng.normal(size=transform.shape) for name, transform in TRANSFORMS.items()}

    def log_density(v):
        return sum((weights[name] * v[name]).sum() for name in v)

    def by_name(u):
        return jax.value_and_grad(space.jax_density(log_density))(u), traced_variables(space, u)

    compiled = jax.jit(by_name)
    by_hand = space.value_and_grad(lambda v: (float(log_density(v)), weights))
    for scale in (0.5, 3.0, 15.0):
        free = np.clip(rng.normal(scale=scale, size=space.size), -30, 30)
        (value, gradient), (values, volume) = compiled(free)
        for name, expected in space.constrain(free).items():
            assert_allclose(values[name], expected, rtol=1e-9, atol=1e-12)
        assert_allclose(volume, space.log_jacobian(free), rtol=1e-9)
        expected_value, expected = by_hand(free)
        assert_allclose(value, expected_value, rtol=1e-9)
        assert_allclose(gradient, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())


def test_a_vector_of_another_length_is_refused():
    with pytest.raises(ValueError, match=r"the vector must have 3 entries, got shape \(2,\)"):
        mcmc.Space(a=mcmc.Positive(3)).jax_density(lambda v: 0.0)(np.zeros(2))


def test_draws_of_constrained_variables_have_the_moments_of_closed_forms():
    """Gamma(3, 2), Beta(2, 5) stretched to (-1, 1), Dirichlet(1, 2, 3), LKJ(2) of a pair, all at once."""
    pytest.importorskip("blackjax")
    jnp = jax.numpy
    space = mcmc.Space(
        rate=mcmc.Positive(), share=mcmc.Interval(-1.0, 1.0), weights=mcmc.Simplex(3), corr=mcmc.Correlation(2)
    )

    def log_density(v):
        share = 0.5 * (v["share"] + 1.0)
        value = 2.0 * jnp.log(v["rate"]) - 2.0 * v["rate"] + jnp.log(share) + 4.0 * jnp.log1p(-share)
        value += jnp.log(v["weights"][1]) + 2.0 * jnp.log(v["weights"][2])
        return value + jnp.log1p(-(v["corr"][0, 1] ** 2))

    start = {"rate": 1.0, "share": 0.0, "weights": np.full(3, 1 / 3), "corr": np.eye(2)}
    trace = mcmc.sample_blackjax(
        space.jax_density(log_density), start, n_leapfrog=4, n_draws=1500, n_warmup=400, n_chains=2, random_state=0,
        warn=False,
    )  # fmt: skip
    assert list(trace) == ["rate", "share", "weights", "corr"]
    beta, lkj = stats.beta(2, 5), stats.beta(2, 2)  # (1 + correlation) / 2
    exact = [
        (trace["rate"], 1.5, math.sqrt(0.75)),
        (trace["share"], 2 * beta.mean() - 1, 2 * beta.std()),
        (trace["corr"][..., 0, 1], 0.0, 2 * lkj.std()),
        *[(trace["weights"][..., k], a / 6, math.sqrt(a / 6 * (1 - a / 6) / 7)) for k, a in enumerate((1, 2, 3))],
    ]
    # Five and a half standard errors, twelve times: a false alarm in two million.
    for draws, mean, deviation in exact:
        assert draws.mean() == pytest.approx(mean, abs=5.5 * mcmc.mcse_mean(draws))
        assert draws.std() == pytest.approx(deviation, abs=5.5 * mcmc.mcse_sd(draws))
