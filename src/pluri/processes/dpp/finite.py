r"""Determinantal point processes over a finite set of items: subsets whose items differ.

.. math:: P(Y) = \frac{\det L_Y}{\det(L + I)}, \qquad L_{ij} = q_i \, S_{ij} \, q_j

The determinant is the squared volume that the items of Y span: it grows with their quality q and shrinks with their
similarity S. Everything below is exact.

References
----------
.. [1] A. Kulesza and B. Taskar, "Determinantal point processes for machine learning", Foundations and Trends in Machine
   Learning 5, 2012.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pluri.processes.dpp.given_kernels import representation, similarity_representation
from pluri.processes.dpp.ground_set import GroundSet
from pluri.processes.dpp.kernel_forms import Array, FeatureKernel, IntArray, KernelForm, as_subset
from pluri.processes.dpp.representation import LARGEST_DENSE, Representation
from pluri.processes.dpp.samplers.spectral import SpectralSampler
from pluri.processes.dpp.sizes import scale_for_size, size_probabilities
from pluri.processes.dpp.subset_distribution import SubsetDistribution


class DPP(SubsetDistribution):
    """A determinantal point process: a random subset that prefers items that are good and different.

    Give one of ``L``, ``K`` and ``features``.

    Parameters
    ----------
    L : array_like (n_items, n_items) or kernel object, optional
        Kernel of the L-ensemble: symmetric, positive semi-definite.
    K : array_like (n_items, n_items), optional
        Marginal kernel: ``P(A in Y) = det(K_A)``; eigenvalues between 0 and 1, both allowed.
    features : array_like or sparse matrix (n_items, n_features), optional
        Rows whose products are L. With fewer columns than items nothing of size n_items^2 is ever made.
    quality : array_like (n_items,), optional
        Non-negative factors: ``L`` is read as similarity, and the kernel is ``quality_i L_ij quality_j``.

    See Also
    --------
    KDPP : The process with a fixed number of items.
    DPPSelector : Choose rows of data behind scikit-learn's interface.
    greedy_map : The search behind `map`, with windows, given items and more.
    DPPMarkovChain, IntermediateSampler : What ``method="mcmc"`` and ``method="intermediate"`` use, with diagnostics.
    TimeVaryingDPP : Follow a process whose items change.

    Examples
    --------
    >>> from pluri.processes.dpp import DPP
    >>> process = DPP([[2, 1], [1, 2]])
    >>> process.inclusion_probabilities()
    array([0.625, 0.625])
    >>> round(float(process.marginal([0, 1])), 6), round(process.expected_size, 6)
    (0.375, 1.25)
    >>> [subset.tolist() for subset in process.sample(3, random_state=0)]
    [[0, 1], [0, 1], []]
    """

    def __init__(
        self,
        L: ArrayLike | KernelForm | None = None,
        *,
        K: ArrayLike | None = None,
        features: Any = None,
        quality: ArrayLike | None = None,
    ) -> None:
        self._process = representation(L, K, features, quality)
        self._ground = GroundSet.of_size(self._process.n_items)

    @classmethod
    def _of(cls, process: Representation, ground: GroundSet | None = None) -> Self:
        made = cls.__new__(cls)
        made._process = process
        made._ground = GroundSet.of_size(process.n_items) if ground is None else ground
        return made

    @classmethod
    def from_kernel(
        cls,
        X: Any,
        kernel: str | Callable[..., Any] = "rbf",
        quality: ArrayLike | None = None,
        expected_size: float | None = None,
        **parameters: Any,
    ) -> DPP:
        """The process of a similarity between the rows of data.

        Parameters
        ----------
        X : array_like or sparse matrix (n_items, n_features)
            One row for each item.
        kernel : {"rbf", "cosine", "linear", "exponential_cosine"}, kernel object or callable, default="rbf"
            Similarity; a callable takes two sets of rows.
        quality : array_like (n_items,), optional
            Non-negative factors.
        expected_size : float, optional
            Scale the kernel so that this many items are drawn on average.
        **parameters
            Of the kernel, such as ``length_scale=0.1``; that of "rbf" is the median distance by default.

        Examples
        --------
        >>> import numpy as np
        >>> from pluri.processes.dpp import DPP
        >>> X = np.linspace(0, 1, 50)[:, None]
        >>> process = DPP.from_kernel(X, "rbf", length_scale=0.1, expected_size=5)
        >>> round(process.expected_size, 6)
        5.0
        """
        made: DPP = cls._of(similarity_representation(X, kernel, quality, parameters))
        return made if expected_size is None else made.with_expected_size(expected_size)

    @property
    def K(self) -> Array:
        """The marginal kernel of the free items as a matrix: ``P(A in Y) = det(K_A)``."""
        everything = np.arange(self._process.n_items)
        if everything.size > LARGEST_DENSE:
            raise ValueError(
                f"the marginal kernel of {everything.size} items is too large to be written out (limit "
                f"{LARGEST_DENSE}): ask for inclusion_probabilities(), marginal(A), or the spectrum"
            )
        return self._process.marginal_block(everything, everything)

    @property
    def log_normalizer(self) -> float:
        """``log det(L + I)``."""
        return self.spectrum.log_normalizer

    @property
    def expected_size(self) -> float:
        """Mean number of items drawn."""
        return float(self.spectrum.probabilities.sum()) + self._ground.fixed.size

    @property
    def size_variance(self) -> float:
        """Variance of the number of items drawn."""
        probabilities = self.spectrum.probabilities
        return float((probabilities * (1 - probabilities)).sum())

    def size_pmf(self) -> Array:
        """Probability of drawing 0, 1, 2, ... items, up to the largest number possible."""
        return np.concatenate([np.zeros(self._ground.fixed.size), size_probabilities(self.spectrum.probabilities)])

    def inclusion_probabilities(self) -> Array:
        """Probability that each item is drawn: the diagonal of K."""
        return self._ground.spread(self._process.inclusion())

    def exclusion_probability(self, A: ArrayLike) -> float:
        """Probability that no item of ``A`` is drawn: ``det(I - K_A)``."""
        positions, fixed, _ = self._ground.positions(A, "A")
        if fixed.size:
            return 0.0
        return self._process.exclusion(positions)

    def pair_correlation(self, i: int, j: int) -> float:
        """``P(i and j) / (P(i) P(j))``: 1 for items that do not see each other, 0 for items never drawn together."""
        pair, alone = self.marginal([i, j]), self.marginal([i]) * self.marginal([j])
        if alone == 0:
            raise ValueError(f"items {i} and {j} must have a positive probability each, got one that is never drawn")
        return pair / alone

    @property
    def repulsion(self) -> float:
        """``sum K_ij^2 / sum K_ii``: 1 for a projection (the strongest repulsion), the mean of K_ii for coins."""
        probabilities = self.spectrum.probabilities
        return float((probabilities**2).sum() / probabilities.sum()) if probabilities.size else 0.0

    def with_expected_size(self, expected_size: float) -> DPP:
        """The process of ``c * L`` with c such that this many items are drawn on average (fixed ones counted)."""
        if self._process.n_items > LARGEST_DENSE and not isinstance(self._process.form, FeatureKernel):
            raise ValueError(
                f"expected_size needs the eigenvalues of the kernel, which has too many items ({self.n_items}, limit "
                f"{LARGEST_DENSE}): fix the size (KDPP), give a quality, or use NystromDPP or features"
            )
        self._process._refuse_certain()
        n_fixed, rank = self._ground.fixed.size, self.spectrum.rank
        if isinstance(expected_size, bool | str) or not n_fixed < expected_size < n_fixed + rank:
            also = f" and the {n_fixed} fixed items" if n_fixed else ""
            raise ValueError(
                f"expected_size must be above {n_fixed} and below the rank of the kernel{also} ({n_fixed + rank}), "
                f"got {expected_size!r}"
            )
        factor = scale_for_size(self.spectrum.odds, expected_size - n_fixed)
        return DPP._of(self._process.scaled(factor), self._ground)

    def complement(self) -> DPP:
        """The distribution of the items that are *not* drawn: its marginal kernel is ``I - K``."""
        ground = self._ground
        drawn = np.setdiff1d(np.arange(ground.n_items), np.concatenate([ground.free, ground.fixed]))
        marginal = -self.K
        marginal.flat[:: len(marginal) + 1] += 1.0
        return DPP._of(Representation(None, marginal), GroundSet(ground.n_items, ground.free, drawn))

    def restrict(self, items: ArrayLike) -> DPP:
        """The distribution of the drawn items that lie in ``items``: its marginal kernel is a block of K.

        Items keep their ids; those outside are never drawn from the result. (To *know* that they are not drawn is
        another distribution: ``condition(exclude=...)``.)
        """
        chosen = as_subset(items, self.n_items, "items")
        positions = self._ground.positions(chosen[np.isin(chosen, self._ground.free)])[0]
        if positions.size > LARGEST_DENSE:
            raise ValueError(
                f"items must be at most {LARGEST_DENSE}, as their marginal kernel is written out, got {positions.size}"
            )
        ground = GroundSet(self.n_items, self._ground.free[positions], np.intersect1d(self._ground.fixed, chosen))
        return DPP._of(Representation(None, self._process.marginal_block(positions, positions)), ground)

    def fixed_size(self, size: int) -> Any:
        """The process given that ``size`` items are drawn, fixed ones counted: a `KDPP`."""
        from pluri.processes.dpp.fixed_size import KDPP

        return KDPP._of_size(self._process, self._ground, size)

    def _log_probability(self, positions: IntArray) -> float:
        return self._process.log_probability(positions)

    def _log_marginal(self, positions: IntArray) -> float:
        sign, log_value = np.linalg.slogdet(self._process.marginal_block(positions, positions))
        return float(log_value) if sign > 0 else -np.inf

    def _conditioned(self, include: IntArray, keep: IntArray, exclude: IntArray) -> Self:
        return type(self)._of(
            self._process.conditioned(include, keep, exclude), self._ground.conditioned(include, keep)
        )

    def _draw(self, n_draws: int, rng: np.random.Generator, method: str) -> list[IntArray]:
        if method == "spectral":
            return self._sampler.draw(n_draws, rng)
        if method == "sequential":
            from pluri.processes.dpp.samplers.sequential import draw_sequentially

            return draw_sequentially(self.K, n_draws, rng)
        if method == "intermediate":
            return self._intermediate.draw(n_draws, rng)
        from pluri.processes.dpp.samplers.chain import draw_by_chain

        return draw_by_chain(self._process.kernel, n_draws, rng)

    @cached_property
    def _sampler(self) -> SpectralSampler:
        return SpectralSampler(self.spectrum)

    @cached_property
    def _intermediate(self) -> Any:
        from pluri.processes.dpp.samplers.intermediate import IntermediateSampler

        return IntermediateSampler(self._process.kernel)

    def __repr__(self) -> str:
        return f"DPP(n_items={self.n_items})"
