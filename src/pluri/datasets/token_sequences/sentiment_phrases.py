"""The phrases of the Stanford Sentiment Treebank [1]_, with the sentence each comes from.

Every part of a parsed sentence of a film review has a rating of its own, from 0 (very negative) to 4 (very positive).
Parts of one sentence say nearly the same, so whoever puts some of them into the training part and others into the test
part measures memory. ``sentence`` is what to split by. A phrase that occurs in several sentences is kept once, with the
first, so that no phrase is on both sides of such a split.

References
----------
.. [1] Socher, R. et al. (2013). Recursive deep models for semantic compositionality over a sentiment treebank. EMNLP.
"""

from __future__ import annotations

import gzip
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pluri.datasets.home import find_file

PHRASES_FILE, SENTENCES_FILE = "sst_train_phrases.tsv.gz", "sst_sentences.tsv.gz"
ADVICE = (
    "Both files are made from the trees of nlp.stanford.edu/sentiment: the columns label0to4 and phrase for the "
    "distinct phrases of the training trees, each tree from its leaves to its root; and split, label0to4 and text for "
    "sentences."
)


@dataclass(frozen=True, eq=False, repr=False)
class SentimentPhrases:
    """Phrases with a rating and the sentence each comes from.

    Attributes
    ----------
    texts : tuple of str
        Phrases, their words separated by blanks.
    y : ndarray of shape (n_phrases,)
        Rating, 0 (very negative) to 4 (very positive).
    sentence : ndarray of shape (n_phrases,)
        Number of the sentence each phrase comes from; give it as ``groups`` to a split.
    """

    texts: tuple[str, ...]
    y: NDArray[np.int64]
    sentence: NDArray[np.int64]

    def __len__(self) -> int:
        """Number of phrases."""
        return len(self.texts)

    def __repr__(self) -> str:
        """Sizes instead of the values."""
        return f"SentimentPhrases({len(self)} phrases of {np.unique(self.sentence).size} sentences)"


def load_sst_phrases(
    data_home: str | os.PathLike[str] | None = None, *, n_phrases: int | None = None
) -> SentimentPhrases:
    """Load the rated phrases of the training sentences, sentence after sentence.

    Parameters
    ----------
    data_home : str or path, optional
        Folder of ``sst_train_phrases.tsv.gz`` and ``sst_sentences.tsv.gz``; see :func:`pluri.datasets.data_home`.
    n_phrases : int, optional
        How many, from the first; all by default.

    Returns
    -------
    SentimentPhrases

    Examples
    --------
    >>> from pluri.datasets import load_sst_phrases
    >>> load_sst_phrases()  # doctest: +SKIP
    SentimentPhrases(159274 phrases of 8534 sentences)
    """
    path = find_file((PHRASES_FILE,), data_home, ADVICE)
    rows = _table(path, 2)[:n_phrases]
    labels = [label for label, _ in rows]
    texts = tuple(text for _, text in rows)
    y = np.array([int(label) if label in {"0", "1", "2", "3", "4"} else -1 for label in labels], dtype=np.int64)
    if (y < 0).any():
        raise ValueError(f"{path.name} must have labels from 0 to 4, got {labels[int(np.flatnonzero(y < 0)[0])]!r}")
    sentences_path = find_file((SENTENCES_FILE,), data_home, ADVICE)
    sentences = [text for split, _, text in _table(sentences_path, 3) if split == "train"]
    return SentimentPhrases(texts, y, _sentence_of(texts, sentences, path.name))


def _table(path: Path, n_columns: int) -> list[tuple[str, ...]]:
    """Rows of a tab-separated table without its header."""
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        rows = [tuple(line.rstrip("\n").split("\t")) for line in file][1:]
    wrong = next((number for number, row in enumerate(rows, 2) if len(row) != n_columns), None)
    if wrong is not None:
        raise ValueError(f"{path.name} must have {n_columns} columns, got {len(rows[wrong - 2])} in line {wrong}")
    return rows


def _sentence_of(texts: tuple[str, ...], sentences: list[str], name: str) -> NDArray[np.int64]:
    """Number of each phrase's sentence: both are in the same order, and a sentence is the last of its phrases."""
    found = np.empty(len(texts), dtype=np.int64)
    number = 0
    for row, text in enumerate(texts):
        while number < len(sentences) and f" {text} " not in f" {sentences[number]} ":
            number += 1
        if number == len(sentences):
            raise ValueError(f"{name} must hold parts of the training sentences in their order, got {text!r} out of it")
        found[row] = number
        number += text == sentences[number]
    return found
