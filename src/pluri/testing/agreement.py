"""Do two sets of independent draws come from one distribution? Tests that hold whatever that distribution is.

With n and m draws pooled and ranked (N = n + m), a label says which set a draw came from. If both sets have one
distribution, all labellings are equally likely given the pooled values, so that any ``T = sum_i a_i [i in first set]``
with scores a_i made from the pooled values has

    E T = n mean(a),    Var T = n m / (N (N - 1)) sum_i (a_i - mean(a))^2,

and is normal to great accuracy for bounded scores and hundreds of draws. *Location* takes the ranks (Wilcoxon),
*spread* their squared distance from the middle (Mood), a *pair* of quantities the product of their centred ranks, which
sees a change of their dependence. The *tails* count how many of the least and of the greatest pooled values came from
the first set, and an *atom* how often the most frequent one did, both with the hypergeometric distribution: bounds that
a sampler puts on a scale show there and hardly anywhere else. *KS* is Kolmogorov and Smirnov's exact test; quantities
with few values are counted and tested by *chi-square*.

Where draws are the ends of chains that began in exact draws, end and start have one distribution, and the mean of
``h(end) - h(start)`` is zero for every function h that was chosen without looking at them. What both share cancels, so
that few steps of a slow chain suffice. The *paired* tests are t-tests of such differences, with the same scores made
bounded by the distribution function of a third set of draws.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import ndtr

from pluri.testing.comparison import Comparison

Array = NDArray[np.float64]
#: Quantities with at most this many different values are counted.
FEW_VALUES = 25
#: Expected count below which values are pooled before a chi-square test.
LEAST_EXPECTED = 10.0
#: Share of the pooled values in a tail, and the least number that is worth counting there, or in an atom.
TAIL, LEAST_COUNTED = 0.05, 15
#: Pairs are looked at among this many quantities.
MOST_PAIRED = 8


def compare_samples(
    first: Mapping[str, Array], second: Mapping[str, Array], *, pairs: bool = True
) -> tuple[Comparison, ...]:
    """Compare two sets of independent draws, quantity by quantity.

    Parameters
    ----------
    first, second : mapping of str to array of shape (n,) or (m,)
        The same quantities of both sets.
    pairs : bool, default=True
        Also compare how quantities go together (the first eight of them).

    Returns
    -------
    tuple of Comparison

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.testing import compare_samples
    >>> rng = np.random.default_rng(0)
    >>> same = compare_samples({"x": rng.normal(size=500)}, {"x": rng.normal(size=500)})
    >>> [c.test for c in same], min(c.p_value for c in same) > 0.01
    (['ks', 'low tail', 'high tail', 'location', 'spread'], True)
    >>> wider = compare_samples({"x": rng.normal(size=500)}, {"x": 1.3 * rng.normal(size=500)})
    >>> min(wider, key=lambda c: c.p_value).test
    'spread'
    """
    found: list[Comparison] = []
    ranks: dict[str, Array] = {}
    for name, x in first.items():
        y = second[name]
        pooled = np.concatenate([x, y])
        values, codes, frequencies = np.unique(pooled, return_inverse=True, return_counts=True)
        if len(values) == 1:
            continue
        # Mid-ranks, centred: ties share the mean of the places they take.
        centred = (np.cumsum(frequencies) - 0.5 * (frequencies - 1))[codes] - 0.5 * (len(pooled) + 1)
        ranks[name] = centred
        if len(values) <= FEW_VALUES:
            found.append(Comparison(name, "chi-square", *homogeneity(codes[: len(x)], codes[len(x) :], len(values))))
        else:
            result = stats.ks_2samp(x, y)
            found.append(Comparison(name, "ks", float(result.statistic), float(result.pvalue)))
            found += _ends_and_atoms(name, codes, frequencies, len(x))
        if len(values) > 2:
            found.append(Comparison(name, "location", *linear_score(centred, len(x))))
            found.append(Comparison(name, "spread", *linear_score(centred**2, len(x))))
    if pairs:
        for one, other in combinations(list(ranks)[:MOST_PAIRED], 2):
            found.append(
                Comparison(f"{one} * {other}", "pair", *linear_score(ranks[one] * ranks[other], len(first[one])))
            )
    if not found:
        found.append(Comparison(next(iter(first), "nothing"), "constant", 0.0, 1.0))
    return tuple(found)


def _ends_and_atoms(name: str, codes: NDArray[Any], frequencies: NDArray[Any], n_first: int) -> list[Comparison]:
    """How many of the least, of the greatest and of the most frequent of the pooled values came from the first set."""
    first = np.bincount(codes[:n_first], minlength=len(frequencies))
    least = max(TAIL * len(codes), LEAST_COUNTED)
    # Which values are counted depends on the pooled ones alone, and so all labellings are as likely as before.
    below, above = np.cumsum(frequencies), np.cumsum(frequencies[::-1])
    low, high = int(np.searchsorted(below, least)) + 1, len(frequencies) - 1 - int(np.searchsorted(above, least))
    found = []
    for test, chosen in (("low tail", slice(0, low)), ("high tail", slice(high, None))):
        counts = int(first[chosen].sum()), int(frequencies[chosen].sum())
        found.append(Comparison(name, test, *hypergeometric(*counts, n_first, len(codes))))
    atom = int(frequencies.argmax())
    if frequencies[atom] >= LEAST_COUNTED:
        counts = int(first[atom]), int(frequencies[atom])
        found.append(Comparison(name, "atom", *hypergeometric(*counts, n_first, len(codes))))
    return found


def hypergeometric(n_hits: int, n_chosen: int, n_first: int, n_all: int) -> tuple[float, float]:
    """How many of `n_chosen` draws came from the first set less what was to be expected, and its two-sided p-value."""
    law = stats.hypergeom(n_all, n_first, n_chosen)
    p_value = 2.0 * min(float(law.cdf(n_hits)), float(law.sf(n_hits - 1)))
    return float(n_hits - n_chosen * n_first / n_all), min(p_value, 1.0)


def compare_paired(
    starts: Mapping[str, Array], ends: Mapping[str, Array], reference: Mapping[str, Array], *, pairs: bool = True
) -> tuple[Comparison, ...]:
    """Compare ends of chains with their own starts; both should have the distribution of the reference.

    Parameters
    ----------
    starts, ends : mapping of str to array of shape (n,)
        The same quantities of both.
    reference : mapping of str to array of shape (m,)
        Further draws, independent of these: they decide what is looked at, and are not compared.
    pairs : bool, default=True
        Also compare how quantities go together (the first eight of them).

    Returns
    -------
    tuple of Comparison

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.testing.agreement import compare_paired
    >>> rng = np.random.default_rng(0)
    >>> start, other = rng.normal(size=(2, 300))
    >>> slow = 0.95 * start + 0.3 * rng.normal(size=300) + 0.1
    >>> min(c.p_value for c in compare_paired({"x": start}, {"x": slow}, {"x": other})) < 1e-6
    True
    """
    found: list[Comparison] = []
    places: dict[str, tuple[Array, Array]] = {}
    for name, values in reference.items():
        ordered = np.sort(values)
        if ordered[0] == ordered[-1]:
            continue
        before, after = (
            (np.searchsorted(ordered, x, "left") + np.searchsorted(ordered, x, "right")) / (2.0 * len(ordered)) - 0.5
            for x in (starts[name], ends[name])
        )
        places[name] = before, after
        found.append(Comparison(name, "paired location", *_mean_is_zero(after - before)))
        found.append(Comparison(name, "paired spread", *_mean_is_zero(after**2 - before**2)))
    if pairs:
        for one, other in combinations(list(places)[:MOST_PAIRED], 2):
            (a, b), (c, d) = places[one], places[other]
            found.append(Comparison(f"{one} * {other}", "paired", *_mean_is_zero(b * d - a * c)))
    return tuple(found)


def _mean_is_zero(differences: Array) -> tuple[float, float]:
    """Student's t and its two-sided p-value; nothing is said where fewer than fifty differences are not zero."""
    if np.count_nonzero(differences) < 50:
        return 0.0, 1.0
    t = float(differences.mean() / (differences.std(ddof=1) / np.sqrt(len(differences))))
    return t, float(2.0 * stats.t.sf(abs(t), len(differences) - 1))


