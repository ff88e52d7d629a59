"""Spoken digits in a row as frames with a label each: a stand-in for the phones of read sentences.

Several digits of one speaker follow each other in a sequence. The label of a frame is the digit and the part of it
(beginning, middle, end for three parts), where a digit is cut into parts of equal length; the states of an aligned
hidden Markov model, which speech experiments [1]_ use, are such parts with fitted lengths.

References
----------
.. [1] Bengio, S., Vinyals, O., Jaitly, N. & Shazeer, N. (2015). Scheduled sampling for sequence prediction with
   recurrent neural networks. NeurIPS.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.datasets.records import LabelledSequences
from pluri.datasets.utterances import load_spoken_digits
from pluri.validation import RandomState, as_generator, check_count


@dataclass(frozen=True, eq=False, repr=False)
class DigitFrames(LabelledSequences):
    """Frames of spoken digits with a label each.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
    lengths : ndarray of shape (n_sequences,)
    states : ndarray of shape (n_samples,)
        ``digit * n_parts + part``.
    speaker : ndarray of shape (n_sequences,)
    is_test : ndarray of shape (n_sequences,)
        Whether a sequence is made of digits of the usual test part.
    """

    speaker: NDArray[Any]
    is_test: NDArray[np.bool_]


def load_spoken_digit_frames(
    data_home: str | os.PathLike[str] | None = None,
    *,
    n_digits: int = 5,
    n_parts: int = 3,
    derivatives: bool = True,
    random_state: RandomState = 0,
) -> DigitFrames:
    """Load spoken digits, several in a row, as frames with a label each.

    Parameters
    ----------
    data_home : str or path, optional
        Folder of ``fsdd_mfcc13.npz``; see :func:`pluri.datasets.load_spoken_digits`.
    n_digits : int, default=5
        Digits of a sequence, all of one speaker; the last sequence of a speaker may have fewer.
    n_parts : int, default=3
        Parts into which a digit is cut; there are ten times as many labels.
    derivatives : bool, default=True
        Whether first and second differences in time are appended to the 13 coefficients of a frame.
    random_state : int, Generator, RandomState or None, default=0
        Source of randomness, for the order in which the digits of a speaker follow each other.

    Returns
    -------
    DigitFrames

    Examples
    --------
    >>> from pluri.datasets import load_spoken_digit_frames
    >>> load_spoken_digit_frames().X.shape  # doctest: +SKIP
    (106797, 39)
    """
    check_count(n_digits, "n_digits")
    check_count(n_parts, "n_parts")
    digits = load_spoken_digits(data_home)
    utterances = digits.sequences()
    rng = as_generator(random_state)
    parts: dict[str, list[Any]] = {"X": [], "states": [], "speaker": [], "is_test": []}
    for is_test in (False, True):
        for speaker in np.unique(digits.speaker):
            own = rng.permutation(np.flatnonzero((digits.speaker == speaker) & (digits.is_test == is_test)))
            for first in range(0, own.size, n_digits):
                row = own[first : first + n_digits]
                frames = np.concatenate([utterances[number] for number in row])
                parts["X"].append(_with_derivatives(frames) if derivatives else frames)
                parts["states"].append(
                    np.concatenate(
                        [digits.y[number] * n_parts + _part(len(utterances[number]), n_parts) for number in row]
                    )
                )
                parts["speaker"].append(speaker)
                parts["is_test"].append(is_test)
    return DigitFrames(
        np.concatenate(parts["X"]),
        np.array([len(one) for one in parts["X"]], dtype=np.int64),
        np.concatenate(parts["states"]),
        np.array(parts["speaker"]),
        np.array(parts["is_test"]),
    )


def _part(length: int, n_parts: int) -> NDArray[np.int64]:
    """Which part of a digit each frame is in: parts as equal as whole frames allow."""
    return (np.arange(length) * n_parts) // length


def _with_derivatives(frames: NDArray[np.float64]) -> NDArray[np.float64]:
    """Frames beside their first and second differences in time, central ones inside."""
    if len(frames) < 2:
        return np.hstack([frames, np.zeros_like(frames), np.zeros_like(frames)])
    first = np.gradient(frames, axis=0)
    return np.hstack([frames, first, np.gradient(first, axis=0)])
