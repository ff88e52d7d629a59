r"""A weighted handful of rows that stands for a data set: sums over it estimate sums over all rows.

Rows Y are drawn by a determinantal point process of fixed size, which spreads them out; each is weighted by the inverse
of the probability :math:`\pi_i` with which it is drawn [1]_, so that for every function f

.. math:: E \sum_{i \in Y} \frac{f(x_i)}{\pi_i} = \sum_i f(x_i),

with a smaller variance than independent rows have where f is smooth, because similar rows are not taken twice [2]_.

References
----------
.. [1] D. Horvitz and D. Thompson, "A generalization of sampling without replacement from a finite universe", Journal of
   the American Statistical Association 47, 1952.
.. [2] N. Tremblay, S. Barthelme and P.-O. Amblard, "Determinantal point processes for coresets", Journal of Machine
   Learning Research 20, 2019.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from pluri.processes.dpp.approximations.nystrom import NO_DIRECTION
from pluri.processes.dpp.kernel_forms import Array, FeatureKernel, FunctionKernel, IntArray, KernelForm
from pluri.processes.dpp.selection.row_choice import (
    LARGEST_WRITTEN,
    choose_rows,
    distribution_of_rows,
    kernel_of_rows,
    number_of_rows,
    too_many,
)
from pluri.validation import RandomState, as_generator

#: Landmarks of the kernel of many rows: at least, for each row drawn, and at most.
LEAST_LANDMARKS, LANDMARKS_PER_ROW, MOST_LANDMARKS = 200, 2, 2000
#: Directions of the landmarks below this share of the largest are left out, unless too few remain.
SMALL_DIRECTION = 1e-6
#: Rows whose correlation with each landmark is below this become landmarks too.
UNLIKE = 0.03
#: Rows whose similarities are looked at together.
CHUNK = 4096


@dataclass(frozen=True, eq=False)
class Coreset:
    """Rows and their weights; give them as ``X[indices]`` and ``sample_weight=weights`` to an estimator.

    ``indices, weights = coreset(...)`` takes them apart.

    Attributes
    ----------
    indices : (n,) int64
        The rows.
    weights : (n,)
        Positive; how many rows each of them stands for.
    """

    indices: IntArray
    weights: Array

    def __iter__(self) -> Iterator[Array | IntArray]:
        """Indices, then weights: ``indices, weights = coreset(...)``."""
        return iter((self.indices, self.weights))

    def total(self, values: ArrayLike) -> Any:
        """Estimate of the sum of a function over all rows, from its values (n, ...) at the rows of the coreset."""
        at_rows = np.asarray(values, dtype=np.float64)
        if at_rows.ndim == 0 or len(at_rows) != len(self.weights):
            raise ValueError(f"values must be given for the {len(self.weights)} rows, got shape {at_rows.shape}")
        return np.tensordot(self.weights, at_rows, axes=(0, 0))[()]


def coreset(
    X: Any,
    size: int | float,
    *,
    kernel: str | Callable[..., Any] = "rbf",
    method: str = "exact",
    kernel_params: dict[str, Any] | None = None,
    sample_weight: ArrayLike | None = None,
    normalize: bool = False,
    random_state: RandomState = None,
) -> Coreset:
    """A weighted subset of rows whose weighted sums estimate sums over all rows.

    Parameters
    ----------
    X : array_like or sparse matrix (n_rows, n_features)
        The rows.
    size : int or float
        Number of rows, or a share of them between 0 and 1.
    kernel : {"rbf", "cosine", "linear", "exponential_cosine"} or callable, default="rbf"
        Similarity of rows: functions that change little between similar rows are estimated well. Of more than 1000
        rows a kernel that is no product of features is replaced by one of low rank from random landmarks (see the
        notes), which changes the variance a little; the estimates stay unbiased.
    method : {"exact", "map"}, default="exact"
        A random draw, with inverse probabilities as weights; or the greedy choice, in which each row stands for the
        rows that it resembles most: the same every time, and biased.
    kernel_params : dict, optional
        Parameters of the kernel. Unless it is given, the length scale of "rbf" is 0.7 of the spacing of `size` points
        on a grid that fills a cube with the median distance of the rows (and at most this distance):
        ``median * max(1, sqrt(3 / n_features)) / size ** (1 / n_features)``. Longer scales lower the variance for
        smooth functions and raise it for constants.
    sample_weight : array_like (n_rows,), optional
        Non-negative weights of the rows in the sums; heavier rows are drawn more often.
    normalize : bool, default=False
        Whether the weights are scaled to sum to the total weight of all rows. Better for functions whose mean is large
        compared to how they vary (log-likelihoods); the estimate is then no longer exactly unbiased.
    random_state : int, Generator, RandomState or None
        Source of randomness.

    Returns
    -------
    Coreset
        ``indices`` (sorted, or in order of choice for "map") and ``weights``.

    Notes
    -----
    Up to 1000 rows cost ``n_rows^3``. More are described by m = max(200, 2 size) landmarks among them, 2000 at most
    (but no fewer than `size`), with every row brought to its own length, and cost ``n_rows m^2``: the square of `size`.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp import coreset
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> few = coreset(X, 20, kernel_params={"length_scale": 0.1}, random_state=0)
    >>> float(few.total(X[few.indices, 0] ** 2)), float((X**2).sum())
    (69.4, 66.8)
    """
    if method not in ("exact", "map"):
        raise ValueError(f"method must be 'exact' or 'map', got {method!r}")
    rows = check_array(X, accept_sparse="csr", dtype=np.float64)
    n_chosen = number_of_rows(size, rows.shape[0])
    if n_chosen is None:
        raise ValueError("size must be a whole number or a share, got None")
    mass = _checked_weight(sample_weight, rows.shape[0])
    form = kernel_of_rows(rows, kernel, kernel_params, np.sqrt(mass), n_chosen)
    if method == "map":
        chosen = choose_rows(distribution_of_rows(form, n_chosen), n_chosen, "map", as_generator(random_state))
        weights = _mass_around(form, chosen, mass)
    else:
        chosen, weights = _draw(form, n_chosen, mass, as_generator(random_state))
    if normalize:
        weights = weights * (mass.sum() / weights.sum())
    return Coreset(chosen, weights)


def _draw(form: KernelForm, size: int, mass: Array, rng: np.random.Generator) -> tuple[IntArray, Array]:
    if isinstance(form, FunctionKernel) and form.n_items > LARGEST_WRITTEN:
        form = FeatureKernel(_low_rank(form, size, mass, rng))
    distribution = distribution_of_rows(form, size)
    if size > distribution.rank:
        raise too_many(size, distribution.rank, distribution.n_items, "size")
    probabilities = distribution.inclusion_probabilities()
    never = np.flatnonzero((mass > 0) & (probabilities <= 0))
    if never.size:
        raise ValueError(
            f"every row of positive weight must have a chance, got {never.size} rows that this kernel never draws, "
            f"such as row {never[0]} (a row of zeros?)"
        )
    chosen = distribution.sample(random_state=rng, method="spectral")
    return chosen, mass[chosen] / probabilities[chosen]


def _low_rank(form: FunctionKernel, size: int, mass: Array, rng: np.random.Generator) -> Array:
    """Features whose products approximate a kernel and have its diagonal, from landmarks drawn at random.

    What the landmarks do not explain of a row is made up for by its length: otherwise rows far from all of them would
    hardly ever be drawn, and had enormous weights. The distribution is another one than that of the kernel, but as
    exact.
    """
    possible = np.flatnonzero(mass > 0)
    number = max(LEAST_LANDMARKS, size, min(LANDMARKS_PER_ROW * size, MOST_LANDMARKS))
    landmarks = rng.choice(possible, size=min(number, possible.size), replace=False)
    diagonal = form.diagonal()
    rows = _correlations(form, landmarks, diagonal)
    while landmarks.size < 2 * number:
        # Rows that resemble no landmark become landmarks too, some at a time.
        missed = np.flatnonzero((rows.max(axis=0) < UNLIKE) & (rows.min(axis=0) > -UNLIKE) & (diagonal > 0))
        if not missed.size:
            break
        more = rng.choice(missed, size=min(missed.size, max(1, number // 10)), replace=False)
        landmarks, rows = np.append(landmarks, more), np.vstack([rows, _correlations(form, more, diagonal)])
    values, vectors = np.linalg.eigh(rows[:, landmarks])
    keep = values > SMALL_DIRECTION * values[-1]
    if keep.sum() < 2 * size:
        keep = (values > NO_DIRECTION * values[-1]) & (np.arange(values.size) >= values.size - 2 * size)
    features = rows.T @ (vectors[:, keep] / np.sqrt(values[keep]))
    lengths = np.sqrt(np.einsum("ij,ij->i", features, features))
    features *= (np.sqrt(diagonal) / np.where(lengths > 0, lengths, np.inf))[:, None]
    return np.asarray(features)


def _correlations(form: FunctionKernel, landmarks: IntArray, diagonal: Array) -> Array:
    """Similarities (n_landmarks, n_rows) with rows of length one; zero for rows of no length."""
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, np.inf))
    rows = form.rows(landmarks)
    rows *= scale
    rows *= scale[landmarks, None]
    return rows


def _mass_around(form: KernelForm, chosen: IntArray, mass: Array) -> Array:
    """Total weight of the rows that resemble each chosen one more than the others."""
    scale = np.sqrt(np.maximum(form.diagonal(), 0.0))
    total = np.zeros(chosen.size)
    for begin in range(0, form.n_items, CHUNK):
        part = np.arange(begin, min(begin + CHUNK, form.n_items))
        closeness = form.block(part, chosen) / scale[chosen]
        nearest = closeness.argmax(axis=1)
        total += np.bincount(nearest, weights=mass[part], minlength=chosen.size)
    return total


def _checked_weight(sample_weight: ArrayLike | None, n_rows: int) -> Array:
    if sample_weight is None:
        return np.ones(n_rows)
    mass = np.array(sample_weight, dtype=np.float64)
    if mass.shape != (n_rows,) or not (np.isfinite(mass).all() and (mass >= 0).all() and mass.any()):
        raise ValueError(
            f"sample_weight must be {n_rows} finite, non-negative numbers, not all zero, got shape {mass.shape}"
            + (f" with a minimum of {mass.min():.3g}" if mass.size else "")
        )
    return mass
