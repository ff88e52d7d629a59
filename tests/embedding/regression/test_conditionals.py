"""Conditional distributions of the regression by clusters, held against a joint density written down with SciPy.

A Gaussian conditional is right if the log joint has no slope at its mean and minus its precision as curvature; a gamma
conditional if the log joint has its shape and rate along the variable.
"""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp
from sklearn.linear_model import Ridge

from pluri.embedding.regression import conditionals, sweep
from pluri.embedding.regression.records import RegressionPriors
from pluri.embedding.regression.sweep import ClusterRegression
from pluri.factors.spike_slab_regression import _posterior
from pluri.priors import BetaProcess, Gamma

PRIORS = RegressionPriors(
    BetaProcess(1.0, 1.0), Gamma(2.0, 2.0), Gamma(3.0, 2.0), Gamma(2.5, 1.5), Gamma(4.0, 2.0), Gamma(3.0, 1.0)
)
N, D, K, J = 12, 4, 3, 3


def problem(seed, scales=None, shared=False, isotropic=False):
    """A model, a position from its prior, and data that belong to it."""
    rng = np.random.default_rng(seed)
    model = ClusterRegression(J, K, D, PRIORS, shared, scales, isotropic)
    position = dict(model.sample_prior(rng, N))
    position["labels"] = rng.permutation(np.arange(N) % J)
    x = rng.normal(size=(N, K)) + position["centers"][position["labels"]]
    return rng, model, position, x, model.sample_rows(rng, position, x)


def log_rows(position, x, rows, places):
    """Log density of each row and its place under each cluster, weights included: (n, J), by SciPy."""
    found = np.empty((len(rows), J))
    for j in range(J):
        u = (x - position["centers"][j]) * position["scales"] * position["support"][j]
        clean = u @ position["loadings"][j] + position["means"][j]
        found[:, j] = position["log_weights"][j]
        found[:, j] += stats.norm.logpdf(rows, clean, position["noise_precision"][j] ** -0.5).sum(axis=1)
        found[:, j] += stats.norm.logpdf(places, position["centers"][j], position["precisions"][j] ** -0.5).sum(axis=1)
    return found


def log_prior(model, position):
    def log_gamma(value, prior):
        return stats.gamma.logpdf(value, prior.shape, scale=1 / prior.rate).sum()

    weights = np.exp(position["log_weights"])
    left = 1 - np.concatenate([[0.0], np.cumsum(weights)[:-1]])
    sticks = weights[:-1] / left[:-1]
    total = stats.beta.logpdf(sticks, 1.0, position["concentration"]).sum()
    a, b = PRIORS.support.a / K, PRIORS.support.b * (K - 1) / K
    coins = position["support"][:1] if model.shared else position["support"]
    total += stats.bernoulli.logpmf(coins, a / (a + b)).sum()
    on = position["support"] > 0
    total += stats.norm.logpdf(position["loadings"][on], 0, position["loading_precision"] ** -0.5).sum()
    total += stats.norm.logpdf(position["means"], 0, position["mean_precision"] ** -0.5).sum()
    total += stats.norm.logpdf(position["centers"]).sum()
    if model.scales is None:
        total += stats.norm.logpdf(position["scales"]).sum()
    total += log_gamma(position["noise_precision"], PRIORS.noise)
    total += log_gamma(position["precisions"][:, :1] if model.isotropic else position["precisions"], PRIORS.coordinate)
    total += log_gamma(position["loading_precision"], PRIORS.loading)
    total += log_gamma(position["mean_precision"], PRIORS.mean)
    return total + log_gamma(position["concentration"], PRIORS.concentration)


def log_joint(model, position, x, rows, places):
    return log_prior(model, position) + log_rows(position, x, rows, places)[np.arange(N), position["labels"]].sum()


def assert_gaussian(density, precision, linear, rng):
    """`density` of a vector is a Gaussian of this precision and linear term."""
    mean = np.linalg.solve(precision, linear)
    top = density(mean)
    for _ in range(5):
        e = rng.normal(size=mean.shape)
        up, down = density(mean + e), density(mean - e)
        assert up - down == pytest.approx(0.0, abs=1e-7 * (1 + abs(top)))
        assert up + down - 2 * top == pytest.approx(-e @ precision @ e, rel=1e-7)


