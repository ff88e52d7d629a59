"""Counts in files, in minibatches that come from several places: documents that stand together are often alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Documents of a minibatch, at least and at most, and places of the corpus that they come from.
MINIBATCH, LARGEST, PLACES = 1024, 4096, 8
#: Steps of a pass for which a larger minibatch is not taken: each step costs as much as the vocabulary is large.
STEPS = 256


def size_of_minibatch(n_documents: int) -> int:
    """Documents of a minibatch: more of a larger corpus, which has steps enough anyway.

    Examples
    --------
    >>> from pluri.cli.topics.scattered import size_of_minibatch
    >>> size_of_minibatch(50_000), size_of_minibatch(500_000), size_of_minibatch(10_000_000)
    (1024, 1952, 4096)
    """
    return min(max(MINIBATCH, n_documents // STEPS // PLACES * PLACES), LARGEST)


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

        size = size_of_minibatch(CountFiles(place).n_documents)
        self._files = CountFiles(place, batch_size=size // PLACES)
        self._rng = np.random.default_rng(seed)
        self.n_features = self._files.n_features

    def batches(self) -> Iterator[Any]:
        """Start a new pass."""
        slices = list(self._files.batches())
        order = self._rng.permutation(len(slices))
        for begin in range(0, len(order), PLACES):
            yield _Scattered(tuple(slices[place] for place in order[begin : begin + PLACES]))
