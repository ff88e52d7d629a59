"""The most probable subset: one function for the searches."""

from __future__ import annotations

import numpy as np

from pluri.processes.dpp.kernel_forms import IntArray, KernelForm
from pluri.processes.dpp.search.greedy import greedy_map
from pluri.processes.dpp.search.local_search import local_search as search_locally
from pluri.processes.dpp.search.relaxation import relaxed_map
from pluri.processes.dpp.search.set_constraints import Cardinality

#: Names that `most_probable` takes.
SEARCHES = ("greedy", "lazy", "relaxation")


def most_probable(
    kernel: KernelForm, size: int | None, *, method: str = "greedy", local_search: bool = False
) -> IntArray:
    """Sorted items of a subset of high probability, of the given size or of the size that is best."""
    if method not in SEARCHES:
        raise ValueError(f"method must be one of {SEARCHES}, got {method!r}")
    if size == 0:
        return np.empty(0, dtype=np.int64)
    if method == "relaxation":
        items = relaxed_map(kernel, None if size is None else Cardinality(size)).items
        if size is not None and items.size < size:
            # The relaxation bounds the size from above; what is missing is added greedily.
            items = np.concatenate([items, greedy_map(kernel, size - items.size, given=items).items])
    else:
        items = greedy_map(kernel, size, lazy=method == "lazy").items
    if local_search:
        moves = ("add", "delete", "swap") if size is None else ("swap",)
        items = search_locally(kernel, items, moves=moves).items
    return np.sort(items)
