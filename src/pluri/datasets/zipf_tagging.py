"""A tagging corpus without any text: Zipf words, fifteen word classes, a hand-made grammar.

The classes have the frequencies of the Wall Street Journal sample's tag groups (30.7 % nouns, ..., 0.003 %
interjections). The grammar is a table of affinities written by hand: entry ``(i, j)`` says how much rather class ``j``
follows class ``i`` than chance would have it. Scaling ``f_i affinity_ij f_j`` to both margins ``f`` (iterative
proportional fitting, [1]_) makes the class frequencies ``f`` the stationary distribution exactly, and sequences start
in it: every position has the same class frequencies.

Class ``i`` has its own words, with Zipf probabilities ``rank^-exponent``. A token is ambiguous with a given probability
and then drawn from the whole vocabulary at its overall frequencies, which leaves these as they are.

References
----------
.. [1] Deming, W. E. & Stephan, F. F. (1940). On a least squares adjustment of a sampled frequency table when the
   expected marginal totals are known. Ann. Math. Statist. 11, 427-444.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.datasets.chains import sample_outcomes, sample_paths
from pluri.datasets.records import LabelledSequences
from pluri.datasets.treebank import GROUP_COUNTS, TAG_GROUPS
from pluri.validation import RandomState, as_generator

# Rows and columns in the order of TAG_GROUPS; 2 is indifferent, 0 nearly never.
AFFINITY = (
    "2 4 1 1 4 2 1 4 2 1 1 1 7 1 1",
    "2 1 5 2 2 2 4 2 3 4 6 6 0 6 0",
    "3 4 9 1 1 1 1 2 0 0 0 0 1 0 0",
    "5 1 1 2 0 0 0 2 1 0 0 0 0 0 0",
    "0 0 0 0 0 9 0 0 0 9 0 0 0 0 0",
    "1 1 1 2 0 2 4 3 1 5 0 5 0 2 9",
    "5 0 1 6 1 1 0 0 3 1 0 0 0 0 0",
    "2 1 3 3 0 2 6 0 3 1 0 4 0 4 0",
    "3 3 0 0 0 3 0 1 9 0 0 0 0 0 0",
    "0 2 2 4 2 5 2 3 0 5 1 1 0 2 1",
    "0 9 0 0 0 0 1 2 0 1 9 1 0 0 0",
    "2 1 0 2 9 8 0 1 1 3 0 1 0 0 2",
    "5 0 1 7 0 0 0 0 1 0 0 0 0 0 0",
    "0 0 0 0 6 9 0 0 0 2 0 0 0 0 0",
    "1 3 1 1 0 0 5 5 0 1 0 3 0 0 0",
)
RARE_AFFINITY = 0.05
# Share of the vocabulary that belongs to each class: open classes have most words, closed ones a handful.
VOCABULARY_SHARE = (0.50, 0.004, 0.08, 0.15, 0.002, 0.21, 0.002, 0.008, 0.001, 0.035, 0.001, 0.004, 0.001, 0.001, 0.001)
SYLLABLES = tuple(consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou")
# Lengths are 2 + a gamma mixture of Poisson counts of this shape: as spread as the sentences of the sample.
LENGTH_SHAPE = 4.0


@dataclass(frozen=True, eq=False, repr=False)
class ZipfTagging(LabelledSequences):
    """An artificial tagged corpus, and the parameters it was drawn from.

    Attributes
    ----------
    X : ndarray of shape (n_words, 1)
        Number of each word in ``vocabulary`` (0 is the most frequent), or the word itself with ``as_words=True``.
    lengths : ndarray of shape (n_sequences,)
    states : ndarray of shape (n_words,)
        Word class of each token.
    startprob : ndarray of shape (n_states,)
        Class frequencies; also the stationary distribution.
    transmat : ndarray of shape (n_states, n_states)
    emissionprob : ndarray of shape (n_states, n_words)
    vocabulary : ndarray of shape (n_words,)
        Invented words, the most frequent first.
    tags : ndarray of shape (n_states,)
        Names of the classes.
    """

    startprob: NDArray[np.float64]
    transmat: NDArray[np.float64]
    emissionprob: NDArray[np.float64]
    vocabulary: NDArray[np.str_]
    tags: NDArray[np.str_]


def make_zipf_tagging(
    n_sequences: int = 500,
    *,
    n_states: int = 15,
    n_words: int = 2000,
    mean_length: float = 20.0,
    exponent: float = 1.0,
    ambiguity: float = 0.05,
    as_words: bool = False,
    random_state: RandomState = None,
) -> ZipfTagging:
    """Draw an artificial tagged corpus.

    Parameters
    ----------
    n_sequences : int, default=500
        Number of sentences.
    n_states : int, default=15
        Number of word classes, 2 to 15: the most frequent ones.
    n_words : int, default=2000
        Size of the vocabulary, at least ``n_states``.
    mean_length : float, default=20
        Mean length of a sentence, at least 2; no sentence is shorter than 2.
    exponent : float, default=1
        Zipf exponent of each class's own words; 0 makes them equally frequent.
    ambiguity : float, default=0.05
        Probability that a token is drawn from the whole vocabulary instead of its class's own words, from 0 to 1.
    as_words : bool, default=False
        Return words instead of their numbers in ``X``.
    random_state : int, Generator, RandomState or None
        Source of randomness. The parameters do not depend on it.

    Returns
    -------
    ZipfTagging

    Examples
    --------
    >>> from pluri.datasets import make_zipf_tagging
    >>> corpus = make_zipf_tagging(100, n_words=300, random_state=0)
    >>> corpus.emissionprob.shape, corpus.tags[:3].tolist()
    ((15, 300), ['noun', 'punctuation', 'number'])
    """
    if n_sequences < 1:
        raise ValueError(f"n_sequences must be at least 1, got {n_sequences}")
    if not 2 <= n_states <= len(GROUP_COUNTS):
        raise ValueError(f"n_states must be from 2 to {len(GROUP_COUNTS)}, got {n_states}")
    if n_words < n_states:
        raise ValueError(f"n_words must be at least n_states ({n_states}), got {n_words}")
    if not (mean_length >= 2 and np.isfinite(mean_length)):
        raise ValueError(f"mean_length must be at least 2, got {mean_length!r}")
    if not (exponent >= 0 and np.isfinite(exponent)):
        raise ValueError(f"exponent must be at least 0, got {exponent!r}")
    if not 0 <= ambiguity <= 1:
        raise ValueError(f"ambiguity must be from 0 to 1, got {ambiguity!r}")
    rng = as_generator(random_state)
    classes = np.sort(np.argsort(GROUP_COUNTS)[::-1][:n_states])
    frequency = np.array(GROUP_COUNTS, dtype=np.float64)[classes]
    frequency /= frequency.sum()
    transmat = _transmat(classes, frequency)
    emissionprob = _emissionprob(np.array(VOCABULARY_SHARE)[classes], frequency, n_words, exponent, ambiguity)

    rate = rng.gamma(LENGTH_SHAPE, (mean_length - 2) / LENGTH_SHAPE, size=n_sequences)
    lengths = 2 + rng.poisson(rate).astype(np.int64)
    states = sample_paths(frequency, transmat, lengths, rng)
    tokens = sample_outcomes(emissionprob, states, rng)
    vocabulary = np.array([_invented_word(rank) for rank in range(n_words)])
    X: NDArray[Any] = (vocabulary[tokens] if as_words else tokens)[:, None]
    return ZipfTagging(
        X, lengths, states, frequency, transmat, emissionprob, vocabulary, np.array(list(TAG_GROUPS))[classes]
    )


def _transmat(classes: NDArray[np.intp], frequency: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale the affinities to both margins ``frequency``; all entries are positive, so the scaling converges."""
    digits = np.array([line.split() for line in AFFINITY], dtype=np.float64)[np.ix_(classes, classes)]
    joint = np.where(digits > 0, digits, RARE_AFFINITY) * np.outer(frequency, frequency)
    for _ in range(1000):
        joint *= (frequency / joint.sum(axis=0))[None, :]
        rows = joint.sum(axis=1)
        if np.abs(rows / frequency - 1).max() < 1e-13:
            break
        joint *= (frequency / rows)[:, None]
    return joint / joint.sum(axis=1, keepdims=True)


def _emissionprob(
    share: NDArray[np.float64], frequency: NDArray[np.float64], n_words: int, exponent: float, ambiguity: float
) -> NDArray[np.float64]:
    """Zipf words of each class mixed with the whole vocabulary; columns in the order of overall frequency."""
    n_states = frequency.size
    # One word for each class, the rest by share; the largest class takes what rounding leaves.
    sizes = 1 + np.floor((n_words - n_states) * share / share.sum()).astype(np.int64)
    sizes[share.argmax()] += n_words - sizes.sum()
    own = np.zeros((n_states, n_words))
    stop = 0
    for state, size in enumerate(sizes):
        start, stop = stop, stop + int(size)
        zipf = np.arange(1, size + 1, dtype=np.float64) ** -exponent
        own[state, start:stop] = zipf / zipf.sum()
    overall = frequency @ own
    emissionprob = (1 - ambiguity) * own + ambiguity * overall
    return emissionprob[:, np.argsort(-overall, kind="stable")]


def _invented_word(rank: int) -> str:
    """Spell a number in syllables, bijectively: short words are frequent, as in a language."""
    word, number = "", rank + 1
    while number:
        number, syllable = divmod(number - 1, len(SYLLABLES))
        word = SYLLABLES[syllable] + word
    return word
