"""When a check may raise an alarm: by how often it would have done so on commits that were complete.

Commits of the past are taken as complete: whatever a check misses in one is a false alarm. A threshold is chosen on
commits that the model has not seen, as low as it can be while the rate of false alarms is, with a confidence of 95 %,
at most the one that is wanted (an exact binomial bound). That holds as far as later commits are like the held-back
ones; a project that changes its habits changes the rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CONFIDENCE = 0.95
#: A file is missing only if it changes more often than not.
LEAST_SCORE = 0.5
BATCH = 256


@dataclass(frozen=True)
class AlarmLevel:
    """A threshold for checks, and what is known of it.

    Attributes
    ----------
    threshold : float
        A check names files with a higher score.
    n_commits : int
        Number of held-back commits by which it was chosen.
    false_alarms : float
        Share of these in which it names a file.
    enough : bool
        Whether they were enough to bound the rate with confidence; if not, the share among them is what was wanted at
        most (none at all among fewer than 1 / rate).
    """

    threshold: float
    n_commits: int
    false_alarms: float
    enough: bool


def highest_missing(score: Callable[[Any], Array], commits: Any, past: Any) -> Array:
    """The best score of a file that is not in a commit and has changed with one of its files before.

    Parameters
    ----------
    score : callable
        Scores ``(n, n_files)`` of all files for a sparse matrix of given ones.
    commits : csr_array of shape (n_commits, n_files)
    past : csr_array of shape (n_past, n_files)
        The commits that were learnt from.

    Returns
    -------
    ndarray of shape (n_commits,)
        Minus infinity if no file ever changed with those of the commit.
    """
    highest = np.full(commits.shape[0], -np.inf)
    columns = past.T.tocsr()
    for start in range(0, commits.shape[0], BATCH):
        rows = commits[start : start + BATCH]
        scores = np.array(score(rows), dtype=np.float64)
        known = ((rows @ columns) @ past).toarray() > 0  # as a check does: no file that never changed with these
        scores[~known | (rows.toarray() > 0)] = -np.inf
        highest[start : start + BATCH] = scores.max(axis=1)
    return highest


def alarm_level(highest: Array, rate: float) -> AlarmLevel:
    """The threshold with at most a given rate of false alarms.

    Parameters
    ----------
    highest : ndarray
        Best score of a file that is not in each of the held-back commits.
    rate : float
        Share of complete commits in which a check may raise an alarm.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.cochange.alarms import alarm_level
    >>> level = alarm_level(np.linspace(0, 1, 1001), 0.02)
    >>> round(level.threshold, 3), round(level.false_alarms, 3), level.enough
    (0.988, 0.012, True)
    >>> alarm_level(np.array([0.3, 0.7]), 0.02)
    AlarmLevel(threshold=0.85, n_commits=2, false_alarms=0.0, enough=False)
    """
    ranked = -np.sort(-np.asarray(highest, dtype=np.float64))
    allowed = alarms_allowed(len(ranked), rate)
    place = allowed if allowed >= 0 else math.floor(rate * len(ranked))
    threshold = 0.0
    if place < len(ranked) and np.isfinite(ranked[place]):
        # Half-way to the next higher score, not just above this one: the model that is kept has seen more commits, and
        # its score for the same files is a little different.
        higher = ranked[ranked > ranked[place]]
        upper = higher[-1] if len(higher) else max(1.0, ranked[place])
        threshold = 0.5 * (upper + ranked[place])
    threshold = max(float(threshold), LEAST_SCORE)
    alarms = float((ranked > threshold).mean()) if len(ranked) else 0.0
    return AlarmLevel(threshold, len(ranked), alarms, allowed >= 0)


def alarms_allowed(n: int, rate: float) -> int:
    """The most alarms in n complete commits that still bound the rate; minus one if even none does not.

    The largest k with P(Binomial(n, rate) <= k) <= 5 %.

    Examples
    --------
    >>> from pluri.cochange.alarms import alarms_allowed
    >>> [alarms_allowed(n, 0.02) for n in (100, 149, 500, 5000)]
    [-1, 0, 4, 83]
    """
    if rate >= 1:
        return n
    total, found = 0.0, -1
    for k in range(n + 1):
        log_choices = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
        total += math.exp(log_choices + k * math.log(rate) + (n - k) * math.log1p(-rate))
        if total > 1 - CONFIDENCE:
            return found
        found = k
    return found
