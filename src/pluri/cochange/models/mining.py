"""Frequent itemsets: sets of items that at least so many transactions contain.

Three classical miners that find the same sets: `apriori` [1]_ level by level, `fpgrowth` [2]_ by a prefix tree of the
transactions, and `fpmax` [3]_, which keeps only the maximal sets (those that no larger frequent set contains).

References
----------
.. [1] Agrawal, R. & Srikant, R. (1994). Fast algorithms for mining association rules. VLDB.
.. [2] Han, J., Pei, J. & Yin, Y. (2000). Mining frequent patterns without candidate generation. SIGMOD.
.. [3] Grahne, G. & Zhu, J. (2003). Efficiently using prefix-trees in mining frequent itemsets. FIMI.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

Itemset = tuple[int, ...]
Weighted = Iterable[tuple[Sequence[int], int]]
#: 2^n subsets of n items that always come together would fill any memory.
MAX_ITEMSETS = 1_000_000


class TooManyItemsets(ValueError):
    """There are more sets than anyone could read."""


def fpgrowth(
    transactions: Any, min_support: int, *, max_length: int | None = None, max_itemsets: int = MAX_ITEMSETS
) -> dict[Itemset, int]:
    """All frequent itemsets and their supports, by pattern growth.

    Parameters
    ----------
    transactions : iterable of lists of ints, or matrix of shape (n_transactions, n_items)
        Numbers of the items of each transaction, or a matrix (dense or sparse) that is not zero where an item occurs.
    min_support : int
        Number of transactions that must contain a set.
    max_length : int, optional
        Largest size of a set.
    max_itemsets : int, default=1_000_000
        More sets than these are an error.

    Returns
    -------
    dict
        Support of each set; sets are sorted tuples.

    Examples
    --------
    >>> from pluri.cochange import fpgrowth
    >>> sorted(fpgrowth([[0, 1, 2], [0, 1], [1, 2], [0, 1]], min_support=2).items())
    [((0,), 3), ((0, 1), 3), ((1,), 4), ((1, 2), 2), ((2,), 2)]
    """
    found: dict[Itemset, int] = {}
    longest = max_length if max_length is not None else 1 << 30

    def grow(tree: _PrefixTree, suffix: Itemset) -> None:
        for item, support in tree.supports.items():
            _store(found, (*suffix, item), support, max_itemsets)
            if len(suffix) + 1 < longest:
                grow(tree.condition(item, min_support), (*suffix, item))

    _check(min_support, max_length)
    if longest > 0:
        grow(_PrefixTree(((row, 1) for row in as_rows(transactions)), min_support), ())
    return found


def fpmax(transactions: Any, min_support: int, *, max_itemsets: int = MAX_ITEMSETS) -> dict[Itemset, int]:
    """Maximal frequent itemsets and their supports.

    Parameters
    ----------
    transactions, min_support, max_itemsets
        As for :func:`fpgrowth`.

    Returns
    -------
    dict
        Support of each set that no larger frequent set contains.

    Examples
    --------
    >>> from pluri.cochange import fpmax
    >>> sorted(fpmax([[0, 1, 2], [0, 1], [1, 2], [0, 1]], min_support=2).items())
    [((0, 1), 3), ((1, 2), 2)]
    """
    found: dict[Itemset, int] = {}
    masks: list[int] = []  # sets as bits, for fast tests of inclusion

    def covered(mask: int) -> bool:
        return any(mask & larger == mask for larger in reversed(masks))

    def keep(items: Itemset, support: int) -> None:
        mask = _mask(items)
        if not covered(mask):
            masks.append(mask)
            _store(found, items, support, max_itemsets)

    def grow(tree: _PrefixTree, suffix: Itemset, support: int) -> None:
        path = tree.single_path()
        if path is not None:
            if suffix or path:
                keep((*suffix, *(item for item, _ in path)), path[-1][1] if path else support)
            return
        # From the rarest item up: every set that could cover a later one is then already known.
        for item, count in reversed(tree.supports.items()):
            inner = tree.condition(item, min_support)
            if not covered(_mask((*suffix, item, *inner.supports))):
                grow(inner, (*suffix, item), count)

    _check(min_support, None)
    grow(_PrefixTree(((row, 1) for row in as_rows(transactions)), min_support), (), 0)
    return found


def apriori(
    transactions: Any, min_support: int, *, max_length: int | None = None, max_itemsets: int = MAX_ITEMSETS
) -> dict[Itemset, int]:
    """All frequent itemsets and their supports, level by level.

    Parameters
    ----------
    transactions, min_support, max_length, max_itemsets
        As for :func:`fpgrowth`.

    Returns
    -------
    dict
        Support of each set; sets are sorted tuples.

    Examples
    --------
    >>> from pluri.cochange import apriori
    >>> sorted(apriori([[0, 1, 2], [0, 1], [1, 2], [0, 1]], min_support=2, max_length=1).items())
    [((0,), 3), ((1,), 4), ((2,), 2)]
    """
    _check(min_support, max_length)
    containing: dict[int, int] = defaultdict(int)
    for number, row in enumerate(as_rows(transactions)):
        for item in row:
            containing[item] |= 1 << number
    level: dict[Itemset, int] = {
        (item,): rows for item, rows in sorted(containing.items()) if rows.bit_count() >= min_support
    }
    found: dict[Itemset, int] = {}
    while level:
        if max_length is not None and len(next(iter(level))) > max_length:
            break
        for items, rows in level.items():
            _store(found, items, rows.bit_count(), max_itemsets)
        level = dict(_next_level(level, min_support))
    return found


def _next_level(level: dict[Itemset, int], min_support: int) -> Iterator[tuple[Itemset, int]]:
    """Sets one item larger, whose subsets are all frequent, with the transactions that contain them."""
    by_prefix: dict[Itemset, list[int]] = defaultdict(list)
    for *prefix, last in level:
        by_prefix[tuple(prefix)].append(last)
    for start, ends in by_prefix.items():
        for first, second in combinations(sorted(ends), 2):
            candidate = (*start, first, second)
            if all(subset in level for subset in combinations(candidate, len(candidate) - 1)):
                rows = level[(*start, first)] & level[(*start, second)]
                if rows.bit_count() >= min_support:
                    yield candidate, rows


def as_rows(transactions: Any) -> list[list[int]]:
    """Sorted items of each transaction, each once."""
    if hasattr(transactions, "tocsr"):
        matrix = transactions.tocsr()
        stored = zip(matrix.indptr[:-1], matrix.indptr[1:])
        return [sorted({int(i) for i, value in zip(matrix.indices[a:b], matrix.data[a:b]) if value}) for a, b in stored]
    if getattr(transactions, "ndim", 0) == 2:
        return [row.nonzero()[0].tolist() for row in transactions]
    return [sorted({int(item) for item in row}) for row in transactions]


class _PrefixTree:
    """Transactions whose common beginnings are stored once; the most frequent items come first.

    A node is a list ``[item, count, parent, children]``.
    """

    def __init__(self, transactions: Weighted, min_support: int) -> None:
        rows = [(list(row), count) for row, count in transactions]
        totals: dict[int, int] = defaultdict(int)
        for row, count in rows:
            for item in row:
                totals[item] += count
        frequent = sorted((item for item in totals if totals[item] >= min_support), key=lambda i: (-totals[i], i))
        #: Support of each frequent item, the most frequent first.
        self.supports = {item: totals[item] for item in frequent}
        rank = {item: place for place, item in enumerate(frequent)}
        self._nodes: dict[int, list[list[Any]]] = {item: [] for item in frequent}
        self._root: list[Any] = [None, 0, None, {}]
        for row, count in rows:
            node = self._root
            for item in sorted((item for item in row if item in rank), key=rank.__getitem__):
                child = node[3].get(item)
                if child is None:
                    child = node[3][item] = [item, 0, node, {}]
                    self._nodes[item].append(child)
                child[1] += count
                node = child

    def condition(self, item: int, min_support: int) -> _PrefixTree:
        """The tree of what comes before an item in the transactions that contain it."""
        return _PrefixTree(((_above(node), node[1]) for node in self._nodes[item]), min_support)

    def single_path(self) -> list[tuple[int, int]] | None:
        """Items and counts from the top if no node has two children; None otherwise."""
        path, node = [], self._root
        while node[3]:
            if len(node[3]) > 1:
                return None
            (node,) = node[3].values()
            path.append((node[0], node[1]))
        return path


def _above(node: list[Any]) -> list[int]:
    items, parent = [], node[2]
    while parent[2] is not None:
        items.append(parent[0])
        parent = parent[2]
    return items


def _mask(items: Iterable[int]) -> int:
    return sum(1 << item for item in items)


def _store(found: dict[Itemset, int], items: Itemset, support: int, limit: int) -> None:
    if len(found) >= limit:
        raise TooManyItemsets(
            f"max_itemsets must be at least the number of frequent itemsets, got {limit}: raise min_support, set "
            "max_length, or ask for maximal sets only (fpmax)"
        )
    found[tuple(sorted(items))] = support


def _check(min_support: int, max_length: int | None) -> None:
    if min_support < 1:
        raise ValueError(f"min_support must be at least 1, got {min_support!r}")
    if max_length is not None and max_length < 1:
        raise ValueError(f"max_length must be at least 1 or None, got {max_length!r}")
