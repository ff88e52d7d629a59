r"""Topics are merged in pairs, the cheapest pair first, and every cost is exact.

*Jensen-Shannon*: what knowing the topic of a word tells of the word is their mutual information. Merging topics a and b
of shares p_a and p_b of the tokens loses

.. math:: (p_a + p_b) \, \mathrm{JS}(\beta_a, \beta_b) = p_a \mathrm{KL}(\beta_a \| \bar\beta) + p_b \mathrm{KL}(\beta_b
   \| \bar\beta), \qquad \bar\beta = (p_a \beta_a + p_b \beta_b) / (p_a + p_b)

of it, in nats per token [1]_; all mergers to one topic together lose all of it.

*Likelihood*: the log probability of the words given their topics, with the topics integrated out under Dirichlet(eta),
falls by :math:`\ell(n_a) + \ell(n_b) - \ell(n_a + n_b)`, with

.. math:: \ell(n) = \log\Gamma(V\eta) - \log\Gamma(V\eta + \sum_w n_w) + \sum_w [\log\Gamma(n_w + \eta) -
   \log\Gamma(\eta)] .

It is negative where one topic explains the words better than two.

References
----------
.. [1] Slonim, N. and Tishby, N. (1999). Agglomerative information bottleneck. NIPS 12.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, xlogy
from sklearn.utils.validation import check_is_fitted

from pluri.validation import Number, Only, check_count, check_value

Array = NDArray[np.float64]
Cost = Literal["jensen_shannon", "likelihood"]
#: Numbers of a table that is held at a time.
BLOCK = 4_000_000


@dataclass(frozen=True, eq=False)
class Mergers:
    """Which topics were merged, one pair after another.

    Attributes
    ----------
    pairs : ndarray of int64, shape (n_topics - 1, 2)
        Numbers below `n_topics` are topics; ``n_topics + i`` is what merger i made.
    cost : ndarray of shape (n_topics - 1,)
        What each merger lost: nats per token ("jensen_shannon") or nats ("likelihood").
    n_small : int
        So many mergers at the beginning put small topics to the cheapest partner; all others were the cheapest of all.
    kind : str
    """

    pairs: NDArray[np.int64]
    cost: Array
    n_small: int
    kind: str

    @property
    def n_topics(self) -> int:
        """Number of topics before the first merger."""
        return len(self.pairs) + 1

    def groups(self, n_groups: int) -> list[list[int]]:
        """Topics that are together when so many groups are left, each sorted, in the order of their first topics."""
        check_count(n_groups, "n_groups")
        if n_groups > self.n_topics:
            raise ValueError(f"n_groups must be at most the number of topics ({self.n_topics}), got {n_groups}")
        made: dict[int, list[int]] = {topic: [topic] for topic in range(self.n_topics)}
        for number, (first, second) in enumerate(self.pairs[: self.n_topics - n_groups]):
            made[self.n_topics + number] = sorted(made.pop(int(first)) + made.pop(int(second)))
        return sorted(made.values())


def agglomerate(
    counts: ArrayLike, *, cost: Cost = "jensen_shannon", topic_word_prior: float = 0.0, least_share: float = 0.0
) -> Mergers:
    """Merge topics until one is left.

    Parameters
    ----------
    counts : array-like of shape (n_topics, n_words)
        Tokens of each word in each topic, not necessarily whole numbers; shares of all tokens do as well for
        "jensen_shannon".
    cost : {"jensen_shannon", "likelihood"}, default="jensen_shannon"
    topic_word_prior : float, default=0.0
        eta, positive, for "likelihood".
    least_share : float, default=0.0
        Topics with a smaller share of the tokens are first of all put to their cheapest partners, the smallest first.

    Returns
    -------
    Mergers

    Examples
    --------
    >>> from pluri.topics.agglomeration import agglomerate
    >>> mergers = agglomerate([[4, 4, 0, 0], [0, 0, 4, 4], [5, 3, 0, 0]])
    >>> mergers.pairs.tolist(), mergers.cost.round(3).tolist()
    ([[0, 2], [1, 3]], [0.005, 0.637])
    >>> mergers.groups(2)
    [[0, 2], [1]]
    """
    check_value(cost, "cost", Only("jensen_shannon", "likelihood"))
    check_value(least_share, "least_share", Number(0, 1))
    table = np.array(counts, dtype=np.float64)
    if table.ndim != 2 or not table.size or not np.isfinite(table).all() or (table < 0).any():
        raise ValueError("counts must be a table of topics and words, finite and not negative, got another")
    if not table.sum() > 0:
        raise ValueError("counts must have at least one token, got none")
    share = table.sum(axis=1) / table.sum()
    if cost == "jensen_shannon":
        table /= table.sum()
        value: Callable[[Array], Array] = _information
    else:
        check_value(topic_word_prior, "topic_word_prior", Number(above=0))
        eta = float(topic_word_prior)

        def value(rows: Array) -> Array:
            return _evidence(rows, eta)

    return _merge_all(table, share, value, least_share, cost)


def mergers_of(model: Any, cost: Cost = "jensen_shannon", least_share: float = 0.0) -> Mergers:
    """The same of a fitted flat topic model."""
    check_is_fitted(model, "topic_word_")
    n_topics = len(model.topic_word_)
    if model._hierarchy().edges.size:
        raise ValueError(f"model must have flat topics, got {type(model).__name__}, whose topics have a hierarchy")
    if n_topics == 1:
        return Mergers(np.zeros((0, 2), dtype=np.int64), np.zeros(0), 0, cost)
    if cost == "likelihood":
        if not hasattr(model, "_word_counts"):
            raise ValueError(f"cost must be 'jensen_shannon' for {type(model).__name__}, got 'likelihood'")
        prior = float(np.mean(model.topic_word_prior_)) or 1.0 / model.topic_word_.shape[1]
        return agglomerate(model._word_counts(), cost=cost, topic_word_prior=prior, least_share=least_share)
    # A topic without tokens costs nothing, and is merged first.
    return agglomerate(model.topic_word_ * model.topic_weight_[:, None], cost=cost, least_share=least_share)


def _information(rows: Array) -> Array:
    """sum_w x_w log (x_w / sum x) of each row."""
    totals = rows.sum(axis=1)
    return np.asarray(xlogy(rows, rows).sum(axis=1) - xlogy(totals, totals))


def _evidence(rows: Array, eta: float) -> Array:
    """Log probability of the words of each row, with their distribution integrated out."""
    n_words = rows.shape[1]
    seen = (gammaln(rows + eta) - gammaln(eta)).sum(axis=1)
    return np.asarray(gammaln(n_words * eta) - gammaln(rows.sum(axis=1) + n_words * eta) + seen)


def _merge_all(table: Array, share: Array, value: Callable[[Array], Array], least_share: float, kind: str) -> Mergers:
    """Merge rows in place until one is left; a merged row takes the place of its first part."""
    n_topics, n_words = table.shape
    values, share = value(table), share.copy()
    names = np.arange(n_topics)
    alive = np.ones(n_topics, dtype=bool)
    costs = np.full((n_topics, n_topics), np.inf)

    def cost_with(row: int, others: NDArray[np.int64]) -> Array:
        step = max(1, BLOCK // n_words)
        parts = [others[begin : begin + step] for begin in range(0, len(others), step)]
        together = [value(table[part] + table[row]) for part in parts]
        return values[others] + values[row] - np.concatenate(together) if together else np.zeros(0)

    for row in range(n_topics - 1):
        others = np.arange(row + 1, n_topics)
        costs[row, others] = costs[others, row] = cost_with(row, others)
    pairs, lost, n_small = [], [], 0
    for number in range(n_topics - 1):
        small = np.flatnonzero(alive & (share < least_share))
        if small.size:
            first = int(small[share[small].argmin()])
            second = int(costs[first].argmin())
            n_small += 1
        else:
            first, second = (int(place) for place in np.unravel_index(costs.argmin(), costs.shape))
        first, second = min(first, second), max(first, second)
        pairs.append(sorted((names[first], names[second])))
        lost.append(costs[first, second])
        table[first] += table[second]
        share[first] += share[second]
        values[first] = value(table[first][None])[0]
        names[first], alive[second] = n_topics + number, False
        costs[second], costs[:, second] = np.inf, np.inf
        others = np.flatnonzero(alive & (np.arange(n_topics) != first))
        costs[first, others] = costs[others, first] = cost_with(first, others)
    return Mergers(np.array(pairs, dtype=np.int64).reshape(-1, 2), np.array(lost), n_small, kind)
