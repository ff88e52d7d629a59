"""Where the work runs: this process, threads, files larger than memory, a Dask cluster.

A `Source` cuts data into batches, an `Engine` maps a function over them, and `map_reduce` adds up the answers. The sum
has the same bits on every engine.
"""

from pluri.engine.batches import Batch, LazyBatch, Source, Statistics
from pluri.engine.dask import DaskEngine
from pluri.engine.executors import (
    Engine,
    Run,
    SerialEngine,
    Sweep,
    ThreadEngine,
    map_reduce,
    open_engine,
    resolve_engine,
)
from pluri.engine.mapped import NpySlice
from pluri.engine.parquet import ParquetSource
from pluri.engine.reduction import pairwise_sum
from pluri.engine.sources import ArraySource, IterableSource, NpySource
from pluri.engine.sparse import SparseSource

__all__ = [
    "ArraySource",
    "Batch",
    "DaskEngine",
    "Engine",
    "IterableSource",
    "LazyBatch",
    "NpySlice",
    "NpySource",
    "ParquetSource",
    "Run",
    "SerialEngine",
    "Source",
    "SparseSource",
    "Statistics",
    "Sweep",
    "ThreadEngine",
    "map_reduce",
    "open_engine",
    "pairwise_sum",
    "resolve_engine",
]
