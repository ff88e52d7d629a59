"""Words with nested brackets around them, to be found from the words: a stand-in for parsing sentences.

A phrase of kind A is an opening word of A, then one to three parts, each a plain word or a phrase, then a closing word.
Each kind has its own opening words, except that with a given probability an opening word says nothing of the kind; the
closing words are the same for all kinds. Who writes the tree must therefore count what is open, and remember its kind.
The tree is written as in [1]_: "(A" opens, ")A" closes, and "XX" stands for a word.

References
----------
.. [1] Vinyals, O., Kaiser, L., Koo, T., Petrov, S., Sutskever, I. & Hinton, G. (2015). Grammar as a foreign language.
   NeurIPS.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pluri.datasets.token_sequences.pairs import TokenPairs, Tokens
from pluri.validation import Number, RandomState, as_generator, check_count, check_value

LEAF = "XX"
#: Probability that a part of a phrase is itself a phrase, where the depth allows it.
NESTED = 0.5


@dataclass(frozen=True, eq=False, repr=False)
class BracketedSentences(TokenPairs):
    """Sentences and their trees.

    Attributes
    ----------
    X : tuple of tuples of str
        Words of each sentence.
    Y : tuple of tuples of str
        Its tree, as a sequence: "(A" and ")A" around a phrase of kind A, "XX" for each word.
    labels : tuple of str
        The kinds of phrases.
    """

    labels: Tokens


def make_bracketed_sentences(
    n_sequences: int = 1000,
    *,
    n_labels: int = 4,
    n_words: int = 60,
    max_depth: int = 3,
    ambiguity: float = 0.1,
    random_state: RandomState = None,
) -> BracketedSentences:
    """Draw sentences whose words tell how they are bracketed.

    Parameters
    ----------
    n_sequences : int, default=1000
        Number of sentences.
    n_labels : int, default=4
        Kinds of phrases, 1 to 26.
    n_words : int, default=60
        Size of the vocabulary, at least ``n_labels + 3``: half of it plain words, the rest shared out among the opening
        words of each kind, those of no kind, and the closing words.
    max_depth : int, default=3
        Most phrases that are open at once.
    ambiguity : float, default=0.1
        Probability that the opening word of a phrase says nothing of its kind.
    random_state : int, Generator, RandomState or None
        Source of randomness.

    Returns
    -------
    BracketedSentences

    Examples
    --------
    >>> from pluri.datasets import make_bracketed_sentences
    >>> sentences = make_bracketed_sentences(3, max_depth=1, random_state=0)
    >>> " ".join(sentences.Y[0])
    '(D XX XX XX )D'
    >>> len(sentences.X[0]) == sentences.Y[0].count("XX")
    True
    """
    check_count(n_sequences, "n_sequences")
    check_count(n_labels, "n_labels")
    if n_labels > 26:
        raise ValueError(f"n_labels must be at most 26, got {n_labels}")
    check_count(n_words, "n_words", n_labels + 3)
    check_count(max_depth, "max_depth")
    check_value(ambiguity, "ambiguity", Number(least=0, most=1))
    rng = as_generator(random_state)
    labels = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:n_labels])
    words = _vocabulary(labels, n_words)

    def one_of(choices: list[str]) -> str:
        return choices[rng.integers(len(choices))]

    def phrase(depth: int) -> tuple[list[str], list[str]]:
        label = labels[rng.integers(n_labels)]
        opening = words["any" if rng.random() < ambiguity else label]
        sentence, tree = [one_of(opening)], ["(" + label, LEAF]
        for _ in range(rng.integers(1, 4)):
            if depth < max_depth and rng.random() < NESTED:
                inner = phrase(depth + 1)
                sentence += inner[0]
                tree += inner[1]
            else:
                sentence.append(one_of(words["plain"]))
                tree.append(LEAF)
        return [*sentence, one_of(words["closing"])], [*tree, LEAF, ")" + label]

    drawn = [phrase(1) for _ in range(n_sequences)]
    return BracketedSentences(
        tuple(tuple(sentence) for sentence, _ in drawn), tuple(tuple(tree) for _, tree in drawn), labels
    )


def _vocabulary(labels: Tokens, n_words: int) -> dict[str, list[str]]:
    """Plain, closing and opening words, the latter by the kind of phrase they open."""
    names = [*labels, "any", "closing"]
    shares = np.array_split(np.arange(max(len(names), n_words // 2)), len(names))
    words = {name: [f"{name.lower()}{number}" for number in range(len(share))] for name, share in zip(names, shares)}
    n_plain = n_words - sum(map(len, words.values()))
    return words | {"plain": [f"word{number}" for number in range(n_plain)]}
