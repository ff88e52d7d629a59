"""Observation models of the infinite hidden Markov model: densities, missing values, and means under posteriors."""

import numpy as np
import pytest
from scipy.stats import invwishart, matrix_normal, multivariate_normal, multivariate_t

from pluri.processes import (
    BetaBernoulli,
    DirichletMultinomial,
    GammaPoisson,
    MatrixNormalInverseWishart,
    NormalGamma,
    NormalInverseWishart,
)
from pluri.processes.conjugate_clusters.parameters import Parameters
from pluri.sequences.infinite.families import FAMILIES, learn_model
from pluri.sequences.infinite.parts import gaussian_log_density

OFFSETS = np.array([0, 7, 12])


def regression(d=2, order=1):
    rng = np.random.default_rng(5)
    p = 1 + order * d
    root = rng.normal(size=(d, d + 2))
    return MatrixNormalInverseWishart(rng.normal(size=(d, p)), np.diag(rng.uniform(0.5, 2, p)), d + 1.5, root @ root.T)


def data(family, n=12, d=2, seed=0):
    rng = np.random.default_rng(seed)
    if family == "poisson":
        return rng.poisson(3.0, size=(n, d)).astype(float)
    if family in ("bernoulli", "categorical"):
        return rng.integers(0, 2 if family == "bernoulli" else 3, size=(n, d)).astype(float)
    return rng.normal([1.0, -200.0][:d], [0.1, 5.0][:d], size=(n, d))


def model_of(family, X, **options):
    return learn_model(family, None, X, OFFSETS, n_symbols=(3, 3), **options)


def test_marginal_density_of_a_regression_is_the_product_of_its_predictive_densities():
    likelihood, rng = regression(), np.random.default_rng(0)
    X = rng.normal(size=(6, likelihood.n_features))
    seen, total = likelihood.empty(), 0.0
    for row in X:
        total += float(likelihood.log_predictive(seen, row))
        seen = likelihood.add(seen, row)
    assert np.isclose(total, likelihood.log_marginal(seen))
    np.testing.assert_allclose(likelihood.log_predictive_table(seen[None], X)[:, 0],
                               [likelihood.log_predictive(seen, row) for row in X])  # fmt: skip


def test_predictive_density_of_a_regression_is_the_student_t_of_the_textbook():
    likelihood, rng = regression(), np.random.default_rng(1)
    p, d = likelihood.n_predictors, likelihood.n_targets
    X = rng.normal(size=(5, p + d))
    P, Y = X[:, :p], X[:, p:]
    precision = likelihood.precision + P.T @ P
    mean = (likelihood.mean @ likelihood.precision + Y.T @ P) @ np.linalg.inv(precision)
    scatter = (
        likelihood.scale + Y.T @ Y + likelihood.mean @ likelihood.precision @ likelihood.mean.T
        - mean @ precision @ mean.T
    )  # fmt: skip
    new = rng.normal(size=p + d)
    df = likelihood.df + 5 - d + 1
    shape = scatter * (1 + new[:p] @ np.linalg.inv(precision) @ new[:p]) / df
    expected = multivariate_t(mean @ new[:p], shape, df=df).logpdf(new[p:])
    sums = likelihood.statistics(X).sum(axis=0)
    assert np.isclose(likelihood.log_predictive(sums, new), expected)
    np.testing.assert_allclose(likelihood.posterior_mean(sums), mean)


def test_a_regression_on_one_is_the_normal_inverse_wishart():
    scale = np.array([[2.0, 0.3], [0.3, 1.0]])
    mean = np.array([1.0, -2.0])
    gaussian = NormalInverseWishart(mean, 0.7, 4.0, scale)
    likelihood = MatrixNormalInverseWishart(mean[:, None], [[0.7]], 4.0, scale)
    X = np.random.default_rng(2).normal(size=(5, 2))
    rows = np.column_stack([np.ones(5), X])
    sums, own = gaussian.statistics(X).sum(axis=0), likelihood.statistics(rows).sum(axis=0)
    assert np.isclose(gaussian.log_marginal(sums), likelihood.log_marginal(own))


def test_drawn_regressions_have_the_posterior_means_and_covariances():
    """Means of 40,000 draws, and of their squares, within 5 of their standard errors: false alarms below 1e-4."""
    likelihood, rng = regression(), np.random.default_rng(3)
    sums = likelihood.statistics(rng.normal(size=(30, likelihood.n_features))).sum(axis=0)
    n = 40_000
    coefficients, root = likelihood.draw_parameters(rng, np.broadcast_to(sums, (n, len(sums))))
    df, factor, _, _ = likelihood._posterior(sums)
    p = likelihood.n_predictors
    scatter = factor[p:, p:] @ factor[p:, p:].T
    noise = root @ np.swapaxes(root, 1, 2)
    expected = invwishart(df, scatter).mean()
    assert (np.abs(noise.mean(axis=0) - expected) < 5 * noise.std(axis=0) / np.sqrt(n)).all()
    mean = likelihood.posterior_mean(sums)
    assert (np.abs(coefficients.mean(axis=0) - mean) < 5 * coefficients.std(axis=0) / np.sqrt(n)).all()
    columns = np.linalg.inv(factor[:p, :p] @ factor[:p, :p].T)
    law = matrix_normal(mean, expected, columns)
    away = (coefficients - mean) ** 2
    spread = np.outer(np.diag(law.rowcov), np.diag(law.colcov))
    assert (np.abs(away.mean(axis=0) - spread) < 5 * away.std(axis=0) / np.sqrt(n)).all()


