"""Rows of probabilities as unconstrained vectors, for extrapolated EM steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pluri.priors import PseudoCountPrior, RowPrior

Array = NDArray[np.float64]

#: Smallest positive probability of an extrapolated guess: a zero would stay a zero.
TINY = 1e-300


def softmax(logits: Array) -> Array:
    """Rows of probabilities from logits; -inf is probability zero."""
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def rows_from_logits(logits: Array, like: Array, prior: RowPrior) -> Array:
    """Rows with the zeros of `like`, above the floor that the prior's M-step keeps to.

    Without the floor an extrapolated guess could beat every answer of the M-step, and the objective would fall after.
    """
    rows = softmax(logits)
    bound = np.where(like > 0, TINY, 0.0)
    if isinstance(prior, PseudoCountPrior):
        bound = np.where((like > 0) & (prior.pseudo_counts(rows.shape) < 0), prior.floor, bound)
    fixed = rows < bound
    while (rows < bound).any():
        fixed |= rows < bound
        free = np.where(fixed, 0.0, rows)
        room = 1.0 - np.where(fixed, bound, 0.0).sum(axis=-1, keepdims=True)
        rows = np.where(fixed, bound, free * room / np.maximum(free.sum(axis=-1, keepdims=True), TINY))
    return rows
