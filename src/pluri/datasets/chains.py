"""Draw state paths of a Markov chain, all sequences at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def sample_paths(
    startprob: NDArray[np.float64],
    transmat: NDArray[np.float64],
    lengths: NDArray[np.int64],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Draw one state path per sequence, ``P(x_1) = startprob``, ``P(x_t | x_{t-1}) = transmat[x_{t-1}]``.

    One uniform number is used per token, and the loop runs over positions, not over tokens.

    Parameters
    ----------
    startprob : ndarray of shape (n_states,)
    transmat : ndarray of shape (n_states, n_states)
    lengths : ndarray of shape (n_sequences,)
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (sum(lengths),)
        The paths one after the other.
    """
    uniform = rng.random(int(lengths.sum()))
    offsets = np.cumsum(lengths) - lengths
    start = _cumulative(startprob)
    rows = _cumulative(transmat)
    states = np.empty(uniform.size, dtype=np.int64)
    states[offsets] = np.searchsorted(start, uniform[offsets], side="right")
    for position in range(1, int(lengths.max())):
        here = offsets[lengths > position] + position
        states[here] = (uniform[here, None] >= rows[states[here - 1]]).sum(axis=1)
    return states


def sample_outcomes(
    probabilities: NDArray[np.float64], states: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw one outcome per token from the row of its state.

    Parameters
    ----------
    probabilities : ndarray of shape (n_states, n_outcomes)
    states : ndarray of shape (n_samples,)
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (n_samples,)
    """
    uniform = rng.random(states.size)
    outcomes = np.empty(states.size, dtype=np.int64)
    for state, row in enumerate(_cumulative(probabilities)):
        here = states == state
        outcomes[here] = np.searchsorted(row, uniform[here], side="right")
    return outcomes


def _cumulative(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cumulative sums that end at one exactly, so that a uniform number below one always finds its outcome."""
    sums = np.cumsum(probabilities, axis=-1)
    return sums / sums[..., -1:]
