"""Counts in files, in minibatches that come from several places: documents that stand together are often alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Documents of a minibatch, and places of the corpus that they come from.
MINIBATCH, PLACES = 1024, 8


@dataclass(frozen=True, eq=False)
class _Scattered:
    """Documents from several places of a file."""

    slices: tuple[Any, ...]

    def load(self) -> Any:
        """Read them."""
        from scipy import sparse

        from pluri.engine import Batch

        return Batch(sparse.vstack([part.load().X for part in self.slices], format="csr"))


class ScatteredCounts:
    """Counts in files, in minibatches that come from several places, in another order each time."""

    def __init__(self, place: Path, seed: int) -> None:
        import numpy as np

        from pluri.topics import CountFiles

        self._files = CountFiles(place, batch_size=MINIBATCH // PLACES)
        self._rng = np.random.default_rng(seed)
        self.n_features = self._files.n_features

    def batches(self) -> Iterator[Any]:
        """Start a new pass."""
        slices = list(self._files.batches())
        order = self._rng.permutation(len(slices))
        for begin in range(0, len(order), PLACES):
            yield _Scattered(tuple(slices[place] for place in order[begin : begin + PLACES]))
