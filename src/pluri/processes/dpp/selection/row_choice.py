r"""Rows of data as the items of a determinantal point process: their kernel, and a choice among them.

.. math:: L_{ij} = q_i \, k(x_i, x_j) \, q_j

Similarities that are products of features (cosine, linear) stay features; others are computed where they are needed.
"""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from pluri.processes.dpp.finite import DPP
from pluri.processes.dpp.kernel_checks import check_kernel, check_quality
from pluri.processes.dpp.kernel_forms import Array, DenseKernel, FeatureKernel, FunctionKernel, IntArray, KernelForm
from pluri.processes.dpp.samplers.chain import DPPMarkovChain
from pluri.processes.dpp.search.greedy import greedy_map
from pluri.processes.dpp.search.local_search import local_search
from pluri.processes.dpp.similarity import as_similarity
from pluri.processes.dpp.subset_distribution import SubsetDistribution
from pluri.validation import Only, check_value

#: Ways to choose rows: see `choose_rows`.
CHOICES = Only("exact", "map", "mcmc")
#: Exact draws by features decompose a matrix of as many rows as the smaller side of the features; up to so many, and so
#: many features of all rows together (of which they keep three copies), they take seconds and a gigabyte at most.
LARGEST_DECOMPOSED, MOST_FEATURES = 2000, 40_000_000
#: A kernel function of at most so many rows is written out and decomposed; of more, exact draws avoid both.
LARGEST_WRITTEN = 1000


def kernel_of_rows(
    X: Any,
    kernel: str | Callable[..., Any] = "rbf",
    parameters: Mapping[str, Any] | None = None,
    quality: ArrayLike | None = None,
    size: int | None = None,
) -> KernelForm:
    """The kernel of rows, in a form that is not written out.

    Parameters
    ----------
    X : ndarray or CSR array (n_rows, n_features)
        Checked already.
    kernel : {"rbf", "cosine", "linear", "exponential_cosine"} or callable
        Similarity; a callable takes two sets of rows.
    parameters : mapping, optional
        Of the kernel; the length scale of "rbf" is by `default_length_scale` unless it is given.
    quality : array_like (n_rows,), optional
        Non-negative factors.
    size : int, optional
        Number of rows to choose, for the default length scale.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp.selection.row_choice import kernel_of_rows
    >>> kernel_of_rows(np.array([[3.0, 4.0], [4.0, 3.0]]), "cosine").rows([0])
    array([[1.  , 0.96]])
    """
    given = dict(parameters or {})
    if isinstance(kernel, str) and kernel == "rbf":
        if hasattr(X, "tocsr"):
            raise sparse_rows()
        given.setdefault("length_scale", default_length_scale(X, size))
    similarity = as_similarity(kernel, **given)
    factors = None if quality is None else check_quality(quality, X.shape[0])
    if hasattr(similarity, "features"):
        rows = similarity.features(X)
        if factors is not None:
            rows = rows * factors[:, None] if isinstance(rows, np.ndarray) else rows.multiply(factors[:, None]).tocsr()
        return FeatureKernel(rows)
    if getattr(similarity, "length_scale", None) == "median":
        similarity = _with_median(similarity, X)
    shape = np.shape(similarity(X[:1], X[:2]))
    if shape != (1, min(2, X.shape[0])):
        raise ValueError(f"kernel must give similarities (n_a, n_b) of two sets of rows, got shape {shape} of 1 and 2")
    return FunctionKernel(similarity, X, factors)


