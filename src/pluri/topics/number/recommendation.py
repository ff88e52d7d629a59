"""Which number of topics to try next, which to recommend, and why, in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pluri.topics.number.candidates import Judged

#: Numbers that are tried first grow by this factor; then those between, until neighbours differ by so little.
GROWTH, CLOSE = 2, 1.1
#: The numbers tried first end with one whose gain in held-out likelihood is below so many standard errors.
CLEAR = 2.0
#: What a summary says of each number of topics: heading, column of `cv_results_`, form.
TOLD = (
    ("topics", "param_n_components", "d"),
    ("held-out", "mean_test_score", ".4f"),
    ("gain/topic", "gain_per_topic", ".3f"),
    ("found again", "found_again", ".3g"),
    ("share", "found_again_share", ".0%"),
    ("coherence", "coherence", ".3f"),
    ("redundant", "redundancy", ".0%"),
    ("smallest", "smallest_share", ".1%"),
)


def ladder(largest: int) -> list[int]:
    """Numbers of topics to try first.

    Examples
    --------
    >>> from pluri.topics.number.recommendation import ladder
    >>> ladder(30)
    [2, 4, 8, 16, 30]
    """
    numbers, value = [], 2
    while value < largest:
        numbers.append(value)
        value *= GROWTH
    return [*numbers, max(largest, 1)]


def sweep(judged: Callable[[int], Judged], largest: int) -> list[Judged]:
    """Judge few numbers of topics, far apart at first and then closer and closer to the best.

    What is found again of very few topics says little: numbers are looked for around that of best held-out likelihood
    too, if larger ones were tried.
    """
    found: dict[int, Judged] = {}
    before, peaked = None, False
    for number in ladder(largest):
        found[number] = now = judged(number)
        if before is not None:
            gain, error = now.gain_over(before)
            peaked = gain <= CLEAR * error
        if peaked:
            break
        before = now
    while new := _between(found, peaked):
        for number in new:
            found[number] = judged(number)
    return [found[number] for number in sorted(found)]


def _between(found: dict[int, Judged], peaked: bool) -> list[int]:
    """Numbers on both sides of the best that are worth a look."""
    numbers = sorted(found)
    centres = [telling([found[number] for number in numbers]).n_components]
    if peaked:
        centres.append(max(numbers, key=lambda number: found[number].per_word))
    middles = []
    for place in map(numbers.index, centres):
        pairs = [(numbers[i], numbers[i + 1]) for i in (place - 1, place) if 0 <= i < len(numbers) - 1]
        middles += [round(float(np.sqrt(low * high))) for low, high in pairs if high / low > CLOSE and high - low > 1]
    return [number for number in dict.fromkeys(middles) if number not in found]


def telling(candidates: list[Judged]) -> Judged:
    """The candidate that the recommendation follows from.

    It is the one of best held-out likelihood, if larger numbers predict worse and more than half of its topics are
    found again. Where likelihood rises as far as was tried, as on most text, it is the one with most topics found again
    minus those that are not; the smaller of two equal ones.
    """
    best = max(candidates, key=lambda one: (one.per_word, -one.n_components))
    if best is not candidates[-1] and best.surplus > 0:
        return best
    return max(candidates, key=lambda one: (one.surplus, -one.n_components))


def recommended(candidates: list[Judged], listed: list[int] | None = None) -> int:
    """The number of topics that are found again of the most telling candidate, or the nearest of listed numbers.

    Of somewhat too many topics those that are there are found again and the others are not, while a model with no topic
    to spare may have two of them in one and another twice. So the topics found again are counted, and not those fitted.
    """
    number = max(1, round(telling(candidates).found_again))
    if listed is None:
        return number
    return min(listed, key=lambda one: (abs(np.log(one / number)), one))


def reasons(candidates: list[Judged], number: int, n_documents: int) -> list[str]:
    """Why a number is recommended: sentences."""
    chosen = telling(candidates)
    place = candidates.index(chosen)
    fitted = chosen.n_components
    tried = f"{candidates[0].n_components} to {candidates[-1].n_components}"
    said = [
        f"{_topics(number)} recommended, after {len(candidates)} numbers from {tried} were tried on {n_documents} "
        "documents.",
        f"Of {fitted} topics {_again(chosen)} found again by a model of other documents"
        + "".join(f"; of {one.n_components}, {_again(one)}" for one in candidates[place + 1 : place + 2])
        + ".",
    ]
    if place > 0:
        before = candidates[place - 1]
        gain, error = chosen.gain_over(before)
        if gain > CLEAR * error:
            said.append(
                f"From {before.n_components} to {fitted}, each topic more gains {gain:.2g} ± {error:.1g} nats per "
                "held-out document."
            )
        else:
            said.append(
                f"From {before.n_components} to {fitted} the held-out documents gain nothing clear "
                f"({gain:.2g} ± {error:.1g} nats per topic)."
            )
    if place + 1 < len(candidates):
        after = candidates[place + 1]
        gain, error = after.gain_over(chosen)
        clear = gain > CLEAR * error
        said.append(
            f"From {fitted} to {after.n_components} it would be {gain:.2g} ± {error:.1g}"
            + (": more topics predict words better still, but fewer of them can be relied on." if clear else ".")
        )
    else:
        said.append("No larger number was tried: raise max_components, or list larger numbers.")
    share = "none is" if chosen.redundancy == 0 else f"{chosen.redundancy:.0%} are"
    said.append(
        f"Of the {fitted} topics {share} like another; the smallest has {chosen.smallest:.1%} of the words, the "
        f"largest {chosen.largest:.1%}; their coherence (NPMI) is {chosen.coherence:.2f}."
    )
    return said


def _again(one: Judged) -> str:
    verb = "is" if round(one.found_again) == 1 else "are"
    return f"{one.found_again:.3g} ({one.found_again / one.n_components:.0%}) {verb}"


def _topics(number: int) -> str:
    return "One topic is" if number == 1 else f"{number} topics are"


def table_of(results: dict[str, Any], best: int) -> list[str]:
    """Lines of a table of all numbers that were tried; that with index `best` is marked."""
    lines = ["  ".join(f"{heading:>11}" for heading, _, _ in TOLD)]
    for row in range(len(results["params"])):
        cells = [f"{results[name][row]:{form}}" for _, name, form in TOLD]
        lines.append("  ".join(f"{cell:>11}" for cell in cells) + (" <-" if row == best else ""))
    return lines
