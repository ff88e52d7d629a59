"""What a determinantal point process and its fixed-size sister have in common: a kernel, a ground set, draws."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import NamedTuple, Self, overload

import numpy as np
from numpy.typing import ArrayLike

from pluri.processes.dpp.ground_set import GroundSet
from pluri.processes.dpp.kernel_forms import Array, FeatureKernel, IntArray, KernelForm
from pluri.processes.dpp.representation import LARGEST_DENSE, Representation
from pluri.processes.dpp.sizes import number_of_draws
from pluri.processes.dpp.spectrum import Spectrum
from pluri.validation import Only, RandomState, Whole, as_generator, check_value

#: Ways to draw: see `SubsetDistribution.sample`.
METHODS = Only("auto", "spectral", "sequential", "intermediate", "mcmc")
#: Up to this many items all subsets are looked at for the entropy.
ENUMERABLE = 12


class Entropy(NamedTuple):
    """An entropy in nats, and the standard error of its estimate (0 if it is exact)."""

    value: float
    standard_error: float


class SubsetDistribution(ABC):
    """A distribution over subsets of the items 0 to ``n_items - 1``; it never changes once made."""

    _process: Representation
    _ground: GroundSet

    @property
    def n_items(self) -> int:
        """Number of items of the ground set, those excluded or always included by `condition` too."""
        return self._ground.n_items

    @property
    def kernel(self) -> KernelForm:
        """The kernel L of the items that are free, in the form in which it is held."""
        return self._process.kernel

    @property
    def spectrum(self) -> Spectrum:
        """Eigenvalues and eigenvectors of L, made when first asked for."""
        return self._process.spectrum

    @property
    def rank(self) -> int:
        """Rank of L: no subset of free items can be larger."""
        return self.spectrum.rank

    @property
    def free_items(self) -> IntArray:
        """Items that may or may not be drawn."""
        return self._ground.free.copy()

    @property
    def fixed_items(self) -> IntArray:
        """Items that are in every subset."""
        return self._ground.fixed.copy()

    @property
    def L(self) -> Array:
        """The kernel L of the free items as a matrix, not to be written to."""
        matrix = self._process.dense().view()
        matrix.flags.writeable = False
        return matrix

    @property
    @abstractmethod
    def log_normalizer(self) -> float:
        """Logarithm of the sum of ``det L_Y`` over all subsets that are possible."""

    @abstractmethod
    def inclusion_probabilities(self) -> Array:
        """Probability that each item is drawn."""

    @abstractmethod
    def _log_probability(self, positions: IntArray) -> float: ...

    @abstractmethod
    def _log_marginal(self, positions: IntArray) -> float: ...

    @abstractmethod
    def _conditioned(self, include: IntArray, keep: IntArray, exclude: IntArray) -> Self: ...

    @abstractmethod
    def _draw(self, n_draws: int, rng: np.random.Generator, method: str) -> list[IntArray]: ...

    def log_prob(self, Y: ArrayLike) -> float:
        """Log probability of drawing exactly the subset ``Y``, given as ids or as a boolean mask."""
        positions, fixed, possible = self._ground.positions(Y)
        if not possible or fixed.size < self._ground.fixed.size:
            return -np.inf
        return self._log_probability(positions)

    def marginal(self, A: ArrayLike) -> float:
        """Probability that all items of ``A`` are drawn, whatever else is."""
        positions, _, possible = self._ground.positions(A, "A")
        return float(np.exp(self._log_marginal(positions))) if possible else 0.0

    def condition(self, include: ArrayLike = (), exclude: ArrayLike = ()) -> Self:
        """The distribution of the subset given that the items ``include`` are in it and the items ``exclude`` are not.

        Subsets drawn from the result hold the included items; probabilities are of whole subsets.

        Raises
        ------
        ValueError
            If an item is both, or if what is asked for has probability zero.
        """
        inside, _, possible = self._ground.positions(include, "include")
        outside, certain, _ = self._ground.positions(exclude, "exclude")
        both = self._ground.free[np.intersect1d(inside, outside)]
        if both.size:
            raise ValueError(f"include and exclude must not share items, got {both.tolist()} in both")
        if not possible or certain.size:
            raise ValueError("include and exclude must be possible, got an item that is excluded or included already")
        keep = np.setdiff1d(np.arange(self._ground.free.size), np.concatenate([inside, outside]))
        return self._conditioned(inside, keep, outside)

    @overload
    def sample(self, n_samples: None = None, random_state: RandomState = None, method: str = "auto") -> IntArray: ...

    @overload
    def sample(self, n_samples: int, random_state: RandomState = None, method: str = "auto") -> list[IntArray]: ...

    def sample(
        self, n_samples: int | None = None, random_state: RandomState = None, method: str = "auto"
    ) -> IntArray | list[IntArray]:
        """Draw subsets.

        Parameters
        ----------
        n_samples : int, optional
            Number of independent subsets; without it one is drawn and given by itself.
        random_state : int, Generator, RandomState or None
            Source of randomness.
        method : {"auto", "spectral", "sequential", "intermediate", "mcmc"}, default="auto"
            The first four are exact. "spectral" decomposes the kernel (or the product of the features) once; later
            draws take time that does not depend on the number of items. "sequential" asks item by item and costs
            O(n_items^3) for every draw: a check of the others. "intermediate" draws from a random handful of items and
            never decomposes the whole kernel. "mcmc" runs a Markov chain and is approximate. "auto" is "spectral",
            and "intermediate" for a kernel function of many items.

        Returns
        -------
        ndarray of int, or list of them
            Sorted items of each subset.
        """
        check_value(method, "method", METHODS)
        n_draws = number_of_draws(n_samples)
        if method == "auto":
            large = self._process.n_items > LARGEST_DENSE and not isinstance(self._process.form, FeatureKernel)
            method = "intermediate" if large else "spectral"
        draws = [np.empty(0, dtype=np.int64)] * n_draws
        if n_draws > 0 and self._process.n_items > 0:
            draws = self._draw(n_draws, as_generator(random_state), method)
        subsets = [self._ground.subset(draw) for draw in draws]
        return subsets[0] if n_samples is None else subsets

    def map(
        self,
        size: int | None = None,
        *,
        method: str = "greedy",
        local_search: bool = False,
    ) -> IntArray:
        """A subset of high probability.

        Parameters
        ----------
        size : int, optional
            Number of items wanted, included ones counted; as many as raise the probability by default (all k of a
            k-DPP).
        method : {"greedy", "lazy", "relaxation"}, default="greedy"
            "greedy" adds the item that raises the determinant most; "lazy" finds the same items and looks at fewer;
            "relaxation" maximises a smooth extension of the log determinant over probabilities and rounds it.
        local_search : bool, default=False
            Whether single items are then added, removed and swapped as long as that helps.

        Returns
        -------
        ndarray of int
            Sorted items.
        """
        from pluri.processes.dpp.search.maximize import most_probable

        wanted = self._wanted_size(size)
        if self._process.n_items == 0:
            return self._ground.subset(np.empty(0, dtype=np.int64))
        found = most_probable(self._process.kernel, wanted, method=method, local_search=local_search)
        if found.size == 0 and wanted is None and self._process.n_items:
            warnings.warn(
                "no item makes the subset more probable (none has L_ii above 1), so that the best one is empty"
                + (" but for what is fixed" if self._ground.fixed.size else "")
                + ": give a size, or a kernel of a larger scale",
                UserWarning,
                stacklevel=2,
            )
        return self._ground.subset(found)

    def entropy(self, n_draws: int = 1000, random_state: RandomState = None) -> Entropy:
        """Entropy of the subset in nats: exact for at most 12 free items, else an average over draws.

        There is no closed form: it is the log normaliser minus the mean of ``log det L_Y``.
        """
        n_free = self._ground.free.size
        if n_free <= ENUMERABLE:
            codes = np.arange(2**n_free)[:, None] >> np.arange(n_free) & 1
            logs = np.array([self._log_probability(np.flatnonzero(code)) for code in codes])
            possible = np.isfinite(logs)
            return Entropy(float(-(np.exp(logs[possible]) * logs[possible]).sum()), 0.0)
        check_value(n_draws, "n_draws", Whole(2))
        draws = self._draw(n_draws, as_generator(random_state), "spectral")
        logs = np.array([self._log_probability(draw) for draw in draws])
        return Entropy(float(-logs.mean()), float(logs.std(ddof=1) / np.sqrt(n_draws)))

    def _wanted_size(self, size: int | None) -> int | None:
        """Number of free items that `map` must find."""
        if size is None:
            return None
        n_fixed, n_free = self._ground.fixed.size, self._ground.free.size
        if isinstance(size, bool) or size != int(size) or not n_fixed <= size <= n_fixed + n_free:
            raise ValueError(f"size must be a whole number from {n_fixed} to {n_fixed + n_free}, got {size!r}")
        return int(size) - n_fixed
