"""Draws of a compiled walk over subsets under the driver of all chains.

A step of the kernel is `thin` elementary steps in compiled code, and a round of the driver makes all its draws there:
so a draw costs little more than its elementary steps. The draws are what is followed (``"log_det"``, ``"size"`` and
``"items"``, a random weighting of the items) and the subset itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from pluri.inference import mcmc
from pluri.processes.dpp.kernel_forms import Array, IntArray
from pluri.processes.dpp.samplers.chain_walk import Records, Steps, Target, Walk, run_walk, start_walk
from pluri.validation import RandomState

#: Draws of a chain below which it is not judged: a few are few by wish, and R-hat of independent ones is far from 1.
ENOUGH_DRAWS = 100
#: What chains are judged by.
FOLLOWED = ("log_det", "size", "items")


@dataclass(frozen=True, eq=False)
class Subset:
    """A drawn subset; in an object of its own, as draws are stacked and subsets are of different sizes."""

    items: IntArray


class WalkState(NamedTuple):
    """Where a walk is at a draw; `walk` is the walk itself, or None if it has moved on since."""

    subset: Subset
    log_density: float
    mark_sum: float
    walk: Walk | None

    @property
    def position(self) -> dict[str, Any]:
        """What is drawn."""
        size = len(self.subset.items)
        return {"log_det": self.log_density, "size": size, "items": self.mark_sum, "subset": self.subset}


@dataclass(frozen=True, eq=False)
class SubsetWalk:
    """Kernel of chains over subsets that makes `thin` elementary steps for a draw; positions to begin with are walks.

    Attributes
    ----------
    target : Target
    steps : Steps
    thin : int
    marks : (n_items,), a number for each item, whose sum over the subset is followed
    """

    target: Target
    steps: Steps
    thin: int
    marks: Array

    def init(self, rng: np.random.Generator, position: Walk) -> WalkState:
        """State of a walk."""
        mark_sum = float(self.marks[position.subset].sum())
        return WalkState(Subset(position.subset), position.log_det, mark_sum, position)

    def step(self, rng: np.random.Generator, state: WalkState) -> tuple[WalkState, dict[str, float]]:
        """One draw."""
        walk, records = self._begin(state, 1)
        run_walk(self.target, walk, self.steps, self.thin, rng, self.thin, records)
        (state,) = _states(records, walk)
        return state, _info(walk)

    def advance_together(self, books: Sequence[Any], n_steps: int) -> None:
        """Many draws of each chain at once; Ctrl-C keeps those that are complete."""
        for book in books:
            walk, records = self._begin(book.state, n_steps)
            try:
                run_walk(self.target, walk, self.steps, n_steps * self.thin, book.rng, self.thin, records)
            finally:
                info = _info(walk)
                # A walk that was interrupted may be anywhere: a chain goes on from the subset that it drew last.
                for state in _states(records, walk if records.made == n_steps else None):
                    book.took(state, info)

    def _begin(self, state: WalkState, n_draws: int) -> tuple[Walk, Records]:
        """A walk of its own that goes on from a state, and room for what it draws."""
        items = state.subset.items
        walk = start_walk(self.target, items, self.marks) if state.walk is None else state.walk.copy()
        return walk, Records.empty(n_draws, with_items=True, expected_size=len(items))

    def warm(self, begin: IntArray, n_warmup: int) -> Callable[[np.random.Generator], Walk]:
        """What gives a chain its walk, from a subset and after steps of its own random stream."""

        def initial(rng: np.random.Generator) -> Walk:
            walk = start_walk(self.target, begin, self.marks)
            run_walk(self.target, walk, self.steps, n_warmup, rng)
            return walk

        return initial

    def adaptation(self, n_warmup: int) -> None:
        """Nothing to learn."""
        return


def _states(records: Records, walk: Walk | None) -> list[WalkState]:
    """The draws of a run, of which the last has the walk."""
    followed = zip(records.subsets(), records.log_dets.tolist(), records.mark_sums.tolist())
    states = [WalkState(Subset(items), log_det, mark_sum, None) for items, log_det, mark_sum in followed]
    if states:
        states[-1] = states[-1]._replace(walk=walk)
    return states


def _info(walk: Walk) -> dict[str, float]:
    n_steps = max(walk.n_steps, 1)
    return {"acceptance": walk.summed_acceptance / n_steps, "accepted": walk.n_accepted / n_steps}


class ChainDraws(NamedTuple):
    """Subsets, all of the first chain before those of the second, and the trace of what was followed."""

    subsets: list[IntArray]
    trace: mcmc.Trace


def verdict_of(trace: mcmc.Trace, *names: str) -> mcmc.Verdict:
    """Whether chains agree, by what is followed or by `names`; they do as long as there are too few draws to tell."""
    if trace.n_draws < ENOUGH_DRAWS:
        return mcmc.judge({}, mcmc.LATENT_R_HAT_LIMIT)
    return trace.verdict(*(names or FOLLOWED), limit=mcmc.LATENT_R_HAT_LIMIT)


def draw_chains(
    kernel: SubsetWalk, initial: Callable[[np.random.Generator], Walk], n_draws: int, n_warmup: int, n_chains: int,
    random_state: RandomState,
) -> ChainDraws:  # fmt: skip
    """Run chains from walks that are warm.

    Parameters
    ----------
    kernel : SubsetWalk
    initial : callable
        Random stream of a chain to its walk, which has made `n_warmup` steps.
    n_draws, n_warmup, n_chains : int
    random_state : int, Generator or None
    """
    trace = mcmc.sample(
        kernel, initial, n_draws=n_draws, n_warmup=0, n_chains=n_chains, random_state=random_state, warn=False
    )
    subsets = [subset.items for subset in trace["subset"].ravel()]
    draws = {name: values for name, values in trace.draws.items() if name != "subset"}
    return ChainDraws(subsets, replace(trace, draws=draws, ends=(), n_warmup=n_warmup, thin=kernel.thin))
