"""What the spelling of a word tells about it: its ending and its shape, as columns beside the word itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def word_features(
    words: Sequence[str] | NDArray[Any], *, suffix_length: int = 3, min_words: int = 5
) -> NDArray[np.str_]:
    """Suffix and shape of each word, both functions of the word in lower case.

    Parameters
    ----------
    words : sequence of str
        The words of a text as they are written, or its vocabulary.
    suffix_length : int, default=3
        Number of letters of a suffix.
    min_words : int, default=5
        A suffix that fewer distinct words have becomes ``*rare``. For a second text, with a model fitted to a first
        one, use 1: what is rare there may not be here.

    Returns
    -------
    features : ndarray of str, shape (n_words, 2)
        Suffix: the last letters of a word of letters only that is at least two letters longer; ``*short`` for other
        words of letters only, ``*other`` for the rest. Shape: ``punctuation`` without a letter or digit, ``digit`` with
        a digit, else ``capital`` or ``small`` by the first character, with a ``-`` behind if there is a hyphen. Forms
        that differ in case only are one word, with the shape of its commonest form (the first in the text of several).

    Examples
    --------
    >>> from pluri.datasets.words import word_features
    >>> word_features(["The", "singing", "the", "Mid-1990s", "the", "."], min_words=1).tolist()
    [['*short', 'small'], ['ing', 'small'], ['*short', 'small'], ['*other', 'digit'], ['*short', 'small'],
     ['*other', 'punctuation']]
    """
    for name, value in (("suffix_length", suffix_length), ("min_words", min_words)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    forms = [str(word) for word in words]
    commonest: dict[str, str] = {}
    # From the commonest on, ties in the order of the text: the first form of a word to come is the one to keep.
    for form, _ in Counter(forms).most_common():
        commonest.setdefault(form.lower(), form)
    suffixes = {word: _suffix(word, suffix_length) for word in commonest}
    shared = Counter(suffixes.values())
    features = {
        word: (suffix if shared[suffix] >= min_words or suffix[0] == "*" else "*rare", _shape(commonest[word]))
        for word, suffix in suffixes.items()
    }
    return np.array([features[form.lower()] for form in forms], dtype=np.str_).reshape(-1, 2)


def _suffix(word: str, length: int) -> str:
    if not word.isalpha():
        return "*other"
    return word[-length:] if len(word) > length + 1 else "*short"


def _shape(form: str) -> str:
    if not any(character.isalnum() for character in form):
        return "punctuation"
    if any(character.isdigit() for character in form):
        return "digit"
    return ("capital" if form[0].isupper() else "small") + ("-" if "-" in form else "")
