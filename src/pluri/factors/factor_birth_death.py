"""Adding and removing a factor with the factors' values integrated out: a reversible-jump step of a Gibbs sampler.

Given the values of the factors, a column of loadings can hardly go even when the others could do its work: r columns
may span fewer than r dimensions, turned so that each is needed. The likelihood of ``W W' + diag(psi)`` does not change
when the columns are turned, and neither does the prior. A death therefore turns first: it draws a direction u in factor
space from the angular Gaussian with precision ``W' diag(1/psi) W + I / n``, which is near those that W maps to nothing,
turns u to the last axis (a Householder reflection, which preserves volume), and proposes to drop that column, a = W u.
A birth proposes a column a, then turns by a uniform u. With p(u) the density of u relative to the uniform one, a birth
has the ratio

    p(Y | W a) / p(Y | W) * prior odds * N(a; 0, I / precision) / g(a) * p(u | W a turned) * (K - r) / (r + 1).

The proposal g is a mixture of small columns, which the data hardly notice, and of columns near the direction in which
the residuals vary most (power iterations from a fixed start, so that it is a function of data and other columns only).

References
----------
Green (1995), Reversible jump Markov chain Monte Carlo computation and Bayesian model determination, Biometrika 82.
Tyler (1987), Statistical analysis for the angular central Gaussian distribution on the sphere, Biometrika 74.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

Array = NDArray[np.float64]

LOG_2_PI = math.log(2 * math.pi)
N_POWER_STEPS = 8


def birth_or_death(
    rng: np.random.Generator,
    deviations: Array,
    loadings: Array,
    support: Array,
    noise: Array,
    precision: float,
    log_odds: float,
) -> tuple[Array, Array]:
    """Propose to add or to remove one factor.

    Parameters
    ----------
    rng : numpy.random.Generator
    deviations : array of shape (n, D)
        Rows minus their mean.
    loadings : array of shape (K, D)
        For factors of variance one; zero where `support` is.
    support : array of shape (K,) of zeros and ones
    noise : array of shape (D,)
        Variances of the noise.
    precision : float
        Prior precision of the loadings.
    log_odds : float
        Prior log odds that a factor is on.

    Returns
    -------
    loadings, support
        New arrays if the proposal was accepted, the same otherwise.
    """
    K, D = loadings.shape
    birth, uniform, n = rng.random() < 0.5, rng.random(), len(deviations)
    on, off = np.flatnonzero(support), np.flatnonzero(support == 0)
    root = np.sqrt(noise)
    E = deviations / root
    if birth:
        if not len(off):
            return loadings, support
        changed = int(off[rng.integers(len(off))])
        kept = loadings[on] / root
        proposal = _Columns(E, kept)
        whole = np.concatenate([kept, proposal.draw(rng)[None]])
        direction = rng.standard_normal(len(whole))
        direction /= np.linalg.norm(direction)
        turned = _turned(whole, direction)
    else:
        if not len(on):
            return loadings, support
        changed = int(on[rng.integers(len(on))])
        on = on[on != changed]
        turned = loadings[[*on, changed]] / root
        gram = turned @ turned.T + np.eye(len(turned)) / (n + 1)
        direction = np.linalg.solve(np.linalg.cholesky(gram).T, rng.standard_normal(len(turned)))
        direction /= np.linalg.norm(direction)
        whole = _turned(turned, direction)
        kept = whole[:-1]
        proposal = _Columns(E, kept)
    r = len(kept)
    column = whole[-1]
    # Everything is for a birth; a death has the inverse ratio.
    log_ratio = log_likelihood(E, whole) - log_likelihood(E, kept) + log_odds
    log_ratio += 0.5 * (D * (math.log(precision) - LOG_2_PI) - precision * float(noise @ column**2))
    log_ratio += 0.5 * float(np.log(noise).sum()) - proposal.log_density(column)
    log_ratio += _log_angular(turned, direction, n) + math.log((K - r) / (r + 1))
    if not math.log(uniform + 1e-300) < (log_ratio if birth else -log_ratio):
        return loadings, support
    new, present = np.zeros_like(loadings), np.zeros_like(support)
    if birth:
        new[[*on, changed]] = turned * root
        present[[*on, changed]] = 1
    else:
        new[on] = kept * root
        present[on] = 1
    return new, present


def log_likelihood(E: Array, W: Array) -> float:
    """Log-likelihood of rows with noise of variance one, loadings W (r, D), up to what does not depend on W."""
    if not len(W):
        return 0.0
    M = np.eye(len(W)) + W @ W.T
    B = E @ W.T
    _, log_det = np.linalg.slogdet(M)
    return float(0.5 * (np.linalg.solve(M, B.T @ B).trace() - len(E) * log_det))


def _turned(columns: Array, direction: Array) -> Array:
    """Columns (r, D) reflected so that the last axis of the factors and `direction` change places."""
    mirror = -direction
    mirror[-1] += 1.0
    size = float(mirror @ mirror)
    if size < 1e-24:
        return columns.copy()
    return np.asarray(columns - np.outer(2 / size * mirror, mirror @ columns))


def _log_angular(columns: Array, direction: Array, n: int) -> float:
    """Log density of a direction under the angular Gaussian of a death, relative to the uniform one."""
    gram = columns @ columns.T + np.eye(len(columns)) / (n + 1)
    _, log_det = np.linalg.slogdet(gram)
    return float(0.5 * log_det - 0.5 * len(columns) * math.log(direction @ gram @ direction))


class _Columns:
    """The proposal of new columns, given rows and the columns that are there; all in units of the noise."""

    def __init__(self, E: Array, W: Array) -> None:
        n, D = E.shape
        self.centers = np.zeros((3, D))
        self.variances = np.array([1 / math.sqrt((n + 1) * D), 2 / (n + 1), 2 / (n + 1)])
        self.log_shares = np.log([0.5, 0.25, 0.25])
        self.centers[1] = self._residual_direction(E, W)
        self.centers[2] = -self.centers[1]

    @staticmethod
    def _residual_direction(E: Array, W: Array) -> Array:
        """The column that would raise the likelihood most: ``C w (l - 1)^(1/2)``, S w = l C w, C = I + W' W."""
        n, D = E.shape
        middle = np.linalg.inv(np.eye(len(W)) + W @ W.T)
        w = np.ones(D) + np.arange(D) / D
        ratio = 1.0
        for _ in range(N_POWER_STEPS):
            moved = (E @ w) @ E / max(n, 1)
            w = moved - (middle @ (W @ moved)) @ W
            size = math.sqrt(float(w @ w))
            if not size > 0:
                return np.zeros(D)
            w /= size
        image = w + (W @ w) @ W
        scale = float(w @ image)
        spread = E @ w
        ratio = float(spread @ spread) / max(n, 1) / scale
        return np.asarray(image * math.sqrt(max(ratio - 1, 0.0) / scale))

    def draw(self, rng: np.random.Generator) -> Array:
        """A new column."""
        which = int(rng.choice(3, p=np.exp(self.log_shares)))
        noise = rng.standard_normal(self.centers.shape[1])
        return np.asarray(self.centers[which] + math.sqrt(self.variances[which]) * noise)

    def log_density(self, column: Array) -> float:
        """Log density of a column."""
        D = len(column)
        squares = ((column - self.centers) ** 2).sum(axis=1)
        logs = self.log_shares - 0.5 * (squares / self.variances + D * (np.log(self.variances) + LOG_2_PI))
        return float(logsumexp(logs))
