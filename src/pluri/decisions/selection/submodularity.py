r"""Is a function submodular? All subsets of few items, or random ones of many.

It is enough to look at pairs: f is submodular if and only if for every A and all e, g outside it

.. math:: f(A \cup e) + f(A \cup g) \ge f(A \cup \{e, g\}) + f(A),

and monotone if and only if no f(A and e) is below f(A).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pluri.decisions.selection.set_function import FunctionOfSets, SetFunction
from pluri.validation import RandomState, Whole, as_generator, check_count, check_value

#: Differences up to this share of the largest value are rounding.
ROUNDING = 1e-9


@dataclass(frozen=True)
class SubmodularityReport:
    """What was found; true in a Boolean context if nothing speaks against submodularity.

    Attributes
    ----------
    submodular, monotone : bool
        Whether no violation was found.
    exhaustive : bool
        Whether all subsets were looked at: then it is a proof (up to rounding).
    violation : (set of int, int, int) or None
        A, e, g where gains grow most: g makes e worth more.
    excess : float
        By how much.
    n_checked : int
        Pairs looked at.
    """

    submodular: bool
    monotone: bool
    exhaustive: bool
    violation: tuple[frozenset[int], int, int] | None
    excess: float
    n_checked: int

    def __bool__(self) -> bool:
        return self.submodular


def check_submodular(
    function: SetFunction | Callable[[list[int]], float],
    n_items: int | None = None,
    *,
    max_items: int = 10,
    n_pairs: int = 1000,
    random_state: RandomState = 0,
) -> SubmodularityReport:
    """Look whether gains diminish.

    Parameters
    ----------
    function : SetFunction or callable of a list of items
    n_items : int, optional
        Needed for a callable.
    max_items : int, default=10
        Up to so many items, all subsets are looked at.
    n_pairs : int, default=1000
        Random pairs looked at if there are more items.
    random_state : int, Generator or None, default=0

    Returns
    -------
    SubmodularityReport

    Examples
    --------
    >>> from pluri.decisions import check_submodular
    >>> bool(check_submodular(lambda items: len(items) ** 0.5, 6))
    True
    >>> report = check_submodular(lambda items: len(items) ** 2, 6)
    >>> report.submodular, report.monotone, report.violation
    (False, True, (frozenset(), 0, 1))
    """
    if not isinstance(function, SetFunction):
        if n_items is None:
            raise ValueError("n_items must be given for a function that is no SetFunction, got None")
        function = FunctionOfSets(function, n_items)
    check_value(max_items, "max_items", Whole(0, 20))
    check_count(n_pairs, "n_pairs")
    known: dict[frozenset[int], float] = {}

    def value(items: frozenset[int]) -> float:
        if items not in known:
            known[items] = function.value(sorted(items))
        return known[items]

    exhaustive = function.n_items <= max_items
    triples = _all_triples(function.n_items) if exhaustive else _random_triples(
        function.n_items, n_pairs, as_generator(random_state)
    )  # fmt: skip
    worst, where, falls, n_checked = 0.0, None, 0.0, 0
    for subset, first, second in triples:
        base, one, other = value(subset), value(subset | {first}), value(subset | {second})
        both = value(subset | {first, second})
        n_checked += 1
        growth = (both + base) - (one + other) if np.isfinite([base, one, other]).all() else 0.0
        if growth > worst:
            worst, where = growth, (subset, first, second)
        falls = max(falls, base - one, base - other, one - both, other - both)
    slack = ROUNDING * max((abs(v) for v in known.values() if np.isfinite(v)), default=0.0)
    submodular = worst <= slack
    return SubmodularityReport(
        submodular, falls <= slack, exhaustive, None if submodular else where, float(worst), n_checked
    )


def _all_triples(n_items: int):  # type: ignore[no-untyped-def]
    everything = range(n_items)
    for size in range(n_items - 1):
        for subset in combinations(everything, size):
            rest = [item for item in everything if item not in subset]
            for first, second in combinations(rest, 2):
                yield frozenset(subset), first, second


def _random_triples(n_items: int, number: int, rng: np.random.Generator):  # type: ignore[no-untyped-def]
    for _ in range(number):
        size = int(rng.integers(n_items - 1))
        items = rng.permutation(n_items)[: size + 2].tolist()
        yield frozenset(items[2:]), items[0], items[1]
