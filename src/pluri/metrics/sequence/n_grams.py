"""Sentences beside references, by the n-grams that they share: BLEU and CIDEr.

BLEU [1]_ is the geometric mean of the precisions of 1- to 4-grams over a whole corpus, where an n-gram counts at most
as often as in the reference that has it most, times ``min(1, exp(1 - r / c))`` with the lengths r of the references
(for each sentence the nearest) and c of the candidates.

CIDEr [2]_ weights the n-grams of a sentence by ``log(number of items / items whose references have it)`` and takes the
cosine of candidate and reference, averaged over references and n = 1, ..., 4, times 10. CIDEr-D, which caption servers
report, clips the counts of the candidate and multiplies by ``exp(-(difference of lengths)^2 / 72)``.

References
----------
.. [1] Papineni, K., Roukos, S., Ward, T. & Zhu, W.-J. (2002). BLEU: a method for automatic evaluation of machine
   translation. ACL.
.. [2] Vedantam, R., Zitnick, C. L. & Parikh, D. (2015). CIDEr: consensus-based image description evaluation. CVPR.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from pluri.validation import Only, check_count, check_value

Words = tuple[str, ...]
NGrams = Counter[Words]
#: Width of the penalty on lengths of CIDEr-D.
LENGTH_SCALE = 6.0


def bleu_score(candidates: Sequence[Any], references: Sequence[Any], *, max_order: int = 4) -> float:
    """BLEU of a corpus, without smoothing.

    Parameters
    ----------
    candidates : list of str, or list of lists of tokens
        Predicted sentences; strings are split at blanks.
    references : list of lists of str, or list of lists of lists of tokens
        One or more references of each candidate; with strings, a single one need not be in a list.
    max_order : int, default=4
        Longest n-grams that count.

    Returns
    -------
    float
        Between 0 and 1; 0 where some order has no match. Other programs print 100 times as much.

    Examples
    --------
    >>> from pluri.metrics import bleu_score
    >>> round(bleu_score(["the cat sat on the mat"], [["the cat sat on a mat", "a cat is on the mat"]]), 4)
    0.6756
    """
    check_count(max_order, "max_order")
    pairs = sentence_pairs(candidates, references)
    matched, found = [0] * max_order, [0] * max_order
    length = nearest = 0
    for candidate, several in pairs:
        length += len(candidate)
        nearest += min((abs(len(one) - len(candidate)), len(one)) for one in several)[1]
        for order in range(max_order):
            counts = n_grams(candidate, order + 1)
            most: NGrams = Counter()
            for one in several:
                most |= n_grams(one, order + 1)
            matched[order] += (counts & most).total()
            found[order] += counts.total()
    if not all(matched):
        return 0.0
    brevity = min(0.0, 1 - nearest / length)
    return math.exp(brevity + sum(math.log(m / n) for m, n in zip(matched, found)) / max_order)


def cider_score(
    candidates: Sequence[Any], references: Sequence[Any], *, variant: str = "cider", max_order: int = 4
) -> float:
    """CIDEr, averaged over a corpus.

    Parameters
    ----------
    candidates : list of str, or list of lists of tokens
        Predicted sentences, one for each item; strings are split at blanks.
    references : list of lists of str, or list of lists of lists of tokens
        One or more references of each item. The weights of n-grams are counted in them, so that a score depends on the
        whole corpus, and is 0 for a single item.
    variant : {"cider", "cider_d"}, default="cider"
        As first published, or with clipped counts and the penalty on lengths that caption servers use.
    max_order : int, default=4
        Longest n-grams that count.

    Returns
    -------
    float
        Between 0 and 10, which is reached by candidates that equal their references, have at least four words and
        n-grams of each order that not all items have.

    Examples
    --------
    >>> from pluri.metrics import cider_score
    >>> texts = ["a red disc above a box", "two small stars on white paper"]
    >>> round(cider_score(texts, texts), 12)
    10.0
    """
    check_value(variant, "variant", Only("cider", "cider_d"))
    check_count(max_order, "max_order")
    pairs = sentence_pairs(candidates, references)
    total = 0.0
    for order in range(1, max_order + 1):
        items: Counter[Words] = Counter()
        for _, several in pairs:
            items.update(set().union(*(n_grams(one, order) for one in several)))
        for candidate, several in pairs:
            own = n_grams(candidate, order)
            for one in several:
                likeness = _cosine(own, n_grams(one, order), items, len(pairs), variant)
                if variant == "cider_d":
                    likeness *= math.exp(-((len(candidate) - len(one)) ** 2) / (2 * LENGTH_SCALE**2))
                total += likeness / len(several)
    return 10 * total / (max_order * len(pairs))


def _cosine(own: NGrams, other: NGrams, items: Counter[Words], n_items: int, variant: str) -> float:
    """Cosine of two weighted vectors of counts; 0 where one of them has no weight."""

    def weight(gram: Words) -> float:
        return math.log(n_items / max(1, items[gram]))

    squares = [math.fsum((count * weight(gram)) ** 2 for gram, count in one.items()) for one in (own, other)]
    if not all(squares):
        return 0.0
    shared = own.keys() & other.keys()
    clipped = variant == "cider_d"
    product = math.fsum(
        (min(own[gram], other[gram]) if clipped else own[gram]) * other[gram] * weight(gram) ** 2 for gram in shared
    )
    return product / math.sqrt(squares[0] * squares[1])


def n_grams(words: Words, order: int) -> NGrams:
    """How often each run of ``order`` words occurs."""
    return Counter(zip(*(words[start:] for start in range(order))))


def sentence_pairs(candidates: Sequence[Any], references: Sequence[Any]) -> list[tuple[Words, list[Words]]]:
    """Each candidate with its references, as tuples of words; refuses what could be read in two ways."""
    if isinstance(candidates, str) or isinstance(references, str):
        raise ValueError("candidates and references must be lists with an entry for each sentence, got a string")
    if len(candidates) != len(references) or not len(candidates):
        raise ValueError(
            f"candidates and references must be equally many, and at least one, got {len(candidates)} and "
            f"{len(references)}"
        )
    as_text = isinstance(candidates[0], str)
    pairs = []
    for row, (candidate, several) in enumerate(zip(candidates, references)):
        group = [several] if isinstance(several, str) else list(several)
        if not group:
            raise ValueError(f"references must have at least one for each candidate, got none for {row}")
        if any(isinstance(one, str) != as_text for one in [candidate, *group]):
            raise ValueError(
                "candidates and references must be all strings or all lists of tokens, with a list of references for "
                f"each candidate, got both kinds at {row}"
            )
        pairs.append((_words(candidate), [_words(one) for one in group]))
    return pairs


def _words(sentence: Any) -> Words:
    return tuple(sentence.split()) if isinstance(sentence, str) else tuple(sentence)