def compare_exchangeable(starts: Mapping[str, Array], ends: Mapping[str, Array]) -> tuple[Comparison, ...]:
    """Signed-rank tests of location and spread for the ends of reversible runs against their own starts."""
    found = []
    for name, start in starts.items():
        end = ends[name]
        centre = float(np.median(np.concatenate([start, end])))
        found.append(Comparison(name, "paired location", *signed_rank(end - start)))
        found.append(Comparison(name, "paired spread", *signed_rank(np.abs(end - centre) - np.abs(start - centre))))
    return tuple(found)


def signed_rank(differences: Array) -> tuple[float, float]:
    """Wilcoxon's standardised signed-rank sum, and its two-sided p-value: signs are fair coins given the sizes."""
    moved = differences[differences != 0]
    if len(moved) < 20:
        return 0.0, 1.0
    ranks = stats.rankdata(np.abs(moved))
    z = float((np.sign(moved) * ranks).sum() / np.sqrt((ranks**2).sum()))
    return z, float(2.0 * ndtr(-abs(z)))


def linear_score(scores: Array, n_first: int) -> tuple[float, float]:
    """Standardised sum of the first `n_first` of pooled scores, and its two-sided p-value."""
    total = len(scores)
    centred = scores - scores.mean()
    variance = n_first * (total - n_first) / (total * (total - 1.0)) * float(centred @ centred)
    if not variance > 0:
        return 0.0, 1.0
    z = float(centred[:n_first].sum()) / np.sqrt(variance)
    return float(z), float(2.0 * ndtr(-abs(z)))


