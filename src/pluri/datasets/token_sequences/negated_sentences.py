"""Invented sentences in five classes that depend on the order of words: "not" turns the next feeling round.

Some words are good (+1, +2), some bad (-1, -2), most say nothing. A negation reverses the sign of the first word with a
feeling after it. The class is the sum, from -2 or less to 2 or more. A bag of words sees the negations but not what
they belong to; a model of sequences can.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pluri.datasets.token_sequences.pairs import Tokens
from pluri.validation import Number, RandomState, as_generator, check_count, check_value

#: Shares of a sentence's words that have a feeling, and that are negations.
FEELING, NEGATION = 0.3, 0.1


@dataclass(frozen=True, eq=False, repr=False)
class NegatedSentences:
    """Invented sentences with a class each.

    Attributes
    ----------
    X : tuple of tuples of str
        Words of each sentence.
    y : ndarray of shape (n_sequences,)
        Its class, 0 (bad) to 4 (good).
    feeling : dict of str to int
        Words that are good or bad, and how much.
    """

    X: tuple[Tokens, ...]
    y: NDArray[np.int64]
    feeling: dict[str, int]

    def __len__(self) -> int:
        """Number of sentences."""
        return len(self.X)

    def __repr__(self) -> str:
        """Sizes instead of the values."""
        return f"NegatedSentences({len(self)} sentences, {len({word for words in self.X for word in words})} words)"


def make_negated_sentences(
    n_sequences: int = 2000,
    *,
    n_words: int = 500,
    min_length: int = 5,
    max_length: int = 30,
    label_noise: float = 0.0,
    random_state: RandomState = None,
) -> NegatedSentences:
    """Draw sentences whose class depends on the order of their words.

    Parameters
    ----------
    n_sequences : int, default=2000
        Number of sentences.
    n_words : int, default=500
        Size of the vocabulary, at least 20: a tenth good, a tenth bad, three negations, the rest without a feeling.
    min_length, max_length : int, default=5 and 30
        Lengths of sentences are uniform between these.
    label_noise : float, default=0
        Probability that a class is replaced by one drawn uniformly.
    random_state : int, Generator, RandomState or None
        Source of randomness.

    Returns
    -------
    NegatedSentences

    Examples
    --------
    >>> from pluri.datasets import make_negated_sentences
    >>> make_negated_sentences(200, random_state=0)
    NegatedSentences(200 sentences, 497 words)
    """
    check_count(n_sequences, "n_sequences")
    check_count(n_words, "n_words", 20)
    check_count(min_length, "min_length")
    check_count(max_length, "max_length", min_length)
    check_value(label_noise, "label_noise", Number(least=0, most=1))
    rng = as_generator(random_state)
    n_each = n_words // 10
    good, bad = ([f"{kind}{number}" for number in range(n_each)] for kind in ("good", "bad"))
    feeling = {word: 1 + number % 2 for number, word in enumerate(good)}
    feeling |= {word: -1 - number % 2 for number, word in enumerate(bad)}
    kinds = [good + bad, ["not", "never", "hardly"], [f"word{number}" for number in range(n_words - 2 * n_each - 3)]]

    def sentence() -> Tokens:
        length = rng.integers(min_length, max_length + 1)
        drawn = rng.choice(3, size=length, p=(FEELING, NEGATION, 1 - FEELING - NEGATION))
        return tuple(kinds[kind][rng.integers(len(kinds[kind]))] for kind in drawn)

    X = tuple(sentence() for _ in range(n_sequences))
    y = np.array([negated_class(words, feeling) for words in X])
    replaced = rng.random(n_sequences) < label_noise
    y[replaced] = rng.integers(5, size=replaced.sum())
    return NegatedSentences(X, y, feeling)


def negated_class(words: Tokens, feeling: dict[str, int]) -> int:
    """The class of a sentence: its summed feeling, cut at -2 and 2, plus 2."""
    total, sign = 0, 1
    for word in words:
        if word in ("not", "never", "hardly"):
            sign = -1
        elif word in feeling:
            total += sign * feeling[word]
            sign = 1
    return min(max(total, -2), 2) + 2
