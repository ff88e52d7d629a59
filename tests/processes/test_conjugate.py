"""Conjugate likelihoods: marginals are products of predictives, which are the laws of scipy; known evidences."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from pluri.processes import (
    BetaBernoulli,
    ChineseRestaurantProcess,
    DirichletMultinomial,
    GammaPoisson,
    NormalGamma,
    NormalInverseWishart,
)

S0 = np.array([[2.0, 0.5], [0.5, 1.0]])
LIKELIHOODS = {
    "dirichlet-multinomial": DirichletMultinomial(3, (0.5, 1.0, 2.0)),
    "beta-bernoulli": BetaBernoulli(4, 0.7, (1.0, 2.0, 0.5, 1.0)),
    "gamma-poisson": GammaPoisson(2, 1.5, (0.5, 2.0)),
    "normal-inverse-wishart": NormalInverseWishart([1.0, -1.0], 0.3, 4.5, S0),
    "normal-gamma": NormalGamma(3, (1.0, 0.0, -1.0), 0.5, 2.0, 0.7),
}


def draw(name, n=6, seed=0):
    likelihood, rng = LIKELIHOODS[name], np.random.default_rng(seed)
    if name == "dirichlet-multinomial":
        return rng.multinomial(4, [0.2, 0.5, 0.3], size=n).astype(float)
    return likelihood.sample_data(rng, likelihood.sample_posterior(rng, likelihood.empty()), n)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_the_marginal_is_the_product_of_predictives_in_any_order(name):
    likelihood, X = LIKELIHOODS[name], draw(name)
    for order in (np.arange(6), np.arange(6)[::-1]):
        statistics, total = likelihood.empty(), 0.0
        for x in X[order]:
            total += float(likelihood.log_predictive(statistics, x))
            statistics = likelihood.add(statistics, x)
        assert total == pytest.approx(float(likelihood.log_marginal(statistics)), abs=1e-11)
        assert statistics == pytest.approx(likelihood.statistics(X).sum(axis=0))
    assert likelihood.remove(statistics, X[0]) == pytest.approx(likelihood.statistics(X[1:]).sum(axis=0), abs=1e-12)
    assert float(likelihood.log_marginal(likelihood.empty())) == pytest.approx(0, abs=1e-13)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_several_clusters_are_treated_as_each_by_itself(name):
    likelihood, X = LIKELIHOODS[name], draw(name)
    many = likelihood.empty(3)
    many[0] = likelihood.statistics(X[:2]).sum(axis=0)
    many[1] = likelihood.statistics(X[2:]).sum(axis=0)
    for method in (lambda s: likelihood.log_marginal(s), lambda s: likelihood.log_predictive(s, X[0])):
        assert method(many) == pytest.approx([float(method(row)) for row in many], abs=1e-12)


def test_predictives_are_known_laws():
    X = draw("normal-inverse-wishart")
    gaussian = LIKELIHOODS["normal-inverse-wishart"]
    statistics, k, v = gaussian.statistics(X).sum(axis=0), 0.3 + 6, 4.5 + 6
    m = (0.3 * gaussian.mean + X.sum(axis=0)) / k
    S = S0 + X.T @ X + 0.3 * np.outer(gaussian.mean, gaussian.mean) - k * np.outer(m, m)
    student = stats.multivariate_t(m, S * (k + 1) / (k * (v - 1)), df=v - 1)
    assert float(gaussian.log_predictive(statistics, X[0])) == pytest.approx(student.logpdf(X[0]), abs=1e-10)
    poisson = GammaPoisson(1, 2.0, 3.0)
    assert float(poisson.log_predictive(poisson.empty(), np.array([4.0]))) == pytest.approx(
        stats.nbinom(2.0, 3 / 4).logpmf(4)
    )
    normal = NormalGamma(1, 0.5, 2.0, 3.0, 4.0)
    student = stats.t(6.0, 0.5, np.sqrt(4 * 3 / (3 * 2)))
    assert float(normal.log_predictive(normal.empty(), np.array([1.7]))) == pytest.approx(student.logpdf(1.7))
    one = NormalInverseWishart([0.5], 2.0, 6.0, [[8.0]])
    assert float(one.log_predictive(one.empty(), np.array([1.7]))) == pytest.approx(student.logpdf(1.7))


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_parameters_drawn_from_the_posterior_predict_as_the_predictive_does(name):
    # The mean likelihood of a row over 4000 draws of the parameters, 5.5 standard errors.
    likelihood, X, rng = LIKELIHOODS[name], draw(name), np.random.default_rng(1)
    statistics = likelihood.statistics(X).sum(axis=0)
    densities = {
        "dirichlet-multinomial": lambda p, x: np.exp((x * np.log(p)).sum()),
        "beta-bernoulli": lambda p, x: np.prod(np.where(x > 0, p, 1 - p)),
        "gamma-poisson": lambda p, x: stats.poisson.pmf(x, p).prod(),
        "normal-inverse-wishart": lambda p, x: np.exp(
            -0.5 * ((x - p[0]) @ np.linalg.solve(p[1], x - p[0]) + np.log(np.linalg.det(2 * np.pi * p[1])))
        ),
        "normal-gamma": lambda p, x: stats.norm.pdf(x, p[0], np.sqrt(p[1])).prod(),
    }
    values = np.array([densities[name](likelihood.sample_posterior(rng, statistics), X[0]) for _ in range(4000)])
    expected = np.exp(float(likelihood.log_predictive(statistics, X[0])))
    assert abs(values.mean() - expected) < 5.5 * values.std() / np.sqrt(len(values))


def partitions(n):
    if n == 0:
        yield ()
        return
    for head in partitions(n - 1):
        for label in range(max(head, default=-1) + 2):
            yield (*head, label)


def posterior_of_partitions(likelihood, X, alpha):
    found, logs = list(partitions(len(X))), []
    for labels in found:
        statistics = likelihood.empty(max(labels) + 1)
        np.add.at(statistics, np.array(labels), likelihood.statistics(X))
        logs.append(ChineseRestaurantProcess(alpha).logpmf(labels) + likelihood.log_marginal(statistics).sum())
    evidence = logsumexp(logs)
    return found, np.exp(np.array(logs) - evidence), evidence


def test_five_points_have_their_known_evidence_and_partitions():
    Y = np.array([[0, 0], [0.2, -0.1], [3, 3], [3.1, 2.8], [-3, 1]])
    found, p, evidence = posterior_of_partitions(NormalInverseWishart([0, 0], 0.1, 4, np.eye(2)), Y, 1.0)
    assert len(found) == 52
    assert evidence == pytest.approx(-20.8296204, abs=1e-7)
    assert p[found.index((0, 0, 1, 1, 2))] == pytest.approx(0.7443667, abs=1e-7)
    assert p[found.index((0, 1, 2, 2, 3))] == pytest.approx(0.1035242, abs=1e-7)
    assert p[found.index((0, 0, 1, 1, 0))] == pytest.approx(0.0620359, abs=1e-7)
    sizes = np.array([max(labels) + 1 for labels in found])
    assert np.bincount(sizes, p)[1:] == pytest.approx([0.000136, 0.087419, 0.788527, 0.121609, 0.002310], abs=1e-6)
    assert p @ sizes == pytest.approx(3.0385376, abs=1e-7)
    together = [sum(p[i] for i, labels in enumerate(found) if labels[a] == labels[b]) for a, b in ((0, 1), (2, 3))]
    assert together == pytest.approx([0.8500, 0.9762], abs=5e-5)


def test_five_documents_have_their_known_evidence_and_partitions():
    counts = np.array([[4, 1, 0], [3, 2, 0], [0, 1, 4], [0, 0, 5], [2, 2, 2]], dtype=float)
    found, p, evidence = posterior_of_partitions(DirichletMultinomial(3, 0.5), counts, 1.0)
    assert evidence == pytest.approx(-26.4903394, abs=1e-7)
    known = {(0, 0, 1, 1, 0): 0.205949, (0, 0, 1, 1, 2): 0.196620, (0, 0, 1, 1, 1): 0.076726, (0, 0, 1, 2, 0): 0.075458}
    for labels, expected in known.items():
        assert p[found.index(labels)] == pytest.approx(expected, abs=1e-6)
    assert p @ np.array([max(labels) + 1 for labels in found]) == pytest.approx(2.9298994, abs=1e-7)
    turned = posterior_of_partitions(DirichletMultinomial(3, 0.5), counts[:, [2, 0, 1]], 1.0)[2]
    assert turned == pytest.approx(evidence, abs=1e-11)


def test_binary_rows_sum_to_one():
    likelihood = LIKELIHOODS["beta-bernoulli"]
    rows = np.array(list(product([0, 1], repeat=4)), dtype=float)
    assert np.exp([float(likelihood.log_predictive(likelihood.empty(), x)) for x in rows]).sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: NormalInverseWishart([0, 0], 1, 1, np.eye(2)), "df must be a number above 1"),
        (lambda: NormalInverseWishart([0, 0], 1, 4, -np.eye(2)), "scale must be positive definite"),
        (lambda: NormalInverseWishart([0, 0], 1, 4, np.eye(3)), "scale must be a symmetric matrix"),
        (lambda: NormalInverseWishart([0, np.nan], 1, 4, np.eye(2)), "mean must be one axis of finite"),
        (lambda: NormalInverseWishart([0, 0], 0, 4, np.eye(2)), "strength must be a positive number"),
        (lambda: NormalGamma(2, rate=-1), "rate must be positive and finite"),
        (lambda: NormalGamma(2, mean=[1.0]), "mean must be a finite number or 2"),
        (lambda: DirichletMultinomial(2, 0.0), "concentration must be positive"),
        (lambda: DirichletMultinomial(2, (1.0, 2.0, 3.0)), "concentration must be a number or 2"),
        (lambda: BetaBernoulli(1).check([[2]]), "X must hold zeros and ones"),
        (lambda: GammaPoisson(1).check([[-1]]), "X must hold counts"),
        (lambda: GammaPoisson(2).check([[1]]), "X must have shape"),
        (lambda: NormalGamma(1).check([[np.inf]]), "X must be finite"),
    ],
)
def test_wrong_input_gets_one_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()
