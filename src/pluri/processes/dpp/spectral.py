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
        from pluri.processes.dpp._spectral_kernels import draw_many

        taken, counts = self._eigenvectors(n_draws, rng)
        items, found = np.empty(taken.size, dtype=np.int64), np.empty(n_draws, dtype=np.int64)
        if taken.size:
            draw_many(rng, self._modes, self._blocks, taken, counts, int(counts.max()), items, found)
            if (found < counts).any():
                warnings.warn(
                    "the eigenvectors are not independent to working precision: some subsets have fewer items than "
                    "they should; drop the smallest eigenvalues or scale the features",
                    RuntimeWarning,
                    stacklevel=2,
                )
                return [
                    np.sort(part[:n]) for part, n in zip(np.split(items, np.cumsum(counts)[:-1]), found, strict=True)
                ]
        return [np.sort(part) for part in np.split(items, np.cumsum(counts)[:-1])]

    def _eigenvectors(self, n_draws: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Which eigenvectors each draw takes, one draw after the other, and how many each."""
        from pluri.processes.dpp._spectral_kernels import toss, toss_exactly

        counts = np.empty(n_draws, dtype=np.int64)
        if self.size is None:
            mean = float(self.spectrum.probabilities.sum())
            room = int(n_draws * (mean + 8 * np.sqrt(mean + 1)) + 16)
            while True:
                state = rng.bit_generator.state
                taken = np.empty(room, dtype=np.int64)
                filled = toss(rng, self.spectrum.probabilities, taken, counts)
                if filled <= room:
                    return taken[:filled], counts
                rng.bit_generator.state, room = state, filled
        chosen = np.empty((n_draws, self.size), dtype=np.int64)
        toss_exactly(rng, self._coins, self.size, chosen)
        counts[:] = self.size
        # The coins are in ascending order of the odds, the spectrum in descending order.
        return self.spectrum.rank - 1 - chosen.ravel(), counts

    @cached_property
    def _modes(self) -> Array:
        return np.ascontiguousarray(self.spectrum.vectors.T)

    @cached_property
    def _blocks(self) -> Array:
        from pluri.processes.dpp._spectral_kernels import BLOCK, fill_blocks

        blocks = np.empty((self.spectrum.rank, -(-self.spectrum.n_items // BLOCK) + 1))
        fill_blocks(self._modes, blocks)
        return blocks

    @cached_property
    def _coins(self) -> Array:
        from pluri.processes.dpp._spectral_kernels import fill_coins

        assert self.size is not None
        ascending = np.ascontiguousarray(self.spectrum.log_odds[::-1])
        coins = np.ones((self.spectrum.rank, self.size + 1))
        fill_coins(log_elementary_table(ascending, self.size), ascending, coins)
        return coins


def draw_subsets(spectrum: Spectrum, n_draws: int, rng: np.random.Generator, size: int | None = None) -> list[IntArray]:
    """Independent exact draws; see `SpectralSampler`, which keeps its tables for more."""
    return SpectralSampler(spectrum, size).draw(n_draws, rng)
