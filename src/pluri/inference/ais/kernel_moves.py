"""Moves by code that knows nothing of annealing: a function of all points, or a Markov chain kernel for each."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.inference.ais.tempered_path import Cloud, TemperedPath, tempered
from pluri.inference.ais.transitions import Moved, Moves

#: Steps in which a kernel learns its settings at one temperature.
KERNEL_WARMUP = 100


@dataclass(frozen=True)
class FunctionMoves(Moves):
    """Moves by a function ``move(rng, x, beta) -> x`` of all points (n, ...); for discrete states, Gibbs sweeps, ..."""

    function: Callable[[np.random.Generator, NDArray[Any], float], Any]

    def move(self, rng: np.random.Generator, path: TemperedPath, beta: float, cloud: Cloud, n_steps: int) -> Moved:
        """Call the function `n_steps` times."""
        x = cloud.x
        for _ in range(n_steps):
            new = np.asarray(self.function(rng, x.copy(), beta))
            if new.shape != x.shape:
                raise ValueError(f"transition must give points of the same shape {x.shape}, got {new.shape}")
            x = new
        changed = (x != cloud.x).reshape(len(x), -1).any(axis=1)
        return arrived(path, beta, cloud, x, float(changed.mean()), len(x) * n_steps)


@dataclass(frozen=True)
class KernelMoves(Moves):
    """Moves by a kernel of :mod:`pluri.inference.mcmc`, run by run.

    Parameters
    ----------
    factory : callable
        ``factory(beta)`` gives the kernel that leaves ``f_b`` invariant.
    kernel : Kernel, optional
        The tuned kernel of one temperature; found in the pilot.
    """

    factory: Callable[[float], Any]
    kernel: Any = None

    adapts = True

    def move(self, rng: np.random.Generator, path: TemperedPath, beta: float, cloud: Cloud, n_steps: int) -> Moved:
        """`n_steps` steps of a chain from each point; points of density zero stay."""
        kernel = self.kernel if self.kernel is not None else self.factory(beta)
        x = cloud.x.copy()
        rates, n_evaluations = [], 0
        for row in np.flatnonzero(cloud.log_density(beta) > -np.inf):
            state = kernel.init(rng, cloud.x[row])
            for _ in range(n_steps):
                state, info = kernel.step(rng, state)
                rates.append(info.get("acceptance", math.nan))
                n_evaluations += int(info.get("n_evaluations", 1))
            x[row] = state.position
        return arrived(path, beta, cloud, x, float(np.mean(rates)) if rates else math.nan, n_evaluations)

    def settle(self, rng: np.random.Generator, beta: float, cloud: Cloud) -> KernelMoves:
        """Let the kernel adapt on a chain from one of the points."""
        kernel = self.factory(beta)
        rows = np.flatnonzero(cloud.log_density(beta) > -np.inf)
        adaptation = kernel.adaptation(KERNEL_WARMUP) if len(rows) else None
        if adaptation is not None:
            state = kernel.init(rng, cloud.x[rng.choice(rows)])
            kernel = adaptation.start(rng, kernel, state)
            for _ in range(KERNEL_WARMUP):
                state, info = kernel.step(rng, state)
                kernel = adaptation.update(rng, kernel, state, info)
            kernel = adaptation.finish(kernel)
        return replace(self, kernel=kernel)


def arrived(
    path: TemperedPath, beta: float, before: Cloud, x: NDArray[Any], acceptance: float, n_evaluations: int
) -> Moved:
    """Evaluate where foreign code moved the points; refuse moves to where the density is zero."""
    seen = path.evaluate(x)
    lost = (before.log_density(beta) > -np.inf) & (tempered(seen.base, seen.gain, beta) == -np.inf)
    if lost.any():
        raise ValueError(
            f"transition moved {int(lost.sum())} of {len(x)} points to where the density at beta = {beta:.4g} is zero "
            "or undefined: it does not leave that density invariant"
        )
    return Moved(Cloud(x, seen.base, seen.gain), acceptance, n_evaluations, seen.undefined, seen.uncovered)
