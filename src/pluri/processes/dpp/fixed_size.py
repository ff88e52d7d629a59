r"""Determinantal point processes of a fixed size: exactly k items that differ.

.. math:: P(Y) = \frac{\det L_Y}{e_k(\lambda)}, \qquad |Y| = k

with the elementary symmetric polynomial of the eigenvalues of L as normaliser.

References
----------
.. [1] A. Kulesza and B. Taskar, "k-DPPs: fixed-size determinantal point processes", ICML 2011.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pluri.processes.dpp.given_kernels import representation, similarity_representation
from pluri.processes.dpp.ground_set import GroundSet
from pluri.processes.dpp.kernel_forms import Array, IntArray, KernelForm
from pluri.processes.dpp.representation import Representation
from pluri.processes.dpp.samplers.spectral import SpectralSampler
from pluri.processes.dpp.subset_distribution import SubsetDistribution
from pluri.processes.dpp.symmetric_polynomials import log_elementary, log_elementary_without
from pluri.validation import Whole


class KDPP(SubsetDistribution):
    """A determinantal point process that draws exactly ``size`` items.

    Parameters
    ----------
    L : array_like (n_items, n_items) or kernel object, optional
        Kernel: symmetric, positive semi-definite. Its scale does not matter.
    size : int
        Number of items, at most the rank of the kernel.
    features : array_like or sparse matrix (n_items, n_features), optional
        Rows whose products are L, instead of L.
    quality : array_like (n_items,), optional
        Non-negative factors: the kernel is ``quality_i L_ij quality_j``.

    Examples
    --------
    >>> from pluri.processes.dpp import KDPP
    >>> process = KDPP([[2, 1, 0], [1, 2, 0], [0, 0, 1]], size=2)
    >>> process.inclusion_probabilities().round(4)
    array([0.7143, 0.7143, 0.5714])
    >>> [subset.tolist() for subset in process.sample(3, random_state=0)]
    [[1, 2], [0, 2], [0, 1]]
    """

    def __init__(
        self,
        L: ArrayLike | KernelForm | None = None,
        size: int | None = None,
        *,
        features: Any = None,
        quality: ArrayLike | None = None,
    ) -> None:
        process = representation(L, None, features, quality)
        self._set(process, GroundSet.of_size(process.n_items), size)

    @classmethod
    def _of_size(cls, process: Representation, ground: GroundSet, size: int | None) -> Self:
        made = cls.__new__(cls)
        made._set(process, ground, size)
        return made

    def _set(self, process: Representation, ground: GroundSet, size: int | None) -> None:
        least, most = int(ground.fixed.size), ground.n_items
        if not Whole(least, most).holds(size):
            raise ValueError(f"size must be a whole number from {least} to {most}, got {size!r}")
        self.size = int(size)  # type: ignore[arg-type]
        self._process = process
        self._ground = ground

    @classmethod
    def from_kernel(
        cls,
        X: Any,
        size: int,
        kernel: str | Callable[..., Any] = "rbf",
        quality: ArrayLike | None = None,
        **parameters: Any,
    ) -> Self:
        """The process of a similarity between the rows of data; see `DPP.from_kernel`."""
        process = similarity_representation(X, kernel, quality, parameters)
        return cls._of_size(process, GroundSet.of_size(process.n_items), size)

    @property
    def _n_open(self) -> int:
        """Number of free items to draw."""
        return self.size - self._ground.fixed.size

    @cached_property
    def _checked_spectrum(self) -> Any:
        self._process._refuse_certain()
        spectrum = self._process.spectrum
        if self._n_open > spectrum.rank:
            rank = spectrum.rank + self._ground.fixed.size
            raise ValueError(f"size must be at most the rank of the kernel ({rank}), got {self.size}")
        return spectrum

    @property
    def log_normalizer(self) -> float:
        """``log e_k`` of the eigenvalues."""
        return float(log_elementary(self._checked_spectrum.log_odds, self._n_open)[-1])

    @property
    def expected_size(self) -> float:
        """The size, for the surface of `DPP`."""
        return float(self.size)

    def inclusion_probabilities(self) -> Array:
        """Probability that each item is drawn; they sum to the size."""
        spectrum, size = self._checked_spectrum, self._n_open
        total = np.zeros(self._process.n_items)
        if size > 0:
            without = log_elementary_without(spectrum.log_odds, size - 1)
            taken = np.exp(spectrum.log_odds + without - self.log_normalizer)
            for n, probability in enumerate(taken):
                total += probability * spectrum.vectors[:, n] ** 2
        return self._ground.spread(np.clip(total, 0.0, 1.0))

    def exclusion_probability(self, A: ArrayLike) -> float:
        """Probability that no item of ``A`` is drawn."""
        positions, fixed, _ = self._ground.positions(A, "A")
        if fixed.size:
            return 0.0
        keep = np.setdiff1d(np.arange(self._process.n_items), positions)
        return float(np.exp(self._log_normalizer_of_rest(np.empty(0, np.int64), keep, positions) - self.log_normalizer))

    def _log_normalizer_of_rest(self, include: IntArray, keep: IntArray, exclude: IntArray) -> float:
        wanted = self._n_open - include.size
        if keep.size == 0 or wanted < 0:
            return 0.0 if wanted == 0 else -np.inf
        rest = self._process.conditioned(include, keep, exclude).spectrum
        return float(log_elementary(rest.log_odds, wanted)[-1])

    def _log_probability(self, positions: IntArray) -> float:
        if positions.size != self._n_open:
            return -np.inf
        return self._process.log_volume(positions) - self.log_normalizer

    def _log_marginal(self, positions: IntArray) -> float:
        volume = self._process.log_volume(positions)
        if volume == -np.inf or positions.size > self._n_open:
            return -np.inf
        keep = np.setdiff1d(np.arange(self._process.n_items), positions)
        rest = self._log_normalizer_of_rest(positions, keep, np.empty(0, np.int64))
        return volume + rest - self.log_normalizer

    def _conditioned(self, include: IntArray, keep: IntArray, exclude: IntArray) -> Self:
        if include.size > self._n_open:
            raise ValueError(f"include must name at most size = {self.size} items, got {include.size}")
        if keep.size < self._n_open - include.size:
            raise ValueError(
                f"exclude must leave at least size = {self.size} items, got {exclude.size} items to leave out"
            )
        ground = self._ground.conditioned(include, keep)
        made = type(self)._of_size(self._process.conditioned(include, keep, exclude), ground, self.size)
        made._checked_spectrum  # noqa: B018 (refuses what has probability zero now rather than at the first draw)
        return made

    def _draw(self, n_draws: int, rng: np.random.Generator, method: str) -> list[IntArray]:
        if method == "spectral":
            return self._sampler.draw(n_draws, rng)
        if method == "intermediate":
            return self._intermediate.draw(n_draws, rng)
        if method == "mcmc":
            from pluri.processes.dpp.samplers.chain import draw_by_chain

            return draw_by_chain(self._process.kernel, n_draws, rng, size=self._n_open)
        raise ValueError("method must be 'spectral', 'intermediate' or 'mcmc' for a fixed size, got 'sequential'")

    def _wanted_size(self, size: int | None) -> int | None:
        if size is not None and size != self.size:
            raise ValueError(f"size must be {self.size} or None, got {size!r}")
        return self._n_open

    @cached_property
    def _sampler(self) -> SpectralSampler:
        return SpectralSampler(self._checked_spectrum, self._n_open)

    @cached_property
    def _intermediate(self) -> Any:
        from pluri.processes.dpp.samplers.intermediate import IntermediateSampler

        return IntermediateSampler(self._process.kernel, size=self._n_open)

    def __repr__(self) -> str:
        return f"KDPP(n_items={self.n_items}, size={self.size})"
