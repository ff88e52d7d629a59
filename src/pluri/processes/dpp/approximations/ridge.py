"""The process of a kernel that is approximated by a few directions and a ridge; see `ridge_approximation`."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from pluri.processes.dpp.approximations.ridge_approximation import (
    RidgeApproximation,
    log_det_of,
    ridge_by_em,
    ridge_from_eigenvectors,
)
from pluri.processes.dpp.kernel_forms import Array, IntArray, KernelForm, as_subset
from pluri.processes.dpp.samplers.spectral import SpectralSampler
from pluri.processes.dpp.sizes import number_of_draws
from pluri.processes.dpp.spectrum import spectrum_of_features
from pluri.validation import RandomState, as_generator


class RidgeDPP:
    """The process of the ridge approximation of a kernel.

    Parameters
    ----------
    L : array_like (n_items, n_items), kernel object or RidgeApproximation
        Kernel, or an approximation that is ready.
    n_components : int, default=20
        Columns of A.
    inference : {"eigen", "em"}, default="eigen"
        How the approximation is found.
    random_state : int, Generator or None
        For the start of EM.

    Attributes
    ----------
    approximation : RidgeApproximation

    See Also
    --------
    NystromDPP : without the ridge, so that no subset has more items than there are landmarks.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp.approximations.ridge import RidgeDPP
    >>> X = np.linspace(0, 1, 200)
    >>> process = RidgeDPP(np.exp(-np.abs(X[:, None] - X) / 0.1), n_components=10)
    >>> round(process.expected_size, 2), len(process.sample(3, random_state=0))
    (42.62, 3)
    """

    approximation: RidgeApproximation

    def __init__(
        self,
        L: ArrayLike | KernelForm | RidgeApproximation,
        n_components: int = 20,
        *,
        inference: str = "eigen",
        random_state: RandomState = None,
    ) -> None:
        if isinstance(L, RidgeApproximation):
            self.approximation = L
        elif inference == "eigen":
            self.approximation = ridge_from_eigenvectors(L, n_components)
        elif inference == "em":
            self.approximation = ridge_by_em(L, n_components, random_state=random_state)
        else:
            raise ValueError(f"inference must be 'eigen' or 'em', got {inference!r}")

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.approximation.factor.shape[0])

    @cached_property
    def _sampler(self) -> SpectralSampler:
        return SpectralSampler(spectrum_of_features(self.approximation.factor / np.sqrt(1 + self.approximation.ridge)))

    @property
    def log_normalizer(self) -> float:
        """``log det(A A^T + (1 + ridge) I)``."""
        return self._sampler.spectrum.log_normalizer + self.n_items * float(np.log1p(self.approximation.ridge))

    def inclusion_probabilities(self) -> Array:
        """Probability that each item is drawn."""
        spectrum, ridge = self._sampler.spectrum, self.approximation.ridge
        structured = (spectrum.vectors**2) @ spectrum.probabilities
        return np.asarray(structured + (1 - structured) * ridge / (1 + ridge))

    @property
    def expected_size(self) -> float:
        """Mean number of items drawn."""
        return float(self.inclusion_probabilities().sum())

    def log_prob(self, Y: ArrayLike) -> float:
        """Log probability of drawing exactly ``Y``, given as ids or as a mask."""
        items = as_subset(Y, self.n_items)
        rows, ridge = self.approximation.factor[items], self.approximation.ridge
        if items.size > rows.shape[1]:
            if ridge == 0:
                return -np.inf
            inner = rows.T @ rows + ridge * np.eye(rows.shape[1])
            log_det = log_det_of(inner, items.size, ridge)
        else:
            sign, log_det = np.linalg.slogdet(rows @ rows.T + ridge * np.eye(items.size))
            if sign <= 0:
                return -np.inf
        return float(log_det) - self.log_normalizer

    def sample(self, n_samples: int | None = None, random_state: RandomState = None) -> IntArray | list[IntArray]:
        """Draw subsets exactly: one sorted array, or a list of ``n_samples``."""
        count, rng = number_of_draws(n_samples), as_generator(random_state)
        chance = self.approximation.ridge / (1 + self.approximation.ridge)
        draws = []
        for structured in self._sampler.draw(count, rng) if count else []:
            # As many coins as there are items, tossed by their number of heads.
            heads = rng.choice(self.n_items, size=rng.binomial(self.n_items, chance), replace=False)
            draws.append(np.union1d(structured, heads).astype(np.int64))
        return draws[0] if n_samples is None else draws

    def __repr__(self) -> str:
        return f"RidgeDPP(n_items={self.n_items}, n_components={self.approximation.factor.shape[1]})"
