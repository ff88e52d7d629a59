"""Evidence by annealing against closed forms, quadrature and enumeration."""

import itertools

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from pluri.inference.ais.annealed_importance import log_evidence


def regression(seed=0, n=30, dim=4):
    """Bayesian linear regression, noise sd 1/2, coefficients N(0, 4): parts of the model and its exact evidence."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, dim))
    y = X @ rng.normal(size=dim) + 0.5 * rng.normal(size=n)
    covariance = 0.25 * np.eye(n) + 4.0 * X @ X.T
    exact = -0.5 * (n * np.log(2 * np.pi) + np.linalg.slogdet(covariance)[1] + y @ np.linalg.solve(covariance, y))
    mean = np.linalg.solve(X.T @ X / 0.25 + np.eye(dim) / 4, X.T @ y / 0.25)
    model = {
        "log_prior": lambda b: -np.square(b).sum(axis=1) / 8 - 0.5 * dim * np.log(8 * np.pi),
        "log_likelihood": lambda b: -2 * np.square(y - b @ X.T).sum(axis=1) - 0.5 * n * np.log(0.5 * np.pi),
        "sample_prior": lambda rng, m: rng.normal(0, 2, (m, dim)),
    }
    gradients = {"grad_log_prior": lambda b: -b / 4, "grad_log_likelihood": lambda b: 4 * (y - b @ X.T) @ X}
    return model, gradients, exact, mean


@pytest.mark.parametrize("transition", ["mh", "hmc"])
def test_linear_regression_is_within_a_tenth_of_a_nat(transition):
    model, gradients, exact, mean = regression()
    found = log_evidence(
        **model, transition=transition, n_temperatures=200, schedule="geometric", n_runs=1000,
        n_steps_per_temperature=5 if transition == "mh" else 1, random_state=0, **gradients,
    )  # fmt: skip
    assert found.value == pytest.approx(exact, abs=0.1)
    assert found.standard_error < 0.1
    assert found.value == pytest.approx(exact, abs=5 * found.standard_error)
    assert found.samples.expect().value == pytest.approx(mean, abs=0.05)
    assert found.samples.diagnose() == []


def mixture_log_likelihood(data, means):
    logs = -0.5 * np.square(data[:, None] - means[:, None, :]) - 0.5 * np.log(2 * np.pi)
    return (logsumexp(logs, axis=2) - np.log(means.shape[1])).sum(axis=1)


def mixture_quadrature(data, k):
    grid = np.linspace(-15, 15, 301)
    points = np.stack(np.meshgrid(*[grid] * k), axis=-1).reshape(-1, k)
    logs = np.concatenate(
        [mixture_log_likelihood(data, part) - np.square(part).sum(axis=1) / 18 for part in np.array_split(points, 30)]
    )
    return logsumexp(logs) + k * np.log((grid[1] - grid[0]) / np.sqrt(18 * np.pi))


def test_the_number_of_components_of_a_mixture_is_found():
    rng = np.random.default_rng(1)
    data = np.concatenate([rng.normal(-2.5, 1, 8), rng.normal(2.5, 1, 8)])
    found = {}
    for k in (1, 2, 3, 4):
        found[k] = log_evidence(
            lambda m: -np.square(m).sum(axis=1) / 18 - 0.5 * m.shape[1] * np.log(18 * np.pi),
            lambda m: mixture_log_likelihood(data, m),
            lambda rng, n, k=k: rng.normal(0, 3, (n, k)),
            schedule="geometric", n_temperatures=60, n_steps_per_temperature=3, n_runs=400, random_state=k, warn=False,
        )  # fmt: skip
        if k < 3:
            exact = mixture_quadrature(data, k)
            assert found[k].value == pytest.approx(exact, abs=5 * found[k].standard_error + 0.01)
    assert max(found, key=lambda k: found[k].value) == 2


#: Documents (0, 0, 1) and (2, 2, 1), three words, two topics, alpha = eta = 1/2.
WORDS, DOCUMENTS = np.array([0, 0, 1, 2, 2, 1]), np.array([0, 0, 0, 1, 1, 1])


def topics_log_prior(z):
    counts = np.stack([[(z[:, d == DOCUMENTS] == k).sum(axis=1) for k in (0, 1)] for d in (0, 1)])
    return (gammaln(1.0) - gammaln(4.0) + (gammaln(counts + 0.5) - gammaln(0.5)).sum(axis=1)).sum(axis=0)


def topics_log_likelihood(z):
    counts = np.stack([[(z[:, v == WORDS] == k).sum(axis=1) for v in (0, 1, 2)] for k in (0, 1)])
    ends = gammaln(1.5) - gammaln(counts.sum(axis=1) + 1.5)
    return (ends + (gammaln(counts + 0.5) - gammaln(0.5)).sum(axis=1)).sum(axis=0)


def topics_sweep(rng, z, beta):
    for token in range(6):
        states = []
        for k in (0, 1):
            state = z.copy()
            state[:, token] = k
            states.append(topics_log_prior(state) + beta * topics_log_likelihood(state))
        z[:, token] = rng.random(len(z)) < 1 / (1 + np.exp(states[0] - states[1]))
    return z


def draw_topics(rng, n):
    return (rng.random((n, 6)) < rng.beta(0.5, 0.5, (n, 2))[:, DOCUMENTS]).astype(np.int64)


def test_a_tiny_topic_model_has_the_known_evidence():
    states = np.array(list(itertools.product((0, 1), repeat=6)))
    joint = topics_log_prior(states) + topics_log_likelihood(states)
    assert logsumexp(joint) == pytest.approx(-7.5795091, abs=1e-7)
    assert logsumexp(topics_log_prior(states)) == pytest.approx(0.0, abs=1e-12)
    found = log_evidence(
        topics_log_prior, topics_log_likelihood, draw_topics, transition=topics_sweep, n_temperatures=10, n_runs=2000,
        random_state=0,
    )  # fmt: skip
    # Five standard errors: a false alarm in 2 million.
    assert found.value == pytest.approx(-7.5795091, abs=5 * found.standard_error)
    assert found.standard_error < 0.02
    assert found.samples.x.dtype == np.int64
    together = found.samples.expect(lambda z: z[:, 0] == z[:, 1])
    assert together.value == pytest.approx(0.8736, abs=5 * together.standard_error)
    apart = found.samples.expect(lambda z: z[:, 0] == z[:, 3])
    assert apart.value == pytest.approx(0.2669, abs=5 * apart.standard_error)
