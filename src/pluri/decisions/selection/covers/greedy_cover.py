"""The greedy cover, what can be left out of a cover, and a cost that no cover is below."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from pluri.decisions.selection.set_function import Array, IntArray

#: Entries of the membership matrix up to which the bound is that of linear programming.
MOST_ENTRIES = 200_000


def greedy_cover(membership: Any, costs: Array, given: IntArray | None = None) -> tuple[IntArray, int]:
    """Sets by new elements for the money, after those given, and how many ratios were computed."""
    chosen = [] if given is None else [int(item) for item in given]
    missing = np.ones(membership.shape[1])
    missing[np.asarray(membership[chosen].sum(axis=0)).ravel() > 0] = 0.0
    n_looked_at = 0
    while missing.any():
        new = np.asarray(membership @ missing)
        n_looked_at += len(new)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(new > 0, new / costs, -1.0)
        pick = int(np.argmax(ratios))
        chosen.append(pick)
        missing[membership.indices[membership.indptr[pick] : membership.indptr[pick + 1]]] = 0.0
    return (np.array(chosen, dtype=np.int64) if given is not None else pruned(membership, costs, chosen)), n_looked_at


def pruned(membership: Any, costs: Array, chosen: Any) -> IntArray:
    """Without sets whose elements others hold too, the dearest first."""
    kept = list(dict.fromkeys(int(item) for item in chosen))
    counts = np.asarray(membership[kept].sum(axis=0)).ravel()
    for item in sorted(kept, key=lambda one: -costs[one]):
        held = membership.indices[membership.indptr[item] : membership.indptr[item + 1]]
        if (counts[held] > 1).all():
            counts[held] -= 1
            kept.remove(item)
    return np.array(kept, dtype=np.int64)


def cost_bound(membership: Any, costs: Array, greedy: IntArray) -> float:
    """A cost that no cover is below."""
    if membership.nnz <= MOST_ENTRIES:
        result = linprog(
            costs, A_ub=-sparse.csr_matrix(membership.T), b_ub=-np.ones(membership.shape[1]), bounds=(0, 1)
        )
        if result.success:
            # A solution of the dual, made feasible, proves the bound whatever the tolerance of the solver was.
            dual = np.maximum(-result.ineqlin.marginals, 0.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                excess = np.nanmax(np.where(membership @ dual > 0, (membership @ dual) / costs, 0.0), initial=0.0)
            return float(dual.sum() / max(1.0, excess)) if np.isfinite(excess) else 0.0
    largest = int(np.diff(membership.indptr).max(initial=1))
    return float(costs[greedy].sum() / np.sum(1.0 / np.arange(1, largest + 1)))
