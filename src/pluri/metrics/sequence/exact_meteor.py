"""METEOR without stems and synonyms: words match if they are equal.

As many words of a candidate as can be are paired with equal words of the reference, each once, in as few runs as
possible: ``chunks`` stretches that are contiguous and in the same order in both. With precision P and recall R of the
``matches`` [1]_,

    score = 10 P R / (R + 9 P) * (1 - 0.5 (chunks / matches)^3).

The full measure also pairs stems and synonyms, finds more matches, and must not be compared with this one.

References
----------
.. [1] Banerjee, S. & Lavie, A. (2005). METEOR: an automatic metric for MT evaluation with improved correlation with
   human judgments. ACL workshop on evaluation measures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from pluri.metrics.sequence.n_grams import Words, sentence_pairs

#: Partial alignments kept at each word; only sentences that repeat many words many times have more.
BEAM = 1000


def exact_meteor_score(candidates: Sequence[Any], references: Sequence[Any]) -> float:
    """Exact-match METEOR, averaged over a corpus; of several references the best counts.

    Parameters
    ----------
    candidates : list of str, or list of lists of tokens
        Predicted sentences; strings are split at blanks.
    references : list of lists of str, or list of lists of lists of tokens
        One or more references of each candidate; with strings, a single one need not be in a list.

    Returns
    -------
    float
        Between 0 and 1; a sentence of n words equal to its reference has ``1 - 0.5 / n^3``.

    Examples
    --------
    >>> from pluri.metrics import exact_meteor_score
    >>> round(exact_meteor_score(["the cat sat on the mat"], ["on the mat sat the cat"]), 4)
    0.9375
    """
    pairs = sentence_pairs(candidates, references)
    return sum(max(_score(candidate, one) for one in several) for candidate, several in pairs) / len(pairs)


def _score(candidate: Words, reference: Words) -> float:
    matches = (Counter(candidate) & Counter(reference)).total()
    if not matches:
        return 0.0
    precision, recall = matches / len(candidate), matches / len(reference)
    mean = 10 * precision * recall / (recall + 9 * precision)
    return mean * (1 - 0.5 * (fewest_chunks(candidate, reference) / matches) ** 3)


def fewest_chunks(candidate: Words, reference: Words) -> int:
    """Fewest runs of an alignment with the most matches.

    The candidate is walked from left to right. A state is the set of reference words in use, as bits, and the one that
    the last word was paired with, on which alone the rest depends; of equal states the one with fewest runs is kept.
    """
    places: dict[str, list[int]] = {}
    for place, word in enumerate(reference):
        places.setdefault(word, []).append(place)
    surplus = Counter(candidate) - Counter(reference)
    states = {(0, -2): 0}
    seen: Counter[str] = Counter()
    for word in candidate:
        following: dict[tuple[int, int], int] = {}
        own = places.get(word, [])
        for (used, last), chunks in states.items():
            free = [place for place in own if not used >> place & 1]
            choices = [((used | 1 << place, place), chunks + (place != last + 1)) for place in free]
            # A word may stay alone only as often as the candidate has it more often than the reference.
            if seen[word] - (len(own) - len(free)) < surplus[word]:
                choices.append(((used, -2), chunks))
            for state, count in choices:
                following[state] = min(count, following.get(state, count))
        seen[word] += 1
        states = following
        if len(states) > BEAM:
            states = dict(sorted(states.items(), key=lambda item: item[1])[:BEAM])
    return min(states.values())
