"""Markov chains over subsets as kernels that `pluri.inference.mcmc.sample` runs.

The position of a chain is ``{"included": ...}``, 1 for the items of the set. One step of a kernel makes `n_inner`
elementary steps in compiled code, so that a draw is worth the Python around it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pluri.processes.dpp.samplers.chain_walk import RULES, Steps, Target, Walk, advance, start_walk, target_of

Rule = Literal["heat_bath", "metropolis"]


@dataclass(frozen=True, eq=False)
class SubsetState:
    """Where a chain over subsets is.

    Attributes
    ----------
    included : (n_items,) int8
        1 for the items of the set.
    log_density : float
        Log determinant of the kernel over the set.
    walk : Walk
        The set with the inverse of its kernel.
    """

    included: NDArray[np.int8]
    log_density: float
    walk: Walk

    @property
    def position(self) -> dict[str, NDArray[np.int8]]:
        """The set by name."""
        return {"included": self.included}


def _state(walk: Walk) -> SubsetState:
    return SubsetState((walk.place >= 0).astype(np.int8), walk.log_det, walk)


class _SubsetKernel(ABC):
    """What the kernels share: `kernel`, `n_inner` and `_steps` say what they do."""

    kernel: Any
    n_inner: int | None

    @cached_property
    def _target(self) -> Target:
        return target_of(self.kernel)

    @property
    @abstractmethod
    def _steps(self) -> Steps: ...

    def init(self, rng: np.random.Generator, position: Mapping[str, Any]) -> SubsetState:
        """State at the set ``position["included"]``."""
        n_items = self._target.n_items
        steps = self._steps
        if steps.rule not in RULES:
            raise ValueError(f"rule must be 'heat_bath' or 'metropolis', got {steps.rule!r}")
        if self.n_inner is not None and (not isinstance(self.n_inner, int | np.integer) or self.n_inner < 1):
            raise ValueError(f"n_inner must be a whole number of at least 1, got {self.n_inner!r}")
        included = np.asarray(position["included"])
        if included.shape != (n_items,) or not np.isin(included, (0, 1)).all():
            raise ValueError(f"included must be {n_items} values 0 or 1, one for each item, got {included!r}")
        return _state(start_walk(self._target, np.flatnonzero(included)))

    def step(self, rng: np.random.Generator, state: SubsetState) -> tuple[SubsetState, dict[str, float]]:
        """`n_inner` elementary steps."""
        n_steps = self._target.n_items if self.n_inner is None else self.n_inner
        walk = state.walk.copy()
        walk.start_counting()
        if len(self._target.candidates):
            advance(self._target, walk, self._steps, rng.random((n_steps, 3)))
        info = {
            "acceptance": walk.summed_acceptance / n_steps,
            "accepted": walk.n_accepted / n_steps,
            "n_evaluations": float(n_steps),
            "size": float(walk.size),
        }
        return _state(walk), info

    def adaptation(self, n_warmup: int) -> None:
        """Nothing to learn."""
        return None


@dataclass(frozen=True, eq=False)
class AddDelete(_SubsetKernel):
    """Items join and leave the set of a determinantal point process, one at a time.

    An item is proposed uniformly. With r the ratio of the determinants after and before its flip, it is flipped with
    probability r / (1 + r) (heat bath) or min(1, r) (Metropolis). Where the kernel is near the identity Metropolis
    flips at every step, so that the parity of the size is never forgotten: make it lazy, or keep the heat bath.

    Parameters
    ----------
    kernel : KernelForm or array-like of shape (n_items, n_items)
        The kernel L.
    rule : {"heat_bath", "metropolis"}, default="heat_bath"
    lazy : bool, default=False
        Do nothing half of the time.
    swaps : bool, default=False
        Make every other step, at random, a swap of an item for another.
    n_inner : int, optional
        Elementary steps in a step; as many as there are items by default.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference import mcmc
    >>> from pluri.processes.dpp import AddDelete
    >>> L = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> trace = mcmc.sample(AddDelete(L), {"included": [0, 0]}, n_draws=2000, n_warmup=10, random_state=0)
    >>> bool(np.allclose(trace.flat("included").mean(axis=0), 5 / 8, atol=0.03))
    True
    """

    kernel: Any
    rule: Rule = "heat_bath"
    lazy: bool = False
    swaps: bool = False
    n_inner: int | None = None

    @property
    def _steps(self) -> Steps:
        return Steps("flip or swap" if self.swaps else "flip", self.rule, self.lazy)


@dataclass(frozen=True, eq=False)
class Exchange(_SubsetKernel):
    """Items of a set of fixed size are exchanged for others: the chain of a k-DPP.

    An item of the set and any item are proposed uniformly (nothing happens if the latter is in the set already), and
    the exchange is accepted by the ratio of the determinants. The size is that of the set to start with.

    Parameters
    ----------
    kernel : KernelForm or array-like of shape (n_items, n_items)
        The kernel L.
    rule : {"metropolis", "heat_bath"}, default="metropolis"
    lazy : bool, default=False
        Do nothing half of the time.
    n_inner : int, optional
        Elementary steps in a step; as many as there are items by default.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference import mcmc
    >>> from pluri.processes.dpp import Exchange
    >>> L = np.diag([1.0, 2.0, 3.0])
    >>> trace = mcmc.sample(Exchange(L), {"included": [1, 0, 0]}, n_draws=2000, n_warmup=10, random_state=0)
    >>> bool(np.allclose(trace.flat("included").mean(axis=0), [1 / 6, 1 / 3, 1 / 2], atol=0.03))
    True
    """

    kernel: Any
    rule: Rule = "metropolis"
    lazy: bool = False
    n_inner: int | None = None

    @property
    def _steps(self) -> Steps:
        return Steps("swap", self.rule, self.lazy)
