"""Spoken vowels and digits: labelled sequences of frames of a few numbers each.

The files are read from the data folder and not shipped.

References
----------
.. [1] M. Kudo, J. Toyama and M. Shimbo, "Multidimensional curve classification using passing-through regions", Pattern
   Recognition Letters 20, 1999 (Japanese vowels).
.. [2] Z. Jackson et al., "Free Spoken Digit Dataset", github.com/Jakobovski/free-spoken-digit-dataset.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.datasets.home import find_file, npz_arrays

VOWELS_ADVICE = (
    "The data set JapaneseVowels is in the UCI repository; store its frames, one utterance after the other, as an npz "
    "file with the arrays X_train, len_train, y_train, X_test, len_test and y_test."
)
DIGITS_ADVICE = (
    "The recordings are on github.com/Jakobovski/free-spoken-digit-dataset; store 13 mel-frequency cepstral "
    "coefficients of each frame, one utterance after the other, as an npz file with the arrays X, length, digit, "
    "speaker and index."
)


@dataclass(frozen=True, eq=False, repr=False)
class Utterances:
    """Sequences with one label each.

    Attributes
    ----------
    X : ndarray of shape (n_frames, n_features)
        Frames of all utterances.
    lengths : ndarray of shape (n_utterances,)
        Frames of each utterance.
    y : ndarray of shape (n_utterances,)
        Label of each utterance: the speaker of a vowel, the digit that was spoken.
    speaker : ndarray of shape (n_utterances,)
        Who spoke.
    is_test : ndarray of shape (n_utterances,)
        Whether an utterance is in the usual test part.
    """

    X: NDArray[np.float64]
    lengths: NDArray[np.int64]
    y: NDArray[np.int64]
    speaker: NDArray[Any]
    is_test: NDArray[np.bool_]

    def sequences(self, chosen: Any = slice(None)) -> list[NDArray[np.float64]]:
        """The utterances as a list of arrays (views), or those that a mask or array of numbers chooses."""
        stops = np.cumsum(self.lengths)
        numbers = np.arange(len(self.lengths))[chosen]
        return [self.X[stops[number] - self.lengths[number] : stops[number]] for number in numbers]

    def keys(self) -> list[str]:
        """Names of the fields."""
        return [field.name for field in fields(self)]

    def __getitem__(self, name: str) -> Any:
        """Return a field by its name."""
        if name not in self.keys():
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        """Names of the fields, as in a dict."""
        return iter(self.keys())

    def __repr__(self) -> str:
        """Sizes instead of the values."""
        return (
            f"Utterances({len(self.lengths)} utterances of {self.lengths.min()} to {self.lengths.max()} frames, "
            f"{self.X.shape[1]} features, {len(np.unique(self.y))} classes, {len(np.unique(self.speaker))} speakers)"
        )


def load_japanese_vowels(data_home: str | os.PathLike[str] | None = None) -> Utterances:
    """Load 640 utterances of two vowels by nine speakers, 270 to learn from and 370 to test: who speaks?

    Parameters
    ----------
    data_home : str or path, optional
        Folder of ``japanese_vowels.npz``; see :func:`pluri.datasets.data_home`.

    Returns
    -------
    Utterances
        With 12 cepstral coefficients a frame; the label is the speaker, 1 to 9.

    Examples
    --------
    >>> from pluri.datasets import load_japanese_vowels
    >>> load_japanese_vowels()  # doctest: +SKIP
    Utterances(640 utterances of 7 to 29 frames, 12 features, 9 classes, 9 speakers)
    """
    path = find_file(("japanese_vowels.npz",), data_home, VOWELS_ADVICE)
    arrays = npz_arrays(path, ("X_train", "len_train", "y_train", "X_test", "len_test", "y_test"))
    for part in ("train", "test"):
        _check(path.name, arrays[f"X_{part}"], arrays[f"len_{part}"], arrays[f"y_{part}"])
    X, lengths, y = (np.concatenate([arrays[f"{name}_train"], arrays[f"{name}_test"]]) for name in ("X", "len", "y"))
    is_test = np.arange(len(lengths)) >= len(arrays["len_train"])
    return Utterances(X.astype(np.float64), lengths.astype(np.int64), y.astype(np.int64), y.astype(np.int64), is_test)


def load_spoken_digits(data_home: str | os.PathLike[str] | None = None) -> Utterances:
    """Load 2,500 spoken digits of five speakers, fifty of each digit by each.

    Parameters
    ----------
    data_home : str or path, optional
        Folder of ``fsdd_mfcc13.npz``; see :func:`pluri.datasets.data_home`.

    Returns
    -------
    Utterances
        With 13 mel-frequency cepstral coefficients a frame; the usual test part are the first five of the fifty.

    Examples
    --------
    >>> from pluri.datasets import load_spoken_digits
    >>> load_spoken_digits()  # doctest: +SKIP
    Utterances(2500 utterances of 12 to 129 frames, 13 features, 10 classes, 5 speakers)
    """
    path = find_file(("fsdd_mfcc13.npz",), data_home, DIGITS_ADVICE)
    arrays = npz_arrays(path, ("X", "length", "digit", "speaker", "index"))
    X, lengths = arrays["X"].astype(np.float64), arrays["length"].astype(np.int64)
    _check(path.name, X, lengths, arrays["digit"], arrays["speaker"], arrays["index"])
    return Utterances(X, lengths, arrays["digit"].astype(np.int64), arrays["speaker"], arrays["index"] < 5)


def _check(name: str, X: NDArray[Any], lengths: NDArray[Any], *labels: NDArray[Any]) -> None:
    """Refuse a file whose arrays do not belong together."""
    fits = lengths.ndim == 1 and all(one.shape == lengths.shape for one in labels)
    if X.ndim != 2 or not fits or lengths.sum() != len(X) or (lengths < 1).any():
        raise ValueError(
            f"{name} must hold frames (n_frames, n_features), lengths that sum to n_frames and a label for each "
            f"utterance, got shapes {X.shape}, {lengths.shape} and {', '.join(str(one.shape) for one in labels)}"
        )