def default_length_scale(X: Array, size: int | None) -> float:
    """A length scale of "rbf" at which ``size`` rows can be told apart.

    The smaller of the median distance of the rows and, for up to three columns, 0.7 of the spacing of ``size`` points
    on a grid that fills a cube with this median distance: ``median * max(1, sqrt(3 / n_features)) / size ** (1 /
    n_features)``. The median itself if the size is not known; 1 if all rows coincide.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp.selection.row_choice import default_length_scale
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> default_length_scale(X, None), round(default_length_scale(X, 3), 3)
    (1.0, 0.577)
    """
    from pluri.priors.kernels import RBFKernel

    if not X.shape[0] or np.ptp(X, axis=0).max() == 0:
        return 1.0  # rows that all coincide are alike on any scale
    median = float(RBFKernel("median").fixed(X).length_scale)  # type: ignore[arg-type]
    if size is None:
        return median
    # Two points of a unit cube are sqrt(n_features / 6) apart on average (root mean square); its grid of n points has
    # the spacing n^(-1 / n_features), of which sqrt(1 / 2) is taken. In many dimensions, where all distances are alike,
    # this would leave no similarity at all.
    n_features = X.shape[1]
    return median * min(1.0, max(1.0, float(np.sqrt(3.0 / n_features))) / size ** (1.0 / n_features))


def _with_median(similarity: Any, X: Any) -> Any:
    if X.shape[0] > 0 and not hasattr(X, "tocsr") and np.ptp(X, axis=0).max() == 0:
        return type(similarity)(length_scale=1.0)  # rows that all coincide are alike on any scale
    return similarity.fixed(X)


def distribution_of_rows(form: KernelForm, size: int | None) -> SubsetDistribution:
    """The process of a kernel, of a fixed size if one is given; small kernels are checked and written out."""
    if isinstance(form, FunctionKernel) and form.n_items <= LARGEST_WRITTEN:
        form = DenseKernel(check_kernel(form.rows(np.arange(form.n_items)), "kernel(X, X)"))
    process = DPP(form)
    distribution: SubsetDistribution = process if size is None else process.fixed_size(size)
    return distribution


def choice_by_size(form: KernelForm) -> str:
    """How a row is best drawn: "exact", or "mcmc" where that would take minutes (above 2000 rows and columns).

    Kernels that are no products of features have exact draws that decompose nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp.selection.row_choice import choice_by_size, kernel_of_rows
    >>> choice_by_size(kernel_of_rows(np.eye(30), "cosine")), choice_by_size(kernel_of_rows(np.eye(2001), "linear"))
    ('exact', 'mcmc')
    """
    if not isinstance(form, FeatureKernel):
        return "exact"
    n_rows, n_features = form.features.shape
    small = min(n_rows, n_features) <= LARGEST_DECOMPOSED and n_rows * n_features <= MOST_FEATURES
    return "exact" if small else "mcmc"


def choose_rows(
    distribution: SubsetDistribution,
    size: int | None,
    method: str,
    rng: np.random.Generator,
    *,
    improve: bool = False,
    name: str = "size",
) -> IntArray:
    """Rows chosen from their process.

    Parameters
    ----------
    distribution : DPP or KDPP
        From `distribution_of_rows`.
    size : int, optional
        Number of rows; without it as many as the process draws, or as raise its probability.
    method : {"exact", "map", "mcmc"}
        An exact draw, the greedy search for the most probable rows, or a draw by a Markov chain.
    rng : numpy.random.Generator
    improve : bool, default=False
        Whether rows found by "map" are exchanged for others as long as that helps.
    name : str
        What the size is called where it was asked for.

    Returns
    -------
    int64 array
        In order of choice by "map" without ``improve``, sorted otherwise.

    Raises
    ------
    ValueError
        If fewer rows differ than are wanted.
    """
    check_value(method, "method", CHOICES)
    written = not isinstance(distribution.kernel, FunctionKernel)
    if method == "exact" and written:
        if size is not None and size > distribution.rank:
            raise too_many(size, distribution.rank, distribution.n_items, name)
        return distribution.sample(random_state=rng, method="spectral")
    if size is not None:
        # Also before a draw: a search that ends early is a sure and cheap sign that there are too few rows.
        try:
            found = greedy_map(distribution.kernel, size).items
        except ValueError as error:
            raise too_many(size, _number_of_different(distribution.kernel, size), distribution.n_items, name) from error
        # What a search reaches by rounding only, a draw does not: both refuse it.
        if written and _is_doubtful(distribution.kernel, found) and size > distribution.rank:
            raise too_many(size, distribution.rank, distribution.n_items, name)
    if method == "exact":
        return distribution.sample(random_state=rng, method="intermediate")
    if method == "mcmc":
        return _draw_by_chain(distribution, size, rng)
    if size is None:
        found = greedy_map(distribution.kernel).items
    if not improve:
        return found
    moves = ("add", "delete", "swap") if size is None else ("swap",)
    return local_search(distribution.kernel, found, moves=moves).items


