"""Which matrix each region has, and the weights of the matrices.

A region with transitions chooses among the matrices that others have, by how well they fit, and those that nobody has,
by the evidence of its transitions with the matrix integrated out; one of the latter is drawn at once, for the regions
that choose after it. Regions without transitions follow the weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.dynamics.regions.conditionals import draw_matrices, log_evidence, log_fit, regression_posterior
from pluri.dynamics.regions.records import Moments, Position
from pluri.dynamics.regions.sticks import drawn_concentration, used_sticks
from pluri.priors import Gamma
from pluri.processes.stick_draws import choose_rows, draw_sticks, exchange_labels

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


def chosen_pointers(
    rng: np.random.Generator, position: Position, moments: Moments, prior: Gamma | float
) -> dict[str, NDArray[Any]]:
    """Pointers, weights of the matrices and their concentration, drawn anew, and matrices in their new order.

    Matrices that no region with transitions has are to be drawn after this.
    """
    filled = moments.counts > 0
    J = len(position["matrices"])
    pointers = np.array(position["pointers"])
    pointers[filled], matrices = _chosen(rng, position, moments, filled)
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
        "matrices": matrices[order],
        "regime_log_weights": log_weights,
        "regime_concentration": np.asarray(concentration),
    }


def _chosen(rng: np.random.Generator, position: Position, moments: Moments, filled: NDArray[Any]) -> tuple[Any, Array]:
    """Pointers of the regions that have transitions, each drawn given all others, and the matrices."""
    g = np.broadcast_to(position["noise_precision"][:, None], filled.shape)[filled]
    gram, cross = (sums[filled] * g[:, None, None] for sums in (moments.gram, moments.cross))
    squares, relevance = moments.squares[filled] * g, position["relevance"]
    matrices, P = np.array(position["matrices"]), len(relevance)
    J = len(matrices)
    fit = log_fit(matrices, gram, cross, squares)
    evidence = log_evidence(gram, cross, squares, relevance)
    precision, mean = regression_posterior(gram, cross, relevance)
    chosen = position["pointers"][filled]
    n_users = np.bincount(chosen, minlength=J)
    log_weights = position["regime_log_weights"]
    uniforms = rng.random(len(chosen))
    for r in range(len(chosen)):
        n_users[chosen[r]] -= 1
        score = log_weights + np.where(n_users > 0, fit[r], evidence[r])
        shares = np.exp(score - score.max()).cumsum()
        j = min(int(np.searchsorted(shares, uniforms[r] * shares[-1], side="right")), J - 1)
        if n_users[j] == 0:
            matrices[j, :, :P] = draw_matrices(rng, precision[r], mean[r])
            fit[:, j] = log_fit(matrices[j : j + 1], gram, cross, squares)[:, 0]
        n_users[j] += 1
        chosen[r] = j
    return chosen, matrices
