"""Frames whose labels stay as they are most of the time: the trap of decoders that are told the previous label.

A state stays with probability ``stay`` and else moves on by one or two; a frame is the mean of its state and much
noise. Who is told the true previous label hardly needs the frames, and is lost when that label is a guess of its own:
the pattern of the speech experiment of [1]_ on data that a laptop learns in seconds.

References
----------
.. [1] Bengio, S., Vinyals, O., Jaitly, N. & Shazeer, N. (2015). Scheduled sampling for sequence prediction with
   recurrent neural networks. NeurIPS.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pluri.datasets.chains import sample_paths
from pluri.datasets.records import LabelledSequences
from pluri.validation import Number, RandomState, as_generator, check_count, check_value


@dataclass(frozen=True, eq=False, repr=False)
class StickyFrames(LabelledSequences):
    """Noisy frames of a chain of states that seldom moves, and its parameters.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
    lengths : ndarray of shape (n_sequences,)
    states : ndarray of shape (n_samples,)
    startprob : ndarray of shape (n_states,)
    transmat : ndarray of shape (n_states, n_states)
    means : ndarray of shape (n_states, n_features)
    noise_scale : float
    """

    startprob: NDArray[np.float64]
    transmat: NDArray[np.float64]
    means: NDArray[np.float64]
    noise_scale: float


def make_sticky_frames(
    n_sequences: int = 500,
    *,
    n_states: int = 10,
    length: int = 60,
    n_features: int = 5,
    stay: float = 0.9,
    noise_scale: float = 1.2,
    random_state: RandomState = None,
) -> StickyFrames:
    """Draw noisy frames of a chain of states that seldom moves.

    Parameters
    ----------
    n_sequences : int, default=500
        Number of sequences; the usual split takes 300, 100 and 100 of them to train, validate and test.
    n_states : int, default=10
        Number of states, at least 3.
    length : int, default=60
        Length of each sequence.
    n_features : int, default=5
        Length of a frame.
    stay : float, default=0.9
        Probability that the state stays; else it moves on by one or by two, with equal odds.
    noise_scale : float, default=1.2
        Standard deviation of a frame around the mean of its state. The means are standard normal.
    random_state : int, Generator, RandomState or None
        Source of randomness.

    Returns
    -------
    StickyFrames

    Examples
    --------
    >>> from pluri.datasets import make_sticky_frames
    >>> frames = make_sticky_frames(20, random_state=0)
    >>> frames.X.shape, frames.states.shape, frames.transmat[0, :4].round(2).tolist()
    ((1200, 5), (1200,), [0.9, 0.05, 0.05, 0.0])
    """
    check_count(n_sequences, "n_sequences")
    check_count(n_states, "n_states", 3)
    check_count(length, "length")
    check_count(n_features, "n_features")
    check_value(stay, "stay", Number(least=0, most=1))
    check_value(noise_scale, "noise_scale", Number(least=0))
    rng = as_generator(random_state)
    startprob = np.full(n_states, 1 / n_states)
    transmat = np.zeros((n_states, n_states))
    state = np.arange(n_states)
    transmat[state, state] = stay
    for step in (1, 2):
        transmat[state, (state + step) % n_states] = (1 - stay) / 2
    means = rng.standard_normal((n_states, n_features))
    lengths = np.full(n_sequences, length, dtype=np.int64)
    states = sample_paths(startprob, transmat, lengths, rng)
    X = means[states] + noise_scale * rng.standard_normal((states.size, n_features))
    return StickyFrames(X, lengths, states, startprob, transmat, means, float(noise_scale))
