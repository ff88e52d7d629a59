"""Rows of documents shared among threads."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np


def cut_rows(n_rows: int, n_jobs: int | None) -> list[slice]:
    """As many slices of rows as there are threads, or one."""
    from pluri.engine.executors import count_jobs

    n_pieces = max(1, min(1 if n_jobs is None else count_jobs(n_jobs), n_rows))
    edges = np.linspace(0, n_rows, n_pieces + 1).astype(int).tolist()
    return [slice(begin, end) for begin, end in pairwise(edges)]


def on_threads(function: Any, pieces: list[slice]) -> list[Any]:
    """The function's answers for the pieces, in order."""
    if len(pieces) == 1:
        return [function(pieces[0])]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(len(pieces), thread_name_prefix="pluri") as pool:
        return list(pool.map(function, pieces))
