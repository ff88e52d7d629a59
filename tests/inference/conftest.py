"""Small problems with known answers that the tests of inference share, and functions of peers."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import logsumexp

from pluri.engine import ArraySource, Statistics


@dataclass(frozen=True)
class MixtureParameters:
    weights: np.ndarray
    means: np.ndarray
    variances: np.ndarray


@dataclass(frozen=True)
class MixtureStatistics(Statistics):
    counts: np.ndarray
    sums: np.ndarray
    squares: np.ndarray
    log_likelihood: float


class Mixture:
    """Gaussian mixture on the line; inverse-gamma prior exp(-floor / variance) so that no variance collapses."""

    def __init__(self, n_components=2, floor=0.0):
        self.n_components, self.floor = n_components, floor

    def initialize(self, source, rng):
        x = np.concatenate([batch.load().X[:, 0] for batch in source.batches()])
        means = rng.choice(x, self.n_components, replace=False)
        return MixtureParameters(
            np.full(self.n_components, 1 / self.n_components), means, np.full(self.n_components, x.var())
        )

    def expect(self, params, batch):
        x = batch.X
        log_joint = np.log(params.weights) - 0.5 * (
            np.log(2 * np.pi * params.variances) + (x - params.means) ** 2 / params.variances
        )
        log_density = logsumexp(log_joint, axis=1, keepdims=True)
        share = np.exp(log_joint - log_density)
        return MixtureStatistics(
            share.sum(axis=0), (share * x).sum(axis=0), (share * x**2).sum(axis=0), float(log_density.sum())
        )

    def maximize(self, stats, params):
        counts = np.maximum(stats.counts, 1e-300)  # a component may lose all it had
        means = stats.sums / counts
        variances = (stats.squares - counts * means**2 + 2 * self.floor) / counts
        return MixtureParameters(counts / counts.sum(), means, variances)

    def log_prior(self, params):
        return -float((self.floor / params.variances).sum())

    def pack(self, params):
        return np.concatenate([np.log(params.weights), params.means, np.log(params.variances)])

    def unpack(self, vector, like):
        logits, means, log_variances = np.split(vector, 3)
        weights = np.maximum(np.exp(logits - logsumexp(logits)), 1e-300)
        return MixtureParameters(weights, means, np.exp(log_variances))


@dataclass(frozen=True)
class TossStatistics(Statistics):
    heads: float
    tails: float
    lost: float
    log_likelihood: float


class LostTosses:
    """A coin with a Beta(a, b) prior and some tosses lost (NaN): the mode is known, and EM creeps towards it.

    The error shrinks per iteration by the factor ``lost / (tosses + a + b - 2)``.
    """

    def __init__(self, a=2.0, b=3.0):
        self.a, self.b = a, b

    def initialize(self, source, rng):
        return float(rng.uniform(0.05, 0.95))

    def expect(self, share, batch):
        x = batch.X[:, 0]
        heads, tails, lost = float((x == 1).sum()), float((x == 0).sum()), float(np.isnan(x).sum())
        return TossStatistics(
            heads + lost * share, tails + lost * (1 - share), lost, heads * np.log(share) + tails * np.log1p(-share)
        )

    def maximize(self, stats, share):
        return (stats.heads + self.a - 1) / (stats.heads + stats.tails + self.a + self.b - 2)

    def log_prior(self, share):
        return float((self.a - 1) * np.log(share) + (self.b - 1) * np.log1p(-share))

    def mode(self, x):
        return ((x == 1).sum() + self.a - 1) / ((~np.isnan(x)).sum() + self.a + self.b - 2)

    def pack(self, share):
        return np.array([np.log(share) - np.log1p(-share)])

    def unpack(self, vector, like):
        return float(1 / (1 + np.exp(-vector[0])))


def lost_tosses(heads, tails, lost):
    return np.concatenate([np.ones(heads), np.zeros(tails), np.full(lost, np.nan)])[:, None]


def two_groups(seed=0, n_samples=300, distance=2.0):
    """Two overlapping normal groups: the closer they are, the slower EM is."""
    rng = np.random.default_rng(seed)
    return (rng.normal(size=n_samples) + distance * (rng.random(n_samples) < 0.4))[:, None]


@pytest.fixture(scope="session")
def toys():
    return SimpleNamespace(
        Mixture=Mixture,
        MixtureParameters=MixtureParameters,
        LostTosses=LostTosses,
        lost_tosses=lost_tosses,
        two_groups=two_groups,
        source=lambda x: ArraySource(x, batch_size=64),
    )


@pytest.fixture
def psislw_of_arviz():
    """Pareto-smoothed log weights and their shape by ArviZ, from log weights."""
    arviz = pytest.importorskip("arviz")
    if hasattr(arviz, "psislw"):
        return arviz.psislw
    # From 1.0 on it lives in a package below and takes log-likelihoods, whose negatives are the log weights.
    stats = pytest.importorskip("arviz_stats.base").array_stats
    return lambda log_weights: stats.psislw(-np.asarray(log_weights))