def homogeneity(first: NDArray[np.int64], second: NDArray[np.int64], n_values: int) -> tuple[float, float]:
    """Chi-square statistic and p-value for two sets of codes; rare codes are pooled by their joint frequency."""
    table = np.array([np.bincount(codes, minlength=n_values) for codes in (first, second)], dtype=np.float64)
    rare = _rare(table.sum(axis=0) / table.sum() * min(len(first), len(second)))
    if rare.any():
        table = np.column_stack([table[:, ~rare], table[:, rare].sum(axis=1)])
    if table.shape[1] < 2:
        return 0.0, 1.0
    if table.shape[1] == 2:  # Fisher's exact test costs nothing here, and small counts do not matter to it
        odds, p_value = stats.fisher_exact(table)
        return float(odds), float(min(p_value, 1.0))
    statistic, p_value, _, _ = stats.chi2_contingency(table, correction=False)
    return float(statistic), float(p_value)


def compare_counts(counts: Array, probabilities: Array, n_effective: float | None = None) -> tuple[float, float]:
    """Chi-square statistic and p-value of counts against given probabilities.

    Cells that expect fewer than ten are pooled. `n_effective` independent draws are as good as the dependent ones
    counted: the statistic shrinks by ``n_effective / n``. A count where the probability is zero gives p = 0.
    """
    if counts[probabilities <= 0].any():
        return float("inf"), 0.0
    total = counts.sum()
    effective = total if n_effective is None else min(n_effective, total)
    rare = _rare(probabilities * effective)
    observed, expected = counts / total, probabilities / probabilities.sum()
    if rare.any():
        observed = np.append(observed[~rare], observed[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    if len(expected) < 2:
        return 0.0, 1.0
    if len(expected) == 2 and n_effective is None:
        p_value = stats.binomtest(round(observed[0] * total), int(total), float(expected[0])).pvalue
        return float(total * ((observed - expected) ** 2 / expected).sum()), float(p_value)
    statistic = float(effective * ((observed - expected) ** 2 / expected).sum())
    return statistic, float(stats.chi2.sf(statistic, len(expected) - 1))


def _rare(expected: Array) -> NDArray[np.bool_]:
    """Which cells to pool: the smallest, until none is left below the least count and their sum reaches it too."""
    order = np.argsort(expected, kind="stable")
    n_rare = int((expected < LEAST_EXPECTED).sum())
    total = float(expected[order[:n_rare]].sum())
    while 0 < n_rare < len(order) and total < LEAST_EXPECTED:
        total += float(expected[order[n_rare]])
        n_rare += 1
    rare = np.zeros(len(expected), dtype=bool)
    rare[order[:n_rare]] = True
    return rare
