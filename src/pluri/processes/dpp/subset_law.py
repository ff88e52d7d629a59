"""What a determinantal point process and its fixed-size sister have in common: a kernel, a ground set, draws."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Self, overload

import numpy as np
from numpy.typing import ArrayLike

from pluri.processes.dpp.ground_set import GroundSet
from pluri.processes.dpp.kernel_forms import (
    Array,
    DenseKernel,
    FeatureKernel,
    FunctionKernel,
    IntArray,
    KernelForm,
    check_features,
    check_kernel,
    check_lengths,
    check_quality,
    check_symmetric,
    checked_form,
)
from pluri.processes.dpp.representation import LARGEST_DENSE, Representation
from pluri.processes.dpp.sizes import number_of_draws
from pluri.processes.dpp.spectrum import Spectrum
from pluri.validation import Only, RandomState, Whole, as_generator, check_value

#: Ways to draw: see `SubsetLaw.sample`.
METHODS = Only("auto", "spectral", "sequential", "intermediate", "mcmc")
#: Up to this many items all subsets are looked at for the entropy.
ENUMERABLE = 12


class Entropy(NamedTuple):
    """An entropy in nats, and the standard error of its estimate (0 if it is exact)."""

    value: float
    standard_error: float


class SubsetLaw(ABC):
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


def representation(
    L: ArrayLike | KernelForm | None, K: ArrayLike | None, features: Any, quality: ArrayLike | None
) -> Representation:
    """Check what a process was given, and hold it in the form in which it came."""
    given = [name for name, value in (("L", L), ("K", K), ("features", features)) if value is not None]
    if len(given) != 1:
        raise ValueError(f"exactly one of L, K and features must be given, got {', '.join(given) or 'none'}")
    if K is not None:
        if quality is not None:
            raise ValueError("quality belongs to L or features, got it together with K")
        process = Representation(None, check_symmetric(K, "K"))
        process.spectrum  # noqa: B018 (refuses eigenvalues outside [0, 1] now rather than at the first draw)
        return process
    if features is not None:
        rows = check_features(features)
        if quality is not None:
            factors = check_quality(quality, rows.shape[0])
            rows = rows * factors[:, None] if isinstance(rows, np.ndarray) else rows.multiply(factors[:, None]).tocsr()
        return Representation(FeatureKernel(check_lengths(rows, "features times quality")))
    if isinstance(L, DenseKernel) or all(hasattr(L, part) for part in ("n_items", "diagonal", "rows", "block")):
        if quality is not None:
            raise ValueError("quality must be part of a kernel object, got it beside one")
        return Representation(checked_form(L))  # type: ignore[arg-type]
    matrix = check_kernel(L)  # type: ignore[arg-type]
    if quality is not None:
        factors = check_quality(quality, len(matrix))
        # One factor after the other: their product alone may overflow where that with the entries does not.
        with np.errstate(over="ignore"):
            matrix *= factors
            matrix *= factors[:, None]
        matrix = check_symmetric(matrix, "L times quality")
    return Representation(DenseKernel(matrix))


def similarity_representation(
    X: Any, kernel: str | Callable[..., Any], quality: ArrayLike | None, parameters: dict[str, Any]
) -> Representation:
    """The process of a similarity between rows of data, in the cheapest exact form."""
    form = similarity_form(X, kernel, quality, parameters)
    if isinstance(form, FeatureKernel) or form.n_items > LARGEST_DENSE:
        return Representation(form)
    return Representation(DenseKernel(check_kernel(form.rows(np.arange(form.n_items)), "kernel(X, X)")))


def similarity_form(
    X: Any, kernel: str | Callable[..., Any], quality: ArrayLike | None, parameters: dict[str, Any]
) -> KernelForm:
    """The kernel of a similarity between rows of data: by features if it has any, else computed on demand."""
    from pluri.processes.dpp.similarity import as_similarity

    if kernel == "rbf":
        parameters = {"length_scale": "median"} | parameters
    similarity = as_similarity(kernel, **parameters)
    rows = check_features(X, "X")
    factors = None if quality is None else check_quality(quality, rows.shape[0])
    if hasattr(similarity, "fixed"):
        similarity = similarity.fixed(rows)  # what is learned from the data is learned from all of them
    if hasattr(similarity, "features"):
        return representation(None, None, similarity.features(rows), factors).kernel
    return FunctionKernel(similarity, rows, factors)