@pytest.mark.parametrize("family", [*FAMILIES])
def test_expected_density_less_divergence_is_the_marginal_density(family):
    X = data(family)
    observations = model_of(family, X).prepare(X, OFFSETS)
    weights = np.ones((len(X), 1))
    sums = observations.weighted_sums(weights)
    expected = observations.expected_log_density(sums).sum() - observations.divergence(sums).sum()
    assert np.isclose(expected, observations.log_marginal(sums))


@pytest.mark.parametrize("family", [*FAMILIES])
def test_sums_by_labels_are_those_of_unit_weights(family):
    X = data(family)
    X[3] = np.nan
    observations = model_of(family, X).prepare(X, OFFSETS)
    labels = np.random.default_rng(0).integers(0, 2, size=len(X)) * 2  # state 1 is empty
    for a, b in zip(observations.sums(labels, 3), observations.weighted_sums(np.eye(3)[labels])):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("family", [*FAMILIES])
def test_density_given_parameters_is_what_the_predictive_density_is_the_mean_of(family):
    """Means of 20,000 draws within 5 of their standard errors: false alarms below 1e-4."""
    X = data(family)
    model = model_of(family, X)
    observations = model.prepare(X, OFFSETS)
    sums = observations.sums(np.zeros(len(X), dtype=np.int64), 1)
    n = 20_000
    many = observations.draw(np.random.default_rng(1), [np.repeat(own, n, axis=0) for own in sums])
    density = np.exp(observations.log_density(many))
    predictive = sum(part.log_predictive(own, part.sizes(np.zeros(len(X), dtype=np.int64), 1))
                     for part, own in zip(observations.parts, sums))[:, 0]  # fmt: skip
    assert (np.abs(density.mean(axis=1) - np.exp(predictive)) <= 5 * density.std(axis=1) / np.sqrt(n) + 1e-12).all()


@pytest.mark.parametrize("family", ["diag", "poisson", "bernoulli", "categorical"])
def test_missing_cells_leave_the_densities_of_the_others(family):
    X = data(family)
    whole = learn_model(family, None, X, OFFSETS, n_symbols=(3, 3))
    X[2, 0], X[5, 1], X[8] = np.nan, np.nan, np.nan
    labels = np.arange(len(X)) % 2
    observations = whole.prepare(X, OFFSETS)
    total = observations.log_marginal(observations.sums(labels, 2))
    by_hand = 0.0
    for f, likelihood in enumerate(whole.by_column().likelihoods):
        for k in range(2):
            column = X[(labels == k) & ~np.isnan(X[:, f]), f]
            rows = np.eye(3)[column.astype(int)] if family == "categorical" else column[:, None]
            by_hand += float(likelihood.log_marginal(likelihood.statistics(rows).sum(axis=0)))
    assert np.isclose(total, by_hand)
    parameters = observations.draw(np.random.default_rng(0), observations.sums(labels, 2))
    assert (observations.log_density(parameters)[8] == 0).all()


def test_rows_without_their_past_are_conditioned_on():
    X = data("gaussian")
    X[3] = np.nan
    observations = model_of("autoregressive", X, order=2).prepare(X, OFFSETS)
    # Two at the beginning of each sequence, the missing one, and two after it.
    assert sorted(set(range(12)) - set(observations.parts[0].where.tolist())) == [0, 1, 3, 4, 5, 7, 8]
    row = observations.parts[0].rows[list(observations.parts[0].where).index(10)]
    np.testing.assert_array_equal(row, np.concatenate([[1.0], X[9], X[8], X[10]]))


def test_counts_of_tokens_that_are_missing_in_part_are_refused_by_name():
    X = data("poisson")
    X[2, 0] = np.nan
    with pytest.raises(ValueError, match="family='multinomial', got NaN in a part of a row"):
        learn_model(DirichletMultinomial(2), None, X, OFFSETS)


@pytest.mark.parametrize(
    "likelihood",
    [NormalInverseWishart([0.0, 0.0], 1.0, 4.0, np.eye(2)), NormalGamma(2), GammaPoisson(2), BetaBernoulli(2),
     DirichletMultinomial(2), regression(2, 3)],
    ids=lambda likelihood: type(likelihood).__name__,
)  # fmt: skip
def test_a_likelihood_is_a_family(likelihood):
    model = learn_model(likelihood, None, data("bernoulli"), OFFSETS)
    assert model.likelihoods == (likelihood,)
    assert model.n_features == 2
    assert model.order == (3 if isinstance(likelihood, MatrixNormalInverseWishart) else 0)


@pytest.mark.parametrize(
    ("family", "prior", "message"),
    [
        ("normal", None, "family must be one of 'gaussian', 'diag'"),
        (3, None, "family must be one of"),
        ("gaussian", {"rate": 1.0}, "component_prior of 'gaussian' may have mean, strength, df, scale, got 'rate'"),
        (NormalGamma(2), {"rate": 1.0}, "component_prior must be None"),
        (NormalGamma(3), None, "family is for 3 columns, but X has 2"),
        (regression(3, 1), None, "family must regress 2 targets"),
    ],
)
def test_bad_families_are_named(family, prior, message):
    with pytest.raises(ValueError, match=message):
        learn_model(family, prior, data("gaussian"), OFFSETS)


def test_a_sequence_too_short_to_regress_is_named():
    with pytest.raises(ValueError, match="more than order=7 rows"):
        model_of("autoregressive", data("gaussian"), order=7)


def test_gaussian_density_by_the_compiled_loop_is_that_of_the_textbook():
    rng = np.random.default_rng(0)
    means, root, rows = rng.normal(size=(3, 5)), rng.normal(size=(3, 5, 5)), rng.normal(size=(7, 5))
    expected = [multivariate_normal(means[k], root[k] @ root[k].T).logpdf(rows) for k in range(3)]
    np.testing.assert_allclose(gaussian_log_density(Parameters(means, root), rows), np.transpose(expected))
