"""A Gaussian mixture with unit covariances as a conjugate-exponential model: the worked example of the tests.

weights ~ Dirichlet(a), mean_k ~ N(0, 1 / precision), x_n | z_n = k ~ N(mean_k, I).
"""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import digamma, gammaln, logsumexp


class UnitMixture:
    def __init__(self, n_components, n_features, concentration=1.0, precision=0.01):
        self.n_components, self.n_features = n_components, n_features
        self.concentration, self.precision = concentration, precision

    def global_prior(self):
        k = self.n_components
        return {
            "weights": np.full(k, self.concentration),
            "pull": np.zeros((k, self.n_features)),
            "precision": np.full(k, self.precision),
        }

    def initialize(self, source, rng):
        rows = np.concatenate([batch.load().X for batch in source.batches()])
        means = rng.choice(rows, size=self.n_components, replace=False)
        share = len(rows) / self.n_components
        return self.plus(self.global_prior(), means, share)

    @staticmethod
    def plus(prior, means, share):
        return {
            "weights": prior["weights"] + share,
            "pull": prior["pull"] + share * means,
            "precision": prior["precision"] + share,
        }

    def log_shares(self, X, q):
        means = q["pull"] / q["precision"][:, None]
        expected_log = digamma(q["weights"]) - digamma(q["weights"].sum())
        squares = ((X[:, None, :] - means) ** 2).sum(axis=2) + self.n_features / q["precision"]
        return expected_log - 0.5 * squares - 0.5 * self.n_features * np.log(2 * np.pi)

    def local_step(self, batch, q):
        log_joint = self.log_shares(np.asarray(batch.X), q)
        total = logsumexp(log_joint, axis=1, keepdims=True)
        share = np.exp(log_joint - total)
        counts = share.sum(axis=0)
        return {"weights": counts, "pull": share.T @ batch.X, "precision": counts}, float(total.sum())

    def global_elbo(self, q):
        a, prior = q["weights"], np.full(self.n_components, self.concentration)
        expected_log = digamma(a) - digamma(a.sum())
        weights = gammaln(a.sum()) - gammaln(a).sum() - gammaln(prior.sum()) + gammaln(prior).sum()
        weights += ((a - prior) * expected_log).sum()
        ratio = self.precision / q["precision"]
        squares = ((q["pull"] / q["precision"][:, None]) ** 2).sum(axis=1)
        means = 0.5 * (self.n_features * (ratio - 1 - np.log(ratio)) + self.precision * squares).sum()
        return -float(weights + means)


def three_groups(n_samples=600, seed=0):
    rng = np.random.default_rng(seed)
    centres = np.array([[-4.0, 0.0], [4.0, 0.0], [0.0, 5.0]])
    return centres[rng.choice(3, n_samples, p=[0.5, 0.3, 0.2])] + rng.normal(size=(n_samples, 2))


@pytest.fixture(scope="session")
def mixture():
    return SimpleNamespace(UnitMixture=UnitMixture, three_groups=three_groups)
