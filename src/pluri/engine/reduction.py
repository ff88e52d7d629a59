"""Adding up a stream in a fixed order, as a balanced binary tree, with a memory of O(log n) partial sums.

The cascade works like a binary counter: two sums of the same number of terms are added as soon as both exist. The
order depends on the number of terms only, so the answer has the same bits whichever engine made the terms, and the
rounding error grows as O(log n) instead of O(n) (N. J. Higham, The accuracy of floating point summation, SIAM J. Sci.
Comput. 14, 1993).
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import TypeVar

S = TypeVar("S")


def pairwise_sum(terms: Iterable[S]) -> S:
    """Add up the terms pairwise, in order; `S` is anything with ``+``.

    Examples
    --------
    >>> from pluri.engine import pairwise_sum
    >>> pairwise_sum("abcdefg")
    'abcdefg'
    >>> pairwise_sum(iter([0.1] * 10)) == 1.0, sum([0.1] * 10) == 1.0  # one rounding error less
    (True, False)
    """
    partial: list[S] = []  # sums of consecutive terms, whose numbers are the decreasing powers of two in the count
    for count, term in enumerate(terms):
        carry = term
        ones = count  # as many carries as the counter has trailing ones
        while ones & 1:
            carry = operator.add(partial.pop(), carry)
            ones >>= 1
        partial.append(carry)
    if not partial:
        raise ValueError("source must give at least one batch, got none: there are no data")
    total = partial.pop()
    while partial:
        total = operator.add(partial.pop(), total)
    return total
