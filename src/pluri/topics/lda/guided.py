"""Topics that are told some of their words beforehand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Topics and their words: a list of lists of words or columns, or a dictionary from topic to such a list.
SeedWords = Sequence[Iterable[Any]] | Mapping[int, Iterable[Any]]


def guided_word_prior(
    topic_word_prior: float | NDArray[np.float64],
    seed_words: SeedWords,
    strength: float,
    n_topics: int,
    n_words: int,
    vocabulary: NDArray[Any] | None,
) -> NDArray[np.float64]:
    """Prior counts of words in topics: those named count as if they had been seen `strength` times.

    Parameters
    ----------
    topic_word_prior : float, or array of shape (n_words,) or (n_topics, n_words)
    seed_words : list of lists, or dict of lists
        Words, or columns, of topic 0, 1, ...; topics that are not named are free.
    strength : float
    n_topics, n_words : int
    vocabulary : array of str of shape (n_words,), or None
        Words of the columns; needed where words are named.

    Returns
    -------
    array of shape (n_topics, n_words)

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.topics.lda.guided import guided_word_prior
    >>> guided_word_prior(0.1, {1: ["ice"]}, 5.0, 2, 3, np.array(["ball", "game", "ice"]))
    array([[0.1, 0.1, 0.1],
           [0.1, 0.1, 5.1]])
    """
    if not np.isfinite(strength) or strength <= 0:
        raise ValueError(f"seed_strength must be positive, got {strength!r}")
    prior = np.array(np.broadcast_to(np.asarray(topic_word_prior, dtype=float), (n_topics, n_words)))
    listed = seed_words.items() if isinstance(seed_words, Mapping) else enumerate(seed_words)
    columns = None if vocabulary is None else {str(word): column for column, word in enumerate(vocabulary)}
    for topic, words in listed:
        if not isinstance(topic, int | np.integer) or not 0 <= topic < n_topics:
            raise ValueError(f"seed_words names topic {topic!r}, but topics are 0 to {n_topics - 1}")
        if isinstance(words, str):
            raise ValueError(f"seed_words must list the words of topic {topic}, got the string {words!r}")
        for word in words:
            prior[topic, column_of_word(word, columns, n_words)] += strength
    return prior


def column_of_word(word: Any, columns: Mapping[str, int] | None, n_words: int, argument: str = "seed_words") -> int:
    """Column of a word, or of a number that is one; `argument` is what sentences call the list it stands in."""
    if isinstance(word, int | np.integer) and not isinstance(word, bool):
        if not 0 <= word < n_words:
            raise ValueError(f"{argument} names column {word}, but columns are 0 to {n_words - 1}")
        return int(word)
    if columns is None:
        raise ValueError(
            f"{argument} names {word!r}, but the words of the columns are not known: give vocabulary=, a data frame, "
            "or columns instead of words"
        )
    if str(word) not in columns:
        raise ValueError(f"{argument} names {word!r}, which is not in the vocabulary")
    return columns[str(word)]
