"""How documents use the ways of a Pachinko allocation, and the priors of the shares that this supports.

The priors that make the states of the tokens most probable are found by Minka's fixed point [1]_, now and then during
the warm-up.

References
----------
.. [1] Minka, T. (2000). Estimating a Dirichlet distribution. Technical report, MIT.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pluri.topics.dirichlet_counts import CountTable, fixed_point
from pluri.topics.documents import Tokens

if TYPE_CHECKING:
    from pluri.topics.hierarchical.pachinko_gibbs import PachinkoGibbs, PachinkoState

Array = NDArray[np.float64]
#: Sweeps before priors are first learned, from one time to the next, and fixed-point steps each time.
FIRST_LEARNED, INTERVAL, N_STEPS = 20, 10, 10
#: Added to the documents that speak for a place: what is never used keeps a chance.
PSEUDO_COUNT = 1e-3


@dataclass(frozen=True, eq=False)
class Uses:
    """How many tokens documents have in each place.

    Attributes
    ----------
    upper : CountTable
        Tokens by {exit, super-topics}; a row is a document.
    lower : CountTable
        Tokens by {exit, sub-topics} of each super-topic; a row is a document that has tokens there.
    """

    upper: CountTable
    lower: CountTable

    @classmethod
    def of(cls, tokens: Tokens, supers: NDArray[np.int32], subs: NDArray[np.int32], n_super: int, n_sub: int) -> Uses:
        """Count the states of all tokens."""
        from pluri.topics.hierarchical._pachinko_kernels import list_uses

        n_places, lengths = n_sub + 1, np.diff(tokens.offsets)
        found = np.empty((4, tokens.n_tokens), dtype=np.int32)
        n_used, n_ways = list_uses(
            tokens.offsets, supers, subs, np.zeros(n_super + 1, dtype=np.int32),
            np.zeros((n_super + 1, n_places), dtype=np.int32), np.empty(n_super + 1, dtype=np.int32),
            np.empty(min((n_super + 1) * n_places, int(lengths.max(initial=0))), dtype=np.int32), *found,
        )  # fmt: skip
        (used, held), (ways, taken) = found[:2, :n_used], found[2:, :n_ways]
        upper = CountTable.of(used, held, lengths, n_super + 1)
        rows = used > 0
        lower = CountTable.of(
            ways, taken, held[rows], n_super * n_places, groups=used[rows] - 1, n_groups=n_super
        )  # fmt: skip
        return cls(upper, lower)

    def log_marginal(self, root_prior: Array, sub_prior: Array) -> float:
        """Log probability of the states given the priors."""
        return self.upper.log_likelihood(root_prior) + self.lower.log_likelihood(sub_prior.ravel())

    def learn(self, name: str, prior: Array, n_steps: int = N_STEPS) -> Array:
        """Some steps of the fixed point for "root_prior" or "sub_prior"."""
        table = self.upper if name == "root_prior" else self.lower
        moved = fixed_point(prior.ravel(), table, shape=1.0 + PSEUDO_COUNT, max_iter=n_steps, tol=0.0, smallest=0.0)
        return moved.reshape(prior.shape)


class PriorLearning:
    """Learns the priors of the shares while a chain warms up."""

    def __init__(self) -> None:
        self.done = 0

    def start(self, rng: np.random.Generator, kernel: PachinkoGibbs, state: PachinkoState) -> PachinkoGibbs:
        """Begin with the priors that were given."""
        return kernel

    def update(
        self, rng: np.random.Generator, kernel: PachinkoGibbs, state: PachinkoState, info: Mapping[str, float]
    ) -> PachinkoGibbs:
        """Learn now and then, when topics have taken shape."""
        self.done += 1
        if self.done < FIRST_LEARNED or self.done % INTERVAL or state.uses is None:
            return kernel
        priors: Any = {name: state.uses.learn(name, getattr(kernel, name)) for name in kernel.learned}
        return replace(kernel, **priors)

    def finish(self, kernel: PachinkoGibbs) -> PachinkoGibbs:
        """Keep what was learned."""
        return kernel
