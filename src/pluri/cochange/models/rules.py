"""Association rules: who changes these files also changes those.

From frequent itemsets and their supports, ``A -> B`` has the confidence support(A u B) / support(A) and the lift
confidence / (support(B) / n). Moving an item from A to B never raises the confidence, so that a consequent that is not
confident enough is not enlarged [1]_.

References
----------
.. [1] Agrawal, R. & Srikant, R. (1994). Fast algorithms for mining association rules. VLDB.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import NamedTuple

from pluri.cochange.models.mining import Itemset


class Rule(NamedTuple):
    """Transactions with the antecedent tend to have the consequent."""

    antecedent: Itemset
    consequent: Itemset
    support: int
    confidence: float
    lift: float


def association_rules(
    itemsets: Mapping[Itemset, int],
    n_transactions: int,
    *,
    min_confidence: float = 0.5,
    max_consequent: int | None = None,
) -> list[Rule]:
    """Rules from frequent itemsets, the most confident first.

    Parameters
    ----------
    itemsets : dict
        Supports of all frequent itemsets, from ``fpgrowth`` or ``apriori``; maximal ones do not suffice.
    n_transactions : int
        Number of transactions that were mined.
    min_confidence : float, default=0.5
        Between 0 and 1.
    max_consequent : int, optional
        Largest number of items on the right.

    Returns
    -------
    list of Rule

    Examples
    --------
    >>> from pluri.cochange import association_rules, fpgrowth
    >>> rows = [[0, 1, 2], [0, 1], [1, 2], [0, 1]]
    >>> for rule in association_rules(fpgrowth(rows, 2), len(rows), min_confidence=0.7):
    ...     print(rule)
    Rule(antecedent=(0,), consequent=(1,), support=3, confidence=1.0, lift=1.0)
    Rule(antecedent=(2,), consequent=(1,), support=2, confidence=1.0, lift=1.0)
    Rule(antecedent=(1,), consequent=(0,), support=3, confidence=0.75, lift=1.0)
    """
    if not 0 <= min_confidence <= 1:
        raise ValueError(f"min_confidence must lie between 0 and 1, got {min_confidence!r}")
    if n_transactions < 1:
        raise ValueError(f"n_transactions must be at least 1, got {n_transactions!r}")
    rules = [
        rule
        for items, support in itemsets.items()
        for rule in _rules_of(items, support, itemsets, n_transactions, min_confidence, max_consequent)
    ]
    return sorted(rules, key=lambda rule: (-rule.confidence, -rule.support, rule.antecedent, rule.consequent))


def _rules_of(
    items: Itemset,
    support: int,
    itemsets: Mapping[Itemset, int],
    n_transactions: int,
    min_confidence: float,
    max_consequent: int | None,
) -> Iterator[Rule]:
    alive: set[Itemset] | None = None  # consequents of the size before that were confident; at first all are
    largest = min(len(items) - 1, max_consequent if max_consequent is not None else len(items))
    for size in range(1, largest + 1):
        kept = set()
        for consequent in combinations(items, size):
            if alive is not None and not all(part in alive for part in combinations(consequent, size - 1)):
                continue
            antecedent = tuple(item for item in items if item not in consequent)
            try:
                confidence = support / itemsets[antecedent]
                lift = confidence * n_transactions / itemsets[consequent]
            except KeyError as error:
                raise ValueError(
                    f"itemsets must hold all subsets of its sets, got {items} without {error.args[0]}: use fpgrowth or "
                    "apriori"
                ) from error
            if confidence >= min_confidence:
                kept.add(consequent)
                yield Rule(antecedent, consequent, support, confidence, lift)
        if not kept:
            return
        alive = kept
