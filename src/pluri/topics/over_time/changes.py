r"""Topics that emerge or fade: a scan over topics and periods whose false-alarm rate is that of all of them together.

For every topic, every period t and windows of one, two, four and eight periods that end with t, the share in the window
is compared with that in all periods before it, by the signed root of a quasi-likelihood ratio

.. math::

   z = \pm \sqrt{\frac{2}{d \varphi} \{ n_1 D(p_1 \| p) + n_0 D(p_0 \| p) \}} ,

where D is the divergence of Bernoulli distributions and p the share in both together, d the variance of a single
document's share over p(1-p), and :math:`\varphi \ge 1` how much more the periods before the window differ from each
other than documents drawn independently would make them: topics that always go up and down raise their own bar.

What z may be by chance is found by giving the documents the dates of others, many times, and taking the largest |z|
over all topics, periods and windows each time [1]_, [2]_. If nothing changes (documents may change places in time), the
chance of any alarm at all is at most the stated rate, exactly, whatever the distribution of the shares and however
topics hang together. Only the past of a period is looked at, so that an alarm does not go away later.

References
----------
.. [1] Westfall, P. H. & Young, S. S. (1993). Resampling-based multiple testing. Wiley.
.. [2] Kulldorff, M. (2001). Prospective time periodic geographical disease surveillance using a scan statistic. JRSS A
   164, 61-72.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr

from pluri.topics.over_time.shares import Groups

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Periods that are taken together.
WINDOWS = (1, 2, 4, 8)
#: Numbers of one block of permutations.
BLOCK = 1 << 20


class Layout(NamedTuple):
    """What permutations leave as it is: groups of each period, variance of a document, and which periods are tested."""

    n_groups: Integers
    size: int
    variance: Array
    share: Array
    n_reference: int
    last_only: bool


@dataclass(frozen=True, eq=False)
class Scan:
    """How unusual each topic is in each period.

    Attributes
    ----------
    z : array of shape (n_periods, n_topics)
        The largest of all windows that end with the period; positive if the share rose. 0 where nothing was tested.
    window : int array of shape (n_periods, n_topics)
        How many periods the window has.
    p_value : array of shape (n_periods, n_topics)
        Chance that any topic in any period tested is as unusual, if nothing changes.
    """

    z: Array
    window: Integers
    p_value: Array


def scan(groups: Groups, *, n_reference: int, n_permutations: int, last_only: bool, rng: np.random.Generator) -> Scan:
    """Compare windows with what was before them, and with the same documents in another order.

    Parameters
    ----------
    groups : Groups
    n_reference : int
        Periods before the first window.
    n_permutations : int
    last_only : bool
        Whether the last period alone is tested.
    rng : Generator
    """
    count = np.bincount(groups.periods, minlength=groups.n_periods)
    n_topics = groups.values.shape[1]
    if not len(groups.values):
        nothing = np.zeros((groups.n_periods, n_topics))
        return Scan(nothing, nothing.astype(np.int64), nothing + 1.0)
    variance = groups.size * groups.values.var(axis=0, ddof=min(1, len(groups.values) - 1))
    layout = Layout(count, groups.size, variance, groups.values.mean(axis=0), n_reference, last_only)
    z, window = statistics(period_sums(groups.values, count)[None], layout)
    largest = [np.abs(z).max(initial=0.0)]
    per_block = max(1, BLOCK // max(groups.n_periods * n_topics, 1))
    for begin in range(0, n_permutations, per_block):
        n_block = min(per_block, n_permutations - begin)
        sums = np.stack([period_sums(rng.permutation(groups.values), count) for _ in range(n_block)])
        largest.extend(np.abs(statistics(sums, layout)[0]).max(axis=(1, 2), initial=0.0))
    # The order that was seen is one of all; a little room for sums in another order.
    ordered = np.sort(largest[1:]) if n_permutations else np.zeros(0)
    reached = n_permutations - np.searchsorted(ordered, np.abs(z[0]) * (1 - 1e-9), side="left")
    p_value = np.where(z[0] == 0, 1.0, (1.0 + reached) / (1.0 + n_permutations))
    return Scan(z[0], window[0], p_value)


def period_sums(values: Array, count: Integers) -> Array:
    """Sums of the first `count[0]` rows, of those after them, and so on."""
    sums = np.zeros((len(count), values.shape[1]))
    filled = np.flatnonzero(count)
    starts = np.concatenate([[0], np.cumsum(count[filled])[:-1]])
    sums[filled] = np.add.reduceat(values, starts, axis=0)
    return sums


def statistics(sums: Array, layout: Layout) -> tuple[Array, Integers]:
    """The most unusual z of all windows that end with each period, and its window.

    Parameters
    ----------
    sums : array of shape (n_orders, n_periods, n_topics)
        Of the shares of the groups, in several orders of the documents.
    """
    n_orders, n_periods, n_topics = sums.shape
    before = np.concatenate([[0], np.cumsum(layout.n_groups)]).astype(np.float64)
    total = np.concatenate([np.zeros((n_orders, 1, n_topics)), np.cumsum(sums, axis=1)], axis=1)
    spread = _between_periods(sums, total, before, layout)
    share = layout.share
    dispersion = layout.variance / np.maximum(share * (1 - share), 1e-300)
    best, window = np.zeros(sums.shape), np.zeros(sums.shape, dtype=np.int64)
    for width in WINDOWS:
        ends = np.arange(n_periods if layout.last_only else width + layout.n_reference, n_periods + 1)
        ends = ends[ends - width >= layout.n_reference]
        n_now, n_then = before[ends] - before[ends - width], before[ends - width]
        ends = ends[(n_now > 0) & (n_then > 0)]
        if not len(ends):
            continue
        n_now = (before[ends] - before[ends - width])[:, None]
        n_then = before[ends - width][:, None]
        now = np.clip((total[:, ends] - total[:, ends - width]) / n_now, 0.0, 1.0)
        then = np.clip(total[:, ends - width] / n_then, 0.0, 1.0)
        both = np.clip(total[:, ends] / (n_now + n_then), 0.0, 1.0)
        gain = n_now * _divergence(now, both) + n_then * _divergence(then, both)
        scale = np.maximum(dispersion * spread[:, ends - width], 1e-300)
        z = np.sign(now - then) * np.sqrt(2 * layout.size * np.maximum(gain, 0.0) / scale)
        z[..., layout.variance <= 1e-24] = 0.0
        stronger = np.abs(z) > np.abs(best[:, ends - 1])
        best[:, ends - 1] = np.where(stronger, z, best[:, ends - 1])
        window[:, ends - 1] = np.where(stronger, width, window[:, ends - 1])
    return best, window


def _divergence(one: Array, other: Array) -> Array:
    found: Array = rel_entr(one, other) + rel_entr(1 - one, 1 - other)
    return found


def _between_periods(sums: Array, total: Array, before: Array, layout: Layout) -> Array:
    """How much more the periods before each one differ than independent documents would; 1 at least."""
    count = layout.n_groups[:, None]
    squares = np.cumsum(np.where(count > 0, sums**2 / np.maximum(count, 1), 0.0), axis=1)
    squares = np.concatenate([np.zeros_like(squares[:, :1]), squares], axis=1)
    spread = squares - total**2 / np.maximum(before, 1.0)[:, None]
    n_filled = np.concatenate([[0], np.cumsum(layout.n_groups > 0)])[:, None]
    expected = np.maximum(layout.variance / layout.size * np.maximum(n_filled - 1, 1), 1e-300)
    found: Array = np.maximum(spread / expected, 1.0)
    return found
