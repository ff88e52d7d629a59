"""Models whose evidence is known, by a closed form or by quadrature; part of `evidence_error_bars.py` and of the tests.

Densities take points (n, d) and give (n,); priors are normalised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import expit, gammaln, log_expit, logsumexp
from scipy.stats import t as student


class Model(NamedTuple):
    """A prior, a likelihood, and the logarithm of its evidence."""

    name: str
    dim: int
    log_prior: Callable
    log_likelihood: Callable
    sample_prior: Callable
    log_z: float

    @property
    def parts(self):
        """As the samplers take them."""
        return self.log_prior, self.log_likelihood, self.sample_prior

    def log_density(self, points):
        """Prior times likelihood."""
        return self.log_prior(points) + self.log_likelihood(points)


def normal_log_prior(sd):
    return lambda x: -0.5 * np.square(x / sd).sum(axis=1) - x.shape[1] * np.log(sd * np.sqrt(2 * np.pi))


def normal_sampler(sd, dim):
    return lambda rng, n: rng.normal(0, sd, (n, dim))


def linear_regression():
    """Five coefficients N(0, 4), 30 observations of noise sd 1/2."""
    rng = np.random.default_rng(0)
    n, dim = 30, 5
    design = rng.normal(size=(n, dim))
    y = design @ rng.normal(size=dim) + 0.5 * rng.normal(size=n)
    covariance = 0.25 * np.eye(n) + 4.0 * design @ design.T
    log_z = -0.5 * (n * np.log(2 * np.pi) + np.linalg.slogdet(covariance)[1] + y @ np.linalg.solve(covariance, y))
    return Model(
        "linear regression, 5-D", dim, normal_log_prior(2.0),
        lambda b: -2 * np.square(y - b @ design.T).sum(axis=1) - 0.5 * n * np.log(0.5 * np.pi),
        normal_sampler(2.0, dim), float(log_z),
    )  # fmt: skip


def two_modes():
    """Prior N(0, I) in six dimensions; the likelihood has modes of sd 0.3 at 1 and of sd 0.2 at -1."""
    dim = 6
    modes = ((1 / 3, 1.0, 0.3), (2 / 3, -1.0, 0.2))

    def normal(x, place, variance):
        return -0.5 * np.square(x - place).sum(axis=1) / variance - 0.5 * dim * np.log(2 * np.pi * variance)

    def log_likelihood(x):
        return np.logaddexp(*(np.log(share) + normal(x, place, sd**2) for share, place, sd in modes))

    zero = np.zeros((1, dim))
    log_z = np.logaddexp(*(np.log(share) + normal(zero, place, 1 + sd**2) for share, place, sd in modes))
    return Model(
        "two modes, 6-D", dim, normal_log_prior(1.0), log_likelihood, normal_sampler(1.0, dim), float(log_z[0])
    )


def banana():
    """Four independent pairs: priors N(0, 4); 1 was measured with sd 1/4 where the model says b - a^2 / 2."""

    def pair(a, b):
        return -0.5 * np.square((1.0 - b + 0.5 * a**2) / 0.25) - np.log(0.25 * np.sqrt(2 * np.pi))

    grid = np.linspace(-16, 16, 3201)
    a, b = np.meshgrid(grid, grid, indexing="ij")
    logs = pair(a, b) - (a**2 + b**2) / 8 - np.log(8 * np.pi)
    log_z = 4 * (logsumexp(logs) + 2 * np.log(grid[1] - grid[0]))
    return Model(
        "banana, 8-D", 8, normal_log_prior(2.0), lambda x: pair(x[:, ::2], x[:, 1::2]).sum(axis=1),
        normal_sampler(2.0, 8), float(log_z),
    )  # fmt: skip


def normal_mean():
    """Twenty means N(0, 9), each measured once with sd 1/2."""
    dim = 20
    y = np.random.default_rng(3).normal(0, 3, dim)
    log_z = -0.5 * np.square(y).sum() / 9.25 - 0.5 * dim * np.log(2 * np.pi * 9.25)
    return Model(
        "normal mean, 20-D", dim, normal_log_prior(3.0),
        lambda x: -2 * np.square(y - x).sum(axis=1) - 0.5 * dim * np.log(0.5 * np.pi), normal_sampler(3.0, dim),
        float(log_z),
    )  # fmt: skip


def heavy_prior():
    """Four locations under Student's t with 3 degrees of freedom, measured with sd 1/2 far out in its tails."""
    y = np.array([8.0, -6.0, 0.5, 10.0])
    grid = np.linspace(-60, 60, 240_001)
    log_z = sum(
        logsumexp(student.logpdf(grid, 3) - 2 * np.square(one - grid)) + np.log(grid[1] - grid[0]) for one in y
    ) - 2 * np.log(0.5 * np.pi)
    constant = gammaln(2.0) - gammaln(1.5) - 0.5 * np.log(3 * np.pi)
    return Model(
        "heavy prior, 4-D", 4, lambda x: (constant - 2.0 * np.log1p(np.square(x) / 3)).sum(axis=1),
        lambda x: -2 * np.square(y - x).sum(axis=1) - 2 * np.log(0.5 * np.pi),
        lambda rng, n: rng.standard_t(3, (n, 4)), float(log_z),
    )  # fmt: skip


