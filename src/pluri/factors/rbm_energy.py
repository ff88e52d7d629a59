"""Restricted Boltzmann machine: energies, conditionals, exact sums and the gradient of contrastive divergence.

    p(x, y) = exp(x' W y + b' x + c' y) / Z,
    p(x_i = 1 | y) = sigma(b_i + W_i y),   p(y_j = 1 | x) = sigma(c_j + x' W_j).

The gradient of the log-likelihood in W is ``<x y'>_data - <x y'>_model``; contrastive divergence takes the second mean
after a few Gibbs steps from the data, with probabilities in place of the last y.

References
----------
Hinton (2002), Training products of experts by minimizing contrastive divergence, Neural Computation 14.
Salakhutdinov and Murray (2008), On the quantitative analysis of deep belief networks, ICML.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

Array = NDArray[np.float64]

#: Exponents that a double has room for, and those up to which products of exponentials are used.
ROOM, LARGEST = 690.0, 600.0
#: Sums over at most two to this many states are exact.
MOST_UNITS = 16


@dataclass(frozen=True, eq=False)
class Machine:
    """weights W (D, H), visible biases b (D,), hidden biases c (H,)."""

    weights: Array
    visible: Array
    hidden: Array

    def __iter__(self) -> Any:
        return iter((self.weights, self.visible, self.hidden))

    def field(self, rows: Any) -> Array:
        """What the hidden units get from rows (n, D), dense or sparse: c + x' W."""
        return np.asarray(rows @ self.weights + self.hidden)

    def free_energy(self, rows: Any) -> Array:
        """-log sum_y exp(x' W y + b' x + c' y) of rows (n, D)."""
        return np.asarray(-(rows @ self.visible) - np.logaddexp(0.0, self.field(rows)).sum(axis=1))

    def log_odds(self, field: Array, flipped: NDArray[np.bool_]) -> Array:
        """Log-odds (n, D) of each visible unit given all others; `flipped` says which are on in the rows."""
        from pluri.factors._rbm_kernels import log_odds

        W, sign = self.weights, np.where(flipped, -1.0, 1.0)
        largest = max(float(np.abs(part).max(initial=1.0)) for part in (W, field))
        if largest > LARGEST:
            changes = (np.logaddexp(0.0, a + s[:, None] * W) - np.logaddexp(0.0, a) for a, s in zip(field, sign))
            return np.array([self.visible + s * change.sum(axis=1) for s, change in zip(sign, changes)])
        out = np.empty(flipped.shape)
        step = int(ROOM / largest)
        log_odds(expit(field), expit(-field), np.exp(W), np.exp(-W), flipped, self.visible, step, out)
        return out

    def log_partition(self) -> float:
        """Logarithm of Z, by a sum over all states of the smaller side."""
        W, bias, other = self.weights, self.visible, self.hidden
        if W.shape[1] > W.shape[0]:
            W, bias, other = W.T, other, bias
        if W.shape[1] > MOST_UNITS:
            raise ValueError(f"an exact sum needs at most {MOST_UNITS} units on one side, got {W.shape[1]}")
        states = (np.arange(2 ** W.shape[1])[:, None] >> np.arange(W.shape[1])) & 1
        blocks = np.array_split(states, max(1, len(states) * len(bias) // 2_000_000))
        return float(logsumexp(
            np.concatenate([part @ other + np.logaddexp(0.0, part @ W.T + bias).sum(axis=1) for part in blocks])
        ))  # fmt: skip


def drawn(natural: Any, rng: np.random.Generator) -> Any:
    """Zeros and ones with probabilities sigma(natural), in single precision; `natural` is overwritten."""
    np.negative(natural, out=natural)
    np.exp(np.minimum(natural, 80.0, out=natural), out=natural)
    natural += 1.0
    return (rng.random(natural.shape, dtype=np.float32) * natural < 1.0).astype(np.float32)


def contrastive_gradient(
    machine: Machine, rows: Any, n_steps: int, rng: np.random.Generator
) -> tuple[Machine, Array, float]:
    """Mean gradient of contrastive divergence over rows, mean hidden activity, and squared reconstruction error.

    Parameters
    ----------
    machine : Machine
    rows : csr_array (n, D) of ones
    n_steps : int
        Gibbs steps from the data to the second mean.
    rng : numpy.random.Generator
    """
    n = rows.shape[0]
    W, b, c = (np.asarray(part, dtype=np.float32) for part in machine)
    active = expit(machine.field(rows))
    hidden = (rng.random(active.shape) < active).astype(np.float32)
    error = 0.0
    for step in range(n_steps):
        natural = hidden @ W.T + b
        if step == 0:
            mean = expit(natural)
            error = float((mean**2).sum() + rows.sum() - 2.0 * mean[rows.nonzero()].sum()) / n
        visible = drawn(natural, rng)
        natural = visible @ W + c
        if step < n_steps - 1:
            hidden = drawn(natural, rng)
    last = expit(natural)
    gradient = Machine(
        (rows.T @ active - visible.T @ last) / n,
        (np.asarray(rows.sum(axis=0)).ravel() - visible.sum(axis=0)) / n,
        active.mean(axis=0) - last.mean(axis=0),
    )
    return gradient, active.mean(axis=0), error


@dataclass(frozen=True, eq=False)
class JointPath:
    """Densities and moves of annealed importance sampling, on rows that hold x and y side by side.

    The path from independent units with visible biases `base` is geometric in the joint density, so that each of its
    points is a machine too: weights ``t W``, hidden biases ``t c``, visible biases ``(1 - t) base + t b``.
    """

    machine: Machine
    base: Array

    def log_start(self, states: Array) -> Array:
        """Normalised log density of independent units."""
        D, H = self.machine.weights.shape
        return np.asarray(states[:, :D] @ self.base - np.logaddexp(0.0, self.base).sum() - H * np.log(2.0))

    def sample_start(self, rng: np.random.Generator, n: int) -> Array:
        """Draw independent units."""
        means = np.concatenate([expit(self.base), np.full(len(self.machine.hidden), 0.5)])
        return (rng.random((n, len(means))) < means).astype(np.float64)

    def log_end(self, states: Array) -> Array:
        """Logarithm of exp(x' W y + b' x + c' y)."""
        D = len(self.base)
        x, y = states[:, :D], states[:, D:]
        return np.asarray(((x @ self.machine.weights + self.machine.hidden) * y).sum(axis=1) + x @ self.machine.visible)

    def move(self, rng: np.random.Generator, states: Array, t: float) -> Array:
        """A Gibbs step at a point of the path."""
        D = len(self.base)
        W, b, c = self.machine
        y = (rng.random((len(states), len(c))) < expit(t * (states[:, :D] @ W + c))).astype(np.float64)
        mean = expit((1.0 - t) * self.base + t * (b + y @ W.T))
        return np.concatenate([(rng.random(mean.shape) < mean).astype(np.float64), y], axis=1)
