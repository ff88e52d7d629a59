"""What kept draws say of a path: where it goes on from a place, how probable a step is, and where it came from.

In each draw ``p(y | x) = sum_h w_h(x) N(y; A_h x + b_h, v I)`` with ``w_h(x)`` proportional to
``w_h N(x; m_h, Q_h^-1)``; what is predicted is the average over draws. Only regions that had transitions take part:
the others are draws from the prior, and say nothing of the data.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Numbers in memory at a time.
BLOCK = 4_000_000


class Flow(NamedTuple):
    """Regions of one task, those of a draw together, in the units of the data.

    Attributes
    ----------
    draws : (R,): the draw that each region is of, rising
    log_weights : (R,), normalised in each draw
    centers, precisions : (R, K) and (R, K, K)
    matrices, intercepts : (R, K, K) and (R, K)
    variances : (R,): of the noise
    regimes : (R,): the matrix of each region, by a name that all draws share
    """

    draws: Integers
    log_weights: Array
    centers: Array
    precisions: Array
    matrices: Array
    intercepts: Array
    variances: Array
    regimes: Integers

    @property
    def firsts(self) -> Integers:
        """Where the regions of each draw begin."""
        return np.flatnonzero(np.diff(self.draws, prepend=-1))

    def of_draw(self, draw: int) -> Flow:
        """The regions of one draw, counted from 0."""
        chosen = self.draws == np.unique(self.draws)[draw]
        return Flow(*(values[chosen] for values in self))


def blocks(n: int, flow: Flow) -> list[slice]:
    """Rows in pieces whose work fits into memory."""
    size = max(1, BLOCK // max(flow.centers.size, 1))
    return [slice(begin, min(begin + size, n)) for begin in range(0, n, size)]


def spread_of_places(flow: Flow) -> float:
    """Root-mean-square distance of places from their mean, over all draws."""
    share = np.exp(flow.log_weights) / len(flow.firsts)
    away = flow.centers - share @ flow.centers
    within = np.trace(np.linalg.inv(flow.precisions), axis1=-2, axis2=-1)
    return float(np.sqrt(share @ (within + (away**2).sum(axis=1))))


def log_shares(flow: Flow, x: Array) -> Array:
    """Log probability of each region at each place (R, n); those of a draw add to one."""
    away = x[None] - flow.centers[:, None]
    log_density = -0.5 * ((away @ flow.precisions) * away).sum(axis=-1)
    log_density += (flow.log_weights + 0.5 * np.linalg.slogdet(flow.precisions)[1])[:, None]
    firsts = flow.firsts
    widths = np.diff(firsts, append=len(flow.draws))
    top = np.repeat(np.maximum.reduceat(log_density, firsts, axis=0), widths, axis=0)
    total = np.add.reduceat(np.exp(log_density - top), firsts, axis=0)
    return np.asarray(log_density - top - np.repeat(np.log(total), widths, axis=0))


def steps_of(flow: Flow, x: Array) -> Array:
    """Where each region leads from each place: (R, n, K)."""
    return np.asarray(x[None] @ np.swapaxes(flow.matrices, -1, -2) + flow.intercepts[:, None])


def next_means(flow: Flow, x: Array) -> Array:
    """Expected next row of each row of x (n, K), averaged over draws."""
    found = np.empty_like(x)
    n_draws = len(flow.firsts)
    for part in blocks(len(x), flow):
        shares = np.exp(log_shares(flow, x[part]))
        found[part] = np.einsum("rn,rnk->nk", shares, steps_of(flow, x[part])) / n_draws
    return found


def log_density_of_steps(flow: Flow, x: Array, y: Array) -> Array:
    """Log density of the next rows y given rows x: (n,)."""
    K, n_draws = x.shape[1], len(flow.firsts)
    found = np.empty(len(x))
    for part in blocks(len(x), flow):
        log_density = log_shares(flow, x[part]) + _log_noise(flow, y[part] - steps_of(flow, x[part]), K)
        found[part] = np.logaddexp.reduce(log_density, axis=0) - np.log(n_draws)
    return found


def _log_noise(flow: Flow, away: Array, K: int) -> Array:
    v = flow.variances[:, None]
    return np.asarray(-0.5 * ((away**2).sum(axis=-1) / v + K * np.log(2 * np.pi * v)))


def log_density_of_places(flow: Flow, x: Array) -> Array:
    """Log density of rows by the places of the regions, averaged over draws: (n,)."""
    found = np.empty(len(x))
    constant = flow.log_weights + 0.5 * np.linalg.slogdet(flow.precisions / (2 * np.pi))[1]
    for part in blocks(len(x), flow):
        away = x[None, part] - flow.centers[:, None]
        log_density = constant[:, None] - 0.5 * ((away @ flow.precisions) * away).sum(axis=-1)
        found[part] = np.logaddexp.reduce(log_density, axis=0) - np.log(len(flow.firsts))
    return found


def regime_shares(flow: Flow, x: Array, n_regimes: int, y: Array | None = None) -> Array:
    """Probability of each regime at each place, given the next row too if there is one: (n, n_regimes), over draws."""
    found = np.empty((len(x), n_regimes))
    of_regime = np.zeros((n_regimes, len(flow.regimes)))
    of_regime[flow.regimes, np.arange(len(flow.regimes))] = 1.0 / len(flow.firsts)
    for part in blocks(len(x), flow):
        log_share = log_shares(flow, x[part])
        if y is not None:
            joint = log_share + _log_noise(flow, y[part] - steps_of(flow, x[part]), x.shape[1])
            widths = np.diff(flow.firsts, append=len(flow.draws))
            top = np.repeat(np.maximum.reduceat(joint, flow.firsts, axis=0), widths, axis=0)
            total = np.add.reduceat(np.exp(joint - top), flow.firsts, axis=0)
            log_share = joint - top - np.repeat(np.log(total), widths, axis=0)
        found[part] = (of_regime @ np.exp(log_share)).T
    return found


def agreement(first: Flow, second: Flow, x: Array) -> tuple[float, int]:
    """Share of draws in which two tasks have most of their weight at a place (1, K) on the same matrix, and which.

    In a draw both must have more than half of it there. The matrix is the one that most of these draws name.
    """
    found = []
    for draw in range(len(first.firsts)):
        masses = []
        for flow in (first.of_draw(draw), second.of_draw(draw)):
            share = np.exp(log_shares(flow, x))[:, 0]
            masses.append(np.bincount(flow.regimes, share, minlength=int(flow.regimes.max()) + 1))
        a, b = (int(mass.argmax()) for mass in masses)
        if a == b and min(masses[0][a], masses[1][b]) > 0.5:
            found.append(a)
    return len(found) / len(first.firsts), int(np.bincount(found).argmax()) if found else -1