def poisson_gamma():
    """Logarithms of six rates under Gamma(2, 1/2), three counts of each."""
    counts = np.random.default_rng(5).poisson([[0.5], [2.0], [4.0], [8.0], [15.0], [30.0]], (6, 3))
    totals, shape, rate = counts.sum(axis=1), 2.0, 0.5
    constant = shape * np.log(rate) - gammaln(shape)
    factorials = gammaln(counts + 1.0).sum()
    log_z = (constant + gammaln(shape + totals) - (shape + totals) * np.log(rate + 3)).sum() - factorials
    return Model(
        "Poisson and gamma, 6-D", 6, lambda x: (constant + shape * x - rate * np.exp(x)).sum(axis=1),
        lambda x: x @ totals - 3 * np.exp(x).sum(axis=1) - factorials,
        lambda rng, n: np.log(rng.gamma(shape, 1 / rate, (n, 6))), float(log_z),
    )  # fmt: skip


def logistic_regression():
    """Three coefficients N(0, 25), 50 observations; the evidence on a grid."""
    rng = np.random.default_rng(7)
    design = np.column_stack([np.ones(50), rng.normal(size=(50, 2))])
    signs = np.where(rng.random(50) < expit(design @ [0.5, 1.5, -1.0]), 1.0, -1.0)[:, None] * design

    def log_likelihood(b):
        return log_expit(b @ signs.T).sum(axis=1)

    axes = [np.linspace(low, high, 81) for low, high in ((-4, 5), (-3, 8), (-7, 4))]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    prior = normal_log_prior(5.0)
    logs = np.concatenate([prior(part) + log_likelihood(part) for part in np.array_split(points, 40)])
    log_z = logsumexp(logs) + sum(np.log(axis[1] - axis[0]) for axis in axes)
    return Model("logistic regression, 3-D", 3, prior, log_likelihood, normal_sampler(5.0, 3), float(log_z))


def hierarchical():
    """Eight schools: mean N(0, 100), log scale N(1, 1), eight effects; two by quadrature, effects exactly."""
    y = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
    sd = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])

    def log_prior(x):
        mean, log_scale = x[:, :1], x[:, 1:2]
        effects = -0.5 * np.square((x[:, 2:] - mean) / np.exp(log_scale)) - log_scale - 0.5 * np.log(2 * np.pi)
        top = -(mean**2) / 200 - np.log(10) - 0.5 * (log_scale - 1) ** 2 - np.log(2 * np.pi)
        return effects.sum(axis=1) + top[:, 0]

    def log_likelihood(x):
        return (-0.5 * np.square((y - x[:, 2:]) / sd) - np.log(sd * np.sqrt(2 * np.pi))).sum(axis=1)

    def sample_prior(rng, n):
        mean, log_scale = rng.normal(0, 10, (n, 1)), rng.normal(1, 1, (n, 1))
        return np.hstack([mean, log_scale, mean + np.exp(log_scale) * rng.normal(size=(n, 8))])

    means, scales = np.meshgrid(np.linspace(-80, 80, 1601), np.linspace(-8, 10, 901), indexing="ij")
    logs = -(means**2) / 200 - np.log(10) - 0.5 * (scales - 1) ** 2 - np.log(2 * np.pi)
    for one, error in zip(y, sd):
        variance = error**2 + np.exp(2 * scales)
        logs += -0.5 * (one - means) ** 2 / variance - 0.5 * np.log(2 * np.pi * variance)
    log_z = logsumexp(logs) + np.log(0.1) + np.log(0.02)
    return Model("eight schools, 10-D", 10, log_prior, log_likelihood, sample_prior, float(log_z))


MODELS = (
    linear_regression, two_modes, banana, normal_mean, heavy_prior, poisson_gamma, logistic_regression, hierarchical,
)  # fmt: skip
