r"""Exact draws from a spectrum, in time that does not depend on the number of items.

A draw takes eigenvectors by independent coins (or exactly k of them, by symmetric polynomials), and then as many items
from the projection on their span. The usual second phase updates a weight of every item after every pick. Here items
are proposed by their weight before any pick, and accepted with the share of it that is left: exact, and
:math:`O(k^3 \log k)` for k items.

References
----------
.. [1] J. B. Hough, M. Krishnapur, Y. Peres and B. Virag, "Determinantal processes and independence", Probability
   Surveys 3, 2006.
.. [2] A. Kulesza and B. Taskar, "k-DPPs: fixed-size determinantal point processes", ICML 2011.
.. [3] S. Barthelme, N. Tremblay and P.-O. Amblard, "A faster sampler for discrete determinantal point processes",
   AISTATS 2023.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pluri.processes.dpp.kernel_forms import Array, IntArray
from pluri.processes.dpp.spectrum import Spectrum
from pluri.processes.dpp.symmetric_polynomials import log_elementary_table

#: Coins that are tossed in one go.
TOSSES = 1 << 22


@dataclass(frozen=True, eq=False)
class SpectralSampler:
    """Draws subsets from a spectrum; the tables that all draws share are made at the first.

    Attributes
    ----------
    spectrum : Spectrum
    size : int or None
        Number of items of each subset; None for the process without a fixed size.
    """

    spectrum: Spectrum
    size: int | None = None

    def draw(self, n_draws: int, rng: np.random.Generator) -> list[IntArray]:
        """Independent subsets, each sorted."""
        from pluri.processes.dpp.samplers._spectral_kernels import draw_many

        taken, counts = self._eigenvectors(n_draws, rng)
        items, found = np.empty(taken.size, dtype=np.int64), np.empty(n_draws, dtype=np.int64)
        if taken.size:
            draw_many(rng, self._modes, self._blocks, taken, counts, int(counts.max()), items, found)
        ends = np.cumsum(counts)
        subsets = [np.sort(part) for part in np.split(items, ends[:-1])]
        for draw in np.flatnonzero(found < counts) if taken.size else ():
            begin = ends[draw] - counts[draw]
            subsets[draw] = np.sort(self._finish(taken[begin : ends[draw]], items[begin : begin + found[draw]], rng))
        return subsets

    def _eigenvectors(self, n_draws: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Which eigenvectors each draw takes, one draw after the other, and how many each."""
        if self.size is not None:
            from pluri.processes.dpp.samplers._spectral_kernels import toss_exactly

            chosen = np.empty((n_draws, self.size), dtype=np.int64)
            toss_exactly(rng, self._coins, self.size, chosen)
            # The coins are in ascending order of the odds, the spectrum in descending order.
            return self.spectrum.rank - 1 - chosen.ravel(), np.full(n_draws, self.size)
        taken, counts = [], []
        at_once = max(1, TOSSES // max(self.spectrum.rank, 1))
        full, rest = divmod(n_draws, at_once)
        for count in (*[at_once] * full, rest):
            shape = (count, self.spectrum.rank)
            draws, heads = np.nonzero(rng.random(shape) < self.spectrum.probabilities)
            taken.append(heads)
            counts.append(np.bincount(draws, minlength=shape[0]))
        return np.concatenate(taken), np.concatenate(counts)

    def _finish(self, taken: IntArray, items: IntArray, rng: np.random.Generator) -> IntArray:
        """A draw that rejection did not complete: the weights of all items, after each pick.

        This happens when the eigenvectors are not orthonormal to working precision, so that less is left than should.
        """
        rows = self.spectrum.vectors[:, taken]
        chosen = list(items)
        while len(chosen) < taken.size:
            basis = np.linalg.qr(rows[chosen].T)[0]
            left = (rows**2).sum(axis=1) - ((rows @ basis) ** 2).sum(axis=1)
            left[chosen] = 0.0
            left = np.maximum(left, 0.0)
            if left.sum() <= 1e-9:
                warnings.warn(
                    "the eigenvectors are not independent to working precision: a subset has fewer items than it "
                    "should; drop the smallest eigenvalues or scale the features",
                    RuntimeWarning,
                    stacklevel=4,
                )
                break
            chosen.append(int(rng.choice(left.size, p=left / left.sum())))
        return np.array(chosen, dtype=np.int64)

    @cached_property
    def _modes(self) -> Array:
        return np.ascontiguousarray(self.spectrum.vectors.T)

    @cached_property
    def _blocks(self) -> Array:
        """Sums of the squared entries of each eigenvector over the blocks before, (rank, n_blocks + 1)."""
        from pluri.processes.dpp.samplers._spectral_kernels import BLOCK

        starts = np.arange(0, self.spectrum.n_items, BLOCK)
        blocks = np.zeros((self.spectrum.rank, starts.size + 1))
        for n, mode in enumerate(self._modes):
            np.cumsum(np.add.reduceat(mode**2, starts), out=blocks[n, 1:])
        return blocks

    @cached_property
    def _coins(self) -> Array:
        from pluri.processes.dpp.samplers._spectral_kernels import fill_coins

        assert self.size is not None
        ascending = np.ascontiguousarray(self.spectrum.log_odds[::-1])
        coins = np.ones((self.spectrum.rank, self.size + 1))
        fill_coins(log_elementary_table(ascending, self.size), ascending, coins)
        return coins


def draw_subsets(spectrum: Spectrum, n_draws: int, rng: np.random.Generator, size: int | None = None) -> list[IntArray]:
    """Independent exact draws; see `SpectralSampler`, which keeps its tables for more."""
    return SpectralSampler(spectrum, size).draw(n_draws, rng)
