"""Prediction both ways against conditional Gaussians written out, and mixtures of one draw against those of many."""

import numpy as np
import pytest
from scipy import integrate, stats

from pluri.embedding.regression.prediction import (
    JointMixture,
    drawn,
    embedded,
    embedded_distribution,
    place_log_density,
    row_log_density,
    synthesized,
)
from pluri.factors.low_rank_gaussian import Patterns


def mixture(seed, sizes=(1,), K=2, D=4):
    """Clusters of several draws."""
    rng = np.random.default_rng(seed)
    C = sum(sizes)
    return JointMixture(
        np.repeat(np.arange(len(sizes)), sizes), np.concatenate([rng.dirichlet(np.ones(size)) for size in sizes]),
        rng.normal(size=(C, K)), rng.uniform(0.5, 2.0, size=(C, K)), rng.normal(size=(C, D)),
        rng.normal(size=(C, D, K)), rng.uniform(0.1, 0.5, size=C),
    )  # fmt: skip


def part(found, draw):
    """The mixture of one draw alone."""
    mine = found.draws == draw
    return JointMixture(np.zeros(mine.sum(), dtype=np.int64), *(field[mine] for field in found[1:]))


def test_one_cluster_embeds_by_the_conditional_gaussian():
    m = mixture(0)
    rows = np.random.default_rng(1).normal(size=(5, 4))
    A, S = m.loadings[0], np.diag(m.variances[0])
    marginal = A @ S @ A.T + np.eye(4) * m.noise_variances[0]
    gain = S @ A.T @ np.linalg.inv(marginal)
    expected = m.centers[0] + (rows - m.means[0]) @ gain.T
    np.testing.assert_allclose(embedded(m, Patterns.of(rows)), expected, rtol=1e-12, atol=1e-12)
    found = embedded_distribution(m, Patterns.of(rows))
    np.testing.assert_allclose(found.covariances[0], S - gain @ A @ S, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.covariance(), np.tile(S - gain @ A @ S, (5, 1, 1)), rtol=1e-12, atol=1e-12)
    density = stats.multivariate_normal.logpdf(rows, m.means[0], marginal)
    np.testing.assert_allclose(row_log_density(m, Patterns.of(rows)), density, rtol=1e-12)


def test_missing_values_are_integrated_out():
    m = mixture(2, (3,))
    rows = np.random.default_rng(3).normal(size=(4, 4))
    rows[1, 0] = rows[2, [1, 3]] = np.nan
    found = embedded_distribution(m, Patterns.of(rows)).mean()
    for row, value in zip(rows, found):
        seen = ~np.isnan(row)
        smaller = m._replace(means=m.means[:, seen], loadings=m.loadings[:, seen])
        np.testing.assert_allclose(value, embedded(smaller, Patterns.of(row[None, seen]))[0], rtol=1e-10)


def test_the_mean_of_the_coordinates_is_their_integral():
    """One coordinate, two clusters: by quadrature of the joint density."""
    m = mixture(4, (2,), K=1, D=2)
    row = np.array([0.3, -0.4])

    def joint(x):
        total = 0.0
        for c in range(2):
            clean = m.means[c] + m.loadings[c] @ (np.array([x]) - m.centers[c])
            density = stats.norm.pdf(x, m.centers[c, 0], m.variances[c, 0] ** 0.5)
            total += m.weights[c] * density * stats.norm.pdf(row, clean, m.noise_variances[c] ** 0.5).prod()
        return total

    mass = integrate.quad(joint, -10, 10, epsabs=1e-14)[0]
    mean = integrate.quad(lambda x: x * joint(x), -10, 10, epsabs=1e-14)[0] / mass
    square = integrate.quad(lambda x: x * x * joint(x), -10, 10, epsabs=1e-14)[0] / mass
    found = embedded_distribution(m, Patterns.of(row[None]))
    assert found.mean()[0, 0] == pytest.approx(mean, rel=1e-7)
    assert found.covariance()[0, 0, 0] == pytest.approx(square - mean**2, rel=1e-6)
    assert row_log_density(m, Patterns.of(row[None]))[0] == pytest.approx(np.log(mass), rel=1e-8)


def test_rows_are_made_by_the_regressions_in_proportion_to_the_density_of_the_coordinates():
    m = mixture(5, (3,))
    x = np.random.default_rng(6).normal(size=(4, 2))
    density = np.stack(
        [w * stats.norm.pdf(x, c, v**0.5).prod(axis=1) for w, c, v in zip(*m[1:4])], axis=1
    )  # fmt: skip
    share = density / density.sum(axis=1, keepdims=True)
    clean = m.means + np.einsum("cdk,nck->ncd", m.loadings, x[:, None] - m.centers)
    np.testing.assert_allclose(synthesized(m, x), np.einsum("nc,ncd->nd", share, clean), rtol=1e-12)
    np.testing.assert_allclose(place_log_density(m, x), np.log(density.sum(axis=1)), rtol=1e-12)


def test_predictions_of_draws_are_averaged():
    m = mixture(7, (2, 3, 1))
    rng = np.random.default_rng(8)
    rows, x = Patterns.of(rng.normal(size=(5, 4))), rng.normal(size=(5, 2))
    parts = [part(m, draw) for draw in range(3)]
    np.testing.assert_allclose(embedded(m, rows), np.mean([embedded(p, rows) for p in parts], axis=0), rtol=1e-10)
    np.testing.assert_allclose(synthesized(m, x), np.mean([synthesized(p, x) for p in parts], axis=0), rtol=1e-10)
    for density, at in ((row_log_density, rows), (place_log_density, x)):
        np.testing.assert_allclose(density(m, at), np.log(np.mean([np.exp(density(p, at)) for p in parts], axis=0)))
    distribution = embedded_distribution(m, rows)
    np.testing.assert_allclose(distribution.weights.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(distribution.mean(), embedded(m, rows), rtol=1e-10)


def test_far_from_all_clusters_predictions_stay_finite():
    m = mixture(9, (3, 2))
    far = np.full((2, 4), 1e6)
    assert np.isfinite(embedded(m, Patterns.of(far))).all()
    assert np.isfinite(synthesized(m, far[:, :2])).all()


def test_drawn_rows_have_the_moments_of_the_mixture():
    """20000 draws; a bound of 6 standard errors of means and of second moments (of at most 4 deviations each)."""
    m = mixture(10, (2, 2))
    rows, x = drawn(m, 20000, np.random.default_rng(11))
    weights = m.weights / 2
    mean = weights @ m.centers
    deviation = np.sqrt(weights @ (m.variances + m.centers**2) - mean**2)
    np.testing.assert_allclose(x.mean(axis=0), mean, atol=(6 * deviation / np.sqrt(20000)).max())
    np.testing.assert_allclose(rows.mean(axis=0), weights @ m.means, atol=6 * rows.std() / np.sqrt(20000))
    # Rows and coordinates belong together: the regression of one on the other is that of the closed form.
    error = rows - synthesized(m, x)
    assert abs((error * x[:, :1]).mean(axis=0)).max() < 6 * 4 * rows.std() * x.std() / np.sqrt(20000)
