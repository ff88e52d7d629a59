"""How far mean field of a label field is off, judged by belief propagation and by mean field from other starts.

Mean field errs in two ways. It leaves out the correlation of neighbours, so that its marginals are too sure; messages
that start from them move them towards the truth. And it shows one mode of several: its own solutions from ordered
images, mixed in proportion to exp(bound), tell when another one weighs as much (Jaakkola and Jordan, 1998).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pluri.processes.ising.bethe import ordered_images, propagate
from pluri.processes.ising.grid import GridMeanField, LabelField

Array = NDArray[np.float64]

#: A marginal that moves by more counts, and so large a share of such pixels is warned of.
NOTABLE, NOTABLE_SHARE = 0.1, 0.05
#: Pixels times labels of the largest fields that are checked: some 30 sweeps of messages, half a second.
LARGEST_CHECK = 2**14
#: Sweeps of the check: it must see where marginals go, not their last digit.
CHECK_SWEEPS, CHECK_TOL = 30, 1e-3


@dataclass(frozen=True)
class MeanFieldCheck:
    """Distance of mean-field marginals from better ones.

    Attributes
    ----------
    by_messages, by_starts : largest change of a marginal by belief propagation, and by mixing in other starts
    share_by_messages, share_by_starts : share of the pixels whose marginal changes by more than 0.1
    checked : whether the field was small enough to be checked
    """

    by_messages: float = 0.0
    by_starts: float = 0.0
    share_by_messages: float = 0.0
    share_by_starts: float = 0.0
    checked: bool = True

    def problems(self) -> list[str]:
        """A sentence for each way in which the marginals are off."""
        advice = 'inference="bethe" and "strips" are closer, "gibbs" and (on narrow grids) "exact" are right'
        found = []
        if self.share_by_messages > NOTABLE_SHARE:
            found.append(
                f"mean field neglects that neighbours are correlated: belief propagation moves "
                f"{self.share_by_messages:.0%} of the marginals by more than {NOTABLE}, one of them by "
                f"{self.by_messages:.2f}; {advice}"
            )
        if self.share_by_starts > NOTABLE_SHARE:
            found.append(
                f"mean field shows one of several solutions: mixed by their bounds, {self.share_by_starts:.0%} of the "
                f"marginals move by more than {NOTABLE}, one of them by {self.by_starts:.2f}; {advice}"
            )
        return found


def check_mean_field(field: LabelField, proba: Array) -> MeanFieldCheck:
    """Compare mean-field marginals with belief propagation from them, and with a mixture of mean fields.

    Parameters
    ----------
    field : LabelField
    proba : array of shape (n_images, depth, height, width, K)

    Examples
    --------
    Strong coupling and no observations: each label is as likely as the other, and mean field has to choose.

    >>> import numpy as np
    >>> from pluri.processes.ising.check import check_mean_field
    >>> from pluri.processes.ising.grid import LabelField
    >>> field = LabelField(np.zeros((1, 1, 8, 8, 2)), agreement=2.0)
    >>> chosen = np.broadcast_to([0.02, 0.98], (1, 1, 8, 8, 2))
    >>> print(check_mean_field(field, chosen).problems()[-1][:45])
    mean field shows one of several solutions: mi
    """
    if proba.size > LARGEST_CHECK:
        return MeanFieldCheck(checked=False)
    by_messages = np.abs(propagate(field, proba, CHECK_SWEEPS, CHECK_TOL).proba - proba).max(axis=-1)
    by_starts = np.abs(_mixture(field, proba) - proba).max(axis=-1)
    return MeanFieldCheck(
        float(by_messages.max()),
        float(by_starts.max()),
        float((by_messages > NOTABLE).mean()),
        float((by_starts > NOTABLE).mean()),
    )


def _mixture(field: LabelField, proba: Array) -> Array:
    """Solutions of mean field from here and from ordered images, mixed image by image by exp(bound)."""
    solutions = [proba]
    for start in ordered_images(field):
        q = start
        for _ in range(CHECK_SWEEPS):
            q = GridMeanField(field).update(q)
        solutions.append(q)
    bounds = np.array([_bounds(field, q) for q in solutions])
    for late in range(1, len(solutions)):
        for early in range(late):
            same = np.abs(solutions[late] - solutions[early]).max(axis=(1, 2, 3, 4)) < NOTABLE
            bounds[late][same & np.isfinite(bounds[early])] = -np.inf
    weights = np.exp(bounds - bounds.max(axis=0))
    weights /= weights.sum(axis=0)
    return np.asarray(sum(weight[:, None, None, None, None] * q for weight, q in zip(weights, solutions)))


def _bounds(field: LabelField, q: Array) -> Array:
    """Bound of each image by itself, without the constant."""
    alone = [LabelField(grid[None], field.agreement) for grid in field.log_likelihood]
    return np.array([GridMeanField(one).elbo(part[None]) for one, part in zip(alone, q)])
