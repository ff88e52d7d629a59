"""A source whose rows are brought into a model's form where they are read: on a thread, on a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pluri.engine import Batch, LazyBatch, Source


@dataclass(frozen=True)
class PreparedBatch:
    """A batch of independent rows, and what to do with them when it is loaded."""

    batch: LazyBatch
    prepare: Callable[[Any], Any]

    def load(self) -> Batch:
        """Read the batch and prepare its rows."""
        loaded = self.batch.load()
        return Batch(self.prepare(loaded.X), weight=loaded.weight)


@dataclass(frozen=True)
class PreparedSource:
    """The batches of `source`, each of them through `prepare` (a function that can travel to a worker)."""

    source: Source
    prepare: Callable[[Any], Any]

    def batches(self) -> Iterator[LazyBatch]:
        """Start a new pass over the data."""
        for batch in self.source.batches():
            yield PreparedBatch(batch, self.prepare)
