r"""Processes over many items with a kernel that is not linear: low-rank kernels from a few landmarks, and their error.

Nystrom's approximation takes the items W as landmarks and replaces L by

.. math:: \tilde L = L_{:W} L_W^{+} L_{W:} = F F^\top, \qquad F = L_{:W} (L_W^{+})^{1/2}

which is never larger than L, agrees with it on all rows of the landmarks, and is exact if they span it. Draws then go
through the small matrix :math:`F^\top F`. `RidgeDPP` also keeps what the landmarks leave out.

References
----------
.. [1] R. H. Affandi, A. Kulesza, E. B. Fox and B. Taskar, "Nystrom approximation for large-scale determinantal
   processes", AISTATS 2013.
.. [2] C. Musco and C. Musco, "Recursive sampling for the Nystrom method", NeurIPS 2017.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from pluri.processes.dpp.finite import DPP
from pluri.processes.dpp.given_kernels import similarity_form
from pluri.processes.dpp.ground_set import GroundSet
from pluri.processes.dpp.kernel_forms import Array, FeatureKernel, IntArray, KernelForm, as_kernel_form, as_subset
from pluri.processes.dpp.representation import Representation
from pluri.processes.dpp.spectrum import spectrum_of_kernel
from pluri.validation import Only, RandomState, Whole, as_generator, check_value

#: Directions of the landmarks below this share of the largest are rounding of zero.
NO_DIRECTION = 1e-12
SELECTIONS = Only("uniform", "greedy", "leverage")


def choose_landmarks(kernel: KernelForm, n_landmarks: int, selection: str, rng: np.random.Generator) -> IntArray:
    """Items to stand for all: sorted ids, perhaps fewer than asked for if the kernel has a lower rank.

    ``"uniform"`` takes any; ``"greedy"`` the item that is worst explained, again and again (pivoted Cholesky);
    ``"leverage"`` draws by estimates of ``diag L (L + I)^-1``, which are the inclusion probabilities themselves.
    """
    check_value(selection, "selection", SELECTIONS)
    n_items = kernel.n_items
    check_value(n_landmarks, "n_landmarks", Whole(1, n_items))
    m = int(n_landmarks)
    if selection == "greedy":
        return _worst_explained(kernel, m)
    pilot = np.sort(rng.choice(n_items, size=m, replace=False)).astype(np.int64)
    if selection == "uniform":
        return pilot
    # Leverage with every pilot standing for n / m items: L_ii - L_iU S (S L_U S + I)^-1 S L_Ui, S = sqrt(n / m).
    rows = kernel.rows(pilot) * np.sqrt(n_items / m)
    inner = rows[:, pilot] * np.sqrt(n_items / m) + np.eye(m)
    scores = kernel.diagonal() - np.einsum("mi,mi->i", rows, np.linalg.solve(inner, rows))
    scores = np.clip(scores, 0.0, 1.0)
    support = np.flatnonzero(scores > 0)
    if support.size <= m:
        return support.astype(np.int64) if support.size else pilot
    return np.sort(rng.choice(n_items, size=m, replace=False, p=scores / scores.sum())).astype(np.int64)


def _worst_explained(kernel: KernelForm, m: int) -> IntArray:
    left = kernel.diagonal()
    floor = NO_DIRECTION * float(left.max(initial=0.0))
    factor = np.empty((m, kernel.n_items))
    chosen: list[int] = []
    for step in range(m):
        item = int(np.argmax(left))
        if left[item] <= floor:
            break
        row = kernel.rows([item])[0] - factor[:step, item] @ factor[:step]
        factor[step] = row / np.sqrt(left[item])
        left = np.maximum(left - factor[step] ** 2, 0.0)
        left[item] = 0.0
        chosen.append(item)
    return np.sort(np.array(chosen or [0], dtype=np.int64))


def nystrom_features(
    kernel: ArrayLike | KernelForm,
    landmarks: ArrayLike | None = None,
    *,
    n_landmarks: int | None = None,
    selection: str = "greedy",
    random_state: RandomState = None,
) -> Array:
    """Feature rows F whose products approximate a kernel; exact if the landmarks span it.

    Parameters
    ----------
    kernel : array_like (n_items, n_items) or kernel object
        Only its diagonal and the rows of landmarks are looked at.
    landmarks : array_like, optional
        Ids of items, or a mask.
    n_landmarks : int, optional
        How many to choose, in place of ``landmarks``.
    selection : {"greedy", "uniform", "leverage"}, default="greedy"
        How to choose them.
    random_state : int, Generator or None

    Returns
    -------
    ndarray (n_items, rank of the landmarks)

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp.approximations.nystrom import nystrom_features
    >>> X = np.array([[1.0, 0.0], [0.5, 2.0], [1.0, 1.0]])
    >>> features = nystrom_features(X @ X.T, n_landmarks=2)
    >>> bool(np.allclose(features @ features.T, X @ X.T))
    True
    """
    form = as_kernel_form(kernel, "L")
    return _features(form, _landmarks(form, landmarks, n_landmarks, selection, random_state))


def _landmarks(
    form: KernelForm, landmarks: ArrayLike | None, n_landmarks: int | None, selection: str, random_state: RandomState
) -> IntArray:
    if (landmarks is None) == (n_landmarks is None):
        raise ValueError("exactly one of landmarks and n_landmarks must be given")
    if landmarks is None:
        return choose_landmarks(form, n_landmarks, selection, as_generator(random_state))  # type: ignore[arg-type]
    chosen = as_subset(landmarks, form.n_items, "landmarks")
    if not chosen.size:
        raise ValueError("landmarks must name at least one item, got none")
    return chosen


def _features(form: KernelForm, landmarks: IntArray) -> Array:
    rows = form.rows(landmarks)
    inner = rows[:, landmarks]
    # With unit diagonals, so that items of low quality keep their digits.
    scale = np.sqrt(np.maximum(np.diagonal(inner), 0.0))
    scale = np.where(scale > 0, scale, 1.0)
    values, vectors = np.linalg.eigh(0.5 * (inner + inner.T) / scale / scale[:, None])
    keep = values > NO_DIRECTION * max(float(values[-1]), 0.0)
    return np.asarray((rows / scale[:, None]).T @ (vectors[:, keep] / np.sqrt(values[keep])))


class NystromDPP(DPP):
    """The process of Nystrom's approximation of a kernel: all that `DPP` offers, at the cost of a few landmarks.

    Parameters
    ----------
    L : array_like (n_items, n_items) or kernel object
        Kernel; a `FunctionKernel` is computed only where it is needed.
    n_landmarks : int, optional
        Number of landmarks; 100 (or all items) if neither this nor ``landmarks`` is given.
    landmarks : array_like, optional
        Their ids, in place of a number.
    selection : {"greedy", "uniform", "leverage"}, default="greedy"
        How they are chosen.
    random_state : int, Generator or None
        For the choice.

    Attributes
    ----------
    landmarks : ndarray
        The items that stand for all.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp import FunctionKernel
    >>> from pluri.processes.dpp.approximations.nystrom import NystromDPP
    >>> X = np.linspace(0, 1, 1000)[:, None]
    >>> kernel = FunctionKernel(lambda a, b: 0.1 * np.exp(-((a - b.T) ** 2) / 0.02), X)
    >>> process = NystromDPP(kernel, n_landmarks=30)
    >>> process.n_items, round(process.expected_size, 2)
    (1000, 8.31)
    """

    landmarks: IntArray

    def __init__(
        self,
        L: ArrayLike | KernelForm,
        n_landmarks: int | None = None,
        *,
        landmarks: ArrayLike | None = None,
        selection: str = "greedy",
        random_state: RandomState = None,
    ) -> None:
        form = as_kernel_form(L, "L")
        if n_landmarks is None and landmarks is None:
            n_landmarks = min(100, form.n_items)
        self.landmarks = _landmarks(form, landmarks, n_landmarks, selection, random_state)
        features = _features(form, self.landmarks)
        if features.shape[1] == 0:  # a kernel of zeros: only the empty set
            features = np.zeros((form.n_items, 1))
        self._process = Representation(FeatureKernel(features))
        self._ground = GroundSet.of_size(form.n_items)

    @classmethod
    def from_kernel(  # type: ignore[override]
        cls,
        X: Any,
        kernel: str | Callable[..., Any] = "rbf",
        quality: ArrayLike | None = None,
        n_landmarks: int | None = None,
        *,
        random_state: RandomState = None,
        **parameters: Any,
    ) -> NystromDPP:
        """The approximation of a similarity between rows of data, of any number; see `DPP.from_kernel`.

        ``with_expected_size`` scales it afterwards.
        """
        return cls(similarity_form(X, kernel, quality, parameters), n_landmarks, random_state=random_state)

    @classmethod
    def _of(cls, process: Representation, ground: GroundSet | None = None) -> Any:
        # What conditioning gives is a process of low rank like any other.
        return DPP._of(process, ground)

    def __repr__(self) -> str:
        return f"NystromDPP(n_items={self.n_items}, n_landmarks={self.landmarks.size})"


class Approximation(Protocol):
    """What `approximation_error` asks of an approximate process."""

    @property
    def log_normalizer(self) -> float:
        """``log det(L + I)`` of the approximation."""

    def inclusion_probabilities(self) -> Array:
        """Its probabilities that each item is drawn."""


class ApproximationError(NamedTuple):
    """How far an approximate process is from the exact one.

    Attributes
    ----------
    log_normalizer : relative error of log det(L + I)
    inclusion : sum of the errors of the inclusion probabilities, as a share of the expected size
    largest_inclusion : largest error of an inclusion probability
    """

    log_normalizer: float
    inclusion: float
    largest_inclusion: float


def approximation_error(kernel: ArrayLike | KernelForm, approximation: Approximation) -> ApproximationError:
    """Compare an approximation with the exact process, which takes an eigendecomposition of the whole kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp.approximations.nystrom import NystromDPP, approximation_error
    >>> X = np.linspace(0, 1, 100)
    >>> L = np.exp(-((X[:, None] - X) ** 2) / 0.02)
    >>> [f"{approximation_error(L, NystromDPP(L, m)).inclusion:.0e}" for m in (5, 10, 20)]
    ['5e-01', '7e-02', '5e-06']
    """
    form = as_kernel_form(kernel, "L")
    spectrum = spectrum_of_kernel(form.rows(np.arange(form.n_items)))
    exact = (spectrum.vectors**2) @ spectrum.probabilities
    found = approximation.inclusion_probabilities()
    if found.shape != exact.shape:
        raise ValueError(f"approximation must be over {exact.size} items like the kernel, got {found.size}")
    errors = np.abs(found - exact)
    normalizer, size = spectrum.log_normalizer, float(exact.sum())
    return ApproximationError(
        abs(approximation.log_normalizer - normalizer) / normalizer if normalizer > 0 else 0.0,
        float(errors.sum()) / size if size > 0 else 0.0,
        float(errors.max()),
    )
