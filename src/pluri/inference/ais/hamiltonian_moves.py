"""Hamiltonian moves of a whole cloud of points.

In coordinates y with ``x = L y`` and unit mass, leapfrog steps ``p += e/2 grad; y += e p; p += e/2 grad`` make a
trajectory, accepted with probability ``min(1, exp(H_old - H_new))``. L is the root of the cloud's covariance.

References
----------
.. [1] Neal, R. M. (2011). MCMC using Hamiltonian dynamics. Handbook of Markov chain Monte Carlo.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.inference.ais.tempered_path import Cloud, TemperedPath, tempered
from pluri.inference.ais.transitions import Moved, Moves, better_scale, covariance_root

Array = NDArray[np.float64]


@dataclass(frozen=True)
class HamiltonianMoves(Moves):
    """Hamiltonian Monte Carlo with trajectories of a given number of steps; the path must know its gradients.

    Parameters
    ----------
    step_size : float, default=0.5
        Length of a leapfrog step, in units of `root`.
    n_leapfrog : int, default=8
        Steps of a trajectory.
    jitter : float, default=0.2
        Each point's step size is drawn within this fraction of itself, so that no orbit closes.
    root : array (d, d), optional
        L; learned in the pilot.
    adapts : bool, default=True
        Whether to learn `root` and tune `step_size` to an acceptance of 0.8.

    Examples
    --------
    >>> from pluri.inference.ais.hamiltonian_moves import HamiltonianMoves
    >>> HamiltonianMoves(step_size=0.1, adapts=False).n_leapfrog
    8
    """

    step_size: float = 0.5
    n_leapfrog: int = 8
    jitter: float = 0.2
    root: Array | None = None
    adapts: bool = True

    vectors = True
    n_tunings = 4

    def __post_init__(self) -> None:
        if not 0 < self.step_size < np.inf:
            raise ValueError(f"step_size must be positive, got {self.step_size!r}")
        if self.n_leapfrog < 1:
            raise ValueError(f"n_leapfrog must be at least 1, got {self.n_leapfrog!r}")
        if not 0 <= self.jitter < 1:
            raise ValueError(f"jitter must be at least 0 and below 1, got {self.jitter!r}")

    def learn(self, x: NDArray[Any], weights: Array) -> HamiltonianMoves:
        """Trajectories in the shape of the cloud."""
        return replace(self, root=covariance_root(x, weights, self.root)) if self.adapts else self

    def retune(self, acceptance: float) -> HamiltonianMoves:
        """A step size nearer to the acceptance wanted; the energy error grows with its square."""
        if not self.adapts:
            return self
        return replace(self, step_size=min(self.step_size * better_scale(acceptance, 0.8, power=2.0), 2.0))

    def move(self, rng: np.random.Generator, path: TemperedPath, beta: float, cloud: Cloud, n_steps: int) -> Moved:
        """`n_steps` trajectories; a point that leaves all bounds on its way stays where it was."""
        x, base, gain = (part.copy() for part in cloud)
        n, dim = x.shape
        root = np.eye(dim) if self.root is None else self.root
        current = tempered(base, gain, beta).copy()
        total, undefined, uncovered = 0.0, 0, 0
        for _ in range(n_steps):
            step = self.step_size * (1.0 + self.jitter * (2.0 * rng.random((n, 1)) - 1.0))
            momentum = rng.standard_normal((n, dim))
            kinetic = 0.5 * np.square(momentum).sum(axis=1)
            place = x.copy()
            lost = np.zeros(n, dtype=bool)
            momentum += 0.5 * step * (path.gradient(place, beta) @ root)
            for i in range(self.n_leapfrog):
                place = place + (step * momentum) @ root.T
                lost |= ~(np.abs(place) < 1e150).all(axis=1)
                place[lost], momentum[lost] = x[lost], 0.0
                share = 0.5 if i == self.n_leapfrog - 1 else 1.0
                momentum += share * step * (path.gradient(place, beta) @ root)
            seen = path.evaluate(place)
            density = tempered(seen.base, seen.gain, beta)
            change = density - current + kinetic - 0.5 * np.square(momentum).sum(axis=1)
            probability = np.exp(np.minimum(np.where(lost | np.isnan(change), -np.inf, change), 0.0))
            accepted = rng.random(n) < probability
            np.copyto(x, place, where=accepted[:, None])
            np.copyto(base, seen.base, where=accepted)
            np.copyto(gain, seen.gain, where=accepted)
            np.copyto(current, density, where=accepted)
            total += float(probability.sum())
            undefined += seen.undefined
            uncovered += seen.uncovered
        count = n * n_steps
        return Moved(Cloud(x, base, gain), total / count, count * (self.n_leapfrog + 2), undefined, uncovered)
