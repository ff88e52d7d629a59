"""Bridge sampling against closed forms: over seeds with correlated draws, in a space, warped; abuse."""

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import skewnorm

from pluri.inference import mcmc
from pluri.inference.comparison import bridge_sampling
from pluri.inference.mcmc.trace import Trace


def autoregression(rng, n_chains, n_draws, dim, correlation):
    """Standard normal chains (n_chains, n_draws, dim) with this correlation of neighbours."""
    x = np.empty((n_chains, n_draws, dim))
    x[:, 0] = rng.normal(size=(n_chains, dim))
    for t in range(1, n_draws):
        x[:, t] = correlation * x[:, t - 1] + np.sqrt(1 - correlation**2) * rng.normal(size=(n_chains, dim))
    return x


def cubed(points):
    """Density of x = y + y^3 / 10 for y standard normal in each coordinate, times 7: its log constant is log 7."""
    y = points.copy()
    for _ in range(60):
        y -= (y + y**3 / 10 - points) / (1 + 0.3 * y**2)
    logs = -0.5 * y**2 - 0.5 * np.log(2 * np.pi) - np.log(1 + 0.3 * y**2)
    return logs.sum(axis=1) + np.log(7.0)


@pytest.mark.parametrize("correlation", [0.0, 0.8])
@pytest.mark.parametrize("warp", [False, True])
def test_the_error_bar_is_honest_over_seeds(correlation, warp):
    """Of 60 standard normal numbers the root mean square leaves 0.64 to 1.43 once in 20 000 (chi-square)."""
    errors = []
    for seed in range(60):
        # Not the numbers that the proposal is drawn with.
        y = autoregression(np.random.default_rng([seed, 1]), 4, 250, 3, correlation)
        trace = Trace({"x": y + y**3 / 10})
        found = bridge_sampling(trace, cubed, vectorized=True, warp=warp, random_state=seed, warn=False)
        errors.append((found.log_z - np.log(7.0)) / found.log_z_se)
    assert 0.64 < np.sqrt(np.mean(np.square(errors))) < 1.43


def test_a_normal_posterior_is_met_almost_exactly():
    y = autoregression(np.random.default_rng([0, 1]), 4, 2000, 2, 0.5)
    trace = Trace({"x": 3.0 + 0.1 * y})
    found = bridge_sampling(
        trace, lambda x: -50 * np.square(x - 3.0).sum(axis=1), vectorized=True, random_state=0
    )  # fmt: skip
    assert found.log_z == pytest.approx(np.log(2 * np.pi * 0.01), abs=5 * found.log_z_se)
    assert found.log_z_se < 0.01
    assert found.converged
    assert found.diagnose() == []


def test_chains_in_a_space_give_the_evidence_of_counts():
    """Three Poisson counts, their rate Gamma(2, 1/2): the evidence is known; five standard errors, 1 in 2 million."""
    counts = np.array([3, 5, 4])
    space = mcmc.Space(rate=mcmc.Positive())

    def log_joint(values):
        rate = float(values["rate"])
        prior = 2 * np.log(0.5) + np.log(rate) - 0.5 * rate
        return prior + counts.sum() * np.log(rate) - 3 * rate - gammaln(counts + 1).sum()

    def value_and_grad(values):
        return log_joint(values), {"rate": (1 + counts.sum()) / values["rate"] - 3.5}

    kernel = mcmc.NUTS(space.value_and_grad(value_and_grad))
    start = space.unconstrain({"rate": 4.0})
    trace = mcmc.sample(kernel, start, n_draws=500, n_warmup=300, record=space.constrain, random_state=0)
    found = bridge_sampling(trace, log_joint, space=space, random_state=1)
    exact = 2 * np.log(0.5) + gammaln(14) - 14 * np.log(3.5) - gammaln(counts + 1).sum()
    assert found.log_z == pytest.approx(exact, abs=5 * found.log_z_se)
    assert found.log_z_se < 0.03


def test_warping_helps_where_the_posterior_is_skewed():
    """Six skewed coordinates: the warped error is smaller; over eight seeds it is so in all or all but one."""
    smaller = 0
    for seed in range(8):
        draws = skewnorm.rvs(8.0, size=(4, 500, 6), random_state=seed)
        plain, warped = (
            bridge_sampling(
                Trace({"x": draws}), lambda x: skewnorm.logpdf(x, 8.0).sum(axis=1), vectorized=True, warp=warp,
                random_state=seed, warn=False,
            )
            for warp in (False, True)
        )  # fmt: skip
        smaller += warped.log_z_se < plain.log_z_se
        assert abs(warped.log_z) < 6 * warped.log_z_se
    assert smaller >= 7


def test_a_poor_bridge_is_told():
    draws = np.random.default_rng(0).standard_cauchy((2, 60, 8))
    found = bridge_sampling(
        Trace({"x": draws}), lambda x: -np.log1p(x**2).sum(axis=1), vectorized=True, random_state=0, warn=False
    )
    assert found.diagnose()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trace": Trace({"a": np.zeros((2, 50)), "b": np.zeros((2, 50))})}, "trace must hold one variable 'x'"),
        ({"trace": Trace({"x": np.zeros((2, 3, 1))})}, "trace must hold at least 4 draws"),
        ({"space": mcmc.Space(a=mcmc.Real(), b=mcmc.Real())}, "one vector at a time"),
        ({"log_density": lambda x: np.full(len(x), np.nan)}, "log_density must be a number below infinity"),
        ({"log_density": lambda x: np.full(len(x), -np.inf)}, "log_density must be finite at the draws of trace"),
        ({"tol": 0.0}, "tol must be"),
        ({"n_proposal": 0}, "n_proposal must be"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(changes, message):
    draws = np.random.default_rng(0).normal(size=(2, 50, 1))
    settings = {
        "trace": Trace({"x": draws}), "log_density": lambda x: -0.5 * np.square(x).sum(axis=1), "vectorized": True,
    } | changes  # fmt: skip
    with pytest.raises(ValueError, match=message):
        bridge_sampling(**settings, random_state=0)
