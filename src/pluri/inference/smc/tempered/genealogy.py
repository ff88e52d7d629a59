"""The variance of an estimated evidence, from which particles descend from which.

Particles with a common ancestor share its luck. With S_e the share of the weight that the descendants of the first
particle e have now, ``V = 1 - (1 - sum_e S_e^2) prod_t 1 / (1 - c_t)`` estimates the relative variance of the evidence
from one run, however well or badly the moves mix [1]_. Here ``c_t`` is the noise that the resampling at t puts into the
number of copies, ``sum_i (n_i - n w_i)^2 / n^2``; for multinomial resampling its mean is about 1/n, which is the
constant of the paper, and for the others it is less. That holds if who is copied once too often does not depend on the
family: particles are therefore put in random order before they are resampled.

The estimate needs many families; where few are left it is noise, and never above 1.

In the waste-free form the few chains have common ancestors soon. There each temperature adds the variance of the mean
weight over chains, which has the correlation within a chain in it [2]_; what chains remember of their beginnings, a
correlation r on average, carries errors on to the next temperatures, as in an autoregression: by ``1 / (1 - r)``.

References
----------
.. [1] Lee, A. and Whiteley, N. (2018). Variance estimation in the particle filter. Biometrika 105.
.. [2] Dau, H.-D. and Chopin, N. (2022). Waste-free sequential Monte Carlo. JRSS B 84.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


class Genealogy(NamedTuple):
    """Who descends from whom.

    Attributes
    ----------
    families : array (n,)
        The first particle that each descends from.
    factor : float
        Product of ``1 / (1 - c_t)`` so far.
    chains : array (n,)
        The chain of the last moves that each is a state of.
    """

    families: Indices
    factor: float
    chains: Indices

    def shares(self, weights: Array) -> Array:
        """Share of the weight of each family (n_first,)."""
        return np.bincount(self.families, weights).astype(np.float64)

    def n_families(self, weights: Array) -> float:
        """Effective number of families: ``1 / sum_e S_e^2``."""
        return float(1.0 / np.square(self.shares(weights)).sum())

    def variance(self, weights: Array) -> float:
        """Relative variance V of the evidence up to these weights, which add up to one."""
        return float(1.0 - (1.0 - np.square(self.shares(weights)).sum()) * self.factor)

    def chain_variance(self, weights: Array) -> float:
        """Relative variance of the mean weight if chains are independent."""
        totals = np.bincount(self.chains, weights)
        n = len(totals)
        return float((np.square(totals).sum() - 1.0 / n) * n / (n - 1)) if n > 1 else 1.0

    def resampled(self, weights: Array, chosen: Indices, length: int) -> Genealogy:
        """After `chosen` particles went on, with `length` states of the chain of each."""
        n = len(chosen)
        copies = np.bincount(chosen, minlength=len(weights))
        noise = float(np.square(copies / n - weights).sum())
        return Genealogy(
            np.tile(self.families[chosen], length), self.factor / max(1.0 - noise, 1e-9), np.tile(np.arange(n), length)
        )


def first_generation(n: int) -> Genealogy:
    """Independent particles, each a family of its own.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.smc.tempered.genealogy import first_generation
    >>> weights = np.array([0.4, 0.4, 0.1, 0.1])
    >>> round(first_generation(4).variance(weights), 3)  # of a mean of four numbers
    0.12
    """
    return Genealogy(np.arange(n), n / (n - 1.0), np.arange(n))
