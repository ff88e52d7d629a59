"""What the paths of all tokens count."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pluri.topics.tree.state import Counts, Numbers, TreeState


class PathCounts(NamedTuple):
    """Steps between nodes, top nodes of documents and scales of documents, of all tokens."""

    moves: Counts
    doc_top: Counts
    doc_scale: Counts

    @classmethod
    def none(cls, state: TreeState) -> PathCounts:
        """Nothing counted yet."""
        return cls(
            np.zeros(state.transition.shape, dtype=np.int32), np.zeros(state.theta.shape, dtype=np.int32),
            np.zeros(state.usage.shape, dtype=np.int32),
        )  # fmt: skip

    def passed(self, state: TreeState, top: int) -> Numbers:
        """Tokens whose path goes through each node."""
        passed = self.moves.sum(axis=1, dtype=np.int64)
        if top < len(state.rooms):
            start = int(state.offsets[top])
            passed[start : start + self.doc_top.shape[1]] = self.doc_top.sum(axis=0)
        if top == 1:
            passed[0] = self.doc_scale.sum()
        return passed
