"""The mean of the topics over the draws of a chain, kept while it runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pluri.topics.lda.topic_assignments import GibbsState

if TYPE_CHECKING:
    from pluri.topics.lda.gibbs import CollapsedGibbs


class AverageAfterWarmup:
    """Lets a kernel keep the mean of the topics once the warm-up is over."""

    def start(self, rng: np.random.Generator, kernel: CollapsedGibbs, state: GibbsState) -> CollapsedGibbs:
        """Begin without."""
        return kernel

    def update(self, rng: np.random.Generator, kernel: CollapsedGibbs, state: GibbsState, info: Any) -> CollapsedGibbs:
        """Nothing is learned from a sweep."""
        return kernel

    def finish(self, kernel: CollapsedGibbs) -> CollapsedGibbs:
        """From now on."""
        return replace(kernel, averaging=True)
