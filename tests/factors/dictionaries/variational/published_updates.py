"""The updates of codes in a known dictionary as they stand in the formulas, with matrices that are inverted."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from pluri.factors.dictionaries.variational import precisions
from pluri.factors.dictionaries.variational._measured_kernels import Codes
from pluri.factors.dictionaries.variational.known_dictionary import KnownDictionary


def sweep(y, atoms, t, log_odds, g, h, with_covariance=True):
    """Weights, then usage of one row: (t, mean, S); without the covariance, as published."""
    gram, product = atoms.T @ atoms, atoms.T @ y
    both = np.outer(t, t)
    np.fill_diagonal(both, t)
    S = np.linalg.inv(h * np.eye(len(t)) + g * both * gram)
    mean = g * S @ (t * product)
    t = t.copy()
    for k in range(len(t)):
        pair = mean[k] * mean + (S[k] if with_covariance else 0.0)
        others = gram[k] * t * pair
        own = (mean[k] ** 2 + S[k, k]) * gram[k, k]
        t[k] = expit(log_odds[k] - g / 2 * (own - 2 * mean[k] * product[k] + 2 * (others.sum() - others[k])))
    return t, mean, S


def expected_error(y, atoms, t, mean, S):
    """E |y - Phi (z s)|^2 by the sum over all z."""
    total = 0.0
    for code in range(2 ** len(t)):
        z = (code >> np.arange(len(t))) & 1
        seen = atoms * z
        error = ((y - seen @ mean) ** 2).sum() + np.trace(seen @ S @ seen.T)
        total += np.prod(np.where(z, t, 1 - t)) * error
    return total


def pairs(t):
    """E[z z'] of rows, (n_rows, K, K)."""
    both = t[:, :, None] * t[:, None, :]
    np.einsum("ikk->ik", both)[:] = t
    return both


@dataclass(frozen=True)
class Published(KnownDictionary):
    """The model with these updates of the codes, for one projection and one noise."""

    with_covariance: bool = True

    def update_codes(self, q, data):
        g, h = precisions.mean(q.noise_precision)[0], precisions.mean(q.weight_precision)[0]
        y, atoms, t, odds = data.measured.values, data.measured.atoms[0], q.codes.used.copy(), q.usage.log_odds
        gram, product = atoms.T @ atoms, y @ atoms
        S = np.linalg.inv(h * np.eye(t.shape[1]) + g * pairs(t) * gram)
        mean = g * np.einsum("ikl,il->ik", S, t * product)
        second = mean[:, :, None] * mean[:, None, :] + S
        used_second = second if self.with_covariance else mean[:, :, None] * mean[:, None, :]
        for k in range(t.shape[1]):
            others = gram[k] * t * used_second[:, k]
            cross = others.sum(axis=1) - others[:, k]
            t[:, k] = expit(
                odds[:, k] - g / 2 * (second[:, k, k] * gram[k, k] - 2 * mean[:, k] * product[:, k] + 2 * cross)
            )
        misfit = (y**2).sum(axis=1) - 2 * (t * mean * product).sum(axis=1) + (pairs(t) * gram * second).sum(axis=(1, 2))
        variance = np.einsum("ikk->ik", S).copy()
        return replace(q, codes=Codes(t, mean, variance, misfit, np.linalg.slogdet(S)[1]))
