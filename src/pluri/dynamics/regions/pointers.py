"""Which matrix each region has, and the weights of the matrices.

A region with transitions chooses given the pointers of all others, with all matrices integrated out: by what the
transitions of the regions that have a matrix say of its own, or by its own evidence for a matrix that nobody has. Given
drawn matrices instead, regions hardly ever came to share one in more than a few dimensions: a draw from few transitions
is far from any other region's. Regions without transitions follow the weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.dynamics.regions.conditionals import log_evidence
from pluri.dynamics.regions.records import Moments, Position
from pluri.dynamics.regions.sticks import drawn_concentration, used_sticks
from pluri.priors import Gamma
from pluri.processes.stick_draws import choose_rows, draw_sticks, exchange_labels

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


def chosen_pointers(
    rng: np.random.Generator, position: Position, moments: Moments, prior: Gamma | float
) -> dict[str, NDArray[Any]]:
    """Pointers, weights of the matrices and their concentration, drawn anew.

    The matrices were integrated out, and are to be drawn after this, before anything else that depends on them.
    """
    filled = moments.counts > 0
    J = len(position["matrices"])
    pointers = np.array(position["pointers"])
    pointers[filled] = pointers_given_others(rng, position, moments, filled)
    counts = np.bincount(pointers[filled], minlength=J)
    log_weights = position["regime_log_weights"]
    order = exchange_labels(rng, log_weights, counts)
    pointers[filled] = np.argsort(order)[pointers[filled]]
    used, log_rests = used_sticks(log_weights[None], counts[None, order])
    concentration = drawn_concentration(rng, prior, float(position["regime_concentration"]), used, log_rests)
    log_weights, _ = draw_sticks(rng, counts[order], concentration)
    pointers[~filled] = choose_rows(rng, np.tile(log_weights, (int((~filled).sum()), 1)))
    return {
        "pointers": pointers,
        "regime_log_weights": log_weights,
        "regime_concentration": np.asarray(concentration),
    }


def pointers_given_others(
    rng: np.random.Generator, position: Position, moments: Moments, filled: NDArray[Any]
) -> Integers:
    """Pointers of the regions that have transitions, each drawn given all others, by the sums of each regime."""
    g = np.broadcast_to(position["noise_precision"][:, None], filled.shape)[filled]
    sums = (moments.gram, moments.cross, moments.squares)
    own = [part[filled] * g.reshape(-1, *[1] * (part.ndim - 2)) for part in sums]
    relevance, J = position["relevance"], len(position["matrices"])
    chosen = position["pointers"][filled]
    users = np.bincount(chosen, minlength=J)
    of_regime = [np.zeros((J, *part.shape[1:])) for part in own]
    for part, total in zip(own, of_regime):
        np.add.at(total, chosen, part)

    def evidence(gram: Array, cross: Array, squares: Array) -> Array:
        return log_evidence(gram, cross, squares, relevance)

    alone, known = evidence(*own), evidence(*of_regime)
    uniforms = rng.random(len(chosen))
    for r, old in enumerate(chosen.tolist()):
        users[old] -= 1
        for part, total in zip(own, of_regime):
            total[old] = total[old] - part[r] if users[old] else 0.0  # of nobody rounding would be left
        known[old] = evidence(*(total[old] for total in of_regime))
        used = np.flatnonzero(users)
        joined = known.copy()
        joined[users == 0] += alone[r]
        joined[used] = evidence(*(total[used] + part[r] for part, total in zip(own, of_regime)))
        score = position["regime_log_weights"] + joined - known
        shares = np.exp(score - score.max()).cumsum()
        new = min(int(np.searchsorted(shares, uniforms[r] * shares[-1], side="right")), J - 1)
        for part, total in zip(own, of_regime):
            total[new] += part[r]
        users[new] += 1
        known[new], chosen[r] = joined[new], new
    return np.asarray(chosen)
