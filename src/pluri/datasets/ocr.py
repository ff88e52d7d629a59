"""Handwritten words as sequences of 16 x 8 binary letter images (Kassel's collection, Taskar's selection).

6877 words, 52,152 letters, 26 classes. Only 55 distinct words occur, so that training and test words are the same
words in other hands: transitions are almost known, and accuracies should be read with that in mind.

References
----------
.. [1] Kassel, R. H. (1995). A comparison of approaches to on-line handwritten character recognition. PhD thesis, MIT.
.. [2] Taskar, B., Guestrin, C. & Koller, D. (2003). Max-margin Markov networks. NeurIPS 16.
"""

from __future__ import annotations

import gzip
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pluri.datasets.home import find_file
from pluri.datasets.records import LabelledSequences

LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))
N_PIXELS = 128
FILES = ("ocr_letters.npz", "letter.data.gz", "letter.data")
ADVICE = (
    "The original letter.data.gz is distributed by Stanford AI (ai.stanford.edu/~btaskar/ocr); put it there as it is."
)


@dataclass(frozen=True, eq=False, repr=False)
class OCRLetters(LabelledSequences):
    """Words as sequences of binary letter images.

    Attributes
    ----------
    X : ndarray of shape (n_letters, 128), dtype uint8
        Pixels 0 or 1; ``X[i].reshape(16, 8)`` is the image.
    lengths : ndarray of shape (n_words,)
        Letters of each word.
    states : ndarray of shape (n_letters,)
        0 for a, ..., 25 for z; also ``y``.
    folds : ndarray of shape (n_words,)
        The collection's own ten cross-validation folds, 0 to 9.
    letters : ndarray of shape (26,)
        Name of each state.
    """

    folds: NDArray[np.int64]
    letters: NDArray[np.str_]


def load_ocr_letters(data_home: str | os.PathLike[str] | None = None) -> OCRLetters:
    """Load the handwritten words.

    Reads ``ocr_letters.npz`` (arrays ``X``: packed bits, ``y``, ``lengths``, ``folds``) or the original table
    ``letter.data.gz``, whichever the data folder has.

    Parameters
    ----------
    data_home : str or path, optional
        Folder of the file; see :func:`pluri.datasets.data_home`.

    Returns
    -------
    OCRLetters

    Examples
    --------
    >>> from pluri.datasets import load_ocr_letters
    >>> words = load_ocr_letters()  # doctest: +SKIP
    >>> words.X.shape, len(words.lengths)  # doctest: +SKIP
    ((52152, 128), 6877)
    """
    path = find_file(FILES, data_home, ADVICE)
    words = _read_packed(path) if path.suffix == ".npz" else _read_table(path)
    n_letters, n_words = words.X.shape[0], words.lengths.size
    if (
        words.X.shape != (n_letters, N_PIXELS)
        or words.states.shape != (n_letters,)
        or words.lengths.sum() != n_letters
        or words.folds.shape != (n_words,)
        or not np.isin(words.states, np.arange(LETTERS.size)).all()
    ):
        raise ValueError(
            f"{path.name} must hold 128 pixels and a letter a-z per row and a fold per word, got {words!r}"
        )
    return words


def _read_packed(path: Path) -> OCRLetters:
    with np.load(path, allow_pickle=False) as file:
        missing = {"X", "y", "lengths", "folds"} - set(file.files)
        if missing:
            raise ValueError(
                f"{path.name} must hold the arrays X, y, lengths and folds, got none named {sorted(missing)}"
            )
        return OCRLetters(
            X=np.unpackbits(file["X"], axis=1),
            lengths=file["lengths"].astype(np.int64),
            states=file["y"].astype(np.int64),
            folds=file["folds"].astype(np.int64),
            letters=LETTERS,
        )


def _read_table(path: Path) -> OCRLetters:
    """Tab-separated columns id, letter, next id (-1 at the end of a word), word, position, fold, then 128 pixels."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    rows = [line.split() for line in text.decode("ascii").splitlines() if line.strip()]
    if not rows or any(len(row) != 6 + N_PIXELS for row in rows):
        raise ValueError(f"{path.name} must have {6 + N_PIXELS} columns in each line, got other lines")
    table = np.array(rows)
    last = np.flatnonzero(table[:, 2] == "-1")
    if last.size == 0 or last[-1] != len(rows) - 1:
        raise ValueError(f"{path.name} must end with the last letter of a word (next id -1), got another")
    return OCRLetters(
        X=table[:, 6:].astype(np.uint8),
        lengths=np.diff(last, prepend=-1).astype(np.int64),
        states=np.array([ord(letter) - ord("a") for letter in table[:, 1]], dtype=np.int64),
        folds=table[last, 5].astype(np.int64),
        letters=LETTERS,
    )
