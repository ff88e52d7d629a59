r"""Marginals of labels on a grid by exact sums over strips of it, between messages of belief propagation.

Belief propagation neglects what comes back around loops. A strip of the grid, a few pixels wide and as long as it,
can be summed exactly, with all its loops (`pluri.processes.ising.exact`); what lies outside of it is replaced by the
messages that reach its sides. Each pixel takes its marginal from a strip that it lies in the middle of: a structured
approximation, and a measure of how far belief propagation is off. A grid that is no wider than a strip is summed as a
whole; of a wider one the longer loops are still neglected, and two images of about the same weight may be mixed in a
wrong proportion.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pluri.processes.ising.bethe import Beliefs
from pluri.processes.ising.exact import grid_marginals
from pluri.processes.ising.grid import LabelField

Array = NDArray[np.float64]

#: Configurations of a slice of a strip: eight pixels with two labels.
LARGEST_SLICE = 2**8
#: A marginal that moves by more counts, and so large a share of such pixels is warned of.
NOTABLE, NOTABLE_SHARE = 0.1, 0.05
#: Numbers in the forward messages of the strips that are summed together.
LARGEST_MESSAGES = 2**22
#: Solutions that weigh less in every image are left out.
SMALLEST_SHARE = 1e-3
#: Pixels times labels of the largest fields that are checked.
LARGEST_CHECK = 2**14


@dataclass(frozen=True)
class BeliefCheck:
    """Distance of the marginals of belief propagation from better ones.

    Attributes
    ----------
    by_strips : largest change of a marginal by exact sums over strips
    share_by_strips : share of the pixels whose marginal changes by more than 0.1
    checked : whether the field was small enough to be checked
    """

    by_strips: float = 0.0
    share_by_strips: float = 0.0
    checked: bool = True

    def problems(self) -> list[str]:
        """A sentence if the marginals are off."""
        if self.share_by_strips <= NOTABLE_SHARE:
            return []
        return [
            f"belief propagation neglects loops: exact sums over strips of the image move {self.share_by_strips:.0%} "
            f"of the marginals by more than {NOTABLE}, one of them by {self.by_strips:.2f}; "
            f'inference="strips" is closer, "gibbs" and (on narrow grids) "exact" are right'
        ]


def check_beliefs(field: LabelField, found: Beliefs) -> BeliefCheck:
    """Compare what belief propagation found with exact sums over strips.

    Parameters
    ----------
    field : LabelField
    found : Beliefs
        As `bethe_marginals` gives them.

    Examples
    --------
    Near the critical coupling, with weak observations, every loop counts.

    >>> import numpy as np
    >>> from pluri.processes.ising import LabelField, bethe_marginals, check_beliefs
    >>> seen = np.random.default_rng(0).normal(size=(1, 1, 12, 12, 1)) * [-1 / 3, 1 / 3]
    >>> field = LabelField(seen, agreement=2 * 0.46)
    >>> check = check_beliefs(field, bethe_marginals(field))
    >>> print(check.problems()[0][:37])
    belief propagation neglects loops: ex
    """
    if found.proba.size > LARGEST_CHECK or _width(field.n_labels) < 2:
        return BeliefCheck(checked=False)
    moved = np.abs(strip_marginals(field, found) - found.proba).max(axis=-1)
    return BeliefCheck(float(moved.max()), float((moved > NOTABLE).mean()))


def strip_marginals(field: LabelField, found: Beliefs) -> Array:
    """Marginals of each pixel from a strip that it lies in the middle of, in the shape of `found.proba`.

    Parameters
    ----------
    field : LabelField
    found : Beliefs
        As `bethe_marginals` gives them.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.ising import LabelField, bethe_marginals, exact_marginals, strip_marginals
    >>> field = LabelField(np.random.default_rng(0).normal(size=(1, 1, 12, 12, 2)), agreement=0.8)
    >>> found, exact = bethe_marginals(field), exact_marginals(field)[0]
    >>> bool(abs(strip_marginals(field, found) - exact).max() < abs(found.proba - exact).max() / 4)
    True
    """
    if _width(field.n_labels) < 2:
        raise ValueError(f"inference='strips' takes at most {int(LARGEST_SLICE**0.5)} labels, got {field.n_labels}")
    longest = 1 + int(np.argmax(field.shape[1:]))
    narrow = [axis for axis in (1, 2, 3) if axis != longest]
    sides = _sides([field.shape[axis] for axis in narrow], _width(field.n_labels))
    starts = [_starts(field.shape[axis], side) for axis, side in zip(narrow, sides)]
    corners = [(one, other) for one in np.unique(starts[0]) for other in np.unique(starts[1])]
    configurations = field.n_labels ** (sides[0] * sides[1])
    together = max(1, LARGEST_MESSAGES // (len(field.log_likelihood) * field.shape[longest] * configurations))
    total = np.zeros_like(found.proba)
    for messages, shares in zip(found.messages, found.shares):
        if shares.max() < SMALLEST_SHARE:
            continue
        for some in range(0, len(corners), together):
            batch = corners[some : some + together]
            seen = np.stack([_strip(field, messages, narrow, corner, sides) for corner in batch])
            inside = grid_marginals(seen.reshape(-1, *seen.shape[2:]), field.agreement)[0].reshape(seen.shape)
            for strip, corner in zip(inside, batch):
                whole, part = [slice(None)] * 5, [slice(None)] * 5
                for axis, of_pixels, start in zip(narrow, starts, corner):
                    first, last = np.flatnonzero(of_pixels == start)[[0, -1]]
                    whole[axis], part[axis] = slice(first, last + 1), slice(first - start, last - start + 1)
                total[tuple(whole)] += shares[:, None, None, None, None] * strip[tuple(part)]
    return np.asarray(total / total.sum(axis=-1, keepdims=True))


def _width(n_labels: int) -> int:
    """Pixels in a slice of a strip."""
    return int(np.log(LARGEST_SLICE) / np.log(n_labels) + 1e-9)


def _sides(lengths: list[int], width: int) -> tuple[int, int]:
    """Sides of a slice of a strip, as square as the grid allows: one pixel thick in a plane."""
    short = min(min(lengths), int(np.sqrt(width)))
    long = min(max(lengths), width // short)
    return (short, long) if lengths[0] <= lengths[1] else (long, short)


def _starts(length: int, side: int) -> NDArray[np.int64]:
    """Where the strip begins that has each of the pixels of an axis in its middle; every other place will do."""
    start = np.clip((np.arange(length) - side // 2 + 1) // 2 * 2, 0, length - side)
    return np.asarray(start, dtype=np.int64)


def _strip(
    field: LabelField, messages: Array, narrow: list[int], corner: tuple[int, int], sides: tuple[int, int]
) -> Array:
    """Log-likelihoods of a strip (n_images, depth, height, width, K), with the messages that come in at its sides."""
    cut = [slice(None)] * 5
    for axis, start, side in zip(narrow, corner, sides):
        cut[axis] = slice(start, start + side)
    seen = field.log_likelihood[tuple(cut)].copy()
    for axis, start, side in zip(narrow, corner, sides):
        upwards, downwards = (messages[2 * (axis - 1) + way][tuple(cut)] for way in (0, 1))
        edge = [slice(None)] * 5
        if start > 0:
            edge[axis] = slice(0, 1)
            seen[tuple(edge)] += upwards[tuple(edge)]
        if start + side < field.shape[axis]:
            edge[axis] = slice(side - 1, side)
            seen[tuple(edge)] += downwards[tuple(edge)]
    return np.asarray(seen)
