"""Size and priors of a tree of topics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pluri.priors.hyperpriors import Gamma, Hyperparameter, as_hyperparameter
from pluri.validation import check_count, check_positive

#: What concentrations are learned under unless something else is said, and where they start.
VAGUE, FIRST_CONCENTRATION = Gamma(1e-3, 1e-3), 1.0
#: Where growth ends if nothing else ends it: the last scale, and node, takes all that is left of a stick.
MOST_SCALES, MOST_NODES = 50, 1000


@dataclass(frozen=True)
class TreeSettings:
    """Size and priors of a tree.

    Parameters
    ----------
    max_nodes : tuple of int, or None
        Nodes of each scale, at most; scales after the last have as many as the last. The first is 1 with a root. None
        for no limit, where the tree grows.
    max_depth : int or None, default=None
        Scales, at most; by default as many as `max_nodes` has entries, or no limit if it is None too.
    scale_dependent : bool, default=True
        Whether each word has one scale.
    root : bool, default=True
        Whether the first scale has one node, so that documents choose among those of the second.
    topic_word_prior : float, default=1.0
    concentration : float, Gamma or "learn", default=Gamma(1e-3, 1e-3)
        All concentrations: a number, or a prior under which each is learned.
    doc_concentration : float, Gamma, "learn" or None, default=None
        eta, if it is not as the others.
    """

    max_nodes: tuple[int, ...] | None
    max_depth: int | None = None
    scale_dependent: bool = True
    root: bool = True
    topic_word_prior: float = 1.0
    concentration: float | Gamma | str = VAGUE
    doc_concentration: float | Gamma | str | None = None

    def __post_init__(self) -> None:
        if self.max_nodes is not None:
            if not len(self.max_nodes):
                raise ValueError("max_nodes must have at least one number of nodes, got none")
            for number in self.max_nodes:
                check_count(number, "max_nodes")
        if self.max_depth is not None:
            check_count(self.max_depth, "max_depth")
        check_positive(self.topic_word_prior, "topic_word_prior")
        _ = self.learned, self.learned_eta  # refused here, not at the first sweep
        if self.root and self.most_depth < 2:
            raise ValueError("max_depth must be at least 2 with root=True: the first scale is the root alone, got 1")
        if self.scale_dependent and self.max_nodes is None:
            raise ValueError(
                "max_nodes must be given with scale_dependent=True: words look at every node of a scale, got None"
            )

    @property
    def learned(self) -> Hyperparameter:
        """Where all concentrations start, and the prior under which they are learned, if they are."""
        return as_hyperparameter(self.concentration, "concentration", VAGUE, start=FIRST_CONCENTRATION)

    @property
    def learned_eta(self) -> Hyperparameter:
        """The same of eta."""
        if self.doc_concentration is None:
            return self.learned
        return as_hyperparameter(self.doc_concentration, "doc_concentration", VAGUE, start=FIRST_CONCENTRATION)

    @property
    def top(self) -> int:
        """Scale whose nodes the documents choose among."""
        return int(self.root)

    @property
    def least_depth(self) -> int:
        """Fewest scales."""
        return self.top + 1

    @property
    def most_depth(self) -> int:
        """Most scales."""
        if self.max_depth is not None:
            return self.max_depth
        return MOST_SCALES if self.max_nodes is None else len(self.max_nodes)

    def cap(self, s: int) -> int:
        """Most nodes of a scale."""
        if s < self.top:
            return 1
        return MOST_NODES if self.max_nodes is None else self.max_nodes[min(s, len(self.max_nodes) - 1)]

    @property
    def caps(self) -> NDArray[np.int64]:
        """Most nodes of each scale."""
        return np.array([self.cap(s) for s in range(self.most_depth)], dtype=np.int64)
