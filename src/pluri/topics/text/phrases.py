r"""Phrases: words that stand one after the other more often than chance would have it.

The score of two neighbours is their normalised pointwise mutual information [1]_,

.. math::

   \mathrm{npmi}(a, b) = \log \frac{p(ab)}{p(a) p(b)} \Big/ -\log p(ab) ,

1 if they occur only together, 0 if they are independent. Phrases of three or four words are pairs whose parts are
phrases.

References
----------
.. [1] Bouma, G. (2009). Normalized (pointwise) mutual information in collocation extraction. GSCL, 31-40.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from math import log
from typing import Any

from pluri.topics.text.cutting import WordCutter, each_text
from pluri.validation import check_count

#: Different pairs that are counted; when there are more, those seen once are dropped.
MOST_PAIRS = 2_000_000


def find_phrases(
    texts: Iterable[str],
    cutter: WordCutter | None = None,
    *,
    min_documents: int = 10,
    min_score: float = 0.5,
    max_phrases: int = 2000,
    max_words: int = 3,
) -> dict[str, float]:
    """Phrases of texts, and their scores.

    Parameters
    ----------
    texts : iterable of str
        Gone through once for phrases of two words, once more for longer ones.
    cutter : WordCutter, optional
        How texts are cut; no phrase has one of its stop words.
    min_documents : int, default=10
        Texts that a phrase occurs in, at least.
    min_score : float, default=0.5
        Normalised pointwise mutual information, from -1 to 1.
    max_phrases : int, default=2000
        Those of the best scores, if there are more.
    max_words : int, default=3
        Words of a phrase.

    Returns
    -------
    dict of str to float
        For ``WordCutter(phrases=...)``, the best first.

    Examples
    --------
    >>> from pluri.topics import find_phrases
    >>> texts = ["a bus to new york", "new york has a bus", "the old bus", "old news of new york"] * 4
    >>> find_phrases(texts)
    {'new york': 1.0}
    """
    for name, value in (("min_documents", min_documents), ("max_phrases", max_phrases), ("max_words", max_words)):
        check_count(value, name)
    if not -1 <= min_score <= 1:
        raise ValueError(f"min_score must lie between -1 and 1, got {min_score!r}")
    cutter = WordCutter() if cutter is None else cutter
    many: Any = texts if hasattr(texts, "__len__") or max_words < 3 else list(texts)
    found: dict[str, float] = {}
    for _ in range(max(1, max_words - 1)):
        joining = replace(cutter, phrases=tuple(found) + tuple(cutter.phrases), n_grams=1)
        new = {
            phrase: score
            for phrase, score in _pairs(many, joining, min_documents, min_score).items()
            if len(phrase.split()) <= max_words
        }
        if not new.keys() - found.keys():
            break
        found |= new
    best = sorted(found, key=lambda phrase: (-found[phrase], phrase))[:max_phrases]
    return {phrase: found[phrase] for phrase in best}


def _pairs(texts: Iterable[str], cutter: WordCutter, min_documents: int, min_score: float) -> dict[str, float]:
    words: Counter[str] = Counter()
    together: Counter[tuple[str, str]] = Counter()
    spread: Counter[tuple[str, str]] = Counter()
    stopped = frozenset(cutter.stop_words)
    for text in each_text(texts):
        tokens = cutter.tokens(text)
        words.update(tokens)
        neighbours = [(a, b) for a, b in pairwise(tokens) if a not in stopped and b not in stopped]
        together.update(neighbours)
        spread.update(set(neighbours))
        if len(together) > MOST_PAIRS:
            together = Counter({pair: count for pair, count in together.items() if count > 1})
            spread = Counter({pair: spread[pair] for pair in together})
    total = sum(words.values())
    found = {}
    for (a, b), count in together.items():
        if spread[a, b] < min_documents or a == b:
            continue
        chance = count / total
        score = log(chance * total * total / (words[a] * words[b])) / -log(chance) if chance < 1 else 1.0
        # Edges of texts: a word that begins or ends one has a neighbour less.
        if score >= min_score:
            found[f"{a} {b}"] = round(min(score, 1.0), 6)
    return found
