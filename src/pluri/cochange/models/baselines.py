"""Recommendation by counting: frequent itemsets, co-occurrence, popularity.

The union of all frequent itemsets that contain S is

    R(S) = {i not in S : support(S u {i}) >= min_support},

because S u {i} is frequent if any itemset that contains it is, and is then an itemset itself; maximal itemsets have
the same union. So a query needs no mining: select the transactions that contain S, and add up.

Association rules say who changes these files also changes those. From frequent itemsets and their supports, ``A -> B``
has the confidence support(A u B) / support(A) and the lift confidence / (support(B) / n). Moving an item from A to B
never raises the confidence, so that a consequent that is not confident enough is not enlarged [3]_.

References
----------
.. [1] Ying, A., Murphy, G., Ng, R. & Chu-Carroll, M. (2004). Predicting source code changes by mining change history.
   IEEE Trans. Software Engineering 30, 574-586.
.. [2] Zimmermann, T., Zeller, A., Weissgerber, P. & Diehl, S. (2005). Mining version histories to guide software
   changes. IEEE Trans. Software Engineering 31, 429-445.
.. [3] Agrawal, R. & Srikant, R. (1994). Fast algorithms for mining association rules. VLDB.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from pluri.cochange.models.counted import CountedTransactions
from pluri.cochange.models.counting import Array, Places, frequent, popular, together
from pluri.cochange.models.mining import MAX_ITEMSETS, Itemset, apriori, fpgrowth, fpmax
from pluri.validation import Only, check_value

ALGORITHMS = ("fpmax", "fpgrowth", "apriori")


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


class FrequentItemsets(CountedTransactions):
    """Items that occur together with others often enough.

    Parameters
    ----------
    min_support : int, default=10
        Number of transactions that must contain an itemset.
    algorithm : {"fpmax", "fpgrowth", "apriori"}, default="fpmax"
        How `patterns` lists itemsets; predictions need no list and are the same for all.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_features,)
        Number of the transactions that contain each item.

    Notes
    -----
    `predict_missing` answers with supports, which rank items but are not probabilities: zero below ``min_support``.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.cochange import FrequentItemsets
    >>> X = np.array([[1, 1, 1], [1, 1, 0], [0, 1, 1], [1, 1, 0]])
    >>> model = FrequentItemsets(min_support=2).fit(X)
    >>> model.predict_missing([0])
    array([1., 3., 0.])
    >>> sorted(model.patterns())
    [(0, 1), (1, 2)]
    """

    def __init__(self, min_support: int = 10, algorithm: str = "fpmax") -> None:
        self.min_support = min_support
        self.algorithm = algorithm

    def _check_parameters(self) -> None:
        if not self.min_support >= 1:
            raise ValueError(f"min_support must be at least 1, got {self.min_support!r}")
        check_value(self.algorithm, "algorithm", Only(*ALGORITHMS))

    def _scores(self, present: Places, absent: Places) -> Array:
        return frequent(self._rows, present, absent, min_support=self.min_support)

    def patterns(self, *, max_length: int | None = None, max_itemsets: int = MAX_ITEMSETS) -> dict[Itemset, int]:
        """Frequent itemsets and their supports, found by ``algorithm``; weights are not regarded.

        Parameters
        ----------
        max_length : int, optional
            Largest size of a set; not for "fpmax".
        max_itemsets : int, default=1_000_000
            More are an error.

        Returns
        -------
        dict
        """
        check_is_fitted(self)
        matrix = sparse.csr_array(
            (np.ones(len(self.row_items_)), self.row_items_, self.row_indptr_),
            shape=(len(self.row_weights_), self.n_features_in_),
        )
        if self.algorithm == "fpmax":
            if max_length is not None:
                raise ValueError(f"max_length must be None for the algorithm 'fpmax', got {max_length!r}")
            return fpmax(matrix, self.min_support, max_itemsets=max_itemsets)
        mine: Any = {"fpgrowth": fpgrowth, "apriori": apriori}[self.algorithm]
        found: dict[Itemset, int] = mine(matrix, self.min_support, max_length=max_length, max_itemsets=max_itemsets)
        return found

    def rules(self, *, min_confidence: float = 0.5, max_length: int | None = None) -> list[Rule]:
        """Association rules, the most confident first; see :func:`association_rules`."""
        check_is_fitted(self)
        if self.algorithm == "fpmax":
            raise ValueError("algorithm must be 'fpgrowth' or 'apriori' for rules, got 'fpmax'")
        return association_rules(
            self.patterns(max_length=max_length), len(self.row_weights_), min_confidence=min_confidence
        )


class CoOccurrence(CountedTransactions):
    """Items by how often they occurred with those present.

    Parameters
    ----------
    measure : {"confidence", "support"}, default="confidence"
        Share of the transactions with the present items that also have another, or their number.
    combine : {"joint", "mean"}, default="joint"
        Whether transactions must have all present items, or the scores of one present item after the other are
        averaged.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_features,)
        Number of the transactions that contain each item.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.cochange import CoOccurrence
    >>> X = np.array([[1, 1, 1], [1, 1, 0], [0, 1, 1], [1, 1, 0]])
    >>> CoOccurrence().fit(X).predict_missing([1]).round(2)
    array([0.75, 1.  , 0.5 ])
    """

    def __init__(self, measure: str = "confidence", combine: str = "joint") -> None:
        self.measure = measure
        self.combine = combine

    def _check_parameters(self) -> None:
        for name, allowed in (("measure", ("confidence", "support")), ("combine", ("joint", "mean"))):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}")

    def _scores(self, present: Places, absent: Places) -> Array:
        return together(self._rows, present, absent, measure=self.measure, combine=self.combine)


class Popularity(CountedTransactions):
    """Items by how often they occur at all, whatever is present.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_features,)
        Number of the transactions that contain each item.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.cochange import Popularity
    >>> Popularity().fit(np.array([[1, 1, 1], [1, 1, 0], [0, 1, 1], [1, 1, 0]])).predict_missing([2])
    array([0.75, 1.  , 1.  ])
    """

    def _scores(self, present: Places, absent: Places) -> Array:
        return popular(self._rows)
