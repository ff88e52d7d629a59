"""What chains of the HDP sampler do besides in the first part of their warm-up, to come to good topics soon."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pluri.topics.hdp.gibbs import TopicGibbs

#: Parts of the warm-up before tables move, and in which topics are dissolved; the rest is as the draws are.
STILL, DISSOLVING = 0.5, 0.75
#: Share of the topics that each sweep tries to do without.
SHARE = 0.1


@dataclass
class WarmUp:
    """Adaptation of :class:`TopicGibbs`: topics are dissolved, which does not keep the posterior, and tables come late.

    The first topics mix the words of many. Tables that were free to leave them would make topics of single documents,
    of which it takes many sweeps to be rid again.

    Parameters
    ----------
    n_warmup : int
    table_share : float
        Of the kernel afterwards.
    """

    n_warmup: int
    table_share: float
    n_steps: int = 0

    def start(self, rng: np.random.Generator, kernel: TopicGibbs, state: Any) -> TopicGibbs:
        """Before the first sweep."""
        return replace(kernel, dissolved_share=SHARE, table_share=0.0) if self.n_warmup else kernel

    def update(self, rng: np.random.Generator, kernel: TopicGibbs, state: Any, info: Any) -> TopicGibbs:
        """After each sweep."""
        self.n_steps += 1
        if self.n_steps == int(STILL * self.n_warmup):
            kernel = replace(kernel, table_share=self.table_share)
        if self.n_steps == int(DISSOLVING * self.n_warmup):
            kernel = replace(kernel, dissolved_share=0.0)
        return kernel

    def finish(self, kernel: TopicGibbs) -> TopicGibbs:
        """After the last sweep of the warm-up: the kernel that keeps the posterior."""
        return replace(kernel, dissolved_share=0.0, table_share=self.table_share)
