r"""One pass over items that come one by one: sieves for guesses of the optimum.

For each guess v of a geometric grid, an item is kept if the rest of the way to v/2 is worth it:
:math:`f(e \mid S_v) \ge (v/2 - f(S_v)) / (k - |S_v|)`. One of the guesses is right up to :math:`1 + \epsilon`, and its
sieve holds at least :math:`1/2 - \epsilon` of the optimum of a monotone submodular f [1]_.

References
----------
.. [1] A. Badanidiyuru et al., "Streaming submodular maximization: massive data summarization on the fly", KDD 2014.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from pluri.decisions.selection.constraints import Cardinality
from pluri.decisions.selection.greedy import Selection, in_order
from pluri.decisions.selection.set_function import SelectionState, SetFunction


def sieve(function: SetFunction, size: int, order: Iterable[int] | None = None, epsilon: float = 0.1) -> Selection:
    """Choose items in one pass.

    Parameters
    ----------
    function : SetFunction
        Monotone and submodular.
    size : int
        Items at most.
    order : iterable of int, optional
        The items as they come; 0, 1, ... by default.
    epsilon : float
        Ratio of neighbouring guesses minus one.

    Returns
    -------
    Selection
    """
    sieves: dict[int, SelectionState] = {}
    empty = function.start()
    base = empty.value
    singles: dict[int, float] = {}
    largest, n_evaluations = 0.0, 0
    for item in range(function.n_items) if order is None else order:
        singles[int(item)] = alone = function.gain(int(item), empty)
        n_evaluations += 1
        if alone > largest:
            largest = alone
            low, high = (math.log(bound) / math.log1p(epsilon) for bound in (largest, 2.0 * size * largest))
            guesses = range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1)
            sieves = {guess: sieves.get(guess) or function.start() for guess in guesses}
        for guess, state in sieves.items():
            if len(state.items) < size:
                worth = ((1.0 + epsilon) ** guess / 2.0 - (state.value - base)) / (size - len(state.items))
                gain = function.gain(int(item), state)
                n_evaluations += 1
                if gain >= worth and gain > 0:
                    function.add(int(item), state, gain)
    best = max(sieves.values(), key=lambda state: state.value, default=empty)
    return _selection(function, best, size, singles, n_evaluations)


def _selection(
    function: SetFunction, best: SelectionState, size: int, singles: dict[int, float], n_evaluations: int
) -> Selection:
    constraint = Cardinality(size, function.n_items)
    # What came by bounds the optimum among what came: the singles, and the gains beside the sieve that was chosen.
    scores = np.zeros(function.n_items)
    scores[list(singles)] = list(singles.values())
    if not function.submodular:
        # Gains may rise, so that they bound nothing.
        known = function.size_bounds(size)
        most = function.value(np.arange(function.n_items)) if function.monotone else np.inf
        bounds = np.full(size + 1, np.inf) if known is None else known
        return in_order(function, np.array(best.items, dtype=np.int64), np.minimum(bounds, most), n_evaluations)
    bounds = function.empty_value() + constraint.relaxed_maxima(scores)
    if function.monotone:
        rest = np.zeros(function.n_items)
        rest[list(singles)] = function.gains(best, list(singles))
        bounds = np.minimum(bounds, best.value + constraint.relaxed_maxima(rest))
    items = np.array(best.items, dtype=np.int64)
    return in_order(function, items, np.minimum.accumulate(bounds[::-1])[::-1], n_evaluations)
