"""Which transitions a chain may make at all, and starting values for a chain that goes one way.

EM keeps a probability of zero for ever, so a topology is nothing but zeros in the starting values:

    left-right   from a state to itself or to any later one; state 0 comes first
    cyclic       from a state to itself or to the next one, and from the last to the first; any state may come first
    a mask       whatever it says; any state may come first
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import structural_rank

from pluri.components.chain.forward_backward import BLOCK
from pluri.components.family import ComponentFamily, P
from pluri.engine import Batch, Source, map_reduce
from pluri.engine.aligned import padded_width

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

TOPOLOGIES = ("ergodic", "left-right", "cyclic")
#: Concentration of the random shares of a sequence that the states of a left-right chain start from.
SHARES = 10.0


@dataclass(frozen=True)
class Topology:
    """States that may come first (k,), transitions that may happen (k, k), and whether the chain goes one way."""

    start: Mask
    transition: Mask
    one_way: bool = False

    @property
    def n_free(self) -> int:
        """Number of free start and transition probabilities."""
        return int(self.start.sum()) - 1 + int(self.transition.sum()) - len(self.start)

    def refuse_outside(self, start: Array | None, transition: Array | None, suffix: str = "_") -> None:
        """Refuse probabilities that are positive where the topology has none."""
        if start is not None and (outside := np.flatnonzero((start > 0) & ~self.start)).size:
            state = int(outside[0])
            raise ValueError(
                f"startprob{suffix} must be zero where topology lets no sequence start, got {start[state]:g} for state "
                f"{state}"
            )
        if transition is not None and (pairs := np.argwhere((transition > 0) & ~self.transition)).size:
            i, j = pairs[0].tolist()
            raise ValueError(
                f"transmat{suffix} must be zero where topology forbids a transition, got {transition[i, j]:g} from "
                f"state {i} to state {j}"
            )

    def masked(self, start: Array, transition: Array) -> tuple[Array, Array]:
        """Probabilities with nothing outside the topology, rows that sum to one."""
        start, transition = np.where(self.start, start, 0.0), np.where(self.transition, transition, 0.0)
        return start / start.sum(), transition / transition.sum(axis=1, keepdims=True)


def as_topology(value: Any, n_components: int) -> Topology | None:
    """The topology that a user names or draws; None if every transition is allowed."""
    k = n_components
    anywhere = np.ones(k, dtype=bool)
    if isinstance(value, str):
        if value == "ergodic":
            return None
        if value == "left-right":
            return Topology(np.arange(k) == 0, np.triu(np.ones((k, k), dtype=bool)), one_way=True)
        if value == "cyclic":
            return Topology(anywhere, np.eye(k, dtype=bool) | np.roll(np.eye(k, dtype=bool), 1, axis=1))
    mask = None if value is None or isinstance(value, str) else np.asarray(value)
    if mask is None or mask.dtype.kind not in "biuf":
        raise ValueError(f"topology must be one of {TOPOLOGIES} or a mask (n_components, n_components), got {value!r}")
    if mask.shape != (k, k):
        raise ValueError(f"topology, a mask, must have shape ({k}, {k}), got {mask.shape}")
    if not np.isin(mask, (0, 1)).all():
        raise ValueError("topology, a mask, must hold nothing but 0 and 1 (or False and True)")
    mask = mask.astype(bool)
    if not mask.any(axis=1).all():
        raise ValueError(
            f"topology, a mask, must allow a transition from every state, got none from state "
            f"{int(np.argmin(mask.any(axis=1)))}"
        )
    return None if mask.all() else Topology(anywhere, mask)


def check_diverse(topology: Topology) -> None:
    """Refuse a mask that leaves a determinantal prior no rows to tell apart."""
    k = len(topology.start)
    if structural_rank(csr_array(topology.transition)) < k:
        raise ValueError(
            "diversity must be None with this topology: it allows no linearly independent rows of the transition matrix"
        )


def segmented(
    emission: ComponentFamily[P, Any], parameters: P, source: Source, n_components: int, rng: np.random.Generator
) -> P:
    """Emissions of a left-right chain to start from: each sequence is cut into as many parts as there are states.

    The parts are nearly equal, at random and alike in all sequences: clusters of the rows would come in no order.
    """
    ends = np.cumsum(rng.dirichlet(np.full(n_components, SHARES)))[:-1]
    return emission.maximize(map_reduce(partial(_accumulate, emission, parameters, ends), source), parameters)


def _accumulate(emission: ComponentFamily[P, Any], parameters: P, ends: Array, batch: Batch) -> Any:
    lengths = np.diff(batch.offsets)
    weight = np.ones(batch.n_sequences) if batch.weight is None else batch.weight
    place = np.arange(batch.n_samples) - np.repeat(batch.offsets[:-1], lengths)
    part = np.searchsorted(ends, (place + 0.5) / np.repeat(lengths, lengths), side="right")
    row_weight = np.repeat(weight, lengths)
    parts = []
    for begin in range(0, max(batch.n_samples, 1), BLOCK):
        rows = slice(begin, min(begin + BLOCK, batch.n_samples))
        posterior = np.zeros((rows.stop - begin, padded_width(len(ends) + 1)))
        posterior[np.arange(len(posterior)), part[rows]] = row_weight[rows]
        parts.append(emission.accumulate(parameters, emission.prepare(batch.X[rows]), posterior))
    return reduce(add, parts)
