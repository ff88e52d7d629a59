"""From rows to coordinates and back, by Gaussian mixtures in closed form, averaged over draws.

Given a draw, ``p(x, y) = sum_m w_m N(x; mh_m, S_m) N(y; m_m + A_m L (x - mh_m), I/a0_m)``, S_m = diag(1/sg_m), so that

    x | y ~ sum_m v_m N(mt_m, St_m),   v_m ~ w_m N(y; m_m, I/a0_m + A_m L S_m L A_m'),
    St_m^-1 = S_m^-1 + a0_m L A_m' A_m L,   mt_m = mh_m + St_m a0_m L A_m' (y - m_m),
    E[y | x] = sum_m r_m (m_m + A_m L (x - mh_m)),   r_m ~ w_m N(x; mh_m, S_m).

Draws are averaged as predictions, never as parameters: labels of clusters change from draw to draw.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from pluri.embedding.regression.records import Position
from pluri.factors.low_rank_gaussian import LOG_2_PI, LowRankGaussians, Patterns, factor_posterior, log_density

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class JointMixture(NamedTuple):
    """Mixtures of (x, y) of several draws, one after the other; weights of each draw sum to one.

    Attributes
    ----------
    draws : (C,): the draw of each cluster, 0, 1, ... in order
    weights : (C,)
    centers, variances : (C, K): of the coordinates
    means : (C, D): of the rows
    loadings : (C, D, K): A L, zero where a coordinate is off
    noise_variances : (C,)
    """

    draws: Integers
    weights: Array
    centers: Array
    variances: Array
    means: Array
    loadings: Array
    noise_variances: Array

    @property
    def n_draws(self) -> int:
        """Number of draws."""
        return int(self.draws[-1]) + 1

    def rows(self) -> LowRankGaussians:
        """Distributions of the rows, factors being ``(x - mh) / sqrt(S)``."""
        noise = np.broadcast_to(self.noise_variances[:, None], self.means.shape)
        return LowRankGaussians(self.means, self.loadings * np.sqrt(self.variances)[:, None, :], np.array(noise))


class EmbeddedDistribution(NamedTuple):
    """Distribution of the coordinates of each row, a mixture of C Gaussians.

    Attributes
    ----------
    weights : (n, C): shares of the Gaussians, which sum to one for each row
    means : (n, C, K)
    covariances : (C, K, K), the same for all rows; (n, C, K, K) if values are missing
    """

    weights: Array
    means: Array
    covariances: Array

    def mean(self) -> Array:
        """Mean of each row: (n, K)."""
        return np.asarray(np.einsum("nc,nck->nk", self.weights, self.means))

    def covariance(self) -> Array:
        """Covariance of each row: (n, K, K)."""
        deviations = self.means - self.mean()[:, None, :]
        within = "ckl" if self.covariances.ndim == 3 else "nckl"
        found = np.einsum(f"nc,{within}->nkl", self.weights, self.covariances)
        return np.asarray(found + np.einsum("nc,nck,ncl->nkl", self.weights, deviations, deviations))


def mixture_of(positions: Sequence[Position]) -> JointMixture:
    """Clusters that have rows, of every position."""
    parts = []
    for draw, position in enumerate(positions):
        J = len(position["means"])
        there = np.flatnonzero(np.bincount(position["labels"], minlength=J))
        there = there[np.argsort(-position["log_weights"][there], kind="stable")]
        log_weights = position["log_weights"][there]
        used = position["loadings"][there] * position["scales"][:, None]
        parts.append(
            JointMixture(
                np.full(len(there), draw, dtype=np.int64), np.exp(log_weights - logsumexp(log_weights)),
                position["centers"][there], 1 / position["precisions"][there], position["means"][there],
                np.ascontiguousarray(used.transpose(0, 2, 1)), 1 / position["noise_precision"][there],
            )
        )  # fmt: skip
    return JointMixture(*(np.concatenate(fields) for fields in zip(*parts)))


def by_draw(mixture: JointMixture, log_values: Array) -> tuple[Array, Array]:
    """Shares (n, C) that sum to one over all draws and to 1 / n_draws over each; log sums of each draw (n, n_draws)."""
    starts = np.searchsorted(mixture.draws, np.arange(mixture.n_draws))
    totals = np.stack(
        [logsumexp(part, axis=1) for part in np.split(log_values, starts[1:], axis=1)], axis=1
    )  # fmt: skip
    # Far from everything each density is zero; shares are then those of the weights that underflowed least.
    return np.exp(log_values - totals[:, mixture.draws]) / mixture.n_draws, totals


def log_joint(mixture: JointMixture, rows: Patterns) -> Array:
    """Log weight plus log density of each row under each cluster: (n, C)."""
    return np.asarray(log_density(mixture.rows(), rows) + np.log(mixture.weights))


def row_log_density(mixture: JointMixture, rows: Patterns) -> Array:
    """Log of the density of each row, averaged over draws: (n,)."""
    _, totals = by_draw(mixture, log_joint(mixture, rows))
    return np.asarray(logsumexp(totals, axis=1) - np.log(mixture.n_draws))


def _embedded(mixture: JointMixture, rows: Patterns) -> Iterator[tuple[Array, Array]]:
    """Means (n, K) and covariances (n_patterns, K, K) of the coordinates under each cluster."""
    law = mixture.rows()
    for c, root in enumerate(np.sqrt(mixture.variances)):
        factors = factor_posterior(law, c, rows)
        yield mixture.centers[c] + factors.means * root, factors.covariances * np.outer(root, root)


def embedded(mixture: JointMixture, rows: Patterns) -> Array:
    """Posterior means of the coordinates, averaged over draws: (n, K)."""
    shares, _ = by_draw(mixture, log_joint(mixture, rows))
    found = np.zeros((len(rows.values), mixture.centers.shape[1]))
    for share, (means, _) in zip(shares.T, _embedded(mixture, rows)):
        found += share[:, None] * means
    return found


def embedded_distribution(mixture: JointMixture, rows: Patterns) -> EmbeddedDistribution:
    """The whole distribution of the coordinates of each row."""
    shares, _ = by_draw(mixture, log_joint(mixture, rows))
    means, covariances = zip(*_embedded(mixture, rows))
    spread = np.stack(covariances, axis=1)
    return EmbeddedDistribution(
        shares, np.stack(means, axis=1), spread[0] if rows.observed is None else spread[rows.index]
    )


def place_log_joint(mixture: JointMixture, x: Array) -> Array:
    """Log weight plus log density of coordinates under each cluster: (n, C)."""
    constant = np.log(mixture.weights) - 0.5 * (np.log(mixture.variances) + LOG_2_PI).sum(axis=1)
    squares = [((x - center) ** 2 / variance).sum(axis=1) for center, variance in zip(*mixture[2:4])]
    return np.asarray(constant - 0.5 * np.stack(squares, axis=1))


def place_log_density(mixture: JointMixture, x: Array) -> Array:
    """Log of the density of coordinates, averaged over draws: (n,)."""
    _, totals = by_draw(mixture, place_log_joint(mixture, x))
    return np.asarray(logsumexp(totals, axis=1) - np.log(mixture.n_draws))


def synthesized(mixture: JointMixture, x: Array) -> Array:
    """Expected rows at coordinates, averaged over draws: (n, D)."""
    shares, _ = by_draw(mixture, place_log_joint(mixture, x))
    found = shares @ mixture.means
    for c, share in enumerate(shares.T):
        found += (share[:, None] * (x - mixture.centers[c])) @ mixture.loadings[c].T
    return np.asarray(found)


def drawn(mixture: JointMixture, n_samples: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Rows (n, D) and their coordinates (n, K)."""
    chosen = rng.choice(len(mixture.weights), size=n_samples, p=mixture.weights / mixture.weights.sum())
    x = rng.standard_normal((n_samples, mixture.centers.shape[1])) * np.sqrt(mixture.variances[chosen])
    rows = rng.standard_normal((n_samples, mixture.means.shape[1])) * np.sqrt(mixture.noise_variances[chosen])[:, None]
    for c in np.unique(chosen):
        mine = chosen == c
        rows[mine] += x[mine] @ mixture.loadings[c].T + mixture.means[c]
    return rows, x + mixture.centers[chosen]
