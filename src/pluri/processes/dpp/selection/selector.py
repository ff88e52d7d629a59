r"""Diverse rows of a data set, chosen by a determinantal point process behind scikit-learn's interface.

.. math:: P(Y) \propto \det\bigl[q_i \, k(x_i, x_j) \, q_j\bigr]_{i, j \in Y}

Rows of high quality q are preferred, and rows that resemble each other are not taken together: for search results,
recommendations, summaries, training sets, sensors, points to label next.

References
----------
.. [1] A. Kulesza and B. Taskar, "k-DPPs: fixed-size determinantal point processes", ICML 2011.
.. [2] L. Chen, G. Zhang and E. Zhou, "Fast greedy MAP inference for determinantal point process to improve
   recommendation diversity", NeurIPS 2018.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from pluri.processes.dpp.kernel_forms import Array, FeatureKernel, FunctionKernel, IntArray, KernelForm
from pluri.processes.dpp.selection.chosen_rows import ChosenRows
from pluri.processes.dpp.selection.row_choice import (
    choice_by_size,
    choose_rows,
    distribution_of_rows,
    kernel_of_rows,
    number_of_rows,
    sparse_rows,
)
from pluri.processes.dpp.subset_distribution import SubsetDistribution
from pluri.validation import Allowed, Only, RandomState, Stored, as_generator, check_parameters
from pluri.validation.estimator import Estimator

#: A kernel of so many rows is decomposed only to know a probability.
SMALL = 300


class DPPSelector(ChosenRows, OneToOneFeatureMixin, TransformerMixin, Estimator):
    """Choose rows that are good and different.

    The choice is made by `fit`, among the rows that it is given. `transform` takes the chosen rows out of the same
    rows (or of anything else with a row for each of them, in the same order: texts, labels, a data frame); the number
    of rows changes, so in a pipeline this is a last step.

    Parameters
    ----------
    size : int, float or None, default=10
        Number of rows; a share of the rows if it is a float between 0 and 1. With None the number is random ("exact",
        "mcmc"), or what makes the rows most probable ("map"): the quality then says how many.
    kernel : {"rbf", "cosine", "linear", "exponential_cosine"} or callable, default="rbf"
        Similarity of rows. A callable takes two sets of rows and gives a matrix. All but "rbf" take sparse rows; of
        "cosine" and "linear" nothing of the size n_rows^2 is made, but for exact draws from more columns than rows.
    method : {"auto", "exact", "map", "mcmc"}, default="auto"
        A random draw of the process ("exact"), its most probable rows by greedy search (the same every time, and by far
        the fastest: "map"), or a draw by a Markov chain, for many rows ("mcmc"). "auto" is a random draw: "exact",
        unless the kernel is "cosine" or "linear" with more than 2000 rows and columns, or more than 40 million entries;
        then "mcmc". An exact draw from 20,000 rows of 5,000 columns takes a minute and two gigabytes.
    kernel_params : dict, optional
        Parameters of the kernel, such as ``{"length_scale": 0.5}``. Unless it is given here, the length scale of "rbf"
        is the median distance between rows or, if that is smaller, ``median * max(1, sqrt(3 / n_features)) / size
        ** (1 / n_features)``, somewhat below the spacing of so many rows that fill the room: the scale of `coreset`.
    quality : callable, optional
        Function of X that gives a non-negative factor for each row, where `fit` is given none. (Factors that are known
        already are given to `fit`.)
    local_search : bool, default=False
        Whether rows found by "map" are then exchanged for others as long as that helps.
    random_state : int, Generator, RandomState or None
        Source of randomness of "exact" and "mcmc".

    Attributes
    ----------
    selected_indices_ : ndarray of int
        Chosen rows: in the order of choice for "map" without local search, else sorted.
    log_det_ : float
        Log determinant of the kernel over the chosen rows.
    log_prob_ : float
        Log probability of exactly these rows. NaN where it would need more work than the choice itself: a
        decomposition of more than 300 rows (and columns, for "cosine" and "linear"), if "exact" has made none.
    method_ : str
        What "auto" came to.
    n_samples_fit_ : int
        Number of rows of the fit.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where the columns have names.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp import DPPSelector
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1], [9.0]])
    >>> selector = DPPSelector(3, method="map").fit(X, quality=[1.0, 2.0, 1.0, 2.0, 1.0])
    >>> selector.selected_indices_
    array([1, 3, 4])
    >>> selector.transform(X)
    array([[0.1],
           [5.1],
           [9. ]])
    >>> DPPSelector(2, kernel="cosine", random_state=0).select([[1, 0], [2, 0], [0, 1]], ids=["a", "b", "c"])
    ['a', 'c']
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "selected_indices_": Stored("n_chosen", whole=True, least=0, below="n_samples_fit_")
    }

    _parameters: ClassVar[Mapping[str, Allowed]] = {"method": Only("auto", "exact", "map", "mcmc")}

    selected_indices_: IntArray
    log_det_: float
    log_prob_: float
    method_: str
    n_samples_fit_: int

    def __init__(
        self,
        size: int | float | None = 10,
        *,
        kernel: str | Callable[..., Any] = "rbf",
        method: str = "auto",
        kernel_params: dict[str, Any] | None = None,
        quality: Callable[[Any], ArrayLike] | None = None,
        local_search: bool = False,
        random_state: RandomState = None,
    ) -> None:
        self.size = size
        self.kernel = kernel
        self.method = method
        self.kernel_params = kernel_params
        self.quality = quality
        self.local_search = local_search
        self.random_state = random_state

    def fit(self, X: Any, y: object = None, quality: ArrayLike | None = None) -> Self:
        """Choose among the rows.

        Parameters
        ----------
        X : array_like or sparse matrix (n_rows, n_features)
            The rows.
        y : ignored
        quality : array_like (n_rows,), optional
            Non-negative factor for each row, such as ``exp(score / 2)`` of a relevance score; a row of twice the
            quality is four times as likely beside rows that it does not resemble, and one of quality 0 is never chosen.
        """
        check_parameters(self)
        if self.quality is not None and not callable(self.quality):
            raise TypeError(
                f"quality must be a function of X or None, got {type(self.quality).__name__}: give numbers to fit, as "
                "in fit(X, quality=numbers)"
            )
        if _is_texts(X):
            raise ValueError(
                "X must be rows of numbers, got texts: make numbers of them first, such as "
                "TfidfVectorizer().fit_transform(X), and use kernel='cosine'"
            )
        if not self._takes_sparse() and issparse(X):
            raise sparse_rows()
        rows = validate_data(self, X, accept_sparse=self._takes_sparse() and "csr", dtype=np.float64)
        n_rows = int(rows.shape[0])
        size = number_of_rows(self.size, n_rows)
        if quality is None and self.quality is not None:
            quality = self.quality(X)
        form = kernel_of_rows(rows, self.kernel, self.kernel_params, quality, size)
        distribution = distribution_of_rows(form, size)
        self.method_ = choice_by_size(form) if self.method == "auto" else self.method
        chosen = choose_rows(
            distribution, size, self.method_, as_generator(self.random_state), improve=bool(self.local_search)
        )
        if chosen.size == 0:
            warnings.warn(
                "no row was chosen: give size, or a quality above 1 to rows that should be",
                UserWarning,
                stacklevel=2,
            )
        self.selected_indices_ = chosen
        self.log_det_ = _log_determinant(distribution.kernel, chosen)
        self.log_prob_ = distribution.log_prob(chosen) if _is_cheap(distribution, self.method_) else np.nan
        self.n_samples_fit_ = n_rows
        return self

    @property
    def _chosen(self) -> IntArray:
        return self.selected_indices_

    def select(
        self, X: Any, *, ids: Sequence[Any] | NDArray[Any] | None = None, quality: ArrayLike | None = None
    ) -> list[Any]:
        """Fit, and tell which rows were chosen.

        Parameters
        ----------
        X : array_like or sparse matrix (n_rows, n_features)
        ids : sequence (n_rows,), optional
            Names of the rows; their numbers by default.
        quality : array_like (n_rows,), optional
            See `fit`.

        Returns
        -------
        list
            Ids in the order of `selected_indices_`.
        """
        self.fit(X, quality=quality)
        if ids is None:
            found: list[Any] = self.selected_indices_.tolist()
            return found
        names = list(ids)
        if len(names) != self.n_samples_fit_:
            raise ValueError(f"ids must name each of the {self.n_samples_fit_} rows, got {len(names)}")
        return [names[index] for index in self.selected_indices_]

    def _takes_sparse(self) -> bool:
        return self.kernel != "rbf"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _is_texts(X: Any) -> bool:
    """Whether rows are texts rather than rows of numbers."""
    if getattr(X, "ndim", 1) != 1 or not (hasattr(X, "iloc") or isinstance(X, np.ndarray | list | tuple)) or not len(X):
        return False
    return isinstance(X.iloc[0] if hasattr(X, "iloc") else X[0], str | bytes)


def _is_cheap(distribution: SubsetDistribution, method: str) -> bool:
    """Whether the normaliser is known, or can be had in little time."""
    form = distribution.kernel
    if method == "exact":
        return not isinstance(form, FunctionKernel)
    return (min(form.features.shape) if isinstance(form, FeatureKernel) else form.n_items) <= SMALL


def _log_determinant(form: KernelForm, chosen: IntArray) -> float:
    block: Array = form.block(chosen, chosen)
    sign, value = np.linalg.slogdet(block)
    return float(value) if sign > 0 else -np.inf
