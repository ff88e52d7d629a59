"""What a Markov chain is made of: a kernel, its state, what it tells about a step, and how it is tuned.

A kernel is a frozen record of a target and of settings (a step size, a mass matrix). ``init`` gives the state of a
chain at a position, ``step`` moves it so that the target stays invariant. During warm-up an `Adaptation` watches the
steps and gives back a kernel with better settings; afterwards the settings stand still, as invariance needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

#: Where a chain is: a vector, or arrays by name (the blocks of a Gibbs sampler).
Position = NDArray[Any] | Mapping[str, NDArray[Any]]
#: What a step tells, number by name; the same names at every step. Names that all kernels share: ``acceptance``
#: (probability of acceptance, or its mean over the step), ``accepted``, ``n_evaluations``, ``divergent``.
Info = Mapping[str, float]


class State(Protocol):
    """The state of a chain: its position, the log density there, and whatever else a kernel wants to keep."""

    @property
    def position(self) -> Any:
        """Where the chain is."""

    @property
    def log_density(self) -> float:
        """Log density of the target at the position, up to a constant."""


class Kernel(Protocol):
    """A transition that leaves a target invariant."""

    def init(self, rng: np.random.Generator, position: Any) -> Any:
        """State at a position; ValueError if the target is not finite there."""

    def step(self, rng: np.random.Generator, state: Any) -> tuple[Any, Info]:
        """One transition: the new state and what happened."""

    def adaptation(self, n_warmup: int) -> Adaptation | None:
        """How the settings are learned in `n_warmup` steps; None if there is nothing to learn."""


class Adaptation(Protocol):
    """Learns the settings of a kernel while a chain warms up. One object serves one chain."""

    def start(self, rng: np.random.Generator, kernel: Any, state: Any) -> Any:
        """Before the first step: the kernel to begin with."""

    def update(self, rng: np.random.Generator, kernel: Any, state: Any, info: Info) -> Any:
        """After each step; `state` is the one just reached."""

    def finish(self, kernel: Any) -> Any:
        """After the last step of the warm-up: the kernel that makes the draws."""


class CountAfterWarmup:
    """Adaptation of a kernel that only has to know when its draws begin: its field ``counting`` is then True.

    For kernels whose states sum up something too large to be recorded at each draw.
    """

    def start(self, rng: np.random.Generator, kernel: Any, state: Any) -> Any:
        """Count nothing yet."""
        return replace(kernel, counting=False)

    def update(self, rng: np.random.Generator, kernel: Any, state: Any, info: Info) -> Any:
        """Nothing is tuned."""
        return kernel

    def finish(self, kernel: Any) -> Any:
        """From here on everything counts."""
        return replace(kernel, counting=True)