def _draw_by_chain(distribution: SubsetDistribution, size: int | None, rng: np.random.Generator) -> IntArray:
    """A draw of a chain; what it advises about settings cannot be given here, so that the warning is another one."""
    chain = DPPMarkovChain(distribution.kernel, size=size)
    try:
        (chosen,) = chain._draw(1, "auto", "auto", 1, rng)
    except FloatingPointError as error:
        raise ValueError(
            "the Markov chain met rows that depend on each other to working precision: choose fewer rows, use "
            "method='exact', or a smaller length_scale of 'rbf'"
        ) from error
    if not chain.converged_:
        warnings.warn(
            "the Markov chain forgets its start slowly, so that these rows are not quite a draw of the process: "
            "use method='exact', or 'map', or choose fewer rows",
            ConvergenceWarning,
            stacklevel=4,
        )
    return chosen


def _is_doubtful(kernel: KernelForm, chosen: IntArray) -> bool:
    """Whether rows may be more than the kernel's rank to working precision, and the rank can be had in little time."""
    if isinstance(kernel, FeatureKernel) and min(kernel.features.shape) > LARGEST_WRITTEN:
        return False
    # The least eigenvalue of a block is below that of the same number of the whole kernel; the trace is above all.
    rounding = 4 * kernel.n_items * np.finfo(np.float64).eps * float(kernel.diagonal().sum())
    return bool(chosen.size and np.linalg.eigvalsh(kernel.block(chosen, chosen))[0] < rounding)


def _number_of_different(kernel: KernelForm, size: int) -> int:
    """The largest size below ``size`` that a greedy search reaches."""
    low, high = 0, size
    while high - low > 1:
        middle = (low + high) // 2
        try:
            greedy_map(kernel, middle)
            low = middle
        except ValueError:
            high = middle
    return low


def sparse_rows() -> TypeError:
    """The error of sparse rows with the kernel "rbf"."""
    return TypeError(
        "X must be dense for kernel='rbf', got a sparse matrix: use kernel='cosine' or 'linear', which take sparse "
        "rows, or X.toarray()"
    )


def too_many(size: int, possible: int, n_rows: int, name: str) -> ValueError:
    """The error of asking for more rows than differ."""
    return ValueError(
        f"{name} must be at most {possible}, the number of the {n_rows} rows that this kernel tells apart, got {size}: "
        "duplicates and rows that depend on others count once (a smaller length_scale of 'rbf', or more columns for "
        "'cosine' and 'linear', tell more apart)"
    )


def number_of_rows(wanted: int | float | None, n_rows: int, name: str = "size") -> int | None:
    """How many of the rows are wanted: a number, a share of them, or None for as many as it may be.

    Examples
    --------
    >>> from pluri.processes.dpp.selection.row_choice import number_of_rows
    >>> number_of_rows(3, 20), number_of_rows(0.1, 20), number_of_rows(0.001, 20)
    (3, 2, 1)
    """
    if wanted is None:
        return None
    whole = isinstance(wanted, numbers.Integral) and not isinstance(wanted, bool)
    share = isinstance(wanted, numbers.Real) and not isinstance(wanted, numbers.Integral) and 0 < wanted < 1
    if share:
        return max(1, round(float(wanted) * n_rows))
    if not whole or wanted < 1:
        raise ValueError(
            f"{name} must be a whole number of at least 1, a share between 0 and 1, or None, got {wanted!r}"
        )
    if wanted > n_rows:
        raise ValueError(f"{name} must be at most the number of rows (n_samples = {n_rows}), got {wanted}")
    return int(wanted)
