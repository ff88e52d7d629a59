"""Recommenders as they were published, to compare with."""

from __future__ import annotations

from typing import Any

from pluri.cochange.models.baselines import FrequentItemsets
from pluri.cochange.recommender import FileRecommender


def fim_fixed(min_support: int = 10, **parameters: Any) -> FileRecommender:
    """Frequent itemset mining as it is: every file that some frequent itemset has together with those given.

    Examples
    --------
    >>> from pluri.cochange import fim_fixed
    >>> fim_fixed(5)
    FileRecommender(model=FrequentItemsets(min_support=5), threshold=0.0)
    """
    return FileRecommender(FrequentItemsets(min_support), threshold=0.0, **parameters)


def cooccurrence_tuned(**parameters: Any) -> FileRecommender:
    """Counts of co-occurrence with a threshold chosen on the last commits: a stronger baseline than `fim_fixed`.

    Examples
    --------
    >>> from pluri.cochange import cooccurrence_tuned
    >>> cooccurrence_tuned()
    FileRecommender(model='cooccurrence')
    """
    return FileRecommender("cooccurrence", **parameters)
