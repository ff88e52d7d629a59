"""The five-state Gaussian toy problem of the diversified hidden Markov model.

Start probabilities, means and variances are those of the paper [1]_. Its transition matrix is only a picture, so this
one stands in: it has the published mean pairwise Bhattacharyya distance of the rows (0.531) and, as published, nearly
uniform use of the states. The 300 sequences of length 6 visit the five states 321, 379, 352, 312 and 436 times on
average.

References
----------
.. [1] Qiao, M., Bian, W., Xu, R. Y. D. & Tao, D. (2015). Diversified hidden Markov models for sequential labeling.
   IEEE Trans. Knowledge and Data Engineering 27, 2947-2960.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pluri.datasets.chains import sample_paths
from pluri.datasets.records import LabelledSequences
from pluri.validation import RandomState, as_generator

STARTPROB = (0.0101, 0.0912, 0.2421, 0.0652, 0.5914)
TRANSMAT = (
    (0.108, 0.006, 0.544, 0.225, 0.117),
    (0.665, 0.145, 0.051, 0.117, 0.022),
    (0.044, 0.010, 0.299, 0.593, 0.054),
    (0.016, 0.085, 0.067, 0.035, 0.797),
    (0.166, 0.755, 0.039, 0.031, 0.009),
)
MEANS = (1.0, 2.0, 3.0, 4.0, 5.0)


@dataclass(frozen=True, eq=False, repr=False)
class ToyHMM(LabelledSequences):
    """Sequences drawn from a Gaussian hidden Markov model, and its parameters.

    Attributes
    ----------
    X : ndarray of shape (n_samples, 1)
    lengths : ndarray of shape (n_sequences,)
    states : ndarray of shape (n_samples,)
    startprob : ndarray of shape (5,)
    transmat : ndarray of shape (5, 5)
    means : ndarray of shape (5, 1)
    covars : ndarray of shape (5, 1)
        Variances.
    """

    startprob: NDArray[np.float64]
    transmat: NDArray[np.float64]
    means: NDArray[np.float64]
    covars: NDArray[np.float64]


def make_toy_hmm(
    n_sequences: int = 300, length: int = 6, variance: float = 0.025, random_state: RandomState = None
) -> ToyHMM:
    """Draw the five-state Gaussian toy problem.

    Parameters
    ----------
    n_sequences : int, default=300
        Number of sequences.
    length : int, default=6
        Length of each.
    variance : float, default=0.025
        Variance of each state's emission; the means are 1, 2, ..., 5.
    random_state : int, Generator, RandomState or None
        Source of randomness.

    Returns
    -------
    ToyHMM

    Examples
    --------
    >>> from pluri.datasets import make_toy_hmm
    >>> toy = make_toy_hmm(random_state=0)
    >>> toy.X.shape, toy.lengths.shape, toy.transmat.shape
    ((1800, 1), (300,), (5, 5))
    """
    if n_sequences < 1 or length < 1:
        raise ValueError(f"n_sequences and length must be at least 1, got {n_sequences} and {length}")
    if not (variance > 0 and np.isfinite(variance)):
        raise ValueError(f"variance must be positive, got {variance!r}")
    rng = as_generator(random_state)
    startprob = np.array(STARTPROB) / np.sum(STARTPROB)
    transmat = np.array(TRANSMAT) / np.sum(TRANSMAT, axis=1, keepdims=True)
    means = np.array(MEANS)[:, None]
    lengths = np.full(n_sequences, length, dtype=np.int64)
    states = sample_paths(startprob, transmat, lengths, rng)
    X = means[states] + np.sqrt(variance) * rng.standard_normal((states.size, 1))
    return ToyHMM(X, lengths, states, startprob, transmat, means, np.full((5, 1), float(variance)))
