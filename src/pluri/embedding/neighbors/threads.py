"""Work on ranges of rows by threads that last as long as a fit; the answer does not depend on their number."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np

from pluri.engine.executors import count_jobs

Result = TypeVar("Result")

#: Rows are cut into so many pieces whatever the number of threads, since sums depend on how they are cut.
N_PIECES = 8
#: Fewer pairs than this are not worth a thread.
FEW_PAIRS = 40_000


class Threads:
    """A pool of threads; a context manager.

    Parameters
    ----------
    n_jobs : int, optional
        By joblib's convention; None is one.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.count = 1 if n_jobs is None else count_jobs(n_jobs)
        self.pool = ThreadPoolExecutor(self.count, thread_name_prefix="pluri") if self.count > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.pool is not None:
            self.pool.shutdown(wait=True, cancel_futures=True)

    def over(self, n_rows: int, n_pairs: int, function: Callable[[int, int], Result]) -> list[Result]:
        """Answers of ``function(begin, end)`` for pieces of the rows, in their order."""
        if n_pairs < FEW_PAIRS:
            return [function(0, n_rows)]
        ends = np.linspace(0, n_rows, N_PIECES + 1).astype(int).tolist()
        if self.pool is None:
            return [function(begin, end) for begin, end in pairwise(ends)]
        return list(self.pool.map(function, ends[:-1], ends[1:]))


def total(parts: list[Any]) -> Any:
    """Sum of arrays, in their order."""
    answer = parts[0]
    for part in parts[1:]:
        answer = answer + part
    return answer
