"""Moves that keep a Student distribution in the shape of the cloud, corrected to keep the density itself.

With the mean m and covariance C of the cloud and ``1/v ~ Gamma((d + nu)/2, (nu + (x - m)' C^-1 (x - m))/2)``,

    x' = m + sqrt(1 - s^2) (x - m) + s sqrt(v) C^(1/2) z

leaves Student's t with nu degrees of freedom invariant, and is accepted as if it came from there. Near a normal density
almost every proposal is, at s near 1 and in any number of dimensions, where a random walk needs steps in proportion to
the dimension; far from one s gets small, and the moves are a random walk. Student's tails let points come back that a
normal reference would hold fast [2]_.

References
----------
.. [1] Cotter, S. L., Roberts, G. O., Stuart, A. M. and White, D. (2013). MCMC methods for functions: modifying old
   algorithms to make them faster. Statistical Science 28.
.. [2] Kamatani, K. (2018). Efficient strategy for the Markov chain Monte Carlo in high-dimension with heavy-tailed
   target probability distribution. Bernoulli 24.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.inference.ais.tempered_path import Cloud, TemperedPath, tempered
from pluri.inference.ais.transitions import Moved, Moves, better_scale, covariance_root

Array = NDArray[np.float64]
#: Share of the proposals that are shorter, and by which factor: they move points where the reference is far too low.
LOCAL, SHORTER = 0.25, 0.25


@dataclass(frozen=True)
class CrankNicolsonMoves(Moves):
    """Preconditioned Crank-Nicolson steps with a Student reference that is learned from the cloud.

    Parameters
    ----------
    scale : float, default=0.8
        Length s of a step, above 0 and at most 1, where a step is an independent proposal.
    degrees_of_freedom : float, default=5.0
        Of the reference; its tails should not be lighter than those of the target.
    mean : array (d,), optional
        Centre of the reference; learned in the pilot, as is `root`.
    root : array (d, d), optional
        Lower triangular root of its covariance.
    adapts : bool, default=True
        Whether to learn the reference and tune `scale` to an acceptance of 0.44 in one dimension, 0.234 in many.

    Examples
    --------
    >>> from pluri.inference.ais.crank_nicolson_moves import CrankNicolsonMoves
    >>> CrankNicolsonMoves(scale=0.5).retune(0.9).scale
    1.0
    """

    scale: float = 0.8
    degrees_of_freedom: float = 5.0
    mean: Array | None = None
    root: Array | None = None
    adapts: bool = True

    vectors = True
    n_tunings = 4

    def __post_init__(self) -> None:
        if not 0 < self.scale <= 1:
            raise ValueError(f"scale must be above 0 and at most 1, got {self.scale!r}")
        if not 0 < self.degrees_of_freedom < np.inf:
            raise ValueError(f"degrees_of_freedom must be positive, got {self.degrees_of_freedom!r}")

    def learn(self, x: NDArray[Any], weights: Array) -> CrankNicolsonMoves:
        """The reference from the cloud."""
        return replace(self, mean=weights @ x, root=covariance_root(x, weights, self.root)) if self.adapts else self

    def retune(self, acceptance: float) -> CrankNicolsonMoves:
        """A length nearer to the acceptance wanted."""
        if not self.adapts:
            return self
        dim = 1 if self.mean is None else len(self.mean)
        return replace(self, scale=min(self.scale * better_scale(acceptance, 0.234 + 0.206 / dim), 1.0))

    def move(self, rng: np.random.Generator, path: TemperedPath, beta: float, cloud: Cloud, n_steps: int) -> Moved:
        """`n_steps` proposals for every point."""
        x, base, gain = (part.copy() for part in cloud)
        n, dim = x.shape
        mean = np.zeros(dim) if self.mean is None else self.mean
        root = np.eye(dim) if self.root is None else self.root
        freedom = self.degrees_of_freedom
        # In coordinates y with x = mean + root y the reference is spherical.
        y = np.linalg.solve(root, (x - mean).T).T
        square = np.square(y).sum(axis=1)
        current = tempered(base, gain, beta) + _excess(square, dim, freedom)
        n_accepted = undefined = uncovered = 0
        for _ in range(n_steps):
            length = self.scale * np.where(rng.random(n) < LOCAL, SHORTER, 1.0)
            spread = length * np.sqrt(0.5 * (freedom + square) / rng.standard_gamma(0.5 * (dim + freedom), n))
            proposed = np.sqrt(1.0 - length**2)[:, None] * y + spread[:, None] * rng.standard_normal((n, dim))
            points = mean + proposed @ root.T
            seen = path.evaluate(points)
            new_square = np.square(proposed).sum(axis=1)
            density = tempered(seen.base, seen.gain, beta) + _excess(new_square, dim, freedom)
            accepted = density - current > -rng.standard_exponential(n)  # False for NaN: both densities zero
            np.copyto(x, points, where=accepted[:, None])
            np.copyto(y, proposed, where=accepted[:, None])
            for old, new in ((base, seen.base), (gain, seen.gain), (current, density), (square, new_square)):
                np.copyto(old, new, where=accepted)
            n_accepted += int(np.count_nonzero(accepted))
            undefined += seen.undefined
            uncovered += seen.uncovered
        count = n * n_steps
        return Moved(Cloud(x, base, gain), n_accepted / count, count, undefined, uncovered)


def _excess(square: Array, dim: int, freedom: float) -> Array:
    """Minus the log density of the reference, up to a constant."""
    values: Array = 0.5 * (dim + freedom) * np.log1p(square / freedom)
    return values
