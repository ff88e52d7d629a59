"""Small switching systems, and what is exactly true of them by going through every path of regimes."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from pluri.dynamics.switching.parameters import SwitchingParameters


def random_parameters(k, d, m, rng, *, groups=1, noise="diag", zero=False):
    """A stable random system; with `zero` one transition is impossible."""
    spread = rng.standard_normal((k, d, 2 * d)) * 0.4
    error = rng.standard_normal((groups, m, 2 * m)) * 0.4
    noise_covariance = error @ np.swapaxes(error, 1, 2)
    if noise == "diag":
        noise_covariance = noise_covariance * np.eye(m)
    elif noise == "isotropic":
        noise_covariance = np.eye(m) * rng.uniform(0.2, 0.6, size=(groups, 1, 1))
    transition = rng.dirichlet(np.ones(k), size=k)
    if zero and k > 1:
        transition[0] = np.eye(k)[0] * 0.5 + np.eye(k)[-1] * 0.5
    first = rng.standard_normal((d, 2 * d)) * 0.6
    return SwitchingParameters(
        start=rng.dirichlet(np.ones(k)),
        transition=transition,
        dynamics=0.6 * rng.standard_normal((k, d, d)) / np.sqrt(d),
        dynamics_offset=rng.standard_normal((k, d)),
        dynamics_covariance=spread @ np.swapaxes(spread, 1, 2),
        emission=rng.standard_normal((groups, m, d)),
        emission_offset=rng.standard_normal((groups, m)),
        emission_covariance=noise_covariance,
        initial_mean=np.tile(rng.standard_normal(d), (k, 1)),
        initial_covariance=np.tile(first @ first.T, (k, 1, 1)),
        occupancy=np.full(k, np.nan),
        kept=np.empty((0, k)),
    )


def draw(parameters, n, rng):
    """A sequence of observations (n, m) and its regimes (n,)."""
    k, _, m = parameters.sizes
    X, regimes = np.empty((n, m)), np.empty(n, dtype=np.int64)
    for t in range(n):
        z = rng.choice(k, p=parameters.start if t == 0 else parameters.transition[regimes[t - 1]])
        if t == 0:
            x = rng.multivariate_normal(parameters.initial_mean[z], parameters.initial_covariance[z])
        else:
            x = parameters.dynamics[z] @ x + parameters.dynamics_offset[z]
            x = rng.multivariate_normal(x, parameters.dynamics_covariance[z])
        g = z if len(parameters.emission) > 1 else 0
        mean = parameters.emission[g] @ x + parameters.emission_offset[g]
        X[t], regimes[t] = rng.multivariate_normal(mean, parameters.emission_covariance[g]), z
    return X, regimes


def given_regimes(parameters, X, path):
    """log p(y | regimes), and mean (T, d) and covariance (T d, T d) of the states given both, by dense matrices."""
    n, (_, d, m) = len(X), parameters.sizes
    mean, cov = np.zeros(n * d), np.zeros((n * d, n * d))
    C, c, R = np.zeros((n * m, n * d)), np.zeros(n * m), np.zeros((n * m, n * m))
    for t, z in enumerate(path):
        here, before = slice(t * d, (t + 1) * d), slice((t - 1) * d, t * d)
        if t == 0:
            mean[here], cov[here, here] = parameters.initial_mean[z], parameters.initial_covariance[z]
        else:
            A = parameters.dynamics[z]
            mean[here] = A @ mean[before] + parameters.dynamics_offset[z]
            cov[here, : t * d] = A @ cov[before, : t * d]
            cov[: t * d, here] = cov[here, : t * d].T
            cov[here, here] = A @ cov[before, before] @ A.T + parameters.dynamics_covariance[z]
        g, rows = z if len(parameters.emission) > 1 else 0, slice(t * m, (t + 1) * m)
        C[rows, here], c[rows] = parameters.emission[g], parameters.emission_offset[g]
        R[rows, rows] = parameters.emission_covariance[g]
    seen = ~np.isnan(X.ravel())
    if not seen.any():
        return 0.0, mean.reshape(n, d), cov
    C, c, R, y = C[seen], c[seen], R[np.ix_(seen, seen)], X.ravel()[seen]
    spread = C @ cov @ C.T + R
    gain = cov @ C.T @ np.linalg.inv(spread)
    log_density = multivariate_normal(C @ mean + c, spread).logpdf(y)
    return log_density, (mean + gain @ (y - C @ mean - c)).reshape(n, d), cov - gain @ C @ cov


def enumerate_regimes(parameters, X):
    """Exact log p(y), p(z_t | y) (T, k) and E[x_t | y] (T, d), summed over every path of regimes."""
    n, (k, _, _) = len(X), parameters.sizes
    logs, paths, means = [], [], []
    for path in itertools.product(range(k), repeat=n):
        chance = parameters.start[path[0]] * np.prod([parameters.transition[a, b] for a, b in itertools.pairwise(path)])
        if chance > 0:
            log_density, mean, _ = given_regimes(parameters, X, path)
            logs.append(np.log(chance) + log_density)
            paths.append(path)
            means.append(mean)
    weights = np.exp(logs - logsumexp(logs))
    marginals = np.einsum("p,ptk->tk", weights, np.eye(k)[np.array(paths)])
    return logsumexp(logs), marginals, np.tensordot(weights, np.array(means), axes=1)


@pytest.fixture(scope="session")
def systems():
    """The functions above."""

    class Systems:
        random = staticmethod(random_parameters)
        draw = staticmethod(draw)
        given_regimes = staticmethod(given_regimes)
        enumerate = staticmethod(enumerate_regimes)

    return Systems
