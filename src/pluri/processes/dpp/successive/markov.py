r"""Markov determinantal point processes: a chain of sets, each diverse by itself and different from the one before.

With :math:`M = L (I - L)^{-1}` (so all eigenvalues of L must lie below 1),

.. math:: P(Y_1) = \frac{\det L_{Y_1}}{\det(L + I)}, \qquad
   P(Y_t \mid Y_{t-1}) = \frac{\det M_{Y_t \cup Y_{t-1}}}{\det(M + I_{\bar{Y}_{t-1}})}

with disjoint neighbours, where the identity is on the items outside :math:`Y_{t-1}`. Every :math:`Y_t` is a DPP with
kernel L, every union of two neighbours one with kernel 2M (a draw from it, split by fair coins, is such a pair), and
the chain is reversible.

References
----------
.. [1] R. H. Affandi, A. Kulesza and E. B. Fox, "Markov determinantal point processes", UAI 2012.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from pluri.processes.dpp.finite import DPP
from pluri.processes.dpp.kernel_checks import check_kernel
from pluri.processes.dpp.kernel_forms import Array, DenseKernel, IntArray, as_subset
from pluri.processes.dpp.representation import without_noise
from pluri.processes.dpp.spectrum import spectrum_of_kernel
from pluri.validation import RandomState, Whole, as_generator, check_value
from pluri.validation.interruption import holding, interruptible

#: An eigenvalue of L must be below one by more than this: M would be all rounding.
MARGIN = 1e-10


def schur_complement(kernel: Array, inside: IntArray, outside: IntArray) -> Array:
    """Kernel of the items ``outside`` given that those ``inside`` are in; LinAlgError if these have no volume."""
    block = kernel[np.ix_(outside, outside)]
    own = np.diagonal(block)
    if inside.size:
        factor = np.linalg.cholesky(kernel[np.ix_(inside, inside)])
        half = np.linalg.solve(factor, kernel[np.ix_(inside, outside)])
        block = block - half.T @ half
    return without_noise(block, own)


class MarkovDPP:
    """A stationary chain of subsets, diverse within and between neighbours.

    Parameters
    ----------
    L : array_like (n_items, n_items)
        Kernel of every single set; its eigenvalues must lie below 1. (A process of larger sets than that allows could
        not have disjoint neighbours of the same distribution.)

    Attributes
    ----------
    L, M : ndarray (n_items, n_items)
        The kernel of each set, and that of the joint distribution of two neighbours.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp.successive.markov import MarkovDPP
    >>> places = np.linspace(0, 1, 30)
    >>> chain = MarkovDPP(0.12 * np.exp(-((places[:, None] - places) ** 2) / 0.02))
    >>> sets = chain.sample(100, random_state=0)
    >>> any(set(a) & set(b) for a, b in zip(sets, sets[1:]))
    False
    """

    L: Array
    M: Array

    def __init__(self, L: ArrayLike) -> None:
        self.L = check_kernel(L)
        spectrum = spectrum_of_kernel(self.L)
        largest = float(spectrum.odds[0]) if spectrum.rank else 0.0
        if largest >= 1 - MARGIN:
            raise ValueError(
                f"L must have all eigenvalues below 1 for disjoint neighbours of one law, got {largest:.6g}: scale it "
                f"by less than {1 / largest:.6g}"
            )
        self.M = (spectrum.vectors * (spectrum.odds / (1 - spectrum.odds))) @ spectrum.vectors.T

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.L)

    @property
    def marginal_law(self) -> DPP:
        """The distribution of every single set."""
        return DPP(DenseKernel(self.L))

    @property
    def union_law(self) -> DPP:
        """The distribution of the union of two neighbours."""
        return DPP(DenseKernel(2.0 * self.M))

    def transition(self, previous: ArrayLike) -> DPP:
        """The distribution of a set given the one before: a process in which items of ``previous`` are never drawn."""
        inside = as_subset(previous, self.n_items, "previous")
        outside = np.setdiff1d(np.arange(self.n_items), inside)
        kernel = np.zeros((self.n_items, self.n_items))
        try:
            kernel[np.ix_(outside, outside)] = schur_complement(self.M, inside, outside)
        except np.linalg.LinAlgError:
            raise ValueError("previous must have a positive probability, got items that depend on each other") from None
        return DPP(DenseKernel(kernel))

    def log_likelihood(self, sequence: Sequence[ArrayLike]) -> float:
        """Log probability of a sequence of sets, the first drawn from the stationary distribution."""
        sets = [as_subset(items, self.n_items, f"sequence[{t}]") for t, items in enumerate(sequence)]
        total = 0.0
        for t, items in enumerate(sets):
            law = self.marginal_law if t == 0 else self.transition(sets[t - 1])
            total += law.log_prob(items)
            if total == -np.inf:
                return -np.inf
        return total

    @interruptible
    def sample(
        self,
        n_samples: int,
        *,
        initial: ArrayLike | None = None,
        size: int | None = None,
        kernels: Sequence[ArrayLike] | None = None,
        random_state: RandomState = None,
    ) -> list[IntArray]:
        """Draw a sequence of sets.

        Parameters
        ----------
        n_samples : int
            Number of sets.
        initial : array_like, optional
            The set before the first; without it the first is drawn from the stationary distribution.
        size : int, optional
            Number of items of every set. The sets then no longer have the distribution of a DPP of that size: a
            heuristic.
        kernels : list of array_like (n_items, n_items), optional
            A kernel L for each step, where qualities change with time. Each step then follows the transition of its own
            kernel, and the distribution of a single set is that of its kernel only approximately.
        random_state : int, Generator or None

        Returns
        -------
        list of ndarray
            Sorted items; after Ctrl-C the sets made so far are the attribute ``result`` of the ``KeyboardInterrupt``.
        """
        check_value(n_samples, "n_samples", Whole(0))
        if kernels is not None and len(kernels) != n_samples:
            raise ValueError(f"kernels must hold one for each of {n_samples} steps, got {len(kernels)}")
        rng = as_generator(random_state)
        sets: list[IntArray] = []
        previous = None if initial is None else as_subset(initial, self.n_items, "initial")
        with holding(lambda: f"interrupted after {len(sets)} of {n_samples} sets, which are kept", sets):
            for t in range(n_samples):
                chain = self if kernels is None else self._of_step(kernels[t])
                law = chain.marginal_law if previous is None else chain.transition(previous)
                previous = (law if size is None else law.fixed_size(size)).sample(random_state=rng)
                sets.append(previous)
        return sets

    def _of_step(self, kernel: ArrayLike) -> MarkovDPP:
        chain = MarkovDPP(kernel)
        if chain.n_items != self.n_items:
            raise ValueError(f"kernels must be over {self.n_items} items, got {chain.n_items}")
        return chain

    def __repr__(self) -> str:
        return f"MarkovDPP(n_items={self.n_items})"
