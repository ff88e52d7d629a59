"""The joint Gaussian distribution of all states and outputs of a linear system, and conditioning in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import multivariate_normal


@dataclass
class Dense:
    """States x (T d,) with mean and covariance, outputs y = H x + shift + noise, all T steps in one vector."""

    mean: np.ndarray
    covariance: np.ndarray
    emission: np.ndarray
    shift: np.ndarray
    noise: np.ndarray

    def condition(self, y, known=None):
        """Mean and covariance of all states given what is not NaN in y (T, m), and the log density of that."""
        y = y.ravel()
        seen = np.flatnonzero(~np.isnan(y) if known is None else ~np.isnan(y) & known.ravel())
        H = self.emission[seen]
        S = H @ self.covariance @ H.T + self.noise[np.ix_(seen, seen)]
        residual = y[seen] - H @ self.mean - self.shift[seen]
        gain = np.linalg.solve(S, H @ self.covariance).T
        covariance = self.covariance - gain @ H @ self.covariance
        score = multivariate_normal(np.zeros(len(seen)), S).logpdf(residual) if len(seen) else 0.0
        return self.mean + gain @ residual, covariance, score


def joint(m, P, A, drift, Q, C, shift, R):
    """The joint distribution for drifts (T, d) added to the next state and shifts (T, m) added to the outputs."""
    T, d = drift.shape
    mean, covariance = np.zeros(T * d), np.zeros((T * d, T * d))
    centre, spread = np.asarray(m), np.asarray(P)
    for t in range(T):
        if t:
            centre, spread = A @ centre + drift[t - 1], A @ spread @ A.T + Q
        mean[t * d : (t + 1) * d] = centre
        block = spread
        for s in range(t, T):
            covariance[s * d : (s + 1) * d, t * d : (t + 1) * d] = block
            covariance[t * d : (t + 1) * d, s * d : (s + 1) * d] = block.T
            block = A @ block
    return Dense(mean, covariance, np.kron(np.eye(T), C), shift.ravel(), np.kron(np.eye(T), R))


def random_covariance(rng, size, rank=None):
    """A random covariance, singular if its rank is lower."""
    factor = rng.normal(size=(size, size if rank is None else rank))
    return factor @ factor.T + (0.1 * np.eye(size) if rank is None else 0.0)