SETTINGS = [
    {"scales": np.array([1.0, 0.7, 0.4])},
    {"scales": np.array([1.0, 0.7, 0.4]), "isotropic": True},
    {"shared": True},
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_the_log_density_of_a_position_is_that_of_scipy(settings):
    _, model, position, x, rows = problem(0, **settings)
    joint = conditionals.log_joint_rows(position, x, rows, x)
    np.testing.assert_allclose(joint, log_rows(position, x, rows, x), rtol=1e-10)
    expected = logsumexp(log_rows(position, x, rows, x), axis=1).sum() + log_prior(model, position)
    assert model.log_posterior(position, joint) == pytest.approx(expected, rel=1e-10)


def test_loadings_and_means_have_their_conditional():
    rng, model, position, x, rows = problem(1, np.array([1.0, 0.7, 0.4]))
    position["support"][:] = [[1, 1, 0], [1, 0, 1], [1, 1, 1]]
    position["loadings"] = rng.normal(size=(J, K, D)) * position["support"][:, :, None]
    moments = conditionals.cluster_moments(x, rows, x, position["labels"], J)
    gram, cross = conditionals.about_centers(moments, position["centers"], position["scales"])
    prior = np.tile(np.r_[np.full(K, position["loading_precision"]), position["mean_precision"]], (J, 1))
    on = np.column_stack([position["support"], np.ones(J)])
    precision, linear = _posterior(gram, cross, position["noise_precision"][:, None], prior, on)
    for j in range(J):
        active = np.flatnonzero(on[j])

        def density(values, j=j, active=active):
            changed = {**position, "loadings": position["loadings"].copy(), "means": position["means"].copy()}
            values = values.reshape(D, len(active)).T
            changed["loadings"][j, active[:-1]], changed["means"][j] = values[:-1], values[-1]
            return log_joint(model, changed, x, rows, x)

        block = precision[j, 0][np.ix_(active, active)]
        assert_gaussian(density, np.kron(np.eye(D), block), linear[j, 0][active].T.ravel(), rng)


def test_scales_have_their_conditional():
    rng, model, position, x, rows = problem(2)
    moments = conditionals.cluster_moments(x, rows, x, position["labels"], J)
    gram, cross = conditionals.about_centers(moments, position["centers"], np.ones(K))
    precision, linear = conditionals.scale_posterior(
        gram, cross, position["loadings"], position["means"], position["noise_precision"]
    )
    assert_gaussian(lambda lam: log_joint(model, {**position, "scales": lam}, x, rows, x), precision, linear, rng)


def test_centers_have_their_conditional_given_the_constants_of_the_regressions():
    rng, model, position, x, rows = problem(3, np.array([1.0, 0.7, 0.4]))
    places = rng.normal(size=x.shape)
    used = position["loadings"] * position["scales"][:, None]
    constants = position["means"] - np.einsum("jk,jkd->jd", position["centers"], used)
    moments = conditionals.cluster_moments(x, rows, places, position["labels"], J)
    precision, linear = conditionals.center_posterior(
        moments, position["precisions"], used, constants, float(position["mean_precision"])
    )
    for j in range(J):

        def density(center, j=j):
            changed = {**position, "centers": position["centers"].copy(), "means": position["means"].copy()}
            changed["centers"][j] = center
            changed["means"][j] = constants[j] + center @ used[j]
            return log_joint(model, changed, x, rows, places)

        assert_gaussian(density, precision[j], linear[j], rng)


@pytest.mark.parametrize("settings", SETTINGS)
def test_precisions_and_the_concentration_have_their_gamma_conditionals(settings, monkeypatch):
    rng, model, position, x, rows = problem(4, **settings)
    places = rng.normal(size=x.shape)
    drawn = []

    def recording(rng, prior, shape, rate):
        drawn.append((np.asarray(prior.shape + shape) * np.ones(np.shape(rate)), np.asarray(prior.rate + rate)))
        return rng.gamma(prior.shape + shape) / (prior.rate + rate)

    monkeypatch.setattr(sweep, "draw_gamma", recording)
    found = model.swept(rng, position, x, rows, places)
    names = ["noise_precision", "loading_precision", "mean_precision", "concentration", "precisions"]
    assert len(drawn) == len(names)
    for name, (shape, rate) in zip(names, drawn):
        for index in np.ndindex(shape.shape):

            def density(value, name=name, index=index):
                changed = {**found, name: np.array(found[name], dtype=float)}
                changed[name][(index[0], slice(None)) if name == "precisions" and model.isotropic else index] = value
                return log_joint(model, changed, x, rows, places)

            s, r = shape[index], rate[index]
            differences = [density(v) - density(1.0) for v in (0.5, 2.0)]
            expected = [(s - 1) * np.log(v) - r * (v - 1.0) for v in (0.5, 2.0)]
            np.testing.assert_allclose(differences, expected, rtol=1e-6, atol=1e-6, err_msg=name)


def log_evidence(u, rows, on, noise, loading, mean):
    """Log density of the rows of a cluster with loadings and mean integrated out, as multivariate normals."""
    cov = np.eye(len(u)) / noise + np.ones((len(u), len(u))) / mean + (u * on) @ (u * on).T / loading
    return stats.multivariate_normal.logpdf(rows.T, np.zeros(len(u)), cov).sum()


def test_the_odds_of_a_coordinate_are_a_ratio_of_multivariate_normals():
    _, _, position, x, rows = problem(5, np.array([1.0, 0.7, 0.4]))
    labels, noise = position["labels"], position["noise_precision"]
    zt, g = float(position["loading_precision"]), float(position["mean_precision"])
    moments = conditionals.cluster_moments(x, rows, x, labels, J)
    gram, cross = conditionals.about_centers(moments, position["centers"], position["scales"])
    prior = np.tile(np.r_[np.full(K, zt), g], (J, 1))
    for k in range(K):
        present = np.array([[True, True, False, True], [False, True, True, True], [True, False, True, True]])
        present[:, k] = False
        inverse = conditionals._inverse_of_present(gram, noise, prior, present)
        gain, _, _ = conditionals.support_gain(
            k, gram, cross @ cross.transpose(0, 2, 1), noise, prior, inverse, D
        )  # fmt: skip
        for j in range(J):
            u = (x[labels == j] - position["centers"][j]) * position["scales"]
            off = present[j, :K].astype(float)
            with_k = np.where(np.arange(K) == k, 1.0, off)
            expected = log_evidence(u, rows[labels == j], with_k, noise[j], zt, g)
            expected -= log_evidence(u, rows[labels == j], off, noise[j], zt, g)
            assert gain[j] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("shared", [False, True])
def test_supports_are_drawn_with_the_probabilities_of_enumeration(shared):
    """6000 sweeps over two coordinates; a bound of 6 standard errors of fully dependent draws of length 20."""
    rng = np.random.default_rng(6)
    x, rows = rng.normal(size=(8, 2)), rng.normal(size=(8, 2))
    rows[:, 0] += 0.5 * x[:, 0]
    labels = np.repeat([0, 1], 4)
    noise, log_odds = np.array([1.5, 0.8]), -0.3
    moments = conditionals.cluster_moments(x, rows, x, labels, 2)
    gram, cross = conditionals.about_centers(moments, np.zeros((2, 2)), np.ones(2))
    prior = np.tile([2.0, 2.0, 1.0], (2, 1))
    coins = [(a, b) for a in (0, 1) for b in (0, 1)]
    each = np.array([
        [log_evidence(x[labels == j], rows[labels == j], np.array(b), noise[j], 2.0, 1.0) for b in coins]
        for j in (0, 1)
    ])  # fmt: skip
    odds = log_odds * np.sum(coins, axis=1)
    if shared:
        expected = np.tile(np.exp(each.sum(axis=0) + odds - logsumexp(each.sum(axis=0) + odds)), (2, 1))
    else:
        expected = np.exp(each + odds - logsumexp(each + odds, axis=1, keepdims=True))
    on, seen = np.ones((2, 2)), np.zeros((2, 4))
    for _ in range(6000):
        on = conditionals.draw_support(rng, gram, cross, noise, prior, on, log_odds, shared)
        assert not shared or (on[0] == on[1]).all()
        seen[[0, 1], (2 * on[:, 0] + on[:, 1]).astype(int)] += 1
    np.testing.assert_allclose(seen / 6000, expected, atol=6 * 0.5 / np.sqrt(6000 / 20))


def test_one_cluster_is_ridge_regression():
    rng = np.random.default_rng(7)
    x, rows = rng.normal(size=(40, 3)), rng.normal(size=(40, 4))
    rows += x @ rng.normal(size=(3, 4))
    moments = conditionals.cluster_moments(x, rows, x, np.zeros(40, dtype=np.int64), 1)
    gram, cross = conditionals.about_centers(moments, x.mean(axis=0)[None], np.ones(3))
    # The centred coordinates do not depend on the constant, whose prior is flat.
    precision, linear = _posterior(gram, cross, np.array([[2.0]]), np.array([[3.0, 3.0, 3.0, 1e-12]]), np.ones((1, 4)))
    found = np.linalg.solve(precision, linear)[0, 0]
    ridge = Ridge(alpha=3.0 / 2.0).fit(x, rows)
    np.testing.assert_allclose(found[:3], ridge.coef_.T, rtol=1e-9)
    np.testing.assert_allclose(found[3], rows.mean(axis=0), rtol=1e-9)


def test_residuals_of_all_rows_are_those_written_out():
    """Coordinates that a cluster does not use have loadings that must not count; a perfect fit has none left."""
    rng = np.random.default_rng(5)
    x, rows = rng.normal(size=(7, 3)), rng.normal(size=(7, 4))
    support = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 1]])
    used, constants = rng.normal(size=(3, 3, 4)) * support[:, :, None], rng.normal(size=(3, 4))
    rows[0] = constants[2] + x[0] @ used[2]
    expected = [[((y - constants[j] - t @ used[j]) ** 2).sum() for j in range(3)] for t, y in zip(x, rows)]
    found = conditionals.residuals_of_rows(x, rows, constants, used, support)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    assert 0 <= found[0, 2] < 1e-12
