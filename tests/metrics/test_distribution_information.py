"""Closed forms of Gaussian and conjugate families, against scipy and against averages over samples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pluri.metrics import (
    bernoulli_kl,
    beta_entropy,
    beta_kl,
    categorical_kl,
    dirichlet_entropy,
    dirichlet_kl,
    gamma_entropy,
    gamma_kl,
    gaussian_entropy,
    gaussian_kl,
    gaussian_mutual_information,
    kl_divergence,
    wishart_entropy,
    wishart_kl,
)

S1 = np.array([[1.0, 0.3], [0.3, 0.5]])
S2 = np.array([[0.6, -0.1], [-0.1, 2.0]])

#: Closed form of KL(p || q), the law p and the law q.
PAIRS = {
    "gaussian": (
        gaussian_kl([1.0, -1.0], S1, [0.0, 0.5], S2),
        stats.multivariate_normal([1.0, -1.0], S1),
        stats.multivariate_normal([0.0, 0.5], S2),
    ),
    "beta": (beta_kl(2.0, 3.5, 1.2, 0.8), stats.beta(2.0, 3.5), stats.beta(1.2, 0.8)),
    "gamma": (gamma_kl(2.0, 3.0, 1.5, 0.7), stats.gamma(2.0, scale=1 / 3.0), stats.gamma(1.5, scale=1 / 0.7)),
    "dirichlet": (
        dirichlet_kl([2.0, 1.0, 3.0], [1.0, 1.5, 0.8]),
        stats.dirichlet([2.0, 1.0, 3.0]),
        stats.dirichlet([1.0, 1.5, 0.8]),
    ),
    "wishart": (wishart_kl(5.0, S1, 3.5, S2), stats.wishart(5.0, S1), stats.wishart(3.5, S2)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_a_divergence_is_the_mean_log_ratio_over_samples(name):
    # 10000 samples, 5.5 standard errors: false alarm 4e-8 each.
    divergence, p, q = PAIRS[name]
    x = p.rvs(10_000, random_state=np.random.default_rng(0))
    x = x.T if name in ("dirichlet",) else np.moveaxis(x, 0, -1) if name == "wishart" else x
    ratio = p.logpdf(x) - q.logpdf(x)
    assert abs(ratio.mean() - divergence) < 5.5 * ratio.std() / np.sqrt(len(ratio))


def test_entropies_equal_those_of_scipy():
    assert gaussian_entropy(S1) == pytest.approx(stats.multivariate_normal(cov=S1).entropy())
    assert beta_entropy(2.0, 3.5) == pytest.approx(stats.beta(2.0, 3.5).entropy())
    assert gamma_entropy(2.0, 3.0) == pytest.approx(stats.gamma(2.0, scale=1 / 3).entropy())
    assert dirichlet_entropy([2.0, 1.0, 3.0]) == pytest.approx(stats.dirichlet([2.0, 1.0, 3.0]).entropy())
    assert wishart_entropy(5.0, S1) == pytest.approx(stats.wishart(5.0, S1).entropy())


def test_families_contain_one_another():
    assert dirichlet_kl([2.0, 3.5], [1.2, 0.8]) == pytest.approx(beta_kl(2.0, 3.5, 1.2, 0.8))
    assert dirichlet_entropy([2.0, 3.5]) == pytest.approx(beta_entropy(2.0, 3.5))
    # A Wishart of size one is a gamma with shape df / 2 and rate 1 / (2 scale).
    assert wishart_kl(3.0, 0.5, 4.0, 2.0) == pytest.approx(gamma_kl(1.5, 1.0, 2.0, 0.25))
    assert bernoulli_kl(0.3, 0.6) == pytest.approx(kl_divergence([0.3, 0.7], [0.6, 0.4]))
    assert bernoulli_kl(0.0, 0.5) == pytest.approx(np.log(2))
    assert bernoulli_kl(0.5, 0.0) == np.inf
    assert categorical_kl([0.3, 0.7], [0.6, 0.4]) == pytest.approx(bernoulli_kl(0.3, 0.6))


def test_a_distribution_does_not_diverge_from_itself():
    assert gaussian_kl([1.0, 2.0], S1, [1.0, 2.0], S1) == pytest.approx(0, abs=1e-14)
    assert beta_kl(2.0, 3.0, 2.0, 3.0) == gamma_kl(2.0, 3.0, 2.0, 3.0) == 0
    assert dirichlet_kl([1.0, 2.0], [1.0, 2.0]) == 0
    assert wishart_kl(4.0, S1, 4.0, S1) == pytest.approx(0, abs=1e-14)


def test_parameters_broadcast():
    many = beta_kl(np.array([2.0, 3.0]), 1.0, 1.0, 1.0)
    assert many.shape == (2,)
    assert many[1] == pytest.approx(beta_kl(3.0, 1.0, 1.0, 1.0))
    assert dirichlet_kl(np.ones((4, 3)), np.full(3, 2.0)).shape == (4,)


def test_gaussian_mutual_information_has_its_known_values():
    for rho in (0.0, 0.5, -0.9):
        cov = np.array([[1.0, rho], [rho, 1.0]])
        assert gaussian_mutual_information(cov) == pytest.approx(-0.5 * np.log(1 - rho**2), abs=1e-14)
    assert gaussian_mutual_information([[1, 0.5], [0.5, 1]]) == pytest.approx(0.1438410362)
    assert gaussian_mutual_information([[1, 0.9], [0.9, 1]]) == pytest.approx(0.8303656034)
    basis = np.random.default_rng(0).normal(size=(5, 5))
    cov = basis @ basis.T
    parts = gaussian_entropy(cov[:2, :2]) + gaussian_entropy(cov[2:, 2:]) - gaussian_entropy(cov)
    assert gaussian_mutual_information(cov, 2) == pytest.approx(parts)
    # It is also the divergence of the joint law from the product of its margins.
    product = cov.copy()
    product[:2, 2:] = product[2:, :2] = 0
    assert gaussian_kl(np.zeros(5), cov, np.zeros(5), product) == pytest.approx(parts)


def test_no_law_with_the_same_variance_has_more_entropy_than_the_gaussian():
    for law in (stats.laplace(), stats.uniform(), stats.logistic(), stats.gamma(2.0)):
        assert law.entropy() < gaussian_entropy(law.var())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gaussian_entropy([[1.0, 2.0], [2.0, 1.0]]), "cov must be positive definite"),
        (lambda: gaussian_entropy([[1.0, 2.0]]), "cov must be a number or a square matrix"),
        (lambda: gaussian_entropy([[1.0, 2.0], [0.0, 1.0]]), "cov must be finite and symmetric"),
        (lambda: gaussian_kl([0.0], S1, [0.0, 0.0], S2), "mean_p must hold 2 finite numbers"),
        (lambda: gaussian_kl([0.0], 1.0, [0.0], S2), "cov_q must have the shape of cov_p"),
        (lambda: gaussian_mutual_information(S1, 2), "n_first must be an integer from 1 to 1"),
        (lambda: beta_entropy(0.0, 1.0), "a must be positive and finite"),
        (lambda: gamma_kl(1.0, np.inf, 1.0, 1.0), "rate_p must be positive and finite"),
        (lambda: dirichlet_kl([1.0], [1.0, 2.0]), "alpha_p and alpha_q must have equal last axes"),
        (lambda: wishart_entropy(1.0, S1), "df must be a number above 1"),
        (lambda: wishart_kl(3.0, S1, 3.0, 1.0), "scale_q must have the shape of scale_p"),
        (lambda: bernoulli_kl(1.2, 0.5), "p must lie between 0 and 1"),
    ],
)
def test_wrong_parameters_get_one_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()
