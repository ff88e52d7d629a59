"""Moves of a whole cloud of points, each of which leaves the density ``f_b`` of a path invariant.

A `Moves` record is frozen: ``move`` applies it to all points at a time. Settings are learned in a pilot (``learn`` the
shape of the cloud, ``retune`` the length of steps from the acceptance) and then stand still. Annealing needs only
invariance, not detailed balance: so cycles of steps of several lengths are allowed.

References
----------
.. [1] Neal, R. M. (2001). Annealed importance sampling. Statistics and Computing 11.
.. [2] Roberts, G. O. and Rosenthal, J. S. (2001). Optimal scaling for various Metropolis-Hastings algorithms.
   Statistical Science 16.
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.inference.ais.tempered_path import Cloud, TemperedPath, tempered

Array = NDArray[np.float64]


class Moved(NamedTuple):
    """Where a cloud went.

    Attributes
    ----------
    cloud : Cloud
    acceptance : float, mean over points and steps
    n_evaluations : int, of the log densities, over all points
    undefined, uncovered : int, proposals where a density was NaN or +inf; where the target had density, the prior none
    """

    cloud: Cloud
    acceptance: float
    n_evaluations: int
    undefined: int = 0
    uncovered: int = 0


class Moves(ABC):
    """What all moves share. `adapts` tells whether a pilot has something to learn."""

    adapts = False
    #: Whether points must be vectors of real numbers.
    vectors = False
    #: Steps that a pilot needs at each temperature to tune the settings.
    n_tunings = 1

    @abstractmethod
    def move(self, rng: np.random.Generator, path: TemperedPath, beta: float, cloud: Cloud, n_steps: int) -> Moved:
        """Apply the transition `n_steps` times to every point."""

    def learn(self, x: NDArray[Any], weights: Array) -> Moves:
        """These moves in the shape of a weighted cloud."""
        return self

    def retune(self, acceptance: float) -> Moves:
        """These moves, shorter or longer."""
        return self

    def settle(self, rng: np.random.Generator, beta: float, cloud: Cloud) -> Moves:
        """These moves with whatever they learn at one temperature from a chain of their own."""
        return self

    def tune(
        self, rng: np.random.Generator, path: TemperedPath, beta: float, cloud: Cloud, n_steps: int
    ) -> tuple[Moves, Cloud]:
        """Move a pilot cloud while adapting after every step: the moves to keep, and where the cloud went."""
        moves = self.settle(rng, beta, cloud)
        for _ in range(n_steps):
            moved = moves.move(rng, path, beta, cloud, 1)
            cloud, moves = moved.cloud, moves.retune(moved.acceptance)
        return moves, cloud


@dataclass(frozen=True)
class IdentityMoves(Moves):
    """Stay where you are: allowed, as any density is invariant, and the estimate is then plain importance sampling."""

    def move(self, rng: np.random.Generator, path: TemperedPath, beta: float, cloud: Cloud, n_steps: int) -> Moved:
        """The same cloud."""
        return Moved(cloud, math.nan, 0)


@dataclass(frozen=True)
class RandomWalkMoves(Moves):
    """Random-walk Metropolis: ``x' = x + s L z``, accepted with probability ``min(1, f_b(x') / f_b(x))``.

    Parameters
    ----------
    step_sizes : sequence of float, optional
        Standard deviations s, one proposal each in turn: one step is the whole cycle. None: one size, tuned to an
        acceptance of 0.44 in one dimension and 0.234 in many.
    root : array (d, d), optional
        L; the identity if sizes are given, else the root of the cloud's covariance, learned in the pilot.

    Examples
    --------
    >>> from pluri.inference.ais.transitions import RandomWalkMoves
    >>> RandomWalkMoves(step_sizes=(0.05, 0.15, 0.5)).adapts
    False
    """

    step_sizes: Sequence[float] | None = None
    root: Array | None = None
    scale: float | None = None

    vectors = True
    n_tunings = 4

    def __post_init__(self) -> None:
        if self.step_sizes is not None:
            sizes = np.atleast_1d(np.asarray(self.step_sizes, dtype=np.float64))
            if sizes.ndim != 1 or not sizes.size or not ((sizes > 0) & np.isfinite(sizes)).all():
                raise ValueError(f"step_sizes must be positive numbers, got {self.step_sizes!r}")
            object.__setattr__(self, "step_sizes", tuple(sizes.tolist()))

    @property
    def adapts(self) -> bool:  # type: ignore[override]
        """Whether the size is to be tuned."""
        return self.step_sizes is None

    def learn(self, x: NDArray[Any], weights: Array) -> RandomWalkMoves:
        """Proposals in the shape of the cloud."""
        return replace(self, root=covariance_root(x, weights, self.root)) if self.adapts else self

    def retune(self, acceptance: float) -> RandomWalkMoves:
        """A size nearer to the acceptance wanted."""
        if not self.adapts or self.root is None:
            return self
        dim = len(self.root)
        return replace(self, scale=self._scale(dim) * better_scale(acceptance, 0.234 + 0.206 / dim))

    def _scale(self, dim: int) -> float:
        return self.scale if self.scale is not None else 2.38 / math.sqrt(dim)

    def move(self, rng: np.random.Generator, path: TemperedPath, beta: float, cloud: Cloud, n_steps: int) -> Moved:
        """`n_steps` cycles of proposals."""
        x, base, gain = (part.copy() for part in cloud)
        current = tempered(base, gain, beta).copy()
        n, dim = x.shape
        sizes = self.step_sizes if self.step_sizes is not None else (self._scale(dim),)
        n_accepted = undefined = uncovered = 0
        for _ in range(n_steps):
            for size in sizes:
                noise = rng.standard_normal((n, dim))
                proposal = x + size * (noise if self.root is None else noise @ self.root.T)
                seen = path.evaluate(proposal)
                density = tempered(seen.base, seen.gain, beta)
                accepted = density - current > -rng.standard_exponential(n)  # False for NaN: both densities zero
                np.copyto(x, proposal, where=accepted[:, None])
                np.copyto(base, seen.base, where=accepted)
                np.copyto(gain, seen.gain, where=accepted)
                np.copyto(current, density, where=accepted)
                n_accepted += int(np.count_nonzero(accepted))
                undefined += seen.undefined
                uncovered += seen.uncovered
        count = n * n_steps * len(sizes)
        return Moved(Cloud(x, base, gain), n_accepted / count, count, undefined, uncovered)


def covariance_root(x: NDArray[Any], weights: Array, before: Array | None = None) -> Array:
    """Lower triangular root (d, d) of the covariance of weighted points.

    It is shrunk towards the one `before` (or its own diagonal) as if that had been seen d times, so that a cloud of
    few different points does not collapse the proposals.
    """
    dim = x.shape[1]
    centred = x - weights @ x
    covariance = (weights[:, None] * centred).T @ centred
    known = before @ before.T if before is not None else np.diag(np.maximum(np.diagonal(covariance), 1e-300))
    n_effective = 1.0 / float(np.square(weights).sum())
    blended = (n_effective * covariance + dim * known) / (n_effective + dim)
    # Rounding may make a nearly flat cloud indefinite: raise the diagonal until a root exists.
    for lift in (0.0, 1e-12, 1e-9, 1e-6, 1e-3):
        try:
            return np.linalg.cholesky(blended + np.diag(lift * np.diagonal(blended)))
        except np.linalg.LinAlgError:
            continue
    return np.diag(np.sqrt(np.diagonal(blended)))


def better_scale(acceptance: float, target: float, power: float = 1.0) -> float:
    """Factor for a step size, from the diffusion limit: acceptance ``2 Phi(-c s^power / 2)``.

    Examples
    --------
    >>> from pluri.inference.ais.transitions import better_scale
    >>> better_scale(0.234, 0.234), better_scale(0.9, 0.234) > 1, better_scale(0.0, 0.234)
    (1.0, True, 0.2)
    """
    if math.isnan(acceptance):
        return 1.0
    normal = NormalDist()
    bounded = min(max(acceptance, 1e-6), 1.0 - 1e-6)
    ratio = normal.inv_cdf(0.5 * target) / normal.inv_cdf(0.5 * bounded)
    return float(min(max(ratio ** (1.0 / power), 0.2), 5.0))


def as_moves(transition: Any) -> Moves:
    """Moves by name, by record, by a function ``(rng, x, beta) -> x`` or by a factory ``beta -> kernel``."""
    if isinstance(transition, Moves):
        return transition
    if isinstance(transition, str):
        if transition == "slice":
            from pluri.inference.ais.slice_moves import SliceMoves

            return SliceMoves()
        if transition == "hmc":
            from pluri.inference.ais.hamiltonian_moves import HamiltonianMoves

            return HamiltonianMoves()
        if transition == "pcn":
            from pluri.inference.ais.crank_nicolson_moves import CrankNicolsonMoves

            return CrankNicolsonMoves()
        if transition in ("mh", "identity"):
            return RandomWalkMoves() if transition == "mh" else IdentityMoves()
    elif callable(transition):
        from pluri.inference.ais.kernel_moves import FunctionMoves, KernelMoves

        n_arguments = _positional(transition)
        if n_arguments == 1:
            return KernelMoves(transition)
        if n_arguments == 3:
            return FunctionMoves(transition)
    raise ValueError(
        "transition must be 'pcn', 'mh', 'slice', 'hmc', 'identity', a Moves record, a function (rng, x, beta) -> x of "
        f"all points, or a function beta -> kernel, got {transition!r}"
    )


def _positional(function: Callable[..., Any]) -> int:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some built-in functions have no signature
        return 3
    return sum(parameter.kind in kinds and parameter.default is parameter.empty for parameter in parameters)
