r"""The best sensors on a line, exactly: dynamic programming where the field is a Markov chain.

With the covariance :math:`\sigma^2 e^{-|t - t'| / l}` and no noise, values in order of t are a Markov chain, and so is
every subset of them: its entropy is a sum over neighbours in the subset. Mutual information
:math:`H(X_A) + H(X_{V \setminus A}) - H(X_V)` is then found place by place, from the last place of each side (one of
them is the place before) and the number chosen so far: :math:`O(n^2 k)`. Noise, or a smoother field, is no such chain.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, Product

from pluri.decisions.selection.gaussian_functions import LOG_2PIE
from pluri.decisions.selection.greedy import Selection, in_order
from pluri.decisions.selection.set_function import Array, IntArray, SetFunction

#: Entries of the table of the last places, at most: eight bytes each.
MOST_ENTRIES = 50_000_000
#: Sides of a place.
WITHOUT, WITH = 0, 1


def best_on_a_line(
    function: SetFunction, criterion: str, kernel: Any, places: Array, noise: float, size: int
) -> Selection:
    """The best placement on a line.

    Parameters
    ----------
    function : SetFunction
        What the criterion is, for the gains of the places that were found.
    criterion : {"mutual_information", "entropy"}
    kernel : Matern kernel with nu = 0.5, or a constant times one
    places : (n_places, 1)
    noise : float
        Must be 0.
    size : int
        At most so many for mutual information, exactly so many for entropy.
    """
    variance, length = _chain_parameters(criterion, kernel, places, noise)
    order = np.argsort(places[:, 0], kind="stable")
    times = places[order, 0]
    if (np.diff(times) == 0).any():
        raise ValueError("places must be distinct for method='exact', got two that are the same")
    n_places = len(times)
    if n_places * (size + 1) * 2 > MOST_ENTRIES:
        raise ValueError(
            f"size and the number of places must fit a table of {MOST_ENTRIES} entries for method='exact', got {size} "
            f"and {n_places}"
        )
    entropies = _conditional_entropies(times, variance, length)
    values, chosen = _search(entropies, size, both_sides=criterion == "mutual_information")
    if criterion == "mutual_information":
        values -= entropies[np.arange(n_places), np.arange(n_places)].sum()
        count = int(np.argmax(values))
    else:
        count = size
    items = np.sort(order[chosen(count)])
    return in_order(function, items, np.maximum.accumulate(values), n_places**2 * (size + 1))


def _chain_parameters(criterion: str, kernel: Any, places: Array, noise: float) -> tuple[float, float]:
    if criterion not in ("mutual_information", "entropy"):
        raise ValueError(f"criterion must be 'mutual_information' or 'entropy' with method='exact', got {criterion!r}")
    variance = 1.0
    if isinstance(kernel, Product) and isinstance(kernel.k1, ConstantKernel):
        variance, kernel = float(kernel.k1.constant_value), kernel.k2
    if not (isinstance(kernel, Matern) and kernel.nu == 0.5 and np.size(kernel.length_scale) == 1):
        raise ValueError(
            f"kernel must be Matern(nu=0.5), or a constant times it, with method='exact', got {kernel!r}: no other "
            "field on a line is a Markov chain"
        )
    if places.shape[1] != 1 or noise != 0:
        raise ValueError(
            "method='exact' is for places on a line (one column) and noise_variance=0, got "
            f"{places.shape[1]} columns and noise_variance={noise}"
        )
    return variance, float(np.ravel(kernel.length_scale)[0])


def _conditional_entropies(times: Array, variance: float, length: float) -> Array:
    """h(i | j) in entry (i, j + 1); h(i) in entry (i, 0), for no place before."""
    correlation = np.exp(-np.abs(times[:, None] - times) / length)
    with np.errstate(divide="ignore"):
        given = 0.5 * (LOG_2PIE + np.log(variance * -np.expm1(2.0 * np.log(correlation))))
    alone = np.full((len(times), 1), 0.5 * (LOG_2PIE + np.log(variance)))
    return np.concatenate([alone, given], axis=1)


def _search(entropies: Array, size: int, *, both_sides: bool) -> tuple[Array, Any]:
    """Best total entropy for each number of chosen places, and a function that tells which they are.

    ``best[side, j + 1, c]``: the place before is on this side, the last one of the other side is j (-1: none), and c
    places are chosen.
    """
    n_places = len(entropies)
    worth = np.array([1.0 if both_sides else 0.0, 1.0])  # of entropy without, and with a sensor
    best = np.full((2, n_places + 1, size + 1), -np.inf)
    best[WITHOUT, 0, 0] = worth[WITHOUT] * entropies[0, 0]
    best[WITH, 0, 1] = entropies[0, 0]
    switched: NDArray[np.int64] = np.zeros((n_places, 2, size + 1), dtype=np.int64)
    for place in range(1, n_places):
        fresh = np.full_like(best, -np.inf)
        for side in (WITHOUT, WITH):
            # The same side as the place before.
            stay = best[side, :place] + worth[side] * entropies[place, place]
            fresh[side, :place] = _counted(stay, side)
            # The other side, whose last place is given by the second index.
            other = 1 - side
            change = best[side, :place] + worth[other] * entropies[place, :place, None]
            from_which = change.argmax(axis=0)
            top = _counted(np.take_along_axis(change, from_which[None], axis=0), other)[0]
            fresh[other, place] = top
            switched[place, other] = np.concatenate([[0], from_which[:-1]]) if other == WITH else from_which
        best = fresh

    def chosen(count: int) -> IntArray:
        side, last = np.unravel_index(int(best[:, :, count].argmax()), best.shape[:2])
        found = []
        for place in range(n_places - 1, -1, -1):
            if side == WITH:
                found.append(place)
            if last == place and place > 0:
                side, last, count = 1 - side, switched[place, side, count], count - (side == WITH)
            else:
                count -= side == WITH
        return np.array(found, dtype=np.int64)

    return best.max(axis=(0, 1)), chosen


def _counted(values: Array, side: int) -> Array:
    """One more place is chosen, if it is on that side."""
    if side == WITHOUT:
        return values
    moved = np.full_like(values, -np.inf)
    moved[..., 1:] = values[..., :-1]
    return moved
